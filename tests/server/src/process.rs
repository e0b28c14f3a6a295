// SPDX-License-Identifier: PostgreSQL

//! Processes as the kernel shows them.
//!
//! A process that has ended but was not reaped (a zombie) is not alive here: who reaps orphans, and when, is the
//! machine's affair. A process is known by its id *and* start, since ids are used again.

use crate::{Failure, TestResult};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's id.
    pub parent: i32,
    /// Its short name.
    pub name: String,
    started: u64,
}

impl Process {
    /// The living process of that id.
    pub fn find(pid: i32) -> Option<Self> {
        parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Its command line, in which the server's processes say what they are; empty once it has ended.
    pub fn title(&self) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&line).into_owned()
    }

    /// Whether it still lives.
    pub fn is_alive(&self) -> bool {
        Self::find(self.pid).is_some_and(|now| now.started == self.started)
    }
}

/// `pid (name) state ppid …`; the name may hold anything, so its end is the last parenthesis. `None` for a zombie.
fn parse_stat(stat: &str) -> Option<Process> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let rest: Vec<&str> = stat.get(close + 1..)?.split_whitespace().collect();
    if matches!(*rest.first()?, "Z" | "X") {
        return None;
    }
    Some(Process {
        pid: stat[..open].trim().parse().ok()?,
        parent: rest.get(1)?.parse().ok()?,
        name: stat[open + 1..close].to_owned(),
        started: rest.get(19)?.parse().ok()?,
    })
}

/// Whether all threads of a process have been stopped by a signal.
pub fn is_stopped(pid: i32) -> bool {
    let mut threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().peekable();
    threads.peek().is_some()
        && threads.all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        })
}

/// Bytes that a process has for itself: neither of files nor shared.
pub fn anonymous_memory(pid: i32) -> TestResult<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| Failure::new(format!("process {pid} has no memory")))
}

/// All living processes.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| Process::find(e.file_name().to_str()?.parse().ok()?)).collect()
}

/// Living processes that work in `folder` or name it in their command line: those of one cluster.
pub fn of_folder(folder: &Path) -> Vec<Process> {
    let named = folder.to_string_lossy();
    let belongs = |p: &Process| {
        let at = |what: &str| format!("/proc/{}/{what}", p.pid);
        fs::read_link(at("cwd")).is_ok_and(|cwd| cwd == folder)
            || fs::read(at("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&*named))
    };
    all().into_iter().filter(belongs).collect()
}

/// Living children of `pid`, their children, and so on.
pub fn descendants(pid: i32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|p| p.parent == parent) {
            parents.push(child.pid);
            found.push(child.clone());
        }
    }
    found
}

/// Sends a signal (`"KILL"`, `"TERM"`).
pub fn signal(pid: i32, name: &str) -> TestResult {
    crate::server::run(Command::new("kill").args(["-s", name, &pid.to_string()])).map(|_| ())
}

/// Waits until `holds` does; fails with `what` when it takes longer than `limit`.
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> TestResult {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > limit {
            return Err(Failure::new(format!("waited {} s in vain: {what}", limit.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_a_zombie_are_read_right() {
        let line = |state: &str| format!("42 (a) b) {state} 7 {} 99 0", "0 ".repeat(17).trim());
        let process = parse_stat(&line("S")).expect("alive");
        assert_eq!((process.pid, process.parent, process.name.as_str(), process.started), (42, 7, "a) b", 99));
        assert_eq!(parse_stat(&line("Z")), None);
    }

    #[test]
    fn this_process_is_alive_and_its_child_is_not_for_long() {
        let me = Process::find(std::process::id() as i32).expect("alive");
        assert!(me.is_alive());
        let mut child = Command::new("sleep").arg("60").spawn().expect("starts");
        let pid = child.id() as i32;
        let found = descendants(me.pid).into_iter().find(|p| p.pid == pid).expect("a child");
        signal(pid, "KILL").expect("killed");
        // It stays a zombie until it is waited for, which must count as gone.
        wait_until("the child ends", Duration::from_secs(5), || !found.is_alive()).expect("gone");
        child.wait().expect("reaped");
    }
}
