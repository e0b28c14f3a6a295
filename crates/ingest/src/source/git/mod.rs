// SPDX-License-Identifier: PostgreSQL

//! A git repository: the files of one commit, each of which is one document.
//!
//! Objects are read, nothing is checked out: no file is written, no filter, hook or submodule runs, and a link in the tree
//! is a line of text that is not followed. The commit is what the option `ref` names, or HEAD, and `expect_commit` holds it
//! to one. Files are chosen as in a folder, except that `.gitignore` says nothing about files that are committed, and
//! that `.gitattributes` does: what it calls generated or vendored for GitHub's linguist is not a document.
//!
//! A repository at a URL is cloned first, without a working tree, into a folder that whoever asks provides ([`remote`],
//! over HTTP as [`transport`] speaks it). After that it is read like one that was always there, by a process that needs no
//! network; only its provenance says the URL.
//!
//! libgit2 opens files by name, beneath the location; what would lead it elsewhere (a `.git` that is a file, borrowed
//! objects) is refused here, and by the kernel where it confines the process.

mod remote;
mod transport;

pub use remote::{Cloned, check, clone};

use super::confine::Location;
use super::{Pages, Source, walk, within_limit};
use git2::{ErrorCode, ObjectType, Oid, RepositoryOpenFlags};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rag_core::document::Version;
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Content, Failure, Item, Origin, Place, SourceSpec, Workspace};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Folders within folders.
const MAX_DEPTH: usize = 256;

/// Entries of all trees of a commit.
const MAX_ENTRIES: usize = 10_000_000;

/// Bytes of a `.gitattributes` that are read; git has the same bound.
const MAX_ATTRIBUTES: usize = 100 << 20;

/// Bytes of a pack that are mapped at once.
const WINDOW: usize = 32 << 20;

/// Mode of a link.
const LINK: i32 = 0o120_000;

/// First bytes of a file that stands for another, kept by Git LFS.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";

/// A repository at a commit.
pub struct Repository<'a> {
    spec: &'a SourceSpec,
    repository: git2::Repository,
    commit: Oid,
    /// Name of the branch or tag, if it is one.
    reference: Option<String>,
    rules: walk::Rules,
}

impl<'a> Repository<'a> {
    /// Opens the repository at a location and finds the commit.
    pub fn new(spec: &'a SourceSpec, location: &Location) -> Result<Self> {
        Self::open(spec, location, |repository| resolve(repository, spec))
    }

    /// Opens the clone of a repository at the commit for which it was made.
    pub fn of_clone(spec: &'a SourceSpec, workspace: &Workspace) -> Result<Self> {
        let inside = SourceSpec {
            location: workspace.folder.clone(),
            allowed_paths: vec![workspace.folder.clone()],
            ..spec.clone()
        };
        Self::open(spec, &Location::open(&inside)?, |_| {
            let commit = Oid::from_str(&workspace.commit)
                .map_err(|e| failed(&e, &format!("\"{}\" is no commit", workspace.commit)))?;
            let name = spec.options.reference.as_deref().unwrap_or("HEAD");
            Ok((held_to_expected(spec, name, commit)?, workspace.reference.clone()))
        })
    }

    fn open(
        spec: &'a SourceSpec,
        location: &Location,
        find: impl FnOnce(&git2::Repository) -> Result<(Oid, Option<String>)>,
    ) -> Result<Self> {
        prepare();
        let folder = git_folder(location.canonical(), &spec.location)?;
        let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::BARE;
        let repository = git2::Repository::open_ext(&folder, flags, std::iter::empty::<&OsStr>())
            .map_err(|e| failed(&e, &format!("location \"{}\" is not a git repository", spec.location)))?;
        let (commit, reference) = find(&repository)?;
        let rules = walk::Rules::new(spec.kind, &spec.options)?;
        Ok(Self { spec, repository, commit, reference, rules })
    }

