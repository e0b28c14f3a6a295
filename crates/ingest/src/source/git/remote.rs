// SPDX-License-Identifier: PostgreSQL

//! Cloning a repository: which of its commits is wanted, and how little is asked for to have it.
//!
//! The server says first which branches and tags it has and where they are, so the commit is known, and held to what is
//! expected, before anything is downloaded. Then that one is asked for, without history. A commit that is at the end of no
//! branch and no tag can be asked for by its hash from most servers; from the others, whether they refuse by the protocol or by the
//! status of their answer, comes everything, and it is looked up.
//!
//! The clone is bare: there is no working tree, so there is nothing to check out, no filter to apply and no hook to run, and
//! submodules stay what they are in a tree, the names of commits elsewhere. What [`transport`](super::transport) limits is
//! what is received; what libgit2 makes of it is for whoever runs this to confine.

use super::transport::{ADDRESS, Server};
use super::{failed, headless, held_to_expected, is_hash, is_whole_hash, prepare, unknown};
use crate::source::web::guard::Guard;
use git2::{
    AutotagOption, Direction, FetchOptions, ObjectType, Oid, RemoteCallbacks, Repository, RepositoryInitOptions,
};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::SourceSpec;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use url::Url;

/// Objects of a clone. The index of so many has some 300 MB.
const MAX_OBJECTS: usize = 10_000_000;

/// Branches and tags that are cloned to look a commit up. Each becomes a file.
const MAX_ENDS: usize = 100_000;

/// Where in the clone the commit is that was wanted.
const WANTED: &str = "refs/pg_rag/wanted";

/// Mark of what a tag leads to.
const PEELED: &str = "^{}";

/// What cloning came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloned {
    /// Hash of the commit.
    pub commit: String,
    /// Branch or tag by which it was found.
    pub reference: Option<String>,
    /// Whether it is a commit that was known, and the folder empty.
    pub known: bool,
}

/// A branch, a tag or HEAD of the server.
struct Head {
    name: String,
    id: Oid,
    /// Branch that it is another name of.
    target: Option<String>,
}

impl Head {
    /// `None` when its name is not UTF-8, over which git2 panics; nobody could name it in an option.
    fn read(head: &git2::RemoteHead<'_>) -> Option<Self> {
        let read =
            || Self { name: head.name().to_owned(), id: head.oid(), target: head.symref_target().map(str::to_owned) };
        std::panic::catch_unwind(AssertUnwindSafe(read)).ok()
    }
}

/// What is to be downloaded.
enum Wanted {
    /// The end of a branch or tag, by its full name, and what it should lead to.
    Named { name: String, commit: Oid, reference: Option<String> },
    /// A commit by its hash, or the beginning of it.
    Hash(String),
}

/// The URL of the repository of a source, if it may be cloned.
pub fn check(spec: &SourceSpec) -> Result<(Url, Guard)> {
    let location = &spec.location;
    let url = Url::parse(location).map_err(|e| Error::invalid(format!("location \"{location}\" is no URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        let message = format!("a repository is not cloned by \"{}\"", url.scheme());
        return Err(Error::new(Kind::Forbidden, message).with_hint(
            "Give its http or https URL, or clone it to the server's disk and give the path of that folder.",
        ));
    }
    let guard = Guard::new(&spec.allowed_hosts)?;
    guard.check(&url)?;
    Ok((url, guard))
}

/// Clones the repository of a source into an empty folder; see [`crate::clone_remote`].
pub fn clone(spec: &SourceSpec, folder: &Path, commit: Option<&str>, known: &[String]) -> Result<Cloned> {
    let (url, guard) = check(spec)?;
    prepare();
    let server = Server::new(url, guard, &spec.options.limits);
    server.serve(|| {
        let mut options = RepositoryInitOptions::new();
        options.bare(true).external_template(false).no_reinit(true);
        let repository = Repository::init_opts(folder, &options)
            .map_err(|e| failed(&e, &format!("could not make a clone of \"{}\"", spec.location)))?;
        Cloning { spec, server: &server, repository }.run(commit, known)
    })
}

struct Cloning<'a> {
    spec: &'a SourceSpec,
    server: &'a Server,
    repository: Repository,
}

