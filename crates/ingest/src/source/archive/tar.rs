// SPDX-License-Identifier: PostgreSQL

//! The members of a tar, packed or not, and the one member of a gzip file.
//!
//! Owns the way through what can only be read from its beginning to its end. It stops at each member and can go on later, so
//! that members which are read in order are unpacked once; whoever wants an earlier one begins again. The crate `tar` knows
//! headers and their extensions, but its iterator cannot be kept beside its archive: each step gives it the stream at the
//! beginning of a header, takes one member, and counts the bytes up to the next header itself.

use super::name::{self, Style};
use super::stream::{Bounded, Budget, Stream, Trouble, trouble};
use super::zip::damage;
use super::{Member, What};
use std::io::{self, Read};
use std::rc::Rc;
use tar::{Archive, EntryType, Header};

/// Bytes of a block.
pub const BLOCK: u64 = 512;

/// Bytes that a header may have with all its extensions.
const MAX_HEADER: u64 = 1 << 20;

/// A tar.
#[derive(Debug)]
pub struct Tar {
    stream: Stream,
    budget: Rc<Budget>,
    next: u64,
    /// Bytes of the last member that were not read yet, and those that fill up its last block.
    left: u64,
    padding: u64,
    ended: bool,
}

impl Tar {
    /// A tar at its beginning.
    pub fn new(stream: Stream, budget: &Rc<Budget>) -> Self {
        Self { stream, budget: Rc::clone(budget), next: 0, left: 0, padding: 0, ended: false }
    }

    /// The next member; after the last one, whatever is packed was checked to its end.
    pub fn next(&mut self) -> Result<Option<Member>, Trouble> {
        let next = self.step().map_err(broken)?;
        if next.is_some() {
            self.budget.count_entries(1)?;
        }
        Ok(next)
    }

    fn step(&mut self) -> io::Result<Option<Member>> {
        if self.ended {
            return Ok(None);
        }
        self.stream.skip(self.left + self.padding)?;
        (self.left, self.padding) = (0, 0);
        let mut bounded = Bounded { inner: &mut self.stream, left: MAX_HEADER, what: "a header" };
        let mut archive = Archive::new(&mut bounded);
        let Some(entry) = archive.entries()?.next() else {
            self.ended = true;
            self.stream.finish()?;
            return Ok(None);
        };
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let stored = if kind.is_gnu_sparse() { entry.header().entry_size()? } else { entry.size() };
        let raw = entry.path_bytes().into_owned();
        let what = match kind {
            EntryType::Regular | EntryType::Continuous if is_sparse(&mut entry)? => What::Sparse,
            EntryType::Regular | EntryType::Continuous if raw.ends_with(b"/") => What::Folder,
            EntryType::Regular | EntryType::Continuous => What::File,
            EntryType::GNUSparse => What::Sparse,
            EntryType::Directory => What::Folder,
            EntryType::Symlink => What::Link,
            EntryType::Link => What::HardLink,
            // Headers about other members, such as the one with which git begins.
            EntryType::XGlobalHeader | EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink => {
                What::Folder
            }
            _ => What::Special,
        };
        self.left = stored;
        self.padding = stored.next_multiple_of(BLOCK) - stored;
        let index = self.next;
        self.next += 1;
        Ok(Some(Member { index, name: name::read(&raw, Style::default()), what, size: Some(stored), packed: None }))
    }

    /// Whether a member is still to come.
    pub fn is_ahead(&self, index: u64) -> bool {
        index >= self.next
    }

    /// Goes on to a member.
    pub fn go_to(&mut self, index: u64) -> Result<Option<Member>, Trouble> {
        loop {
            match self.next()? {
                Some(member) if member.index < index => {}
                other => return Ok(other.filter(|member| member.index == index)),
            }
        }
    }

    /// The bytes of the member that was last come to, as far as they were not read yet.
    pub fn content(&mut self) -> impl Read + '_ {
        Content(self)
    }
}

/// Whether one of the ways of POSIX headers says that there are holes, for which the bytes need unfolding.
fn is_sparse<R: Read>(entry: &mut tar::Entry<'_, R>) -> io::Result<bool> {
    let Some(extensions) = entry.pax_extensions()? else { return Ok(false) };
    Ok(extensions.flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse.")))
}

/// What of a member was not read yet.
struct Content<'a>(&'a mut Tar);

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.0.left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        match self.0.stream.read(&mut buffer[..most])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.0.left -= read as u64;
                Ok(read)
            }
        }
    }
}

/// Nothing after such an error can be read.
pub fn broken(error: io::Error) -> Trouble {
    trouble(error, Trouble::Archive, damage)
}

/// Whether a block is the header of a tar, by its checksum.
pub fn is_header(block: &[u8]) -> bool {
    let Some(bytes) = block.first_chunk::<{ BLOCK as usize }>() else { return false };
    let sum: u32 = bytes[..148].iter().chain(&bytes[156..]).map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
    bytes[0] != 0 && Header::from_byte_slice(bytes).cksum().is_ok_and(|said| said == sum)
}

/// A gzip file of one member.
#[derive(Debug)]
pub struct Single {
    stream: Stream,
    name: String,
    taken: bool,
}

impl Single {
    /// The member that becomes `name`.
    pub fn new(stream: Stream, name: String) -> Self {
        Self { stream, name, taken: false }
    }

    /// The member, once.
    pub fn next(&mut self) -> Option<Member> {
        let name = name::read(self.name.as_bytes(), Style::default());
        let member = Member { index: 0, name, what: What::File, size: None, packed: None };
        (!std::mem::replace(&mut self.taken, true)).then_some(member)
    }

    /// Whether it was not taken yet.
    pub fn is_ahead(&self, index: u64) -> bool {
        index == 0 && !self.taken
    }

    /// Its bytes.
    pub fn content(&mut self) -> impl Read + '_ {
        &mut self.stream
    }
}