    fn item(&self, path: &str, blob: Oid) -> std::result::Result<Item, Failure> {
        let read = self.blob(blob).and_then(|bytes| match bytes.starts_with(LFS_POINTER) {
            true => Err(Error::unsupported(format!("\"{path}\" is kept by Git LFS and not in the repository"))
                .with_hint("Leave it out with the source's \"ignore\" option.")),
            false => Ok(bytes),
        });
        match read {
            Ok(bytes) => Ok(Item {
                uri: path.to_owned(),
                content_sha256: ContentHash::of(&bytes),
                size: bytes.len() as u64,
                place: Place::Blob {
                    path: path.to_owned(),
                    blob: blob.to_string(),
                    commit: self.commit.to_string(),
                    reference: self.reference.clone(),
                },
            }),
            Err(error) => Err(Failure { uri: path.to_owned(), error }),
        }
    }

    fn blob(&self, id: Oid) -> Result<Vec<u8>> {
        let broken = |e: git2::Error| failed(&e, &format!("object {id} cannot be read"));
        let odb = self.repository.odb().map_err(broken)?;
        // The size stands before the content, so a large object is refused unread.
        let (size, kind) = odb.read_header(id).map_err(broken)?;
        if kind != ObjectType::Blob {
            return Err(Error::new(Kind::BadContent, format!("object {id} is no file")));
        }
        within_limit(size as u64, &self.spec.options.limits)?;
        Ok(odb.read(id).map_err(broken)?.data().to_vec())
    }
}

impl Source for Repository<'_> {
    fn list(&self, pages: &mut Pages<'_, '_>) -> Result<()> {
        let broken = |e: git2::Error| failed(&e, &format!("commit {} cannot be read", self.commit));
        let tree = self.repository.find_commit(self.commit).and_then(|c| c.tree()).map_err(broken)?;
        let mut levels = vec![Level::new(&self.repository, tree, PathBuf::new())];
        let mut entries = 0;
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.tree.get(level.next) else {
                levels.pop();
                continue;
            };
            level.next += 1;
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(Error::new(Kind::LimitExceeded, format!("commit has more than {MAX_ENTRIES} entries")));
            }
            let (id, kind, mode) = (entry.id(), entry.kind(), entry.filemode());
            let name = lossless(entry.name_bytes());
            let hidden = entry.name_bytes().starts_with(b".");
            let path = level.path.join(name);
            drop(entry);
            // A submodule is a commit of another repository.
            let folder = kind == Some(ObjectType::Tree);
            pages.saw(u64::from(!folder));
            if hidden || mode == LINK || !(folder || kind == Some(ObjectType::Blob)) {
                continue;
            }
            if path.to_str().is_none() {
                pages.push(Err(walk::unnameable(&path, folder)))?;
                continue;
            }
            if self.rules.leaves(&path, folder) {
                continue;
            }
            if folder {
                if levels.len() >= MAX_DEPTH {
                    let message = format!("folder is nested deeper than {MAX_DEPTH}");
                    let error = Error::new(Kind::LimitExceeded, message);
                    pages.push(Err(Failure { uri: format!("{}/", path.display()), error }))?;
                    continue;
                }
                let tree = self.repository.find_tree(id).map_err(broken)?;
                levels.push(Level::new(&self.repository, tree, path));
            } else if self.rules.takes(&path) && !Level::is_machine_made(&levels, &path) {
                pages.push(self.item(&path.to_string_lossy(), id))?;
            }
        }
        Ok(())
    }

    fn read(&self, item: &Item) -> Result<Content> {
        let Place::Blob { blob, commit, path, reference } = &item.place else {
            return Err(Error::internal(format!("item \"{}\" of a repository is no blob", item.uri)));
        };
        let id = Oid::from_str(blob).map_err(|e| failed(&e, &format!("\"{blob}\" is no object")))?;
        let version = Version {
            repository: Some(self.spec.location.clone()),
            reference: reference.clone(),
            commit: Some(commit.clone()),
            etag: None,
        };
        let mut metadata = serde_json::Map::new();
        metadata.insert("blob".to_owned(), blob.clone().into());
        Ok(Content {
            bytes: self.blob(id)?,
            origin: Origin { path: Some(path.clone()), version, metadata, ..Origin::default() },
        })
    }
}

