// SPDX-License-Identifier: PostgreSQL

//! pgvector's `vector`, as SQL arguments and results.
//!
//! The only file that knows its memory layout: a varlena whose data is two `int16` (dimensions, unused) and the
//! `float4` values. Towards SPI vectors travel as `real[]` and are cast in SQL, so nothing here needs to know the type's
//! OID, which differs between databases.

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, IntoDatum, pg_sys};

/// A dense vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(pub Vec<f32>);

const HEAD: usize = pg_sys::VARHDRSZ + 4;

// SAFETY: the SQL type named is the one whose layout is read and written below.
unsafe impl SqlTranslatable for Vector {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Vector);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("vector"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("vector")));
}

impl FromDatum for Vector {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _typoid: pg_sys::Oid) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the function is declared to take a pgvector vector, so the datum points to one; after detoasting its
        // length is in its header, and pgvector writes as many floats as its first field says.
        unsafe {
            let varlena = pg_sys::pg_detoast_datum(datum.cast_mut_ptr());
            let start = varlena.cast::<u8>();
            let dimensions = usize::from(start.add(pg_sys::VARHDRSZ).cast::<u16>().read_unaligned());
            let floats = start.add(HEAD).cast::<f32>();
            Some(Vector((0..dimensions).map(|i| floats.add(i).read_unaligned()).collect()))
        }
    }
}

impl IntoDatum for Vector {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let dimensions = u16::try_from(self.0.len()).ok()?;
        let size = HEAD + self.0.len() * 4;
        // SAFETY: the memory is of the size that the header states, and every byte of it is written.
        unsafe {
            let start = pg_sys::palloc0(size).cast::<u8>();
            pgrx::varlena::set_varsize_4b(start.cast(), i32::try_from(size).ok()?);
            start.add(pg_sys::VARHDRSZ).cast::<u16>().write_unaligned(dimensions);
            let floats = start.add(HEAD).cast::<f32>();
            for (i, value) in self.0.iter().enumerate() {
                floats.add(i).write_unaligned(*value);
            }
            Some(pg_sys::Datum::from(start))
        }
    }

    fn type_oid() -> pg_sys::Oid {
        // Only asked for by SPI parameters and arrays, which vectors never become.
        pg_sys::InvalidOid
    }
}

// SAFETY: delegates to FromDatum, which handles null.
unsafe impl<'fcx> ArgAbi<'fcx> for Vector {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller promises that the argument is not null and of this type.
        let Some(vector) = (unsafe { arg.unbox_arg_using_from_datum() }) else {
            crate::error::raise(rag_core::Error::internal("null vector"))
        };
        vector
    }
}

// SAFETY: returns the datum made by IntoDatum.
unsafe impl BoxRet for Vector {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: the datum was made for this call's result.
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}
