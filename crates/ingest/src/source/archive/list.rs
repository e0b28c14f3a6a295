// SPDX-License-Identifier: PostgreSQL

//! What one archive holds.
//!
//! Owns which members are documents, by these rules. Folders, hidden members (a part of the path begins with a dot) and
//! those of `__MACOSX` are left out, as in a folder, and so is what `glob` and `ignore` leave out. A member whose name is of a
//! known format is a document; any other is one when it looks like text, and is silently left out when it does not. An
//! archive in the archive is opened. Of two members of one name the last counts, as when they are unpacked. A link and what lies
//! beneath one are never read.
//!
//! What is wrong with one member is its failure and nobody else's. The findings are kept until the whole archive was seen,
//! because only then is it known that there is no later member of the same name.

use super::form::{Members, is_archive_name};
use super::stream::{Budget, Input, Trouble};
use super::{INSIDE, Member, What, named};
use crate::format::{Format, HEAD};
use crate::source::walk::Rules;
use rag_core::error::{Error, Kind};
use rag_core::provenance::ContentHash;
use rag_core::source::{Failure, Item, Place};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io::{Cursor, Read};
use std::path::Path;
use std::rc::Rc;

/// A document, or why it is none.
pub type Found = Result<Item, Failure>;

/// Lists one outermost archive.
pub struct Listing<'a> {
    /// Which members to take.
    pub rules: &'a Rules,
    /// Password of encrypted members.
    pub password: Option<&'a str>,
    /// What may be read.
    pub budget: Rc<Budget>,
    /// Path of the archive within the source, empty if it is the source.
    pub archive: &'a str,
    /// What its members' URIs begin with.
    pub name: &'a str,
    /// How many members were come to that are no folders, those of archives inside of it included.
    pub seen: Cell<u64>,
}

/// An archive on the way to the innermost.
#[derive(Clone, Copy)]
pub struct Level<'a> {
    /// What the paths of its members begin with.
    pub within: &'a str,
    /// Where it is.
    pub chain: &'a [u64],
}

