// SPDX-License-Identifier: PostgreSQL

//! What a job does, step by step.
//!
//! Each [`Attempt::step`] is one transaction of the worker's. Work that waits for the engine with nothing to write runs
//! before it, in [`Attempt::outside`], so that no transaction is open during inference. A sync job stores chunks
//! without waiting for their vectors and queues an embedding job: words find them at once, meaning a little later.
//!
//! A vector that was made outside is only stored if its chunk still has the text it was made of.

use super::Batch;
use super::engine;
use super::ingest::render;
use crate::guc::{Allowed, Waits};
use crate::inference::Embedded;
use crate::store::collection::{self, Collection};
use crate::store::embedding::{self, Unembedded};
use crate::store::job::{Job, Work};
use crate::store::source::{self, Source};
use crate::store::statistics;
use crate::store::sync as runs;
use rag_core::provenance::ContentHash;
use rag_core::source::{SourceKind, SourceOptions};
use rag_core::{Error, Result};

/// Chunks embedded at once.
const EMBED_CHUNKS: i64 = 256;

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is more; so many documents or chunks are done.
    More(i64),
    /// That was the last.
    Done,
}

/// One attempt at a job.
#[derive(Debug)]
pub struct Attempt {
    job: Job,
    state: State,
    /// Why some chunk has no vector; told when all others have theirs.
    failed: Option<Error>,
}

#[derive(Debug)]
enum State {
    /// A sync is to begin.
    Begin,
    /// The source is to be listed.
    List { run: i64 },
    /// Documents are to be read.
    Read { run: i64 },
    /// Chunks without a vector are to be looked up.
    Find { done: i64, after: i64 },
    /// Chunks wait for the engine.
    Embed { done: i64, texts: Vec<(i64, String)>, collection: Box<Collection> },
    /// Vectors wait to be stored.
    Store { done: i64, texts: Vec<(i64, String)>, vectors: Vec<Result<Embedded>>, collection: Box<Collection> },
}

impl Attempt {
    /// An attempt that has not begun.
    pub fn new(job: Job) -> Self {
        let state = match job.work {
            Work::Sync => State::Begin,
            Work::Embed => State::Find { done: 0, after: 0 },
        };
        Self { job, state, failed: None }
    }

    /// What is to be done before the next step, outside of a transaction.
    pub fn outside(&mut self, waits: Waits) -> Result<()> {
        let State::Embed { done, texts, collection } = &mut self.state else { return Ok(()) };
        let asked = texts.iter().map(|(_, text)| text.clone()).collect();
        let vectors = engine::vectors(&collection.model, asked, waits)?;
        self.state =
            State::Store { done: *done, texts: std::mem::take(texts), vectors, collection: collection.clone() };
        Ok(())
    }

    /// The next step; to be called in a transaction with the rights of the job's role.
    pub fn step(&mut self, allowed: Allowed, waits: Waits) -> Result<Step> {
        match &self.state {
            State::Begin => {
                let run = super::begin(&self.job.source)?;
                self.state = State::List { run };
                Ok(Step::More(0))
            }
            State::List { run } => {
                let run = *run;
                super::list(run, allowed, waits)?;
                self.state = State::Read { run };
                Ok(Step::More(0))
            }
            State::Read { run } => match super::batch(*run, false, allowed, waits)? {
                Batch::More => Ok(Step::More(runs::settled(*run)?)),
                Batch::Done | Batch::Queued => Ok(Step::Done),
            },
            State::Find { done, after } => self.find(*done, *after),
            // The engine was asked outside; that it was not is a mistake of the caller's.
            State::Embed { .. } => Err(Error::internal("vectors were not made before they are stored")),
            State::Store { .. } => self.store(),
        }
    }

    /// Closes what the attempt left open.
    pub fn abandon(&self, why: &str) -> Result<()> {
        match self.state {
            State::List { run } | State::Read { run } => runs::fail(run, why),
            _ => Ok(()),
        }
    }

    fn find(&mut self, done: i64, after: i64) -> Result<Step> {
        let source = source::by_id(self.job.source_id)?;
        let options = options_of(&source)?;
        let collection = collection::by_id(source.collection_id)?;
        let found = embedding::missing(&collection, source.id, after, EMBED_CHUNKS)?;
        let Some(last) = found.last().map(|chunk| chunk.id) else {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            // A chunk that changed while its vector was made is still without one.
            if after == 0 || !embedding::any_missing(source.id)? {
                statistics::renew()?;
                return Ok(Step::Done);
            }
            self.state = State::Find { done, after: 0 };
            return Ok(Step::More(done));
        };
        let mut done = done;
        let mut texts = Vec::with_capacity(found.len());
        for chunk in found {
            let text = text_of(&options, &chunk);
            // An equal text of another chunk may have its vector by now.
            match embedding::reuse(&collection, chunk.id, ContentHash::of(&text), chunk.acl.as_deref())? {
                Some(_) => done += 1,
                None => texts.push((chunk.id, text)),
            }
        }
        self.state = match texts.is_empty() {
            true => State::Find { done, after: last },
            false => State::Embed { done, texts, collection: Box::new(collection) },
        };
        Ok(Step::More(done))
    }

    fn store(&mut self) -> Result<Step> {
        let state = std::mem::replace(&mut self.state, State::Find { done: 0, after: 0 });
        let State::Store { done, texts, vectors, collection } = state else {
            return Err(Error::internal("there are no vectors to store"));
        };
        let options = options_of(&source::by_id(self.job.source_id)?)?;
        let schema = collection::vector_schema()?;
        let ids: Vec<i64> = texts.iter().map(|(id, _)| *id).collect();
        let last = ids.iter().copied().max().unwrap_or(0);
        let now = embedding::locked(&collection, ids)?;
        let mut stored = done;
        for ((id, text), vector) in texts.into_iter().zip(vectors) {
            let (vector, cut) = match vector {
                Ok(vector) => vector,
                Err(error) => {
                    self.failed.get_or_insert(error);
                    continue;
                }
            };
            let Some(chunk) = now.iter().find(|chunk| chunk.id == id) else { continue };
            // A chunk that was given another title meanwhile is found again by the next attempt.
            if text_of(&options, chunk) == text {
                let hash = ContentHash::of(&text);
                embedding::put(&collection, &schema, id, hash, &vector, cut, chunk.acl.as_deref())?;
                stored += 1;
            }
        }
        self.state = State::Find { done: stored, after: last };
        Ok(Step::More(stored))
    }
}

/// Options of a source. Documents given inline had theirs when they were stored; a lost vector is made of the usual text.
fn options_of(source: &Source) -> Result<SourceOptions> {
    match source.kind.as_str() {
        source::INLINE => Ok(SourceOptions::defaults(SourceKind::Text)),
        _ => Ok(source.parsed()?.1),
    }
}

fn text_of(options: &SourceOptions, chunk: &Unembedded) -> String {
    render(options, chunk.fields(), chunk.prefix_cut)
}
