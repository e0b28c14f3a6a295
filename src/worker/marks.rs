// SPDX-License-Identifier: PostgreSQL

//! Marks: one file for each database that has jobs, named by its key, holding when the next one is due.
//!
//! They are how the launcher, which is connected to no database, knows where to send workers. A mark is only a hint: a
//! worker that finds nothing removes it, and a lost one is made again by the look at all databases with which a launcher begins.
//! Order makes it safe: a backend commits its job and then sets the mark; a worker clears the mark and then looks once
//! more.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The folder of the marks.
pub const FOLDER: &str = "pgsql_tmp_pg_rag/jobs";

fn path(database: u32) -> String {
    format!("{FOLDER}/{database}")
}

/// Says that a database has a job that is due in so many milliseconds.
pub fn set(database: u32, milliseconds: u64) -> io::Result<()> {
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(FOLDER) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let due = SystemTime::now() + Duration::from_millis(milliseconds);
    let due = due.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    // Whole or not at all; two backends that write at once both mean the same.
    let temporary = format!("{FOLDER}/{database}.{}", std::process::id());
    fs::write(&temporary, due.to_string())?;
    fs::rename(&temporary, path(database))
}

/// Says that a database has no jobs. A worker that goes on beats again.
pub fn clear(database: u32) -> io::Result<()> {
    for file in [path(database), heartbeat(database)] {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Databases that have jobs, and how long until the first is due.
pub fn all() -> Vec<(u32, Duration)> {
    let Ok(entries) = fs::read_dir(FOLDER) else { return Vec::new() };
    let mut marks: Vec<(u32, Duration)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let database = entry.file_name().to_str()?.parse().ok()?;
            // One that cannot be read means now: its worker will write a better one.
            let due = fs::read_to_string(entry.path()).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            let due = UNIX_EPOCH + Duration::from_millis(due);
            Some((database, due.duration_since(SystemTime::now()).unwrap_or_default()))
        })
        .collect();
    marks.sort_unstable();
    marks
}

fn heartbeat(database: u32) -> String {
    format!("{FOLDER}/{database}.alive")
}

fn farewell(database: u32) -> String {
    format!("{FOLDER}/{database}.through")
}

/// Says that the worker of a database ends because it is through, whatever mark somebody sets at that moment.
pub fn leave(database: u32) -> io::Result<()> {
    fs::write(farewell(database), "")
}

/// Whether the worker of a database has said so since this was last asked.
pub fn has_left(database: u32) -> bool {
    fs::remove_file(farewell(database)).is_ok()
}

/// Says that the worker of a database gets on.
pub fn beat(database: u32) -> io::Result<()> {
    fs::write(heartbeat(database), "")
}

/// How long ago the worker of a database got on; nothing when that is not known.
pub fn silence(database: u32) -> Option<Duration> {
    fs::metadata(heartbeat(database)).ok()?.modified().ok()?.elapsed().ok()
}
