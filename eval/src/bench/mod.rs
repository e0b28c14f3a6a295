// SPDX-License-Identifier: PostgreSQL

//! What pg_rag costs: time, memory and growth, as ratios measured in one run.
//!
//! Owns which figures there are, what each is measured on, and how it is made again. Whoever measures returns a
//! [`Figure`](figure::Figure), which is data; [`figure`] makes the pages and the JSON of all of them.
//!
//! | figure | question | measured on |
//! |---|---|---|
//! | [`embed`] | what does SQL add to the embedding of a query? | a judged collection |
//! | [`priority`] | what does an ingestion cost a query? | the same |
//! | [`dense`] | what does the dense leg cost against pgvector by hand? | the same |
//! | [`hybrid`] | what does `rag.search` cost against a hybrid search by hand? | the same |
//! | [`ingest`] | where does the time of a sync go? | its beginning |
//! | [`memory`] | what do the processes hold, against their limits? | the same, and invented passages in a database of their own |
//! | [`lexical::rival`] | what does the BM25 leg cost against GIN and `ts_rank`? | a large judged collection without vectors, in a database of its own |
//! | [`lexical::growth`] | how does its index grow? | invented passages, in a database of their own |
//! | [`lexical::rights`] | what do labels, policies and filters cost it? | the same |
//! | [`concurrency`] | do writers and searchers hinder each other? | the same |

pub mod concurrency;
pub mod database;
pub mod dense;
pub mod embed;
pub mod figure;
pub mod hybrid;
pub mod ingest;
pub mod judged;
pub mod lexical;
pub mod memory;
pub mod peer;
pub mod priority;
pub mod processes;
pub mod turns;

use crate::db;
use clap::ValueEnum;
use figure::Figure;
use judged::Judged;
use rag_core::{Error, Result};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use turns::Connect;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// The embedding of a query, against its floors
    Embed,
    /// A query beside an ingestion
    Priority,
    /// The BM25 leg against full text search by hand
    Lexical,
    /// The dense leg against pgvector by hand
    Dense,
    /// rag.search against a hybrid search by hand
    Hybrid,
    /// A sync and its parts
    Ingest,
    /// Writers and searchers at once
    Concurrency,
    /// Memory of the processes
    Memory,
    /// The BM25 leg under labels, policies and filters
    Rights,
    /// The BM25 index as it grows; takes a quarter of an hour for a million chunks
    Growth,
    /// All but growth
    All,
}

/// What `all` is.
const ALL: [Name; 9] = [
    Name::Embed,
    Name::Priority,
    Name::Dense,
    Name::Hybrid,
    Name::Ingest,
    Name::Memory,
    Name::Lexical,
    Name::Rights,
    Name::Concurrency,
];

/// What to measure, and on how much.
#[derive(Debug, Clone, clap::Args)]
pub struct Bench {
    /// What to measure
    #[arg(value_enum, default_values_t = [Name::All])]
    pub figures: Vec<Name>,
    /// Folder of the judged collections; what needs one is left out without it
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// Judged collection; default: qmsum for lexical, else scifact
    #[arg(long)]
    pub set: Option<String>,
    /// Model of the judged collection
    #[arg(long, env = "RAG_BENCH_MODEL", default_value = MODEL)]
    pub model: String,
    /// Folder for content; the server must be allowed to read it (pg_rag.allowed_paths)
    #[arg(long, env = "RAG_EVAL_STAGE")]
    pub stage: Option<PathBuf>,
    /// Rounds over all queries
    #[arg(long, default_value_t = ROUNDS)]
    pub rounds: usize,
    /// Queries; default: all of a judged collection; invented ones: 500 for growth, 200 for rights, 1000 for memory
    #[arg(long)]
    pub queries: Option<usize>,
    /// Numbers of invented chunks; default: 100000, and 1000000 besides for growth; others take the first
    #[arg(long, num_args = 1.., value_delimiter = ',')]
    pub chunks: Vec<u64>,
    /// Records of the sync that is measured
    #[arg(long, default_value_t = RECORDS)]
    pub records: usize,
    /// Length of a concurrent load, once with merging and once without
    #[arg(long, default_value_t = SECONDS)]
    pub seconds: u64,
    /// Command that restarts the server, for what is measured after a restart
    #[arg(long)]
    pub restart: Option<String>,
    /// Socket of the engine; default: where the server's data folder has it
    #[arg(long)]
    pub engine_socket: Option<PathBuf>,
    /// Print JSON instead of Markdown
    #[arg(long)]
    pub json: bool,
    /// Renew the figures in the pages and the JSON of this folder
    #[arg(long)]
    pub results: Option<PathBuf>,
    /// Take the figures that an earlier run printed as JSON, and measure nothing; - is standard input
    #[arg(long)]
    pub from: Option<PathBuf>,
}

