// SPDX-License-Identifier: PostgreSQL

//! Reading a `tsvector` in its binary wire form, and writing one in its text form.
//!
//! `tsvectorsend` gives: the number of lexemes (big-endian `i32`), then for each a zero-terminated text, the number of
//! positions (`u16`) and that many positions (`u16`). It is the cheapest complete form in which a backend hands out a
//! chunk's term frequencies, and unlike the in-memory layout it is the same in all versions.

use super::tsquery::quote;
use crate::error::{Error, Result};
use std::fmt::Write;

/// A lexeme and where it stands, from 1, in ascending order.
pub type Lexeme = (String, Vec<u16>);

/// The most positions of a lexeme that are kept.
pub const MAX_POSITIONS: usize = 255;
/// The largest position; what is beyond is said to be there.
pub const MAX_POSITION: u16 = 16_383;
/// The longest lexeme, in bytes.
pub const MAX_LEXEME_BYTES: usize = 2046;
/// The most bytes of all lexemes with their positions, as [`size`] counts them: a little below what the server takes.
pub const MAX_BYTES: usize = 1_000_000;

/// Calls `visit(lexeme, tf)` for every lexeme, in the stored (sorted) order.
///
/// A lexeme without positions (a stripped vector) counts once. A truncated or malformed value is an internal error.
pub fn for_each(wire: &[u8], mut visit: impl FnMut(&[u8], u32)) -> Result<()> {
    walk(wire, |lexeme, positions| visit(lexeme, (positions.len() as u32 / 2).max(1)))
}

/// All lexemes with their positions, in the stored order.
pub fn read(wire: &[u8]) -> Result<Vec<Lexeme>> {
    let mut lexemes = Vec::new();
    let mut is_text = true;
    walk(wire, |lexeme, positions| {
        // The upper two bits are the weight.
        let position = |bytes: &[u8]| bytes.iter().fold(0u16, |p, b| p << 8 | u16::from(*b)) & MAX_POSITION;
        match std::str::from_utf8(lexeme) {
            Ok(lexeme) => lexemes.push((lexeme.to_owned(), positions.chunks_exact(2).map(position).collect())),
            Err(_) => is_text = false,
        }
    })?;
    if is_text { Ok(lexemes) } else { Err(malformed()) }
}

/// The text of a vector of these lexemes.
pub fn write(lexemes: &[Lexeme]) -> String {
    let mut out = String::new();
    for (lexeme, positions) in lexemes {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&quote(lexeme));
        let mut separator = ':';
        for position in positions {
            let _ = write!(out, "{separator}{position}");
            separator = ',';
        }
    }
    out
}

/// The bytes that a lexeme takes of a vector.
pub fn size(lexeme: &str, positions: &[u16]) -> usize {
    lexeme.len().next_multiple_of(2) + 2 + positions.len() * 2
}

/// Calls `visit(lexeme, positions)`; a position is two bytes.
fn walk(wire: &[u8], mut visit: impl FnMut(&[u8], &[u8])) -> Result<()> {
    let mut at = 0;
    let count = u32::from_be_bytes(take::<4>(wire, &mut at)?);
    for _ in 0..count {
        let rest = wire.get(at..).ok_or_else(malformed)?;
        let length = rest.iter().position(|b| *b == 0).ok_or_else(malformed)?;
        let lexeme = &rest[..length];
        at += length + 1;
        let bytes = usize::from(u16::from_be_bytes(take::<2>(wire, &mut at)?)) * 2;
        visit(lexeme, wire.get(at..at + bytes).ok_or_else(malformed)?);
        at += bytes;
    }
    Ok(())
}

fn take<const N: usize>(wire: &[u8], at: &mut usize) -> Result<[u8; N]> {
    let bytes = wire.get(*at..*at + N).and_then(|b| b.try_into().ok()).ok_or_else(malformed)?;
    *at += N;
    Ok(bytes)
}

fn malformed() -> Error {
    Error::internal("malformed tsvector")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The output of `SELECT tsvectorsend('cat:1,3 dog')` on PostgreSQL 18.
    const CAT_DOG: &[u8] = b"\x00\x00\x00\x02cat\x00\x00\x02\x00\x01\x00\x03dog\x00\x00\x00";

    #[test]
    fn frequencies_are_read() {
        let mut seen = Vec::new();
        for_each(CAT_DOG, |l, tf| seen.push((String::from_utf8_lossy(l).into_owned(), tf))).expect("well formed");
        assert_eq!(seen, vec![("cat".to_owned(), 2), ("dog".to_owned(), 1)]);
    }

    #[test]
    fn what_is_read_is_written() {
        let read = read(CAT_DOG).expect("well formed");
        assert_eq!(read, [("cat".to_owned(), vec![1, 3]), ("dog".to_owned(), vec![])]);
        assert_eq!(write(&read), "'cat':1,3 'dog'");
        assert_eq!(write(&[("it's\\".to_owned(), vec![7])]), "'it''s\\\\':7");
    }

    #[test]
    fn every_truncation_is_an_error() {
        for end in 0..CAT_DOG.len() {
            assert!(for_each(&CAT_DOG[..end], |_, _| {}).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = for_each(&bytes, |_, _| {});
            let _ = read(&bytes);
        }
    }
}
