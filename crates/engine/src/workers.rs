// SPDX-License-Identifier: PostgreSQL

//! The pool of workers.
//!
//! Owns lending, timing, limiting and replacing them. A document that crashes a worker, hangs, takes too much memory or
//! says too much costs itself and one worker; its failure says which of these happened. It must not know documents
//! beyond their URI.
//!
//! An item of a source visits two workers: one that reads it and may not parse, one that parses it and may not read. A
//! repository at a URL visits a third one first, which clones it ([`cloning`]).

mod cloning;

use crate::exchange::{Exchange, Heard, Silence};
use crate::os;
use crate::starter::{Fit, Starter, Worker};
use crate::task::{Said, Tally, Task};
use crate::workspaces::{Held, Workspaces};
use rag_core::protocol::{ModelSpec, Reply};
use rag_core::source::{Failure, Item, SourceSpec};
use rag_core::{Error, Kind, Result};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tasks after which an idle worker is replaced: whatever it leaked goes with it.
const RECYCLE_AFTER: u32 = 2000;

/// Processor time after which it is. With the longest that a document may take, it stays far below [`os::LIFETIME`].
const RECYCLE_TIME: Duration = Duration::from_secs(3600);

/// A listing may take hours over millions of records, but not this long for its next page.
const LISTING_SILENCE: Duration = Duration::from_secs(600);

/// Longest that a worker may take to load a tokenizer and be confined.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a worker's first message.
const GREETING_LIMIT: u64 = 64 << 10;

/// Processor time beyond the wall-clock limit of a document, so that the clock on the wall speaks first.
const SLACK: Duration = Duration::from_secs(2);

/// How the pool runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Documents parsed at once; as many may be read, and as many listings may run, beside them.
    pub size: usize,
    /// Address space of a worker in bytes; 0 for no limit.
    pub memory: u64,
    /// Model folder, for the tokenizers.
    pub models: PathBuf,
    /// Folder for clones of repositories; `None`: none are made.
    pub workspaces: Option<PathBuf>,
    /// Bytes of disk that all clones may take.
    pub clone_disk: u64,
}

/// The pool.
#[derive(Debug)]
pub struct Pool {
    options: Options,
    state: Mutex<State>,
    freed: Condvar,
    starter: Starter,
    workspaces: Arc<Workspaces>,
}

#[derive(Debug, Default)]
struct State {
    /// Longest idle first.
    idle: Vec<Worker>,
    fetching: usize,
    parsing: usize,
    listing: usize,
}

/// What a worker is borrowed for. Each has turns of its own: a listing waits on its reader and must not keep documents
/// from being read, nor the other way round.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Fetch,
    Parse,
    List,
}

impl State {
    fn busy(&mut self, turn: Turn) -> &mut usize {
        match turn {
            Turn::Fetch => &mut self.fetching,
            Turn::Parse => &mut self.parsing,
            Turn::List => &mut self.listing,
        }
    }
}

/// What is left of the time that a document may take, over all workers that it visits.
#[derive(Debug)]
struct Budget {
    seconds: u32,
    left: Duration,
}

impl Budget {
    fn new(seconds: u32) -> Self {
        Self { seconds, left: Duration::from_secs(u64::from(seconds)) }
    }
}

/// What to do with the pages of a listing; an error stops it.
pub type Forward<'a> = &'a mut dyn FnMut(Vec<Item>, Vec<Failure>) -> Result<()>;

/// What a worker made of a document; `None` when nobody waits for it any more, and an inner error when the document
/// failed. The outer error means that no document can be had.
type Made = Result<Option<Result<Said>>>;

impl Pool {
    /// A pool without workers; they start when needed.
    pub fn start(options: Options) -> Result<Self> {
        let starter = Starter::start(options.models.clone(), options.memory)?;
        let workspaces = Workspaces::start(options.workspaces.as_deref(), options.clone_disk)?;
        Ok(Self { options, state: Mutex::default(), freed: Condvar::new(), starter, workspaces })
    }

    /// Documents that can be parsed at once.
    pub fn size(&self) -> usize {
        self.options.size
    }

