//! The only door to SQL.
//!
//! Typed rows in, parameters out, errors as [`rag_core::Error`]. Also the two things around a statement that need
//! unsafe calls: settings that end with a block, and subtransactions. Every statement gets its values as parameters;
//! whoever builds statement text may only put whitelisted identifiers and numbers into it.

use crate::error;
use pgrx::datum::DatumWithOid;
use pgrx::spi::{Spi, SpiHeapTupleData};
use pgrx::{FromDatum, IntoDatum, PgTryBuilder, pg_sys};
use rag_core::{Error, Result};
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
pub fn with_settings<T>(settings: &[(&str, String)], body: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: the level is closed below; when a PostgreSQL error passes by, the end of the (sub)transaction closes it.
    let level = unsafe { pg_sys::NewGUCNestLevel() };
    let result = (settings.iter())
        .try_for_each(|(name, value)| {
            let args = [(*name).into(), value.as_str().into()];
            select("SELECT pg_catalog.set_config($1, $2, true)", &args, |_| Ok(())).map(|_| ())
        })
        .and_then(|()| body());
    // SAFETY: the level was opened above in this (sub)transaction.
    unsafe { pg_sys::AtEOXact_GUC(true, level) };
    result
}

/// Runs `body` in a subtransaction: on an error of either kind its writes are undone and the error is returned.
pub fn subtransaction<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: the calls follow the order that PL/pgSQL uses for a block with an EXCEPTION clause; context and owner of
    // the caller are restored on both ways out.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let outcome = PgTryBuilder::new(AssertUnwindSafe(body))
            .catch_others(|caught| match cancelled(&caught) {
                true => caught.rethrow(),
                false => Err(error::from_postgres(caught)),
            })
            .execute();
        match &outcome {
            Ok(_) => pg_sys::ReleaseCurrentSubTransaction(),
            Err(_) => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        outcome
    }
}

/// A cancelled statement is not a failure of what it was doing.
fn cancelled(caught: &pg_sys::panic::CaughtError) -> bool {
    use pg_sys::panic::CaughtError::{ErrorReport, PostgresError};
    match caught {
        PostgresError(report) | ErrorReport(report) => {
            report.sql_error_code() == pgrx::PgSqlErrorCode::ERRCODE_QUERY_CANCELED
        }
        _ => false,
    }
}
