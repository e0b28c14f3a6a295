// SPDX-License-Identifier: PostgreSQL

//! The classic experiments, on every judged collection there is: which leg finds what, what fusion adds, and what its constants
//! are worth.
//!
//! Owns which collections are asked, which experiments are made, and where the numbers go. All numbers come from the database's
//! own functions (`rag.evaluate`, `rag.compare`, `rag.complementarity`, `rag.sweep`, `rag.tune`, `rag.diagnose`, `rag.forensics`),
//! so this shows what a user of them sees; what stands beside them are the reference baselines, which know nothing of us.
//!
//! ```text
//!  collections ─ import ─▶ question sets ─ measure ─▶ JSON ─ tables ─▶ pages, between their marks
//! ```
//!
//! What is written by people and what is written by this program share pages: [`page`] replaces only what stands between its
//! marks, so an analysis stays beside the table it is of.

mod measure;
pub mod page;
mod tables;

use crate::baseline::Baselines;
use crate::import::Import;
use crate::{corpus, db, import, output};
use postgres::Client;
use rag_core::{Error, Result};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// Judged collections in BEIR's layout, and the rows of the baselines that ours must come near: BM25, and reciprocal rank fusion of
/// it with the dense leg.
const OPEN: [(&str, &str, &str); 6] = [
    ("scifact", "bm25 stem", "rrf60 dense+bm25 stem"),
    ("cranfield", "bm25 stem", "rrf60 dense+bm25 stem"),
    ("cacm", "bm25 stem", "rrf60 dense+bm25 stem"),
    ("cisi", "bm25 stem", "rrf60 dense+bm25 stem"),
    ("cosqa", "bm25 code+stem", "rrf60 dense+bm25 code+stem"),
    ("qmsum", "bm25 stem", "rrf60 dense+bm25 stem"),
];

/// Corpora of the project's own.
const OWN: [&str; 3] = ["support", "workshop", "handbook"];

/// What is asked when there is little time.
const QUICK: [&str; 3] = ["cranfield", "support", "workshop"];

/// How far nDCG@10 may be from the baseline: the dense leg is the same computation; the BM25 leg has other stop words and
/// another tokenizer, and may be better, as may what it is fused into.
const TOLERANCE: (f64, f64) = (0.005, 0.015);

/// What to run.
#[derive(Debug, Clone, clap::Args)]
pub struct Experiments {
    /// Folder of the judged collections, with BASELINES.md; without it only the project's own corpora are asked
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// Folder of the project's own corpora
    #[arg(long)]
    pub corpora: PathBuf,
    /// Few collections, and only the experiments that take seconds
    #[arg(long)]
    pub quick: bool,
    /// Only these collections
    #[arg(long)]
    pub only: Vec<String>,
    /// Folder for content; the server must be allowed to read it (pg_rag.allowed_paths)
    #[arg(long, env = "RAG_EVAL_STAGE")]
    pub stage: PathBuf,
    /// Write all numbers to this JSON file
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Renew the tables of these Markdown pages
    #[arg(long)]
    pub page: Vec<PathBuf>,
    /// Make tables of the numbers that a file holds, and measure nothing
    #[arg(long)]
    pub from: Option<PathBuf>,
}

/// Runs all, writes what is asked for, and returns what is printed; an error if a baseline was missed.
pub fn run(connect: &dyn Fn() -> Result<Client>, request: &Experiments) -> Result<String> {
    let measured = match &request.from {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(&path.display().to_string(), &e))?;
            serde_json::from_str(&text).map_err(|e| Error::invalid(format!("\"{}\": {e}", path.display())))?
        }
        None => measured(&mut connect()?, request)?,
    };
    if let Some(path) = &request.out {
        output::write(path, &format!("{measured:#}\n"))?;
        // There is none when nothing was measured.
        let _ = std::fs::remove_file(path.with_extension("partial.json"));
    }
    let tables = tables::all(&measured);
    for path in &request.page {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(&path.display().to_string(), &e))?;
        output::write(path, &page::renewed(&text, &tables)?)?;
    }
    // A head and a line are no table.
    let some = tables.iter().filter(|(_, table)| !table.starts_with('|') || table.lines().count() > 2);
    let shown: Vec<String> = some.map(|(name, table)| format!("{name}\n\n{table}")).collect();
    let missed = tables::missed(&measured);
    match missed.is_empty() {
        true => Ok(shown.join("\n")),
        false => {
            print!("{}", shown.join("\n"));
            Err(Error::invalid(format!("outside of their tolerance: {}", missed.join(", "))))
        }
    }
}

