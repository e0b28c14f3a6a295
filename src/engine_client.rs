// SPDX-License-Identifier: PostgreSQL

//! The only way from a backend to the engine.
//!
//! Owns the connection, the waiting and the retry. A backend must stay cancellable, so it never blocks in a system
//! call: it waits on its latch and the socket together and checks for interrupts at each wake-up. An exchange that is
//! left half-way (cancelled, failed) drops its connection, which tells the engine to drop the request and makes it
//! impossible to read somebody else's answer later. A connection that breaks before its first answer is retried once:
//! all requests are free of side effects.
//!
//! An engine that says nothing for a second is suspected, however many statements gave up waiting meanwhile, and the
//! launcher is told. It asks the engine how it is: one that is busy answers, one that hangs is replaced, and the request is
//! sent once more like after a crash.
//!
//! When nobody listens, the client asks PostgreSQL for the launcher (see [`crate::worker::launcher`]) and tries again
//! until the start timeout; the launcher keeps the listening socket, so later restarts of the engine only delay.

use crate::guc::Waits;
use crate::worker::{self, Message, SOCKET};
use pgrx::{check_for_interrupts, pg_sys};
use rag_core::protocol::{Answer, PROTOCOL_VERSION, Reply, Request, Supervision, decode, encode, frame_length};
use rag_core::{Error, Kind, Result};
use std::cell::{Cell, RefCell};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Starts in a row that may fail before clients stop waiting.
const MAX_FAILURES: u32 = 3;
/// Longest sleep between two looks at the state of things.
const TICK: Duration = Duration::from_millis(500);
/// How long all worker slots may be taken before that is an error: launchers that found another one end in a moment.
const SLOT_PATIENCE: Duration = Duration::from_secs(2);
/// Silence after which the launcher is asked to look after the engine, and pause between two such requests.
const SUSPICION: Duration = Duration::from_secs(1);
/// Pause between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

