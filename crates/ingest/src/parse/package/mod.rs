// SPDX-License-Identifier: PostgreSQL

//! Packages: documents that are a ZIP file with XML in it (Word, EPUB).
//!
//! Owns the reading of their members in memory, under bounds that no real document meets: so many members, so many bytes
//! unpacked, so much more than packed. Members are found by name and never written anywhere; an entity of XML is never
//! looked up anywhere ([`xml`]). Which member means what is the business of the formats.

pub mod xml;

use crate::format::Format;
use flate2::bufread::DeflateDecoder;
use rag_core::error::{Error, Kind, Result};
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};
use std::collections::HashMap;
use std::io::Read;

/// Most members.
const MAX_MEMBERS: usize = 20_000;

/// Most bytes that are unpacked of one package.
const MAX_UNPACKED: u64 = 256 << 20;

/// Most bytes a member may be unpacked to for each byte it has, beyond the first megabyte.
const MAX_RATIO: u64 = 200;

/// How a compound file begins: an old Word document, or a new one that is encrypted.
const COMPOUND: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";

/// An opened package.
pub struct Package<'a> {
    /// What it is, for messages.
    what: &'static str,
    archive: ZipSliceArchive<&'a [u8]>,
    members: HashMap<String, Member>,
    /// Bytes that may still be unpacked.
    left: u64,
}

#[derive(Clone, Copy)]
struct Member {
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    encrypted: bool,
}

impl<'a> Package<'a> {
    /// Opens a package that should be a `what`.
    pub fn open(bytes: &'a [u8], what: &'static str) -> Result<Self> {
        if bytes.starts_with(COMPOUND) {
            return Err(compound(bytes, what));
        }
        let broken = |error: rawzip::Error| {
            Error::new(Kind::BadContent, format!("{what} is not a ZIP file")).with_detail(format!("It says: {error}."))
        };
        let archive = ZipArchive::from_slice(bytes).map_err(broken)?;
        let mut members = HashMap::new();
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().map_err(broken)? {
            if members.len() >= MAX_MEMBERS {
                return Err(Error::new(Kind::LimitExceeded, format!("{what} has more than {MAX_MEMBERS} members")));
            }
            let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
            let member = Member {
                place: entry.wayfinder(),
                method: entry.compression_method(),
                encrypted: entry.flags().is_encrypted(),
            };
            // Of two members of one name the first is read, as by most readers.
            members.entry(name).or_insert(member);
        }
        Ok(Self { what, archive, members, left: MAX_UNPACKED })
    }

    /// The bytes of a member, if there is one of this name.
    pub fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        let what = self.what;
        let Some(member) = self.members.get(name).copied() else { return Ok(None) };
        if member.encrypted {
            return Err(Error::unsupported(format!("{what} is encrypted: member \"{name}\" needs a password")));
        }
        let broken = |why: String| {
            Error::new(Kind::BadContent, format!("{what} has a broken member \"{name}\""))
                .with_detail(format!("It says: {why}."))
        };
        let entry = self.archive.get_entry(member.place).map_err(|e| broken(e.to_string()))?;
        let packed = entry.data();
        let by_ratio = (1 << 20) + MAX_RATIO * packed.len() as u64;
        let limit = by_ratio.min(self.left);
        let mut out = Vec::new();
        let read = match member.method {
            CompressionMethod::STORE => entry.verifying_reader(packed).take(limit + 1).read_to_end(&mut out),
            CompressionMethod::DEFLATE => {
                entry.verifying_reader(DeflateDecoder::new(packed)).take(limit + 1).read_to_end(&mut out)
            }
            other => {
                let message = format!("{what} has member \"{name}\" packed by method {other:?}");
                return Err(Error::unsupported(message));
            }
        };
        if out.len() as u64 > limit {
            let bound = if by_ratio <= self.left {
                format!("more than {MAX_RATIO} times its size")
            } else {
                format!("more than {MAX_UNPACKED} bytes with what was read before")
            };
            return Err(Error::new(
                Kind::LimitExceeded,
                format!("{what} has member \"{name}\" that unpacks to {bound}"),
            ));
        }
        read.map_err(|e| broken(e.to_string()))?;
        self.left -= out.len() as u64;
        Ok(Some(out))
    }

    /// A member as XML, if there is one of this name.
    pub fn xml(&mut self, name: &str) -> Result<Option<xml::Tree>> {
        let what = self.what;
        let Some(bytes) = self.read(name)? else { return Ok(None) };
        let named = |error: Error| Error { message: format!("{what} member \"{name}\": {}", error.message), ..error };
        xml::parse(&bytes).map(Some).map_err(named)
    }

    /// A member as XML without which the package cannot be read.
    pub fn need(&mut self, name: &str) -> Result<xml::Tree> {
        let what = self.what;
        self.xml(name)?.ok_or_else(|| Error::new(Kind::BadContent, format!("{what} has no member \"{name}\"")))
    }
}

/// The error for a compound file; what is encrypted says so in its directory.
fn compound(bytes: &[u8], what: &'static str) -> Error {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    if memmem(bytes, &name) {
        return Error::unsupported(format!("{what} is encrypted with a password"))
            .with_hint("Save it without a password.");
    }
    Error::unsupported(format!("{what} is in the old binary format")).with_hint("Save it as .docx.")
}

fn memmem(bytes: &[u8], needle: &[u8]) -> bool {
    // Looked for where the directory of a compound file can be: in steps of its entries.
    bytes.chunks(128).any(|entry| entry.starts_with(needle))
}

/// Which format a package is, by what is in it.
pub fn format(content: &[u8]) -> Option<Format> {
    if !content.starts_with(b"PK\x03\x04") {
        return None;
    }
    if content.get(30..58) == Some(b"mimetypeapplication/epub+zip") {
        return Some(Format::Epub);
    }
    let package = Package::open(content, "file").ok()?;
    let word = package.members.keys().any(|name| name.starts_with("word/document"));
    (word && package.members.contains_key("[Content_Types].xml")).then_some(Format::Docx)
}

/// The name of a member that another one names relative to itself.
pub fn relative(base: &str, target: &str) -> String {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => base.split('/').collect(),
    };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_to_a_member() {
        for (base, target, name) in [
            ("OPS/book.opf", "a/b.xhtml#x", "OPS/a/b.xhtml"),
            ("OPS/book.opf", "../c.xhtml", "c.xhtml"),
            ("word/document.xml", "/word/styles.xml", "word/styles.xml"),
            ("book.opf", "../../../etc/passwd", "etc/passwd"),
            ("", "word/document.xml", "word/document.xml"),
        ] {
            assert_eq!(relative(base, target), name, "{base} {target}");
        }
    }

    #[test]
    fn what_is_no_package_says_what_it_is() {
        let message = |bytes: &[u8]| Package::open(bytes, "docx").err().map(|e| e.message).unwrap_or_default();
        assert_eq!(message(b"hello"), "docx is not a ZIP file");
        let mut old = COMPOUND.to_vec();
        old.resize(512, 0);
        assert_eq!(message(&old), "docx is in the old binary format");
        old.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(message(&old), "docx is encrypted with a password");
    }
}
