// SPDX-License-Identifier: PostgreSQL

//! The pool of parse workers.
//!
//! Owns the children: starting, lending, timing, replacing. A document that crashes a worker, hangs or takes too much
//! memory costs itself and one child; its reply says which of these happened. It must not know documents beyond their
//! URI.
//!
//! Children are started by one thread that lives as long as the engine, because the kernel's "kill me with my parent"
//! means the *thread* that started the child. A child talks over one socket pair instead of two pipes, for the sake of
//! time limits on both reading and writing.

use crate::os;
use crate::parse_worker::{failed, uri};
use rag_core::protocol::{Answer, Reply, Request, decode, encode, frame_length};
use rag_core::{Error, Kind, Result};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Documents after which an idle child is replaced: whatever it leaked goes with it.
const RECYCLE_AFTER: u32 = 2000;

/// How often a waiting thread looks whether its peer is still there.
const TICK: Duration = Duration::from_millis(100);

/// A listing may take hours over millions of records, but not this long for its next page.
const LISTING_SILENCE: Duration = Duration::from_secs(600);

/// How the pool runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Documents parsed at once; as many listings may run beside them.
    pub size: usize,
    /// Address space of a child in bytes; 0 for no limit.
    pub memory: u64,
    /// Model folder, for the tokenizers.
    pub models: PathBuf,
}

/// The pool.
#[derive(Debug)]
pub struct Pool {
    options: Options,
    state: Mutex<State>,
    freed: Condvar,
    starter: Mutex<Sender<SyncSender<Result<Worker>>>>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Worker>,
    documents: usize,
    listings: usize,
}

/// One child.
#[derive(Debug)]
struct Worker {
    child: Child,
    stream: UnixStream,
    served: u32,
}

/// Why a child gave no answer.
enum Silence {
    /// Its time is up.
    TimedOut,
    /// Whoever asked has gone.
    Unwanted,
    /// It ended, or said something that is no answer.
    Broken(String),
}

