// SPDX-License-Identifier: PostgreSQL

//! The threads that run networks.
//!
//! Owns one thread for each lane of the queue, with sessions of its own: the interactive one, and a bulk one at low
//! priority. Both work in micro-batches and take turns among their requests, so that a request of ten thousand texts
//! does not hold up one of three; short requests that wait together run together. Before each micro-batch, requests
//! whose peer has gone are dropped. It must not tokenise: the connection's thread did that.

use crate::models::{Key, Model, Models};
use crate::os;
use crate::pulse::Pulse;
use crate::queue::Queue;
use rag_core::protocol::Priority;
use rag_core::{Error, Result};
use rag_model::embed::plan;
use rag_model::session::Settings;
use rag_model::{Encoded, Encoder};
use std::collections::{HashMap, VecDeque};
use std::os::unix::net::UnixStream;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Tokens of one micro-batch, padding counted, and of requests that are merged into one. Two full windows: in larger
/// batches the activations leave the processor's cache and each text takes longer, besides keeping a query waiting.
pub const MICRO_BATCH: usize = 512;

/// Longest that bulk work waits for queries before it goes on beside them.
const PATIENCE: Duration = Duration::from_millis(50);

/// After so long without work, memory that batches left behind is returned.
const PAUSE: Duration = Duration::from_secs(1);

/// After so much longer, a lane's sessions are closed and their memory returned.
const IDLE: Duration = Duration::from_secs(300);

/// Seconds that one micro-batch may run, unless the command line says otherwise. A large model on a slow and busy
/// machine takes a few; one that takes two minutes will not end.
pub const LONGEST_BATCH: u64 = 120;

/// Texts of one request.
#[derive(Debug)]
pub struct Job {
    model: Arc<Model>,
    texts: Vec<Encoded>,
    peer: Option<Arc<UnixStream>>,
    reply: SyncSender<Result<Vec<Vec<f32>>>>,
}

impl Job {
    /// A job and the channel on which its vectors will come; the channel closes without any when `peer` goes away.
    pub fn new(
        model: Arc<Model>,
        texts: Vec<Encoded>,
        peer: Option<Arc<UnixStream>>,
    ) -> (Self, Receiver<Result<Vec<Vec<f32>>>>) {
        let (reply, receiver) = sync_channel(1);
        (Self { model, texts, peer, reply }, receiver)
    }
}

/// A job that is being worked on.
#[derive(Debug)]
struct Active {
    job: Job,
    batches: VecDeque<Vec<usize>>,
    vectors: Vec<Vec<f32>>,
}

impl Active {
    fn new(job: Job) -> Self {
        let lengths: Vec<usize> = job.texts.iter().map(|t| t.ids.len()).collect();
        let batches = plan(&lengths, MICRO_BATCH, job.model.alone).into();
        Self { vectors: vec![Vec::new(); lengths.len()], batches, job }
    }

    fn is_wanted(&self) -> bool {
        !self.job.peer.as_ref().is_some_and(|peer| os::is_gone(peer))
    }

    /// Rows and longest row of the next batch.
    fn next_size(&self) -> (usize, usize) {
        let batch = self.batches.front();
        let longest = batch.and_then(|b| b.iter().map(|i| self.job.texts[*i].ids.len()).max());
        (batch.map_or(0, Vec::len), longest.unwrap_or(0))
    }
}

/// Starts the thread of one lane, and a watch over it that ends this process when a micro-batch runs longer than
/// `longest`.
pub fn start(
    lane: Priority,
    queue: Arc<Queue<Job>>,
    models: Arc<Models>,
    threads: usize,
    longest: Duration,
) -> Result<()> {
    let name = match lane {
        Priority::Interactive => "interactive",
        Priority::Bulk => "bulk",
    };
    let pulse = Pulse::watched(name, longest)?;
    let run = move || {
        if lane == Priority::Bulk {
            os::lower_priority();
        }
        Lane { lane, queue, models, threads, pulse, encoders: HashMap::new(), active: VecDeque::new() }.run();
    };
    match std::thread::Builder::new().name(name.into()).spawn(run) {
        Ok(_) => Ok(()),
        Err(e) => Err(Error::new(rag_core::Kind::OutOfMemory, format!("could not start the {name} thread: {e}"))),
    }
}

