// SPDX-License-Identifier: PostgreSQL

//! Confinement: nothing is opened that is not beneath an allowed path.
//!
//! A location is accepted when its canonical path lies beneath the canonical path of an allowed root. After that every
//! file is opened by a path relative to a handle of that root, beneath which the kernel resolves it (`openat2` through
//! cap-std): a link that is swapped in after the check still cannot lead out. A link whose target is absolute or
//! beneath another allowed root is resolved once and opened the same way. Files are opened without blocking and must turn out
//! to be regular, so neither a FIFO nor a device can hold a worker.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, Metadata, OpenOptions, OpenOptionsExt};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::{SourceSpec, not_allowed};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// An allowed root.
struct Root {
    path: PathBuf,
    dir: Dir,
}

/// An opened location.
pub struct Location {
    roots: Vec<Root>,
    /// Canonical absolute path.
    path: PathBuf,
    /// Last component as the user wrote it.
    pub name: String,
    /// The location as the user wrote it.
    pub given: String,
    /// What it is.
    pub kind: FileType,
}

impl Location {
    /// Checks and opens the location of a source.
    pub fn open(spec: &SourceSpec) -> Result<Self> {
        let given = spec.location.as_str();
        let written = Path::new(given);
        if !written.is_absolute() || given.contains('\0') {
            return Err(Error::invalid(format!("location \"{given}\" is not an absolute path"))
                .with_hint("Write the whole path, beginning with \"/\"."));
        }
        // A root that does not exist allows nothing; that is no reason to refuse the others.
        let roots: Vec<PathBuf> = spec.allowed_paths.iter().filter_map(|p| Path::new(p).canonicalize().ok()).collect();
        let path = match written.canonicalize() {
            Ok(path) => path,
            Err(error) => return Err(missing(given, &spec.allowed_paths, &roots, &error)),
        };
        // The widest root first: a link may lead anywhere beneath it.
        let mut opened: Vec<PathBuf> = roots;
        opened.sort();
        opened.dedup();
        if !opened.iter().any(|root| path.starts_with(root)) {
            return Err(not_allowed(given));
        }
        let roots: Vec<Root> = opened
            .into_iter()
            .filter_map(|path| Dir::open_ambient_dir(&path, ambient_authority()).ok().map(|dir| Root { path, dir }))
            .collect();
        let name = written.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let mut location = Self { roots, path, name, given: given.to_owned(), kind: FileType::dir() };
        location.kind = location.metadata(Path::new("")).map_err(|e| Error::io(given, &e))?.file_type();
        Ok(location)
    }

    /// Its canonical path, for what can only open by name.
    pub fn canonical(&self) -> &Path {
        &self.path
    }

    /// What is at `relative`, links followed.
    pub fn metadata(&self, relative: &Path) -> io::Result<Metadata> {
        self.resolve(relative, |dir, path| dir.metadata(path))
    }

    /// The folder at `relative`.
    pub fn folder(&self, relative: &Path) -> io::Result<Dir> {
        self.resolve(relative, |dir, path| dir.open_dir(path))
    }

    /// The regular file at `relative`; anything else is an error.
    pub fn file(&self, relative: &Path) -> io::Result<(File, u64)> {
        // Opening a device can have effects of its own, so look before.
        regular(&self.metadata(relative)?)?;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = self.resolve(relative, |dir, path| dir.open_with(path, &options))?;
        let metadata = file.metadata()?;
        regular(&metadata)?;
        Ok((file, metadata.len()))
    }

    /// Runs `open` on the root that holds the location, and once more on whichever root a link leads to.
    fn resolve<T>(&self, relative: &Path, open: impl Fn(&Dir, &Path) -> io::Result<T>) -> io::Result<T> {
        let whole = if relative.as_os_str().is_empty() { self.path.clone() } else { self.path.join(relative) };
        match self.beneath(&whole, &open) {
            // Only an attempt to leave the root has no number of the operating system.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() => {
                match whole.canonicalize() {
                    Ok(target) => self.beneath(&target, &open),
                    Err(_) => Err(error),
                }
            }
            other => other,
        }
    }

    fn beneath<T>(&self, whole: &Path, open: &impl Fn(&Dir, &Path) -> io::Result<T>) -> io::Result<T> {
        for root in &self.roots {
            if let Ok(rest) = whole.strip_prefix(&root.path) {
                return open(&root.dir, if rest.as_os_str().is_empty() { Path::new(".") } else { rest });
            }
        }
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "it leads outside of every allowed path"))
    }
}

fn regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// The error for a location that cannot be resolved; existence outside of the roots is not told. A root that does not exist
/// itself is one all the same: whoever allowed it must not be told to allow it.
fn missing(given: &str, allowed: &[String], roots: &[PathBuf], error: &io::Error) -> Error {
    let path = Path::new(given);
    let climbs = path.components().any(|c| c == Component::ParentDir);
    let ancestor = path.ancestors().find_map(|a| a.canonicalize().ok());
    let beneath = |a: PathBuf| roots.iter().any(|root| a.starts_with(root));
    if climbs || !(ancestor.is_some_and(beneath) || allowed.iter().any(|root| path.starts_with(root))) {
        return not_allowed(given);
    }
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(Kind::FileMissing, format!("location \"{given}\" does not exist")),
        _ => Error::io(given, error),
    }
}

/// Reads a file that is at most `max` bytes long, whatever its metadata said; `None` when it is longer.
pub fn read_at_most(file: &mut impl Read, expected: u64, max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(expected.min(max) as usize);
    let read = file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((read as u64 <= max).then_some(bytes))
}
