// SPDX-License-Identifier: PostgreSQL

//! Rows by an index, without SQL.
//!
//! Owns the calls of table and index access methods. It serves what SPI cannot: tables on which nobody has a grant, read in
//! 2 µs a row instead of 20 (eval/results/lexical-access.md), and the rows of a statement that fires a trigger. Whoever
//! uses it has asked before what the caller may see; nothing it returns may leave without that. Everything is read by the
//! active snapshot, so within [`crate::spi::snapshot`] by that of the search.

use crate::spi;
use pgrx::trigger_support::{PgTrigger, PgTriggerOperation};
use pgrx::{FromDatum, IntoDatum, check_for_interrupts, pg_sys};
use rag_core::{Error, Result};
use std::ffi::CStr;
use std::ops::ControlFlow;

/// A table of the extension and an index of it.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// The table.
    pub table: &'static CStr,
    /// The index; its leading columns are the keys.
    pub index: &'static CStr,
}

/// A condition on a column of the table, by its number from 1.
#[derive(Debug, Clone, Copy)]
pub enum Key<'a> {
    /// `bigint = value`
    Int8(i16, i64),
    /// `integer = value`
    Int4(i16, i32),
    /// `text = value`, by bytes.
    Text(i16, &'a str),
    /// `text <= value`, by bytes.
    AtMost(i16, &'a [u8]),
    /// `text > value`, by bytes.
    Above(i16, &'a [u8]),
}

/// A row while it is read.
#[derive(Debug)]
pub struct Tuple {
    tuple: pg_sys::HeapTuple,
    columns: pg_sys::TupleDesc,
}

impl Tuple {
    /// The value of a column, by its number from 1.
    pub fn optional<T: FromDatum>(&self, column: i16) -> Option<T> {
        let mut null = false;
        // SAFETY: the tuple lives while it is read, and the caller knows the table's columns; what the value refers to is
        // copied by every type used with this (numbers, String, Vec<u8>).
        unsafe {
            let datum = pg_sys::heap_getattr(self.tuple, i32::from(column), self.columns, &mut null);
            T::from_datum(datum, null)
        }
    }

    /// A value that cannot be null.
    pub fn get<T: FromDatum>(&self, column: i16) -> Result<T> {
        self.optional(column).ok_or_else(|| Error::internal(format!("column {column} is null")))
    }
}

/// The key of the schema's relation of that name.
fn relation(name: &CStr) -> Result<pg_sys::Oid> {
    // SAFETY: both names are zero-terminated.
    let found = unsafe { pg_sys::get_relname_relid(name.as_ptr(), pg_sys::get_namespace_oid(c"rag".as_ptr(), true)) };
    match found {
        pg_sys::InvalidOid => Err(Error::internal(format!("relation rag.{} does not exist", name.to_string_lossy()))),
        found => Ok(found),
    }
}

/// The key of a table, which is another one when the extension was made anew.
pub fn table_oid(name: &CStr) -> Result<u32> {
    relation(name).map(pg_sys::Oid::to_u32)
}

/// Reads the rows that satisfy all keys, in the order of the index or (`backward`) against it, until `read` breaks.
pub fn scan(
    path: Path,
    keys: &[Key<'_>],
    backward: bool,
    read: impl FnMut(&Tuple) -> Result<ControlFlow<()>>,
) -> Result<()> {
    // Values are unpacked to be copied, and a merge reads millions.
    spi::scratch(|| scan_in(path, keys, backward, read))
}

fn scan_in(
    path: Path,
    keys: &[Key<'_>],
    backward: bool,
    mut read: impl FnMut(&Tuple) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let (table, index) = (relation(path.table)?, relation(path.index)?);
    let mut keys: Vec<pg_sys::ScanKeyData> = keys.iter().map(scan_key).collect::<Result<_>>()?;
    let direction = match backward {
        true => pg_sys::ScanDirection::BackwardScanDirection,
        false => pg_sys::ScanDirection::ForwardScanDirection,
    };
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: opened, scanned and closed in this order; an error of PostgreSQL passes by and its resource owner closes
    // all. Keys and what they point to outlive the scan.
    unsafe {
        let table = pg_sys::table_open(table, lock);
        let index = pg_sys::index_open(index, lock);
        let snapshot = pg_sys::GetActiveSnapshot();
        let scan = pg_sys::systable_beginscan_ordered(table, index, snapshot, keys.len() as i32, keys.as_mut_ptr());
        let mut result = Ok(());
        loop {
            let tuple = pg_sys::systable_getnext_ordered(scan, direction);
            if tuple.is_null() {
                break;
            }
            match read(&Tuple { tuple, columns: (*table).rd_att }) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        pg_sys::systable_endscan_ordered(scan);
        pg_sys::index_close(index, lock);
        pg_sys::table_close(table, lock);
        result
    }
}

fn scan_key(key: &Key<'_>) -> Result<pg_sys::ScanKeyData> {
    let missing = || Error::internal("a key has no value");
    let text = |bytes: &[u8]| pgrx::rust_byte_slice_to_bytea(bytes).into_datum();
    let (column, strategy, procedure, value) = match key {
        Key::Int8(column, value) => (*column, pg_sys::BTEqualStrategyNumber, pg_sys::F_INT8EQ, value.into_datum()),
        Key::Int4(column, value) => (*column, pg_sys::BTEqualStrategyNumber, pg_sys::F_INT4EQ, value.into_datum()),
        Key::Text(column, value) => (*column, pg_sys::BTEqualStrategyNumber, pg_sys::F_TEXTEQ, text(value.as_bytes())),
        // A text and a bytea look the same in memory, and the collation "C" compares bytes.
        Key::AtMost(column, value) => (*column, pg_sys::BTLessEqualStrategyNumber, pg_sys::F_TEXT_LE, text(value)),
        Key::Above(column, value) => (*column, pg_sys::BTGreaterStrategyNumber, pg_sys::F_TEXT_GT, text(value)),
    };
    // SAFETY: a zeroed key is a valid one to be filled in; the procedures are PostgreSQL's own.
    unsafe {
        let mut filled: pg_sys::ScanKeyData = std::mem::zeroed();
        pg_sys::ScanKeyEntryInitialize(
            &raw mut filled,
            0,
            column,
            strategy as pg_sys::StrategyNumber,
            pg_sys::InvalidOid,
            pg_sys::C_COLLATION_OID,
            procedure.into(),
            value.ok_or_else(missing)?,
        );
        Ok(filled)
    }
}

/// Which rows of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// As they were.
    Old,
    /// As they are.
    New,
}

/// The columns of the table of a trigger that are read, by name.
#[derive(Debug)]
pub struct Columns {
    numbers: Vec<i16>,
}

impl Columns {
    /// Looks names up in the table that fired the trigger.
    pub fn new(trigger: &PgTrigger<'_>, names: &[&CStr]) -> Result<Self> {
        let number = |name: &&CStr| {
            // SAFETY: the relation is open while its trigger runs.
            let found = unsafe { pg_sys::get_attnum((*trigger.trigger_data().tg_relation).rd_id, name.as_ptr()) };
            match found {
                0 => Err(Error::internal(format!("there is no column \"{}\"", name.to_string_lossy()))),
                found => Ok(found),
            }
        };
        Ok(Self { numbers: names.iter().map(number).collect::<Result<_>>()? })
    }
}

/// A row of a statement while it is read.
#[derive(Debug)]
pub struct Changed<'c> {
    tuple: Tuple,
    columns: &'c Columns,
}

impl Changed<'_> {
    /// A value that may be null, by its place in the columns asked for.
    pub fn optional<T: FromDatum>(&self, place: usize) -> Option<T> {
        self.tuple.optional(self.columns.numbers[place])
    }

    /// A value that cannot be null.
    pub fn get<T: FromDatum>(&self, place: usize) -> Result<T> {
        self.tuple.get(self.columns.numbers[place])
    }

    /// A `tsvector` in its wire form.
    pub fn tsvector(&self, place: usize) -> Result<Vec<u8>> {
        let mut null = false;
        // SAFETY: as for any column; the function takes a tsvector, which the caller knows the column to be.
        unsafe {
            let column = i32::from(self.columns.numbers[place]);
            let datum = pg_sys::heap_getattr(self.tuple.tuple, column, self.tuple.columns, &mut null);
            if null {
                return Err(Error::internal("a tsvector is null"));
            }
            let wire = pg_sys::OidFunctionCall1Coll(pg_sys::F_TSVECTORSEND.into(), pg_sys::InvalidOid, datum);
            Vec::from_datum(wire, false).ok_or_else(|| Error::internal("a tsvector cannot be sent"))
        }
    }
}

/// Whether the rows of the statement of a trigger are known to it. They are not to a trigger for each row where there is no
/// statement, as in the worker of a subscription.
pub fn has_statement(trigger: &PgTrigger<'_>) -> bool {
    let data = trigger.trigger_data();
    !data.tg_oldtable.is_null() || !data.tg_newtable.is_null()
}

/// Reads the rows that the statement of a trigger changed, or the one of a trigger for each row that has no statement; none when
/// there is nothing on that side.
pub fn changed(
    trigger: &PgTrigger<'_>,
    side: Side,
    columns: &Columns,
    mut read: impl FnMut(&Changed<'_>) -> Result<()>,
) -> Result<()> {
    let data = trigger.trigger_data();
    let store = match side {
        Side::Old => data.tg_oldtable,
        Side::New => data.tg_newtable,
    };
    if store.is_null() {
        let row = match trigger.op() {
            Ok(PgTriggerOperation::Insert) if side == Side::New => data.tg_trigtuple,
            Ok(PgTriggerOperation::Update) if side == Side::New => data.tg_newtuple,
            Ok(PgTriggerOperation::Update | PgTriggerOperation::Delete) if side == Side::Old => data.tg_trigtuple,
            _ => std::ptr::null_mut(),
        };
        if row.is_null() {
            return Ok(());
        }
        // SAFETY: the relation is open while its trigger runs.
        let columns_of_row = unsafe { (*data.tg_relation).rd_att };
        return spi::scratch(|| read(&Changed { tuple: Tuple { tuple: row, columns: columns_of_row }, columns }));
    }
    let mut memory = pgrx::memcxt::PgMemoryContexts::new("pg_rag changed rows");
    // SAFETY: the store lives while the trigger runs; the pointer into it is ours, as for any of its readers. What reading a
    // row allocates goes with the row.
    unsafe {
        let columns_of_row = (*data.tg_relation).rd_att;
        let slot = pg_sys::MakeSingleTupleTableSlot(columns_of_row, &raw const pg_sys::TTSOpsMinimalTuple);
        let pointer = pg_sys::tuplestore_alloc_read_pointer(store, pg_sys::EXEC_FLAG_REWIND as i32);
        pg_sys::tuplestore_select_read_pointer(store, pointer);
        pg_sys::tuplestore_rescan(store);
        let mut result = Ok(());
        loop {
            // Another reader may have moved the store to its own pointer while a row was read.
            pg_sys::tuplestore_select_read_pointer(store, pointer);
            if !pg_sys::tuplestore_gettupleslot(store, true, false, slot) {
                break;
            }
            result = memory.switch_to(|_| {
                let mut free = false;
                let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, &raw mut free);
                read(&Changed { tuple: Tuple { tuple, columns: columns_of_row }, columns })
            });
            if result.is_err() {
                break;
            }
            memory.reset();
            check_for_interrupts!();
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        result
    }
}
