// SPDX-License-Identifier: PostgreSQL

//! A file of records: JSON objects by lines or in an array, or rows of CSV, each of which is one document.
//!
//! The file is read once, record by record, and never held as a whole; [`layout`](super::layout) knows where one ends.
//! A record's place is its byte range, so reading one costs one seek; the hash of its bytes tells when the file was
//! replaced in between. A row of CSV is turned into the JSON object that it means, and that is what is hashed and parsed.
//!
//! A listing needs the keys, so it looks into each record where the file is open, and no further than its key and
//! whether there is a text. Sending every line to a process that may open nothing would cost a copy of the whole file
//! per listing, to guard a process that may only read what the superuser allowed from a parser written in Rust.

use super::confine::Location;
use super::file::unreadable;
use super::layout::{Found, Layout, Reader};
use super::rows::Rows;
use super::{Pages, Source, within_limit};
use crate::document::check_key;
use crate::parse::{record, transcript};
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Failure, Item, Limits, Origin, Place, SourceKind, SourceSpec};
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read at once, and looked at to learn the layout.
const BUFFER: usize = 1 << 18;

/// Records of a source.
pub struct Records<'a> {
    spec: &'a SourceSpec,
    location: Location,
}

impl<'a> Records<'a> {
    /// The records of the file at a location.
    pub fn new(spec: &'a SourceSpec, location: Location) -> Result<Self> {
        if !location.kind.is_file() {
            let message = format!("location \"{}\" of kind \"{}\" is not a file", spec.location, spec.kind.name());
            return Err(Error::invalid(message));
        }
        Ok(Self { spec, location })
    }

    fn failed(&self, error: &io::Error) -> Error {
        unreadable(&self.spec.location, error)
    }

    fn item(&self, found: Found, bytes: &[u8], seen: &mut HashSet<[u8; 16]>) -> std::result::Result<Item, Failure> {
        let name = &self.location.name;
        let by_number = format!("{name}#{}", found.label());
        let fail = |uri: &str, error: Error| Err(Failure { uri: uri.to_owned(), error });
        if let Err(error) = within_limit(found.length, &self.spec.options.limits) {
            return fail(&by_number, error);
        }
        let place = Place::Record { offset: found.offset, length: found.length };
        if let Some(error) = found.error {
            return fail(&by_number, error);
        }
        let fields = &self.spec.options.fields;
        let key = match self.spec.kind {
            SourceKind::Jsonl => record::key(bytes, fields),
            _ => record::key_only(bytes, fields),
        };
        let uri = match key {
            Ok(None) => by_number.clone(),
            Ok(Some(id)) => match check_key(&id) {
                Ok(()) => format!("{name}#{id}"),
                Err(error) => return fail(&by_number, error),
            },
            Err(error) => return fail(&by_number, error),
        };
        // Half a hash per record: five million of them must fit in a worker.
        let mut key = [0; 16];
        key.copy_from_slice(&ContentHash::of(&uri).0[..16]);
        if !seen.insert(key) {
            let message = format!("{} repeats the key of \"{uri}\"", found.words);
            return fail(&by_number, Error::new(Kind::BadContent, message));
        }
        Ok(Item { uri, content_sha256: ContentHash::of(bytes), size: bytes.len() as u64, place })
    }

    /// The file from its start, and how records stand in it.
    fn open(&self) -> Result<(BufReader<cap_std::fs::File>, Layout)> {
        let (file, layout) = look(&self.location, self.spec.kind).map_err(|e| self.failed(&e))?;
        // Two bytes to a character: no line, bracket or comma is where it is looked for.
        if file.buffer().starts_with(b"\xFF\xFE") || file.buffer().starts_with(b"\xFE\xFF") {
            let message = format!("records of \"{}\" are in UTF-16, which is not supported", self.location.name);
            return Err(Error::unsupported(message).with_hint("Save the file as UTF-8."));
        }
        Ok((file, layout))
    }

    fn reader(
        &self,
        file: BufReader<cap_std::fs::File>,
        layout: Layout,
    ) -> Result<Reader<BufReader<cap_std::fs::File>>> {
        let max = self.spec.options.limits.max_document_bytes;
        Reader::new(file, layout, max).map_err(|e| self.failed(&e))?
    }
}

/// Opens the file at a location and looks at how records stand in it.
fn look(location: &Location, kind: SourceKind) -> io::Result<(BufReader<cap_std::fs::File>, Layout)> {
    let (file, _) = location.file(Path::new(""))?;
    let mut file = BufReader::with_capacity(BUFFER, file);
    let layout = Layout::of(kind, &location.name, file.fill_buf()?);
    Ok((file, layout))
}

/// Whether a location of kind `transcript` is one file with many recordings in it: a file of lines by its name, or an
/// array of which the first element has segments of its own.
pub fn holds_recordings(location: &Location, limits: &Limits) -> Result<bool> {
    let name = location.name.to_ascii_lowercase();
    if !location.kind.is_file() || !name.ends_with(".json") {
        return Ok(location.kind.is_file() && (name.ends_with(".jsonl") || name.ends_with(".ndjson")));
    }
    let failed = |error: &io::Error| unreadable(&location.given, error);
    let (file, layout) = look(location, SourceKind::Transcript).map_err(|e| failed(&e))?;
    let Layout::Elements { .. } = layout else { return Ok(false) };
    let mut reader = Reader::new(file, layout, limits.max_document_bytes).map_err(|e| failed(&e))??;
    let mut first = Vec::new();
    reader.next(&mut first).map_err(|e| failed(&e))?;
    Ok(transcript::is_recording(&first))
}

impl Source for Records<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        let (file, layout) = self.open()?;
        let mut reader = self.reader(file, layout)?;
        let mut seen = HashSet::new();
        let mut bytes = Vec::new();
        while let Some(found) = reader.next(&mut bytes).map_err(|e| self.failed(&e))? {
            if !found.blank {
                pages.push(self.item(found, &bytes, &mut seen))?;
            }
        }
        match reader.complaint().map_err(|e| self.failed(&e))? {
            Some(error) => pages.push(Err(Failure { uri: self.location.name.clone(), error })),
            None => Ok(()),
        }
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let Place::Record { offset, length } = item.place else {
            return Err(Error::internal(format!("item \"{}\" of a source of records is no record", item.uri)));
        };
        within_limit(length, &self.spec.options.limits)?;
        let (file, layout) = self.open()?;
        // The names of the fields stand at the start.
        let rows = match layout {
            Layout::Rows { delimiter } => Some(Rows::new(file, delimiter, length).map_err(|e| self.failed(&e))??),
            _ => None,
        };
        let (mut file, _) = self.location.file(Path::new("")).map_err(|e| self.failed(&e))?;
        file.seek(SeekFrom::Start(offset)).map_err(|e| self.failed(&e))?;
        let mut bytes = Vec::with_capacity(length as usize);
        file.take(length).read_to_end(&mut bytes).map_err(|e| self.failed(&e))?;
        if let Some(rows) = rows {
            bytes = rows.object(&bytes).unwrap_or_default();
        }
        if ContentHash::of(&bytes) != item.content_sha256 {
            let message = format!("\"{}\" changed since it was listed", item.uri);
            return Err(Error::new(Kind::Io, message).with_hint("Run the sync again."));
        }
        Ok(Content { bytes, origin: Origin::default() })
    }
}