    /// Parse workers that are alive.
    pub fn parsers(&self) -> usize {
        let state = self.lock();
        state.parsing + state.idle.iter().filter(|w| matches!(w.fit, Fit::Parse { .. })).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and parses one item, from the clone of the repository if there is one; `None` when the peer has gone.
    ///
    /// Whatever the document does to the workers becomes a [`Reply::Document`] with a failure.
    pub fn read(
        &self,
        source: &SourceSpec,
        clone: Option<&Held>,
        item: &Item,
        model: &ModelSpec,
        peer: &UnixStream,
    ) -> Result<Option<Reply>> {
        let mut budget = Budget::new(source.options.limits.max_seconds);
        let workspace = clone.map(|held| held.workspace.clone());
        let fit = Fit::acquire(source, workspace.as_ref());
        let fetch = Task::Fetch { source: source.clone(), item: item.clone(), workspace };
        let mut content = match self.make(Turn::Fetch, fit, &fetch, &mut budget, peer)? {
            None => return Ok(None),
            Some(Ok(Said::Content(content))) => *content,
            Some(Ok(_)) => return Ok(Some(failed(&item.uri, out_of_turn(&fetch)))),
            Some(Err(error)) => return Ok(Some(failed(&item.uri, error))),
        };
        let rendition = content.origin.rendition.take();
        let (kind, options, uri, origin) =
            (source.kind, source.options.clone(), item.uri.clone(), content.origin.clone());
        content.origin.rendition = rendition;
        let read = self.document(&Task::Parse { kind, options, uri, content, given: None }, model, budget, peer)?;
        Ok(read.map(|reply| match reply {
            Reply::Document(Ok(document)) => Reply::Document(Ok(Box::new(rag_ingest::with_origin(*document, &origin)))),
            other => other,
        }))
    }

    /// Has a [`Task::Parse`] done within `seconds`; otherwise as [`Pool::read`].
    pub fn parse(&self, task: &Task, seconds: u32, model: &ModelSpec, peer: &UnixStream) -> Result<Option<Reply>> {
        self.document(task, model, Budget::new(seconds), peer)
    }

    fn document(&self, task: &Task, model: &ModelSpec, mut budget: Budget, peer: &UnixStream) -> Result<Option<Reply>> {
        let made = self.make(Turn::Parse, Fit::parse(model), task, &mut budget, peer)?;
        Ok(made.map(|made| match made {
            Ok(Said::Document(document)) => Reply::Document(Ok(document)),
            Ok(_) => failed(task.about(), out_of_turn(task)),
            Err(error) => failed(task.about(), error),
        }))
    }

    /// Has a worker do what is to be done with one document.
    fn make(&self, turn: Turn, fit: Fit, task: &Task, budget: &mut Budget, peer: &UnixStream) -> Made {
        let Some(mut lease) = self.borrow(turn, fit, peer)? else { return Ok(None) };
        let started = Instant::now();
        let heard = lease.ask(task, budget.left, peer);
        budget.left = budget.left.saturating_sub(started.elapsed());
        Ok(Some(match heard {
            Ok(Said::Failed(error)) => {
                lease.give_back();
                Err(error)
            }
            Ok(said) if task.is_answered_by(&said) => {
                lease.give_back();
                Ok(said)
            }
            Ok(_) => Err(out_of_turn(task)),
            Err(silence) => match self.why_silent(lease, silence, task, || task.too_slow(budget.seconds)) {
                Some(error) => Err(error),
                None => return Ok(None),
            },
        }))
    }

    /// Has a worker list a source and passes its pages on. Returns how many entries the worker says that it looked at;
    /// `None` when the peer has gone.
    pub fn list(&self, source: &SourceSpec, peer: &UnixStream, forward: Forward<'_>) -> Result<Option<u64>> {
        let mut clone = None;
        if rag_ingest::is_remote(source) {
            let Some(held) = self.clone_now(source, peer)? else { return Ok(None) };
            clone = Some(held);
        }
        let workspace = clone.as_ref().map(|held| held.workspace.clone());
        let fit = Fit::acquire(source, workspace.as_ref());
        let task = Task::List { source: source.clone(), workspace };
        let Some(mut lease) = self.borrow(Turn::List, fit, peer)? else { return Ok(None) };
        match lease.pages(&task, Tally::new(source), peer, forward) {
            Ok(listed) => {
                lease.give_back();
                listed.map(Some)
            }
            Err(silence) => {
                let message = format!("{} found nothing more for {} s", task.doing(), LISTING_SILENCE.as_secs());
                let error = self.why_silent(lease, silence, &task, || Error::new(Kind::LimitExceeded, message));
                error.map_or(Ok(None), Err)
            }
        }
    }

    /// Ends a worker that gave no answer, and says why it did not; `None` when nobody waits for it any more.
    fn why_silent(
        &self,
        lease: Lease<'_>,
        silence: Silence,
        task: &Task,
        too_slow: impl FnOnce() -> Error,
    ) -> Option<Error> {
        match silence {
            Silence::Unwanted => None,
            Silence::Refused(error) => Some(error),
            Silence::TimedOut => Some(too_slow()),
            Silence::Ended(why) => Some(self.obituary(lease, &why, &task.doing())),
        }
    }

    /// What to tell about a worker that ended while doing something.
    fn obituary(&self, lease: Lease<'_>, why: &str, doing: &str) -> Error {
        let (name, status) = lease.end();
        let megabytes = self.options.memory >> 20;
        match status.signal() {
            // Allocation failures and stack overflows abort; panics do not come this far.
            Some(libc::SIGABRT) => Error::new(Kind::LimitExceeded, format!("{name} ran out of memory while {doing}"))
                .with_detail(format!("A worker may use {megabytes} MB of address space, and its stack."))
                .with_hint(
                    "Leave the document out with the source's \"ignore\" option, or raise pg_rag.parse_memory_limit.",
                ),
            Some(libc::SIGXCPU) => {
                Error::new(Kind::LimitExceeded, format!("{name} used too much processor time while {doing}")).with_hint(
                    "Raise \"max_seconds\" in the \"limits\" of the source's options, or leave the document out.",
                )
            }
            Some(libc::SIGKILL) => Error::internal(format!("{name} was killed while {doing}"))
                .with_detail("Somebody sent it signal 9, or the machine ran out of memory."),
            Some(signal) => Error::new(Kind::BadContent, format!("{name} died by signal {signal} while {doing}"))
                .with_detail("The content made it crash; nothing else was harmed."),
            None => Error::internal(format!("{name} ended while {doing}")).with_detail(format!("{why}; {status}.")),
        }
    }

    /// Waits for a turn and takes an idle worker that fits, or a new one.
    fn borrow(&self, turn: Turn, fit: Fit, peer: &UnixStream) -> Result<Option<Lease<'_>>> {
        let mut state = self.lock();
        while *state.busy(turn) >= self.options.size {
            state = self.freed.wait_timeout(state, crate::exchange::TICK).unwrap_or_else(PoisonError::into_inner).0;
            if os::is_gone(peer) {
                return Ok(None);
            }
        }
        *state.busy(turn) += 1;
        // From here on the turn is given back whatever happens.
        let mut lease = Lease { pool: self, turn, worker: None };
        let mut unfit = Vec::new();
        while let Some(at) = state.idle.iter().rposition(|w| w.fit == fit) {
            let mut worker = state.idle.remove(at);
            // One that ended while it was idle is nobody's failure.
            if worker.is_idle() {
                lease.worker = Some(worker);
                break;
            }
            unfit.push(worker);
        }
        drop(state);
        drop(unfit);
        if lease.worker.is_some() {
            return Ok(Some(lease));
        }
        let worker = lease.worker.insert(self.starter.order(fit)?);
        let exchange = Exchange { stream: &worker.stream, deadline: Instant::now() + START_PATIENCE, peer: Some(peer) };
        let name = worker.fit.name();
        let unready = |why: &str| Error::new(Kind::NotReady, format!("{name} could not start")).with_detail(why);
        match exchange.receive(GREETING_LIMIT, || unready("Its greeting is too long.")) {
            Ok((Said::Ready, _)) => Ok(Some(lease)),
            Ok((Said::Failed(error), _)) | Err(Silence::Refused(error)) => Err(error),
            Ok(_) => Err(unready("It greeted with something else.")),
            Err(Silence::Unwanted) => Ok(None),
            Err(Silence::TimedOut) => Err(unready(&format!("It took longer than {} s.", START_PATIENCE.as_secs()))),
            Err(Silence::Ended(why)) => Err(unready(&format!("{why}; {}.", lease.end().1))),
        }
    }
}

