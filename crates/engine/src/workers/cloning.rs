// SPDX-License-Identifier: PostgreSQL

//! Cloning a repository that is at a URL.
//!
//! Owns when it is cloned, and by whom. A listing asks the server where the repository is now, and what was cloned before
//! serves again if that is still there; documents are read from the clone that the listing left, and it is made again, at that
//! very commit, if it is gone. Two who want the same at once get one clone ([`workspaces`]). A clone worker can talk to the network and write, and so it gets one folder, for one clone, and
//! ends with it; whoever reads the clone can do neither.
//!
//! What a worker that was taken over writes is not what it received, so the folder is measured while it works.

use super::{Lease, Pool, Turn, out_of_turn};
use crate::exchange::{Heard, Silence};
use crate::os;
use crate::starter::{Fit, Worker};
use crate::task::{Said, Task};
use crate::workspaces::{self, Begun, Held, Wanted};
use rag_core::source::SourceSpec;
use rag_core::{Error, Kind, Result};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

/// How often the size of a clone is looked at while it is made.
const MEASURE: Duration = Duration::from_millis(500);

impl Pool {
    /// The clone of a source's repository at one commit; `None` when the peer has gone.
    pub fn clone_at(&self, source: &SourceSpec, commit: &str, peer: &UnixStream) -> Result<Option<Held>> {
        self.clone(source, Some(commit), peer)
    }

    /// The clone of a source's repository at the commit that its options name now; `None` when the peer has gone.
    pub(super) fn clone_now(&self, source: &SourceSpec, peer: &UnixStream) -> Result<Option<Held>> {
        self.clone(source, None, peer)
    }

    fn clone(&self, source: &SourceSpec, commit: Option<&str>, peer: &UnixStream) -> Result<Option<Held>> {
        // A host that was allowed when the clone was made may not be any more.
        rag_ingest::check_remote(source)?;
        let limits = &source.options.limits;
        limits.within_clone_disk(self.options.clone_disk)?;
        let (most, seconds) = (limits.clone_bytes(), limits.max_download_seconds);
        let (location, reference) = (source.location.as_str(), source.options.reference.as_deref());
        let wanted = Wanted { location, commit, reference, bytes: most, patience: seconds };
        let room = match self.workspaces.begin(wanted, || os::is_gone(peer))? {
            None => return Ok(None),
            Some(Begun::Kept(held)) => return Ok(Some(held)),
            Some(Begun::New(room)) => room,
        };
        // What somebody else has cloned meanwhile is among them.
        let known = self.workspaces.of(location);
        let fit = Fit::Clone { folder: room.path().to_string_lossy().into_owned(), file_size: most };
        let Some(mut lease) = self.borrow(Turn::List, fit, peer)? else { return Ok(None) };
        let task = Task::Clone {
            source: source.clone(),
            commit: commit.map(str::to_owned),
            known: known.iter().map(|made| made.commit.clone()).collect(),
        };
        let heard = lease.ask_measured(&task, Duration::from_secs(u64::from(seconds)), room.path(), most, peer);
        // Its worker ends before the folder is measured for good: nobody writes after that.
        let said = match heard {
            Ok(said) => {
                drop(lease);
                Ok(said)
            }
            Err(silence) => match self.why_silent(lease, silence, &task, || task.too_slow(seconds)) {
                Some(error) => Err(error),
                None => return Ok(None),
            },
        };
        let size = workspaces::size(room.path());
        match said {
            _ if size > most => {
                Err(Error::new(Kind::LimitExceeded, format!("{} took more than {most} bytes of disk", task.doing()))
                    .with_hint("Raise \"max_download_bytes\" in the \"limits\" of the source's options."))
            }
            Ok(said) if task.is_answered_by(&said) => match said {
                Said::Cloned { commit, reference, known: true } => {
                    let made = known.into_iter().find(|made| made.commit == commit);
                    made.map(|made| Some(made.hold().found_by(reference))).ok_or_else(|| out_of_turn(&task))
                }
                Said::Cloned { commit, reference, .. } => Ok(Some(room.keep(wanted, commit, size).found_by(reference))),
                _ => Err(out_of_turn(&task)),
            },
            Ok(Said::Failed(error)) => Err(error),
            Ok(_) => Err(out_of_turn(&task)),
            Err(error) => Err(error),
        }
    }
}

impl Lease<'_> {
    /// Has a task done whose worker is killed once `folder` has more than `most` bytes.
    fn ask_measured(
        &mut self,
        task: &Task,
        limit: Duration,
        folder: &Path,
        most: u64,
        peer: &UnixStream,
    ) -> Heard<Said> {
        let pid = self.worker.as_ref().map(Worker::pid);
        std::thread::scope(|scope| {
            let (done, waiting) = sync_channel::<()>(0);
            let measure = move || {
                while waiting.recv_timeout(MEASURE) == Err(RecvTimeoutError::Timeout) {
                    if workspaces::size(folder) > most {
                        pid.into_iter().for_each(os::kill);
                    }
                }
            };
            os::spawn_scoped(scope, Builder::new().name("measure".into()), measure).map_err(Silence::Refused)?;
            let heard = self.ask(task, limit, peer);
            drop(done);
            heard
        })
    }
}
