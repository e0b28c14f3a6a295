// SPDX-License-Identifier: PostgreSQL

//! A BEIR corpus becomes a source.
//!
//! Owns the staging of the file where the server may read it; the ingestion itself is `rag.sync`'s. The lines are
//! handed over as they are (`_id`, `title`, `text`): a conversion here could hide what the product does to a record.

use crate::beir::Set;
use crate::db;
use postgres::Client;
use rag_core::{Error, Result};
use serde_json::{Map, Value, json};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to import and how.
#[derive(Debug, Clone, clap::Args)]
pub struct Import {
    /// Folder in BEIR's layout
    pub beir_dir: PathBuf,
    /// Name of the source
    #[arg(long)]
    pub source: String,
    /// Collection; made if it is new
    #[arg(long, default_value = "default")]
    pub collection: String,
    /// Model of a new collection; default: the server's
    #[arg(long)]
    pub model: Option<String>,
    /// How records are cut: recursive, or none for one chunk per record
    #[arg(long, default_value = "none")]
    pub chunking: String,
    /// Cut a record at the model's window instead of chunking it
    #[arg(long)]
    pub truncate: bool,
    /// Folder for the unpacked corpus; the server must be allowed to read it (pg_rag.allowed_paths)
    #[arg(long, env = "RAG_EVAL_STAGE")]
    pub stage: PathBuf,
}

/// What an import did.
#[derive(Debug, Clone)]
pub struct Imported {
    /// Records in the corpus.
    pub records: usize,
    /// Time of `CALL rag.sync`.
    pub sync: Duration,
    /// Documents that failed.
    pub failed: i64,
}

/// Stages the corpus, makes collection and source where they are missing, and syncs.
pub fn import(client: &mut Client, request: &Import) -> Result<Imported> {
    let set = Set::open(&request.beir_dir)?;
    let started = Instant::now();
    let (file, records) = stage(&set, &request.stage, &request.source)?;
    eprintln!("staged {records} records as {} in {:.1} s", file.display(), started.elapsed().as_secs_f64());
    create_collection(client, &request.collection, request.model.as_deref())?;
    add_source(client, request, &file)?;
    let started = Instant::now();
    client.execute("CALL rag.sync($1)", &[&request.source]).map_err(|e| db::sql("could not sync", &e))?;
    last_sync(client, &request.source, started.elapsed(), records)
}

/// Writes the corpus unpacked to `<stage>/<source>.jsonl`, readable for everybody.
fn stage(set: &Set, stage: &Path, source: &str) -> Result<(PathBuf, usize)> {
    let io = |path: &Path| {
        let what = path.display().to_string();
        move |e: io::Error| Error::io(&what, &e)
    };
    if source.contains(['/', '\0']) {
        return Err(Error::invalid(format!("source name \"{source}\" cannot name a file")));
    }
    fs::create_dir_all(stage).map_err(io(stage))?;
    let stage = stage.canonicalize().map_err(io(stage))?;
    let path = stage.join(format!("{source}.jsonl"));
    let mut out = BufWriter::new(File::create(&path).map_err(io(&path))?);
    let mut corpus = set.corpus()?;
    let mut records = 0;
    let mut line = Vec::new();
    while corpus.read_until(b'\n', &mut line).map_err(io(&path))? > 0 {
        out.write_all(&line).map_err(io(&path))?;
        records += usize::from(!line.trim_ascii().is_empty());
        line.clear();
    }
    out.flush().map_err(io(&path))?;
    fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(io(&path))?;
    Ok((path, records))
}

/// Makes a collection, if it is new.
pub(crate) fn create_collection(client: &mut Client, name: &str, model: Option<&str>) -> Result<()> {
    match client.execute("SELECT rag.create_collection($1, $2)", &[&name, &model]) {
        Ok(_) => Ok(()),
        Err(error) if db::is_duplicate(&error) => Ok(()),
        Err(error) => Err(db::sql("could not create the collection", &error)),
    }
}

fn add_source(client: &mut Client, request: &Import, file: &Path) -> Result<()> {
    let location = file.to_string_lossy().into_owned();
    let added = client.execute(
        "SELECT rag.add_source($1, 'jsonl', $2, $3, collection => $4)",
        &[&request.source, &location, &options(request), &request.collection],
    );
    match added {
        Ok(_) => Ok(()),
        Err(error) if db::is_duplicate(&error) => {
            eprintln!("source \"{}\" exists already: syncing it again with the options it has", request.source);
            Ok(())
        }
        Err(error) => Err(db::sql("could not add the source", &error)),
    }
}

fn options(request: &Import) -> Value {
    let mut options = Map::new();
    options.insert("chunking".to_owned(), json!(request.chunking));
    if request.truncate {
        options.insert("truncate".to_owned(), json!(true));
    }
    Value::Object(options)
}

/// The latest sync of the source, as a user sees it.
fn last_sync(client: &mut Client, source: &str, sync: Duration, records: usize) -> Result<Imported> {
    let row = client
        .query_one(
            "SELECT status, new::int8, modified::int8, unchanged::int8, failed::int8, truncated::int8, error
             FROM rag.status WHERE source = $1",
            &[&source],
        )
        .map_err(|e| db::sql("could not read rag.status", &e))?;
    let count = |column: usize| row.get::<_, i64>(column);
    let (status, failed, seconds): (String, i64, f64) = (row.get(0), count(4), sync.as_secs_f64());
    eprintln!(
        "sync {status} in {seconds:.1} s ({:.0} records/s): {} new, {} modified, {} unchanged, {failed} failed, {} cut",
        records as f64 / seconds,
        count(1),
        count(2),
        count(3),
        count(5),
    );
    if let Some(error) = row.get::<_, Option<String>>(6) {
        eprintln!("error of the sync: {error}");
    }
    Ok(Imported { records, sync, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_is_staged_as_it_is() {
        let base = std::env::temp_dir().join(format!("rag_eval_stage_{}", std::process::id()));
        fs::create_dir_all(base.join("set")).expect("a folder");
        let corpus = "{\"_id\": \"1\", \"text\": \"ä\"}\n\n{\"_id\": \"2\"}";
        fs::write(base.join("set/corpus.jsonl"), corpus).expect("a file");
        let set = Set::open(&base.join("set")).expect("opens");
        let (path, records) = stage(&set, &base.join("stage"), "s").expect("stages");
        assert_eq!((fs::read_to_string(&path).expect("reads").as_str(), records), (corpus, 2));
        assert_eq!(fs::metadata(&path).expect("exists").permissions().mode() & 0o777, 0o644);
        assert!(stage(&set, &base, "../s").is_err());
        fs::remove_dir_all(&base).expect("removes");
    }
}
