// SPDX-License-Identifier: PostgreSQL

//! Background workers, and what backends know of them.
//!
//! The folder beside the data of the cluster holds the engine's socket, the launcher's lock and its status. Its name
//! begins with `pgsql_tmp`, which base backups and `pg_rewind` skip. All paths are relative to the data directory, the
//! working directory of every server process, because a socket's path may have only 107 bytes.

pub mod launcher;

use pgrx::bgworkers::{BackgroundWorkerBuilder, BgWorkerStartTime};
use rag_core::protocol::Supervision;
use rag_core::{Error, Kind, Result};
use std::fs::File;
use std::os::fd::AsRawFd;

/// Folder of the engine's files.
pub const FOLDER: &str = "pgsql_tmp_pg_rag";
/// The engine's socket.
pub const SOCKET: &str = "pgsql_tmp_pg_rag/engine.sock";
/// Locked by the one launcher.
pub const LOCK: &str = "pgsql_tmp_pg_rag/launcher.lock";
/// Written by the launcher, read by backends.
pub const STATUS: &str = "pgsql_tmp_pg_rag/status.json";

/// Whether a launcher holds the lock of this cluster.
pub fn launcher_is_alive() -> bool {
    let Ok(file) = File::open(LOCK) else { return false };
    // SAFETY: a system call on an open descriptor; a shared lock taken here ends with the file.
    let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
    locked != 0
}

/// Asks PostgreSQL for a launcher. Having no free slot is an error only when `last_chance`.
pub fn start_launcher(last_chance: bool) -> Result<()> {
    let worker = BackgroundWorkerBuilder::new("pg_rag launcher")
        .set_type("pg_rag launcher")
        .set_library("pg_rag")
        .set_function("pg_rag_launcher_main")
        .enable_shmem_access(None)
        // A hot standby embeds queries too.
        .set_start_time(BgWorkerStartTime::ConsistentState)
        .set_restart_time(None)
        .load_dynamic();
    match worker {
        Err(_) if last_chance => Err(Error::new(Kind::NoResources, "no background worker slot is free for the engine")
            .with_hint("Raise max_worker_processes and restart the server.")),
        _ => Ok(()),
    }
}

/// What the launcher last said.
pub fn supervision() -> Option<Supervision> {
    serde_json::from_slice(&std::fs::read(STATUS).ok()?).ok()
}
