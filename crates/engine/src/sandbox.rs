// SPDX-License-Identifier: PostgreSQL

//! What a worker may ask the kernel for.
//!
//! Owns the confinement that a worker puts on itself before it sees a byte of a document, and can never take off. Two
//! layers that do not depend on each other:
//!
//! - **seccomp**, a list of the system calls that the role needs; every other fails with EPERM. A list of what is allowed
//!   and not of what is forbidden, because kernels gain calls (io_uring was one) that nobody here would have thought of.
//!   A library that tries something else sees an error, as on a system that lacks the call, and is not killed. A parse
//!   worker has no call that opens a file, makes a socket, a process or a thread, or makes memory executable.
//! - **landlock**, what may be opened: nothing for a parse worker, files beneath the allowed paths for an acquire worker,
//!   for reading, and the folder of the clone for a clone worker, for writing, too. Rights that an older kernel does not know are left out.
//!
//! A kernel that lacks a layer leaves the other one; the engine says so once in its log, and in its status.
//!
//! Must not decide who is confined how far: [`Profile`] comes from the worker's role.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use rag_core::{Error, Kind, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use std::fmt;

/// The newest landlock that this was tried with; older ones give what they have.
const LANDLOCK: ABI = ABI::V7;

/// What a role may do.
#[derive(Debug)]
pub enum Profile<'a> {
    /// Read beneath these paths, and talk to the network if `network`.
    Acquire {
        /// Allowed paths.
        roots: &'a [String],
        /// Whether TCP connections may be made.
        network: bool,
    },
    /// Read and write beneath a folder, and talk to the network.
    Clone {
        /// The folder.
        folder: &'a str,
    },
    /// Compute.
    Parse,
}

impl Profile<'_> {
    fn network(&self) -> bool {
        matches!(self, Profile::Acquire { network: true, .. } | Profile::Clone { .. })
    }
}

/// How far the kernel went along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Version of landlock, and whether all that was asked of it is enforced.
    landlock: Option<(String, bool)>,
    seccomp: bool,
}

impl Level {
    /// Whether the kernel decides what is opened.
    pub fn confines_files(&self) -> bool {
        self.landlock.is_some()
    }

    /// Whether nothing is missing.
    pub fn is_full(&self) -> bool {
        self.seccomp && self.landlock.as_ref().is_some_and(|(_, whole)| *whole)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landlock = self.landlock.as_ref().map(|(version, whole)| match whole {
            true => format!("landlock {version}"),
            false => format!("landlock {version} in part"),
        });
        match (landlock, self.seccomp) {
            (Some(landlock), true) => write!(f, "{landlock}, seccomp"),
            (Some(landlock), false) => f.write_str(&landlock),
            (None, true) => f.write_str("seccomp"),
            (None, false) => f.write_str("none"),
        }
    }
}

/// Confines the calling thread, and what it starts, for good.
///
/// Fails when a layer that the kernel has cannot be set up; a layer that it lacks is left out of the level.
pub fn confine(profile: &Profile<'_>) -> Result<Level> {
    let landlock = restrict_files(profile)
        .map_err(|e| Error::new(Kind::Io, format!("could not confine a worker by landlock: {e}")))?;
    // The calls that landlock needs are not on the list.
    let seccomp = restrict_calls(profile)
        .map_err(|e| Error::new(Kind::Io, format!("could not confine a worker by seccomp: {e}")))?;
    Ok(Level { landlock, seccomp })
}

/// What workers will be confined by, found out by a thread that ends confined.
pub fn probe() -> Result<Level> {
    let probing = std::thread::Builder::new().name("probe".into()).spawn(|| confine(&Profile::Parse));
    let probing = probing.map_err(|e| Error::new(Kind::OutOfMemory, format!("could not start a thread: {e}")))?;
    probing.join().unwrap_or_else(|_| Err(Error::internal("confining a thread panicked")))
}

