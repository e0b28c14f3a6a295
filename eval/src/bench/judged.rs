// SPDX-License-Identifier: PostgreSQL

//! A judged collection for those who measure on real passages: imported once, with its questions, their vectors, and a copy
//! of its passages and vectors for a rival.
//!
//! The copy is the place where rag_eval reads vectors from an internal table: a second embedding of the corpus would take
//! minutes and give the same ones.

use super::{Bench, turns::Connect};
use crate::beir::{Qrels, Query, Set};
use crate::import::{self, Import};
use crate::{db, output};
use postgres::Client;
use rag_core::error::Kind;
use rag_core::{Error, Result};
use std::path::{Path, PathBuf};

const COPY: &str = include_str!("../../bench/copy.sql");
const DROP: &str = "DROP SCHEMA IF EXISTS rag_bench CASCADE";

/// A judged collection that the server holds.
#[derive(Debug)]
pub struct Judged {
    /// Its folder.
    pub set: Set,
    /// Name of the collection and of its source.
    pub collection: String,
    /// Its model.
    pub model: String,
    /// The folder of its model.
    pub model_path: String,
    /// The questions.
    pub queries: Vec<Query>,
    /// The same, their words only.
    pub texts: Vec<String>,
    /// The judgments of these questions.
    pub qrels: Qrels,
}

impl Judged {
    /// Imports what is not there yet.
    pub fn open(connect: Connect<'_>, request: &Bench, folder: &Path) -> Result<Self> {
        let set = Set::open(folder)?;
        let collection = format!("bench_{}", set.name());
        let mut client = connect()?;
        let failed = import::import(
            &mut client,
            &Import { beir_dir: folder.to_path_buf(), ..import_of(request, &collection)? },
        )?
        .failed;
        if failed > 0 {
            return Err(Error::invalid(format!("{failed} documents of \"{collection}\" failed")));
        }
        let (model, model_path) = model_of(&mut client, &collection)?;
        let mut qrels = set.qrels("qrels.tsv")?;
        let mut queries = set.judged_queries("queries.jsonl", &qrels)?;
        queries.truncate(request.queries.unwrap_or(usize::MAX));
        qrels.retain(|id, _| queries.iter().any(|query| query.id == *id));
        let texts = queries.iter().map(|query| query.text.clone()).collect();
        Ok(Self { set, collection, model, model_path, queries, texts, qrels })
    }

    /// The questions' vectors in pgvector's text form.
    pub fn vectors(&self, client: &mut Client) -> Result<Vec<String>> {
        let failed = |e: postgres::Error| db::sql("could not embed the questions", &e);
        let statement = client.prepare("SELECT rag.embed_query($1, $2)::text").map_err(failed)?;
        let vector = |text: &String| Ok(client.query_one(&statement, &[text, &self.model]).map_err(failed)?.get(0));
        self.texts.iter().map(vector).collect()
    }

    /// Does something while there is a copy of the passages, with their number, and removes it whatever comes of that.
    pub fn with_copy<T>(&self, client: &mut Client, work: impl FnOnce(&mut Client, i64) -> Result<T>) -> Result<T> {
        let done = copy(client, &self.collection).and_then(|passages| work(client, passages));
        let dropped = client.batch_execute(DROP).map_err(|e| db::sql("could not drop the copy", &e));
        done.and_then(|done| dropped.map(|()| done))
    }
}

/// How a judged collection, or the beginning of one, is imported; its folder is for the caller to say.
pub fn import_of(request: &Bench, name: &str) -> Result<Import> {
    let stage = request.stage.clone().ok_or_else(|| {
        Error::invalid("there is no folder for content")
            .with_hint("Set RAG_EVAL_STAGE to a folder beneath the server's pg_rag.allowed_paths.")
    })?;
    Ok(Import {
        beir_dir: PathBuf::new(),
        source: name.to_owned(),
        collection: name.to_owned(),
        model: Some(request.model.clone()),
        chunking: "none".to_owned(),
        truncate: true,
        stage,
    })
}

