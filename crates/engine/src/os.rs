// SPDX-License-Identifier: PostgreSQL

//! What the engine asks of the operating system.
//!
//! Owns the inherited socket, credentials of a peer, priorities, limits and `/proc`. Outside of tests it is the one file
//! of the engine with unsafe code, for the three things that cannot be said otherwise: taking over a descriptor that is
//! known by number, flags of those that are not known at all, and giving freed memory back.

use rag_core::{Error, Kind, Result};
use rustix::net::RecvFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

fn failed(what: &str, error: rustix::io::Errno) -> Error {
    Error::new(Kind::Io, format!("could not {what}: {error}"))
}

/// Takes over the listening socket that the supervisor left open as descriptor `fd`, and keeps children from
/// inheriting it.
#[allow(unsafe_code)]
pub fn take_listener(fd: RawFd) -> Result<UnixListener> {
    use std::os::fd::FromRawFd;
    // The type check comes before ownership is taken: a wrong number must not close somebody's file.
    // SAFETY: borrowed for this block only, while nothing in this process closes descriptors.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let listening = rustix::net::sockopt::socket_acceptconn(borrowed);
    if fd <= 2 || listening != Ok(true) {
        return Err(Error::invalid(format!("descriptor {fd} is not a listening socket")).with_hint(
            "The server starts the engine by itself; to try it alone use pg_rag_engine serve --socket PATH.",
        ));
    }
    rustix::io::fcntl_setfd(borrowed, rustix::io::FdFlags::CLOEXEC).map_err(|e| failed("mark the socket", e))?;
    // SAFETY: the descriptor was just seen to be an open socket, and by the contract of --listen-fd nobody else in this
    // process owns it.
    Ok(unsafe { UnixListener::from_raw_fd(fd) })
}

/// Keeps children from inheriting what this process was started with beyond its standard streams; what it opens itself is
/// closed on exec already. A kernel before 5.11 leaves it to whoever starts the engine, which does the same.
#[allow(unsafe_code)]
pub fn close_inherited_on_exec() {
    // SAFETY: sets a flag of descriptors and closes none.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// Fails unless the process at the other end runs as the same user.
pub fn check_peer(stream: &UnixStream) -> Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream).map_err(|e| failed("identify a peer", e))?;
    if peer.uid != rustix::process::geteuid() {
        return Err(Error::new(Kind::Forbidden, format!("user {} may not talk to the engine", peer.uid.as_raw())));
    }
    Ok(())
}

/// Whether the other end has closed its side. A peer that waits for an answer has nothing to say, so silence means it
/// is there.
pub fn is_gone(stream: &UnixStream) -> bool {
    let mut byte = [0_u8; 1];
    match rustix::net::recv(stream.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, length)) => length == 0,
        Err(e) => e != rustix::io::Errno::AGAIN && e != rustix::io::Errno::INTR,
    }
}

/// Whether the other end is there and has said nothing that was not read.
pub fn is_quiet(stream: &UnixStream) -> bool {
    let mut byte = [0_u8; 1];
    rustix::net::recv(stream.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)
        .is_err_and(|e| e == rustix::io::Errno::AGAIN)
}

/// Ends the process when standard input ends: whoever started it is gone. The second line of defence after the death
/// signal that the starter asks for.
pub fn end_with_stdin() {
    let watch = || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        end_self();
    };
    if let Err(e) = std::thread::Builder::new().name("stdin".into()).spawn(watch) {
        crate::log(&format!("could not watch standard input: {e}"));
    }
}

/// Ends the process as a SIGTERM does: no destructor of a native library runs while its threads are busy.
pub fn end_self() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TERM);
}

/// Makes the kernel kill this process when the thread that started it ends, and ends it now if that happened already.
pub fn die_with_parent(parent: u32) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let is_parent = |pid: Pid| u32::try_from(pid.as_raw_nonzero().get()).ok() == Some(parent);
    if !rustix::process::getppid().is_some_and(is_parent) {
        end_self();
    }
}

/// Names this process in `ps` and in the kernel's log.
pub fn name_process(name: &std::ffi::CStr) {
    let _ = rustix::thread::set_name(name);
}

/// Lowers the priority of the calling thread, and of the threads that it starts from now on.
pub fn lower_priority() {
    // On Linux a nice value belongs to a thread, whatever POSIX says.
    let _ = rustix::process::setpriority_process(None, 10);
}