fn restrict_files(profile: &Profile<'_>) -> std::result::Result<Option<(String, bool)>, RulesetError> {
    let roots = if let Profile::Acquire { roots, .. } = profile { *roots } else { &[] };
    let folder = if let Profile::Clone { folder } = profile { Some(folder) } else { None };
    let tcp = if profile.network() { AccessNet::BindTcp.into() } else { AccessNet::from_all(LANDLOCK) };
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(tcp)?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        // A root that is not there allows nothing.
        .add_rules(path_beneath_rules(roots, AccessFs::ReadFile | AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(folder, written()))?
        .add_rules(path_beneath_rules(if profile.network() { NAMES } else { &[] }, AccessFs::ReadFile))?
        .restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (enforced, LandlockStatus::Available { effective_abi, .. }) => {
            Some((effective_abi.to_string(), enforced == RulesetStatus::FullyEnforced))
        }
        _ => None,
    })
}

/// What making a clone takes: files and folders, and no link, device, socket or program.
fn written() -> BitFlags<AccessFs> {
    AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
}

/// What the system's resolver reads.
const NAMES: &[&str] = &["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/host.conf"];

/// False when the kernel or the architecture has no filters.
fn restrict_calls(profile: &Profile<'_>) -> std::result::Result<bool, seccompiler::Error> {
    let Ok(architecture) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(false) };
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(calls(profile)?, denied, SeccompAction::Allow, architecture)?;
    match seccompiler::apply_filter(&BpfProgram::try_from(filter)?) {
        Ok(()) => Ok(true),
        Err(seccompiler::Error::Prctl(_) | seccompiler::Error::Seccomp(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Memory, time, waiting, signals to itself, the descriptors it has, and its end.
const COMPUTE: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Resolving and reading paths. What may be opened is landlock's, and cap-std's.
const FILES: &[libc::c_long] = &[
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fstatfs,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_newfstatat,
    libc::SYS_openat2,
    libc::SYS_pread64,
    libc::SYS_readlinkat,
    libc::SYS_statx,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
];

/// Making, changing and removing files. Which may be is landlock's, but for modes: those of open files only, since it has no say
/// over those of others.
const WRITING: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fdatasync,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_openat,
    libc::SYS_pwrite64,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
];

/// Connecting to a host; which hosts is for whoever connects.
const NETWORK: &[libc::c_long] = &[
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_ppoll,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The calls of a role, each with the arguments it may have.
fn calls(profile: &Profile<'_>) -> std::result::Result<Rules, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq};
    let mut rules = Rules::new();
    let plain = |rules: &mut Rules, calls: &[libc::c_long]| {
        rules.extend(calls.iter().map(|call| (*call, Vec::new())));
    };
    let mut when = |call: libc::c_long, argument: u8, operator: SeccompCmpOp, value: u64| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        rules.entry(call).or_default().push(SeccompRule::new(vec![condition])?);
        Ok::<(), seccompiler::BackendError>(())
    };
    // Memory is data: what a document smuggles in can only reuse code that is there.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        when(call, 2, MaskedEq(libc::PROT_EXEC as u64), 0)?;
    }
    // Aborting is a signal to oneself.
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        when(call, 0, Eq, u64::from(std::process::id()))?;
    }
    // Copies and flags of descriptors; not F_SETOWN, by which the kernel would signal another process.
    for command in [libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL] {
        when(libc::SYS_fcntl, 1, Eq, command as u64)?;
    }
    if let Profile::Acquire { .. } = profile {
        let writing = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
        when(libc::SYS_openat, 2, MaskedEq(writing as u64), libc::O_RDONLY as u64)?;
    }
    if profile.network() {
        for family in [libc::AF_INET, libc::AF_INET6] {
            when(libc::SYS_socket, 0, Eq, family as u64)?;
        }
        // Only to have a socket not wait.
        when(libc::SYS_ioctl, 1, Eq, libc::FIONBIO)?;
        plain(&mut rules, NETWORK);
    }
    match profile {
        Profile::Acquire { .. } => plain(&mut rules, FILES),
        Profile::Clone { .. } => [FILES, WRITING].into_iter().for_each(|calls| plain(&mut rules, calls)),
        Profile::Parse => {}
    }
    plain(&mut rules, COMPUTE);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in a thread of its own, because there is no way back.
    fn confined<T: Send + 'static>(roots: Vec<String>, network: bool, what: impl FnOnce() -> T + Send + 'static) -> T {
        let run = move || {
            confine(&Profile::Acquire { roots: &roots, network }).expect("confined");
            what()
        };
        std::thread::spawn(run).join().expect("thread")
    }

    fn cloning<T: Send + 'static>(folder: &std::path::Path, what: impl FnOnce() -> T + Send + 'static) -> T {
        let folder = folder.to_str().expect("UTF-8").to_owned();
        let run = move || {
            confine(&Profile::Clone { folder: &folder }).expect("confined");
            what()
        };
        std::thread::spawn(run).join().expect("thread")
    }

    fn denied<T>(result: std::io::Result<T>) -> bool {
        result.is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn an_acquire_worker_reads_beneath_its_roots_and_writes_nowhere() {
        let folder = tempfile::tempdir().expect("folder");
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        for place in [&inside, &outside] {
            std::fs::create_dir(place).expect("folder");
            std::fs::write(place.join("f"), "x").expect("file");
        }
        let root = inside.to_str().expect("UTF-8").to_owned();
        let (read, listed, other, changed, made) = confined(vec![root], false, move || {
            (
                std::fs::read(inside.join("f")),
                std::fs::read_dir(&inside).map(Iterator::count),
                denied(std::fs::read(outside.join("f"))),
                denied(std::fs::write(inside.join("f"), "y")),
                denied(std::fs::write(inside.join("g"), "y")),
            )
        });
        assert_eq!((read.expect("read"), listed.expect("listed")), (b"x".to_vec(), 1));
        let landlock = probe().expect("level").landlock.is_some();
        assert_eq!((other, changed, made), (landlock, true, true));
    }

    #[test]
    fn a_clone_worker_writes_beneath_its_folder_only() {
        if !probe().expect("level").confines_files() {
            return eprintln!("skipped: the kernel has no landlock");
        }
        let parent = tempfile::tempdir().expect("folder");
        let (inside, outside) = (parent.path().join("in"), parent.path().join("out"));
        for place in [&inside, &outside] {
            std::fs::create_dir(place).expect("folder");
            std::fs::write(place.join("f"), "x").expect("file");
        }
        let (at, beside) = (inside.clone(), outside.clone());
        let done = cloning(&inside, move || {
            std::fs::create_dir(at.join("deep"))?;
            std::fs::write(at.join("deep/g"), "y")?;
            std::fs::rename(at.join("deep/g"), at.join("deep/h"))?;
            std::fs::write(at.join("f"), "z")?;
            std::fs::remove_file(at.join("f"))?;
            std::fs::read(at.join("deep/h"))
        });
        assert_eq!(done.expect("all of it"), b"y");
        let at = inside.clone();
        let allowed = cloning(&inside, move || {
            let attempts = [
                ("read", std::fs::read(beside.join("f")).map(drop)),
                ("list", std::fs::read_dir(&beside).map(drop)),
                ("write", std::fs::write(beside.join("f"), "y")),
                ("make", std::fs::write(beside.join("g"), "y")),
                ("folder", std::fs::create_dir(beside.join("d"))),
                ("remove", std::fs::remove_file(beside.join("f"))),
                ("move out", std::fs::rename(at.join("deep/h"), beside.join("h"))),
                ("link", std::os::unix::fs::symlink("/etc", at.join("l"))),
                ("program", std::process::Command::new("/bin/true").status().map(drop)),
                ("socket", std::os::unix::net::UnixDatagram::unbound().map(drop)),
            ];
            attempts.into_iter().filter(|(_, result)| result.is_ok()).map(|(name, _)| name).collect::<Vec<_>>()
        });
        assert_eq!(allowed, Vec::<&str>::new());
        assert_eq!(std::fs::read(outside.join("f")).expect("there"), b"x");
        let connect = || denied(std::net::TcpStream::connect("127.0.0.1:9"));
        assert!(!cloning(&inside, connect), "refused, since nobody listens there, but not denied");
    }

    #[test]
    fn the_network_is_closed_unless_it_is_opened() {
        let connect = || denied(std::net::TcpStream::connect("127.0.0.1:9"));
        assert!(confined(Vec::new(), false, connect));
        assert!(!confined(Vec::new(), true, connect), "refused, since nobody listens there, but not denied");
        assert!(confined(Vec::new(), true, || denied(std::os::unix::net::UnixDatagram::unbound())));
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_parse_worker_has_no_call_for_anything_else() {
        let calls = [
            ("bpf", libc::SYS_bpf),
            ("clone", libc::SYS_clone),
            ("clone3", libc::SYS_clone3),
            ("connect", libc::SYS_connect),
            ("execve", libc::SYS_execve),
            ("execveat", libc::SYS_execveat),
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("keyctl", libc::SYS_keyctl),
            ("memfd_create", libc::SYS_memfd_create),
            ("mount", libc::SYS_mount),
            ("openat", libc::SYS_openat),
            ("openat2", libc::SYS_openat2),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("pidfd_open", libc::SYS_pidfd_open),
            ("prctl", libc::SYS_prctl),
            ("prlimit64", libc::SYS_prlimit64),
            ("process_vm_readv", libc::SYS_process_vm_readv),
            ("ptrace", libc::SYS_ptrace),
            ("seccomp", libc::SYS_seccomp),
            ("setns", libc::SYS_setns),
            ("shmget", libc::SYS_shmget),
            ("socket", libc::SYS_socket),
            ("socketpair", libc::SYS_socketpair),
            ("unlinkat", libc::SYS_unlinkat),
            ("unshare", libc::SYS_unshare),
        ];
        let run = move || {
            confine(&Profile::Parse).expect("confined");
            // An argument with which each of them would fail otherwise, too, but not by EPERM.
            let bad = libc::CLONE_THREAD;
            // SAFETY: no pointer to memory is passed, and nothing is made of these arguments.
            let denied = |call| unsafe { libc::syscall(call, bad, 0, 0, 0, 0, 0) } == -1 && last_error() == libc::EPERM;
            let open: Vec<&str> = calls.into_iter().filter(|(_, call)| !denied(*call)).map(|(name, _)| name).collect();
            let map = |protection| {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                // SAFETY: a new page somewhere, which nobody uses.
                unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) != libc::MAP_FAILED }
            };
            (open, map(libc::PROT_READ), map(libc::PROT_READ | libc::PROT_EXEC))
        };
        let (open, data, code) = std::thread::spawn(run).join().expect("thread");
        assert_eq!((open, data, code), (Vec::new(), true, false));
    }

    fn last_error() -> i32 {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
    }

    #[test]
    fn a_level_reads_as_it_is() {
        let level = |landlock: Option<(&str, bool)>, seccomp| Level {
            landlock: landlock.map(|(version, whole)| (version.to_owned(), whole)),
            seccomp,
        };
        for (level, text, full) in [
            (level(Some(("7", true)), true), "landlock 7, seccomp", true),
            (level(Some(("3", false)), true), "landlock 3 in part, seccomp", false),
            (level(None, true), "seccomp", false),
            (level(None, false), "none", false),
        ] {
            assert_eq!((level.to_string().as_str(), level.is_full()), (text, full));
        }
    }
}
