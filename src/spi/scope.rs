// SPDX-License-Identifier: PostgreSQL

//! What holds around statements: settings that end with a block, one snapshot for many queries, subtransactions, and memory
//! that ends with a step.
//!
//! Owns everything that PostgreSQL undoes by nesting. Each scope closes itself on success and on an error returned; when
//! a PostgreSQL error passes by, the end of the (sub)transaction closes what is PostgreSQL's, and a destructor what is
//! ours.

use crate::error;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_sys};
use rag_core::{Error, Kind, Result};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;

/// Version of this library.
const VERSION: &str = env!("CARGO_PKG_VERSION");

thread_local! {
    /// Whether the catalog was seen to be of the library's version.
    static VERSION_SEEN: Cell<bool> = const { Cell::new(false) };
    /// Whether a snapshot scope is open.
    static READ_ONLY: Cell<bool> = const { Cell::new(false) };
    /// How statements are planned.
    static PLANNING: Cell<Planning> = const { Cell::new(Planning::Auto) };
}

/// Memory of PostgreSQL's that is current while the value lives, and goes with it.
struct Memory {
    own: pg_sys::MemoryContext,
    before: pg_sys::MemoryContext,
}

impl Memory {
    fn new() -> Self {
        // SAFETY: a context below the current one, with a name that lives forever; what is current is made so again by `drop`.
        unsafe {
            let before = pg_sys::CurrentMemoryContext;
            let (min, first, max) = (0, 8 << 10, 8 << 20);
            let own = pg_sys::AllocSetContextCreateInternal(before, c"pg_rag step".as_ptr(), min, first, max);
            pg_sys::MemoryContextSwitchTo(own);
            Self { own, before }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `before` is the parent, so it is still there; nothing is current that is deleted.
        unsafe {
            pg_sys::MemoryContextSwitchTo(self.before);
            pg_sys::MemoryContextDelete(self.own);
        }
    }
}

/// Runs a step with memory of its own. What PostgreSQL allocates for parameters and for values that it unpacks would otherwise
/// stay until the SQL function ends, however many steps it has. What is returned lives in Rust's memory.
pub fn scratch<T>(body: impl FnOnce() -> T) -> T {
    let _memory = Memory::new();
    body()
}

/// Whether a snapshot scope is open.
pub fn is_read_only() -> bool {
    READ_ONLY.get()
}

/// How a statement that is kept is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planning {
    /// As PostgreSQL decides after some runs.
    Auto,
    /// For its values each time.
    ByValues,
    /// Once, for any values.
    Once,
}

/// How statements are planned now.
pub fn planning() -> Planning {
    PLANNING.get()
}

fn planned<T>(planning: Planning, body: impl FnOnce() -> Result<T>) -> Result<T> {
    struct Scope(Planning);
    impl Drop for Scope {
        fn drop(&mut self) {
            PLANNING.set(self.0);
        }
    }
    let _scope = Scope(PLANNING.replace(planning));
    body()
}

/// Runs `body` with its statements planned for their values each time: for those whose right plan depends on a filter.
pub fn by_values<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    planned(Planning::ByValues, body)
}

/// Runs `body` with its statements planned once, by their indexes however small the tables are then: for those that look
/// some rows up by their keys, which takes less time than planning.
pub fn by_keys<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    with_settings(&[(c"enable_seqscan", "off")], || planned(Planning::Once, body))
}

/// The error of a write inside a snapshot scope.
pub fn forbid_in_snapshot(sql: &str) -> Result<()> {
    match is_read_only() {
        true => Err(Error::internal(format!("a search may not run \"{sql:.60}\""))),
        false => Ok(()),
    }
}

/// Runs `body` with all its queries reading by one snapshot, that of the calling statement. A write inside is an error.
pub fn snapshot<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    struct Scope(bool);
    impl Drop for Scope {
        fn drop(&mut self) {
            READ_ONLY.set(self.0);
        }
    }
    // SAFETY: pushed here and popped below; when an error passes by, the end of the (sub)transaction pops it.
    unsafe {
        let current =
            if pg_sys::ActiveSnapshotSet() { pg_sys::GetActiveSnapshot() } else { pg_sys::GetTransactionSnapshot() };
        pg_sys::PushActiveSnapshot(current);
    }
    let scope = Scope(READ_ONLY.replace(true));
    let result = scratch(body);
    drop(scope);
    // SAFETY: the one that was pushed above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