const MODEL: &str = "all-MiniLM-L6-v2";
const ROUNDS: usize = 3;
const RECORDS: usize = 500;
const SECONDS: u64 = 60;
const CHUNKS: u64 = 100_000;

impl Bench {
    /// Number of invented chunks for a figure that is measured on one.
    pub fn size(&self) -> u64 {
        self.chunks.first().copied().unwrap_or(CHUNKS)
    }

    /// How a figure is made again: its name, and of the options that it heeds those that are not the default.
    fn command(&self, name: Name) -> String {
        let heeded: &[&str] = match name {
            Name::Lexical => &["set", "rounds", "queries"],
            Name::Growth | Name::Rights => &["queries", "chunks"],
            Name::Concurrency => &["seconds"],
            Name::Ingest => &["set", "model", "records"],
            Name::Memory => &["set", "model", "queries", "chunks"],
            _ => &["set", "model", "rounds", "queries"],
        };
        let other = |value: u64, default: u64| (value != default).then(|| value.to_string());
        let chunks: Vec<String> = self.chunks.iter().map(u64::to_string).collect();
        let options = [
            ("set", self.set.clone()),
            ("model", (self.model != MODEL).then(|| self.model.clone())),
            ("rounds", other(self.rounds as u64, ROUNDS as u64)),
            ("queries", self.queries.map(|queries| queries.to_string())),
            ("chunks", (!chunks.is_empty()).then(|| chunks.join(","))),
            ("records", other(self.records as u64, RECORDS as u64)),
            ("seconds", other(self.seconds, SECONDS)),
        ];
        let said = options.into_iter().filter(|(option, _)| heeded.contains(option));
        let said = said.filter_map(|(option, value)| Some(format!(" --{option} {}", value?)));
        format!("eval/bench/run.sh {}{}", word(name), said.collect::<String>())
    }
}

/// The name of a figure on the command line.
fn word(name: Name) -> String {
    name.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Measures what is asked for, renews the results, and returns what is printed. A figure that fails does not cost the others:
/// it is an error in the end.
pub fn run(dsn: Option<&str>, request: &Bench) -> Result<String> {
    let (figures, failed) = match &request.from {
        Some(path) => (figure::from_json(&given(path)?)?, Vec::new()),
        None => measured(dsn, request)?,
    };
    let text = match request.json {
        true => figure::as_json(&figures)?,
        false => figures.iter().map(|f| figure::markdown(f, 2)).collect::<Result<Vec<_>>>()?.join("\n"),
    };
    if let Some(folder) = &request.results {
        figure::renew(folder, figures)?;
    }
    match failed.is_empty() {
        true => Ok(text),
        false => {
            print!("{text}");
            Err(Error::invalid(format!("not measured: {}", failed.join("; "))))
        }
    }
}

fn given(path: &Path) -> Result<String> {
    let mut text = String::new();
    match path == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(|_| text),
        false => std::fs::read_to_string(path),
    }
    .map_err(|e| Error::io(&path.display().to_string(), &e))
}

