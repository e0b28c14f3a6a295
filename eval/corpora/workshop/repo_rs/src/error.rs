//! Errors of the crate.

use std::fmt;

/// What went wrong. Each has a negative code for the C interface.
#[derive(Debug, Clone, PartialEq)]
pub enum TholeError {
    /// The bytes are shorter than the structure that they should hold.
    Truncated {
        /// Bytes that were needed.
        needed: usize,
        /// Bytes that were there.
        got: usize,
    },
    /// The checksum does not fit.
    Checksum {
        /// The one that was stored.
        stored: u16,
        /// The one that was computed.
        computed: u16,
    },
    /// Magic or version of something else.
    NotAFrame,
    /// A varint of more than three bytes, or bytes behind the last sample.
    Malformed(&'static str),
    /// More samples than the caller's array holds.
    TooMany(usize),
    /// The normal equations cannot be solved.
    Singular {
        /// Index of the column at which the pivot vanished.
        column: usize,
    },
    /// A block whose index and content contradict each other.
    BlockIndex,
}

impl TholeError {
    /// Code for the C interface. Codes are never reused: -4 was the error of the
    /// first block format and stays empty.
    pub fn code(&self) -> i32 {
        match self {
            TholeError::Truncated { .. } => -1,
            TholeError::Checksum { .. } => -2,
            TholeError::NotAFrame | TholeError::Malformed(_) => -3,
            TholeError::TooMany(_) => -5,
            TholeError::Singular { .. } => -6,
            TholeError::BlockIndex => -7,
        }
    }
}

impl fmt::Display for TholeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TholeError::Truncated { needed, got } => write!(f, "{needed} bytes needed, {got} given"),
            TholeError::Checksum { stored, computed } => {
                write!(f, "checksum {stored:04x} stored, {computed:04x} computed")
            }
            TholeError::NotAFrame => write!(f, "no TG2 frame"),
            TholeError::Malformed(what) => write!(f, "malformed: {what}"),
            TholeError::TooMany(count) => write!(f, "{count} samples do not fit"),
            TholeError::Singular { column } => write!(f, "singular at column {column}"),
            TholeError::BlockIndex => write!(f, "index and content of a block differ"),
        }
    }
}

impl std::error::Error for TholeError {}

/// Result with the error of this crate.
pub type Result<T> = std::result::Result<T, TholeError>;
