// SPDX-License-Identifier: PostgreSQL

//! One connection: the handshake, then one request after the other.
//!
//! Owns the translation of requests into work and of results into replies. Everything that can block for long watches
//! the peer: a caller that was cancelled closes its socket, and nobody works for it any more.

use crate::frame;
use crate::inference::Job;
use crate::os;
use crate::serve::Engine;
use crate::task::Task;
use rag_core::protocol::{Answer, Embeddings, Input, ModelSpec, PROTOCOL_VERSION, Priority, Reply, Request};
use rag_core::source::{Content, Item, Origin, Place, SourceSpec};
use rag_core::{Error, Kind, Result};
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Builder;

/// What became of a request: its last reply, or nothing because nobody waits for it.
type Outcome = Result<Option<Reply>>;

/// Answers a connection with an error and closes it.
pub fn refuse(mut stream: &UnixStream, error: Error) {
    let _ = frame::write(&mut stream, &Answer { reply: Reply::Error(error), last: true });
}

/// Serves a connection until it ends.
pub fn serve(engine: &Engine, stream: Arc<UnixStream>) {
    match greet(&stream) {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return refuse(&stream, error),
    }
    let mut reader = &*stream;
    loop {
        let request = match frame::read::<Request>(&mut reader) {
            Ok(Some(request)) => request,
            Ok(None) => return,
            // What follows a broken frame cannot be understood either.
            Err(error) => return refuse(&stream, error),
        };
        engine.requests.fetch_add(1, Ordering::SeqCst);
        let handled = std::panic::catch_unwind(AssertUnwindSafe(|| handle(engine, &stream, request)));
        engine.requests.fetch_sub(1, Ordering::SeqCst);
        let reply = match handled.unwrap_or_else(|_| Err(Error::internal("the engine panicked; its log has the place")))
        {
            Ok(Some(reply)) => reply,
            Ok(None) => return,
            Err(error) => Reply::Error(error),
        };
        if send(&stream, reply, true).is_err() {
            return;
        }
    }
}

/// The handshake; false when the peer left before it.
fn greet(stream: &UnixStream) -> Result<bool> {
    let mut stream = stream;
    match frame::read::<Request>(&mut stream)? {
        None => Ok(false),
        Some(Request::Hello { version }) if version == PROTOCOL_VERSION => {
            let hello = Reply::Hello { version: PROTOCOL_VERSION.to_owned(), pid: std::process::id() };
            send(stream, hello, true)?;
            Ok(true)
        }
        Some(Request::Hello { version }) => {
            Err(Error::new(Kind::NotReady, format!("engine {PROTOCOL_VERSION} cannot serve library {version}"))
                .with_detail("The extension's library and its engine program are of different builds.")
                .with_hint(
                    "Restart the server; if that does not help, run make install again, so that both are replaced.",
                ))
        }
        Some(_) => Err(Error::new(Kind::Connection, "the first message on a connection must be Hello")),
    }
}

/// Sends one frame of an answer. A reply that is too large for a frame becomes an error that says so.
fn send(mut stream: &UnixStream, reply: Reply, last: bool) -> Result<()> {
    match frame::write(&mut stream, &Answer { reply, last }) {
        Err(error) if error.kind == Kind::LimitExceeded => {
            frame::write(&mut stream, &Answer { reply: Reply::Error(error), last: true })
        }
        other => other,
    }
}

fn handle(engine: &Engine, stream: &Arc<UnixStream>, request: Request) -> Outcome {
    match request {
        Request::Hello { .. } => Err(Error::new(Kind::Connection, "the handshake was done already")),
        Request::DescribeModel { name, path } => engine.models.describe(&name, &path).map(|m| Some(Reply::Model(m))),
        Request::Embed { model, texts, input, priority } => embed(engine, stream, &model, &texts, input, priority),
        Request::CountTokens { model, texts } => count(engine, &model, &texts),
        Request::Status => Ok(Some(Reply::Status(engine.status()))),
        Request::Echo { payload } => Ok(Some(Reply::Echo(payload))),
        Request::List { source } => {
            let forward = &mut |items, failures| send(stream, Reply::Items { items, failures }, false);
            Ok(engine.workers.list(&source, stream, forward)?.map(|seen| Reply::Listed { seen }))
        }
        Request::Read { source, items, model } => read(engine, stream, &source, &items, &model),
        Request::Parse { kind, options, uri, content, metadata, model } => {
            engine.models.get(&model)?;
            let seconds = options.limits.max_seconds;
            let content = Content { bytes: content, origin: Origin::default() };
            let task = Task::Parse { kind, options, uri, content, given: Some(metadata) };
            engine.workers.parse(&task, seconds, &model, stream)
        }
    }
}