fn measured(dsn: Option<&str>, request: &Bench) -> Result<(Vec<Figure>, Vec<String>)> {
    let connect: Connect<'_> = &|| db::connect(dsn);
    let environment: BTreeMap<String, String> = db::environment(&mut connect()?)?.into_iter().collect();
    let all = request.figures.contains(&Name::All);
    let (mut figures, mut failed, mut judged) = (Vec::new(), Vec::new(), None);
    for name in if all { &ALL[..] } else { &request.figures[..] } {
        let word = word(*name);
        let started = std::time::Instant::now();
        match one(dsn, connect, request, *name, &mut judged) {
            Ok(Some(figure)) => {
                eprintln!("{word}: {:.0} s", started.elapsed().as_secs_f64());
                let (command, environment) = (request.command(*name), environment.clone());
                figures.push(Figure { name: word, command, environment, ..figure });
            }
            Ok(None) => eprintln!("{word}: skipped, there is no judged collection"),
            Err(error) => failed.push(format!("{word}: {error}")),
        }
    }
    Ok((figures, failed))
}

fn one(
    dsn: Option<&str>,
    connect: Connect<'_>,
    request: &Bench,
    name: Name,
    judged: &mut Option<Judged>,
) -> Result<Option<Figure>> {
    let folder = |default: &str| {
        let set = request.set.as_deref().unwrap_or(default);
        request.data.as_ref().map(|data| data.join(set)).filter(|folder| folder.is_dir())
    };
    let measured = match name {
        Name::Growth => database::with_own(dsn, |own| lexical::growth::measure(own, request)),
        Name::Rights => database::with_own(dsn, |own| lexical::rights::measure(own, request)),
        Name::Concurrency => concurrency::measure(dsn, request),
        Name::Lexical => match folder("qmsum") {
            Some(folder) => database::with_own(dsn, |own| lexical::rival::measure(own, request, &folder)),
            None => return Ok(None),
        },
        _ => {
            let Some(folder) = folder("scifact") else { return Ok(None) };
            let judged = match judged {
                Some(judged) => judged,
                None => judged.insert(Judged::open(connect, request, &folder)?),
            };
            match name {
                Name::Embed => embed::measure(connect, request, judged),
                Name::Priority => priority::measure(connect, request, judged),
                Name::Dense => dense::measure(connect, request, judged),
                Name::Hybrid => hybrid::measure(connect, request, judged),
                Name::Ingest => ingest::measure(connect, request, judged),
                _ => memory::measure(dsn, request, judged),
            }
        }
    };
    measured.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bench: Bench,
    }

    fn parsed(line: &str) -> Bench {
        Program::try_parse_from(line.split(' ')).expect(line).bench
    }

    #[test]
    fn a_figure_says_how_it_is_made_again() {
        let bench = parsed("run growth --chunks 5000000 --data /d --stage /s");
        assert_eq!((bench.figures.as_slice(), bench.size()), (&[Name::Growth][..], 5_000_000));
        assert_eq!(bench.command(Name::Growth), "eval/bench/run.sh growth --chunks 5000000");
        let bench = parsed("run concurrency rights --seconds 300 --chunks 10 20");
        assert_eq!(bench.command(Name::Rights), "eval/bench/run.sh rights --chunks 10,20");
        assert_eq!(bench.command(Name::Concurrency), "eval/bench/run.sh concurrency --seconds 300");
        assert_eq!(parsed(&bench.command(Name::Rights)).chunks, [10, 20], "and is understood");
    }

    #[test]
    fn without_a_name_all_are_measured_that_need_no_special_length() {
        assert_eq!(parsed("run").figures, [Name::All]);
        let missing: Vec<&Name> = Name::value_variants().iter().filter(|name| !ALL.contains(name)).collect();
        assert_eq!(missing, [&Name::Growth, &Name::All]);
    }
}
