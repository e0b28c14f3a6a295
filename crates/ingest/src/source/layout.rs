// SPDX-License-Identifier: PostgreSQL

//! Layouts: how records stand in a file, and where each of them is.
//!
//! A file is read once from its start to its end; of no record more than a bound is held, however long it is. What a
//! record says is not looked at: an element of an array ends where its brackets do, a line at its line feed.

use super::rows::Rows;
use rag_core::error::{Error, Kind, Result};
use rag_core::source::SourceKind;
use serde_json::{Map, Value};
use std::fmt;
use std::io::{self, BufRead, Read};

/// How records stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One on each line.
    Lines,
    /// As elements of a JSON array.
    Elements {
        /// The first byte after its bracket.
        start: u64,
        /// Whether the array is all there is, and not a field of an object.
        alone: bool,
    },
    /// One object over many lines.
    Whole,
    /// As rows of CSV.
    Rows {
        /// Between fields.
        delimiter: u8,
    },
}

/// First fields of an object whose array is the records.
const WRAPPERS: &[&str] = &["items", "threads", "questions", "topics", "issues", "work_items", "recordings"];

/// Whether a file of records holds rows, by its name.
pub fn is_rows(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| ["csv", "tsv", "tab"].iter().any(|of| end.eq_ignore_ascii_case(of)))
}

impl Layout {
    /// The layout of a file, by its name and its first bytes.
    pub fn of(kind: SourceKind, name: &str, head: &[u8]) -> Self {
        let name = name.to_ascii_lowercase();
        let mark = if head.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        if kind == SourceKind::Jsonl && is_rows(&name) {
            let delimiter = if name.ends_with(".csv") { super::rows::delimiter(&head[mark..]) } else { b'\t' };
            return Self::Rows { delimiter };
        }
        let blank = |from: usize| from + head[from..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        let first = blank(mark);
        match head.get(first) {
            Some(b'[') => return Self::Elements { start: first as u64 + 1, alone: true },
            Some(b'{') if !name.ends_with(".jsonl") && !name.ends_with(".ndjson") => {}
            _ => return Self::Lines,
        }
        // A line of more than the head is a record of its own.
        let Some(length) = head[first..].iter().position(|b| *b == b'\n') else {
            return if kind == SourceKind::Jsonl { Self::Lines } else { wrapped(head, first).unwrap_or(Self::Lines) };
        };
        let line = &head[first..first + length];
        let several = blank(first + length) < head.len();
        let whole = serde_json::from_slice::<Map<String, Value>>(line).is_ok();
        match kind {
            SourceKind::Jsonl if whole || !name.ends_with(".json") => Self::Lines,
            SourceKind::Jsonl => Self::Whole,
            _ if whole && several => Self::Lines,
            _ => wrapped(head, first).unwrap_or(if whole { Self::Lines } else { Self::Whole }),
        }
    }
}

/// The array that is the first field of the object at `at`.
fn wrapped(head: &[u8], at: usize) -> Option<Layout> {
    let rest = String::from_utf8_lossy(&head[at..head.len().min(at + 4096)]);
    let inside = rest.strip_prefix('{')?.trim_start().strip_prefix('"')?;
    let (name, after) = inside.split_once('"')?;
    let array = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('[')?;
    // Lossy text may be longer than its bytes, but not before what was matched here.
    let start = at + (rest.len() - array.len());
    WRAPPERS.contains(&name).then_some(Layout::Elements { start: start as u64, alone: false })
}

/// The number of a record, as it is called in its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// Whether it is a line.
    pub line: bool,
    /// From 1.
    pub number: u64,
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}{}", if self.line { "on line " } else { "" }, self.number)
    }
}

/// Where a record is.
#[derive(Debug)]
pub struct Found {
    /// Its number.
    pub words: Words,
    /// First byte.
    pub offset: u64,
    /// Bytes without what ends it.
    pub length: u64,
    /// Whether there is nothing but white space.
    pub blank: bool,
    /// Why it is none, as far as its layout can tell.
    pub error: Option<Error>,
}

impl Found {
    /// What names a record without a key: `L7` for a line, `R7` for an element or row.
    pub fn label(&self) -> String {
        format!("{}{}", if self.words.line { 'L' } else { 'R' }, self.words.number)
    }
}

/// Records of a file, one after the other.
pub enum Reader<R> {
    /// One on each line.
    Lines(Lines<R>),
    /// Elements of an array.
    Elements(Elements<R>),
    /// One object.
    Whole(Option<R>, u64),
    /// Rows.
    Rows(Rows<R>),
}