/// A tree being walked, and what its attributes say.
struct Level<'r> {
    tree: git2::Tree<'r>,
    path: PathBuf,
    next: usize,
    /// What is generated, and what is vendored: each attribute is set and unset without the other.
    machine_made: [Gitignore; 2],
}

impl<'r> Level<'r> {
    fn new(repository: &'r git2::Repository, tree: git2::Tree<'r>, path: PathBuf) -> Self {
        let attributes = tree.get_name(".gitattributes").filter(|entry| entry.filemode() != LINK);
        let blob = attributes.and_then(|entry| repository.find_blob(entry.id()).ok());
        let blob = blob.filter(|blob| blob.size() <= MAX_ATTRIBUTES);
        let attributes = blob.map_or_else(String::new, |blob| crate::text::repair(blob.content()).text);
        let machine_made = ["linguist-generated", "linguist-vendored"].map(|name| having(name, &attributes));
        Self { tree, path, next: 0, machine_made }
    }

    /// Whether a file is generated or vendored, each by the innermost attributes that say something of it.
    fn is_machine_made(levels: &[Self], path: &Path) -> bool {
        (0..2).any(|which| {
            levels
                .iter()
                .rev()
                .map(|level| level.machine_made[which].matched(path.strip_prefix(&level.path).unwrap_or(path), false))
                .find(|verdict| !verdict.is_none())
                .is_some_and(|verdict| verdict.is_ignore())
        })
    }
}

