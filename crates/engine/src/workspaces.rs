// SPDX-License-Identifier: PostgreSQL

//! The folders that repositories are cloned into.
//!
//! Owns their names, how long they stay and how much disk they take together. Each is made for one clone, with a name that
//! nobody can guess and closed to other users, and goes with the last one who holds it, once nobody has used it for a while, or
//! when others need the room. Nothing of an earlier engine is used: what it left, because it was killed, is removed at the start,
//! and its starter removes what is left when the server stops.
//!
//! Must not look into them.

use rag_core::source::Workspace;
use rag_core::{Error, Kind, Result};
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a clone stays that nobody uses.
const IDLE: Duration = Duration::from_secs(600);

/// How often is looked for such.
const PACE: Duration = Duration::from_secs(30);

/// Bytes of all clones above which those go that nobody uses.
const MAX_BYTES: u64 = 8 << 30;

/// Bytes that a file or folder takes besides its content.
const ENTRY: u64 = 4 << 10;

/// Random characters of a folder's name.
const NAME: usize = 24;

/// The clones.
#[derive(Debug)]
pub struct Workspaces {
    /// `None`: there is no place for them.
    folder: Option<PathBuf>,
    kept: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    location: String,
    commit: String,
    bytes: u64,
    folder: Arc<Folder>,
}

#[derive(Debug)]
struct Folder {
    place: TempDir,
    /// When somebody last let go of it.
    used: Mutex<Instant>,
}

/// A clone that stays as long as this.
#[derive(Debug)]
pub struct Held {
    /// What there is.
    pub workspace: Workspace,
    folder: Arc<Folder>,
}

