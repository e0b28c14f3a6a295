// SPDX-License-Identifier: PostgreSQL

//! The folders that repositories are cloned into.
//!
//! Owns their names, how long they stay and how much disk they take together. Each is made for one clone, with a name that
//! nobody can guess and closed to other users, and goes with the last one who holds it, once nobody has used it for a while, or
//! when others need the room. A clone that is being made counts with all that it may become, so the bound holds at any time; who
//! finds no room waits for it. So does who wants what somebody else is cloning. Nobody waits who has something that
//! others wait for. Nothing of an earlier engine is used: what it left, because it was killed, is removed at the start, and its
//! starter removes what is left when the server stops.
//!
//! Must not look into them.

use crate::exchange::TICK;
use rag_core::source::Workspace;
use rag_core::{Error, Kind, Result};
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a clone stays that nobody uses.
const IDLE: Duration = Duration::from_secs(600);

/// How often is looked for such.
const PACE: Duration = Duration::from_secs(30);

/// Bytes that a file or folder takes besides its content.
const ENTRY: u64 = 4 << 10;

/// Random characters of a folder's name.
const NAME: usize = 24;

/// Clones of one repository that are looked at.
const MAX_KNOWN: usize = 100;

/// The clones.
#[derive(Debug)]
pub struct Workspaces {
    /// `None`: there is no place for them.
    folder: Option<PathBuf>,
    /// Bytes that all clones may take.
    disk: u64,
    state: Mutex<State>,
    /// A clone was made or given up.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    kept: Vec<Kept>,
    making: Vec<Making>,
    /// Clones so far.
    number: u64,
}

#[derive(Debug)]
struct Kept {
    location: String,
    bytes: u64,
    made: Made,
}

/// A clone that was made. It stays as long as this, and is not taken to be used by it.
#[derive(Debug, Clone)]
pub struct Made {
    /// Hash of the commit.
    pub commit: String,
    folder: Arc<Folder>,
}

/// A clone that is being made.
#[derive(Debug)]
struct Making {
    number: u64,
    location: String,
    name: Option<String>,
    bytes: u64,
}

#[derive(Debug)]
struct Folder {
    place: TempDir,
    /// When somebody last let go of it.
    used: Mutex<Instant>,
}

/// A clone that is used.
#[derive(Debug)]
pub struct Held {
    /// What there is.
    pub workspace: Workspace,
    folder: Arc<Folder>,
}

/// What somebody wants to clone.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// URL of the repository.
    pub location: &'a str,
    /// Hash of the commit.
    pub commit: Option<&'a str>,
    /// Else what the commit is found by; `None` for HEAD.
    pub reference: Option<&'a str>,
    /// Bytes that the clone may take.
    pub bytes: u64,
    /// Seconds that somebody waits until it can begin.
    pub patience: u32,
}

/// How a clone begins.
#[derive(Debug)]
pub enum Begun<'a> {
    /// It is there.
    Kept(Held),
    /// It can be made here.
    New(Room<'a>),
}

/// Room for a clone; given up, with what is in it, when dropped.
#[derive(Debug)]
pub struct Room<'a> {
    // In this order: the room is there once the folder is gone.
    folder: Arc<Folder>,
    reserved: Reserved<'a>,
}

#[derive(Debug)]
struct Reserved<'a> {
    workspaces: &'a Workspaces,
    number: u64,
}

impl Wanted<'_> {
    fn name(&self) -> Option<&str> {
        self.commit.or(self.reference)
    }
}

impl State {
    /// Bytes of all clones, with what those may become that are being made.
    fn bytes(&self) -> u64 {
        let making = self.making.iter().map(|m| m.bytes);
        self.kept.iter().map(|k| k.bytes).chain(making).fold(0, u64::saturating_add)
    }

    /// Bytes of those that cannot make room.
    fn in_use(&self) -> u64 {
        let free = self.kept.iter().filter(|k| k.is_free()).map(|k| k.bytes);
        self.bytes().saturating_sub(free.fold(0, u64::saturating_add))
    }

    /// Takes out clones that nobody uses, those of another repository first and then the longest unused, until there is room.
    /// Nothing when there cannot be.
    fn free_up(&mut self, wanted: Wanted<'_>, disk: u64) -> Option<Vec<Kept>> {
        if self.in_use().saturating_add(wanted.bytes) > disk {
            return None;
        }
        let mut gone = Vec::new();
        while self.bytes().saturating_add(wanted.bytes) > disk {
            let free = self.kept.iter().enumerate().filter(|(_, k)| k.is_free());
            let (at, _) = free.min_by_key(|(_, k)| (k.location == wanted.location, k.used()))?;
            gone.push(self.kept.remove(at));
        }
        Some(gone)
    }
}

