// SPDX-License-Identifier: PostgreSQL

//! Workers as processes: how they are started, what they are fit for, what they may write into the log.
//!
//! They are started by one thread that lives as long as the engine, because the kernel's "kill me with my parent" means
//! the *thread* that started the child. A worker talks over one socket pair instead of two pipes, for the sake of time
//! limits on both reading and writing. Its standard error is a pipe and not the server's log, which a worker that was
//! taken over could fill.
//!
//! Must not know tasks.

use crate::exchange::TICK;
use crate::os;
use rag_core::protocol::ModelSpec;
use rag_core::source::{SourceSpec, Workspace, is_url};
use rag_core::{Error, Kind, Result};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes that one worker may write into the log in its life.
const LOG_BYTES: usize = 64 << 10;

/// Longest line of it.
const LOG_LINE: u64 = 4096;

/// What a worker is fit for. It is confined when it starts and for good, so one that fits another task does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// Lists and reads beneath these paths, or fetches from the network. Confinement holds on to the folders themselves,
    /// so a path that leads to another folder by now (device and number) is another path.
    Acquire { roots: Vec<(String, Option<(u64, u64)>)>, network: bool },
    /// Clones a repository into this folder, with files of at most so many bytes.
    Clone { folder: String, file_size: u64 },
    /// Parses for this model.
    Parse { model: String, max_tokens: u32 },
}

impl Fit {
    /// To list and read a source, or the clone of its repository.
    pub fn acquire(source: &SourceSpec, workspace: Option<&Workspace>) -> Self {
        let root = |path: &String| {
            let identity = std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
            (path.clone(), identity)
        };
        // Whoever talks to the network reads no file.
        let network = workspace.is_none() && is_url(&source.location);
        let roots = match workspace {
            Some(workspace) => vec![root(&workspace.folder)],
            None => source.allowed_paths.iter().filter(|_| !network).map(root).collect(),
        };
        Fit::Acquire { roots, network }
    }

    /// To parse for a model.
    pub fn parse(model: &ModelSpec) -> Self {
        Fit::Parse { model: model.path.clone(), max_tokens: model.max_tokens }
    }

    /// What such a worker is called.
    pub fn name(&self) -> &'static str {
        match self {
            Fit::Acquire { .. } => "acquire worker",
            Fit::Clone { .. } => "clone worker",
            Fit::Parse { .. } => "parse worker",
        }
    }
}

/// A worker that is alive, as far as anybody knows. Dropped, it is killed.
#[derive(Debug)]
pub struct Worker {
    /// What it is fit for.
    pub fit: Fit,
    /// Our end of its socket; reading and writing give up after [`TICK`].
    pub stream: UnixStream,
    /// Tasks it was given.
    pub served: u32,
    child: Child,
}