thread_local! {
    /// The idle connection of this backend.
    static IDLE: RefCell<Option<Connection>> = const { RefCell::new(None) };
    /// Since when the engine owes this backend an answer, over all connections, or since when the launcher was told.
    static SILENT_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sends a request that has one reply.
pub fn ask(request: &Request, waits: Waits) -> Result<Reply> {
    let mut only = None;
    stream(request, waits, &mut |reply| {
        only = Some(reply);
        Ok(())
    })?;
    only.ok_or_else(|| Error::new(Kind::Connection, "the engine gave no answer"))
}

/// Sends a request and hands each reply to `consume` as it arrives.
pub fn stream(request: &Request, waits: Waits, consume: &mut dyn FnMut(Reply) -> Result<()>) -> Result<()> {
    let frame = encode(request)?;
    let mut retried = false;
    loop {
        let mut answered = false;
        let result = exchange(&frame, waits, &mut |reply| {
            answered = true;
            consume(reply)
        });
        match result {
            Err(error) if error.kind == Kind::Connection && !answered && !retried => retried = true,
            // What the messages themselves are wrong about is found where nobody knows whom to ask.
            Err(error) if error.kind == Kind::Connection && error.hint.is_none() => return Err(error.with_hint(AGAIN)),
            other => return other,
        }
    }
}

fn exchange(frame: &[u8], waits: Waits, consume: &mut dyn FnMut(Reply) -> Result<()>) -> Result<()> {
    // One whose engine has died meanwhile is no failure of this request.
    let mut connection = match IDLE.with(|idle| idle.borrow_mut().take()).filter(Connection::is_idle) {
        Some(connection) => connection,
        None => open(waits)?,
    };
    connection.send(frame, waits.request)?;
    loop {
        let answer = connection.receive(waits.request)?;
        match answer.reply {
            Reply::Error(error) => {
                if answer.last {
                    IDLE.with(|idle| idle.borrow_mut().replace(connection));
                }
                return Err(error);
            }
            reply => consume(reply)?,
        }
        if answer.last {
            IDLE.with(|idle| idle.borrow_mut().replace(connection));
            return Ok(());
        }
    }
}

/// The engine's answer if it runs and is idle enough to say something within `patience`; never starts it.
pub fn peek(request: &Request, patience: Duration) -> Option<Reply> {
    let mut connection = Connection::connect().ok()?;
    connection.handshake(patience).ok()?;
    connection.send(&encode(request).ok()?, patience).ok()?;
    connection.receive(patience).ok().map(|answer| answer.reply)
}

/// Connects, starting the launcher when nobody listens.
fn open(waits: Waits) -> Result<Connection> {
    let start = Instant::now();
    let deadline = start + waits.start;
    loop {
        match Connection::connect() {
            Ok(mut connection) => {
                connection.handshake(waits.start)?;
                return Ok(connection);
            }
            Err(error) if nobody_listens(&error) => {
                if !worker::launcher_is_alive() {
                    worker::start_launcher(start.elapsed() >= SLOT_PATIENCE.min(waits.start))?;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(connection_error(&format!("could not connect to the engine: {error}"))),
        }
        if Instant::now() >= deadline {
            return Err(not_started(worker::supervision()));
        }
        pause(CONNECT_PAUSE);
    }
}

fn nobody_listens(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused)
}

fn not_started(state: Option<Supervision>) -> Error {
    let mut error = Error::new(Kind::NotReady, "the engine did not start")
        .with_hint("See the server log, and SELECT * FROM rag.health();");
    error.detail = state.and_then(|s| s.last_error);
    error
}

/// What to do about a lost connection.
const AGAIN: &str = "Try again; if it happens again see the server log and SELECT * FROM rag.health();";

fn connection_error(message: &str) -> Error {
    Error::new(Kind::Connection, message).with_hint(AGAIN)
}

/// The error for a reply that does not answer what was asked.
pub fn unexpected() -> Error {
    connection_error("the engine answered something else than was asked")
}

/// Sleeps for a while, or until this process is told something.
pub fn pause(time: Duration) {
    wait(None, 0, time);
}

/// Waits for the latch, the socket or the time; handles interrupts.
fn wait(socket: Option<RawFd>, events: u32, time: Duration) {
    let mut wanted = pg_sys::WL_LATCH_SET | pg_sys::WL_EXIT_ON_PM_DEATH | pg_sys::WL_TIMEOUT;
    if socket.is_some() {
        wanted |= events;
    }
    // SAFETY: MyLatch is this process's own latch and the descriptor is open for the duration of the call.
    unsafe {
        let happened = pg_sys::WaitLatchOrSocket(
            pg_sys::MyLatch,
            wanted as i32,
            socket.unwrap_or(pg_sys::PGINVALID_SOCKET),
            time.as_millis().clamp(1, 60_000) as _,
            pg_sys::PG_WAIT_EXTENSION,
        );
        if happened as u32 & pg_sys::WL_LATCH_SET != 0 {
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
    check_for_interrupts!();
}

/// A connection to the engine.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
}

impl Connection {
    fn connect() -> std::io::Result<Self> {
        // SAFETY: plain system calls on a descriptor that is owned from the first line on.
        unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(std::io::Error::last_os_error());
            }
            let socket = OwnedFd::from_raw_fd(fd);
            let mut address: libc::sockaddr_un = std::mem::zeroed();
            address.sun_family = libc::AF_UNIX as libc::sa_family_t;
            for (to, from) in address.sun_path.iter_mut().zip(SOCKET.bytes()) {
                *to = from as libc::c_char;
            }
            let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
            if libc::connect(fd, (&raw const address).cast(), size) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(Self { socket })
        }
    }

    /// Whether the other end is open and has said nothing unasked.
    fn is_idle(&self) -> bool {
        let mut byte = 0u8;
        // SAFETY: a system call on an open descriptor with room for one byte; it does not block, nor take the byte.
        let peeked = unsafe {
            libc::recv(self.socket.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT)
        };
        peeked < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock
    }

    fn handshake(&mut self, patience: Duration) -> Result<()> {
        self.send(&encode(&Request::Hello { version: PROTOCOL_VERSION.to_owned() })?, patience)?;
        match self.receive(patience)?.reply {
            Reply::Hello { version, .. } if version == PROTOCOL_VERSION => Ok(()),
            Reply::Hello { version, .. } => Err(Error::new(
                Kind::NotReady,
                format!("the engine speaks version \"{version}\" and this library \"{PROTOCOL_VERSION}\""),
            )
            .with_hint("Restart the server after an upgrade.")),
            Reply::Error(error) => Err(error),
            _ => Err(unexpected()),
        }
    }

    fn send(&mut self, mut bytes: &[u8], patience: Duration) -> Result<()> {
        SILENT_SINCE.set(SILENT_SINCE.get().or_else(|| Some(Instant::now())));
        let mut deadline = Instant::now() + patience;
        while !bytes.is_empty() {
            // SAFETY: the pointer and length are those of a slice that lives through the call.
            let sent =
                unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
            match usize::try_from(sent) {
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    deadline = Instant::now() + patience;
                }
                Err(_) => self.would_block(pg_sys::WL_SOCKET_WRITEABLE, deadline)?,
            }
        }
        Ok(())
    }

    fn receive(&mut self, patience: Duration) -> Result<Answer> {
        let mut head = [0; 4];
        self.fill(&mut head, patience)?;
        let mut body = vec![0; frame_length(head)?];
        self.fill(&mut body, patience)?;
        decode(&body)
    }

    fn fill(&mut self, mut into: &mut [u8], patience: Duration) -> Result<()> {
        let mut deadline = Instant::now() + patience;
        while !into.is_empty() {
            // SAFETY: the pointer and length are those of a slice that lives through the call.
            let got = unsafe { libc::recv(self.socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), 0) };
            match usize::try_from(got) {
                Ok(0) => return Err(connection_error("the engine closed the connection")),
                Ok(got) => {
                    into = &mut into[got..];
                    SILENT_SINCE.set(None);
                    deadline = Instant::now() + patience;
                }
                Err(_) => self.would_block(pg_sys::WL_SOCKET_READABLE, deadline)?,
            }
        }
        Ok(())
    }

    /// Waits after a call that would have blocked; other errors are the connection's end.
    fn would_block(&self, events: u32, deadline: Instant) -> Result<()> {
        let error = std::io::Error::last_os_error();
        match error.kind() {
            std::io::ErrorKind::WouldBlock => {}
            std::io::ErrorKind::Interrupted => return Ok(()),
            _ => return Err(connection_error(&format!("lost the connection to the engine: {error}"))),
        }
        let now = Instant::now();
        if now >= deadline {
            return Err(Error::new(Kind::NotReady, "the engine did not answer in time")
                .with_detail("The time is set by pg_rag.request_timeout (pg_rag.start_timeout while it starts).")
                .with_hint("See what it is doing: SELECT * FROM rag.health();"));
        }
        // Before the wait, which may end with the statement.
        if SILENT_SINCE.get().is_some_and(|since| since.elapsed() >= SUSPICION) {
            worker::tell_launcher(Message::Suspect);
            SILENT_SINCE.set(Some(Instant::now()));
        }
        wait(Some(self.socket.as_raw_fd()), events, TICK.min(deadline - now));
        match worker::supervision() {
            Some(state) if state.engine_pid == 0 && state.failures >= MAX_FAILURES => Err(not_started(Some(state))),
            _ => Ok(()),
        }
    }
}