/// What to do with the frames of an answer that are not the last; an error stops the work.
pub type Forward<'a> = &'a mut dyn FnMut(Reply) -> Result<()>;

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pool {
    /// A pool without children; they start when needed.
    pub fn start(options: Options) -> Result<Self> {
        let (starter, orders) = channel();
        let of_thread = options.clone();
        std::thread::Builder::new().name("starter".into()).spawn(move || start_children(&of_thread, &orders)).map_err(
            |e| Error::new(Kind::OutOfMemory, format!("could not start the thread of the parse workers: {e}")),
        )?;
        Ok(Self { options, state: Mutex::default(), freed: Condvar::new(), starter: Mutex::new(starter) })
    }

    /// Documents that can be parsed at once.
    pub fn size(&self) -> usize {
        self.options.size
    }

    /// Children that are alive.
    pub fn alive(&self) -> usize {
        let state = self.lock();
        state.idle.len() + state.documents + state.listings
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a child answer a request for one document within `seconds`; `None` when the peer has gone.
    ///
    /// Whatever the document does to the child becomes a [`Reply::Document`] with a failure.
    pub fn document(&self, request: &Request, seconds: u32, peer: Option<&UnixStream>) -> Result<Option<Reply>> {
        let uri = uri(request).unwrap_or_default();
        let Some(mut lease) = self.borrow(false, peer)? else { return Ok(None) };
        let limit = Duration::from_secs(u64::from(seconds));
        let answer = lease.exchange(request, limit, peer, &mut |_| Err(Error::internal("a document has one frame")));
        let failure = |error| Ok(Some(failed(uri, error)));
        match answer {
            Ok(reply) => {
                lease.give_back();
                Ok(Some(reply))
            }
            Err(Silence::Unwanted) => Ok(None),
            Err(Silence::TimedOut) => failure(
                Error::new(Kind::LimitExceeded, format!("parsing \"{uri}\" took longer than {seconds} s")).with_hint(
                    "Raise \"max_seconds\" in the \"limits\" of the source's options, or leave the document out.",
                ),
            ),
            Err(Silence::Broken(why)) => failure(self.obituary(&lease.end(), &why, &format!("reading \"{uri}\""))),
        }
    }

    /// Has a child list a source and passes its pages on; `None` when the peer has gone.
    pub fn list(&self, request: &Request, peer: &UnixStream, forward: Forward<'_>) -> Result<Option<Reply>> {
        let Some(mut lease) = self.borrow(true, Some(peer))? else { return Ok(None) };
        match lease.exchange(request, LISTING_SILENCE, Some(peer), forward) {
            Ok(reply) => {
                lease.give_back();
                Ok(Some(reply))
            }
            Err(Silence::Unwanted) => Ok(None),
            Err(Silence::TimedOut) => Err(Error::new(
                Kind::LimitExceeded,
                format!("listing found nothing more for {} s", LISTING_SILENCE.as_secs()),
            )),
            Err(Silence::Broken(why)) => Err(self.obituary(&lease.end(), &why, "listing the source")),
        }
    }

    /// What to tell about a child that ended while doing something.
    fn obituary(&self, status: &ExitStatus, why: &str, doing: &str) -> Error {
        let megabytes = self.options.memory >> 20;
        match status.signal() {
            // Allocation failures and stack overflows abort; panics do not come this far.
            Some(6) => Error::new(Kind::LimitExceeded, format!("parse worker ran out of memory while {doing}"))
                .with_detail(format!("A parse worker may use {megabytes} MB of address space, and its stack."))
                .with_hint("Leave the document out with the source's \"ignore\" option, or give the engine a higher --parse-memory."),
            Some(9) => Error::internal(format!("parse worker was killed while {doing}"))
                .with_detail("Somebody sent it signal 9, or the machine ran out of memory."),
            Some(signal) => Error::new(Kind::BadContent, format!("parse worker died by signal {signal} while {doing}"))
                .with_detail("The content made a parser crash; nothing else was harmed."),
            None => Error::internal(format!("parse worker ended while {doing}")).with_detail(format!("{why}; {status}.")),
        }
    }

    /// Waits for a turn and takes an idle child or a new one.
    fn borrow(&self, listing: bool, peer: Option<&UnixStream>) -> Result<Option<Lease<'_>>> {
        let mut state = self.lock();
        // A listing waits on its reader; it must not keep documents from being read, nor the other way round.
        let busy = |state: &State| if listing { state.listings } else { state.documents };
        while busy(&state) >= self.options.size {
            state = self.freed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
            if peer.is_some_and(os::is_gone) {
                return Ok(None);
            }
        }
        *if listing { &mut state.listings } else { &mut state.documents } += 1;
        let mut idle = state.idle.pop();
        // One that ended while it was idle is nobody's failure.
        while idle.as_mut().is_some_and(|w| !matches!(w.child.try_wait(), Ok(None))) {
            idle = state.idle.pop();
        }
        drop(state);
        // From here on the turn is given back even when starting fails.
        let mut lease = Lease { pool: self, listing, worker: None };
        lease.worker = Some(match idle {
            Some(worker) => worker,
            None => self.order()?,
        });
        Ok(Some(lease))
    }

    /// A new child.
    fn order(&self) -> Result<Worker> {
        let gone = || Error::internal("the thread that starts parse workers has ended");
        let (reply, child) = sync_channel(1);
        let starter = self.starter.lock().unwrap_or_else(PoisonError::into_inner).clone();
        starter.send(reply).map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }
}

/// A child on loan. Dropped without [`Lease::give_back`], the child is killed.
struct Lease<'a> {
    pool: &'a Pool,
    listing: bool,
    worker: Option<Worker>,
}