impl Worker {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it lives and waits for a task. One that spoke without being asked would answer the next task with it.
    pub fn is_idle(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None)) && os::is_quiet(&self.stream)
    }

    /// Ends it and says how it ended: by itself, if it did so already.
    pub fn end(mut self) -> ExitStatus {
        // Its end of the socket closes a moment before its status is there.
        for _ in 0..20 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        self.child.wait().unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts workers.
#[derive(Debug)]
pub struct Starter {
    orders: Mutex<Sender<Order>>,
}

struct Order {
    fit: Fit,
    reply: SyncSender<Result<Worker>>,
}

impl Starter {
    /// Starts the thread that starts workers, each with at most `memory` bytes of address space (0 for no limit).
    pub fn start(models: PathBuf, memory: u64) -> Result<Self> {
        let (sender, orders) = channel();
        let run = move || start_workers(&models, memory, &orders);
        std::thread::Builder::new()
            .name("starter".into())
            .spawn(run)
            .map_err(|e| Error::new(Kind::OutOfMemory, format!("could not start the thread of the workers: {e}")))?;
        Ok(Self { orders: Mutex::new(sender) })
    }

    /// A new worker, which has yet to say that it is ready.
    pub fn order(&self, fit: Fit) -> Result<Worker> {
        let gone = || Error::internal("the thread that starts workers has ended");
        let (reply, worker) = sync_channel(1);
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        orders.send(Order { fit, reply }).map_err(|_| gone())?;
        worker.recv().map_err(|_| gone())?
    }
}

fn start_workers(models: &PathBuf, memory: u64, orders: &Receiver<Order>) {
    for Order { fit, reply } in orders {
        // A lost order means a lost caller; the worker ends with its drop.
        let _ = reply.send(start_worker(models, memory, fit));
    }
}

fn start_worker(models: &PathBuf, memory: u64, fit: Fit) -> Result<Worker> {
    let failed = |e: std::io::Error| {
        Error::new(Kind::NotReady, format!("could not start {} {}: {e}", article(&fit), fit.name()))
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    ours.set_read_timeout(Some(TICK)).and_then(|()| ours.set_write_timeout(Some(TICK))).map_err(failed)?;
    // The running program, even when an upgrade has put another file in its place.
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("pg_rag_engine")
        .arg("worker")
        .args(["--memory", &memory.to_string(), "--parent", &std::process::id().to_string()])
        // Threads in a tokenizer would help nobody who parses one document, and a parse worker may not start any.
        .env("TOKENIZERS_PARALLELISM", "false")
        .stdin(Stdio::from(OwnedFd::from(theirs.try_clone().map_err(failed)?)))
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .stderr(Stdio::piped());
    match &fit {
        Fit::Acquire { roots, network } => {
            command.arg("acquire");
            if *network {
                command.arg("--network");
            }
            for (path, _) in roots {
                command.arg(format!("--allow={path}"));
            }
        }
        Fit::Clone { folder, file_size } => {
            command.args(["clone", "--file-size", &file_size.to_string()]).arg(format!("--folder={folder}"));
        }
        Fit::Parse { model, max_tokens } => {
            command.args(["parse", "--max-tokens", &max_tokens.to_string()]);
            command.arg("--models").arg(models).arg(format!("--model={model}"));
        }
    }
    let mut child = command.spawn().map_err(failed)?;
    let stderr = child.stderr.take();
    let worker = Worker { fit: fit.clone(), stream: ours, served: 0, child };
    if let Some(stderr) = stderr {
        let relay =
            std::thread::Builder::new().name("log".into()).spawn(move || relay(stderr, |line| eprintln!("{line}")));
        relay.map_err(failed)?;
    }
    Ok(worker)
}

fn article(fit: &Fit) -> &'static str {
    match fit {
        Fit::Acquire { .. } => "an",
        Fit::Clone { .. } | Fit::Parse { .. } => "a",
    }
}

/// Passes what a worker prints on to the log until it has printed too much; the rest is read and dropped, so that it
/// is not held up. Control characters are escaped, because a line may quote a document.
fn relay(stderr: impl Read, print: impl Fn(&str)) {
    let mut lines = BufReader::new(stderr);
    let mut left = LOG_BYTES;
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.by_ref().take(LOG_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if left == 0 => {}
            Ok(n) => {
                print(&printable(&line));
                left = left.saturating_sub(n);
                if left == 0 {
                    print("pg_rag_engine: a worker printed too much; the rest of it is left out");
                }
            }
        }
    }
}

fn printable(line: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(line).trim_end().chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::source::{SourceKind, SourceOptions};

    #[test]
    fn a_folder_that_was_replaced_is_another() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().join("root");
        let source = SourceSpec {
            kind: SourceKind::Text,
            location: "/".into(),
            options: SourceOptions::defaults(SourceKind::Text),
            allowed_paths: vec![root.to_str().expect("UTF-8").to_owned()],
            allowed_hosts: Vec::new(),
            seen: None,
        };
        let missing = Fit::acquire(&source, None);
        std::fs::create_dir(&root).expect("folder");
        let first = Fit::acquire(&source, None);
        assert_eq!(first, Fit::acquire(&source, None));
        assert_ne!(first, missing);
        std::fs::rename(&root, folder.path().join("old")).expect("renames");
        std::fs::create_dir(&root).expect("folder");
        assert_ne!(first, Fit::acquire(&source, None));
    }

    #[test]
    fn a_clone_is_read_without_the_network_and_without_what_is_allowed() {
        let folder = tempfile::tempdir().expect("folder");
        let source = SourceSpec {
            kind: SourceKind::Git,
            location: "https://example.org/r".into(),
            options: SourceOptions::defaults(SourceKind::Git),
            allowed_paths: vec!["/".into()],
            allowed_hosts: vec!["example.org".into()],
            seen: None,
        };
        assert_eq!(Fit::acquire(&source, None), Fit::Acquire { roots: Vec::new(), network: true });
        let folder = folder.path().to_str().expect("UTF-8").to_owned();
        let workspace = Workspace { folder: folder.clone(), commit: "1".repeat(40), reference: None };
        let Fit::Acquire { roots, network } = Fit::acquire(&source, Some(&workspace)) else { panic!("another role") };
        assert_eq!((roots.len(), &roots[0].0, network), (1, &folder, false));
    }

    #[test]
    fn what_a_worker_prints_cannot_disturb_the_log() {
        assert_eq!(printable(b"a\x1b[31m\xffb\r\n"), "a\\u{1b}[31m\u{FFFD}b");
        let printed = std::cell::RefCell::new(Vec::new());
        let mut flood = "x".repeat(100).into_bytes();
        flood.push(b'\n');
        let mut flood = std::io::Cursor::new(flood.repeat(10_000));
        relay(&mut flood, |line| printed.borrow_mut().push(line.to_owned()));
        let printed = printed.into_inner();
        assert_eq!(printed.len(), LOG_BYTES.div_ceil(101) + 1);
        assert!(printed.last().is_some_and(|line| line.contains("printed too much")));
        assert_eq!(flood.position(), 1_010_000, "the worker would be held up");
    }
}
