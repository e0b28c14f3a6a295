// SPDX-License-Identifier: PostgreSQL

//! Rows of CSV: a header, and one record per row.
//!
//! `csv-core` parses, which neither allocates nor reads, so what is held of one row is bounded by us: the `csv` crate
//! would follow a quote that is never closed to the end of any file. A row becomes the JSON object that it means, every
//! field a string under the name in the header; bytes that are not valid stay as they are and are repaired with the
//! record.

use super::layout::{Found, Words};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use rag_core::error::{Error, Kind, Result};
use std::io::{self, BufRead};

/// Fields of a row, at most.
const MAX_FIELDS: usize = 10_000;

/// Bytes of a header, at most.
const MAX_HEADER: u64 = 1 << 20;

/// The delimiter of a file that calls itself CSV: a comma, unless the first line has none but one of the others.
pub fn delimiter(head: &[u8]) -> u8 {
    let line = head.split(|b| *b == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let count = |delimiter: u8| line.iter().filter(|b| **b == delimiter).count();
    let other = [b';', b'\t', b'|'].into_iter().max_by_key(|d| (count(*d), std::cmp::Reverse(*d)));
    other.filter(|d| count(b',') == 0 && count(*d) > 0).unwrap_or(b',')
}

/// Rows of a file.
pub struct Rows<R> {
    file: R,
    delimiter: u8,
    max: u64,
    /// Names of the fields, as JSON strings.
    names: Vec<Vec<u8>>,
    number: u64,
    offset: u64,
}

/// Fields of one row.
#[derive(Default)]
struct Row {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Whether there are more than are held.
    over: bool,
}

impl<R: BufRead> Rows<R> {
    /// The rows of a file that is at its start. Fails when its first row names no fields.
    pub fn new(mut file: R, delimiter: u8, max: u64) -> io::Result<Result<Self>> {
        let mark = if file.fill_buf()?.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        file.consume(mark);
        let mut rows = Self { file, delimiter, max: MAX_HEADER, names: Vec::new(), number: 0, offset: mark as u64 };
        let Some((header, _, length)) = rows.row()? else {
            return Ok(Ok(rows));
        };
        if header.over || length > MAX_HEADER || header.ends.len() > MAX_FIELDS {
            return Ok(Err(Error::new(Kind::LimitExceeded, "header of the CSV file is too long")
                .with_detail(format!("A header has at most {MAX_HEADER} bytes and {MAX_FIELDS} fields."))));
        }
        let mut seen = std::collections::HashSet::new();
        for (index, field) in header.fields().enumerate() {
            let name = field.trim_ascii();
            let name = if name.is_empty() { format!("column_{}", index + 1).into_bytes() } else { name.to_vec() };
            if !seen.insert(name.clone()) {
                let shown = String::from_utf8_lossy(&name).chars().take(80).collect::<String>();
                return Ok(Err(Error::new(
                    Kind::BadContent,
                    format!("header of the CSV file repeats the field \"{shown}\""),
                )
                .with_hint("Name each column once.")));
            }
            rows.names.push(quoted(&name));
        }
        rows.max = max;
        Ok(Ok(rows))
    }

    /// The next row; `bytes` receives its object.
    pub fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Found>> {
        bytes.clear();
        let Some((row, offset, length)) = self.row()? else {
            return Ok(None);
        };
        self.number += 1;
        let words = Words { line: false, number: self.number };
        let mut error = None;
        let (has, wants) = (row.ends.len(), self.names.len());
        if row.over && has > MAX_FIELDS || !row.over && has != wants {
            let more = if row.over { format!("more than {MAX_FIELDS}") } else { has.to_string() };
            let message = format!("{words} has {more} fields, but the header has {wants}");
            error = Some(
                Error::new(Kind::BadContent, message)
                    .with_hint("Quote fields that hold the delimiter, a quote or a line feed."),
            );
        } else if row.over && length <= self.max {
            error = Some(Error::new(Kind::LimitExceeded, format!("{words} is longer than its limit")));
        } else {
            self.write(&row, bytes);
        }
        Ok(Some(Found { words, offset, length, blank: false, error }))
    }

    /// The object of a row that was read from its place.
    pub fn object(&self, row: &[u8]) -> Option<Vec<u8>> {
        let (delimiter, max) = (self.delimiter, self.max);
        let mut inner = Rows { file: row, delimiter, max, names: Vec::new(), number: 0, offset: 0 };
        let (row, ..) = inner.row().ok()??;
        let mut bytes = Vec::new();
        self.write(&row, &mut bytes);
        Some(bytes)
    }

    fn write(&self, row: &Row, bytes: &mut Vec<u8>) {
        bytes.push(b'{');
        for (index, (name, field)) in self.names.iter().zip(row.fields()).enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            bytes.extend_from_slice(name);
            bytes.push(b':');
            bytes.extend_from_slice(&quoted(field));
        }
        bytes.push(b'}');
    }

    /// Reads a row: its fields, first byte and length. Blank lines are none.
    fn row(&mut self) -> io::Result<Option<(Row, u64, u64)>> {
        // Line feeds before a row are no part of its place.
        loop {
            let buffer = self.file.fill_buf()?;
            let blank = buffer.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let more = blank == buffer.len() && blank > 0;
            self.file.consume(blank);
            self.offset += blank as u64;
            if !more {
                break;
            }
        }
        let mut parser: Reader = ReaderBuilder::new().delimiter(self.delimiter).build();
        let mut row = Row { text: vec![0; 1024], ends: vec![0; 64], over: false };
        let (mut text, mut ends, start) = (0, 0, self.offset);
        let mut spill = [0; 4096];
        loop {
            let input = self.file.fill_buf()?;
            // Whatever is over the bound goes where the next of it will go.
            let output = if row.over { &mut spill[..] } else { &mut row.text[text..] };
            let places = if row.over { &mut row.ends[..] } else { &mut row.ends[ends..] };
            let (result, read, wrote, ended) = parser.read_record(input, output, places);
            self.file.consume(read);
            self.offset += read as u64;
            if !row.over {
                text += wrote;
                ends += ended;
            }
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if !row.over => {
                    row.over = row.text.len() as u64 > self.max;
                    if !row.over {
                        row.text.resize(row.text.len() * 2, 0);
                    }
                }
                ReadRecordResult::OutputEndsFull if !row.over => {
                    row.over = row.ends.len() > MAX_FIELDS;
                    if !row.over {
                        row.ends.resize((row.ends.len() * 2).min(MAX_FIELDS + 1), 0);
                    }
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(None),
            }
        }
        row.text.truncate(text);
        row.ends.truncate(ends);
        Ok(Some((row, start, self.offset - start)))
    }
}

