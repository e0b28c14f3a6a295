// SPDX-License-Identifier: PostgreSQL

//! The child that reads and parses.
//!
//! Owns the loop of `pg_rag_engine parse-worker`: requests come in on standard input, answers go out on standard output,
//! one document at a time. It holds no session and no connection, so that a hostile document finds nothing worth
//! taking, and it may die at any moment: limits of memory are the kernel's, limits of time its parent's.

use crate::frame;
use crate::os;
use rag_core::protocol::{Answer, ModelSpec, Reply, Request};
use rag_core::source::Failure;
use rag_core::{Error, Kind, Result};
use rag_model::{Manifest, Tokenizer};
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Set (to anything) in a debug build, it makes a worker misbehave over documents whose URI asks for it.
#[cfg(debug_assertions)]
const FAULT: &str = "RAG_ENGINE_TEST_FAULT";

/// How a worker runs.
#[derive(Debug)]
pub struct Options {
    /// Model folder.
    pub models: PathBuf,
    /// Address space in bytes; 0 for no limit.
    pub memory: u64,
    /// Process id of the engine that started it.
    pub parent: u32,
}

/// Answers requests until standard input ends.
pub fn run(options: &Options) -> Result<()> {
    os::die_with_parent(options.parent);
    os::name_process(c"pg_rag_parse");
    os::prefer_as_victim(800);
    os::limit_memory(options.memory)?;
    let (mut input, mut output) = channels()?;
    let mut tokenizers = Tokenizers { folder: options.models.clone(), last: None };
    while let Some(request) = frame::read::<Request>(&mut input)? {
        let handled = std::panic::catch_unwind(AssertUnwindSafe(|| answer(&mut tokenizers, &request, &mut output)));
        let reply = match handled {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => Reply::Error(error),
            Err(_) => match uri(&request) {
                Some(uri) => failed(uri, Error::internal("parsing panicked; the server's log has the place")),
                None => Reply::Error(Error::internal("listing panicked; the server's log has the place")),
            },
        };
        match (frame::write(&mut output, &Answer { reply, last: true }), uri(&request)) {
            // Nothing was written: the document grew beyond a frame.
            (Err(error), Some(uri)) if error.kind == Kind::LimitExceeded => {
                frame::write(&mut output, &Answer { reply: failed(uri, error), last: true })?;
            }
            (written, _) => written?,
        }
    }
    Ok(())
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

/// The last frame of the answer to `request`; a listing writes its earlier frames to `output`.
fn answer(tokenizers: &mut Tokenizers, request: &Request, output: &mut File) -> Result<Reply> {
    #[cfg(debug_assertions)]
    misbehave(request);
    match request {
        Request::List { source } => {
            rag_ingest::list(source, &mut |items, failures| {
                frame::write(output, &Answer { reply: Reply::Items { items, failures }, last: false })
            })?;
            Ok(Reply::Items { items: Vec::new(), failures: Vec::new() })
        }
        Request::Read { source, items, model } => {
            let tokenizer = tokenizers.get(model)?;
            let [item] = items.as_slice() else {
                return Err(Error::internal(format!("a parse worker was given {} items at once", items.len())));
            };
            Ok(Reply::Document(rag_ingest::read(source, item, &*tokenizer).map(Box::new)))
        }
        Request::Parse { kind, options, uri, content, metadata, model } => {
            let tokenizer = tokenizers.get(model)?;
            let document = rag_ingest::parse_inline(*kind, options, uri, content, metadata, &*tokenizer);
            Ok(Reply::Document(document.map(Box::new)))
        }
        _ => Err(Error::internal("a parse worker lists, reads and parses, nothing else")),
    }
}

/// The document that a request is about; `None` for a listing.
pub fn uri(request: &Request) -> Option<&str> {
    match request {
        Request::Read { items, .. } => items.first().map(|i| i.uri.as_str()),
        Request::Parse { uri, .. } => Some(uri),
        _ => None,
    }
}

/// The reply for a document that could not be had.
pub fn failed(uri: &str, error: Error) -> Reply {
    Reply::Document(Err(Failure { uri: uri.to_owned(), error }))
}

/// The tokenizer of the last request: a sync asks for the same one again and again.
struct Tokenizers {
    folder: PathBuf,
    last: Option<(String, u32, Arc<Tokenizer>)>,
}

impl Tokenizers {
    fn get(&mut self, model: &ModelSpec) -> Result<Arc<Tokenizer>> {
        match &self.last {
            Some((path, max_tokens, tokenizer)) if (path, max_tokens) == (&model.path, &model.max_tokens) => {
                Ok(tokenizer.clone())
            }
            _ => {
                let tokenizer = Arc::new(open(&self.folder, model)?);
                self.last = Some((model.path.clone(), model.max_tokens, tokenizer.clone()));
                Ok(tokenizer)
            }
        }
    }
}

fn open(folder: &Path, model: &ModelSpec) -> Result<Tokenizer> {
    let manifest = Manifest::read(folder, &model.name, &model.path)?;
    Tokenizer::open(&manifest.tokenizer, model.max_tokens)
}

/// Crashes, hangs or eats memory when told to, so that tests can see what the engine makes of it.
#[cfg(debug_assertions)]
fn misbehave(request: &Request) {
    let uri = uri(request).unwrap_or_default();
    if std::env::var_os(FAULT).is_none() {
        return;
    }
    if uri.contains("fault-crash") {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    if uri.contains("fault-hang") {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
    if uri.contains("fault-memory") {
        let mut hoard: Vec<Vec<u8>> = Vec::new();
        loop {
            hoard.push(vec![1; 64 << 20]);
        }
    }
    if uri.contains("fault-panic") {
        std::panic::resume_unwind(Box::new("asked for"));
    }
}
