// SPDX-License-Identifier: PostgreSQL

//! The server: one listening socket, a thread for each connection.
//!
//! Owns starting and the state that connections share. The socket is made by the supervisor and inherited, so that
//! callers that connect while the engine restarts wait in its backlog. The engine ends by SIGTERM (no handler), with its
//! starter (death signal, end of standard input), or by a crash; nothing it holds needs saving.

use crate::connection;
use crate::inference::{self, Job};
use crate::models::Models;
use crate::os;
use crate::queue::Queue;
use crate::sandbox::{self, Level};
use crate::workers::{self, Pool};
use rag_core::protocol::{Priority, Status};
use rag_core::{Error, Kind, Result};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections served at once. Each costs a thread; a server with more backends than this needs a pooler anyway.
const MAX_CONNECTIONS: usize = 1000;

/// How long a peer may leave an answer unread.
const WRITE_PATIENCE: Duration = Duration::from_secs(1800);

/// How the server runs.
#[derive(Debug)]
pub struct Options {
    /// Model folder.
    pub models: PathBuf,
    /// ONNX Runtime's library.
    pub onnxruntime: PathBuf,
    /// Threads of each session.
    pub threads: usize,
    /// Parse workers.
    pub parse_workers: usize,
    /// Address space of a worker in bytes; 0 for no limit.
    pub parse_memory: u64,
    /// Folder for clones of repositories; `None`: none are made.
    pub workspaces: Option<PathBuf>,
    /// Bytes of disk that all clones may take.
    pub clone_disk: u64,
    /// Resident memory in bytes above which an idle engine ends, to be started afresh; 0 for no limit.
    pub memory_limit: u64,
    /// Longest that a micro-batch may run.
    pub longest_batch: Duration,
}

/// What all connections share.
#[derive(Debug)]
pub struct Engine {
    /// Models.
    pub models: Arc<Models>,
    /// Requests that wait for inference.
    pub queue: Arc<Queue<Job>>,
    /// Workers.
    pub workers: Pool,
    /// Requests in hand.
    pub requests: AtomicUsize,
    started: Instant,
    connections: AtomicUsize,
    sandbox: Level,
}

impl Engine {
    /// Starts the inference threads, and finds out how far workers can be confined here.
    pub fn start(options: &Options) -> Result<Arc<Self>> {
        let models = Arc::new(Models::new(options.models.clone(), options.onnxruntime.clone()));
        let queue = Arc::new(Queue::default());
        for lane in [Priority::Interactive, Priority::Bulk] {
            inference::start(lane, queue.clone(), models.clone(), options.threads, options.longest_batch)?;
        }
        let workers = Pool::start(workers::Options {
            size: options.parse_workers,
            memory: options.parse_memory,
            models: options.models.clone(),
            workspaces: options.workspaces.clone(),
            clone_disk: options.clone_disk,
        })?;
        let sandbox = sandbox::probe()?;
        if !sandbox.is_full() {
            crate::log(&format!(
                "workers are confined less than they could be, because the kernel lacks parts: {sandbox}"
            ));
        }
        let (requests, connections) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Arc::new(Self { models, queue, workers, requests, started: Instant::now(), connections, sandbox }))
    }

    /// How the engine is.
    pub fn status(&self) -> Status {
        Status {
            pid: std::process::id(),
            memory: os::resident_bytes(),
            models: self.models.names(),
            parse_workers: u32::try_from(self.workers.parsers()).unwrap_or(u32::MAX),
            queued: u32::try_from(self.queue.len()).unwrap_or(u32::MAX),
            uptime_seconds: self.started.elapsed().as_secs(),
            sandbox: self.sandbox.to_string(),
        }
    }
}

/// Serves `listener` until the process ends.
pub fn run(listener: &UnixListener, options: &Options) -> Result<()> {
    os::close_inherited_on_exec();
    os::prefer_as_victim(500);
    os::raise_open_files();
    os::end_with_stdin();
    let engine = Engine::start(options)?;
    if options.memory_limit > 0 {
        watch_memory(engine.clone(), options.memory_limit)?;
    }
    crate::log(&format!("ready, process {}", std::process::id()));
    loop {
        match listener.accept() {
            Ok((stream, _)) => admit(&engine, stream),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => {
                // Usually out of descriptors: the connections that end meanwhile free some.
                crate::log(&format!("could not accept a connection: {e}"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Ends an idle engine that holds more than `limit` bytes; the supervisor starts another, which holds nothing.
fn watch_memory(engine: Arc<Engine>, limit: u64) -> Result<()> {
    const PACE: Duration = Duration::from_secs(15);
    let watch = move || {
        loop {
            std::thread::sleep(PACE);
            let memory = os::resident_bytes();
            // A request that comes in at this very moment finds its connection closed, and its caller asks again.
            if memory > limit && engine.requests.load(Ordering::SeqCst) == 0 {
                crate::log(&format!(
                    "idle with {} MB resident, above the limit of {} MB: ends",
                    memory >> 20,
                    limit >> 20
                ));
                os::end_self();
            }
        }
    };
    let started = std::thread::Builder::new().name("memory".into()).spawn(watch);
    started.map(drop).map_err(|e| Error::new(Kind::OutOfMemory, format!("could not watch the memory: {e}")))
}

fn admit(engine: &Arc<Engine>, stream: UnixStream) {
    if let Err(error) = os::check_peer(&stream) {
        crate::log(&error.message);
        connection::refuse(&stream, error);
        return;
    }
    if engine.connections.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
        engine.connections.fetch_sub(1, Ordering::SeqCst);
        let error = format!("the engine serves {MAX_CONNECTIONS} connections already");
        connection::refuse(
            &stream,
            Error::new(Kind::LimitExceeded, error)
                .with_hint("Retry later, or put a connection pooler before the server."),
        );
        return;
    }
    // A peer that stops reading in the middle of a listing must not hold a worker forever.
    let _ = stream.set_write_timeout(Some(WRITE_PATIENCE));
    let admitted = Admitted(engine.clone());
    let serve = move || connection::serve(&admitted.0, Arc::new(stream));
    if let Err(e) = std::thread::Builder::new().name("connection".into()).spawn(serve) {
        crate::log(&format!("could not start a thread for a connection: {e}"));
    }
}

/// Counts a connection until it ends, however it ends.
struct Admitted(Arc<Engine>);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::SeqCst);
    }
}