impl Lease<'_> {
    fn exchange(
        &mut self,
        request: &Request,
        limit: Duration,
        peer: Option<&UnixStream>,
        forward: Forward<'_>,
    ) -> std::result::Result<Reply, Silence> {
        let Some(worker) = self.worker.as_mut() else {
            return Err(Silence::Broken("it was given back already".to_owned()));
        };
        worker.served += 1;
        let broken = |e: Error| Silence::Broken(e.message);
        let mut watch = Watch { deadline: Instant::now() + limit, peer };
        watch.write(&worker.stream, &encode(request).map_err(broken)?)?;
        loop {
            let mut head = [0; 4];
            watch.read(&worker.stream, &mut head)?;
            let mut body = vec![0; frame_length(head).map_err(broken)?];
            watch.read(&worker.stream, &mut body)?;
            let Answer { reply, last } = decode(&body).map_err(broken)?;
            if last {
                return Ok(reply);
            }
            // The only thing that fails here is writing to the peer.
            forward(reply).map_err(|_| Silence::Unwanted)?;
            watch.deadline = Instant::now() + limit;
        }
    }

    /// Keeps the child for the next request.
    fn give_back(mut self) {
        let mut state = self.pool.lock();
        if let Some(worker) = self.worker.take_if(|w| w.served < RECYCLE_AFTER) {
            if state.idle.len() < self.pool.options.size {
                state.idle.push(worker);
            } else {
                self.worker = Some(worker); // ended with the lease, outside of the lock
            }
        }
    }

    /// Ends the child and says how it ended: by itself, if it did so already.
    fn end(mut self) -> ExitStatus {
        let Some(mut worker) = self.worker.take() else { return ExitStatus::default() };
        // Its end of the socket closes a moment before its status is there.
        for _ in 0..20 {
            if let Ok(Some(status)) = worker.child.try_wait() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = worker.child.kill();
        worker.child.wait().unwrap_or_default()
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let ended = self.worker.take();
        let mut state = self.pool.lock();
        *if self.listing { &mut state.listings } else { &mut state.documents } -= 1;
        drop(state);
        // Listings and documents wait on the same condition.
        self.pool.freed.notify_all();
        drop(ended);
    }
}

/// Blocking input and output that ends with a deadline or when the peer leaves.
struct Watch<'a> {
    deadline: Instant,
    peer: Option<&'a UnixStream>,
}

impl Watch<'_> {
    fn read(&self, mut stream: &UnixStream, buffer: &mut [u8]) -> std::result::Result<(), Silence> {
        let mut filled = 0;
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(Silence::Broken("it closed its connection".to_owned())),
                Ok(n) => filled += n,
                Err(e) => self.go_on(&e)?,
            }
        }
        Ok(())
    }

    fn write(&self, mut stream: &UnixStream, mut bytes: &[u8]) -> std::result::Result<(), Silence> {
        while !bytes.is_empty() {
            match stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) => self.go_on(&e)?,
            }
        }
        Ok(())
    }

    fn go_on(&self, error: &std::io::Error) -> std::result::Result<(), Silence> {
        match error.kind() {
            ErrorKind::Interrupted => return Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
            _ => return Err(Silence::Broken(error.to_string())),
        }
        if self.peer.is_some_and(os::is_gone) {
            return Err(Silence::Unwanted);
        }
        if Instant::now() >= self.deadline {
            return Err(Silence::TimedOut);
        }
        Ok(())
    }
}

fn start_children(options: &Options, orders: &Receiver<SyncSender<Result<Worker>>>) {
    for order in orders {
        // A lost order means a lost caller; the child ends with its drop.
        let _ = order.send(start_child(options));
    }
}

fn start_child(options: &Options) -> Result<Worker> {
    let failed = |e: std::io::Error| Error::new(Kind::NotReady, format!("could not start a parse worker: {e}"));
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    ours.set_read_timeout(Some(TICK)).and_then(|()| ours.set_write_timeout(Some(TICK))).map_err(failed)?;
    // The running program, even when an upgrade has put another file in its place.
    let child = Command::new("/proc/self/exe")
        .arg0("pg_rag_engine")
        .arg("parse-worker")
        .arg("--models")
        .arg(&options.models)
        .args(["--memory", &options.memory.to_string(), "--parent", &std::process::id().to_string()])
        .stdin(Stdio::from(OwnedFd::from(theirs.try_clone().map_err(failed)?)))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .map_err(failed)?;
    Ok(Worker { child, stream: ours, served: 0 })
}