struct Lane {
    lane: Priority,
    queue: Arc<Queue<Job>>,
    models: Arc<Models>,
    threads: usize,
    pulse: Arc<Pulse>,
    encoders: HashMap<Key, Encoder>,
    active: VecDeque<Active>,
}

impl Lane {
    fn run(mut self) {
        loop {
            let new = if self.active.is_empty() { self.wait() } else { self.queue.take_more(self.lane) };
            self.active.extend(new.into_iter().map(Active::new));
            if self.lane == Priority::Bulk {
                self.queue.give_way(PATIENCE);
            }
            // Dropping a job closes its channel, which tells the connection's thread.
            self.active.retain(Active::is_wanted);
            let Some(first) = self.active.pop_front() else { continue };
            let together = self.gather(first);
            self.step(together);
        }
    }

    /// Waits for work, and gives memory back meanwhile.
    fn wait(&mut self) -> VecDeque<Job> {
        let new = self.queue.take(self.lane, PAUSE);
        if !new.is_empty() {
            return new;
        }
        os::return_memory();
        let new = self.queue.take(self.lane, IDLE);
        if !new.is_empty() {
            return new;
        }
        self.encoders.clear();
        os::return_memory();
        loop {
            // Nothing is left to give back: this wakes once an hour.
            let new = self.queue.take(self.lane, Duration::from_secs(3600));
            if !new.is_empty() {
                return new;
            }
        }
    }

    /// The job whose turn it is, and those whose next batch fits beside its.
    fn gather(&mut self, first: Active) -> Vec<Active> {
        let (mut rows, mut longest) = first.next_size();
        let mut together = vec![first];
        if together[0].job.model.alone {
            return together;
        }
        let mut at = 0;
        while at < self.active.len() && rows * longest < MICRO_BATCH {
            let other = &self.active[at];
            let (more, length) = other.next_size();
            let fits = other.job.model.key == together[0].job.model.key
                && (rows + more) * longest.max(length) <= MICRO_BATCH
                && longest.max(length) <= 2 * longest.min(length);
            if !fits {
                at += 1;
            } else if let Some(other) = self.active.remove(at) {
                together.push(other);
                (rows, longest) = (rows + more, longest.max(length));
            }
        }
        together
    }

    /// Runs one micro-batch; jobs that are not finished go to the end of the line.
    fn step(&mut self, mut together: Vec<Active>) {
        let batches: Vec<Vec<usize>> = together.iter_mut().map(|a| a.batches.pop_front().unwrap_or_default()).collect();
        let texts: Vec<&Encoded> =
            together.iter().zip(&batches).flat_map(|(a, batch)| batch.iter().map(|i| &a.job.texts[*i])).collect();
        let model = together[0].job.model.clone();
        // A panic must not end the lane: every later request would wait forever.
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| self.embed(&model, &texts)))
            .unwrap_or_else(|_| Err(Error::internal("inference panicked")));
        match result {
            Ok(vectors) => {
                let mut vectors = vectors.into_iter();
                for (mut active, batch) in together.into_iter().zip(batches) {
                    for (index, vector) in batch.into_iter().zip(vectors.by_ref()) {
                        active.vectors[index] = vector;
                    }
                    if active.batches.is_empty() {
                        let _ = active.job.reply.send(Ok(active.vectors));
                    } else {
                        self.active.push_back(active);
                    }
                }
            }
            Err(error) => {
                // A session that failed once is not trusted again.
                self.encoders.remove(&model.key);
                for active in together {
                    let _ = active.job.reply.send(Err(error.clone()));
                }
            }
        }
    }

    fn embed(&mut self, model: &Model, texts: &[&Encoded]) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if !self.encoders.contains_key(&model.key) {
            let settings = Settings { threads: self.threads, arena: false };
            let runtime = self.models.runtime()?;
            let encoder = Encoder::open(&runtime, &model.onnx, &model.spec, model.tokenizer.pad(), settings)?;
            self.encoders.insert(model.key.clone(), encoder);
        }
        // Loading is not timed: a large file on a slow disk may take what it takes.
        match self.encoders.get_mut(&model.key) {
            Some(encoder) => self.pulse.during(|| {
                #[cfg(debug_assertions)]
                crate::faults::of_inference(self.lane == Priority::Bulk);
                encoder.embed(texts)
            }),
            None => Err(Error::internal("a session vanished")),
        }
    }
}