/// Tells the kernel to rather kill this process than a PostgreSQL backend when memory runs out.
pub fn prefer_as_victim(score: u32) {
    // Fails where /proc is not mounted; then the kernel decides by size, which usually hits the same process.
    let _ = std::fs::write("/proc/self/oom_score_adj", score.to_string());
}

/// Allows as many open files as the administrator lets this process have.
pub fn raise_open_files() {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// Processor time that a worker may use in its life. Far above what one document may take; the limit of a document is
/// set beneath it, see [`limit_time`], because what was lowered once cannot be raised again without privileges.
pub const LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Limits what this process takes: address space, processor time, bytes of a file that it writes, and no core file (it would
/// hold users' documents). Processes are not counted, since the kernel counts them per user and not per parent; a worker has
/// no call that makes one.
pub fn limit_worker(memory: u64, file_size: u64) -> Result<()> {
    let fixed = |n| Rlimit { current: Some(n), maximum: Some(n) };
    let mut limits = vec![
        (Resource::Core, fixed(0), "forbid core files"),
        (Resource::Fsize, fixed(file_size), "limit written files"),
        (Resource::Cpu, fixed(LIFETIME.as_secs()), "limit processor time"),
    ];
    if memory > 0 {
        limits.push((Resource::As, fixed(memory), "limit memory"));
    }
    limits.into_iter().try_for_each(|(resource, limit, what)| {
        rustix::process::setrlimit(resource, limit).map_err(|e| failed(what, e))
    })
}

/// Lets a worker use `more` processor time than it has used. Beyond that the kernel ends it by SIGXCPU, even while this
/// process is stopped or too busy to look at the clock. From outside, so that the worker needs no call to do it.
pub fn limit_time(pid: u32, more: Duration) {
    let (Some(used), Some(pid)) = (processor_time(pid), i32::try_from(pid).ok().and_then(Pid::from_raw)) else {
        return; // the clock on the wall goes on
    };
    let limit = Rlimit { current: Some((used + more).min(LIFETIME).as_secs()), maximum: Some(LIFETIME.as_secs()) };
    let _ = rustix::process::prlimit(Some(pid), Resource::Cpu, limit);
}

/// Kills a process of ours.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Processor time that a process has used; `None` when it cannot be told.
pub fn processor_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; after it, user and system time are the 12th and 13th field.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// Gives memory that was freed back to the kernel. The C library keeps what large batches left, which after a sync can
/// be as much as the models themselves.
pub fn return_memory() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    // SAFETY: takes no pointer, and the allocator locks itself.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Resident memory of this process in bytes; 0 when it cannot be told.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// Starts a thread of a scope. std's shorter way panics when there can be none.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    thread: Builder,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let started = thread.spawn_scoped(scope, run);
    started.map_err(|e| Error::new(Kind::OutOfMemory, format!("could not start a thread: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_peer_is_noticed_and_a_silent_one_is_not() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        assert!(!is_gone(&ours) && is_quiet(&ours));
        std::io::Write::write_all(&mut &theirs, &[1]).expect("writes");
        assert!(!is_gone(&ours) && !is_quiet(&ours));
        drop(theirs);
        std::io::Read::read_exact(&mut &ours, &mut [0]).expect("reads");
        assert!(is_gone(&ours) && !is_quiet(&ours));
    }

    #[test]
    fn a_descriptor_that_does_not_listen_is_refused() {
        use std::os::fd::AsRawFd;
        let file = tempfile::tempfile().expect("file");
        assert!(take_listener(file.as_raw_fd()).is_err());
        assert!(take_listener(0).is_err());
        assert!(file.metadata().is_ok(), "the file is still open");
    }

    #[test]
    fn a_thread_that_cannot_be_is_an_error() {
        let small = std::thread::scope(|scope| spawn_scoped(scope, Builder::new(), || 7).map(|t| t.join().expect("7")));
        assert_eq!(small, Ok(7));
        // More address space than there is.
        let large = Builder::new().stack_size(1 << 50);
        let error = std::thread::scope(|scope| spawn_scoped(scope, large, || ()).map(drop)).expect_err("too large");
        assert_eq!(error.kind, Kind::OutOfMemory);
        assert!(error.message.starts_with("could not start a thread: "), "{error:?}");
    }

    #[test]
    fn memory_and_time_are_told() {
        assert!(resident_bytes() > 1 << 20);
        let before = processor_time(std::process::id()).expect("time");
        let started = std::time::Instant::now();
        while processor_time(std::process::id()).expect("time") < before + Duration::from_millis(30) {
            assert!(started.elapsed() < Duration::from_secs(60), "time stands still");
        }
    }
}