/// Runs `body` with an active snapshot that sees all that is committed now: for what is read without SQL after waiting for
/// a lock.
pub fn fresh_snapshot<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: pushed here and popped below; when an error passes by, the end of the (sub)transaction pops it.
    unsafe {
        pg_sys::CommandCounterIncrement();
        pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
    }
    let result = body();
    // SAFETY: the one that was pushed above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

/// Whether the session is between BEGIN and COMMIT.
pub fn in_transaction_block() -> bool {
    // SAFETY: reads the state of the current transaction.
    unsafe { pg_sys::IsTransactionBlock() }
}

/// Fails in a transaction that reads by an old snapshot: it would not see, and so leave behind, what others have added.
pub fn needs_fresh_snapshots(what: &str) -> Result<()> {
    // SAFETY: reads the state of the current transaction.
    match unsafe { pg_sys::XactIsoLevel } >= pg_sys::XACT_REPEATABLE_READ as i32 {
        true => Err(Error::new(Kind::NotReady, format!("{what} in a transaction of isolation level repeatable read"))
            .with_hint("Do it in a transaction of isolation level read committed.")),
        false => Ok(()),
    }
}

/// Runs `body` with settings that end with it, whether it succeeds or not.
pub fn with_settings<T>(settings: &[(&CStr, &str)], body: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: the level is closed below; when a PostgreSQL error passes by, the end of the (sub)transaction closes it.
    let level = unsafe { pg_sys::NewGUCNestLevel() };
    let result = (settings.iter()).try_for_each(|(name, value)| set(name, value)).and_then(|()| body());
    // SAFETY: the level was opened above in this (sub)transaction.
    unsafe { pg_sys::AtEOXact_GUC(true, level) };
    result
}

/// Sets a setting until its nest level is closed. Not by `set_config()`, whose effect lasts to the end of the
/// transaction and which is refused in a parallel plan.
fn set(name: &CStr, value: &str) -> Result<()> {
    let value = CString::new(value).map_err(|_| Error::internal("a setting's value has a NUL"))?;
    // SAFETY: both strings are zero-terminated and live through the call; the action keeps the old value for the level.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        )
    };
    Ok(())
}

/// Settings of the caller's that would change what our own SQL means: names of somebody else's that are taken for
/// PostgreSQL's, quotes around names that are compared, strings and nulls that are read differently.
const NEUTRAL: &[(&CStr, &str)] = &[
    (c"search_path", "pg_catalog, pg_temp"),
    (c"quote_all_identifiers", "off"),
    (c"transform_null_equals", "off"),
    (c"array_nulls", "on"),
    (c"backslash_quote", "safe_encoding"),
    (c"standard_conforming_strings", "on"),
    (c"extra_float_digits", "1"),
];

/// Runs the body of a SQL function with none of the caller's settings that could change it. Fails when the catalog is of
/// another version than this library.
pub fn guarded<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    with_settings(NEUTRAL, || {
        check_version()?;
        body()
    })
}

/// Compares the version of the extension in this database with the library's, until they are seen to be equal.
fn check_version() -> Result<()> {
    if VERSION_SEEN.get() {
        return Ok(());
    }
    let sql = "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pg_rag'";
    match super::select_one(sql, &[], |row| row.get::<String>(1))? {
        Some(found) if found != VERSION => Err(Error::new(
            Kind::NotReady,
            format!(
                "extension pg_rag is of version \"{found}\" in this database and its library of version \"{VERSION}\""
            ),
        )
        .with_hint("ALTER EXTENSION pg_rag UPDATE; if that changes nothing, restart the server.")),
        found => {
            VERSION_SEEN.set(found.is_some());
            Ok(())
        }
    }
}

/// Runs `body` in a subtransaction: on an error its writes are undone. An error that says something about the data is
/// returned; any other (cancelled, deadlock, no privilege, disk full) goes on as the PostgreSQL error it is.
pub fn subtransaction<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    enum Outcome<T> {
        Returned(Result<T>),
        Raised(Box<CaughtError>),
    }
    // SAFETY: the calls follow the order that PL/pgSQL uses for a block with an EXCEPTION clause; context and owner of
    // the caller are restored on every way out.
    let outcome = unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let outcome = PgTryBuilder::new(AssertUnwindSafe(|| Outcome::Returned(scratch(body))))
            .catch_others(|caught| Outcome::Raised(Box::new(caught)))
            .execute();
        match &outcome {
            Outcome::Returned(Ok(_)) => pg_sys::ReleaseCurrentSubTransaction(),
            _ => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        outcome
    };
    match outcome {
        Outcome::Returned(result) => result,
        Outcome::Raised(caught) => match error::about_data(&caught) {
            Some(error) => Err(error),
            None => caught.rethrow(),
        },
    }
}
