// SPDX-License-Identifier: PostgreSQL

//! Plain text: no structure but its paragraphs, which the chunker finds by their blank lines.

use super::Structure;

/// The structure of plain text.
pub fn parse(text: &str) -> Structure {
    Structure { body: 0..text.len(), ..Structure::default() }
}
