// SPDX-License-Identifier: PostgreSQL

//! SubRip, WebVTT and segments in JSON; the content says which it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rag_core::source::SourceKind;
use rag_fuzz::Reading;

fuzz_target!(|input: &[u8]| Reading::of(input).inline(SourceKind::Transcript, "a.vtt", input));
