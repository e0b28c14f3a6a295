//! Decoding, compression and analysis of tide gauge records.
//!
//! Heights are `i32` millimetres on the way in and `f64` millimetres inside of
//! the analysis. Times are seconds; the crate knows no calendar.

#![deny(missing_docs)]
#![cfg_attr(not(feature = "ffi"), forbid(unsafe_code))]

pub mod bitio;
pub mod block;
pub mod crc;
pub mod error;
#[cfg(feature = "ffi")]
pub mod ffi;
pub mod fit;
pub mod frame;
pub mod lowpass;
pub mod predict;
pub mod ring;
pub mod spike;
pub mod step;
pub mod varint;

pub use error::{Result, TholeError};

/// Height that stands for "the sensor had no echo".
pub const NO_ECHO: i32 = -32768;

/// Major part of the C interface; see the README for when it changes.
pub const ABI_MAJOR: u32 = 3;

/// Minor part of the C interface, counting additions.
pub const ABI_MINOR: u32 = 2;
