// SPDX-License-Identifier: PostgreSQL

//! The launcher: one small background worker per cluster that keeps the engine running.
//!
//! It owns the lock, the listening socket, the mailbox and the engine's process; it connects to no database, so it blocks no DROP
//! DATABASE, and holds no model, so it has nothing to die of: the death of a background worker by a signal would
//! restart every session. Because the socket is the launcher's, clients that connect while the engine restarts wait in
//! its backlog instead of failing.
//!
//! Starting workers for jobs is the [`Dispatcher`]'s. A backend that waits in vain says so by the mailbox, and the
//! launcher replaces an engine that does not answer it either.
//!
//! The engine cannot outlive it: the kernel kills the engine when its parent dies, and the engine itself ends when its
//! standard input closes.

use super::dispatcher::Dispatcher;
use super::{CLONES, FOLDER, LOCK, MAILBOX, Message, SOCKET, STATUS};
use crate::engine_client;
use crate::guc::{self, EngineSettings};
use pgrx::bgworkers::{BackgroundWorker, SignalWakeFlags};
use pgrx::{pg_guard, pg_sys};
use rag_core::protocol::{Request, Supervision};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// First pause before a restart; doubles with every failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before a restart.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// An engine that lived so long did start.
const HEALTHY: Duration = Duration::from_secs(10);

/// An engine younger than this is not examined.
const YOUTH: Duration = Duration::from_secs(3);
/// How long an engine may take to say how it is.
const PULSE: Duration = Duration::from_secs(3);

/// Entry point of the background worker.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_rag_launcher_main(_arg: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(
        SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM | SignalWakeFlags::SIGCHLD,
    );
    match Launcher::claim() {
        Ok(Some(mut launcher)) => launcher.run(),
        // Another launcher is at work already.
        Ok(None) => {}
        Err(error) => pgrx::log!("pg_rag launcher: {error}"),
    }
}

struct Launcher {
    _lock: File,
    listener: UnixListener,
    mailbox: UnixDatagram,
    dispatcher: Dispatcher,
    engine: Option<(Child, Instant)>,
    next_start: Instant,
    started_before: bool,
    settings: EngineSettings,
    state: Supervision,
}

impl Launcher {
    /// Takes the lock and opens the socket; `None` when another launcher has the lock.
    fn claim() -> io::Result<Option<Self>> {
        match std::fs::DirBuilder::new().mode(0o700).create(FOLDER) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => std::fs::set_permissions(FOLDER, std::fs::Permissions::from_mode(0o700))?,
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(LOCK)?;
        if !take_lock(&lock) {
            return Ok(None);
        }
        for socket in [SOCKET, MAILBOX] {
            match std::fs::remove_file(socket) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // The folder is closed to others, so the socket's own mode may be set after it exists.
        let listener = UnixListener::bind(SOCKET)?;
        std::fs::set_permissions(SOCKET, std::fs::Permissions::from_mode(0o600))?;
        let mailbox = UnixDatagram::bind(MAILBOX)?;
        mailbox.set_nonblocking(true)?;
        let state = Supervision { launcher_pid: std::process::id(), ..Supervision::default() };
        let now = Instant::now();
        Ok(Some(Self {
            _lock: lock,
            listener,
            mailbox,
            dispatcher: Dispatcher::default(),
            engine: None,
            next_start: now,
            started_before: false,
            settings: guc::engine_settings(),
            state,
        }))
    }

    fn run(&mut self) {
        loop {
            self.read_mail();
            self.reap();
            self.start_when_due();
            let jobs = self.dispatcher.run(guc::job_lease());
            let start = self.engine.is_none().then(|| self.next_start.saturating_duration_since(Instant::now()));
            // With an engine at work and no jobs there is nothing to do until a signal or a message comes.
            let pause = [jobs, start].into_iter().flatten().min();
            if !wait(self.mailbox.as_raw_fd(), pause.map(|p| p.max(Duration::from_millis(1)))) {
                break;
            }
            if BackgroundWorker::sighup_received() {
                // SAFETY: this is what every server process does on SIGHUP.
                unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
                self.reloaded();
            }
        }
        self.stop();
    }

    /// Takes all messages. Those that say there is work only have to wake the launcher.
    fn read_mail(&mut self) {
        let mut text = [0; 64];
        let mut suspected = false;
        while let Ok(length) = self.mailbox.recv(&mut text) {
            suspected |= text.get(..length).and_then(Message::parse) == Some(Message::Suspect);
        }
        if suspected {
            self.examine();
        }
    }

    /// Replaces an engine that does not say how it is. It has threads that do nothing but answer; one that has just
    /// started is given time.
    fn examine(&mut self) {
        let Some((child, since)) = self.engine.as_mut().filter(|(_, since)| since.elapsed() >= YOUTH) else { return };
        if engine_client::peek(&Request::Status, PULSE).is_some() {
            return;
        }
        pgrx::log!(
            "pg_rag launcher: engine {} does not answer any more after {:?} and is replaced",
            child.id(),
            since.elapsed()
        );
        if let Err(error) = child.kill() {
            pgrx::log!("pg_rag launcher: could not stop the engine: {error}");
        }
    }

    /// Settings that kept the engine from starting, or from loading its models, may be right now.
    fn reloaded(&mut self) {
        self.state.failures = 0;
        self.next_start = Instant::now();
        if let Some((child, _)) = self.engine.as_mut().filter(|_| self.settings != guc::engine_settings()) {
            pgrx::log!("pg_rag launcher: restarting the engine with other settings");
            if let Err(error) = child.kill() {
                pgrx::log!("pg_rag launcher: could not stop the engine: {error}");
            }
        }
    }

    fn reap(&mut self) {
        let Some((child, since)) = &mut self.engine else { return };
        let status = match child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => status,
            Err(error) => {
                pgrx::log!("pg_rag launcher: could not wait for the engine: {error}");
                return;
            }
        };
        let healthy = since.elapsed() >= HEALTHY || killed_from_outside(status);
        self.engine = None;
        self.ended(format!("the engine ended: {status}"), healthy);
    }

