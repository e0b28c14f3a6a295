// SPDX-License-Identifier: PostgreSQL

//! Settings of the server and the session: one table.
//!
//! Read by [`crate::api`] and [`crate::worker`] only and passed down, so that nothing below depends on a session.
//! Session-settable: what a user may tune for one query. Superuser: what opens the file system. Reload: what the
//! launcher hands to the engine when it starts it.

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};
use std::ffi::{CStr, CString};
use std::time::Duration;

static ALLOWED_PATHS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ALLOWED_HOSTS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ENGINE_PATH: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ONNXRUNTIME_PATH: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static MODEL_PATH: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ENGINE_THREADS: GucSetting<i32> = GucSetting::<i32>::new(0);
static PARSE_WORKERS: GucSetting<i32> = GucSetting::<i32>::new(2);
static ENGINE_MEMORY_LIMIT: GucSetting<i32> = GucSetting::<i32>::new(2048);
static PARSE_MEMORY_LIMIT: GucSetting<i32> = GucSetting::<i32>::new(4096);
static CLONE_DISK_LIMIT: GucSetting<i32> = GucSetting::<i32>::new(8192);
static LEXICAL_CACHE: GucSetting<i32> = GucSetting::<i32>::new(16);
static JOB_LEASE: GucSetting<i32> = GucSetting::<i32>::new(300);
static REQUEST_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(300_000);
static START_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(30_000);

/// Most threads of one inference session.
pub const MAX_ENGINE_THREADS: i32 = 64;
/// Most parse workers.
pub const MAX_PARSE_WORKERS: i32 = 64;
/// Highest limit of the engine's memory, in MB.
pub const MAX_ENGINE_MEMORY: i32 = 1 << 20;
/// Lowest limit of a parse worker's address space, in MB: the program itself needs some of it.
pub const MIN_PARSE_MEMORY: i32 = 512;
/// Lowest limit of the disk that clones take, in MB: the index of one may take half of it.
pub const MIN_CLONE_DISK: i32 = 1024;
/// Highest bound of what a session keeps of the BM25 index, in MB.
pub const MAX_LEXICAL_CACHE: i32 = 1 << 16;
/// Bounds of a job's lease in seconds.
pub const MIN_JOB_LEASE: i32 = 5;
/// See [`MIN_JOB_LEASE`].
pub const MAX_JOB_LEASE: i32 = 86_400;
/// Longest wait for the engine, in milliseconds.
pub const MAX_TIMEOUT: i32 = 24 * 3_600_000;

