// SPDX-License-Identifier: PostgreSQL

//! Cloning a repository that is at a URL.
//!
//! Owns when it is cloned, and by whom. A listing asks the server where the repository is now, and what was cloned before
//! serves again if that is still there; documents are read from the clone that the listing left, and it is made again, at that
//! very commit, if it is gone. A clone worker can talk to the network and write, and so it gets one folder, for one clone, and
//! ends with it; whoever reads the clone can do neither.
//!
//! What a worker that was taken over writes is not what it received, so the folder is measured while it works.

use super::{Lease, Pool, Turn, out_of_turn};
use crate::exchange::{Heard, Silence};
use crate::os;
use crate::starter::{Fit, Worker};
use crate::task::{Said, Task};
use crate::workspaces::{self, Held};
use rag_core::source::SourceSpec;
use rag_core::{Error, Kind, Result};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes of a clone beyond those that were received: the index of as many objects as it may have.
const MAX_INDEX: u64 = 512 << 20;

/// How often the size of a clone is looked at while it is made.
const MEASURE: Duration = Duration::from_millis(500);

impl Pool {
    /// The clone of a source's repository at one commit; `None` when the peer has gone.
    pub fn clone_at(&self, source: &SourceSpec, commit: &str, peer: &UnixStream) -> Result<Option<Held>> {
        // A host that was allowed when the clone was made may not be any more.
        rag_ingest::check_remote(source)?;
        match self.workspaces.find(&source.location, commit) {
            Some(held) => Ok(Some(held)),
            None => self.clone(source, Some(commit), None, peer),
        }
    }

    /// The clone of a source's repository at the commit that its options name now; `None` when the peer has gone.
    pub(super) fn clone_now(&self, source: &SourceSpec, peer: &UnixStream) -> Result<Option<Held>> {
        rag_ingest::check_remote(source)?;
        self.clone(source, None, self.workspaces.latest(&source.location), peer)
    }

    fn clone(
        &self,
        source: &SourceSpec,
        commit: Option<&str>,
        known: Option<Held>,
        peer: &UnixStream,
    ) -> Result<Option<Held>> {
        let limits = &source.options.limits;
        let most = limits.max_download_bytes.saturating_add(MAX_INDEX);
        let folder = self.workspaces.fresh()?;
        let fit = Fit::Clone { folder: folder.path().to_string_lossy().into_owned(), file_size: most };
        let Some(mut lease) = self.borrow(Turn::List, fit, peer)? else { return Ok(None) };
        let task = Task::Clone {
            source: source.clone(),
            commit: commit.map(str::to_owned),
            known: known.as_ref().map(|held| held.workspace.commit.clone()),
        };
        let seconds = limits.max_download_seconds;
        let heard = lease.ask_measured(&task, Duration::from_secs(u64::from(seconds)), folder.path(), most, peer);
        let size = workspaces::size(folder.path());
        match heard {
            _ if size > most => {
                Err(Error::new(Kind::LimitExceeded, format!("{} took more than {most} bytes of disk", task.doing()))
                    .with_hint("Raise \"max_download_bytes\" in the \"limits\" of the source's options."))
            }
            Ok(said) if task.is_answered_by(&said) => match (said, known) {
                (Said::Cloned { known: true, reference, .. }, Some(held)) => Ok(Some(held.found_by(reference))),
                (Said::Cloned { commit, reference, .. }, _) => {
                    Ok(Some(self.workspaces.keep(folder, &source.location, commit, size).found_by(reference)))
                }
                _ => Err(out_of_turn(&task)),
            },
            Ok(Said::Failed(error)) => Err(error),
            Ok(_) => Err(out_of_turn(&task)),
            Err(Silence::Unwanted) => Ok(None),
            Err(Silence::Refused(error)) => Err(error),
            Err(Silence::TimedOut) => Err(task.too_slow(seconds)),
            Err(Silence::Ended(why)) => Err(self.obituary(lease, &why, &task.doing())),
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
            scope.spawn(move || {
                while waiting.recv_timeout(MEASURE) == Err(RecvTimeoutError::Timeout) {
                    if workspaces::size(folder) > most {
                        pid.into_iter().for_each(os::kill);
                    }
                }
            });
            let heard = self.ask(task, limit, peer);
            drop(done);
            heard
        })
    }
}
