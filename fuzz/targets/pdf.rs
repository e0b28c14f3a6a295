// SPDX-License-Identifier: PostgreSQL

//! PDF.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::Reading;

fuzz_target!(|input: &[u8]| Reading::of(input).inline(SourceKind::Pdf, "a.pdf", input));
