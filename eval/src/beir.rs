// SPDX-License-Identifier: PostgreSQL

//! Judged collections in BEIR's layout.
//!
//! Owns the reading of `corpus.jsonl` or `corpus.jsonl.gz`, `queries.jsonl` and `qrels.tsv`; nothing is repaired: a
//! line that cannot be read is an error that names it, because a silently dropped judgment changes every number.

use flate2::read::MultiGzDecoder;
use rag_core::metrics::Grades;
use rag_core::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Judgments by query.
pub type Qrels = BTreeMap<String, Grades<String>>;

/// One question of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Query {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: String,
    /// Its words.
    pub text: String,
}

/// A folder in BEIR's layout.
#[derive(Debug, Clone)]
pub struct Set {
    dir: PathBuf,
}

impl Set {
    /// Opens a folder; fails when it is none.
    pub fn open(dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            return Err(Error::new(
                rag_core::error::Kind::FileMissing,
                format!("\"{}\" is not a folder", dir.display()),
            ));
        }
        Ok(Self { dir: dir.to_owned() })
    }

    /// The name of the folder.
    pub fn name(&self) -> String {
        self.dir.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    }

    /// The corpus as lines of JSON, unpacked if need be.
    pub fn corpus(&self) -> Result<Box<dyn BufRead>> {
        let plain = self.dir.join("corpus.jsonl");
        if plain.exists() {
            return Ok(Box::new(open(&plain)?));
        }
        let packed = open(&self.dir.join("corpus.jsonl.gz"))?;
        Ok(Box::new(BufReader::new(MultiGzDecoder::new(packed))))
    }

    /// The text of a file of the folder.
    pub fn text(&self, file: &str) -> Result<String> {
        read(&self.dir.join(file))
    }

    /// The judgments in `file` of the folder (usually `qrels.tsv`): a header, then query, document and grade.
    pub fn qrels(&self, file: &str) -> Result<Qrels> {
        parse_qrels(&read(&self.dir.join(file))?, file)
    }

    /// The queries in `file` (usually `queries.jsonl`) that `qrels` judges, in the order of the file.
    ///
    /// A judged query without a text would score 0 for a reason nobody sees, so it is an error.
    pub fn judged_queries(&self, file: &str, qrels: &Qrels) -> Result<Vec<Query>> {
        let all = parse_queries(&read(&self.dir.join(file))?, file)?;
        let judged: Vec<Query> = all.into_iter().filter(|q| qrels.contains_key(&q.id)).collect();
        let known: std::collections::BTreeSet<&str> = judged.iter().map(|q| q.id.as_str()).collect();
        if let Some(missing) = qrels.keys().find(|id| !known.contains(id.as_str())) {
            return Err(Error::invalid(format!("query \"{missing}\" is judged but not in {file}")));
        }
        if known.len() < judged.len() {
            return Err(Error::invalid(format!("an id comes twice in {file}")));
        }
        Ok(judged)
    }
}

fn open(path: &Path) -> Result<BufReader<File>> {
    File::open(path).map(BufReader::new).map_err(|e| Error::io(&path.display().to_string(), &e))
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text).map_err(|e| Error::io(&path.display().to_string(), &e))?;
    Ok(text)
}

fn parse_queries(text: &str, file: &str) -> Result<Vec<Query>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let query = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| Error::invalid(format!("{file} line {}: {e}", at + 1)))
    };
    lines.map(query).collect()
}

fn parse_qrels(text: &str, file: &str) -> Result<Qrels> {
    let mut qrels = Qrels::new();
    for (at, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let bad = || Error::invalid(format!("{file} line {}: not query, document and grade: \"{line}\"", at + 1));
        let [query, document, grade] = line.split('\t').collect::<Vec<_>>()[..] else { return Err(bad()) };
        let grade: i32 = grade.trim().parse().map_err(|_| bad())?;
        if qrels.entry(query.to_owned()).or_default().insert(document.to_owned(), grade).is_some() {
            return Err(Error::invalid(format!("{file} line {}: the pair is judged twice: \"{line}\"", at + 1)));
        }
    }
    if qrels.is_empty() {
        return Err(Error::invalid(format!("{file} holds no judgment")));
    }
    Ok(qrels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const QRELS: &str = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td9\t2\n";

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
            let dir = std::env::temp_dir().join(format!("rag_eval_{name}_{}", std::process::id()));
            std::fs::create_dir_all(&dir).expect("a folder");
            for (file, bytes) in files {
                std::fs::write(dir.join(file), bytes).expect("a file");
            }
            Self(dir)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn a_packed_corpus_is_unpacked() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(b"{\"_id\":\"d1\"}\n").expect("packs");
        let folder = Folder::new("packed", &[("corpus.jsonl.gz", &gz.finish().expect("packs"))]);
        let mut line = String::new();
        let set = Set::open(&folder.0).expect("opens");
        set.corpus().expect("opens").read_line(&mut line).expect("reads");
        assert_eq!(line, "{\"_id\":\"d1\"}\n");
    }

    #[test]
    fn only_judged_queries_remain() {
        let queries = b"{\"_id\":\"q0\",\"text\":\"?\"}\n{\"_id\":\"q2\",\"text\":\"two\"}\n{\"_id\":\"q1\",\"text\":\"one\",\"metadata\":{}}\n";
        let folder = Folder::new("judged", &[("queries.jsonl", queries), ("qrels.tsv", QRELS.as_bytes())]);
        let set = Set::open(&folder.0).expect("opens");
        let qrels = set.qrels("qrels.tsv").expect("reads");
        let ids: Vec<String> =
            set.judged_queries("queries.jsonl", &qrels).expect("reads").into_iter().map(|q| q.id).collect();
        assert_eq!(ids, ["q2", "q1"]);
        assert_eq!(qrels["q1"], Grades::from([("d1".to_owned(), 1), ("d2".to_owned(), 0)]));
    }

    #[test]
    fn what_would_change_a_number_silently_is_an_error() {
        let message = |text: &str| parse_qrels(text, "qrels.tsv").expect_err(text).message;
        assert_eq!(message("h\nq1 d1 1\n"), "qrels.tsv line 2: not query, document and grade: \"q1 d1 1\"");
        assert_eq!(message("h\nq\td\t1\nq\td\t0\n"), "qrels.tsv line 3: the pair is judged twice: \"q\td\t0\"");
        assert_eq!(message("header only\n"), "qrels.tsv holds no judgment");
        let folder = Folder::new("missing", &[("queries.jsonl", b"{\"_id\":\"q1\",\"text\":\"one\"}\n")]);
        let set = Set::open(&folder.0).expect("opens");
        let qrels = parse_qrels(QRELS, "qrels.tsv").expect("reads");
        let error = set.judged_queries("queries.jsonl", &qrels).expect_err("q2 has no text");
        assert_eq!(error.message, "query \"q2\" is judged but not in queries.jsonl");
    }
}