impl Room<'_> {
    /// The folder for the clone.
    pub fn path(&self) -> &Path {
        self.folder.place.path()
    }

    /// Keeps what was made of what was `wanted`: the clone at a commit, of so many bytes.
    pub fn keep(self, wanted: Wanted<'_>, commit: String, bytes: u64) -> Held {
        let made = Made { commit, folder: self.folder.clone() };
        let held = made.clone().hold();
        let mut state = self.reserved.workspaces.lock();
        state.making.retain(|m| m.number != self.reserved.number);
        state.kept.push(Kept { location: wanted.location.to_owned(), bytes, made });
        held
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.workspaces.lock().making.retain(|m| m.number != self.number);
        self.workspaces.changed.notify_all();
    }
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

impl Made {
    /// Uses it.
    pub fn hold(self) -> Held {
        let folder = self.folder.place.path().to_string_lossy().into_owned();
        Held { workspace: Workspace { folder, commit: self.commit, reference: None }, folder: self.folder }
    }
}

impl Kept {
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.made.folder) == 1
    }

    fn used(&self) -> Instant {
        *self.made.folder.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspaces {
    /// Removes what an earlier engine left in `folder`, makes it, and removes what is idle from now on. All clones together
    /// take no more than `disk` bytes.
    pub fn start(folder: Option<&Path>, disk: u64) -> Result<Arc<Self>> {
        let folder = folder.map(prepared).transpose()?;
        let workspaces = Arc::new(Self { folder, disk, state: Mutex::default(), changed: Condvar::new() });
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

    /// Waits until nobody else clones the same and there is room; `None` when `is_unwanted` says so.
    pub fn begin(&self, wanted: Wanted<'_>, is_unwanted: impl Fn() -> bool) -> Result<Option<Begun<'_>>> {
        let until = Instant::now() + Duration::from_secs(u64::from(wanted.patience));
        let mut state = self.lock();
        loop {
            if let Some(commit) = wanted.commit
                && let Some(kept) = state.kept.iter().find(|k| k.location == wanted.location && k.made.commit == commit)
            {
                return Ok(Some(Begun::Kept(kept.made.clone().hold())));
            }
            let same = |m: &Making| m.location == wanted.location && m.name.as_deref() == wanted.name();
            let busy = state.making.iter().any(same);
            if !busy && let Some(gone) = state.free_up(wanted, self.disk) {
                state.number += 1;
                let number = state.number;
                let (location, name) = (wanted.location.to_owned(), wanted.name().map(str::to_owned));
                state.making.push(Making { number, location, name, bytes: wanted.bytes });
                drop(state);
                let reserved = Reserved { workspaces: self, number };
                // Removes the folders, outside of the lock.
                drop(gone);
                return Ok(Some(Begun::New(Room { folder: Arc::new(self.fresh()?), reserved })));
            }
            if Instant::now() >= until {
                return Err(if busy { still_cloned(wanted) } else { self.no_room(wanted, state.in_use()) });
            }
            // Who lets go of a clone that is kept tells nobody.
            state = self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
            if is_unwanted() {
                return Ok(None);
            }
        }
    }

    /// A new folder.
    fn fresh(&self) -> Result<Folder> {
        let Some(folder) = &self.folder else {
            return Err(Error::new(Kind::NotReady, "the engine has no folder for clones of repositories")
                .with_hint("The server's engine has one; to try the engine alone give it --workspaces DIR."));
        };
        let closed = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("clone-").rand_bytes(NAME).permissions(closed).tempdir_in(folder);
        let place = made.map_err(|e| Error::io(&folder.to_string_lossy(), &e))?;
        Ok(Folder { place, used: Mutex::new(Instant::now()) })
    }

    /// The clones of a repository, newest first.
    pub fn of(&self, location: &str) -> Vec<Made> {
        let state = self.lock();
        let of = state.kept.iter().rev().filter(|k| k.location == location).take(MAX_KNOWN);
        of.map(|k| k.made.clone()).collect()
    }

    fn no_room(&self, wanted: Wanted<'_>, used: u64) -> Error {
        let Wanted { location, patience, bytes, .. } = wanted;
        let [disk, used, bytes] = [self.disk, used, bytes].map(|bytes| bytes.div_ceil(1 << 20));
        let message = format!("there was no room for a clone of \"{location}\" within {patience} s");
        Error::new(Kind::NoResources, message)
            .with_detail(format!(
                "It may take {bytes} MB; clones that are in use or being made may take {used} MB of the {disk} MB for all."
            ))
            .with_hint("Run the sync again later, lower \"max_download_bytes\" in the \"limits\" of the source's options, or raise pg_rag.clone_disk_limit.")
    }

    /// Removes clones that nobody has used for so long.
    fn sweep(&self, idle: Duration) {
        let gone: Vec<Kept> = self.lock().kept.extract_if(.., |k| k.is_free() && k.used().elapsed() >= idle).collect();
        drop(gone); // removes the folders, outside of the lock
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn still_cloned(wanted: Wanted<'_>) -> Error {
    let Wanted { location, patience, .. } = wanted;
    Error::new(Kind::InUse, format!("another sync has been cloning \"{location}\" for more than {patience} s"))
        .with_hint("Run the sync again when it is done.")
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

/// Bytes of everything beneath a folder; an entry without content takes room, too. A folder that was closed is opened: nothing
/// hides behind that.
pub fn size(folder: &Path) -> u64 {
    let listed = std::fs::read_dir(folder).or_else(|e| match e.kind() {
        std::io::ErrorKind::PermissionDenied => {
            std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            std::fs::read_dir(folder)
        }
        _ => Err(e),
    });
    let sizes = listed.into_iter().flatten().flatten().filter_map(|entry| {
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
        let workspaces = Workspaces::start(Some(&parent.path().join("clones")), 100).expect("starts");
        (parent, workspaces)
    }

    fn there(workspaces: &Workspaces) -> usize {
        std::fs::read_dir(workspaces.folder.as_ref().expect("folder")).expect("lists").count()
    }

    fn wanted<'a>(location: &'a str, reference: &'a str, bytes: u64) -> Wanted<'a> {
        Wanted { location, commit: None, reference: Some(reference), bytes, patience: 0 }
    }

    fn begin<'a>(workspaces: &'a Workspaces, wanted: Wanted<'_>) -> Result<Room<'a>> {
        match workspaces.begin(wanted, || false)? {
            Some(Begun::New(room)) => Ok(room),
            other => panic!("nothing new: {other:?}"),
        }
    }

    fn keep(workspaces: &Workspaces, location: &str, commit: &str, bytes: u64) -> Held {
        let wanted = wanted(location, commit, bytes);
        begin(workspaces, wanted).expect("room").keep(wanted, commit.to_owned(), bytes)
    }

    fn commits(workspaces: &Workspaces, location: &str) -> Vec<String> {
        workspaces.of(location).into_iter().map(|made| made.commit).collect()
    }

    #[test]
    fn what_an_earlier_engine_left_is_gone_and_others_cannot_look_in() {
        let parent = tempfile::tempdir().expect("folder");
        let folder = parent.path().join("clones");
        std::fs::create_dir_all(folder.join("clone-old/objects")).expect("folders");
        std::fs::write(folder.join("clone-old/objects/pack"), "x").expect("file");
        let workspaces = Workspaces::start(Some(&folder), 100).expect("starts");
        assert_eq!(there(&workspaces), 0);
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        let [one, two] = ["1", "2"].map(|name| begin(&workspaces, wanted("https://a/", name, 1)).expect("room"));
        assert_eq!((mode(&folder), mode(one.path())), (0o700, 0o700));
        assert_ne!(one.path(), two.path());
        // Whatever a worker has done to it.
        std::fs::create_dir_all(one.path().join("objects/pack")).expect("folders");
        std::fs::set_permissions(one.path(), Permissions::from_mode(0o000)).expect("closed");
        drop((one, two));
        assert_eq!(there(&workspaces), 0);
        let nowhere = Workspaces::start(None, 100).expect("starts");
        assert_eq!(begin(&nowhere, wanted("https://a/", "1", 1)).map_err(|e| e.kind).err(), Some(Kind::NotReady));
        assert_eq!(nowhere.lock().bytes(), 0);
    }

    #[test]
    fn a_folder_that_was_closed_is_removed_all_the_same() {
        let parent = tempfile::tempdir().expect("folder");
        let folder = parent.path().join("clones");
        let closed = folder.join("clone-old/objects/closed");
        std::fs::create_dir_all(closed.join("within")).expect("folders");
        for place in [closed.as_path(), &folder] {
            std::fs::set_permissions(place, Permissions::from_mode(0o000)).expect("closed");
        }
        let workspaces = Workspaces::start(Some(&folder), 100).expect("starts");
        assert_eq!(there(&workspaces), 0);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let parent = tempfile::tempdir().expect("folder");
        let (elsewhere, folder) = (parent.path().join("elsewhere"), parent.path().join("clones"));
        std::fs::create_dir(&elsewhere).expect("folder");
        std::fs::write(elsewhere.join("precious"), "x").expect("file");
        std::os::unix::fs::symlink(&elsewhere, &folder).expect("link");
        let _refused_or_replaced = Workspaces::start(Some(&folder), 100);
        assert!(elsewhere.join("precious").exists());
    }

    #[test]
    fn a_clone_is_found_by_its_repository_and_commit() {
        let (_parent, workspaces) = started();
        let first = keep(&workspaces, "https://a/", "1", 1).found_by(Some("main".into()));
        assert_eq!((first.workspace.commit.as_str(), first.workspace.reference.as_deref()), ("1", Some("main")));
        keep(&workspaces, "https://a/", "2", 1);
        assert_eq!(commits(&workspaces, "https://a/"), ["2", "1"]);
        assert!(commits(&workspaces, "https://b/").is_empty());
        let again = Wanted { commit: Some("1"), ..wanted("https://a/", "main", 1) };
        match workspaces.begin(again, || false).expect("begins") {
            Some(Begun::Kept(held)) => assert_eq!(held.workspace.folder, first.workspace.folder),
            other => panic!("not the one that is there: {other:?}"),
        }
        begin(&workspaces, Wanted { commit: Some("3"), ..again }).expect("another commit");
        begin(&workspaces, Wanted { location: "https://b/", ..again }).expect("another repository");
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
    fn the_longest_unused_makes_room_and_those_of_the_repository_last() {
        let (_parent, workspaces) = started();
        let held = keep(&workspaces, "https://a/", "1", 40);
        for commit in ["2", "3", "4"] {
            drop(keep(&workspaces, "https://a/", commit, 20));
        }
        // Looking is not using.
        let of_a = workspaces.of("https://a/");
        drop(of_a.iter().find(|made| made.commit == "2").cloned().map(Made::hold));
        assert!(begin(&workspaces, wanted("https://b/", "main", 20)).is_err(), "those that are looked at stay");
        drop(of_a);
        drop(begin(&workspaces, wanted("https://b/", "main", 20)).expect("room"));
        assert_eq!(commits(&workspaces, "https://a/"), ["4", "2", "1"]);
        drop(keep(&workspaces, "https://b/", "5", 20));
        drop(begin(&workspaces, wanted("https://a/", "main", 20)).expect("room"));
        assert_eq!(commits(&workspaces, "https://a/"), ["4", "2", "1"]);
        assert!(commits(&workspaces, "https://b/").is_empty());
        // What is held leaves no room for more than this, and nothing goes for nothing.
        let error = begin(&workspaces, wanted("https://a/", "main", 61)).expect_err("no room");
        assert_eq!((error.kind, there(&workspaces)), (Kind::NoResources, 3));
        drop(begin(&workspaces, wanted("https://a/", "main", 60)).expect("room"));
        assert_eq!(there(&workspaces), 1, "what is held");
        drop(held);
    }

    #[test]
    fn what_is_being_made_counts_with_all_that_it_may_become() {
        let (_parent, workspaces) = started();
        let asked = wanted("https://a/", "main", 70);
        let room = begin(&workspaces, asked).expect("room");
        let error = begin(&workspaces, wanted("https://b/", "main", 31)).expect_err("no room");
        assert_eq!(error.message, "there was no room for a clone of \"https://b/\" within 0 s");
        begin(&workspaces, wanted("https://b/", "main", 30)).expect("room");
        // It turned out to be small.
        let held = room.keep(asked, "1".to_owned(), 10);
        begin(&workspaces, wanted("https://b/", "main", 90)).expect("room");
        drop(held);
        begin(&workspaces, wanted("https://b/", "main", 100)).expect("the place of the other");
    }

    #[test]
    fn who_wants_the_same_waits_and_is_no_worse_off_when_it_fails() {
        let (_parent, workspaces) = started();
        let asked = wanted("https://a/", "main", 10);
        let room = begin(&workspaces, asked).expect("room");
        assert_eq!(begin(&workspaces, asked).map_err(|e| e.kind).err(), Some(Kind::InUse));
        begin(&workspaces, wanted("https://a/", "next", 10)).expect("another branch");
        assert!(workspaces.begin(Wanted { patience: 60, ..asked }, || true).expect("begins").is_none());
        std::thread::scope(|scope| {
            let started = Instant::now();
            let waiting = scope.spawn(|| begin(&workspaces, Wanted { patience: 60, ..asked }).map(drop));
            std::thread::sleep(Duration::from_millis(300));
            assert!(!waiting.is_finished());
            drop(room); // the first one failed
            assert_eq!(waiting.join().expect("waits"), Ok(()));
            assert!(started.elapsed() < Duration::from_secs(30));
        });
        assert_eq!((there(&workspaces), workspaces.lock().bytes()), (0, 0));
    }

    #[test]
    fn a_folder_is_measured_with_all_beneath_it() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("deep")).expect("folder");
        std::fs::write(folder.path().join("a"), [0; 10]).expect("file");
        std::fs::write(folder.path().join("deep/b"), [0; 20]).expect("file");
        std::os::unix::fs::symlink("/", folder.path().join("out")).expect("link");
        std::fs::set_permissions(folder.path().join("deep"), Permissions::from_mode(0o000)).expect("closed");
        assert_eq!(size(folder.path()), 31 + 4 * ENTRY);
    }
}