impl Listing<'_> {
    /// Everything that is in an archive, in its order.
    pub fn list(&self, members: &mut Members, level: Level<'_>) -> Result<Vec<Found>, Trouble> {
        let mut units = Units::default();
        let mut last = None;
        loop {
            let member = members.next().map_err(|trouble| after(trouble, last.as_deref()))?;
            let Some(member) = member else { break };
            self.seen.update(|seen| seen + u64::from(member.what != What::Folder));
            let (path, literal, fault) = match &member.name {
                Ok(name) => (&name.path, name.literal.as_ref(), None),
                Err((shown, error)) => (shown, None, Some(error)),
            };
            let path = format!("{}{path}", level.within);
            let literal = literal.map(|literal| format!("{}{literal}", level.within));
            let found = match fault {
                Some(error) if member.what != What::Folder => Some(vec![self.failed(&path, error.clone())]),
                Some(_) => None,
                None => {
                    units.note(&path, member.what);
                    self.member(members, &member, &path, level.chain).map_err(|trouble| after(trouble, Some(&path)))?
                }
            };
            units.put(&path, literal, found, |path| self.uri(path));
            last = Some(path);
        }
        Ok(units.finish(|path| {
            self.failed(path, Error::new(Kind::Forbidden, "lies beneath a link; links are not followed"))
        }))
    }

    /// What a member comes to; `None` when it is nothing that anybody wants.
    fn member(
        &self,
        members: &mut Members,
        member: &Member,
        path: &str,
        chain: &[u64],
    ) -> Result<Option<Vec<Found>>, Trouble> {
        if member.what == What::Folder || is_hidden(path) || self.rules.leave_out(Path::new(path)) {
            return Ok(None);
        }
        let known = Format::of_name(path).is_some();
        let nested = is_archive_name(path);
        if !nested && !self.rules.allow(Path::new(path)) {
            return Ok(None);
        }
        let unfit = match member.what {
            What::File | What::Folder => None,
            What::Link => Some("is a symbolic link; links are not followed"),
            What::HardLink => Some("is a hard link; links are not followed"),
            What::Sparse => Some("is a file with holes, which is not supported"),
            What::Special => Some("is a device, a pipe or a socket"),
        };
        if let Some(why) = unfit {
            // Links to libraries and folders are nothing that anybody misses.
            return Ok(known.then(|| vec![self.failed(path, Error::new(Kind::Unsupported, why))]));
        }
        let bytes = match self.bytes(members, member, known || nested) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(Trouble::Member(error)) => return Ok(Some(vec![self.failed(path, error)])),
            Err(other) => return Err(other),
        };
        let chain = [chain, &[member.index]].concat();
        if nested {
            return self.nested(bytes, path, &chain).map(Some);
        }
        Ok(Some(vec![Ok(Item {
            uri: self.uri(path),
            content_sha256: ContentHash::of(&bytes),
            size: bytes.len() as u64,
            place: Place::Member { archive: self.archive.to_owned(), chain },
        })]))
    }

    /// The bytes of a member, or `None` when they are not wanted: only those of a name that says nothing need to look like
    /// text.
    fn bytes(&self, members: &mut Members, member: &Member, wanted: bool) -> Result<Option<Vec<u8>>, Trouble> {
        let limits = self.budget.limits();
        if wanted {
            self.fits(member)?;
        }
        let mut bytes = Vec::new();
        let mut content = members.content(self.password)?;
        let looked = content.by_ref().take(HEAD as u64).read_to_end(&mut bytes);
        let rest = looked.and_then(|_| {
            if !wanted && !Format::looks_like_text(&bytes) {
                return Ok(None);
            }
            if self.fits(member).is_err() {
                return Ok(Some(()));
            }
            let most = (limits.max_document_bytes + 1).saturating_sub(bytes.len() as u64);
            content.take(most).read_to_end(&mut bytes).map(|_| Some(()))
        });
        match rest {
            Ok(None) => Ok(None),
            Ok(Some(())) => {
                self.fits(member)?;
                match bytes.len() as u64 {
                    size if size > limits.max_document_bytes => Err(Trouble::Member(self.too_large(None))),
                    _ => Ok(Some(bytes)),
                }
            }
            Err(error) => Err(members.trouble(error)),
        }
    }

    /// Whether a member may be read, by what is said of it.
    fn fits(&self, member: &Member) -> Result<(), Trouble> {
        let Some(size) = member.size else { return Ok(()) };
        if size > self.budget.limits().max_document_bytes {
            return Err(Trouble::Member(self.too_large(Some(size))));
        }
        match member.packed {
            Some(packed) => self.budget.check_ratio(packed, size).map_err(Trouble::Member),
            None => Ok(()),
        }
    }

    fn too_large(&self, size: Option<u64>) -> Error {
        let max = self.budget.limits().max_document_bytes;
        let message = match size {
            Some(size) => format!("has {size} bytes, more than max_document_bytes {max}"),
            None => format!("has more than max_document_bytes {max} bytes"),
        };
        Error::new(Kind::LimitExceeded, message)
            .with_hint("Raise it in the source's options: {\"limits\": {\"max_document_bytes\": ...}}.")
    }

    /// What is in an archive in an archive.
    fn nested(&self, bytes: Vec<u8>, path: &str, chain: &[u64]) -> Result<Vec<Found>, Trouble> {
        let max = self.budget.limits().max_depth;
        // The outermost archive is in no other.
        if chain.len() > max as usize {
            let error = Error::new(Kind::LimitExceeded, format!("is an archive beneath max_depth {max} others"))
                .with_hint("Raise it in the source's options: {\"limits\": {\"max_depth\": ...}}.");
            return Ok(vec![self.failed(path, error)]);
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let within = format!("{path}{INSIDE}");
        let level = Level { within: &within, chain };
        let found = Members::open(Input::Memory(Cursor::new(bytes)), name, &self.budget)
            .and_then(|mut members| self.list(&mut members, level));
        match found {
            Err(Trouble::Archive(error) | Trouble::Member(error)) => Ok(vec![self.failed(path, error)]),
            other => other,
        }
    }

    fn uri(&self, path: &str) -> String {
        format!("{}{INSIDE}{path}", self.name)
    }

    fn failed(&self, path: &str, error: Error) -> Found {
        Err(Failure { uri: self.uri(path), error: named("member", path, error) })
    }
}

