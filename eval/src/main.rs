// SPDX-License-Identifier: PostgreSQL

//! The command line of rag_eval: arguments in, text and an exit status out. Everything else is in the library.

use clap::{Parser, Subcommand};
use rag_eval::beir::Set;
use rag_eval::compare::{self, Compare};
use rag_eval::corpus::{self, Corpus};
use rag_eval::import::{Import, import};
use rag_eval::output::{self, Expectation};
use rag_eval::run::{Judged, Retrieval, run};
use rag_eval::{Error, Result, bench, db, experiments};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measures retrieval of a pg_rag server on judged collections.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Connection string; default: PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE
    #[arg(long, global = true)]
    dsn: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes a source of a judged corpus and syncs it, and a question set of its name
    Import(Import),
    /// Makes sources and a question set of a folder with manifest.json
    Corpus(Corpus),
    /// Runs the judged queries and prints the metrics
    Run(RunArgs),
    /// Imports a set and compares it with the reference baselines
    Compare(Compare),
    /// Makes the classic experiments on all collections and renews the pages with their tables
    Experiments(experiments::Experiments),
    /// Measures speed, memory and growth, against floors and rivals
    Bench(bench::Bench),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    #[command(flatten)]
    judged: Judged,
    #[command(flatten)]
    retrieval: Retrieval,
    /// Write every query's results and metrics as JSON
    #[arg(long)]
    out: Option<PathBuf>,
    /// Write a run file for trec_eval
    #[arg(long)]
    trec: Option<PathBuf>,
    /// Fail when nDCG@10 is below
    #[arg(long)]
    min_ndcg: Option<f64>,
    /// Fail when nDCG@10 is not within, for instance 0.6478±0.005
    #[arg(long)]
    expect: Option<Expectation>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::Import(request) => db::connect(cli.dsn.as_deref()).and_then(|mut c| {
            none_failed(import(&mut c, request)?.failed)?;
            let set = Set::open(&request.beir_dir)?;
            let (queries, qrels) = (set.text("queries.jsonl")?, set.text("qrels.tsv")?);
            let (name, collection) = (&request.source, &request.collection);
            let count = corpus::question_set(&mut c, name, collection, None, &queries, Some(&qrels))?;
            println!("question set \"{name}\": {count} questions");
            Ok(())
        }),
        Command::Corpus(request) => db::connect(cli.dsn.as_deref())
            .and_then(|mut c| corpus::import(&mut c, request))
            .map(|(set, questions)| println!("question set \"{set}\": {questions} questions")),
        Command::Run(args) => run_command(cli.dsn.as_deref(), args),
        Command::Compare(request) => compare_command(cli.dsn.as_deref(), request),
        Command::Experiments(request) => {
            experiments::run(&|| db::connect(cli.dsn.as_deref()), request).map(|tables| print!("{tables}"))
        }
        Command::Bench(request) => bench::run(cli.dsn.as_deref(), request).map(|text| print!("{text}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(detail) = &error.detail {
                eprintln!("detail: {detail}");
            }
            if let Some(hint) = &error.hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

fn none_failed(failed: i64) -> Result<()> {
    if failed == 0 { Ok(()) } else { Err(Error::invalid(format!("{failed} documents failed"))) }
}

fn run_command(dsn: Option<&str>, args: &RunArgs) -> Result<()> {
    let mut client = db::connect(dsn)?;
    let report = run(&mut client, &args.judged, &args.retrieval)?;
    print!("{}", output::summary(&report));
    if let Some(path) = &args.out {
        let json = output::as_json(&report, &args.retrieval, &db::environment(&mut client)?);
        output::write(path, &format!("{json:#}\n"))?;
    }
    if let Some(path) = &args.trec {
        output::write(path, &output::as_trec(&report, "pg_rag"))?;
    }
    let ndcg = report.ndcg10();
    if let Some(min) = args.min_ndcg.filter(|min| ndcg < *min) {
        return Err(Error::invalid(format!("nDCG@10 {ndcg:.4} is below {min}")));
    }
    if let Some(expected) = args.expect.filter(|expected| !expected.holds(ndcg)) {
        let Expectation { value, tolerance } = expected;
        return Err(Error::invalid(format!("nDCG@10 {ndcg:.4} is not within {value} ± {tolerance}")));
    }
    Ok(())
}

fn compare_command(dsn: Option<&str>, request: &Compare) -> Result<()> {
    let mut client = db::connect(dsn)?;
    let (mut outcomes, mut syncs) = (Vec::new(), Vec::new());
    let models = std::iter::once((&request.model, true)).chain(request.also.iter().map(|m| (m, false)));
    for (model, required) in models {
        let (imported, of) = compare::compare_model(&mut client, request, model, required)?;
        none_failed(imported.failed)?;
        let seconds = imported.sync.as_secs_f64();
        syncs.push(format!(
            "Sync with {model}: {} records in {seconds:.0} s ({:.0}/s).",
            imported.records,
            imported.records as f64 / seconds
        ));
        outcomes.extend(of);
    }
    let table = compare::table(&outcomes);
    let set = Set::open(&request.beir_dir)?.name();
    println!("{table}\n{}\n\n{}", syncs.join("\n"), compare::tap(&set, &outcomes));
    if let Some(path) = &request.out {
        let facts = db::environment(&mut client)?;
        output::write(path, &compare::page(&set, "make eval", &facts, &syncs, &table))?;
    }
    match outcomes.iter().filter(|o| o.required && !o.holds()).count() {
        0 => Ok(()),
        failed => Err(Error::invalid(format!("{failed} of {} numbers are outside of their tolerance", outcomes.len()))),
    }
}
