// SPDX-License-Identifier: PostgreSQL

//! A file of records: one JSON object per line, each of which is one document.
//!
//! The file is read once, line by line, and never held as a whole. A record's place is its byte range, so reading one
//! costs one seek; the hash of the line tells when the file was replaced in between.
//!
//! A listing needs the keys, so it looks into each record where the file is open, and no further than its key and
//! whether there is a text. Sending every line to a process that may open nothing would cost a copy of the whole file
//! per listing, to guard a process that may only read what the superuser allowed from a parser written in Rust.

use super::confine::Location;
use super::file::unreadable;
use super::{Pages, Source, within_limit};
use crate::parse::record;
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Failure, Item, Origin, Place, SourceSpec};
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Longest key in bytes. A key is part of an index entry, which the database bounds, and of every message about its
/// record; a longer one is text in the wrong field.
const MAX_KEY: usize = 2048;

/// Records of a source.
pub struct Records<'a> {
    spec: &'a SourceSpec,
    location: Location,
}

impl<'a> Records<'a> {
    /// The records of the file at a location.
    pub fn new(spec: &'a SourceSpec, location: Location) -> Result<Self> {
        if !location.kind.is_file() {
            let message = format!("location \"{}\" of kind \"jsonl\" is not a file", spec.location);
            return Err(Error::invalid(message));
        }
        Ok(Self { spec, location })
    }

    fn failed(&self, error: &io::Error) -> Error {
        unreadable(&self.spec.location, error)
    }

    fn record(&self, line: &Line, bytes: &[u8], seen: &mut HashSet<[u8; 16]>) -> std::result::Result<Item, Failure> {
        let name = &self.location.name;
        let by_line = format!("{name}#L{}", line.number);
        let fail = |uri: &str, error: Error| Err(Failure { uri: uri.to_owned(), error });
        if let Err(error) = within_limit(line.length, &self.spec.options.limits) {
            return fail(&by_line, error);
        }
        let uri = match record::key(bytes, &self.spec.options.fields) {
            Ok(Some(id)) if id.len() > MAX_KEY => {
                let message = format!("key of {} bytes is longer than {MAX_KEY}", id.len());
                let error = Error::new(Kind::LimitExceeded, message).with_hint(
                    "Name the field with the key in the source's options: {\"fields\": {\"external_id\": \"...\"}}.",
                );
                return fail(&by_line, error);
            }
            Ok(key) => key.map_or(by_line, |id| format!("{name}#{id}")),
            Err(error) => return fail(&by_line, error),
        };
        // Half a hash per record: five million of them must fit in a worker.
        let mut key = [0; 16];
        key.copy_from_slice(&ContentHash::of(&uri).0[..16]);
        if !seen.insert(key) {
            let message = format!("record on line {} repeats the key of \"{uri}\"", line.number);
            return fail(&format!("{name}#L{}", line.number), Error::new(Kind::BadContent, message));
        }
        let place = Place::Record { offset: line.offset, length: line.length };
        Ok(Item { uri, content_sha256: ContentHash::of(bytes), size: line.length, place })
    }
}

impl Source for Records<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        let (file, _) = self.location.file(Path::new("")).map_err(|e| self.failed(&e))?;
        let mut lines =
            Lines::new(BufReader::with_capacity(1 << 18, file), self.spec.options.limits.max_document_bytes);
        let mut seen = HashSet::new();
        let mut bytes = Vec::new();
        while let Some(line) = lines.next(&mut bytes).map_err(|e| self.failed(&e))? {
            if line.blank {
                continue;
            }
            pages.push(self.record(&line, &bytes, &mut seen))?;
        }
        Ok(())
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let Place::Record { offset, length } = item.place else {
            return Err(Error::internal(format!("item \"{}\" of a jsonl source is no record", item.uri)));
        };
        within_limit(length, &self.spec.options.limits)?;
        let (mut file, _) = self.location.file(Path::new("")).map_err(|e| self.failed(&e))?;
        file.seek(SeekFrom::Start(offset)).map_err(|e| self.failed(&e))?;
        let mut bytes = Vec::with_capacity(length as usize);
        file.take(length).read_to_end(&mut bytes).map_err(|e| self.failed(&e))?;
        if ContentHash::of(&bytes) != item.content_sha256 {
            let message = format!("\"{}\" changed since it was listed", item.uri);
            return Err(Error::new(Kind::Io, message).with_hint("Run the sync again."));
        }
        Ok(Content { bytes, origin: Origin::default() })
    }
}

/// Where a line is.
struct Line {
    /// From 1.
    number: u64,
    /// First byte.
    offset: u64,
    /// Bytes without the line's end.
    length: u64,
    /// Whether there is nothing but white space on it.
    blank: bool,
}

/// Lines of a file, of which no more than a bound is held.
struct Lines<R> {
    file: R,
    max: u64,
    number: u64,
    offset: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(file: R, max: u64) -> Self {
        Self { file, max, number: 0, offset: 0 }
    }

    /// The next line; `bytes` receives it without its end, or only its start when it is over the bound.
    fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<Line>> {
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
        Ok(Some(Line { number: self.number, offset, length, blank }))
    }
}