fn measured(client: &mut Client, request: &Experiments) -> Result<Value> {
    let wanted = |name: &str| match request.only.is_empty() {
        true => !request.quick || QUICK.contains(&name),
        false => request.only.iter().any(|only| only == name),
    };
    let started = Instant::now();
    let environment: serde_json::Map<String, Value> =
        db::environment(client)?.into_iter().map(|(name, value)| (name, json!(value))).collect();
    let all = |sets: &[Value]| {
        let seconds = started.elapsed().as_secs_f64().round();
        json!({"environment": environment, "seconds": seconds, "sets": sets})
    };
    let mut sets = Vec::new();
    // What was measured is not lost by what fails later.
    let mut keep = |set: Value| -> Result<()> {
        sets.push(set);
        let path = request.out.as_ref().map(|path| path.with_extension("partial.json"));
        path.map_or(Ok(()), |path| output::write(&path, &format!("{:#}\n", all(&sets))))
    };
    if let Some(data) = &request.data {
        let baselines = Baselines::read(&data.join("BASELINES.md"))?;
        let mut wanted_sets = Vec::new();
        for (name, bm25, rrf) in OPEN.into_iter().filter(|(name, ..)| wanted(name)) {
            // What lacks is said before anything is measured.
            let value = |system: &str| baselines.value(name, system, "nDCG@10");
            let beside = json!([
                {"mode": "dense", "system": "dense", "value": value("dense")?, "tolerance": TOLERANCE.0, "may_be_better": false},
                {"mode": "bm25", "system": bm25, "value": value(bm25)?, "tolerance": TOLERANCE.1, "may_be_better": true},
                {"mode": "hybrid", "system": rrf, "value": value(rrf)?, "tolerance": TOLERANCE.1, "may_be_better": true},
            ]);
            wanted_sets.push((name, beside));
        }
        for (name, beside) in wanted_sets {
            eprintln!("{name} ({:.0} s)", started.elapsed().as_secs_f64());
            let before = Instant::now();
            open(client, request, &data.join(name), name)?;
            let took = before.elapsed().as_secs_f64();
            let mut set = measure::set(client, name, request.quick)?;
            set["import_seconds"] = json!(took);
            set["open"] = json!(true);
            set["baselines"] = beside;
            keep(set)?;
        }
    }
    for name in OWN.into_iter().filter(|name| wanted(name)) {
        eprintln!("{name} ({:.0} s)", started.elapsed().as_secs_f64());
        let folder = request.corpora.join(name);
        let before = Instant::now();
        corpus::import(client, &corpus::Corpus { folder, stage: request.stage.clone(), model: None })?;
        let took = before.elapsed().as_secs_f64();
        let mut set = measure::set(client, name, request.quick)?;
        set["import_seconds"] = json!(took);
        set["open"] = json!(false);
        keep(set)?;
    }
    Ok(all(&sets))
}

/// A judged collection as source, collection and question set of its name, by the model of the baselines.
fn open(client: &mut Client, request: &Experiments, folder: &std::path::Path, name: &str) -> Result<()> {
    let import = Import {
        beir_dir: folder.to_path_buf(),
        source: name.to_owned(),
        collection: name.to_owned(),
        model: Some("all-MiniLM-L6-v2".to_owned()),
        chunking: "none".to_owned(),
        truncate: true,
        stage: request.stage.clone(),
    };
    let failed = import::import(client, &import)?.failed;
    if failed > 0 {
        return Err(Error::invalid(format!("{failed} documents of \"{name}\" failed")));
    }
    let set = crate::beir::Set::open(folder)?;
    let (queries, qrels) = (set.text("queries.jsonl")?, set.text("qrels.tsv")?);
    corpus::question_set(client, name, name, None, &queries, Some(&qrels)).map(|_| ())
}
