// SPDX-License-Identifier: PostgreSQL

//! The only door to SQL.
//!
//! Typed rows out, parameters in, errors as [`rag_core::Error`]. Every statement gets its values as parameters; whoever
//! builds statement text may only put whitelisted identifiers and numbers into it.
//!
//! Why not pgrx's own client: once the transaction has written something, it gives each query a snapshot of its own, so
//! two queries of one search could see two states of the catalog. Here [`scope::snapshot`] decides: within it every
//! query reads by one snapshot and a write is a bug. Plans are kept for the session, and a large result is read
//! through a cursor, so that its rows are never all in memory.

pub mod lock;
mod plan;
mod scope;

pub use scope::{
    by_keys, by_values, fresh_snapshot, guarded, in_transaction_block, needs_fresh_snapshots, scratch, snapshot,
    subtransaction, with_settings,
};

use pgrx::datum::DatumWithOid;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::spi::Spi;
use pgrx::{FromDatum, IntoDatum, check_for_interrupts, pg_sys};
use rag_core::{Error, Result};
use std::ffi::CString;

/// Rows of a large result that are in memory at once.
const FETCH: i64 = 1000;

/// One row of a result, read by position from 1.
pub struct Row {
    tuple: pg_sys::HeapTuple,
    columns: pg_sys::TupleDesc,
}

impl Row {
    /// A value that may be null. Fails when the column is of another type.
    pub fn optional<T: FromDatum + IntoDatum>(&self, column: usize) -> Result<Option<T>> {
        let position = i32::try_from(column).map_err(|_| Error::internal(format!("there is no column {column}")))?;
        // SAFETY: the row is one of a result that lives while the reader runs; a position that is not there gives an
        // invalid type, which no Rust type is compatible with.
        unsafe {
            let found = pg_sys::SPI_gettypeid(self.columns, position);
            if !T::is_compatible_with(found) {
                let wanted = T::type_oid().to_u32();
                let found = found.to_u32();
                return Err(Error::internal(format!("column {column} is of type {found}, not {wanted}")));
            }
            let mut null = false;
            let datum = pg_sys::SPI_getbinval(self.tuple, self.columns, position, &raw mut null);
            Ok(T::from_polymorphic_datum(datum, null, found))
        }
    }

    /// A value that may not be null.
    pub fn get<T: FromDatum + IntoDatum>(&self, column: usize) -> Result<T> {
        self.optional(column)?.ok_or_else(|| Error::internal(format!("column {column} is null")))
    }
}

