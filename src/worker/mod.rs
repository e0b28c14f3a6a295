// SPDX-License-Identifier: PostgreSQL

//! Background workers, and what backends know of them.
//!
//! The folder beside the data of the cluster holds the engine's socket, the launcher's lock, its status and its mailbox,
//! a mark for each database that has jobs, and for a while the repositories that the engine cloned. Its name begins with `pgsql_tmp`, which base backups and `pg_rewind` skip. All
//! paths are relative to the data directory, the working directory of every server process, because a socket's path may
//! have only 107 bytes.
//!
//! Backends speak to the launcher by datagrams and not by signals: the process id in a status file may be somebody
//! else's by now.

pub mod databases;
pub mod dispatcher;
pub mod jobs;
pub mod launcher;
pub mod marks;

use pgrx::bgworkers::{BackgroundWorkerBuilder, BgWorkerStartTime};
use pgrx::pg_sys;
use rag_core::protocol::Supervision;
use rag_core::{Error, Kind, Result};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// Folder of the engine's files.
pub const FOLDER: &str = "pgsql_tmp_pg_rag";
/// The engine's socket.
pub const SOCKET: &str = "pgsql_tmp_pg_rag/engine.sock";
/// Folder for clones of repositories.
pub const CLONES: &str = "pgsql_tmp_pg_rag/clones";
/// Locked by the one launcher.
pub const LOCK: &str = "pgsql_tmp_pg_rag/launcher.lock";
/// Written by the launcher, read by backends.
pub const STATUS: &str = "pgsql_tmp_pg_rag/status.json";
/// Where the launcher takes messages.
pub const MAILBOX: &str = "pgsql_tmp_pg_rag/launcher.sock";

/// Pause before the server starts a launcher of `shared_preload_libraries` again.
const RESTART: Duration = Duration::from_secs(5);

/// What a backend tells the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// There may be work in some database.
    Work,
    /// The engine has not answered for a while.
    Suspect,
}

impl Message {
    fn text(self) -> &'static str {
        match self {
            Message::Work => "work",
            Message::Suspect => "suspect",
        }
    }

    /// Reads what [`Message::text`] wrote.
    pub fn parse(text: &[u8]) -> Option<Self> {
        [Message::Work, Message::Suspect].into_iter().find(|message| message.text().as_bytes() == text)
    }
}

/// Tells the launcher something; false when there is none.
pub fn tell_launcher(message: Message) -> bool {
    let sent = UnixDatagram::unbound().and_then(|socket| {
        socket.set_nonblocking(true)?;
        socket.send_to(message.text().as_bytes(), MAILBOX)
    });
    match sent {
        Ok(_) => true,
        // A full mailbox is being read.
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

/// Whether a launcher holds the lock of this cluster.
pub fn launcher_is_alive() -> bool {
    let Ok(file) = File::open(LOCK) else { return false };
    // SAFETY: a system call on an open descriptor; a shared lock taken here ends with the file.
    let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
    locked != 0
}

fn launcher() -> BackgroundWorkerBuilder {
    BackgroundWorkerBuilder::new("pg_rag launcher")
        .set_type("pg_rag launcher")
        .set_library("pg_rag")
        .set_function("pg_rag_launcher_main")
        // Not for SPI: that would move the start to the end of recovery, and a hot standby embeds queries too.
        .enable_shmem_access(None)
        .set_start_time(BgWorkerStartTime::ConsistentState)
}

/// Asks PostgreSQL for a launcher. Having no free slot is an error only when `last_chance`.
pub fn start_launcher(last_chance: bool) -> Result<()> {
    match launcher().set_restart_time(None).load_dynamic() {
        Err(_) if last_chance => Err(Error::new(Kind::NoResources, "no background worker slot is free for the engine")
            .with_hint("Raise max_worker_processes and restart the server.")),
        _ => Ok(()),
    }
}

/// Registers a launcher that starts with the server; for a library that is loaded by `shared_preload_libraries`.
pub fn preload_launcher() {
    // SAFETY: read while the library is loaded.
    if unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        launcher().set_restart_time(Some(RESTART)).load();
    }
}

/// Tells that the current database has jobs, and has the launcher look at them. Called when they are committed, so it
/// must not fail: what goes wrong is a warning, and the job waits for the next call.
pub fn announce_jobs() {
    // SAFETY: the database of this backend does not change.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    if let Err(error) = marks::set(database, 0) {
        pgrx::warning!("could not announce a job in \"{}\": {error}", marks::FOLDER);
        return;
    }
    if !tell_launcher(Message::Work)
        && !launcher_is_alive()
        && let Err(error) = start_launcher(true)
    {
        pgrx::warning!("the job waits: {}", error.message);
    }
}

/// What the launcher last said.
pub fn supervision() -> Option<Supervision> {
    serde_json::from_slice(&std::fs::read(STATUS).ok()?).ok()
}