/// Name and folder of the collection's model.
fn model_of(client: &mut Client, collection: &str) -> Result<(String, String)> {
    let row = client
        .query_opt(
            "SELECT m.name, m.path FROM rag.collection c JOIN rag.model m ON m.id = c.model_id WHERE c.name = $1",
            &[&collection],
        )
        .map_err(|e| db::sql("could not read the collection", &e))?;
    let missing = || Error::new(Kind::NotFound, format!("collection \"{collection}\" does not exist"));
    row.map(|row| (row.get(0), row.get(1))).ok_or_else(missing)
}

/// Copies the collection's passages; returns how many.
fn copy(client: &mut Client, collection: &str) -> Result<i64> {
    let failed = |e: postgres::Error| db::sql("could not copy the passages", &e);
    // That there was nothing to drop is no news.
    client.batch_execute("SET client_min_messages = warning").map_err(failed)?;
    client.batch_execute(DROP).map_err(failed)?;
    client.batch_execute("CREATE SCHEMA rag_bench").map_err(failed)?;
    let dimensions: i32 = client
        .query_one(
            "SELECT m.dimensions FROM rag.collection c JOIN rag.model m ON m.id = c.model_id WHERE c.name = $1",
            &[&collection],
        )
        .map_err(failed)?
        .get(0);
    // A statement of several commands takes no parameters.
    let literal: String = client.query_one("SELECT quote_literal($1::text)", &[&collection]).map_err(failed)?.get(0);
    let sql = COPY.replace("{dimensions}", &dimensions.to_string()).replace("{collection}", &literal);
    client.batch_execute(&sql).map_err(failed)?;
    let count: i64 = client.query_one("SELECT count(*) FROM rag_bench.passage", &[]).map_err(failed)?.get(0);
    match count {
        0 => Err(Error::invalid(format!("collection \"{collection}\" has no embedded chunk"))),
        _ => Ok(count),
    }
}

/// Writes the first records of a corpus as a collection of their own; returns the texts, each as it is embedded: the title, and
/// the text below it.
pub fn beginning(set: &Set, folder: &Path, records: usize) -> Result<Vec<String>> {
    use serde_json::Value;
    use std::io::BufRead;
    std::fs::create_dir_all(folder).map_err(|e| Error::io(&folder.display().to_string(), &e))?;
    let (mut lines, mut texts) = (String::new(), Vec::new());
    for line in set.corpus()?.lines() {
        let line = line.map_err(|e| Error::io("corpus", &e))?;
        if line.trim().is_empty() {
            continue;
        }
        if texts.len() == records {
            break;
        }
        let record: Value = serde_json::from_str(&line).map_err(|e| Error::invalid(format!("corpus: {e}")))?;
        let field = |name: &str| record[name].as_str().unwrap_or_default();
        texts.push(format!("{}\n{}", field("title"), field("text")).trim().to_owned());
        lines.push_str(&line);
        lines.push('\n');
    }
    output::write(&folder.join("corpus.jsonl"), &lines)?;
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_a_hole_for_each_thing_it_is_told() {
        for hole in ["{dimensions}", "{collection}"] {
            assert!(COPY.contains(hole), "{hole}");
        }
    }

    #[test]
    fn the_beginning_of_a_corpus_is_a_corpus() {
        let base = std::env::temp_dir().join(format!("rag_eval_beginning_{}", std::process::id()));
        std::fs::create_dir_all(&base).expect("a folder");
        let line = |n: u32| format!("{{\"_id\": \"{n}\", \"title\": \"T{n}\", \"text\": \"x\"}}");
        std::fs::write(base.join("corpus.jsonl"), format!("{}\n\n{}\n{}\n", line(1), line(2), line(3)))
            .expect("a file");
        let texts = beginning(&Set::open(&base).expect("opens"), &base.join("part"), 2).expect("writes");
        assert_eq!(texts, ["T1\nx", "T2\nx"]);
        let written = std::fs::read_to_string(base.join("part/corpus.jsonl")).expect("reads");
        assert_eq!(written, format!("{}\n{}\n", line(1), line(2)));
        std::fs::remove_dir_all(&base).expect("removes");
    }
}
