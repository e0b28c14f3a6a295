// SPDX-License-Identifier: PostgreSQL

//! Walking a folder: which files of it are documents, in one fixed order.
//!
//! The order is that of the names' bytes, folder by folder, so two listings of the same files are equal. Hidden entries
//! are skipped. `.gitignore` files at and beneath the location are honoured, whether or not there is a repository;
//! their patterns are matched by the `ignore` crate, while the walk is our own, because that crate opens paths by name and
//! would follow what is swapped in meanwhile. Links to files are followed within the allowed paths; links to folders are not, as in
//! git: their target is listed where it really is, and no loop can arise.

use super::archive;
use super::confine::{Location, read_at_most};
use crate::format::Format;
use globset::{GlobSet, GlobSetBuilder};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::{Failure, SourceKind, SourceOptions, file_glob};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of a `.gitignore` that are read; git itself has no bound.
const MAX_GITIGNORE: u64 = 1 << 20;

/// Which files to take.
pub struct Rules {
    kind: SourceKind,
    /// What the options name; `None` for what is usual.
    named: Option<GlobSet>,
    leave: Gitignore,
}

impl Rules {
    /// The rules of a source's options.
    ///
    /// `ignore` has the syntax of `.gitignore`.
    pub fn new(kind: SourceKind, options: &SourceOptions) -> Result<Self> {
        let mut take = GlobSetBuilder::new();
        for glob in &options.glob {
            take.add(file_glob(glob)?);
        }
        let mut leave = GitignoreBuilder::new("");
        for glob in &options.ignore {
            leave.add_line(None, glob).map_err(|e| bad_glob("ignore", glob, &e.to_string()))?;
        }
        Ok(Self {
            kind,
            named: (!options.glob.is_empty())
                .then(|| take.build().map_err(|e| bad_glob("glob", &options.glob.join(", "), &e.to_string())))
                .transpose()?,
            leave: leave.build().map_err(|e| bad_glob("ignore", &options.ignore.join(", "), &e.to_string()))?,
        })
    }
}

impl Rules {
    /// Whether the options leave an entry out.
    pub fn leaves(&self, path: &Path, folder: bool) -> bool {
        self.leave.matched(path, folder).is_ignore()
    }

    /// Whether the options leave a file in that was not reached by walking; those above it count too.
    pub fn allow(&self, path: &Path) -> bool {
        self.named.as_ref().is_none_or(|globs| globs.is_match(path)) && !self.leave_out(path)
    }

    /// Whether `ignore` leaves out a file or a folder above it.
    pub fn leave_out(&self, path: &Path) -> bool {
        path.ancestors()
            .filter(|above| !above.as_os_str().is_empty())
            .enumerate()
            .any(|(up, above)| self.leaves(above, up > 0))
    }

    /// Whether a file is taken for its name.
    pub fn takes(&self, path: &Path) -> bool {
        match &self.named {
            Some(globs) => globs.is_match(path),
            None if self.kind == SourceKind::Zip => archive::is_archive_name(&path.to_string_lossy()),
            None => Format::of_name(&path.to_string_lossy()).is_some_and(|format| format.is_of(self.kind)),
        }
    }
}

fn bad_glob(option: &str, glob: &str, why: &str) -> Error {
    Error::invalid(format!("option \"{option}\" has the bad pattern \"{glob}\""))
        .with_detail(format!("It says: {why}."))
}

/// A folder being walked.
struct Level {
    /// Relative to the location.
    path: PathBuf,
    rules: Gitignore,
    /// How many of its entries are no folders, hidden ones included.
    files: u64,
    /// Entries still to visit, last first.
    entries: Vec<(OsString, bool)>,
}

/// Visits every document of the folder: its relative path, or why something could not be looked at. Returns how many
/// files the folders that were entered have, documents or not.
pub fn walk(
    location: &Location,
    rules: &Rules,
    visit: &mut dyn FnMut(std::result::Result<&str, Failure>) -> Result<()>,
) -> Result<u64> {
    let top = read_level(location, PathBuf::new()).map_err(|e| Error::io(&location.given, &e))?;
    let mut files = top.files;
    let mut levels = vec![top];
    while let Some(level) = levels.last_mut() {
        let Some((name, folder)) = level.entries.pop() else {
            levels.pop();
            continue;
        };
        let path = level.path.join(&name);
        if ignored(&levels, rules, &path, folder) || (!folder && !rules.takes(&path)) {
            continue;
        }
        // Without exact bytes the file could not be named again, neither here nor in the database.
        let Some(utf8) = path.to_str() else {
            visit(Err(unnameable(&path, folder)))?;
            continue;
        };
        if !folder {
            visit(Ok(utf8))?;
            continue;
        }
        match read_level(location, path.clone()) {
            Ok(next) => {
                files += next.files;
                levels.push(next);
            }
            Err(error) => visit(Err(Failure { uri: format!("{utf8}/"), error: Error::io(utf8, &error) }))?,
        }
    }
    Ok(files)
}

fn ignored(levels: &[Level], rules: &Rules, path: &Path, folder: bool) -> bool {
    if rules.leaves(path, folder) {
        return true;
    }
    // The innermost file that says something wins.
    for level in levels.iter().rev() {
        let inside = path.strip_prefix(&level.path).unwrap_or(path);
        let verdict = level.rules.matched(inside, folder);
        if !verdict.is_none() {
            return verdict.is_ignore();
        }
    }
    false
}

fn read_level(location: &Location, path: PathBuf) -> std::io::Result<Level> {
    let (mut entries, mut files) = (Vec::new(), 0);
    for entry in location.folder(&path)?.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        files += u64::from(!kind.is_dir());
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if kind.is_symlink() && location.metadata(&path.join(&name)).is_ok_and(|m| m.is_dir()) {
            continue;
        }
        entries.push((name, kind.is_dir()));
    }
    entries.sort_by(|a, b| b.0.cmp(&a.0));
    Ok(Level { rules: gitignore(location, &path), path, files, entries })
}

/// The folder's own rules. One that cannot be read has no rules: git, too, only warns.
fn gitignore(location: &Location, folder: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let bytes = location
        .file(&folder.join(".gitignore"))
        .and_then(|(mut file, size)| read_at_most(&mut file, size, MAX_GITIGNORE));
    if let Ok(Some(bytes)) = bytes {
        for line in crate::text::repair(&bytes).text.lines() {
            // A bad pattern is skipped, as git does.
            let _skipped = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The failure of an entry whose name is no text.
pub fn unnameable(path: &Path, folder: bool) -> Failure {
    let mut uri = String::new();
    for part in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        uri.push_str(part.valid());
        for byte in part.invalid() {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    if folder {
        uri.push('/');
    }
    let error = Error::new(Kind::BadContent, format!("name \"{uri}\" is not valid UTF-8"))
        .with_hint("Rename it; bytes that are not valid are written as %XX.");
    Failure { uri, error }
}
