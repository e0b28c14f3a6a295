// SPDX-License-Identifier: PostgreSQL

//! A worker: the child that touches what comes from outside.
//!
//! Owns the loop of `pg_rag_engine worker`: tasks come in on standard input, answers go out on standard output, one
//! document at a time. There are two roles, because whoever opens files must not parse and whoever parses must not open
//! files: an *acquire* worker lists and reads beneath the allowed paths, a *parse* worker gets bytes and has a tokenizer,
//! which it loads before it is confined. Neither holds a session or a connection, so that a hostile document finds
//! nothing worth taking, and each may die at any moment: limits of memory and processor time are the kernel's, limits
//! of time and of what it says its parent's.

use crate::frame;
use crate::os;
use crate::sandbox::{self, Profile};
use crate::task::{Said, Task};
use clap::{Args, Subcommand};
use rag_core::{Error, Kind, Result};
use rag_model::{Manifest, Tokenizer};
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

/// How a worker runs.
#[derive(Debug, Args)]
pub struct Options {
    /// Address space; 0 for no limit
    #[arg(long, value_name = "BYTES")]
    memory: u64,
    /// Process id of the engine that started it
    #[arg(long, value_name = "PID")]
    parent: u32,
    #[command(subcommand)]
    role: Role,
}

/// What a worker is for.
#[derive(Debug, Subcommand)]
enum Role {
    /// List and read
    Acquire {
        /// Path beneath which files may be opened
        #[arg(long, value_name = "PATH")]
        allow: Vec<String>,
        /// Allow TCP connections
        #[arg(long)]
        network: bool,
    },
    /// Parse and chunk
    Parse {
        /// Model folder
        #[arg(long, value_name = "DIR")]
        models: PathBuf,
        /// Folder of the model whose tokens bound the chunks
        #[arg(long, value_name = "PATH")]
        model: String,
        /// Its window
        #[arg(long, value_name = "N")]
        max_tokens: u32,
    },
}

/// Answers tasks until standard input ends.
pub fn run(options: &Options) -> Result<()> {
    os::die_with_parent(options.parent);
    os::name_process(match options.role {
        Role::Acquire { .. } => c"pg_rag_acquire",
        Role::Parse { .. } => c"pg_rag_parse",
    });
    os::prefer_as_victim(800);
    os::limit_worker(options.memory)?;
    let (mut input, mut output) = channels()?;
    let tokenizer = match prepare(&options.role) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return frame::write(&mut output, &Said::Failed(error)),
    };
    frame::write(&mut output, &Said::Ready)?;
    while let Some(task) = frame::read::<Task>(&mut input)? {
        let handled = AssertUnwindSafe(|| answer(tokenizer.as_ref(), &task, &mut output));
        let said = std::panic::catch_unwind(handled).unwrap_or_else(|_| {
            let verb = if tokenizer.is_some() { "parsing" } else { "reading" };
            Err(Error::internal(format!("{verb} panicked; the server's log has the place")))
        });
        let said = said.unwrap_or_else(Said::Failed);
        match frame::write_within(&mut output, &said, task.frame_limit()) {
            // Nothing was written.
            Err(error) if error.kind == Kind::LimitExceeded => {
                frame::write(&mut output, &Said::Failed(task.too_large()))?;
            }
            written => written?,
        }
    }
    Ok(())
}

/// Loads what the role needs and gives everything else up.
fn prepare(role: &Role) -> Result<Option<Tokenizer>> {
    match role {
        Role::Acquire { allow, network } => {
            sandbox::confine(&Profile::Acquire { roots: allow, network: *network })?;
            Ok(None)
        }
        Role::Parse { models, model, max_tokens } => {
            let manifest = Manifest::read(models, model, model)?;
            let tokenizer = Tokenizer::open(&manifest.tokenizer, *max_tokens)?;
            sandbox::confine(&Profile::Parse)?;
            Ok(Some(tokenizer))
        }
    }
}

/// Standard input and output as files of our own; what a library prints goes to the log instead of into a frame.
fn channels() -> Result<(File, File)> {
    let failed = |e: std::io::Error| Error::new(Kind::Io, format!("could not take over standard output: {e}"));
    let own = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from).map_err(failed);
    use std::os::fd::AsFd;
    let (input, output) = (own(std::io::stdin().as_fd())?, own(std::io::stdout().as_fd())?);
    rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|e| failed(e.into()))?;
    Ok((input, output))
}

/// The last frame of the answer to `task`; a listing writes its earlier frames to `output`.
fn answer(tokenizer: Option<&Tokenizer>, task: &Task, output: &mut File) -> Result<Said> {
    #[cfg(debug_assertions)]
    crate::faults::of_worker(tokenizer.is_some(), task, output)?;
    match (task, tokenizer) {
        (Task::List { source }, None) => {
            let page = &mut |items, failures| frame::write(output, &Said::Page { items, failures });
            Ok(Said::Listed { seen: rag_ingest::list(source, page)? })
        }
        (Task::Fetch { source, item }, None) => Ok(Said::Content(rag_ingest::fetch(source, item)?)),
        (Task::Parse { kind, options, uri, content, given }, Some(tokenizer)) => {
            let document = match given {
                Some(metadata) => rag_ingest::parse_inline(*kind, options, uri, &content.bytes, metadata, tokenizer),
                None => rag_ingest::parse_listed(*kind, options, uri, content, tokenizer),
            };
            document.map(|d| Said::Document(Box::new(d))).map_err(|failure| failure.error)
        }
        _ => Err(Error::internal(format!("{} is not for a worker of this role", task.doing()))),
    }
}