impl<R: BufRead> Reader<R> {
    /// The records of a file that is at its start; of none more than `max` bytes are held.
    pub fn new(mut file: R, layout: Layout, max: u64) -> io::Result<Result<Self>> {
        Ok(Ok(match layout {
            Layout::Lines => Self::Lines(Lines::new(file, max)),
            Layout::Elements { start, alone } => {
                // It was found in what is buffered.
                file.consume(start as usize);
                Self::Elements(Elements { file, max, number: 0, offset: start, alone, state: State::Open })
            }
            Layout::Whole => Self::Whole(Some(file), max),
            Layout::Rows { delimiter } => match Rows::new(file, delimiter, max)? {
                Ok(rows) => Self::Rows(rows),
                Err(error) => return Ok(Err(error)),
            },
        }))
    }

    /// The next record; `bytes` receives it, or only its start when it is over the bound.
    pub fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Found>> {
        match self {
            Self::Lines(lines) => lines.next(bytes),
            Self::Elements(elements) => elements.next(bytes),
            Self::Rows(rows) => rows.next(bytes),
            Self::Whole(file, max) => match file.take() {
                Some(file) => whole(file, *max, bytes).map(Some),
                None => Ok(None),
            },
        }
    }

    /// What is wrong with the file, after its last record.
    pub fn complaint(&mut self) -> io::Result<Option<Error>> {
        match self {
            Self::Elements(elements) => elements.complaint(),
            _ => Ok(None),
        }
    }
}

/// A whole file as one record.
fn whole<R: BufRead>(mut file: R, max: u64, bytes: &mut Vec<u8>) -> io::Result<Found> {
    bytes.clear();
    (&mut file).take(max.saturating_add(1)).read_to_end(bytes)?;
    let mut rest = 0;
    loop {
        let more = file.fill_buf()?.len();
        if more == 0 {
            break;
        }
        file.consume(more);
        rest += more as u64;
    }
    let words = Words { line: false, number: 1 };
    Ok(Found { words, offset: 0, length: bytes.len() as u64 + rest, blank: false, error: None })
}

/// Where the reading of an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    /// The file ended before the array.
    Cut,
}

/// Elements of an array, of which no more than a bound is held.
pub struct Elements<R> {
    file: R,
    max: u64,
    number: u64,
    offset: u64,
    alone: bool,
    state: State,
}

impl<R: BufRead> Elements<R> {
    fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Found>> {
        while self.state == State::Open {
            bytes.clear();
            let (offset, length) = self.element(bytes)?;
            if length > 0 {
                self.number += 1;
                let words = Words { line: false, number: self.number };
                return Ok(Some(Found { words, offset, length, blank: false, error: None }));
            }
        }
        Ok(None)
    }

    /// Reads up to the end of an element: its first byte and its length without white space around it.
    fn element(&mut self, bytes: &mut Vec<u8>) -> io::Result<(u64, u64)> {
        let (mut depth, mut string, mut escaped) = (0_u64, false, false);
        // Bytes from the start of the element on, and up to the last that is no white space.
        let (mut start, mut read, mut solid) = (self.offset, 0_u64, 0_u64);
        loop {
            let buffer = self.file.fill_buf()?;
            if buffer.is_empty() {
                self.state = State::Cut;
                break;
            }
            let mut used = 0;
            let mut ended = false;
            for byte in buffer {
                used += 1;
                let inside = string;
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if string => escaped = true,
                    b'"' => string = !string,
                    _ if inside => {}
                    b'[' | b'{' => depth += 1,
                    b']' if depth == 0 => self.state = State::Closed,
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                ended = self.state == State::Closed || (*byte == b',' && depth == 0 && !inside);
                if ended {
                    break;
                }
                if read == 0 && byte.is_ascii_whitespace() {
                    start += 1;
                    continue;
                }
                read += 1;
                if !byte.is_ascii_whitespace() {
                    solid = read;
                }
                if read <= self.max {
                    bytes.push(*byte);
                }
            }
            self.file.consume(used);
            self.offset += used as u64;
            if ended {
                break;
            }
        }
        bytes.truncate(solid as usize);
        Ok((start, solid))
    }

    fn complaint(&mut self) -> io::Result<Option<Error>> {
        let bad = |what: &str| Ok(Some(Error::new(Kind::BadContent, what)));
        if self.state == State::Cut {
            return bad("the JSON array of records has no end");
        }
        while self.alone {
            let buffer = self.file.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            if !buffer.iter().all(u8::is_ascii_whitespace) {
                return bad("there is something after the JSON array of records");
            }
            let used = buffer.len();
            self.file.consume(used);
        }
        Ok(None)
    }
}