impl Cloning<'_> {
    fn run(&self, commit: Option<&str>, known: &[String]) -> Result<Cloned> {
        let heads = self.heads()?;
        let what = commit.or(self.spec.options.reference.as_deref());
        let wanted = match what {
            None => head(&heads).ok_or_else(|| headless(self.spec))?,
            Some(name) => named(&heads, name).ok_or_else(|| unknown(name, branches(&heads)))?,
        };
        let what = what.unwrap_or("HEAD");
        // The commit, where it is known before anything is downloaded.
        let (commit, reference) = match &wanted {
            Wanted::Named { commit, reference, .. } => (Some(*commit), reference.clone()),
            Wanted::Hash(hash) => (whole(hash), None),
        };
        if let Some(commit) = commit {
            let commit = held_to_expected(self.spec, what, commit)?.to_string();
            if known.contains(&commit) {
                return Ok(Cloned { commit, reference, known: true });
            }
        }
        let commit = match wanted {
            Wanted::Named { name, .. } => {
                self.shallow(&name)?;
                self.found(what, WANTED, &heads)?
            }
            Wanted::Hash(hash) => self.by_hash(what, &hash, &heads)?,
        };
        let commit = held_to_expected(self.spec, what, commit)?.to_string();
        Ok(Cloned { commit, reference, known: false })
    }

    /// What the server has.
    fn heads(&self) -> Result<Vec<Head>> {
        let list = || -> std::result::Result<Vec<Head>, git2::Error> {
            let mut remote = self.repository.remote_anonymous(ADDRESS)?;
            let connection = remote.connect_auth(Direction::Fetch, None, None)?;
            Ok(connection.list()?.iter().filter_map(Head::read).collect())
        };
        list().map_err(|e| self.broken(&e))
    }

    /// A commit by the whole of its hash without history, if the server gives that out; else whatever begins so.
    fn by_hash(&self, what: &str, hash: &str, heads: &[Head]) -> Result<Oid> {
        let mut refusal = None;
        if whole(hash).is_some() {
            match self.shallow(hash) {
                Ok(()) => return self.found(what, WANTED, heads),
                Err(error) if self.server.failure().is_some() => refusal = Some(self.server.pardon().ok_or(error)?),
                Err(_) => {}
            }
        }
        let found = self.everything(hash, heads).and_then(|()| self.found(what, hash, heads));
        found.map_err(|error| match refusal {
            None => error,
            Some(refusal) => {
                error.with_detail(format!("The server was asked for commit {hash} alone first: {}.", refusal.message))
            }
        })
    }

    /// Downloads all branches and tags with their history.
    fn everything(&self, hash: &str, heads: &[Head]) -> Result<()> {
        let ends = heads.iter().filter(|h| ["refs/heads/", "refs/tags/"].iter().any(|kind| h.name.starts_with(kind)));
        let ends = ends.filter(|h| !h.name.ends_with(PEELED)).count();
        if ends > MAX_ENDS {
            let location = &self.spec.location;
            let message =
                format!("commit \"{hash}\" is not looked up in the {ends} branches and tags of \"{location}\"");
            return Err(Error::new(Kind::LimitExceeded, message)
                .with_detail(format!(
                    "Its server does not give it out by its hash, and no more than {MAX_ENDS} branches and tags are cloned to find it."
                ))
                .with_hint("Name a branch or a tag with the option \"ref\", or the whole hash of a commit."));
        }
        let everything = ["heads", "tags"].map(|kind| format!("+refs/{kind}/*:refs/{kind}/*"));
        self.fetch(&everything, 0).map_err(|e| self.broken(&e))
    }

    /// Downloads one thing without its history; with it from a server that cannot do without.
    fn shallow(&self, what: &str) -> Result<()> {
        let specification = [format!("+{what}:{WANTED}")];
        self.fetch(&specification, 1)
            .or_else(|e| if self.server.failure().is_some() { Err(e) } else { self.fetch(&specification, 0) })
            .map_err(|e| self.broken(&e))
    }

    fn fetch(&self, what: &[String], depth: i32) -> std::result::Result<(), git2::Error> {
        let mut callbacks = RemoteCallbacks::new();
        callbacks.transfer_progress(|progress| progress.total_objects() <= MAX_OBJECTS);
        let mut options = FetchOptions::new();
        options.depth(depth).download_tags(AutotagOption::None).update_fetchhead(false).remote_callbacks(callbacks);
        self.repository.remote_anonymous(ADDRESS)?.fetch(what, Some(&mut options), None)
    }

    /// The commit that was wanted, by what it is known by in the clone.
    fn found(&self, what: &str, by: &str, heads: &[Head]) -> Result<Oid> {
        let commit = self.repository.revparse_single(by).and_then(|object| object.peel(ObjectType::Commit));
        commit.map(|commit| commit.id()).map_err(|e| match e.code() {
            git2::ErrorCode::NotFound => unknown(what, branches(heads)),
            _ => failed(&e, &format!("\"{what}\" is no commit")),
        })
    }

    /// What went wrong: whatever libgit2 made of it, if this side ended the exchange.
    fn broken(&self, error: &git2::Error) -> Error {
        if let Some(failure) = self.server.failure() {
            return failure;
        }
        let location = &self.spec.location;
        if error.code() == git2::ErrorCode::User {
            let message = format!("repository \"{location}\" has more than {MAX_OBJECTS} objects");
            return Error::new(Kind::LimitExceeded, message);
        }
        failed(error, &format!("repository \"{location}\" could not be cloned"))
    }
}

