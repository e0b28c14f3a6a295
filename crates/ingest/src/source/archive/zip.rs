// SPDX-License-Identifier: PostgreSQL

//! The members of a ZIP.
//!
//! Owns what a ZIP says about its members and how the bytes of one are had. The directory at its end is the only truth, as it is
//! for those who unpack: a member is found through it, whatever stands before it, and its size and checksum hold. The
//! directory is read once and kept, since it says where each member is. Members whose packed bytes overlap, by which a small
//! file unpacks to anything, are refused one by one.

use super::name::{self, Style};
use super::stream::{Budget, Input, Meter, Trouble};
use super::{Member, What};
use flate2::read::DeflateDecoder;
use rag_core::error::{Error, Kind};
use rawzip::extra_fields::ExtraFieldId;
use rawzip::zipcrypto::Decryptor;
use rawzip::{
    CompressionMethod, ErrorKind, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
    ZipFileHeaderRecord, ZipLocator,
};
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes of a header before each member.
const LOCAL_HEADER: u64 = 30;

/// Bits of a Unix mode that say what a file is, and what they say.
const FILE_TYPE: u32 = 0o170_000;
const REGULAR: [u32; 2] = [0, 0o100_000];
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// What the directory says about a member.
#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    style: Style,
    what: What,
    method: CompressionMethod,
    encryption: Encryption,
    overlaps: bool,
    way: ZipArchiveEntryWayfinder,
    start: u64,
}

#[derive(Debug, Clone, Copy)]
enum Encryption {
    None,
    /// The old cipher, with the byte by which a wrong password is recognised.
    Traditional(u8),
    Other,
}

/// A ZIP.
#[derive(Debug)]
pub struct Zip {
    archive: ZipArchive<Input>,
    budget: Rc<Budget>,
    entries: Vec<Entry>,
    next: usize,
}

impl Zip {
    /// Reads the directory.
    pub fn open(mut input: Input, budget: &Rc<Budget>) -> Result<Self, Trouble> {
        let length = input.length().map_err(|e| Trouble::Archive(unreadable(&e)))?;
        let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
        let located = ZipLocator::new().locate_in_reader(input, &mut buffer, length);
        let archive = located.map_err(|(input, error)| Trouble::Archive(not_located(&input, &error)))?;
        let mut entries = Vec::new();
        let mut directory = archive.entries(&mut buffer);
        while let Some(record) = directory.next_entry().map_err(|e| Trouble::Archive(broken(&e)))? {
            budget.count_entries(1)?;
            entries.push(Entry::of(&record));
        }
        let (said, found) = (archive.entries_hint(), entries.len() as u64);
        // A writer that knows nothing of ZIP64 counts modulo 65,536.
        if said != found && (said > 0xFFFF || found & 0xFFFF != said) {
            let message = format!("is damaged: it says that it has {said} entries and has {found}");
            return Err(Trouble::Archive(Error::new(Kind::BadContent, message)));
        }
        mark_overlaps(&mut entries);
        Ok(Self { archive, budget: Rc::clone(budget), entries, next: 0 })
    }

    /// The next member.
    pub fn next(&mut self) -> Option<Member> {
        let index = self.next;
        let entry = self.entries.get(index)?;
        self.next += 1;
        Some(Member {
            index: index as u64,
            name: name::read(&entry.name, entry.style),
            what: entry.what,
            size: Some(entry.way.uncompressed_size_hint()),
            packed: Some(entry.way.compressed_size_hint()),
        })
    }

    /// Goes to a member.
    pub fn go_to(&mut self, index: u64) -> Option<Member> {
        self.next = usize::try_from(index).ok()?;
        self.next()
    }

    /// The bytes of the member that was last come to, checked for their number and checksum at their end.
    pub fn content(&self, password: Option<&str>) -> Result<Box<dyn Read + '_>, Trouble> {
        let entry = self.next.checked_sub(1).and_then(|at| self.entries.get(at));
        let entry = entry.ok_or_else(|| Trouble::Member(Error::internal("was not come to")))?;
        entry.readable(password).map_err(Trouble::Member)?;
        let found = self.archive.get_entry(entry.way).map_err(|e| Trouble::Member(broken(&e)))?;
        let mut packed: Box<dyn Read + '_> = Box::new(found.reader());
        if let (Encryption::Traditional(check), Some(password)) = (entry.encryption, password) {
            let opened = Decryptor::new(packed, password.as_bytes()).map_err(|e| Trouble::Member(damage(&e)))?;
            if opened.check_byte() != check {
                return Err(Trouble::Member(wrong_password()));
            }
            packed = Box::new(opened);
        }
        let unpacked: Box<dyn Read + '_> = match entry.method {
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(packed)),
            _ => packed,
        };
        let metered = Meter::new(unpacked, Rc::clone(&self.budget), entry.way.compressed_size_hint());
        Ok(Box::new(found.verifying_reader(metered)))
    }
}

impl Entry {
    fn of(record: &ZipFileHeaderRecord<'_>) -> Self {
        let flags = record.flags();
        let way = record.wayfinder();
        let raw = record.file_path();
        let unicode = unicode_name(record);
        let utf8 = flags.is_utf8() || unicode.is_some();
        let mode = match record.version_made_by().creator_system().as_u8() {
            // Unix and OS X keep the mode there; for others it means something else.
            3 | 19 => (record.external_attributes() >> 16) & FILE_TYPE,
            _ => 0,
        };
        let what = match mode {
            _ if raw.is_dir() || raw.as_bytes().ends_with(b"\\") => What::Folder,
            FOLDER => What::Folder,
            LINK => What::Link,
            other if REGULAR.contains(&other) => What::File,
            _ => What::Special,
        };
        let crc = (record.crc32() >> 24) as u8;
        let time = (record.last_modified_dos().packed_time() >> 8) as u8;
        let encryption = match () {
            () if flags.has_strong_encryption() || record.compression_method() == CompressionMethod::AES => {
                Encryption::Other
            }
            () if !flags.is_encrypted() => Encryption::None,
            () => Encryption::Traditional(if flags.has_data_descriptor() { time } else { crc }),
        };
        Self {
            name: unicode.unwrap_or(raw.as_bytes()).into(),
            style: Style { utf8, backslash: true },
            what,
            method: record.compression_method(),
            encryption,
            overlaps: false,
            way,
            start: record.local_header_offset(),
        }
    }

