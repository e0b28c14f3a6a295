// SPDX-License-Identifier: PostgreSQL

//! Integers in as few bytes as they need, and the reader of bytes that came from a table.
//!
//! Owns the LEB128 form (seven bits in a byte, lowest first) and the error for stored bytes that cannot be what they
//! should be. It must not trust them: every read is checked against what is left, no value is taken for a capacity.
//! LEB128 rather than a fixed width, because nearly all counts and gaps in an index are below 128.

use crate::error::{Error, Kind, Result};

/// The error for stored bytes of the lexical index that cannot be read; `what` says which rule they break.
pub fn corrupt(what: &str) -> Error {
    Error::new(Kind::Corrupt, format!("the lexical index is corrupt: {what}"))
        .with_hint("Run SELECT rag.reindex_lexical(); to build it again from the chunks.")
}

/// Appends `value`: 1 byte below 128, at most 10.
pub fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads foreign bytes from front to back; running out of them is [`corrupt`].
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The number of bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| corrupt("a value is cut off"))?;
        self.rest = rest;
        Ok(*first)
    }

    /// An integer that [`write`] wrote.
    pub fn u64(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(corrupt("an integer is too large"))
    }

    /// The same, for values that fit 32 bits.
    pub fn u32(&mut self) -> Result<u32> {
        u32::try_from(self.u64()?).map_err(|_| corrupt("an integer is too large"))
    }

    /// Bytes behind their number.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count(1)?;
        let (bytes, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(bytes)
    }

    /// A number of things that follow, each of `each` bytes or more; so it is safe as a capacity.
    pub fn count(&mut self, each: usize) -> Result<usize> {
        let count = self.u64()?;
        let fits = usize::try_from(count).ok().filter(|c| c.checked_mul(each).is_some_and(|b| b <= self.remaining()));
        fits.ok_or_else(|| corrupt("there are fewer entries than stated"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_form_is_that_of_leb128() {
        // The example of the DWARF standard, version 4, §7.6, and the borders of one byte.
        for (value, bytes) in [(12857, &[0xb9, 0x64][..]), (127, &[0x7f]), (128, &[0x80, 1])] {
            let mut out = Vec::new();
            write(&mut out, value);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_says_what_to_do() {
        let mut reader = Reader::new(&[0xff; 11]);
        let error = reader.u64().expect_err("65 bits");
        assert!(error.hint.is_some_and(|h| h.contains("SELECT rag.reindex_lexical();")));
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).u32().is_err(), "33 bits");
        assert!(Reader::new(&[200, 1, 0, 0]).count(1).is_err());
        assert_eq!(Reader::new(&[3, 0, 0, 0]).count(1).ok(), Some(3));
    }

    proptest! {
        #[test]
        fn values_come_back(value: u64) {
            let mut out = Vec::new();
            write(&mut out, value);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.u64().expect("well formed"), value);
            prop_assert_eq!(reader.remaining(), 0);
        }
    }
}
