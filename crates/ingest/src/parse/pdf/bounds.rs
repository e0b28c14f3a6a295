// SPDX-License-Identifier: PostgreSQL

//! Bounds: how much one PDF may make its reader do.
//!
//! A stream is measured before it is decoded, by decompressing it into nothing: the library that decodes has no bound of
//! its own, and a file of a megabyte can hold a gigabyte. Streams that the library decodes on its own while it opens a file
//! (cross-references and object streams) are found in the raw bytes first. Everything that a hostile file could make
//! large by repeating it (forms within forms, operators, glyphs) is paid from one budget. Must not know what a stream
//! means.

use flate2::read::{DeflateDecoder, ZlibDecoder};
use hayro_syntax::Filter;
use hayro_syntax::object::Stream;
use rag_core::error::{Error, Kind, Result};
use std::io::Read;

/// Bytes of one decompressed stream.
const MAX_STREAM_BYTES: u64 = 128 << 20;

/// Bytes of all decompressed streams of a document, one that is used again counted again.
const MAX_TOTAL_BYTES: u64 = 1 << 30;

/// Operators of a document, and glyphs. A page of a book has some thousands of each.
const MAX_OPERATORS: u64 = 50_000_000;
const MAX_GLYPHS: u64 = 20_000_000;

/// Glyphs of one page: what is laid out at a time.
const MAX_PAGE_GLYPHS: usize = 500_000;

/// Bytes of a stream that is text within compression (`ASCII85Decode` before `FlateDecode`), which cannot be measured
/// without decoding it: what it can hold at most is within memory.
const MAX_WRAPPED_BYTES: u64 = 1 << 20;

/// Bytes before the word `stream` in which the dictionary of that stream is looked for.
const DICTIONARY: usize = 2048;

/// What is left for one document.
#[derive(Debug, Default)]
pub struct Budget {
    bytes: u64,
    operators: u64,
    glyphs: u64,
}

impl Budget {
    /// Fails when the streams that opening the file decodes are too large.
    pub fn open(&mut self, file: &[u8]) -> Result<()> {
        let mut at = 0;
        while let Some(found) = find(&file[at..], b"stream").map(|found| at + found) {
            at = found + b"stream".len();
            let dictionary = &file[found.saturating_sub(DICTIONARY)..found];
            let dictionary = &dictionary[rfind(dictionary, b"obj").unwrap_or(0)..];
            // A name may be written with escapes.
            let decoded_early = [&b"ObjStm"[..], b"XRef", b"#"].iter().any(|name| find(dictionary, name).is_some());
            let ends = dictionary.ends_with(b"end");
            if ends || !decoded_early {
                continue;
            }
            let skip = file[at..].iter().take(2).take_while(|b| matches!(b, b'\r' | b'\n')).count();
            self.pay(inflated(&file[at + skip..]))?;
        }
        Ok(())
    }

    /// The decoded bytes of a stream, or nothing when it is not text or damaged.
    pub fn decode(&mut self, stream: &Stream<'_>) -> Result<Option<Vec<u8>>> {
        self.check(stream)?;
        Ok(stream.decoded_data().ok().map(std::borrow::Cow::into_owned))
    }

    /// Fails when a stream that is about to be decoded is too large.
    pub fn check(&mut self, stream: &Stream<'_>) -> Result<()> {
        let raw = stream.raw_data();
        let filters = stream.filters();
        let expands =
            |filter: &&Filter| matches!(filter, Filter::FlateDecode | Filter::LzwDecode | Filter::RunLengthDecode);
        if filters.iter().filter(expands).count() > 1 {
            return Err(limit("a stream is compressed more than once"));
        }
        let size = match filters.iter().find(|filter| **filter != Filter::Crypt) {
            Some(Filter::FlateDecode) => inflated(&raw),
            Some(Filter::LzwDecode) => unpacked(&raw),
            Some(Filter::RunLengthDecode) => runs(&raw),
            Some(_) if filters.iter().any(|f| expands(&f)) && raw.len() as u64 > MAX_WRAPPED_BYTES => {
                return Err(limit(format!("a compressed stream written as text has {} bytes", raw.len()))
                    .with_detail(format!("At most {MAX_WRAPPED_BYTES} bytes are read of such a stream.")));
            }
            _ => raw.len() as u64,
        };
        self.pay(size)
    }