impl Held {
    /// Says by which branch or tag its commit was found.
    pub fn found_by(mut self, reference: Option<String>) -> Self {
        self.workspace.reference = reference;
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = remove(self.place.path()) {
            crate::log(&format!("could not remove \"{}\": {error}", self.place.path().display()));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.folder.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Kept {
    fn hold(&self) -> Held {
        let (folder, commit) = (self.folder.place.path().to_string_lossy().into_owned(), self.commit.clone());
        Held { workspace: Workspace { folder, commit, reference: None }, folder: self.folder.clone() }
    }

    fn is_free(&self) -> bool {
        Arc::strong_count(&self.folder) == 1
    }

    fn used(&self) -> Instant {
        *self.folder.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspaces {
    /// Removes what an earlier engine left in `folder`, makes it, and removes what is idle from now on.
    pub fn start(folder: Option<&Path>) -> Result<Arc<Self>> {
        let folder = folder.map(prepared).transpose()?;
        let workspaces = Arc::new(Self { folder, kept: Mutex::default() });
        let swept = Arc::downgrade(&workspaces);
        let sweep = move || {
            while let Some(workspaces) = swept.upgrade() {
                workspaces.sweep(IDLE);
                drop(workspaces);
                std::thread::sleep(PACE);
            }
        };
        let started = std::thread::Builder::new().name("workspaces".into()).spawn(sweep);
        started.map_err(|e| Error::new(Kind::OutOfMemory, format!("could not watch the workspaces: {e}")))?;
        Ok(workspaces)
    }

    /// A new folder; removed when it is dropped.
    pub fn fresh(&self) -> Result<TempDir> {
        let Some(folder) = &self.folder else {
            return Err(Error::new(Kind::NotReady, "the engine has no folder for clones of repositories")
                .with_hint("The server's engine has one; to try the engine alone give it --workspaces DIR."));
        };
        let closed = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("clone-").rand_bytes(NAME).permissions(closed).tempdir_in(folder);
        made.map_err(|e| Error::io(&folder.to_string_lossy(), &e))
    }

    /// Keeps a clone, and makes room for it.
    pub fn keep(&self, folder: TempDir, location: &str, commit: String, bytes: u64) -> Held {
        let folder = Arc::new(Folder { place: folder, used: Mutex::new(Instant::now()) });
        let kept = Kept { location: location.to_owned(), commit, bytes, folder };
        let held = kept.hold();
        self.lock().push(kept);
        self.make_room(MAX_BYTES);
        held
    }

    /// The clone of a repository at a commit.
    pub fn find(&self, location: &str, commit: &str) -> Option<Held> {
        self.lock().iter().find(|k| k.location == location && k.commit == commit).map(Kept::hold)
    }

    /// The newest clone of a repository.
    pub fn latest(&self, location: &str) -> Option<Held> {
        self.lock().iter().rfind(|k| k.location == location).map(Kept::hold)
    }

    /// Removes clones that nobody has used for so long.
    fn sweep(&self, idle: Duration) {
        let gone: Vec<Kept> = self.lock().extract_if(.., |k| k.is_free() && k.used().elapsed() >= idle).collect();
        drop(gone); // removes the folders, outside of the lock
    }

    /// Removes clones that nobody uses, longest unused first, until the others have no more than `most` bytes.
    fn make_room(&self, most: u64) {
        let mut gone = Vec::new();
        let mut kept = self.lock();
        while kept.iter().map(|k| k.bytes).sum::<u64>() > most {
            let free = kept.iter().enumerate().filter(|(_, k)| k.is_free()).min_by_key(|(_, k)| k.used());
            let Some((at, _)) = free else { break };
            gone.push(kept.remove(at));
        }
        drop(kept);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a folder of our own and empty. What cannot be removed is put aside: it must not keep the engine from starting.
fn prepared(folder: &Path) -> Result<PathBuf> {
    let failed = |e: std::io::Error| Error::io(&folder.to_string_lossy(), &e);
    if let Err(error) = remove(folder) {
        let aside = folder.with_extension(format!("left-{}", std::process::id()));
        crate::log(&format!(
            "could not remove \"{}\", which is now \"{}\": {error}",
            folder.display(),
            aside.display()
        ));
        std::fs::rename(folder, &aside).map_err(failed)?;
    }
    DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
    folder.canonicalize().map_err(failed)
}

/// Removes a folder if it is there, whatever rights to it a worker has left.
fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            open_up(folder);
            std::fs::remove_dir_all(folder)
        }
        ended => ended,
    }
}

/// Lets us into all folders beneath one. What fails is left to whoever removes them.
fn open_up(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700));
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
}

/// Bytes of everything beneath a folder, as far as it can be seen; an entry without content takes room, too.
pub fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?; // of a link, not of where it leads
        Some(ENTRY + if metadata.is_dir() { size(&entry.path()) } else { metadata.len() })
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> (TempDir, Arc<Workspaces>) {
        let parent = tempfile::tempdir().expect("folder");
        let workspaces = Workspaces::start(Some(&parent.path().join("clones"))).expect("starts");
        (parent, workspaces)
    }

    fn there(workspaces: &Workspaces) -> usize {
        std::fs::read_dir(workspaces.folder.as_ref().expect("folder")).expect("lists").count()
    }

    fn keep(workspaces: &Workspaces, location: &str, commit: &str, bytes: u64) -> Held {
        let folder = workspaces.fresh().expect("fresh");
        workspaces.keep(folder, location, commit.to_owned(), bytes)
    }

    #[test]
    fn what_an_earlier_engine_left_is_gone_and_others_cannot_look_in() {
        let parent = tempfile::tempdir().expect("folder");
        let folder = parent.path().join("clones");
        std::fs::create_dir_all(folder.join("clone-old/objects")).expect("folders");
        std::fs::write(folder.join("clone-old/objects/pack"), "x").expect("file");
        let workspaces = Workspaces::start(Some(&folder)).expect("starts");
        assert_eq!(there(&workspaces), 0);
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        let (one, two) = (workspaces.fresh().expect("fresh"), workspaces.fresh().expect("fresh"));
        assert_eq!((mode(&folder), mode(one.path())), (0o700, 0o700));
        assert_ne!(one.path(), two.path());
        drop((one, two));
        assert_eq!(there(&workspaces), 0);
        assert_eq!(Workspaces::start(None).expect("starts").fresh().map_err(|e| e.kind).err(), Some(Kind::NotReady));
    }

    #[test]
    fn a_folder_that_was_closed_is_removed_all_the_same() {
        let parent = tempfile::tempdir().expect("folder");
        let folder = parent.path().join("clones");
        let closed = folder.join("clone-old/objects/closed");
        std::fs::create_dir_all(closed.join("within")).expect("folders");
        for place in [closed.as_path(), &folder] {
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o000)).expect("closed");
        }
        let workspaces = Workspaces::start(Some(&folder)).expect("starts");
        assert_eq!(there(&workspaces), 0);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let parent = tempfile::tempdir().expect("folder");
        let (elsewhere, folder) = (parent.path().join("elsewhere"), parent.path().join("clones"));
        std::fs::create_dir(&elsewhere).expect("folder");
        std::fs::write(elsewhere.join("precious"), "x").expect("file");
        std::os::unix::fs::symlink(&elsewhere, &folder).expect("link");
        let _refused_or_replaced = Workspaces::start(Some(&folder));
        assert!(elsewhere.join("precious").exists());
    }

    #[test]
    fn a_clone_is_found_by_its_repository_and_commit() {
        let (_parent, workspaces) = started();
        let first = keep(&workspaces, "https://a/", "1", 1).found_by(Some("main".into()));
        assert_eq!((first.workspace.commit.as_str(), first.workspace.reference.as_deref()), ("1", Some("main")));
        let second = keep(&workspaces, "https://a/", "2", 1);
        assert_eq!(workspaces.find("https://a/", "1").expect("first").workspace.folder, first.workspace.folder);
        assert_eq!(workspaces.latest("https://a/").expect("second").workspace.folder, second.workspace.folder);
        assert!(workspaces.find("https://a/", "3").is_none() && workspaces.find("https://b/", "1").is_none());
    }

    #[test]
    fn what_is_idle_goes_and_what_is_held_stays() {
        let (_parent, workspaces) = started();
        let held = keep(&workspaces, "https://a/", "1", 1);
        drop(keep(&workspaces, "https://a/", "2", 1));
        workspaces.sweep(Duration::from_secs(60));
        assert_eq!(there(&workspaces), 2);
        workspaces.sweep(Duration::ZERO);
        assert_eq!(there(&workspaces), 1);
        drop(held);
        workspaces.sweep(Duration::ZERO);
        assert_eq!(there(&workspaces), 0);
    }

    #[test]
    fn the_longest_unused_makes_room() {
        let (_parent, workspaces) = started();
        let held = keep(&workspaces, "https://a/", "1", 60);
        for commit in ["2", "3", "4"] {
            drop(keep(&workspaces, "https://a/", commit, 20));
        }
        drop(workspaces.find("https://a/", "2"));
        workspaces.make_room(100);
        assert!(workspaces.find("https://a/", "3").is_none());
        assert!(["1", "2", "4"].iter().all(|commit| workspaces.find("https://a/", commit).is_some()));
        workspaces.make_room(0);
        assert_eq!(there(&workspaces), 1, "what is held");
        drop(held);
    }

    #[test]
    fn a_folder_is_measured_with_all_beneath_it() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("deep")).expect("folder");
        std::fs::write(folder.path().join("a"), [0; 10]).expect("file");
        std::fs::write(folder.path().join("deep/b"), [0; 20]).expect("file");
        std::os::unix::fs::symlink("/", folder.path().join("out")).expect("link");
        assert_eq!(size(folder.path()), 31 + 4 * ENTRY);
    }
}