/// Where in the archive it was that nothing more could be read.
fn after(trouble: Trouble, last: Option<&str>) -> Trouble {
    let detail = |error: Error| match last {
        Some(path) if error.detail.is_none() => {
            error.with_detail(format!("It was at the member \"{path}\" or after it."))
        }
        _ => error,
    };
    match trouble {
        Trouble::Member(error) => Trouble::Member(error),
        Trouble::Archive(error) => Trouble::Archive(detail(error)),
        Trouble::Limit(error) => Trouble::Limit(detail(error)),
    }
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') || part == "__MACOSX")
}

/// What a member came to.
struct Unit {
    path: String,
    /// The path by which it goes when another member has its own, where that was guessed.
    literal: Option<String>,
    found: Vec<Found>,
}

/// What was found by each path.
#[derive(Default)]
struct Units {
    units: Vec<Unit>,
    by_path: HashMap<String, usize>,
    links: HashSet<String>,
}

impl Units {
    /// Remembers which names are links.
    fn note(&mut self, path: &str, what: What) {
        if matches!(what, What::Link | What::HardLink) {
            self.links.insert(path.to_owned());
        } else {
            self.links.remove(path);
        }
    }

    /// Puts what a member came to in the place of earlier ones of its name. Names that are only alike because one of them was
    /// guessed are none: that one goes by its bytes.
    fn put(&mut self, path: &str, literal: Option<String>, found: Option<Vec<Found>>, uri: impl Fn(&str) -> String) {
        let mut unit = Unit { path: path.to_owned(), literal, found: found.unwrap_or_default() };
        if let Some(at) = self.by_path.remove(path) {
            let earlier = &mut self.units[at];
            match (&earlier.literal, &unit.literal) {
                (a, b) if a == b => earlier.found.clear(),
                (Some(_), _) => {
                    earlier.rename(&uri);
                    self.by_path.insert(earlier.path.clone(), at);
                }
                (None, _) => {
                    self.by_path.insert(path.to_owned(), at);
                    unit.rename(&uri);
                    if let Some(at) = self.by_path.remove(&unit.path) {
                        self.units[at].found.clear();
                    }
                }
            }
        }
        if !unit.found.is_empty() {
            self.by_path.insert(unit.path.clone(), self.units.len());
            self.units.push(unit);
        }
    }

    fn finish(self, beneath_link: impl Fn(&str) -> Found) -> Vec<Found> {
        let Self { units, links, .. } = self;
        let linked = |path: &str| path.match_indices('/').any(|(at, _)| links.contains(&path[..at]));
        let pick = |unit: Unit| match !unit.found.is_empty() && !links.is_empty() && linked(&unit.path) {
            true => vec![beneath_link(&unit.path)],
            false => unit.found,
        };
        units.into_iter().flat_map(pick).collect()
    }
}

impl Unit {
    /// Goes by its bytes from now on.
    fn rename(&mut self, uri: &impl Fn(&str) -> String) {
        let Some(literal) = self.literal.take() else { return };
        let (old, new) = (uri(&self.path), uri(&literal));
        for found in &mut self.found {
            let name = match found {
                Ok(item) => &mut item.uri,
                Err(failure) => &mut failure.uri,
            };
            if let Some(rest) = name.strip_prefix(&old) {
                *name = format!("{new}{rest}");
            }
        }
        self.path = literal;
    }
}
