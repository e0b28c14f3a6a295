// SPDX-License-Identifier: PostgreSQL

//! Keys of JSON, with the comments and last commas that configurations have.
//!
//! A scanner without recursion: serde has no spans, and a parser that builds values would build a hundred times the
//! file. It accepts what JSON accepts, comments and a comma before a closing bracket.

use super::Refused;
use super::outline::{Key, Outline};
use serde_json::value::RawValue;
use std::ops::Range;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
}

/// An open array, with the number of elements, or object.
enum Frame {
    Array(usize),
    Object,
}

/// Puts the keys of a text into an outline.
pub fn scan(text: &str, outline: &mut Outline) -> Result<(), Refused> {
    let bytes = text.as_bytes();
    let mut open: Vec<Frame> = Vec::new();
    let mut next = Next::Value;
    let mut at = 0;
    let bad = |at: usize, what: &str| {
        let line = text[..text.floor_char_boundary(at)].matches('\n').count() + 1;
        Err(format!("{what} on line {line}"))
    };
    loop {
        at = match skip(bytes, at) {
            Some(at) => at,
            None => return bad(bytes.len(), "a comment without end"),
        };
        let Some(byte) = bytes.get(at).copied() else {
            return bad(at, "the end of the file");
        };
        let end = match (byte, next) {
            (b'}', Next::KeyOrEnd | Next::CommaOrEnd) if matches!(open.last(), Some(Frame::Object)) => {
                open.pop();
                at + 1
            }
            (b']', Next::ValueOrEnd | Next::CommaOrEnd) if matches!(open.last(), Some(Frame::Array(_))) => {
                open.pop();
                at + 1
            }
            (b',', Next::CommaOrEnd) => {
                next = if matches!(open.last(), Some(Frame::Object)) { Next::KeyOrEnd } else { Next::ValueOrEnd };
                at += 1;
                continue;
            }
            (b':', Next::Colon) => {
                next = Next::Value;
                at += 1;
                continue;
            }
            (b'"', Next::KeyOrEnd) => {
                let Some(range) = string(bytes, at) else { return bad(at, "a string without end") };
                at = range.end;
                outline.open(Key::Name(range.clone()), range.start);
                next = Next::Colon;
                continue;
            }
            (_, Next::Value | Next::ValueOrEnd) => {
                if let Some(Frame::Array(index)) = open.last_mut() {
                    outline.open(Key::Index(*index), at);
                    *index += 1;
                }
                match byte {
                    b'{' | b'[' => {
                        if byte == b'[' && open.is_empty() {
                            outline.of_elements();
                        }
                        let object = byte == b'{';
                        open.push(if object { Frame::Object } else { Frame::Array(0) });
                        next = if object { Next::KeyOrEnd } else { Next::ValueOrEnd };
                        at += 1;
                        continue;
                    }
                    b'"' => match string(bytes, at) {
                        Some(range) => range.end,
                        None => return bad(at, "a string without end"),
                    },
                    _ => {
                        let length = bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b));
                        let end = at + length.count();
                        if serde_json::from_str::<&RawValue>(&text[at..end]).is_err() {
                            return bad(at, "something that is no value");
                        }
                        end
                    }
                }
            }
            _ => return bad(at, "something unexpected"),
        };
        // A value ends here.
        at = end;
        if open.is_empty() {
            return match skip(bytes, at) {
                Some(at) if at == bytes.len() => Ok(()),
                _ => bad(at, "something after the value"),
            };
        }
        outline.close(end);
        next = Next::CommaOrEnd;
    }
}

/// The next byte that is neither white space nor in a comment; nothing when a comment has no end.
fn skip(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        match bytes.get(at..at + 2) {
            Some(b"//") => at += bytes[at..].iter().take_while(|b| **b != b'\n').count(),
            Some(b"/*") => at += 4 + bytes[at + 2..].windows(2).position(|pair| pair == b"*/")?,
            _ => return Some(at),
        }
    }
}

/// The string that begins at `at`, which a line feed does not go on in.
fn string(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let mut end = at + 1;
    loop {
        match bytes.get(end)? {
            b'"' => return Some(at..end + 1),
            b'\\' => end += 2,
            b'\n' => return None,
            _ => end += 1,
        }
    }
}