/// Runs a query and reads its rows.
pub fn select<T>(sql: &str, args: &[DatumWithOid<'_>], mut read: impl FnMut(&Row) -> Result<T>) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    run(sql, args, scope::is_read_only(), &mut |row| {
        rows.push(read(row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Runs a query that gives at most one row.
pub fn select_one<T>(sql: &str, args: &[DatumWithOid<'_>], read: impl FnMut(&Row) -> Result<T>) -> Result<Option<T>> {
    Ok(select(sql, args, read)?.into_iter().next())
}

/// Runs a query whose result may be larger than memory, and hands each row to `read`.
pub fn each(sql: &str, args: &[DatumWithOid<'_>], mut read: impl FnMut(&Row) -> Result<()>) -> Result<()> {
    let (mut values, nulls) = bound(args);
    Spi::connect(|_| {
        let plan = plan::prepare(sql, args)?;
        // SAFETY: inside an SPI connection; values and nulls are as many as the plan's parameters and outlive the cursor.
        let cursor = unsafe {
            let (values, nulls) = (values.as_mut_ptr(), nulls.as_ptr());
            pg_sys::SPI_cursor_open(std::ptr::null(), plan.plan(), values, nulls, scope::is_read_only())
        };
        // What reading allocates (detoasted values) goes with each batch.
        let mut memory = PgMemoryContexts::new("pg_rag rows");
        let result = loop {
            // SAFETY: the cursor was opened above and nothing closes it before the loop ends.
            let batch = unsafe {
                pg_sys::SPI_cursor_fetch(cursor, true, FETCH as _);
                pg_sys::SPI_tuptable
            };
            // SAFETY: the batch is the result of the fetch just made.
            let count = unsafe { (*batch).numvals };
            // SAFETY: nothing that is read outlives the closure except through Rust's own memory.
            let result = unsafe { memory.switch_to(|_| rows_of(batch, &mut read)) };
            // SAFETY: no row of the batch is in use any more.
            unsafe { pg_sys::SPI_freetuptable(batch) };
            if count == 0 || result.is_err() {
                break result;
            }
            // SAFETY: nothing allocated in it is in use between two batches.
            unsafe { memory.reset() };
            check_for_interrupts!();
        };
        // SAFETY: as above.
        unsafe { pg_sys::SPI_cursor_close(cursor) };
        result
    })
}

/// Runs a statement that writes; reads the rows it returns.
pub fn write<T>(sql: &str, args: &[DatumWithOid<'_>], mut read: impl FnMut(&Row) -> Result<T>) -> Result<Vec<T>> {
    scope::forbid_in_snapshot(sql)?;
    let mut rows = Vec::new();
    run(sql, args, false, &mut |row| {
        rows.push(read(row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Runs a statement that writes and returns the number of rows it touched.
pub fn execute(sql: &str, args: &[DatumWithOid<'_>]) -> Result<u64> {
    scope::forbid_in_snapshot(sql)?;
    run(sql, args, false, &mut |_| Ok(()))
}

/// Runs a command that has no plan worth keeping: one that makes, changes or drops an object.
pub fn command(sql: &str) -> Result<()> {
    scope::forbid_in_snapshot(sql)?;
    let text = CString::new(sql).map_err(|_| Error::internal("a command has a NUL"))?;
    // SAFETY: inside an SPI connection, with a zero-terminated text that lives through the call.
    Spi::connect(|_| checked(unsafe { pg_sys::SPI_execute(text.as_ptr(), false, 0) }).map(|_| ()))
}

fn run(sql: &str, args: &[DatumWithOid<'_>], read_only: bool, read: &mut dyn FnMut(&Row) -> Result<()>) -> Result<u64> {
    let (mut values, nulls) = bound(args);
    Spi::connect(|_| {
        let plan = plan::prepare(sql, args)?;
        // SAFETY: inside an SPI connection; values and nulls are as many as the plan's parameters and live on.
        checked(unsafe { pg_sys::SPI_execute_plan(plan.plan(), values.as_mut_ptr(), nulls.as_ptr(), read_only, 0) })?;
        // SAFETY: SPI's results are read before anything else runs; a null table means a statement without rows.
        unsafe {
            let (processed, table) = (pg_sys::SPI_processed, pg_sys::SPI_tuptable);
            if !table.is_null() {
                rows_of(table, read)?;
            }
            Ok(processed)
        }
    })
}

fn rows_of(table: *mut pg_sys::SPITupleTable, read: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
    // SAFETY: the table is a live result of SPI, which has `numvals` tuples.
    let (tuples, columns) = unsafe {
        let count = usize::try_from((*table).numvals).unwrap_or(0);
        match count {
            0 => (&[][..], (*table).tupdesc),
            _ => (std::slice::from_raw_parts((*table).vals, count), (*table).tupdesc),
        }
    };
    tuples.iter().try_for_each(|tuple| read(&Row { tuple: *tuple, columns }))
}

/// Values and null flags as SPI wants them.
fn bound(args: &[DatumWithOid<'_>]) -> (Vec<pg_sys::Datum>, Vec<std::ffi::c_char>) {
    let value = |arg: &DatumWithOid<'_>| arg.datum().map_or(pg_sys::Datum::from(0), |d| d.sans_lifetime());
    let null = |arg: &DatumWithOid<'_>| if arg.datum().is_some() { b' ' } else { b'n' } as std::ffi::c_char;
    (args.iter().map(value).collect(), args.iter().map(null).collect())
}

/// SPI raises most errors; the rest it returns as negative numbers.
fn checked(code: i32) -> Result<i32> {
    match code {
        failure if failure < 0 => Err(Error::internal(format!("SPI returned {failure}"))),
        success => Ok(success),
    }
}