/// Defines all settings and reserves their prefix.
pub fn define() {
    GucRegistry::define_string_guc(
        c"pg_rag.allowed_paths",
        c"Sets the folders that sources may read, separated by commas.",
        c"Empty: sources can read no files. Symbolic links that lead out of an allowed folder are refused.",
        &ALLOWED_PATHS,
        GucContext::Suset,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_string_guc(
        c"pg_rag.allowed_hosts",
        c"Sets the hosts that sources may fetch pages and clone repositories from, separated by commas.",
        c"Empty: none. Such as example.org, *.example.org, example.org:8443; a private address only by itself with its port.",
        &ALLOWED_HOSTS,
        GucContext::Suset,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_string_guc(
        c"pg_rag.engine_path",
        c"Sets the path of the engine program.",
        c"Empty: pg_rag/pg_rag_engine in the server's library folder. Takes effect when the engine starts next.",
        &ENGINE_PATH,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_string_guc(
        c"pg_rag.onnxruntime_path",
        c"Sets the path of the ONNX Runtime library.",
        c"Empty: pg_rag/libonnxruntime.so in the server's library folder. Takes effect when the engine starts next.",
        &ONNXRUNTIME_PATH,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_string_guc(
        c"pg_rag.model_path",
        c"Sets the folder that holds model folders.",
        c"Empty: pg_rag/models in the server's share folder. Takes effect when the engine starts next.",
        &MODEL_PATH,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_int_guc(
        c"pg_rag.engine_threads",
        c"Sets the number of threads of one inference session.",
        c"0: the number of cores. More threads than cores only slow it down. Takes effect when the engine starts next.",
        &ENGINE_THREADS,
        0,
        MAX_ENGINE_THREADS,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pg_rag.parse_workers",
        c"Sets the number of processes that parse documents.",
        c"Each reads one document at a time. Takes effect when the engine starts next.",
        &PARSE_WORKERS,
        1,
        MAX_PARSE_WORKERS,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pg_rag.engine_memory_limit",
        c"Sets the resident memory above which an idle engine is replaced.",
        c"0: no limit. One model needs about 200 MB. Takes effect when the engine starts next.",
        &ENGINE_MEMORY_LIMIT,
        0,
        MAX_ENGINE_MEMORY,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"pg_rag.parse_memory_limit",
        c"Sets the address space of a process that reads or parses documents.",
        c"A document that needs more fails. Takes effect when the engine starts next.",
        &PARSE_MEMORY_LIMIT,
        MIN_PARSE_MEMORY,
        MAX_ENGINE_MEMORY,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"pg_rag.clone_disk_limit",
        c"Sets the disk space of all clones of repositories together.",
        c"A source that may download more than fits is refused. Takes effect when the engine starts next.",
        &CLONE_DISK_LIMIT,
        MIN_CLONE_DISK,
        MAX_ENGINE_MEMORY,
        GucContext::Sighup,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"pg_rag.lexical_cache",
        c"Sets the memory in which a session keeps what it read of the BM25 index.",
        c"0: it keeps nothing and reads all again for each query.",
        &LEXICAL_CACHE,
        0,
        MAX_LEXICAL_CACHE,
        GucContext::Userset,
        GucFlags::UNIT_MB,
    );
    GucRegistry::define_int_guc(
        c"pg_rag.job_lease",
        c"Sets how long a job worker may make no progress before its job is given to another.",
        c"A batch of documents or vectors must be done within it.",
        &JOB_LEASE,
        MIN_JOB_LEASE,
        MAX_JOB_LEASE,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"pg_rag.request_timeout",
        c"Sets the longest silence of the engine during one request.",
        c"A request that hears nothing for so long fails. Listing a large folder is one request.",
        &REQUEST_TIMEOUT,
        100,
        MAX_TIMEOUT,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"pg_rag.start_timeout",
        c"Sets the longest wait for the engine to start.",
        c"The engine starts on first use and after a crash.",
        &START_TIMEOUT,
        100,
        MAX_TIMEOUT,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    // SAFETY: called once, from _PG_init, with a zero-terminated constant.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"pg_rag".as_ptr()) };
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    setting.get().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What sources may reach.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Folders.
    pub paths: Vec<String>,
    /// Hosts.
    pub hosts: Vec<String>,
}

/// What sources may reach now.
pub fn allowed() -> Allowed {
    let list = |setting: &GucSetting<Option<CString>>| {
        text(setting).split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned).collect()
    };
    Allowed { paths: list(&ALLOWED_PATHS), hosts: list(&ALLOWED_HOSTS) }
}

/// Bytes in which a session keeps what it read of the BM25 index.
pub fn lexical_cache() -> usize {
    (LEXICAL_CACHE.get().unsigned_abs() as usize) << 20
}

/// How long a job worker may make no progress.
pub fn job_lease() -> Duration {
    Duration::from_secs(u64::from(JOB_LEASE.get().unsigned_abs()))
}

/// How long a client waits for the engine.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Longest silence during a request.
    pub request: Duration,
    /// Longest wait for the engine to start.
    pub start: Duration,
}

/// How long this session waits for the engine.
pub fn waits() -> Waits {
    let millis = |setting: &GucSetting<i32>| Duration::from_millis(u64::try_from(setting.get()).unwrap_or(0));
    Waits { request: millis(&REQUEST_TIMEOUT), start: millis(&START_TIMEOUT) }
}

/// Bytes of disk that clones of repositories may take together.
pub fn clone_disk() -> u64 {
    u64::from(CLONE_DISK_LIMIT.get().unsigned_abs()) << 20
}

/// What the launcher tells the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSettings {
    /// Path of the program.
    pub program: String,
    /// Path of libonnxruntime.
    pub onnxruntime: String,
    /// Folder of models.
    pub models: String,
    /// Threads of a session.
    pub threads: usize,
    /// Parse workers.
    pub parse_workers: i32,
    /// Address space of a parse worker in MB.
    pub parse_memory: i32,
    /// Disk space of all clones in MB.
    pub clone_disk: i32,
    /// Resident memory in MB above which an idle engine ends; 0 for no limit.
    pub memory_limit: i32,
}

/// What the launcher tells the engine, with defaults filled in.
pub fn engine_settings() -> EngineSettings {
    let or = |value: String, default: String| if value.is_empty() { default } else { value };
    let library = library_folder();
    EngineSettings {
        program: or(text(&ENGINE_PATH), format!("{library}/pg_rag/pg_rag_engine")),
        onnxruntime: or(text(&ONNXRUNTIME_PATH), format!("{library}/pg_rag/libonnxruntime.so")),
        models: or(text(&MODEL_PATH), format!("{}/pg_rag/models", share_folder())),
        threads: match usize::try_from(ENGINE_THREADS.get()) {
            Ok(0) | Err(_) => {
                std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_ENGINE_THREADS as usize))
            }
            Ok(threads) => threads,
        },
        parse_workers: PARSE_WORKERS.get(),
        parse_memory: PARSE_MEMORY_LIMIT.get(),
        clone_disk: CLONE_DISK_LIMIT.get(),
        memory_limit: ENGINE_MEMORY_LIMIT.get(),
    }
}

fn library_folder() -> String {
    // SAFETY: the server fills this zero-terminated array before any extension is loaded.
    unsafe { CStr::from_ptr((&raw const pg_sys::pkglib_path).cast()) }.to_string_lossy().into_owned()
}

fn share_folder() -> String {
    let mut buffer = [0; pg_sys::MAXPGPATH as usize];
    // SAFETY: my_exec_path is filled at server start, and the function writes at most MAXPGPATH bytes with a zero.
    unsafe {
        pg_sys::get_share_path((&raw const pg_sys::my_exec_path).cast(), buffer.as_mut_ptr());
        CStr::from_ptr(buffer.as_ptr())
    }
    .to_string_lossy()
    .into_owned()
}
