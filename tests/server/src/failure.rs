// SPDX-License-Identifier: PostgreSQL

//! Why a test failed, with everything a server said about it.
//!
//! `Box<dyn Error>` shows only the first line of a server's error; the detail and the hint are what one needs.

use std::error::Error;
use std::fmt;

/// A failure as text. Not an `Error` itself, so that every error can become one by `?`.
pub struct Failure(String);

/// What a test returns.
pub type TestResult<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure of the test's own finding.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let any: &dyn Error = &error;
        let (mut text, detail, hint) =
            if let Some(db) = any.downcast_ref::<postgres::Error>().and_then(|e| e.as_db_error()) {
                (format!("{} ({})", db.message(), db.code().code()), db.detail(), db.hint())
            } else if let Some(own) = any.downcast_ref::<rag_core::Error>() {
                (own.message.clone(), own.detail.as_deref(), own.hint.as_deref())
            } else {
                (error.to_string(), None, None)
            };
        for (label, part) in [("detail", detail), ("hint", hint)] {
            if let Some(part) = part {
                text.push_str(&format!("\n{label}: {part}"));
            }
        }
        Self(text)
    }
}
