// SPDX-License-Identifier: PostgreSQL

//! The only door to SQL.
//!
//! Typed rows in, parameters out, errors as [`rag_core::Error`]. Also the two things around a statement that need
//! unsafe calls: settings that end with a block, and subtransactions. Every statement gets its values as parameters;
//! whoever builds statement text may only put whitelisted identifiers and numbers into it.

use crate::error;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::spi::{Spi, SpiHeapTupleData};
use pgrx::{FromDatum, IntoDatum, PgTryBuilder, pg_sys};
use rag_core::{Error, Result};
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;

/// One row of a result, read by position from 1.
pub struct Row<'a, 'conn> {
    tuple: &'a SpiHeapTupleData<'conn>,
}

impl Row<'_, '_> {
    /// A value that may be null.
    pub fn optional<T: FromDatum + IntoDatum>(&self, column: usize) -> Result<Option<T>> {
        self.tuple.get::<T>(column).map_err(internal)
    }

    /// A value that may not be null.
    pub fn get<T: FromDatum + IntoDatum>(&self, column: usize) -> Result<T> {
        self.optional(column)?.ok_or_else(|| Error::internal(format!("column {column} is null")))
    }
}

fn internal(error: pgrx::spi::SpiError) -> Error {
    Error::internal(format!("SPI: {error}"))
}

/// Runs a query and reads its rows.
pub fn select<T>(
    sql: &str,
    args: &[DatumWithOid<'_>],
    mut read: impl FnMut(&Row<'_, '_>) -> Result<T>,
) -> Result<Vec<T>> {
    Spi::connect(|client| {
        let table = client.select(sql, None, args).map_err(internal)?;
        table.map(|tuple| read(&Row { tuple: &tuple })).collect()
    })
}

/// Runs a query that gives at most one row.
pub fn select_one<T>(
    sql: &str,
    args: &[DatumWithOid<'_>],
    read: impl FnMut(&Row<'_, '_>) -> Result<T>,
) -> Result<Option<T>> {
    Ok(select(sql, args, read)?.into_iter().next())
}

/// Runs a statement that writes; reads the rows it returns.
pub fn write<T>(
    sql: &str,
    args: &[DatumWithOid<'_>],
    mut read: impl FnMut(&Row<'_, '_>) -> Result<T>,
) -> Result<Vec<T>> {
    Spi::connect_mut(|client| {
        let table = client.update(sql, None, args).map_err(internal)?;
        table.map(|tuple| read(&Row { tuple: &tuple })).collect()
    })
}

/// Runs a statement that writes and returns the number of rows it touched.
pub fn execute(sql: &str, args: &[DatumWithOid<'_>]) -> Result<u64> {
    Spi::connect_mut(|client| client.update(sql, None, args).map(|table| table.len() as u64).map_err(internal))
}

/// Whether the session is between BEGIN and COMMIT.
pub fn in_transaction_block() -> bool {
    // SAFETY: reads the state of the current transaction.
    unsafe { pg_sys::IsTransactionBlock() }
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

/// Runs the body of a SQL function with a search path that holds nothing of the caller's: an operator or function in a
/// schema of somebody else must not be taken for PostgreSQL's own.
pub fn guarded<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    with_settings(&[(c"search_path", "pg_catalog, pg_temp")], body)
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
        let outcome = PgTryBuilder::new(AssertUnwindSafe(|| Outcome::Returned(body())))
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
