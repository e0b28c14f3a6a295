// SPDX-License-Identifier: PostgreSQL

//! Archives: a ZIP, a tar, a tar.gz or a gz, each of whose members is a document; or a folder of them.
//!
//! ```text
//!  location ─ form (which kind of archive) ─ zip | tar ─ stream (unpacking, counted) ─ name (a path, or why not)
//!                     └─ list: what it holds, archives inside of it included          └─ open: one member again
//! ```
//!
//! The URI of a member is the archive's name (in a folder: its path), `!/`, and the path of the member; an archive
//! in an archive adds its own path and `!/`: `docs.zip!/old/v1.zip!/guide.md`. What follows the first `!/` is the document's
//! path. Nothing is ever written to a disk, and no path of an archive is ever opened. Unpacking happens where the file may be
//! opened, because the packed bytes of one member cannot be told apart from the others' without it; what is unpacked is
//! not looked into, but for its first bytes, to leave out what is no text.
//!
//! A member that cannot be had is a failure, and the others are listed. An archive that cannot be read to its end is a
//! failure as a whole: of the source if it is the source, of itself in a folder or in another archive.

mod form;
mod list;
mod name;
mod open;
mod stream;
mod tar;
mod zip;

pub use form::{is_archive, is_archive_name};

use super::confine::Location;
use super::file::unreadable;
use super::{Pages, Source, walk, within_limit};
use form::Members;
use list::{Level, Listing};
use name::Name;
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Failure, Item, Origin, Place, SourceOptions, SourceSpec};
use std::cell::Cell;
use std::fs::File;
use std::path::{Component, Path};
use stream::{Budget, Input};

/// What stands between an archive and the path inside of it.
pub const INSIDE: &str = "!/";

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    File,
    /// A folder, or a header that is about other members.
    Folder,
    Link,
    HardLink,
    /// A file with holes.
    Sparse,
    Special,
}

/// A member that was come to.
#[derive(Debug)]
struct Member {
    /// Its place among the others.
    index: u64,
    /// Its name; or what to call it, and what is wrong with its name.
    name: std::result::Result<Name, (String, Error)>,
    what: What,
    /// How many bytes it says that it has.
    size: Option<u64>,
    /// How many bytes of the archive they take, where that is known.
    packed: Option<u64>,
}

/// Says what an error is about; its message is what is to be said of it.
fn named(what: &str, name: &str, error: Error) -> Error {
    Error { message: format!("{what} \"{name}\" {}", error.message), ..error }
}

/// Archives of a source.
pub struct Archives<'a> {
    spec: &'a SourceSpec,
    location: Location,
    /// Which members to take.
    rules: walk::Rules,
}

impl<'a> Archives<'a> {
    /// The archive, or the archives of the folder, at a location.
    pub fn new(spec: &'a SourceSpec, location: Location) -> Result<Self> {
        if !location.kind.is_file() && !location.kind.is_dir() {
            let message = format!("location \"{}\" is neither a file nor a folder", spec.location);
            return Err(Error::invalid(message));
        }
        Ok(Self { spec, location, rules: walk::Rules::new(spec.kind, &spec.options)? })
    }

    fn file(&self, path: &str, name: &str) -> Result<File> {
        let (file, _) = self.location.file(Path::new(path)).map_err(|e| unreadable(name, &e))?;
        Ok(file.into_std())
    }

    /// Lists everything in the archive at `path` (empty: the location itself).
    fn one(&self, path: &str, name: &str, pages: &mut Pages<'_, '_>) -> Result<Vec<list::Found>> {
        let file = self.file(path, name)?;
        let options = &self.spec.options;
        let budget = Budget::new(&options.limits);
        let listing = Listing {
            rules: &self.rules,
            password: options.password.as_ref().map(rag_core::source::Secret::reveal),
            budget: budget.clone(),
            archive: path,
            name,
            seen: Cell::new(0),
        };
        let base = name.rsplit('/').next().unwrap_or(name);
        let found = Members::open(Input::File(file), base, &budget)
            .and_then(|mut members| listing.list(&mut members, Level { within: "", chain: &[] }))
            .map_err(|trouble| named("archive", name, trouble.into_error()));
        pages.saw(listing.seen.get());
        found
    }
}

impl Source for Archives<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        if self.location.kind.is_file() {
            let found = self.one("", &self.location.name, pages)?;
            return found.into_iter().try_for_each(|found| pages.push(found));
        }
        // `glob` and `ignore` are about members; a folder's archives are known by their names.
        let usual = SourceOptions { glob: Vec::new(), ignore: Vec::new(), ..self.spec.options.clone() };
        let archives = walk::Rules::new(self.spec.kind, &usual)?;
        let seen = walk::walk(&self.location, &archives, &mut |found| match found {
            Ok(path) => match self.one(path, path, pages) {
                Ok(found) => found.into_iter().try_for_each(|found| pages.push(found)),
                Err(error) => pages.push(Err(Failure { uri: path.to_owned(), error })),
            },
            Err(failure) => pages.push(Err(failure)),
        })?;
        pages.saw(seen);
        Ok(())
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let Place::Member { archive, chain } = &item.place else {
            return Err(Error::internal(format!("item \"{}\" of an archive is no member", item.uri)));
        };
        if !Path::new(archive).components().all(|c| matches!(c, Component::Normal(_))) {
            return Err(Error::new(Kind::Forbidden, format!("path \"{archive}\" leads outside of its source")));
        }
        within_limit(item.size, &self.spec.options.limits)?;
        let name = if archive.is_empty() { &self.location.name } else { archive };
        let file = self.file(archive, name)?;
        let base = name.rsplit('/').next().unwrap_or(name);
        let read = open::read(file, base, chain, &self.spec.options);
        match read {
            Ok(Some(bytes)) if ContentHash::of(&bytes) == item.content_sha256 => {
                // The URI of a member of a folder's archive begins with the archive.
                let path = item.uri.split_once(INSIDE).map_or(item.uri.as_str(), |(_, path)| path).to_owned();
                Ok(Content { bytes, origin: Origin { path: Some(path), ..Origin::default() } })
            }
            Err(trouble) => Err(named("archive of", &item.uri, trouble.into_error())),
            _ => {
                let message = format!("\"{}\" changed since it was listed", item.uri);
                Err(Error::new(Kind::Io, message).with_hint("Run the sync again."))
            }
        }
    }
}