    /// Takes one operator of a content stream.
    pub fn operator(&mut self) -> Result<()> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(limit(format!("the pages have more than {MAX_OPERATORS} operators")));
        }
        Ok(())
    }

    /// Takes one glyph of a page that has `so_far`.
    pub fn glyph(&mut self, so_far: usize) -> Result<()> {
        self.glyphs += 1;
        if so_far >= MAX_PAGE_GLYPHS {
            return Err(limit(format!("a page has more than {MAX_PAGE_GLYPHS} glyphs")));
        }
        if self.glyphs > MAX_GLYPHS {
            return Err(limit(format!("the pages have more than {MAX_GLYPHS} glyphs")));
        }
        Ok(())
    }

    fn pay(&mut self, bytes: u64) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > MAX_STREAM_BYTES {
            return Err(limit(format!("a stream has more than {MAX_STREAM_BYTES} bytes when decompressed")));
        }
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(limit(format!("the streams have more than {MAX_TOTAL_BYTES} bytes when decompressed")));
        }
        Ok(())
    }
}

/// The error for a limit that a document exceeds.
pub fn limit(what: impl std::fmt::Display) -> Error {
    Error::new(Kind::LimitExceeded, format!("PDF exceeds a limit: {what}"))
}

/// Bytes that come out of a deflated stream, counted no further than the limit.
fn inflated(raw: &[u8]) -> u64 {
    let whole = drain(ZlibDecoder::new(raw));
    if whole > 0 {
        return whole;
    }
    // Some are written without a header, or with a bad one.
    drain(DeflateDecoder::new(raw)).max(drain(DeflateDecoder::new(raw.get(2..).unwrap_or_default())))
}

fn drain(mut reader: impl Read) -> u64 {
    let mut buffer = [0; 16 << 10];
    let mut total = 0;
    while let Ok(read @ 1..) = reader.read(&mut buffer) {
        total += read as u64;
        if total > MAX_STREAM_BYTES {
            break;
        }
    }
    total
}

/// Bytes that come out of a stream of LZW codes: only the lengths of the table's entries are kept.
fn unpacked(raw: &[u8]) -> u64 {
    const CLEAR: usize = 256;
    const END: usize = 257;
    let mut lengths: Vec<u64> = Vec::with_capacity(4096);
    let (mut total, mut last, mut bits, mut held) = (0, 0, 0_u32, 0_u32);
    lengths.resize(END + 1, 1);
    for byte in raw {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        // The width grows one code early by default; a stream that does not do so differs by little.
        let width = match lengths.len() + 1 {
            0..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
        if bits < width {
            continue;
        }
        bits -= width;
        let code = (held >> bits & ((1 << width) - 1)) as usize;
        match code {
            CLEAR => {
                lengths.truncate(END + 1);
                last = 0;
            }
            END => break,
            _ => {
                let length = lengths.get(code).copied().unwrap_or(last + 1);
                total += length;
                if last > 0 && lengths.len() < 4096 {
                    lengths.push(last + 1);
                }
                last = length;
            }
        }
        if total > MAX_STREAM_BYTES {
            break;
        }
    }
    total
}

/// Bytes that come out of runs.
fn runs(raw: &[u8]) -> u64 {
    let (mut at, mut total) = (0, 0);
    while let Some(length) = raw.get(at) {
        match length {
            128 => break,
            0..128 => {
                total += u64::from(*length) + 1;
                at += 2 + usize::from(*length);
            }
            _ => {
                total += 257 - u64::from(*length);
                at += 2;
            }
        }
    }
    total
}

fn find(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).position(|window| window == what)
}

fn rfind(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).rposition(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn zeros(bytes: usize) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![0; bytes]).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn compressed_bytes_are_counted() {
        assert_eq!(inflated(&zeros(100_000)), 100_000);
        assert_eq!(inflated(&zeros(100_000)[2..]), 100_000);
        assert_eq!(runs(&[2, 1, 2, 3, 254, 9, 128, 7]), 6);
        // The example of the specification (ISO 32000-1, 7.4.4.2): 45 45 45 45 45 65 45 45 45 66.
        assert_eq!(unpacked(&[0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01]), 10);
    }

    #[test]
    fn an_object_stream_that_is_a_bomb_is_found_before_the_file_is_opened() {
        let mut file = b"%PDF-1.5\n1 0 obj\n<</Type/ObjStm/N 1/First 4/Filter/FlateDecode>>stream\n".to_vec();
        file.extend(zeros(130 << 20));
        let error = Budget::default().open(&file).expect_err("a bomb");
        assert_eq!(error.kind, Kind::LimitExceeded);
        assert!(error.message.contains("134217728 bytes"), "{}", error.message);
    }
}
