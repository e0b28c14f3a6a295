// SPDX-License-Identifier: PostgreSQL

//! From ranked lists to one ranked list, and the trace of how.

pub mod fuse;
pub mod fusion;
pub mod trace;
