// SPDX-License-Identifier: PostgreSQL

//! `jsonb` as an argument of a SQL function.
//!
//! pgrx has a type of its own for it, which takes JSON that is nested too deeply for its parser for a fault of the
//! program. This one says what is wrong with it. Results are pgrx's.

use crate::error::raise;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, pg_sys};
use rag_core::{Error, Kind};
use serde_json::Value;
use std::ffi::CStr;

/// JSON that a caller gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Json(pub Value);

/// Levels that may be nested; the parser stops there, so that no JSON can use up the stack.
const MAX_DEPTH: usize = 127;

// SAFETY: the SQL type named is the one that is read below.
unsafe impl SqlTranslatable for Json {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Json);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}

impl FromDatum for Json {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _typoid: pg_sys::Oid) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the function is declared to take a jsonb, so the datum is one, and its output function makes a
        // zero-terminated string of it.
        let text = unsafe {
            let text: Option<&CStr> = pgrx::direct_function_call(pg_sys::jsonb_out, &[Some(datum)]);
            text?
        };
        match serde_json::from_slice(text.to_bytes()) {
            Ok(value) => Some(Self(value)),
            // What PostgreSQL printed is JSON, so there is one thing that can be wrong with it.
            Err(error) => raise(
                Error::new(Kind::LimitExceeded, format!("JSON is nested deeper than {MAX_DEPTH} levels"))
                    .with_detail(format!("{error}.")),
            ),
        }
    }
}

// SAFETY: delegates to FromDatum, which handles null.
unsafe impl<'fcx> ArgAbi<'fcx> for Json {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller promises that the argument is not null and of this type.
        let Some(json) = (unsafe { arg.unbox_arg_using_from_datum() }) else { raise(Error::internal("null jsonb")) };
        json
    }
}
