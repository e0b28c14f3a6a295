//! Reading and writing of single bits, most significant first.

use crate::error::{Result, TholeError};

/// Collects bits into bytes.
#[derive(Default)]
pub struct BitWriter {
    out: Vec<u8>,
    held: u64,
    count: u32,
}

impl BitWriter {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the lower `width` bits of a value; at most 32 at once.
    pub fn put(&mut self, value: u32, width: u32) {
        debug_assert!(width <= 32);
        if width == 0 {
            return;
        }
        let mask = if width == 32 { u32::MAX } else { (1 << width) - 1 };
        self.held = (self.held << width) | u64::from(value & mask);
        self.count += width;
        while self.count >= 8 {
            self.count -= 8;
            self.out.push((self.held >> self.count) as u8);
        }
    }

    /// Bytes so far; the last one is filled with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            let pad = 8 - self.count;
            self.put(0, pad);
        }
        self.out
    }
}

/// Takes bits out of bytes.
pub struct BitReader<'a> {
    data: &'a [u8],
    at: usize,
    held: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    /// A reader at the first bit.
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, held: 0, count: 0 }
    }

    /// Takes `width` bits, at most 32.
    pub fn take(&mut self, width: u32) -> Result<u32> {
        while self.count < width {
            let byte = *self
                .data
                .get(self.at)
                .ok_or(TholeError::Truncated { needed: self.at + 1, got: self.data.len() })?;
            self.held = (self.held << 8) | u64::from(byte);
            self.at += 1;
            self.count += 8;
        }
        self.count -= width;
        let value = (self.held >> self.count) as u32;
        self.held &= (1u64 << self.count) - 1;
        Ok(if width == 32 { value } else { value & ((1u32 << width) - 1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_widths_come_back() {
        let widths = [3, 1, 17, 32, 5, 0, 9];
        let mut writer = BitWriter::new();
        for (i, &w) in widths.iter().enumerate() {
            writer.put(i as u32, w);
        }
        let data = writer.finish();
        let mut reader = BitReader::new(&data);
        for (i, &w) in widths.iter().enumerate() {
            let mask = if w == 32 { u32::MAX } else { (1u32 << w) - 1 };
            assert_eq!(reader.take(w).unwrap(), i as u32 & mask);
        }
    }
}
