// SPDX-License-Identifier: PostgreSQL

//! Packing of fewer values than a full block has.
//!
//! Owns the bits of the last block of a list: each value in the same number of bits, lowest bit first, columns one behind
//! the other without a gap. The crate that packs full blocks takes 128 values only, and the lists of most terms are
//! shorter; integers of whole bytes would take half as much again.

/// The number of bits of the largest value.
pub fn width(values: &[u32]) -> u8 {
    (u32::BITS - values.iter().fold(0, |all, v| all | v).leading_zeros()) as u8
}

/// Appends values.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    rest: u64,
    filled: u32,
}

impl Writer {
    /// Appends the values, each in `width` bits, which they must fit.
    pub fn push(&mut self, values: &[u32], width: u8) {
        for value in values {
            self.rest |= u64::from(*value) << self.filled;
            self.filled += u32::from(width);
            while self.filled >= 8 {
                self.out.push(self.rest as u8);
                self.rest >>= 8;
                self.filled -= 8;
            }
        }
    }

    /// The bytes; what is left of the last one is zero.
    pub fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.out.push(self.rest as u8);
        }
        self.out
    }
}

/// Reads values from front to back. Behind the bytes there are zeros: whoever reads checks the length first.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: std::slice::Iter<'a, u8>,
    rest: u64,
    filled: u32,
}

impl<'a> Reader<'a> {
    /// A reader of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter(), rest: 0, filled: 0 }
    }

    /// Fills `values` with values of `width` bits, 32 at most.
    pub fn fill(&mut self, values: &mut [u32], width: u8) {
        let width = u32::from(width.min(32));
        for value in values {
            while self.filled < width {
                self.rest |= u64::from(self.bytes.next().copied().unwrap_or(0)) << self.filled;
                self.filled += 8;
            }
            *value = (self.rest & ((1u64 << width) - 1)) as u32;
            self.rest >>= width;
            self.filled -= width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_lowest_bit_comes_first() {
        let mut writer = Writer::default();
        writer.push(&[1, 0, 3], 2);
        writer.push(&[0b10_1010_1010], 10);
        assert_eq!(writer.finish(), [0b1011_0001, 0b1010_1010]);
    }

    proptest! {
        #[test]
        fn values_come_back(columns in proptest::collection::vec((0..=32u32, proptest::collection::vec(any::<u32>(), 0..20)), 0..5)) {
            let columns: Vec<Vec<u32>> = columns
                .into_iter()
                .map(|(bits, values)| values.into_iter().map(|v| if bits == 0 { 0 } else { v >> (32 - bits) }).collect())
                .collect();
            let mut writer = Writer::default();
            columns.iter().for_each(|c| writer.push(c, width(c)));
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            for column in columns {
                let mut found = vec![7; column.len()];
                reader.fill(&mut found, width(&column));
                prop_assert_eq!(found, column);
            }
        }
    }
}
