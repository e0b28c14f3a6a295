// SPDX-License-Identifier: PostgreSQL

//! A corpus of one's own becomes sources and a question set.
//!
//! A corpus is a folder with `manifest.json` (a collection, its sources with paths beneath the folder, and the file of its
//! questions), the content, and that file. Owns the staging of the content where the server may read it; what the server does
//! with it is `rag.sync`'s and `rag.import_questions`'. Files that are made by a program of the corpus must be there already.

use crate::db;
use postgres::Client;
use rag_core::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Which corpus, and how it is stored.
#[derive(Debug, Clone, clap::Args)]
pub struct Corpus {
    /// Folder with manifest.json
    pub folder: PathBuf,
    /// Folder for its content; the server must be allowed to read it (pg_rag.allowed_paths)
    #[arg(long, env = "RAG_EVAL_STAGE")]
    pub stage: PathBuf,
    /// Model of the collection, if it is new; default: the server's
    #[arg(long)]
    pub model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    collection: String,
    description: String,
    sources: Vec<Source>,
    questions: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    name: String,
    kind: String,
    path: String,
    #[serde(default = "full")]
    authority: f64,
    #[serde(default)]
    options: Map<String, Value>,
    /// Program of the corpus that makes what lies at the path.
    build: Option<String>,
}

fn full() -> f64 {
    1.0
}

/// Makes the sources, syncs them, and imports the questions; returns the name of the question set and their number.
pub fn import(client: &mut Client, request: &Corpus) -> Result<(String, i64)> {
    let io = |path: &Path| {
        let what = path.display().to_string();
        move |e: std::io::Error| Error::io(&what, &e)
    };
    let path = request.folder.join("manifest.json");
    let manifest = fs::read_to_string(&path).map_err(io(&path))?;
    let manifest: Manifest =
        serde_json::from_str(&manifest).map_err(|e| Error::invalid(format!("\"{}\": {e}", path.display())))?;
    let name = &manifest.collection;
    let stage = request.stage.canonicalize().map_err(io(&request.stage))?.join(name);
    crate::import::create_collection(client, name, request.model.as_deref())?;
    for source in &manifest.sources {
        let place = stage.join(&source.path);
        let made = request.folder.join(&source.path);
        if let Some(program) = source.build.as_ref().filter(|_| !made.exists()) {
            let (program, made) = (request.folder.join(program), made.display());
            return Err(Error::new(Kind::FileMissing, format!("\"{made}\" was not made yet"))
                .with_hint(format!("{} {made}", program.display())));
        }
        copy(&made, &place)?;
        let added = client.execute(
            "SELECT rag.add_source($1, $2, $3, $4, collection => $5, authority => $6)",
            &[
                &source.name,
                &source.kind,
                &place.to_string_lossy().into_owned(),
                &Value::Object(source.options.clone()),
                name,
                &source.authority,
            ],
        );
        if let Err(error) = added
            && !db::is_duplicate(&error)
        {
            return Err(db::sql(&format!("could not add source \"{}\"", source.name), &error));
        }
        let what = format!("could not sync \"{}\"", source.name);
        client.execute("CALL rag.sync($1)", &[&source.name]).map_err(|e| db::sql(&what, &e))?;
        let failed = client
            .query_one("SELECT failed::int8, error FROM rag.status WHERE source = $1", &[&source.name])
            .map_err(|e| db::sql("could not read rag.status", &e))?;
        if failed.get::<_, i64>(0) > 0 {
            return Err(Error::invalid(format!("documents of source \"{}\" failed", source.name)));
        }
    }
    let path = request.folder.join(&manifest.questions);
    let questions = fs::read_to_string(&path).map_err(io(&path))?;
    let count = question_set(client, name, name, Some(&manifest.description), &questions, None)?;
    Ok((name.clone(), count))
}

/// Makes a question set have these questions: objects with their gold or, with qrels, BEIR's queries.
pub fn question_set(
    client: &mut Client,
    set: &str,
    collection: &str,
    description: Option<&str>,
    questions: &str,
    qrels: Option<&str>,
) -> Result<i64> {
    let made = client.execute("SELECT rag.create_question_set($1, $2, $3)", &[&set, &collection, &description]);
    if let Err(error) = made
        && !db::is_duplicate(&error)
    {
        return Err(db::sql("could not create the question set", &error));
    }
    let row = client.query_one("SELECT rag.import_questions($1, $2, $3)", &[&set, &questions, &qrels]);
    row.map(|row| row.get(0)).map_err(|e| db::sql("could not import the questions", &e))
}

/// Copies a file or a folder with what is in it, readable for everybody.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let io = |path: &Path| {
        let what = path.display().to_string();
        move |e: std::io::Error| Error::io(&what, &e)
    };
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(io(path));
    if from.is_dir() {
        fs::create_dir_all(to).map_err(io(to))?;
        set(to, 0o755)?;
        for entry in fs::read_dir(from).map_err(io(from))? {
            let entry = entry.map_err(io(from))?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(io(parent))?;
        set(parent, 0o755)?;
    }
    fs::copy(from, to).map_err(io(from))?;
    set(to, 0o644)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::evaluation::question::from_json;

    /// The project's own corpora are what they should be, without a server.
    #[test]
    fn our_corpora_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
        let mut seen = 0;
        for entry in fs::read_dir(&folder).expect("corpora") {
            let folder = entry.expect("a corpus").path();
            let text = fs::read_to_string(folder.join("manifest.json")).expect("a manifest");
            let manifest: Manifest = serde_json::from_str(&text).expect("a manifest");
            for source in &manifest.sources {
                assert!(folder.join(&source.path).exists() || source.build.is_some(), "{}", source.name);
                assert!(source.authority > 0.0 && source.authority <= 1.0, "{}", source.name);
            }
            let questions = fs::read_to_string(folder.join(&manifest.questions)).expect("questions");
            let questions = from_json(&questions).unwrap_or_else(|e| panic!("{}: {e}", manifest.collection));
            let known: Vec<&str> = manifest.sources.iter().map(|s| s.name.as_str()).collect();
            for gold in questions.iter().flat_map(|q| &q.gold) {
                assert!(gold.source.as_deref().is_some_and(|s| known.contains(&s)), "{}", gold.shown());
            }
            assert!(questions.iter().filter(|q| !q.answerable).count() >= 5, "{}", manifest.collection);
            seen += 1;
        }
        assert!(seen >= 3);
    }
}
