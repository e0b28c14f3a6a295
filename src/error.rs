// SPDX-License-Identifier: PostgreSQL

//! The only place that raises: turns [`rag_core::Error`] into a PostgreSQL error.
//!
//! Everything else in this crate returns `Result`; functions in [`crate::api`] hand their result to [`OrRaise`].

use pgrx::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, pg_sys};
use rag_core::{Error, Kind, Result};

fn sqlstate(kind: Kind) -> Code {
    match kind {
        Kind::InvalidArgument => Code::ERRCODE_INVALID_PARAMETER_VALUE,
        Kind::NotFound => Code::ERRCODE_UNDEFINED_OBJECT,
        Kind::AlreadyExists => Code::ERRCODE_DUPLICATE_OBJECT,
        Kind::NotReady => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        Kind::Unsupported => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
        Kind::LimitExceeded => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        Kind::Forbidden => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
        Kind::FileMissing => Code::ERRCODE_UNDEFINED_FILE,
        Kind::Io => Code::ERRCODE_IO_ERROR,
        Kind::BadContent => Code::ERRCODE_DATA_EXCEPTION,
        Kind::NoResources => Code::ERRCODE_INSUFFICIENT_RESOURCES,
        Kind::OutOfMemory => Code::ERRCODE_OUT_OF_MEMORY,
        Kind::Connection => Code::ERRCODE_CONNECTION_FAILURE,
        Kind::InTransaction => Code::ERRCODE_INVALID_TRANSACTION_TERMINATION,
        Kind::InUse => Code::ERRCODE_OBJECT_IN_USE,
        Kind::Corrupt => Code::ERRCODE_INDEX_CORRUPTED,
        Kind::Internal => Code::ERRCODE_INTERNAL_ERROR,
    }
}

/// Characters of a message; what it quotes may be as long as a document.
const LONGEST: usize = 1000;

/// A message without most of what stands in the middle of a long one.
fn shown(message: String) -> String {
    if message.len() <= LONGEST {
        return message;
    }
    let (head, tail) =
        (message.floor_char_boundary(LONGEST * 3 / 4), message.ceil_char_boundary(message.len() - LONGEST / 4));
    format!("{} … {}", &message[..head], &message[tail..])
}

fn report(error: Error) -> ErrorReport {
    let mut report = ErrorReport::new(sqlstate(error.kind), shown(error.message), "pg_rag");
    if let Some(detail) = error.detail {
        report = report.set_detail(shown(detail));
    }
    if let Some(hint) = error.hint {
        report = report.set_hint(shown(hint));
    }
    report
}

/// Raises `error` as a PostgreSQL ERROR.
pub fn raise(error: Error) -> ! {
    report(error).report(PgLogLevel::ERROR);
    unreachable!("an error report of level ERROR does not return")
}

/// Sends a warning to the client.
pub fn warn(message: String, hint: Option<&str>) {
    let mut report = ErrorReport::new(Code::ERRCODE_WARNING, shown(message), "pg_rag");
    if let Some(hint) = hint {
        report = report.set_hint(hint);
    }
    report.report(PgLogLevel::WARNING);
}

/// Sends a notice to the client.
pub fn notice(message: String) {
    ErrorReport::new(Code::ERRCODE_SUCCESSFUL_COMPLETION, shown(message), "pg_rag").report(PgLogLevel::NOTICE);
}

/// Ends a SQL function: the value, or the error raised.
pub trait OrRaise<T> {
    /// The value, or the error raised.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|error| raise(error))
    }
}

/// An error that PostgreSQL raised, as ours, if it says something about the data: bad values, broken constraints,
/// exceeded limits.
pub fn about_data(caught: &pg_sys::panic::CaughtError) -> Option<Error> {
    use pg_sys::panic::CaughtError::{ErrorReport, PostgresError, RustPanic};
    let report = match caught {
        PostgresError(report) | ErrorReport(report) => report,
        RustPanic { .. } => return None,
    };
    // The first two characters of an SQLSTATE are its class; PostgreSQL keeps them in the lowest twelve bits.
    let class_of = |code: Code| code as i32 & 0xFFF;
    let class = class_of(report.sql_error_code());
    let kind = match class {
        c if c == class_of(Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED) => Kind::LimitExceeded,
        c if c == class_of(Code::ERRCODE_DATA_EXCEPTION) => Kind::BadContent,
        c if c == class_of(Code::ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION) => Kind::BadContent,
        _ => return None,
    };
    let mut error = Error::new(kind, report.message());
    error.detail = report.detail().map(str::to_owned);
    error.hint = report.hint().map(str::to_owned);
    Some(error)
}

/// The five characters of an SQLSTATE. PostgreSQL packs them into six bits each, the first lowest.
fn characters(code: Code) -> String {
    let packed = code as i32;
    (0..5).map(|at| char::from(((packed >> (6 * at)) & 0x3F) as u8 + b'0')).collect()
}

/// An error of ours with its SQLSTATE.
pub fn failure(error: Error) -> (String, Error) {
    (characters(sqlstate(error.kind)), error)
}

/// An error that PostgreSQL raised, with its SQLSTATE.
pub fn failure_of(caught: &pg_sys::panic::CaughtError) -> (String, Error) {
    use pg_sys::panic::CaughtError::{ErrorReport, PostgresError, RustPanic};
    let report = match caught {
        PostgresError(report) | ErrorReport(report) => report,
        RustPanic { ereport, .. } => ereport,
    };
    let mut error = Error::new(Kind::Internal, report.message());
    error.detail = report.detail().map(str::to_owned);
    error.hint = report.hint().map(str::to_owned);
    (characters(report.sql_error_code()), error)
}
