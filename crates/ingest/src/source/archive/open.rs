// SPDX-License-Identifier: PostgreSQL

//! The archive that was read last, still open.
//!
//! Owns the way to one member, and the one archive that is kept between two readings. A sync reads members one by one, in the
//! order of their listing. To find each from the beginning would unpack a tar.gz of n members n times, and read the directory
//! of a ZIP as often; kept open, each of them is unpacked once. The state is this thread's, since a reading is a function
//! of a source and an item and not of an object that somebody holds; a worker has one thread.
//!
//! What is kept is bounded: one archive, and the archives inside of it that lead to the last member, each no larger than a
//! document may be. It is used again only for the same file, by device, inode, size and time of change, under the same options;
//! the location was checked before. Should a file change without any of these, the hash of the member tells.

use super::form::Members;
use super::stream::{Budget, Input, Trouble};
use rag_core::error::{Error, Kind};
use rag_core::source::{Limits, SourceOptions};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

thread_local! {
    static LAST: RefCell<Option<Open>> = const { RefCell::new(None) };
}

/// What must be the same for an open archive to be used again.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    name: String,
    limits: Limits,
}

impl Key {
    fn new(file: &File, name: &str, limits: &Limits) -> io::Result<Self> {
        let m = file.metadata()?;
        Ok(Self {
            device: m.dev(),
            inode: m.ino(),
            size: m.size(),
            modified: (m.mtime(), m.mtime_nsec()),
            changed: (m.ctime(), m.ctime_nsec()),
            name: name.to_owned(),
            limits: limits.clone(),
        })
    }
}

/// An archive, and those inside of it on the way to the last member.
#[derive(Debug)]
struct Open {
    key: Key,
    budget: Rc<Budget>,
    /// Which member of the level above each is; that of the first means nothing.
    levels: Vec<(u64, Members)>,
}

/// The bytes of the member at `chain` in an archive; `None` when there is none.
pub fn read(file: File, name: &str, chain: &[u64], options: &SourceOptions) -> Result<Option<Vec<u8>>, Trouble> {
    let unreadable = |e: io::Error| Trouble::Archive(Error::new(Kind::Io, format!("could not be read: {e}")));
    let key = Key::new(&file, name, &options.limits).map_err(unreadable)?;
    let kept = LAST.take().filter(|open| open.key == key);
    let mut open = kept.unwrap_or_else(|| Open { key, budget: Budget::new(&options.limits), levels: Vec::new() });
    let read = open.member(file, chain, options.password.as_ref().map(rag_core::source::Secret::reveal));
    // After an error nobody knows where a stream stands.
    if read.is_ok() {
        LAST.set(Some(open));
    }
    read
}

impl Open {
    fn member(&mut self, file: File, chain: &[u64], password: Option<&str>) -> Result<Option<Vec<u8>>, Trouble> {
        self.budget.reset();
        let same = self.levels.iter().skip(1).zip(chain).take_while(|((from, _), index)| from == *index).count();
        self.levels.truncate(chain.len().min(same + 1));
        // A level whose stream is past what is wanted begins again, and so does what leads to it.
        while let Some((_, members)) = self.levels.last() {
            if chain.get(self.levels.len() - 1).is_some_and(|index| members.is_ahead(*index)) {
                break;
            }
            self.levels.pop();
        }
        if self.levels.is_empty() {
            self.levels.push((0, Members::open(Input::File(file), &self.key.name, &self.budget)?));
        }
        loop {
            let depth = self.levels.len();
            let (Some(index), Some((_, members))) = (chain.get(depth - 1), self.levels.last_mut()) else {
                return Ok(None);
            };
            let Some(member) = members.go_to(*index)? else { return Ok(None) };
            let mut bytes = Vec::new();
            let max = self.key.limits.max_document_bytes;
            let read = members.content(password)?.take(max.saturating_add(1)).read_to_end(&mut bytes);
            read.map_err(|error| members.trouble(error))?;
            if bytes.len() as u64 > max {
                return Ok(None);
            }
            if depth == chain.len() {
                return Ok(Some(bytes));
            }
            let path = member.name.map_or_else(|(shown, _)| shown, |name| name.path);
            let name = path.rsplit('/').next().unwrap_or(&path);
            match Members::open(Input::Memory(Cursor::new(bytes)), name, &self.budget) {
                Ok(inner) => self.levels.push((*index, inner)),
                // It was an archive when it was listed.
                Err(Trouble::Archive(_)) => return Ok(None),
                Err(other) => return Err(other),
            }
        }
    }
}
