// SPDX-License-Identifier: PostgreSQL

//! A worker: the child that touches what comes from outside.
//!
//! Owns the loop of `pg_rag_engine worker`: tasks come in on standard input, answers go out on standard output, one
//! document at a time. There are three roles, because whoever opens files must not parse, whoever parses must not open
//! files, and whoever reads must not write: an *acquire* worker lists and reads beneath the allowed paths, a *parse* worker
//! gets bytes and has a tokenizer, which it loads before it is confined, and a *clone* worker puts a repository of the network
//! into the one folder it may write to. None holds a session or a connection, so that a hostile document finds
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
    /// Clone a repository
    Clone {
        /// Empty folder for it
        #[arg(long, value_name = "DIR")]
        folder: String,
        /// Bytes that a file of it may have
        #[arg(long, value_name = "BYTES")]
        file_size: u64,
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

/// A worker that is confined and has what it needs.
enum Ready {
    Acquire,
    Clone(PathBuf),
    Parse(Box<Tokenizer>),
}

impl Ready {
    fn doing(&self) -> &'static str {
        match self {
            Ready::Acquire => "reading",
            Ready::Clone(_) => "cloning",
            Ready::Parse(_) => "parsing",
        }
    }
}

/// Answers tasks until standard input ends.
pub fn run(options: &Options) -> Result<()> {
    os::die_with_parent(options.parent);
    os::name_process(match options.role {
        Role::Acquire { .. } => c"pg_rag_acquire",
        Role::Clone { .. } => c"pg_rag_clone",
        Role::Parse { .. } => c"pg_rag_parse",
    });
    os::prefer_as_victim(800);
    let file_size = if let Role::Clone { file_size, .. } = options.role { file_size } else { 0 };
    os::limit_worker(options.memory, file_size)?;
    let (mut input, mut output) = channels()?;
    let ready = match prepare(&options.role) {
        Ok(ready) => ready,
        Err(error) => return frame::write(&mut output, &Said::Failed(error)),
    };
    frame::write(&mut output, &Said::Ready)?;
    while let Some(task) = frame::read::<Task>(&mut input)? {
        let handled = AssertUnwindSafe(|| answer(&ready, &task, &mut output));
        let said = std::panic::catch_unwind(handled).unwrap_or_else(|_| {
            Err(Error::internal(format!("{} panicked; the server's log has the place", ready.doing())))
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
fn prepare(role: &Role) -> Result<Ready> {
    match role {
        Role::Acquire { allow, network } => {
            sandbox::confine(&Profile::Acquire { roots: allow, network: *network })?;
            Ok(Ready::Acquire)
        }
        Role::Clone { folder, .. } => {
            let level = sandbox::confine(&Profile::Clone { folder })?;
            // The calls that it needs could write anywhere.
            if !level.confines_files() {
                return Err(Error::unsupported("a repository is not cloned where the kernel has no landlock")
                    .with_hint("Clone it to the server's disk yourself, and give the path of that folder."));
            }
            Ok(Ready::Clone(folder.into()))
        }
        Role::Parse { models, model, max_tokens } => {
            let manifest = Manifest::read(models, model, model)?;
            let tokenizer = Tokenizer::open(&manifest.tokenizer, *max_tokens)?;
            sandbox::confine(&Profile::Parse)?;
            Ok(Ready::Parse(Box::new(tokenizer)))
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
fn answer(ready: &Ready, task: &Task, output: &mut File) -> Result<Said> {
    #[cfg(debug_assertions)]
    crate::faults::of_worker(ready.doing(), task, output)?;
    match (task, ready) {
        (Task::List { source, workspace }, Ready::Acquire) => {
            let emit = &mut |items, failures| frame::write(output, &Said::Page { items, failures });
            let seen = match workspace {
                Some(workspace) => rag_ingest::list_clone(source, workspace, emit)?,
                None => rag_ingest::list(source, emit)?,
            };
            Ok(Said::Listed { seen })
        }
        (Task::Fetch { source, item, workspace }, Ready::Acquire) => Ok(Said::Content(Box::new(match workspace {
            Some(workspace) => rag_ingest::fetch_clone(source, workspace, item)?,
            None => rag_ingest::fetch(source, item)?,
        }))),
        (Task::Clone { source, commit, known }, Ready::Clone(folder)) => {
            let cloned = rag_ingest::clone_remote(source, folder, commit.as_deref(), known)?;
            Ok(Said::Cloned { commit: cloned.commit, reference: cloned.reference, known: cloned.known })
        }
        (Task::Parse { kind, options, uri, content, given }, Ready::Parse(tokenizer)) => {
            let tokenizer = tokenizer.as_ref();
            let document = match given {
                Some(metadata) => rag_ingest::parse_inline(*kind, options, uri, &content.bytes, metadata, tokenizer),
                None => rag_ingest::parse_listed(*kind, options, uri, content, tokenizer),
            };
            document.map(|d| Said::Document(Box::new(d))).map_err(|failure| failure.error)
        }
        _ => Err(Error::internal(format!("{} is not for a worker of this role", task.doing()))),
    }
}
