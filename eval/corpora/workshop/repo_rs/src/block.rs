//! Blocks of the archive: 1,024 samples of one minute, compressed.
//!
//! A block has a head (first height, first difference, number of samples) and
//! then second differences in groups of 32. Each group begins with five bits,
//! the width of its largest zigzag value. A tide is smooth, so nearly all second
//! differences of a calm day need three bits or fewer.
//!
//! Missing samples are not in the differences at all but in a list of runs, so
//! that a hole does not cost two large values where it begins and ends.

use crate::bitio::{BitReader, BitWriter};
use crate::error::{Result, TholeError};
use crate::varint::{self, unzigzag, zigzag};
use crate::NO_ECHO;

/// Samples of a full block: 17 hours and four minutes.
pub const BLOCK_SAMPLES: usize = 1024;

/// Second differences that share one width.
pub const GROUP: usize = 32;

/// A run of missing samples: index of the first, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// Index of the first missing sample.
    pub start: u32,
    /// Number of missing samples.
    pub len: u32,
}

/// Splits heights into those that are there and the holes between them.
pub fn split_holes(heights: &[i32]) -> (Vec<i32>, Vec<Hole>) {
    let mut present = Vec::with_capacity(heights.len());
    let mut holes: Vec<Hole> = Vec::new();
    for (index, &height) in heights.iter().enumerate() {
        if height != NO_ECHO {
            present.push(height);
            continue;
        }
        match holes.last_mut() {
            Some(hole) if (hole.start + hole.len) as usize == index => hole.len += 1,
            _ => holes.push(Hole { start: index as u32, len: 1 }),
        }
    }
    (present, holes)
}

/// Compresses at most [`BLOCK_SAMPLES`] heights.
///
/// # Errors
///
/// `TooMany` if there are more. Heights of any size are accepted; wild ones only
/// make the block larger.
pub fn encode(heights: &[i32]) -> Result<Vec<u8>> {
    if heights.len() > BLOCK_SAMPLES {
        return Err(TholeError::TooMany(heights.len()));
    }
    let (present, holes) = split_holes(heights);
    let mut out = Vec::with_capacity(heights.len() / 2 + 32);
    varint::write(&mut out, heights.len() as u32);
    varint::write(&mut out, holes.len() as u32);
    let mut behind = 0;
    for hole in &holes {
        varint::write(&mut out, hole.start - behind);
        varint::write(&mut out, hole.len);
        behind = hole.start + hole.len;
    }
    if present.is_empty() {
        return Ok(out);
    }
    varint::write(&mut out, zigzag(present[0]));
    if present.len() == 1 {
        return Ok(out);
    }
    let mut slope = present[1].wrapping_sub(present[0]);
    varint::write(&mut out, zigzag(slope));
    let mut seconds = Vec::with_capacity(present.len());
    for pair in present[1..].windows(2) {
        let next = pair[1].wrapping_sub(pair[0]);
        seconds.push(zigzag(next.wrapping_sub(slope)));
        slope = next;
    }
    let mut bits = BitWriter::new();
    for group in seconds.chunks(GROUP) {
        let largest = group.iter().copied().max().unwrap_or(0);
        // Width 31 stands for 32 bits: a width of 31 is never needed in practice
        // and five bits have no room for both.
        let width = match 32 - largest.leading_zeros() {
            0..=30 => 32 - largest.leading_zeros(),
            _ => 31,
        };
        bits.put(width, 5);
        let real = if width == 31 { 32 } else { width };
        for &value in group {
            bits.put(value, real);
        }
    }
    out.extend_from_slice(&bits.finish());
    Ok(out)
}

/// Decompresses a block; missing samples come back as [`NO_ECHO`].
pub fn decode(data: &[u8]) -> Result<Vec<i32>> {
    let mut at = 0;
    let total = varint::read(data, &mut at, 5)? as usize;
    if total > BLOCK_SAMPLES {
        return Err(TholeError::TooMany(total));
    }
    let hole_count = varint::read(data, &mut at, 5)? as usize;
    if hole_count > total {
        return Err(TholeError::BlockIndex);
    }
    let mut missing = vec![false; total];
    let mut behind = 0usize;
    for _ in 0..hole_count {
        let start = behind + varint::read(data, &mut at, 5)? as usize;
        let len = varint::read(data, &mut at, 5)? as usize;
        let end = start.checked_add(len).filter(|&end| end <= total).ok_or(TholeError::BlockIndex)?;
        missing[start..end].fill(true);
        behind = end;
    }
    let present = missing.iter().filter(|&&gone| !gone).count();
    let mut values = Vec::with_capacity(present);
    if present > 0 {
        values.push(unzigzag(varint::read(data, &mut at, 5)?));
    }
    if present > 1 {
        let mut slope = unzigzag(varint::read(data, &mut at, 5)?);
        values.push(values[0].wrapping_add(slope));
        let mut bits = BitReader::new(&data[at..]);
        let mut width = 0;
        for index in 0..present - 2 {
            if index % GROUP == 0 {
                width = bits.take(5)?;
                if width == 31 {
                    width = 32;
                }
            }
            slope = slope.wrapping_add(unzigzag(bits.take(width)?));
            let last = values[values.len() - 1];
            values.push(last.wrapping_add(slope));
        }
    }
    let mut rest = values.into_iter();
    missing.iter().map(|&gone| if gone { Ok(NO_ECHO) } else { rest.next().ok_or(TholeError::BlockIndex) }).collect()
}
