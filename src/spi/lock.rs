// SPDX-License-Identifier: PostgreSQL

//! Locks on things that are no rows for whoever takes them.
//!
//! Somebody who may read a collection but not change it must be able to keep it from being dropped, and a row lock would
//! ask for the right to change it. Advisory locks would do, but their keys are everybody's: a role without any right could
//! hold one and stop others. These are PostgreSQL's locks on objects of a database, which no SQL function takes; the
//! object is named by a table of the extension and a number. They show in `pg_locks` with type `object`.

use pgrx::pg_sys;
use rag_core::{Error, Result};

/// Waits until nobody holds `object` of `table` exclusively; lasts to the end of the transaction.
pub fn shared(table: &str, object: i64) -> Result<()> {
    acquire(&tag(table, object)?, pg_sys::ShareLock, false, false).map(|_| ())
}

/// Waits until nobody holds `object` of `table`; lasts to the end of the transaction.
pub fn exclusive(table: &str, object: i64) -> Result<()> {
    acquire(&tag(table, object)?, pg_sys::ExclusiveLock, false, false).map(|_| ())
}

/// Takes `object` of `table` if nobody holds it, to the end of the transaction; says whether it did.
pub fn try_exclusive(table: &str, object: i64) -> Result<bool> {
    acquire(&tag(table, object)?, pg_sys::ExclusiveLock, false, true)
}

/// Takes `object` of `table` for the session if nobody holds it; says whether it did.
///
/// By the method of advisory locks, though no SQL function takes this one: PostgreSQL lets go of other locks of a session when
/// any transaction of it fails, and does not when it ends well, so that a dead process would hold them for ever.
pub fn try_for_session(table: &str, object: i64) -> Result<bool> {
    let tag = pg_sys::LOCKTAG { locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8, ..tag(table, object)? };
    acquire(&tag, pg_sys::ExclusiveLock, true, true)
}

fn acquire(tag: &pg_sys::LOCKTAG, mode: u32, session: bool, dont_wait: bool) -> Result<bool> {
    // A standby takes no such lock, and says so in its own words.
    // SAFETY: the name is zero-terminated.
    unsafe { pg_sys::PreventCommandDuringRecovery(c"a change of the catalog of pg_rag".as_ptr()) };
    // SAFETY: the tag is whole and lives through the call; PostgreSQL releases the lock at the end of the transaction or
    // of the session.
    let result = unsafe { pg_sys::LockAcquire(tag, mode as pg_sys::LOCKMODE, session, dont_wait) };
    Ok(result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL)
}

fn tag(table: &str, object: i64) -> Result<pg_sys::LOCKTAG> {
    let sql = "SELECT pg_catalog.to_regclass($1)::oid";
    let class: Option<pg_sys::Oid> = super::select_one(sql, &[table.into()], |row| row.optional(1))?.flatten();
    let class = class.ok_or_else(|| Error::internal(format!("table \"{table}\" does not exist")))?;
    // SAFETY: the database of this process does not change.
    let database = unsafe { pg_sys::MyDatabaseId };
    Ok(pg_sys::LOCKTAG {
        locktag_field1: database.to_u32(),
        locktag_field2: class.to_u32(),
        // Two objects may share a lock: that delays, nothing else.
        locktag_field3: (object & 0xFFFF_FFFF) as u32,
        locktag_field4: 0,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    })
}
