//! Varints and zigzag.

use crate::error::{Result, TholeError};

/// Bytes that a varint of a frame may have: differences fit into 21 bits.
pub const MAX_FRAME_VARINT: usize = 3;

/// Small numbers of either sign become small unsigned ones.
pub fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

/// Inverse of [`zigzag`].
pub fn unzigzag(value: u32) -> i32 {
    ((value >> 1) as i32) ^ -((value & 1) as i32)
}

/// Reads a varint of at most `limit` bytes and moves `at` behind it.
///
/// Encodings that are longer than needed are accepted: firmware before 5.8 pads
/// the first difference of a frame to two bytes.
pub fn read(data: &[u8], at: &mut usize, limit: usize) -> Result<u32> {
    let mut value = 0u32;
    for count in 0..limit {
        let byte = *data.get(*at).ok_or(TholeError::Truncated { needed: *at + 1, got: data.len() })?;
        *at += 1;
        value |= u32::from(byte & 0x7F) << (7 * count);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(TholeError::Malformed("varint too long"))
}

/// Appends a varint.
pub fn write(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zigzag_roundtrip() {
        for value in [0, 1, -1, 63, -64, i32::MAX, i32::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn padded_zero_is_accepted() {
        let mut at = 0;
        assert_eq!(read(&[0x80, 0x00], &mut at, MAX_FRAME_VARINT), Ok(0));
        assert_eq!(at, 2);
    }
}