fn embed(
    engine: &Engine,
    stream: &Arc<UnixStream>,
    spec: &ModelSpec,
    texts: &[String],
    input: Input,
    priority: Priority,
) -> Outcome {
    let model = engine.models.get(spec)?;
    let prefix = match input {
        Input::Query => &spec.query_prefix,
        Input::Passage => &spec.passage_prefix,
    };
    let encode = |text: &String| match prefix.is_empty() {
        true => model.tokenizer.encode(text),
        false => model.tokenizer.encode(&format!("{prefix}{text}")),
    };
    let encoded = texts.iter().map(encode).collect::<Result<Vec<_>>>()?;
    let tokens = encoded.iter().map(|e| e.tokens).collect();
    let truncated = encoded.iter().map(|e| e.truncated).collect();
    let (job, vectors) = Job::new(model, encoded, Some(stream.clone()));
    engine.queue.push(priority, job)?;
    match vectors.recv() {
        Ok(rows) => Ok(Some(Reply::Embeddings(Embeddings::pack(spec.dimensions, &rows?, tokens, truncated)))),
        Err(_) => Ok(None), // dropped, because the peer has gone
    }
}

fn count(engine: &Engine, spec: &ModelSpec, texts: &[String]) -> Outcome {
    let model = engine.models.get(spec)?;
    let count = |text: &String| {
        let tokens = model.tokenizer.count_with_specials(text)?;
        u32::try_from(tokens).map_err(|_| Error::new(Kind::LimitExceeded, format!("{tokens} tokens are too many")))
    };
    Ok(Some(Reply::Counts(texts.iter().map(count).collect::<Result<_>>()?)))
}

/// The commit of the items of a repository that has to be cloned. A listing is of one commit, and so is what is read of it.
fn commit_of<'a>(source: &SourceSpec, items: &'a [Item]) -> Result<Option<&'a str>> {
    if !rag_ingest::is_remote(source) {
        return Ok(None);
    }
    let mut commits = items.iter().map(|item| match &item.place {
        Place::Blob { commit, .. } => Some(commit.as_str()),
        _ => None,
    });
    let first = commits.next().flatten();
    match commits.all(|commit| commit == first) {
        true if first.is_some() => Ok(first),
        _ => Err(Error::invalid("the items are not files of one commit")
            .with_hint("The source was changed meanwhile: run the sync again.")),
    }
}

/// Reads items by as many workers as there are, and sends the documents in the order of the items.
fn read(engine: &Engine, stream: &UnixStream, source: &SourceSpec, items: &[Item], model: &ModelSpec) -> Outcome {
    if items.is_empty() {
        return Err(Error::invalid("there is no item to read"));
    }
    // A missing model is one error, not one for each document.
    engine.models.get(model)?;
    let clone = match commit_of(source, items)? {
        None => None,
        Some(commit) => match engine.workers.clone_at(source, commit, stream)? {
            None => return Ok(None),
            held => held,
        },
    };
    let one = |item: &Item| engine.workers.read(source, clone.as_ref(), item, model, stream);
    // Twice as many as can run, so that a slow document does not leave a worker idle.
    let ahead = 2 * engine.workers.size();
    std::thread::scope(|scope| {
        let mut waiting = items.iter();
        let mut running = VecDeque::new();
        loop {
            while running.len() < ahead
                && let Some(item) = waiting.clone().next()
            {
                match os::spawn_scoped(scope, Builder::new().name("document".into()), move || one(item)) {
                    Ok(thread) => running.push_back(thread),
                    Err(error) if running.is_empty() => return Err(error),
                    // Those that run will end, and leave theirs.
                    Err(_) => break,
                }
                waiting.next();
            }
            let Some(first) = running.pop_front() else { return Err(Error::internal("items ran out")) };
            let read = first.join().unwrap_or_else(|_| Err(Error::internal("waiting for a document panicked")));
            let Some(reply) = read? else { return Ok(None) };
            let last = running.is_empty() && waiting.len() == 0;
            if last || matches!(reply, Reply::Error(_)) {
                return Ok(Some(reply));
            }
            if send(stream, reply, false).is_err() {
                return Ok(None);
            }
        }
    })
}