    fn start_when_due(&mut self) {
        if self.engine.is_some() || Instant::now() < self.next_start {
            return;
        }
        self.settings = guc::engine_settings();
        match spawn(&self.settings, &self.listener) {
            Ok(child) => {
                self.state.engine_pid = child.id();
                self.state.restarts += u32::from(self.started_before);
                self.started_before = true;
                self.engine = Some((child, Instant::now()));
                self.publish();
            }
            Err(error) => self.ended(format!("could not start \"{}\": {error}", self.settings.program), false),
        }
    }

    fn ended(&mut self, why: String, healthy: bool) {
        pgrx::log!("pg_rag launcher: {why}");
        self.state.failures = if healthy { 0 } else { self.state.failures + 1 };
        self.state.engine_pid = 0;
        self.state.last_error = Some(why);
        let pause = FIRST_PAUSE.saturating_mul(1 << self.state.failures.min(10)).min(LONGEST_PAUSE);
        self.next_start = Instant::now() + if healthy { FIRST_PAUSE } else { pause };
        self.publish();
    }

    fn stop(&mut self) {
        if let Some((mut child, _)) = self.engine.take() {
            // It has nothing to save, and a stopping server must not wait for it.
            if let Err(error) = child.kill().and_then(|()| child.wait()) {
                pgrx::log!("pg_rag launcher: could not stop the engine: {error}");
            }
        }
        for file in [SOCKET, MAILBOX, STATUS] {
            let _ = std::fs::remove_file(file);
        }
        // What stays, because a worker of the engine was still ending, goes when the next engine starts.
        let _ = std::fs::remove_dir_all(CLONES);
    }

    /// Writes the status for backends, whole or not at all.
    fn publish(&self) {
        let write = || -> io::Result<()> {
            let temporary = format!("{STATUS}.new");
            std::fs::write(&temporary, serde_json::to_vec(&self.state)?)?;
            std::fs::rename(&temporary, STATUS)
        };
        if let Err(error) = write() {
            pgrx::log!("pg_rag launcher: could not write \"{STATUS}\": {error}");
        }
    }
}

/// Waits for a signal, a message or the time; false when this worker is to end.
fn wait(mailbox: i32, pause: Option<Duration>) -> bool {
    let wanted = pg_sys::WL_LATCH_SET | pg_sys::WL_EXIT_ON_PM_DEATH | pg_sys::WL_SOCKET_READABLE;
    let (wanted, time) = match pause {
        Some(pause) => (wanted | pg_sys::WL_TIMEOUT, pause.as_millis().clamp(1, 3_600_000) as i64),
        None => (wanted, -1),
    };
    // SAFETY: MyLatch is this process's own latch, and the mailbox is open as long as the launcher.
    unsafe {
        let (latch, reason) = (pg_sys::MyLatch, pg_sys::PG_WAIT_EXTENSION);
        let happened = pg_sys::WaitLatchOrSocket(latch, wanted as i32, mailbox, time as _, reason);
        if happened as u32 & pg_sys::WL_LATCH_SET != 0 {
            pg_sys::ResetLatch(latch);
        }
    }
    pgrx::check_for_interrupts!();
    !BackgroundWorker::sigterm_received()
}

/// Takes the exclusive lock. A backend that is just looking holds it shared for a moment, hence the second tries.
fn take_lock(file: &File) -> bool {
    for _ in 0..20 {
        // SAFETY: a system call on an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Whether somebody killed the engine, as opposed to it failing by itself.
fn killed_from_outside(status: ExitStatus) -> bool {
    matches!(status.signal(), Some(libc::SIGKILL | libc::SIGTERM | libc::SIGINT))
}

fn spawn(settings: &EngineSettings, listener: &UnixListener) -> io::Result<Child> {
    let socket = listener.as_raw_fd();
    let parent = std::process::id();
    let mut command = Command::new(&settings.program);
    command
        .arg("serve")
        .args(["--listen-fd", &socket.to_string()])
        .args(["--models", &settings.models])
        .args(["--onnxruntime", &settings.onnxruntime])
        .args(["--workspaces", CLONES])
        .args(["--threads", &settings.threads.to_string()])
        .args(["--parse-workers", &settings.parse_workers.to_string()])
        .args(["--parse-memory", &settings.parse_memory.to_string()])
        .args(["--clone-disk", &settings.clone_disk.to_string()])
        .args(["--memory-limit", &settings.memory_limit.to_string()])
        .env_clear()
        .stdin(Stdio::piped());
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(move || prepare_child(parent, socket));
    }
    command.spawn()
}

/// Runs in the child between fork and exec: it must end with its parent, start with clean signals and inherit nothing
/// but the socket.
fn prepare_child(parent: u32, socket: i32) -> io::Result<()> {
    // SAFETY: system calls with plain arguments; the memory they touch is on this stack.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != parent {
            return Err(io::Error::other("the launcher ended"));
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        for signal in 1..65 {
            if signal != libc::SIGKILL && signal != libc::SIGSTOP {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        // Close on exec rather than now: the pipe on which std reports a failed exec must live until then.
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        if libc::fcntl(socket, libc::F_SETFD, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
