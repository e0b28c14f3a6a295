// SPDX-License-Identifier: PostgreSQL

//! The one error of the project.
//!
//! Every crate returns it, the protocol carries it unchanged from a parse worker to a client backend, and the
//! extension turns its [`Kind`] into an SQLSTATE. It must not know PostgreSQL: a kind says what is wrong in the
//! caller's terms, the edge decides on a code. One struct rather than an enum per crate, because an error crosses
//! three processes and the reader of the message cares about four things: the kind, the message, the detail and the
//! command that helps.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of failure it is; decides the SQLSTATE and whether the caller can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// An argument, option, filter or setting is not valid (22023).
    InvalidArgument,
    /// A named thing does not exist: collection, source, model, profile (42704).
    NotFound,
    /// A thing of that name exists already (42710).
    AlreadyExists,
    /// The engine, a model or an index is not ready to answer (55000).
    NotReady,
    /// The format, option or combination is known but not supported (0A000).
    Unsupported,
    /// A stated limit was exceeded: size, time, nesting, count (54000).
    LimitExceeded,
    /// The location lies outside what the administrator allowed (42501).
    Forbidden,
    /// A file, folder or model folder is missing (58P01).
    FileMissing,
    /// Reading failed for another reason of the operating system (58030).
    Io,
    /// The content cannot be read as what it claims to be (22000).
    BadContent,
    /// The server lacks a resource: a worker slot (53000).
    NoResources,
    /// Memory ran out (53200).
    OutOfMemory,
    /// The engine broke the connection or the protocol (08006).
    Connection,
    /// The statement must run outside of a transaction block (2D000).
    InTransaction,
    /// Another session is working on it (55006).
    InUse,
    /// Stored rows of the index of the BM25 leg break its rules (XX002).
    Corrupt,
    /// A bug (XX000).
    Internal,
}

/// A failure with everything a user needs to act on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// What kind of failure it is.
    pub kind: Kind,
    /// Lower case, no full stop, quotes the value.
    pub message: String,
    /// A sentence of fact.
    pub detail: Option<String>,
    /// A sentence with the command to type.
    pub hint: Option<String>,
}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` with its message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), detail: None, hint: None }
    }

    /// An invalid argument.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArgument, message)
    }

    /// Something known that is not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// A bug; the message says which assumption did not hold.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// Adds a sentence of fact.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a sentence with the command to type.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An operating system error while working on `what`, with the kind that fits it.
    pub fn io(what: &str, error: &std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => Kind::FileMissing,
            std::io::ErrorKind::PermissionDenied => Kind::Forbidden,
            std::io::ErrorKind::OutOfMemory => Kind::OutOfMemory,
            _ => Kind::Io,
        };
        Self::new(kind, format!("could not read \"{what}\": {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The member of `known` that is most like `word`, for "did you mean" hints; `None` when nothing is close.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|k| (strsim::normalized_damerau_levenshtein(word, k), k))
        .filter(|(similarity, _)| *similarity >= 0.4)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

/// The error for a key that is not one of `known`: names the nearest, or lists them all.
pub fn unknown_key(what: &str, key: &str, known: &[&str]) -> Error {
    let error = Error::invalid(format!("unknown {what} \"{key}\""));
    match nearest(key, known.iter().copied()) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error.with_hint(format!("Known: {}.", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_names_the_nearest() {
        let e = unknown_key("setting", "rrfk", &["rrf_k", "alpha"]);
        assert_eq!(e.hint.as_deref(), Some("Perhaps you meant \"rrf_k\"."));
    }

    #[test]
    fn a_strange_key_lists_the_known_ones() {
        let e = unknown_key("setting", "zzzzzzzz", &["rrf_k", "alpha"]);
        assert_eq!(e.hint.as_deref(), Some("Known: rrf_k, alpha."));
    }
}
