// SPDX-License-Identifier: PostgreSQL

//! A file, or the files of a folder, each of which is one document.

use super::confine::{Location, read_at_most};
use super::{Pages, Source, walk, within_limit};
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Failure, Item, Origin, Place, SourceSpec};
use std::path::{Component, Path};

/// Files of a source.
pub struct Files<'a> {
    spec: &'a SourceSpec,
    location: Location,
    rules: walk::Rules,
}

impl<'a> Files<'a> {
    /// The files at a location.
    pub fn new(spec: &'a SourceSpec, location: Location) -> Result<Self> {
        if !location.kind.is_file() && !location.kind.is_dir() {
            let message = format!("location \"{}\" is neither a file nor a folder", spec.location);
            return Err(Error::invalid(message));
        }
        Ok(Self { spec, location, rules: walk::Rules::new(spec.kind, &spec.options)? })
    }

    /// Reads the file at `path` (empty: the location itself); `uri` is for messages.
    fn bytes(&self, path: &str, uri: &str) -> Result<Vec<u8>> {
        let limits = &self.spec.options.limits;
        let (mut file, size) = self.location.file(Path::new(path)).map_err(|e| unreadable(uri, &e))?;
        within_limit(size, limits)?;
        let bytes = read_at_most(&mut file, size, limits.max_document_bytes).map_err(|e| unreadable(uri, &e))?;
        match bytes {
            Some(bytes) => Ok(bytes),
            // It grew while it was read.
            None => {
                within_limit(limits.max_document_bytes.saturating_add(1), limits)?;
                Ok(Vec::new())
            }
        }
    }

    fn item(&self, path: &str, uri: &str) -> std::result::Result<Item, Failure> {
        match self.bytes(path, uri) {
            Ok(bytes) => Ok(Item {
                uri: uri.to_owned(),
                content_sha256: ContentHash::of(&bytes),
                size: bytes.len() as u64,
                place: Place::File { path: path.to_owned() },
            }),
            Err(error) => Err(Failure { uri: uri.to_owned(), error }),
        }
    }
}

impl Source for Files<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        if self.location.kind.is_file() {
            return pages.push(self.item("", &self.location.name));
        }
        let seen = walk::walk(&self.location, &self.rules, &mut |found| match found {
            Ok(path) => pages.push(self.item(path, path)),
            Err(failure) => pages.push(Err(failure)),
        })?;
        pages.saw(seen);
        Ok(())
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let Place::File { path } = &item.place else {
            return Err(Error::internal(format!("item \"{}\" of a file source is no file", item.uri)));
        };
        if !Path::new(path).components().all(|c| matches!(c, Component::Normal(_))) {
            return Err(Error::new(Kind::Forbidden, format!("path \"{path}\" leads outside of its source")));
        }
        // The URI of a file is its path: relative to a folder, or the name of a single file.
        let origin = Origin { path: Some(item.uri.clone()), ..Origin::default() };
        Ok(Content { bytes: self.bytes(path, &item.uri)?, origin })
    }
}

/// The error for a file that cannot be read; a link that leads out is forbidden and not unreadable.
pub fn unreadable(uri: &str, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            Error::new(Kind::Forbidden, format!("\"{uri}\" is a link that leads outside of every allowed path"))
        }
        std::io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => {
            Error::unsupported(format!("\"{uri}\" is not a regular file"))
        }
        _ => Error::io(uri, error),
    }
}
