// SPDX-License-Identifier: PostgreSQL

//! What an archive is, and the one way through its members.
//!
//! Owns the decision which form some bytes have (their first bytes say it, whatever the name; a name counts only where an
//! empty tar looks like nothing) and hides the forms from who lists and reads. Must not decide what is a document.

use super::Member;
use super::stream::{Budget, Input, Stream, Trouble, trouble};
use super::tar::{self, BLOCK, Single, Tar};
use super::zip::{self, Zip};
use rag_core::error::{Error, Kind};
use std::io::{self, Read};
use std::rc::Rc;

/// First bytes of gzip, and of ZIP.
const GZIP: &[u8] = b"\x1F\x8B";
const ZIP: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Names of archives that are opened.
const NAMES: &[&str] = &[".zip", ".tar", ".tgz", ".gz"];

/// Names of a tar among them.
const TARS: &[&str] = &[".tar", ".tgz", ".tar.gz"];

/// First bytes of what people take for an archive and is none here.
const STRANGE: &[(&[u8], &str)] = &[
    (b"7z\xBC\xAF\x27\x1C", "7z"),
    (b"Rar!\x1A\x07", "RAR"),
    (b"\xFD7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
];

fn ends_with(name: &str, ends: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    ends.iter().any(|end| name.ends_with(end))
}

/// Whether a name is that of an archive.
pub fn is_archive_name(path: &str) -> bool {
    ends_with(path, NAMES)
}

/// Whether a file is an archive: by its name, or by how it begins.
pub fn is_archive(path: &str, head: &[u8]) -> bool {
    is_archive_name(path)
        || head.starts_with(GZIP)
        || ZIP.iter().any(|magic| head.starts_with(magic))
        || tar::is_header(head)
}

/// The members of an archive, one after the other.
#[derive(Debug)]
pub enum Members {
    /// Of a ZIP: in any order.
    Zip(Zip),
    /// Of a tar: from the first to the last.
    Tar(Tar),
    /// The one of a gzip file.
    Single(Single),
}

impl Members {
    /// Opens an archive; its name is that of its file.
    pub fn open(input: Input, name: &str, budget: &Rc<Budget>) -> Result<Self, Trouble> {
        let mut head = [0; BLOCK as usize];
        let length = input.head(&mut head).map_err(tar::broken)?;
        let head = &head[..length];
        if head.starts_with(GZIP) {
            let mut stream = Stream::gzip(input, Rc::clone(budget));
            let first = stream.look(BLOCK).map_err(tar::broken)?;
            let tar = tar::is_header(first) || (is_blank(first) && ends_with(name, TARS));
            return Ok(if tar {
                Self::Tar(Tar::new(stream, budget))
            } else {
                Self::Single(Single::new(stream, inner(name)))
            });
        }
        if tar::is_header(head) || (is_blank(head) && ends_with(name, TARS)) {
            return Ok(Self::Tar(Tar::new(Stream::plain(input, Rc::clone(budget)), budget)));
        }
        if let Some((_, strange)) = STRANGE.iter().find(|(magic, _)| head.starts_with(magic)) {
            let error = Error::new(Kind::Unsupported, format!("is packed by {strange}, which is not supported"));
            return Err(Trouble::Archive(error.with_hint("Pack it again as ZIP, tar or tar.gz.")));
        }
        // Anything may stand before a ZIP.
        Zip::open(input, budget).map(Self::Zip)
    }

    /// The next member.
    pub fn next(&mut self) -> Result<Option<Member>, Trouble> {
        match self {
            Self::Zip(zip) => Ok(zip.next()),
            Self::Tar(tar) => tar.next(),
            Self::Single(single) => Ok(single.next()),
        }
    }

    /// Whether a member can be reached without beginning again.
    pub fn is_ahead(&self, index: u64) -> bool {
        match self {
            Self::Zip(_) => true,
            Self::Tar(tar) => tar.is_ahead(index),
            Self::Single(single) => single.is_ahead(index),
        }
    }

    /// Goes to a member that is ahead; `None` when there is none.
    pub fn go_to(&mut self, index: u64) -> Result<Option<Member>, Trouble> {
        match self {
            Self::Zip(zip) => Ok(zip.go_to(index)),
            Self::Tar(tar) => tar.go_to(index),
            Self::Single(single) => Ok(single.next().filter(|member| member.index == index)),
        }
    }

    /// The bytes of the member that was last come to.
    pub fn content(&mut self, password: Option<&str>) -> Result<Box<dyn Read + '_>, Trouble> {
        match self {
            Self::Zip(zip) => zip.content(password),
            Self::Tar(tar) => Ok(Box::new(tar.content())),
            Self::Single(single) => Ok(Box::new(single.content())),
        }
    }

    /// What an error while reading the bytes of a member means: in a ZIP the others are sound, in a stream nothing more
    /// can be read.
    pub fn trouble(&self, error: io::Error) -> Trouble {
        match self {
            Self::Zip(_) => trouble(error, Trouble::Member, zip::damage),
            Self::Tar(_) | Self::Single(_) => tar::broken(error),
        }
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// The name of what `gzip` packed into a file of this name.
fn inner(name: &str) -> String {
    match name.len().checked_sub(".gz".len()) {
        Some(end @ 1..) if ends_with(name, &[".gz"]) => name[..end].to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_archives() {
        for (name, archive) in
            [("a.zip", true), ("A.TAR.GZ", true), ("a.tgz", true), ("a.md.gz", true), ("a.docx", false), ("zip", false)]
        {
            assert_eq!(is_archive_name(name), archive, "{name}");
        }
        assert_eq!(
            (inner("a.md.gz"), inner("a.GZ"), inner(".gz"), inner("é")),
            ("a.md".into(), "a".into(), ".gz".into(), "é".into())
        );
    }
}