/// Lines of a file, of which no more than a bound is held.
pub struct Lines<R> {
    file: R,
    max: u64,
    number: u64,
    offset: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of a file that is at its start.
    fn new(file: R, max: u64) -> Self {
        Self { file, max, number: 0, offset: 0 }
    }

    /// The next line; `bytes` receives it without its end, or only its start when it is over the bound.
    fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Found>> {
        bytes.clear();
        // Two more for the line's end, so that a line of exactly the bound fits.
        let read = (&mut self.file).take(self.max.saturating_add(2)).read_until(b'\n', bytes)? as u64;
        if read == 0 {
            return Ok(None);
        }
        let mut total = read;
        if bytes.last() != Some(&b'\n') {
            total += self.file.skip_until(b'\n')? as u64;
        }
        self.number += 1;
        let mut offset = self.offset;
        self.offset += total;
        // What was skipped has an end that is not known; a line over the bound by a byte or two is over it anyway.
        let mut length = total;
        if total == read {
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
                if bytes.last() == Some(&b'\r') {
                    bytes.pop();
                }
            }
            length = bytes.len() as u64;
        }
        if self.number == 1 && bytes.starts_with(b"\xEF\xBB\xBF") {
            bytes.drain(..3);
            offset += 3;
            length -= 3;
        }
        let blank = total == read && bytes.iter().all(u8::is_ascii_whitespace);
        let words = Words { line: true, number: self.number };
        Ok(Some(Found { words, offset, length, blank, error: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_told_by_name_and_first_bytes() {
        use SourceKind::{Forum, Issues, Jsonl, Transcript};
        let array = |start| Layout::Elements { start, alone: true };
        let field = |start| Layout::Elements { start, alone: false };
        for (kind, name, head, layout) in [
            (Jsonl, "a.jsonl", "{\"text\": 1}\n", Layout::Lines),
            (Jsonl, "a.jsonl", "{broken\n{}\n", Layout::Lines),
            (Jsonl, "a", "{\n", Layout::Lines),
            (Jsonl, "a.json", "{\n \"text\": \"x\"\n}", Layout::Whole),
            (Jsonl, "a.json", "\u{FEFF} \n[{", array(6)),
            (Jsonl, "a.json", "{\"items\": [{", Layout::Lines),
            (Jsonl, "a.CSV", "a;b\n[", Layout::Rows { delimiter: b';' }),
            (Jsonl, "a.tsv", "a,b", Layout::Rows { delimiter: b'\t' }),
            (Forum, "a.csv", "a,b", Layout::Lines),
            (Forum, "a.json", "{\"items\" : [{", field(12)),
            (Forum, "a.json", "{\n\"threads\": [\n", field(14)),
            (Forum, "a.json", "{\"id\": 1}\n{\"id\": 2}\n", Layout::Lines),
            (Issues, "a.json", "{\"id\": 1}\n", Layout::Lines),
            (Issues, "a.json", "{\n\"id\": 1\n}", Layout::Whole),
            (Transcript, "a.jsonl", "{\"id\": 1}", Layout::Lines),
            (Jsonl, "a.json", "", Layout::Lines),
        ] {
            assert_eq!(Layout::of(kind, name, head.as_bytes()), layout, "{name} {head}");
        }
    }

    #[test]
    fn elements_are_the_same_however_the_file_is_read() {
        let content = b" {\"a\": \"]}\\\"[\"} ,[1, [2]],, 3 ]rest";
        for size in 1..content.len() {
            let file = std::io::BufReader::with_capacity(size, &content[..]);
            let mut elements = Elements { file, max: 5, number: 0, offset: 0, alone: false, state: State::Open };
            let (mut bytes, mut found) = (Vec::new(), Vec::new());
            while let Some(one) = elements.next(&mut bytes).expect("read") {
                let place = one.offset as usize..(one.offset + one.length) as usize;
                assert!(bytes.len() <= 5 && content[place.clone()].starts_with(&bytes));
                found.push((one.words.number, String::from_utf8_lossy(&content[place]).into_owned()));
            }
            let expected = [(1, "{\"a\": \"]}\\\"[\"}"), (2, "[1, [2]]"), (3, "3")];
            assert_eq!(found, expected.map(|(n, text)| (n, text.to_owned())));
        }
    }
}
