//! Frames of the loggers, format TG2. The layout is described in `frames.py`.

use crate::crc::crc16;
use crate::error::{Result, TholeError};
use crate::varint::{self, unzigzag, MAX_FRAME_VARINT};
use crate::NO_ECHO;

/// Bytes before the first height.
pub const HEADER_LEN: usize = 16;

/// Seconds from the Unix epoch to 2020-01-01T00:00:00Z, where loggers begin to count.
pub const LOGGER_EPOCH: i64 = 1_577_836_800;

/// Head of a frame; the heights go into an array of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Number of the station on the wire.
    pub station_id: u16,
    /// Flags, see `frames.py`.
    pub flags: u8,
    /// Seconds between samples.
    pub interval_s: u8,
    /// Sequence number, wrapping.
    pub sequence: u32,
    /// Unix time of the last sample by the logger's clock.
    pub logged_at: i64,
    /// Number of samples.
    pub count: u32,
}

/// Decodes a frame into `heights` and returns its head.
///
/// Nothing is allocated. When an error is returned `heights` may hold the
/// samples before the damage; callers must not look at them.
pub fn decode_into(data: &[u8], heights: &mut [i32]) -> Result<FrameHead> {
    if data.len() < HEADER_LEN + 4 {
        return Err(TholeError::Truncated { needed: HEADER_LEN + 4, got: data.len() });
    }
    if &data[..2] != b"TG" {
        return Err(TholeError::NotAFrame);
    }
    let (body, tail) = data.split_at(data.len() - 2);
    let stored = u16::from_le_bytes([tail[0], tail[1]]);
    let computed = crc16(body);
    if stored != computed {
        return Err(TholeError::Checksum { stored, computed });
    }
    if body[2] != 2 {
        return Err(TholeError::NotAFrame);
    }
    let head = FrameHead {
        flags: body[3],
        station_id: u16::from_le_bytes([body[4], body[5]]),
        sequence: u32::from_le_bytes([body[6], body[7], body[8], body[9]]),
        logged_at: LOGGER_EPOCH + i64::from(u32::from_le_bytes([body[10], body[11], body[12], body[13]])),
        count: u32::from(body[14]),
        interval_s: body[15],
    };
    let count = head.count as usize;
    if count == 0 || head.interval_s == 0 {
        return Err(TholeError::Malformed("no samples"));
    }
    if count > heights.len() {
        return Err(TholeError::TooMany(count));
    }
    let first = i32::from(i16::from_le_bytes([body[16], body[17]]));
    heights[0] = first;
    let mut last = if first == NO_ECHO { 0 } else { first };
    let mut at = HEADER_LEN + 2;
    for slot in &mut heights[1..count] {
        let raw = varint::read(body, &mut at, MAX_FRAME_VARINT)?;
        // The zigzag of -1 marks a missing echo, see `frames.py`.
        if raw == 1 {
            *slot = NO_ECHO;
        } else {
            last = last.wrapping_add(unzigzag(raw));
            *slot = last;
        }
    }
    if at != body.len() {
        return Err(TholeError::Malformed("bytes behind the last sample"));
    }
    Ok(head)
}

/// Looks for the next possible start of a frame in a stream that lost its place.
///
/// Only the magic and the version are compared; whether it is one, the checksum
/// decides. Returns the bytes to skip, all of them if there is none.
pub fn resync(data: &[u8]) -> usize {
    data.windows(3).position(|w| w == [b'T', b'G', 2]).unwrap_or(data.len())
}