impl Row {
    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let field = self.text.get(start..*end).unwrap_or_default();
            start = *end;
            field
        })
    }
}

/// Bytes as a JSON string; what is not valid UTF-8 stays.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects of all rows, checked against reading each from its place.
    fn objects(content: &[u8], delimiter: u8) -> Vec<String> {
        let mut rows = Rows::new(content, delimiter, 1000).expect("read").expect("header");
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        while let Some(found) = rows.next(&mut bytes).expect("read") {
            if let Some(error) = found.error {
                all.push(error.message);
                continue;
            }
            let place = &content[found.offset as usize..(found.offset + found.length) as usize];
            assert_eq!(rows.object(place), Some(bytes.clone()));
            all.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        all
    }

    #[test]
    fn rows_are_objects() {
        let content = b"\xEF\xBB\xBFid,,\"te\"\"xt\"\r\n1,a,\"x\r\ny, \"\"z\"\"\"\r\n\r\n\n2,,\\\n3,b\n4,\"open";
        let expected = [
            r#"{"id":"1","column_2":"a","te\"xt":"x\u000d\u000ay, \"z\""}"#,
            r#"{"id":"2","column_2":"","te\"xt":"\\"}"#,
            "record 3 has 2 fields, but the header has 3",
            "record 4 has 2 fields, but the header has 3",
        ];
        assert_eq!(objects(content, b','), expected);
        assert_eq!(objects(b"a\tb\n1\t2", b'\t'), [r#"{"a":"1","b":"2"}"#]);
        assert_eq!(objects(b"", b','), Vec::<String>::new());
        assert_eq!(objects(b"a,b\n", b','), Vec::<String>::new());
    }

    #[test]
    fn a_row_is_bounded_and_the_next_one_is_read() {
        let content = format!("a\n{}\n\"{}\n\"\nx\n", "y".repeat(5000), "z".repeat(100_000));
        let mut rows = Rows::new(content.as_bytes(), b',', 100).expect("read").expect("header");
        let mut bytes = Vec::new();
        let mut lengths = Vec::new();
        let mut last = Vec::new();
        while let Some(found) = rows.next(&mut bytes).expect("read") {
            lengths.push(found.length);
            last.clone_from(&bytes);
        }
        assert_eq!(lengths, [5001, 100_004, 2]);
        assert_eq!(last, br#"{"a":"x"}"#);
    }

    #[test]
    fn a_header_names_each_field_once() {
        let message = |content: &[u8]| Rows::new(content, b',', 100).expect("read").err().map(|e| e.message);
        assert_eq!(message(b"a,b,a\n"), Some("header of the CSV file repeats the field \"a\"".to_owned()));
        assert_eq!(message("x,".repeat(600_000).as_bytes()), Some("header of the CSV file is too long".to_owned()));
    }

    #[test]
    fn fields_are_as_many_as_they_may_be() {
        let row = |fields: usize| (0..fields).map(|n| format!("{n:x}")).collect::<Vec<_>>().join(",");
        let header = |fields| Rows::new(row(fields).as_bytes(), b',', 100).expect("read").map(|rows| rows.names.len());
        assert_eq!(header(MAX_FIELDS), Ok(MAX_FIELDS));
        assert!(header(MAX_FIELDS + 1).is_err_and(|error| error.message.ends_with("is too long")));
        let name = "x".repeat(MAX_HEADER as usize - 1);
        for (more, fits) in [("\n", true), ("x\n", false)] {
            let text = format!("{name}{more}1\n");
            assert_eq!(Rows::new(text.as_bytes(), b',', 100).expect("read").is_ok(), fits, "{more:?}");
        }
        let text = format!("a,b\n{}\n1,2\n", row(MAX_FIELDS * 2));
        let mut rows = Rows::new(text.as_bytes(), b',', 1 << 20).expect("read").expect("header");
        let mut bytes = Vec::new();
        let error = rows.next(&mut bytes).expect("read").and_then(|found| found.error).expect("too many fields");
        assert_eq!(error.message, "record 1 has more than 10000 fields, but the header has 2");
        assert!(rows.next(&mut bytes).expect("read").is_some_and(|found| found.error.is_none()));
    }

    #[test]
    fn the_delimiter_is_found_out() {
        for (head, delimiter) in [("a,b;c", b','), ("a;b\n1,2", b';'), ("a\tb|c\td", b'\t'), ("a", b','), ("", b',')] {
            assert_eq!(super::delimiter(head.as_bytes()), delimiter, "{head}");
        }
    }
}