/// The files for which an attribute is set. Patterns of attributes have the syntax of those of ignored files: set is a pattern,
/// unset its opposite, and the last that matches counts.
fn having(name: &str, attributes: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in attributes.lines().map(str::trim) {
        let mut words = line.split_ascii_whitespace();
        let Some(pattern) = words.next().filter(|pattern| !pattern.starts_with(['#', '!', '['])) else { continue };
        for word in words {
            let set = match word.strip_prefix('-') {
                Some(unset) if unset == name => "!",
                Some(_) => continue,
                None => match word.strip_prefix(name) {
                    Some("" | "=true") => "",
                    Some("=false") => "!",
                    _ => continue,
                },
            };
            // A bad pattern says nothing, as in git.
            let _skipped = builder.add_line(None, &format!("{set}{pattern}"));
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The commit that the options name, and the name of its branch or tag.
fn resolve(repository: &git2::Repository, spec: &SourceSpec) -> Result<(Oid, Option<String>)> {
    let named = spec.options.reference.as_deref();
    let (object, reference) = match named {
        None => {
            let head = repository.head().map_err(|e| match e.code() {
                ErrorCode::UnbornBranch | ErrorCode::NotFound => headless(spec),
                _ => failed(&e, &format!("HEAD of \"{}\" cannot be read", spec.location)),
            })?;
            let name = head.shorthand().ok().map(str::to_owned);
            (head.peel(ObjectType::Commit), name.filter(|_| head.is_branch()))
        }
        Some(name) => {
            let found = ["refs/heads/", "refs/tags/", "refs/remotes/origin/", ""].iter().find_map(|prefix| {
                let full = format!("{prefix}{name}");
                (git2::Reference::is_valid_name(&full)).then(|| repository.find_reference(&full).ok()).flatten()
            });
            // A whole hash is that commit, whatever somebody calls a branch.
            match found.filter(|_| !is_whole_hash(name)) {
                Some(reference) => (reference.peel(ObjectType::Commit), Some(name.to_owned())),
                None if is_hash(name) => (repository.revparse_single(&format!("{name}^{{commit}}")), None),
                None => return Err(unknown(name, branches(repository))),
            }
        }
    };
    let what = named.unwrap_or("HEAD");
    let commit = object.map_err(|e| match e.code() {
        ErrorCode::NotFound => unknown(what, branches(repository)),
        _ => failed(&e, &format!("\"{what}\" is no commit")),
    })?;
    Ok((held_to_expected(spec, what, commit.id())?, reference))
}

/// The commit at which `what` is, if it is the one that the options expect.
fn held_to_expected(spec: &SourceSpec, what: &str, commit: Oid) -> Result<Oid> {
    let id = commit.to_string();
    match spec.options.expect_commit.as_deref().filter(|expected| !id.starts_with(*expected)) {
        None => Ok(commit),
        Some(expected) => {
            let message = format!("\"{what}\" is at commit {id} and not at \"{expected}\"");
            Err(Error::new(Kind::BadContent, message)
                .with_hint("Change or remove the option \"expect_commit\" with rag.alter_source."))
        }
    }
}

fn headless(spec: &SourceSpec) -> Error {
    Error::new(Kind::BadContent, format!("repository \"{}\" has no commit at HEAD", spec.location))
        .with_hint("Name a branch, tag or commit with the option \"ref\".")
}

fn is_whole_hash(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && is_hash(name)
}

fn is_hash(name: &str) -> bool {
    (7..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit())
}

fn branches(repository: &git2::Repository) -> Vec<String> {
    let branches = repository.branches(None).into_iter().flatten().flatten();
    branches.filter_map(|(branch, _)| branch.name().ok().flatten().map(str::to_owned)).collect()
}

fn unknown(name: &str, mut branches: Vec<String>) -> Error {
    let error = Error::new(Kind::NotFound, format!("repository has no branch, tag or commit \"{name}\""));
    branches.sort();
    branches.truncate(20);
    if branches.is_empty() { error } else { error.with_hint(format!("It has: {}.", branches.join(", "))) }
}

/// The folder of the repository itself. Refuses what would have objects read elsewhere.
fn git_folder(path: &Path, given: &str) -> Result<PathBuf> {
    let refuse = |why: &str| Err(Error::unsupported(format!("repository \"{given}\" {why}")));
    let inner = path.join(".git");
    if inner.symlink_metadata().is_ok_and(|m| !m.is_dir()) {
        return refuse("keeps its objects elsewhere");
    }
    let folder = if inner.is_dir() { inner } else { path.to_owned() };
    for link in ["objects", "refs", "objects/pack", "objects/info"] {
        if folder.join(link).symlink_metadata().is_ok_and(|m| m.is_symlink()) {
            return refuse(&format!("has a link in place of \"{link}\""));
        }
    }
    for file in ["objects/info/alternates", "commondir"] {
        if folder.join(file).symlink_metadata().is_ok() {
            return refuse(&format!("borrows objects by \"{file}\""));
        }
    }
    Ok(folder)
}

/// A name whatever its bytes are.
fn lossless(name: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(OsStr::from_bytes(name))
}

fn failed(error: &git2::Error, message: &str) -> Error {
    let kind = match error.code() {
        ErrorCode::NotFound => Kind::FileMissing,
        _ => Kind::BadContent,
    };
    Error::new(kind, message).with_detail(format!("git says: {}.", error.message()))
}

/// libgit2 must not ask whose the repository is (who may read it was allowed to by a superuser) and must not read anybody's
/// configuration.
#[allow(unsafe_code)]
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: these change global settings of libgit2, which nothing has used yet and no other thread uses now.
        unsafe {
            let _ = git2::opts::set_verify_owner_validation(false);
            for level in [
                git2::ConfigLevel::System,
                git2::ConfigLevel::Global,
                git2::ConfigLevel::XDG,
                git2::ConfigLevel::ProgramData,
            ] {
                let _ = git2::opts::set_search_path(level, "");
            }
            // A pack may be larger than the address space that a worker has.
            let _ = git2::opts::set_mwindow_size(WINDOW);
            let _ = git2::opts::set_mwindow_mapped_limit(8 * WINDOW);
        }
    });
}
