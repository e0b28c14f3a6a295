// SPDX-License-Identifier: PostgreSQL

//! A watch over work that cannot be interrupted.
//!
//! Owns noticing that a micro-batch never ends (a native library in a loop, a lock that nobody gives back) and ending the
//! engine then, so that the supervisor starts another: a thread cannot be killed, and every request of its lane would
//! wait for ever. Time is counted in ticks of the watching thread and not by the clock, so that an engine that was
//! stopped or a machine that slept is not taken for a stuck one. While nothing runs, the watching thread sleeps.

use crate::os;
use rag_core::{Error, Kind, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

/// How often is looked while work goes on; a shorter limit is looked at more often.
const TICK: Duration = Duration::from_secs(1);

/// Says whether work is going on, and which.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Odd while a piece of work runs, and another number for each.
    count: AtomicU64,
    watcher: OnceLock<Thread>,
}

impl Pulse {
    /// A pulse that is watched from now on: work that runs longer than `longest` ends this process.
    pub fn watched(name: &str, longest: Duration) -> Result<Arc<Self>> {
        let pulse = Arc::new(Self::default());
        let (watched, label) = (pulse.clone(), name.to_owned());
        let watch = move || {
            watched.wait_until_stuck(longest);
            let seconds = longest.as_secs();
            crate::log(&format!("the {label} lane ran one micro-batch for more than {seconds} s: ends"));
            os::end_self();
        };
        let started = std::thread::Builder::new().name(format!("{name} watch")).spawn(watch);
        let watcher =
            started.map_err(|e| Error::new(Kind::OutOfMemory, format!("could not watch the {name} lane: {e}")))?;
        let _ = pulse.watcher.set(watcher.thread().clone());
        Ok(pulse)
    }

    /// Does one piece of work.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Work that panics has ended, too.
        struct End<'a>(&'a AtomicU64);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        let _end = End(&self.count);
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
        work()
    }

    fn wait_until_stuck(&self, longest: Duration) {
        let tick = TICK.min(longest / 8).max(Duration::from_millis(1));
        let (mut seen, mut running) = (0, Duration::ZERO);
        while running <= longest {
            if self.count.load(Ordering::SeqCst).is_multiple_of(2) {
                // Work that begins in between has left a permit, and this returns at once.
                std::thread::park();
                continue;
            }
            std::thread::sleep(tick);
            let now = self.count.load(Ordering::SeqCst);
            running = if now == seen && !now.is_multiple_of(2) { running + tick } else { Duration::ZERO };
            seen = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONGEST: Duration = Duration::from_millis(200);

    #[test]
    fn long_work_is_noticed_and_much_short_work_is_not() {
        let pulse = Arc::new(Pulse::default());
        let watching = {
            let pulse = pulse.clone();
            std::thread::spawn(move || pulse.wait_until_stuck(LONGEST))
        };
        pulse.watcher.set(watching.thread().clone()).expect("first");
        let started = Instant::now();
        while started.elapsed() < 3 * LONGEST {
            pulse.during(|| std::thread::sleep(LONGEST / 10));
        }
        let panicked = std::panic::AssertUnwindSafe(|| pulse.during(|| std::panic::resume_unwind(Box::new("ends"))));
        assert!(std::panic::catch_unwind(panicked).is_err());
        std::thread::sleep(2 * LONGEST);
        assert!(!watching.is_finished(), "short work, work that panicked and idleness are not stuck");
        pulse.during(|| std::thread::sleep(4 * LONGEST));
        watching.join().expect("noticed");
    }
}
