// SPDX-License-Identifier: PostgreSQL

//! ZIP, tar, tar.gz and gz, and whatever is in them; its first bytes say which it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::Reading;

fuzz_target!(|input: &[u8]| Reading::of(input).file(SourceKind::Zip, "a.zip", input));
