// SPDX-License-Identifier: PostgreSQL

//! Plain text: no structure but its paragraphs, which the chunker finds by their blank lines.

use super::{Parsed, Structure, markdown};
use crate::text;
use rag_core::source::{Chunking, SourceOptions};

/// Parses plain text.
pub fn parse(bytes: &[u8], options: &SourceOptions) -> Parsed {
    let repaired = text::repair(bytes);
    Parsed {
        structure: structure(&repaired.text, options),
        text: repaired.text,
        repaired_bytes: repaired.repaired_bytes,
        media_type: "text/plain".to_owned(),
        ..Parsed::default()
    }
}

/// Text without a kind of its own is read as Markdown only when its headings are asked for.
pub fn structure(text: &str, options: &SourceOptions) -> Structure {
    match options.chunking {
        Chunking::Heading => markdown::structure(text, 0..text.len()),
        Chunking::Structure | Chunking::Recursive | Chunking::None => {
            Structure { body: 0..text.len(), ..Structure::default() }
        }
    }
}
