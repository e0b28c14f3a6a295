// SPDX-License-Identifier: PostgreSQL

//! pg_rag_engine: models and parsers, outside of PostgreSQL.
//!
//! A crash of a native library or a hostile document ends this process or one of its children, never a server process.
//! `serve` is what the extension's supervisor starts; the other commands show one stage each on the command line.
//!
//! Owns the command line only.

mod commands;
mod connection;
mod exchange;
#[cfg(debug_assertions)]
mod faults;
mod frame;
mod inference;
mod models;
mod os;
mod pulse;
mod queue;
mod sandbox;
mod serve;
mod starter;
mod task;
mod worker;
mod workers;
mod workspaces;

use clap::{Args, Parser, Subcommand};
use rag_core::{Error, Result};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Parser)]
#[command(name = "pg_rag_engine", version, about = "Models and parsers of pg_rag, outside of PostgreSQL")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Where models and their runtime are.
#[derive(Debug, Args)]
pub(crate) struct Places {
    /// Folder with one subfolder per model
    #[arg(long, value_name = "DIR", env = "PG_RAG_MODELS", default_value_os_t = beside("models"))]
    pub(crate) models: PathBuf,
    /// Library of ONNX Runtime (1.22 or later)
    #[arg(long, value_name = "FILE", env = "ORT_DYLIB_PATH", default_value_os_t = beside("libonnxruntime.so"))]
    pub(crate) onnxruntime: PathBuf,
}

/// What lies beside this program, where `make install` put it; else the bare name.
fn beside(name: &str) -> PathBuf {
    let installed = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    installed.filter(|path| path.exists()).unwrap_or_else(|| name.into())
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the extension on a Unix socket; ends when standard input ends
    Serve {
        /// Inherited listening socket
        #[arg(long, value_name = "N", required_unless_present = "socket")]
        listen_fd: Option<i32>,
        /// Make the socket here instead, to try the engine without a server
        #[arg(long, value_name = "PATH", conflicts_with = "listen_fd")]
        socket: Option<PathBuf>,
        /// Folder for clones of repositories, emptied at the start; none are made without it
        #[arg(long, value_name = "DIR")]
        workspaces: Option<PathBuf>,
        #[command(flatten)]
        places: Places,
        /// Threads of each model session
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
        threads: u32,
        /// Documents parsed at once, each in a process of its own
        #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
        parse_workers: u32,
        /// Address space of a worker in MB; 0 for no limit
        #[arg(long, value_name = "MB", default_value_t = 4096)]
        parse_memory: u64,
        /// Disk space of all clones together in MB
        #[arg(long, value_name = "MB", default_value_t = 8192, value_parser = clap::value_parser!(u64).range(..=1 << 20))]
        clone_disk: u64,
        /// End when idle with more resident memory than this, in MB, so as to be started afresh; 0 for no limit
        #[arg(long, value_name = "MB", default_value_t = 0)]
        memory_limit: u64,
        /// End when one micro-batch of inference runs longer than this, so as to be started afresh
        #[arg(long, value_name = "SECONDS", default_value_t = inference::LONGEST_BATCH, value_parser = clap::value_parser!(u64).range(1..))]
        max_batch_seconds: u64,
    },
    /// Parse a file, or all files of a folder, and print each document without its chunks as a JSON line
    Parse(commands::Reading),
    /// Parse and chunk a file, or all files of a folder, and print each chunk as a JSON line
    Chunk(commands::Reading),
    /// Embed texts and print a JSON line for each
    Embed {
        #[command(flatten)]
        places: Places,
        /// Folder of the model, beneath the model folder or absolute
        #[arg(long, value_name = "NAME", default_value = commands::DEFAULT_MODEL)]
        model: String,
        /// Use the model's query prefix instead of its passage prefix
        #[arg(long)]
        query: bool,
        /// Texts
        #[arg(required = true, value_name = "TEXT")]
        texts: Vec<String>,
    },
    /// Describe the models of the model folder, a JSON line for each
    Models {
        #[command(flatten)]
        places: Places,
    },
    /// Read or parse for `serve`, over standard input and output
    #[command(hide = true)]
    Worker(worker::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Serve {
            listen_fd,
            socket,
            workspaces,
            places,
            threads,
            parse_workers,
            parse_memory,
            clone_disk,
            memory_limit,
            max_batch_seconds,
        } => {
            let listener = match (listen_fd, socket) {
                (Some(fd), _) => os::take_listener(fd)?,
                (None, Some(path)) => UnixListener::bind(&path).map_err(|e| Error::io(&path.to_string_lossy(), &e))?,
                (None, None) => return Err(Error::invalid("serve needs --listen-fd or --socket")),
            };
            let options = serve::Options {
                models: places.models,
                onnxruntime: places.onnxruntime,
                threads: threads as usize,
                parse_workers: parse_workers as usize,
                parse_memory: parse_memory << 20,
                workspaces,
                clone_disk: clone_disk << 20,
                memory_limit: memory_limit << 20,
                longest_batch: Duration::from_secs(max_batch_seconds),
            };
            serve::run(&listener, &options)
        }
        Command::Embed { places, model, query, texts } => {
            commands::embed(places.models, places.onnxruntime, &model, query, &texts)
        }
        Command::Parse(reading) => commands::parse(&reading),
        Command::Chunk(reading) => commands::chunk(&reading),
        Command::Worker(options) => worker::run(&options),
        Command::Models { places } => commands::models(places.models, places.onnxruntime),
    }
}

/// Writes a line to standard error, which is the server's log.
pub(crate) fn log(message: &str) {
    eprintln!("pg_rag_engine: {message}");
}

fn report(error: &Error) {
    log(&error.message);
    for (label, text) in [("detail", &error.detail), ("hint", &error.hint)] {
        if let Some(text) = text {
            log(&format!("{label}: {text}"));
        }
    }
}