/// The commit that a whole hash is.
fn whole(hash: &str) -> Option<Oid> {
    Oid::from_str(hash).ok().filter(|id| id.to_string() == hash)
}

/// What HEAD is: by the name of its branch, if the server says which it is.
fn head(heads: &[Head]) -> Option<Wanted> {
    let head = heads.iter().find(|h| h.name == "HEAD")?;
    let branch = head.target.as_deref().filter(|target| heads.iter().any(|h| h.name == *target && h.id == head.id));
    Some(Wanted::Named {
        name: branch.unwrap_or("HEAD").to_owned(),
        commit: head.id,
        reference: branch.and_then(|b| b.strip_prefix("refs/heads/")).map(str::to_owned),
    })
}

/// A branch, a tag, or what may be a commit.
fn named(heads: &[Head], name: &str) -> Option<Wanted> {
    let find = |full: &str| heads.iter().find(|h| h.name == full);
    // What a tag with a message leads to has its name and a mark.
    let wanted = |head: &Head, reference| {
        let commit = find(&format!("{}{PEELED}", head.name)).map_or(head.id, |peeled| peeled.id);
        Wanted::Named { name: head.name.clone(), commit, reference }
    };
    let found = ["refs/heads/", "refs/tags/", ""].iter().find_map(|prefix| find(&format!("{prefix}{name}")));
    // A whole hash is that commit, whatever somebody calls a branch.
    if let Some(head) = found.filter(|_| !is_whole_hash(name)) {
        return Some(wanted(head, Some(name.to_owned())));
    }
    let hash = Some(name.to_ascii_lowercase()).filter(|hash| is_hash(hash))?;
    let mut ends = heads.iter().filter(|h| h.name.starts_with("refs/") && h.id.to_string().starts_with(&hash));
    // The beginning of more than one is looked up among all commits, where it is found to be so.
    let end = ends.next().filter(|end| ends.all(|other| other.id == end.id));
    let end = end.and_then(|end| find(end.name.trim_end_matches(PEELED)));
    Some(end.map_or(Wanted::Hash(hash), |end| wanted(end, None)))
}

fn branches(heads: &[Head]) -> Vec<String> {
    heads.iter().filter_map(|h| h.name.strip_prefix("refs/heads/")).map(str::to_owned).collect()
}
