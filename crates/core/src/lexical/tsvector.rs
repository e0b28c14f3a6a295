// SPDX-License-Identifier: PostgreSQL

//! Reading a `tsvector` in its binary wire form.
//!
//! `tsvectorsend` gives: the number of lexemes (big-endian `i32`), then for each a zero-terminated text, the number of
//! positions (`u16`) and that many positions (`u16`). It is the cheapest complete form in which a backend hands out a
//! chunk's term frequencies, and unlike the in-memory layout it is the same in all versions.

use crate::error::{Error, Result};

/// Calls `visit(lexeme, tf)` for every lexeme, in the stored (sorted) order.
///
/// A lexeme without positions (a stripped vector) counts once. A truncated or malformed value is an internal error.
pub fn for_each(wire: &[u8], mut visit: impl FnMut(&[u8], u32)) -> Result<()> {
    let mut at = 0;
    let count = u32::from_be_bytes(take::<4>(wire, &mut at)?);
    for _ in 0..count {
        let rest = wire.get(at..).ok_or_else(malformed)?;
        let length = rest.iter().position(|b| *b == 0).ok_or_else(malformed)?;
        let lexeme = &rest[..length];
        at += length + 1;
        let positions = u16::from_be_bytes(take::<2>(wire, &mut at)?);
        at += usize::from(positions) * 2;
        if at > wire.len() {
            return Err(malformed());
        }
        visit(lexeme, u32::from(positions).max(1));
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
    fn every_truncation_is_an_error() {
        for end in 0..CAT_DOG.len() {
            assert!(for_each(&CAT_DOG[..end], |_, _| {}).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = for_each(&bytes, |_, _| {});
        }
    }
}