/// The reply for a document that could not be had.
fn failed(uri: &str, error: Error) -> Reply {
    Reply::Document(Err(Failure { uri: uri.to_owned(), error }))
}

/// The error for a message that is none of those that may come.
fn out_of_turn(task: &Task) -> Error {
    Error::new(Kind::BadContent, format!("the worker that was {} gave another answer than was asked for", task.doing()))
        .with_detail("The worker was ended; nothing else was harmed.")
}

/// A worker on loan. Dropped without [`Lease::give_back`], the worker is killed.
struct Lease<'a> {
    pool: &'a Pool,
    turn: Turn,
    worker: Option<Worker>,
}

impl Lease<'_> {
    /// Sends a task, to be done within `limit`.
    fn begin<'w>(&'w mut self, task: &Task, limit: Duration, peer: &'w UnixStream) -> Heard<Exchange<'w>> {
        let Some(worker) = self.worker.as_mut() else {
            return Err(Silence::Refused(Error::internal("a worker was given back already")));
        };
        worker.served += 1;
        let exchange = Exchange { stream: &worker.stream, deadline: Instant::now() + limit, peer: Some(peer) };
        exchange.send(task)?;
        Ok(exchange)
    }

    /// The one message that answers a task about one document.
    fn ask(&mut self, task: &Task, limit: Duration, peer: &UnixStream) -> Heard<Said> {
        if let Some(worker) = &self.worker {
            os::limit_time(worker.pid(), limit + SLACK);
        }
        self.begin(task, limit, peer)?.receive(task.frame_limit(), || task.too_large()).map(|(said, _)| said)
    }

    /// The pages that answer a listing, and whether it went well.
    fn pages(&mut self, task: &Task, mut tally: Tally, peer: &UnixStream, forward: Forward<'_>) -> Heard<Result<u64>> {
        if let Some(worker) = &self.worker {
            os::limit_time(worker.pid(), os::LIFETIME);
        }
        let mut exchange = self.begin(task, LISTING_SILENCE, peer)?;
        loop {
            match exchange.receive(task.frame_limit(), || task.too_large())? {
                (Said::Page { items, failures }, bytes) => {
                    tally.page(items.len() + failures.len(), bytes).map_err(Silence::Refused)?;
                    // The only thing that fails here is writing to the peer.
                    forward(items, failures).map_err(|_| Silence::Unwanted)?;
                    exchange.deadline = Instant::now() + LISTING_SILENCE;
                }
                (Said::Listed { seen }, _) => return Ok(Ok(seen)),
                (Said::Failed(error), _) => return Ok(Err(error)),
                _ => return Err(Silence::Refused(out_of_turn(task))),
            }
        }
    }

    /// Keeps the worker for the next task.
    fn give_back(mut self) {
        let young = |w: &mut Worker| {
            w.served < RECYCLE_AFTER && os::processor_time(w.pid()).is_none_or(|used| used < RECYCLE_TIME)
        };
        let Some(worker) = self.worker.take_if(young) else { return };
        let mut state = self.pool.lock();
        let same_role = |w: &Worker| std::mem::discriminant(&w.fit) == std::mem::discriminant(&worker.fit);
        // The one that was idle longest makes room; it ends with the lease, outside of the lock.
        if state.idle.iter().filter(|w| same_role(w)).count() >= self.pool.options.size
            && let Some(oldest) = state.idle.iter().position(same_role)
        {
            self.worker = Some(state.idle.remove(oldest));
        }
        state.idle.push(worker);
    }

    /// Ends the worker and says what it was and how it ended.
    fn end(mut self) -> (&'static str, ExitStatus) {
        self.worker.take().map_or(("worker", ExitStatus::default()), |worker| (worker.fit.name(), worker.end()))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let ended = self.worker.take();
        let mut state = self.pool.lock();
        *state.busy(self.turn) -= 1;
        drop(state);
        // All turns wait on the same condition.
        self.pool.freed.notify_all();
        drop(ended);
    }
}
