// SPDX-License-Identifier: PostgreSQL

//! The server's processes and their memory, as the kernel shows them.
//!
//! Only on the same machine, and only to who may look: the files are those of the server's user. What cannot be read is left
//! out, never guessed. A backend shares the server's buffers with all others, so its resident memory says little about it;
//! what it holds alone is what counts.

use crate::db;
use postgres::Client;
use rag_core::error::Kind;
use rag_core::{Error, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const MEGABYTE: f64 = 1024.0;

/// What a process does for pg_rag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The background worker that starts the engine.
    Launcher,
    /// A background worker that runs jobs.
    JobWorker,
    /// The engine.
    Engine,
    /// A child of the engine, which reads or parses.
    EngineWorker,
}

/// Memory in units of 2²⁰ bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    /// Resident, with what is shared.
    pub resident: f64,
    /// Resident, what is shared divided by those who share it.
    pub proportional: f64,
    /// What nobody else has.
    pub private: f64,
}

impl Memory {
    /// The larger of each.
    pub fn or_more(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            proportional: self.proportional.max(other.proportional),
            private: self.private.max(other.private),
        }
    }
}

/// The data folder; only a superuser may ask, and anybody else cannot open what is in it either.
pub fn data_folder(client: &mut Client) -> Result<PathBuf> {
    let row = client
        .query_one("SELECT current_setting('data_directory')", &[])
        .map_err(|e| db::sql("could not read data_directory", &e))?;
    Ok(PathBuf::from(row.get::<_, String>(0)))
}

/// The process of a session, and the server's first process.
pub fn of_session(client: &mut Client) -> Result<(i32, i32)> {
    let row =
        client.query_one("SELECT pg_backend_pid()", &[]).map_err(|e| db::sql("could not ask for its process", &e))?;
    let pid: i32 = row.get(0);
    let elsewhere = || {
        Error::new(
            Kind::Unsupported,
            "the server's processes cannot be seen: it runs on another machine or in a container",
        )
    };
    let parent = parent(pid).filter(|_| title(pid).starts_with("postgres")).ok_or_else(elsewhere)?;
    Ok((pid, parent))
}

/// What a process holds.
pub fn memory(pid: i32) -> Result<Memory> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).map_err(|e| Error::io(&path, &e))?;
    Ok(parse(&text))
}

/// The sum of what the processes of each role hold now, beneath the server's first process. Who ends meanwhile is left out.
pub fn by_role(postmaster: i32) -> BTreeMap<Role, Memory> {
    let mut sums: BTreeMap<Role, Memory> = BTreeMap::new();
    for (role, pid) in beneath(postmaster) {
        if let Ok(more) = memory(pid) {
            let sum = sums.entry(role).or_default();
            sum.resident += more.resident;
            sum.proportional += more.proportional;
            sum.private += more.private;
        }
    }
    sums
}

fn beneath(postmaster: i32) -> Vec<(Role, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: BTreeMap<i32, i32> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let belongs = |pid: i32| {
        // A server's processes are a few levels deep.
        std::iter::successors(Some(pid), |pid| parents.get(pid).copied()).take(8).any(|above| above == postmaster)
    };
    parents.keys().filter(|pid| belongs(**pid)).filter_map(|pid| Some((role(&title(*pid))?, *pid))).collect()
}

/// By the command line, in which the server's processes say what they are.
fn role(title: &str) -> Option<Role> {
    let words: Vec<&str> = title.split(['\0', ' ']).filter(|word| !word.is_empty()).collect();
    let first = words.first()?;
    if first.ends_with("pg_rag_engine") {
        return match *words.get(1)? {
            "serve" => Some(Role::Engine),
            _ => Some(Role::EngineWorker),
        };
    }
    match (first.starts_with("postgres"), title.contains("pg_rag launcher"), title.contains("pg_rag job")) {
        (true, true, _) => Some(Role::Launcher),
        (true, _, true) => Some(Role::JobWorker),
        _ => None,
    }
}

fn title(pid: i32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Lines such as `Pss:  1234 kB`.
fn parse(rollup: &str) -> Memory {
    let field = |name: &str| -> f64 {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
        kilobytes.unwrap_or(0.0) / MEGABYTE
    };
    Memory {
        resident: field("Rss:"),
        proportional: field("Pss:"),
        private: field("Private_Clean:") + field("Private_Dirty:"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "5581-7ffd ---p 00000000 00:00 0    [rollup]\nRss:                2048 kB\nPss:                1024 kB\n\
                    Pss_Dirty:           100 kB\nPrivate_Clean:       256 kB\nPrivate_Dirty:       256 kB\n";
        assert_eq!(parse(text), Memory { resident: 2.0, proportional: 1.0, private: 0.5 });
        assert_eq!(parse(""), Memory::default());
        let own = memory(std::process::id() as i32).expect("its own");
        assert!(own.resident >= own.private && own.private > 0.0, "{own:?}");
    }

    #[test]
    fn processes_are_known_by_their_command_line() {
        let roles = [
            ("postgres: pg_rag launcher ", Some(Role::Launcher)),
            ("postgres: pg_rag job worker ", Some(Role::JobWorker)),
            ("postgres: postgres rag [local] idle", None),
            ("/usr/lib/postgresql/pg_rag_engine\0serve\0--threads\x002", Some(Role::Engine)),
            ("/usr/lib/postgresql/pg_rag_engine\0worker\0parse", Some(Role::EngineWorker)),
            ("vi\0pg_rag launcher", None),
            ("", None),
        ];
        for (title, expected) in roles {
            assert_eq!(role(title), expected, "{title}");
        }
    }
}
