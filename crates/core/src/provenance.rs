// SPDX-License-Identifier: PostgreSQL

//! Provenance: where a chunk is, what it is called for ever, and how a reader is sent to it.
//!
//! Owns spans, content hashes, deterministic keys and citations. Content identity never contains time: the same bytes
//! at the same place give the same hash and the same key on every machine and in every year.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use uuid::Uuid;

/// A half-open range of a document's stored text, in three units at once.
///
/// Bytes and characters count from 0 and exclude the end; lines count from 1 and include the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub byte_start: u64,
    /// One past the last byte.
    pub byte_end: u64,
    /// First character (Unicode scalar value, as PostgreSQL's `substr` counts them, but from 0).
    pub char_start: u64,
    /// One past the last character.
    pub char_end: u64,
    /// First line, from 1.
    pub line_start: u32,
    /// Last line, from 1, included.
    pub line_end: u32,
}

/// SHA-256 of some content.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// The hash of `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// Lower-case hexadecimal, 64 characters.
    pub fn hex(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

/// The namespace of all chunk keys (a version 5 UUID of a name of ours in the DNS namespace).
fn key_namespace() -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_DNS, b"chunk.pg-rag.invalid")
}

/// The chunk's permanent key: `uuid5(source, uri, content hash, occurrence)`.
///
/// `occurrence` counts, from 0, the chunks of the same document that have the same content, so a passage that occurs
/// twice has two keys and an edit elsewhere in the document changes neither.
pub fn chunk_key(source: &str, uri: &str, content: &ContentHash, occurrence: u32) -> Uuid {
    // Length prefixes keep ("a", "bc") and ("ab", "c") apart.
    let name = format!("{}:{source}{}:{uri}{content}:{occurrence}", source.len(), uri.len());
    Uuid::new_v5(&key_namespace(), name.as_bytes())
}

/// Where a chunk is, as far as a reader needs it to find the place.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place<'a> {
    /// Identity of the document within its source.
    pub uri: &'a str,
    /// Title of the document.
    pub title: Option<&'a str>,
    /// Headings above it, outermost first.
    pub heading_path: &'a [String],
    /// Qualified name of the symbol that it is of.
    pub symbol: Option<&'a str>,
    /// Who speaks.
    pub speaker: Option<&'a str>,
    /// First and last page.
    pub pages: Option<(u32, u32)>,
    /// First and last line.
    pub lines: Option<(u32, u32)>,
    /// Begin in seconds of a recording.
    pub time: Option<u64>,
}

impl Place<'_> {
    /// A citation a person can read: title, headings, symbol and speaker, then the URI and the place in it.
    ///
    /// ```
    /// use rag_core::provenance::Place;
    /// let path = ["Guide".to_owned(), "Install".to_owned()];
    /// let place = Place { uri: "guide.md", title: Some("Guide"), heading_path: &path, lines: Some((10, 14)), ..Place::default() };
    /// assert_eq!(place.citation(), "Guide > Install (guide.md, lines 10-14)");
    /// ```
    pub fn citation(&self) -> String {
        let mut names: Vec<&str> = self.title.into_iter().collect();
        names.extend(self.heading_path.iter().map(String::as_str));
        names.extend(self.symbol.into_iter().chain(self.speaker));
        names.retain(|name| !name.is_empty());
        names.dedup();
        let mut place = self.uri.to_owned();
        if let Some((first, last)) = self.pages {
            place.push_str(&range(", page", ", pages", first, last));
        }
        if let Some((first, last)) = self.lines {
            place.push_str(&range(", line", ", lines", first, last));
        }
        if let Some(seconds) = self.time {
            place.push_str(&format!(", {}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
        }
        if names.is_empty() { place } else { format!("{} ({place})", names.join(" > ")) }
    }
}

fn range(one: &str, many: &str, first: u32, last: u32) -> String {
    if first == last { format!("{one} {first}") } else { format!("{many} {first}-{last}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_sha256() {
        // From FIPS 180-2, appendix B.1.
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(ContentHash::of("abc").hex(), hex);
    }

    #[test]
    fn keys_differ_by_every_part_and_by_nothing_else() {
        let h = ContentHash::of("x");
        let key = chunk_key("s", "u", &h, 0);
        assert_eq!(key, chunk_key("s", "u", &h, 0));
        assert_ne!(key, chunk_key("su", "", &h, 0));
        assert_ne!(key, chunk_key("s", "u", &h, 1));
        assert_ne!(key, chunk_key("s", "u", &ContentHash::of("y"), 0));
        assert_eq!(key.get_version_num(), 5);
    }

    #[test]
    fn a_citation_names_title_headings_and_place() {
        let file = Place { uri: "a.md", ..Place::default() };
        assert_eq!(file.citation(), "a.md");
        assert_eq!(Place { lines: Some((3, 3)), ..file }.citation(), "a.md, line 3");
        let path = ["One".to_owned()];
        let book =
            Place { uri: "b.pdf", title: Some("Book"), heading_path: &path, pages: Some((2, 4)), ..Place::default() };
        assert_eq!(book.citation(), "Book > One (b.pdf, pages 2-4)");
        let code = Place { uri: "a.py", symbol: Some("Parser.parse"), lines: Some((7, 9)), ..Place::default() };
        assert_eq!(code.citation(), "Parser.parse (a.py, lines 7-9)");
        let talk = Place { uri: "t.vtt", speaker: Some("Ada"), time: Some(3723), ..Place::default() };
        assert_eq!(talk.citation(), "Ada (t.vtt, 1:02:03)");
    }
}
