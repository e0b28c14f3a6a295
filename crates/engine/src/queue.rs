// SPDX-License-Identifier: PostgreSQL

//! Two lanes of waiting work.
//!
//! Owns who is served next: each lane has its own worker thread, and the bulk worker asks [`Queue::give_way`] before
//! every micro-batch, so that a query shares the processor with at most one micro-batch in flight. It must not know
//! what the work is.

use rag_core::protocol::Priority;
use rag_core::{Error, Kind, Result};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most requests that wait in one lane; more means that callers wait for minutes, and an error serves them better.
const LANE_LIMIT: usize = 4096;

/// The queue.
#[derive(Debug)]
pub struct Queue<T> {
    lanes: Mutex<Lanes<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Lanes<T> {
    interactive: VecDeque<T>,
    bulk: VecDeque<T>,
    /// Whether the interactive worker has work in hand.
    interactive_busy: bool,
}

impl<T> Lanes<T> {
    fn lane(&mut self, priority: Priority) -> &mut VecDeque<T> {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Bulk => &mut self.bulk,
        }
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let lanes = Lanes { interactive: VecDeque::new(), bulk: VecDeque::new(), interactive_busy: false };
        Self { lanes: Mutex::new(lanes), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, Lanes<T>> {
        // No code panics while it holds the lock; if it ever does, the lanes are still whole.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts work at the end of its lane.
    pub fn push(&self, priority: Priority, work: T) -> Result<()> {
        let mut lanes = self.lock();
        let lane = lanes.lane(priority);
        if lane.len() >= LANE_LIMIT {
            return Err(Error::new(Kind::LimitExceeded, format!("{LANE_LIMIT} requests wait for the engine already"))
                .with_hint("Retry later, or run fewer syncs at once."));
        }
        lane.push_back(work);
        self.changed.notify_all();
        Ok(())
    }

    /// Everything that waits in a lane. Waits up to `patience` for the first.
    pub fn take(&self, priority: Priority, patience: Duration) -> VecDeque<T> {
        let deadline = Instant::now() + patience;
        let mut lanes = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !lanes.lane(priority).is_empty() || left.is_zero() {
                let taken = std::mem::take(lanes.lane(priority));
                if priority == Priority::Interactive {
                    lanes.interactive_busy = !taken.is_empty();
                    self.changed.notify_all();
                }
                return taken;
            }
            if priority == Priority::Interactive && lanes.interactive_busy {
                lanes.interactive_busy = false;
                self.changed.notify_all();
            }
            lanes = self.changed.wait_timeout(lanes, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What came into a lane meanwhile, without waiting.
    pub fn take_more(&self, priority: Priority) -> VecDeque<T> {
        std::mem::take(self.lock().lane(priority))
    }

    /// Waits while interactive work waits or runs, but at most `patience`: bulk work slows down under a steady stream
    /// of queries, it does not stop.
    pub fn give_way(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut lanes = self.lock();
        while lanes.interactive_busy || !lanes.interactive.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            lanes = self.changed.wait_timeout(lanes, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Requests that wait in both lanes.
    pub fn len(&self) -> usize {
        let lanes = self.lock();
        lanes.interactive.len() + lanes.bulk.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const SOON: Duration = Duration::from_millis(20);

    #[test]
    fn lanes_are_apart_and_in_order() {
        let queue = Queue::default();
        for (priority, work) in [(Priority::Bulk, 1), (Priority::Interactive, 2), (Priority::Bulk, 3)] {
            queue.push(priority, work).expect("room");
        }
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.take(Priority::Interactive, SOON), [2]);
        assert_eq!(queue.take(Priority::Bulk, SOON), [1, 3]);
        assert!(queue.take(Priority::Bulk, SOON).is_empty());
    }

    #[test]
    fn bulk_gives_way_to_interactive_until_it_is_done_or_patience_ends() {
        let queue = Arc::new(Queue::default());
        queue.push(Priority::Interactive, 1).expect("room");
        let started = Instant::now();
        queue.give_way(SOON);
        assert!(started.elapsed() >= SOON, "waits while one waits");
        assert_eq!(queue.take(Priority::Interactive, SOON), [1]);
        let done = Arc::new(AtomicBool::new(false));
        let bulk = {
            let (queue, done) = (queue.clone(), done.clone());
            std::thread::spawn(move || {
                queue.give_way(Duration::from_secs(60));
                done.load(Ordering::SeqCst)
            })
        };
        std::thread::sleep(SOON);
        done.store(true, Ordering::SeqCst);
        assert!(queue.take(Priority::Interactive, SOON).is_empty()); // asks for more: the first is finished
        assert!(bulk.join().expect("bulk"), "waits while one runs");
    }

    #[test]
    fn a_full_lane_refuses() {
        let queue = Queue::default();
        for n in 0..LANE_LIMIT {
            queue.push(Priority::Bulk, n).expect("room");
        }
        assert_eq!(queue.push(Priority::Bulk, 0).map_err(|e| e.kind), Err(Kind::LimitExceeded));
        queue.push(Priority::Interactive, 0).expect("the other lane has room");
    }
}