    /// Whether the bytes can be had at all; the error says why not.
    fn readable(&self, password: Option<&str>) -> Result<(), Error> {
        match self.encryption {
            Encryption::Other => {
                return Err(Error::unsupported("is encrypted with AES, which is not supported")
                    .with_hint("Unpack the archive and pack it again without encryption."));
            }
            Encryption::Traditional(_) if password.is_none() => {
                return Err(Error::new(Kind::BadContent, "is encrypted")
                    .with_hint("Give the password in the source's options: {\"password\": \"...\"}."));
            }
            Encryption::Traditional(_) | Encryption::None => {}
        }
        if self.overlaps {
            return Err(Error::new(Kind::BadContent, "shares its packed bytes with another member"));
        }
        match self.method {
            CompressionMethod::STORE | CompressionMethod::DEFLATE => Ok(()),
            other => {
                let message = match other.name() {
                    Some(name) => format!("is packed by method {} ({name}), which is not supported", other.as_u16()),
                    None => format!("is packed by the unknown method {}", other.as_u16()),
                };
                Err(Error::unsupported(message).with_hint("Pack it by \"deflate\", which is what ZIP means."))
            }
        }
    }
}

/// The name that Info-ZIP keeps beside one in another encoding, if it is still about that one.
fn unicode_name<'a>(record: &'a ZipFileHeaderRecord<'_>) -> Option<&'a [u8]> {
    let (_, field) = record.extra_fields().find(|(id, _)| *id == ExtraFieldId::INFO_ZIP_UNICODE_PATH)?;
    let (version, rest) = field.split_first()?;
    let (crc, name) = rest.split_first_chunk::<4>()?;
    let same = *version == 1 && u32::from_le_bytes(*crc) == rawzip::crc32(record.file_path().as_bytes());
    (same && std::str::from_utf8(name).is_ok()).then_some(name)
}

/// Marks whatever begins before something else has ended.
fn mark_overlaps(entries: &mut [Entry]) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|at| entries[*at].start);
    let mut end = 0;
    for at in order {
        let entry = &mut entries[at];
        entry.overlaps = entry.start < end;
        end = end.max(entry.start.saturating_add(LOCAL_HEADER).saturating_add(entry.way.compressed_size_hint()));
    }
}

fn wrong_password() -> Error {
    Error::new(Kind::BadContent, "is encrypted with another password")
        .with_hint("Give the right one in the source's options: {\"password\": \"...\"}.")
}

fn unreadable(error: &io::Error) -> Error {
    Error::new(Kind::Io, format!("could not be read: {error}"))
}

/// What a ZIP begins with: its first member.
const FIRST_MEMBER: &[u8; 4] = b"PK\x03\x04";

/// The error for what has no directory at its end. What begins like a ZIP was one, and was cut.
fn not_located(input: &Input, error: &rawzip::Error) -> Error {
    let mut head = [0; FIRST_MEMBER.len()];
    let begins = input.head(&mut head).is_ok() && head == *FIRST_MEMBER;
    match error.kind() {
        ErrorKind::MissingEndOfCentralDirectory if begins => {
            Error::new(Kind::BadContent, "is damaged: it ends before the directory of its members")
                .with_hint("Was it transferred whole?")
        }
        _ => broken(error),
    }
}

/// The error for what is no ZIP, or is one no more.
fn broken(error: &rawzip::Error) -> Error {
    let bad = |message: String| Error::new(Kind::BadContent, message);
    match error.kind() {
        ErrorKind::MissingEndOfCentralDirectory => {
            bad("is no archive of a known kind".to_owned()).with_detail("Known are ZIP, tar, tar.gz and gz.".to_owned())
        }
        ErrorKind::InvalidChecksum { expected, actual } => {
            bad(format!("is damaged: its checksum is {actual:08x} and should be {expected:08x}"))
        }
        // Whoever reads stops when there is more than there should be.
        ErrorKind::InvalidSize { expected, actual } if actual > expected => {
            bad(format!("is damaged: it unpacks to more than the {expected} bytes that it should have"))
        }
        ErrorKind::InvalidSize { expected, actual } => {
            bad(format!("is damaged: it unpacks to {actual} bytes and should have {expected}"))
        }
        ErrorKind::Eof => bad("is damaged: it ends too soon".to_owned()),
        ErrorKind::IO(error) => damage(error),
        other => bad(format!("is damaged: {}", lower(&other.to_string()))),
    }
}

/// The error for bytes that do not unpack.
pub fn damage(error: &io::Error) -> Error {
    if let Some(zip) = error.get_ref().and_then(|inner| inner.downcast_ref::<rawzip::Error>()) {
        return broken(zip);
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::new(Kind::BadContent, "is damaged: it ends too soon"),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            Error::new(Kind::BadContent, format!("is damaged: {}", lower(&error.to_string())))
        }
        _ => unreadable(error),
    }
}

/// The words of a library, as ours are written.
fn lower(words: &str) -> String {
    let mut letters = words.trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
