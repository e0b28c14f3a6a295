// SPDX-License-Identifier: PostgreSQL

//! PostgreSQL's `tsvector` as a result of SQL functions.
//!
//! Made by the server's own input function, so nothing here knows its layout.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{IntoDatum, pg_sys};
use rag_core::{Error, Result};
use std::ffi::CString;

/// A vector in the memory of the statement.
#[derive(Debug, Clone, Copy)]
pub struct TsVector(pg_sys::Datum);

impl TsVector {
    /// The vector of a text in its text form.
    pub fn read(text: &str) -> Result<Self> {
        let text = CString::new(text).map_err(|_| Error::internal("a vector has a NUL"))?;
        let argument = pg_sys::Datum::from(text.as_ptr());
        // SAFETY: the input function takes a zero-terminated string, which lives through the call.
        let datum = unsafe { pgrx::direct_function_call_as_datum(pg_sys::tsvectorin, &[Some(argument)]) };
        datum.map(Self).ok_or_else(|| Error::internal("a vector is null"))
    }
}

// SAFETY: the SQL type named is the one whose input function makes the datum.
unsafe impl SqlTranslatable for TsVector {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(TsVector);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: std::result::Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("tsvector"));
    const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("tsvector")));
}

impl IntoDatum for TsVector {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(self.0)
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TSVECTOROID
    }
}

// SAFETY: returns the datum made by the input function.
unsafe impl BoxRet for TsVector {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: the datum was made for this call's result.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}
