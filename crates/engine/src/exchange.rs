// SPDX-License-Identifier: PostgreSQL

//! One task and its answer over the socket of a worker.
//!
//! Owns blocking input and output that ends with a deadline, when whoever asked has gone, or when the worker says more
//! than it may. A worker is taken to be hostile here: a parser that was taken over writes what it likes. So memory is
//! taken as bytes arrive and never for a length that was only stated, and a frame over the bound is not read at all.

use crate::os;
use crate::task::{Said, Task};
use rag_core::protocol::{MAX_FRAME, decode, encode};
use rag_core::{Error, Kind};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How often a waiting thread looks whether its peer is still there; the stream's time limits must be this.
pub const TICK: Duration = Duration::from_millis(100);

/// Memory that is taken before the first byte of a frame is there.
const FIRST_PIECE: usize = 64 << 10;

/// Why a worker gave no answer.
#[derive(Debug)]
pub enum Silence {
    /// Its time is up.
    TimedOut,
    /// Whoever asked has gone.
    Unwanted,
    /// Its end of the socket is closed; its exit status says why.
    Ended(String),
    /// It said something that it must not say.
    Refused(Error),
}

/// What an exchange returns.
pub type Heard<T> = std::result::Result<T, Silence>;

/// A conversation with a worker.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// Our end of the worker's socket.
    pub stream: &'a UnixStream,
    /// When it ends.
    pub deadline: Instant,
    /// Who waits for it.
    pub peer: Option<&'a UnixStream>,
}

impl Exchange<'_> {
    /// Sends a task.
    pub fn send(&self, task: &Task) -> Heard<()> {
        let mut stream = self.stream;
        let frame = encode(task).map_err(Silence::Refused)?;
        let mut bytes = frame.as_slice();
        while !bytes.is_empty() {
            match stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) => self.go_on(&e)?,
            }
        }
        Ok(())
    }

    /// Receives one message of at most `limit` bytes, and how many they were; `too_large` makes the error for more.
    pub fn receive(&self, limit: u64, too_large: impl FnOnce() -> Error) -> Heard<(Said, usize)> {
        let mut head = [0; 4];
        self.fill(&mut head)?;
        let length = u32::from_le_bytes(head) as usize;
        if length > MAX_FRAME || length as u64 > limit {
            return Err(Silence::Refused(too_large()));
        }
        let mut body = Vec::new();
        while body.len() < length {
            let start = body.len();
            body.resize(length.min(start + start.max(FIRST_PIECE)), 0);
            self.fill(&mut body[start..])?;
        }
        let said = decode(&body).map_err(|e| {
            let error = Error::new(Kind::BadContent, "the answer of a worker cannot be understood");
            Silence::Refused(
                error.with_detail(format!("{}. The worker was ended; nothing else was harmed.", e.message)),
            )
        })?;
        Ok((said, length))
    }

    fn fill(&self, buffer: &mut [u8]) -> Heard<()> {
        let mut stream = self.stream;
        let mut filled = 0;
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(Silence::Ended("it closed its connection".to_owned())),
                Ok(n) => {
                    filled += n;
                    // Whoever drips bytes never lets a read time out.
                    self.in_time()?;
                }
                Err(e) => self.go_on(&e)?,
            }
        }
        Ok(())
    }

    fn go_on(&self, error: &std::io::Error) -> Heard<()> {
        match error.kind() {
            ErrorKind::Interrupted => return Ok(()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
            _ => return Err(Silence::Ended(error.to_string())),
        }
        if self.peer.is_some_and(os::is_gone) {
            return Err(Silence::Unwanted);
        }
        // The end of a worker says more than the time that passed until somebody looked.
        if os::is_gone(self.stream) {
            return Ok(());
        }
        self.in_time()
    }

    fn in_time(&self) -> Heard<()> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(Silence::TimedOut) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::source::Content;

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        ours.set_read_timeout(Some(Duration::from_millis(5))).expect("time limit");
        (ours, theirs)
    }

    fn heard(stream: &UnixStream, limit: u64) -> Heard<(Said, usize)> {
        let exchange = Exchange { stream, deadline: Instant::now() + Duration::from_millis(200), peer: None };
        exchange.receive(limit, || Error::new(Kind::LimitExceeded, "too large"))
    }

    fn refused(heard: Heard<(Said, usize)>) -> Error {
        match heard {
            Err(Silence::Refused(error)) => error,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_message_is_heard_whole() {
        let (ours, mut theirs) = pair();
        let said = Said::Content(Box::new(Content { bytes: vec![7; 300_000], ..Content::default() }));
        let frame = encode(&said).expect("encodes");
        let length = frame.len() - 4;
        let writer = std::thread::spawn(move || theirs.write_all(&frame).expect("writes"));
        assert_eq!(heard(&ours, length as u64).expect("heard"), (said, length));
        writer.join().expect("writer");
    }

    #[test]
    fn a_frame_over_the_limit_is_not_waited_for() {
        let (ours, mut theirs) = pair();
        theirs.write_all(&1001_u32.to_le_bytes()).expect("writes");
        assert_eq!(refused(heard(&ours, 1000)).message, "too large");
        let (ours, mut theirs) = pair();
        theirs.write_all(&[255; 64]).expect("writes");
        assert_eq!(refused(heard(&ours, u64::MAX)).message, "too large");
    }

    #[test]
    fn garbage_is_refused_and_silence_times_out() {
        let (ours, mut theirs) = pair();
        theirs.write_all(&[2, 0, 0, 0, 0xc1, 0xc1]).expect("writes");
        assert_eq!(refused(heard(&ours, 1000)).kind, Kind::BadContent);
        assert!(matches!(heard(&ours, 1000), Err(Silence::TimedOut)));
        drop(theirs);
        assert!(matches!(heard(&ours, 1000), Err(Silence::Ended(_))));
    }

    #[test]
    fn a_stated_length_takes_no_memory() {
        let (ours, mut theirs) = pair();
        theirs.write_all(&(MAX_FRAME as u32).to_le_bytes()).expect("writes");
        theirs.write_all(&[0; 100]).expect("writes");
        let before = os::resident_bytes();
        let waiting = std::thread::spawn(move || heard(&ours, u64::MAX).is_err());
        std::thread::sleep(Duration::from_millis(100));
        assert!(os::resident_bytes() < before + (64 << 20), "half a gigabyte was taken for a hundred bytes");
        assert!(waiting.join().expect("waits"));
    }

    #[test]
    fn dripping_does_not_stretch_the_time() {
        let (ours, mut theirs) = pair();
        theirs.write_all(&100_000_u32.to_le_bytes()).expect("writes");
        let dripping = std::thread::spawn(move || {
            while theirs.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let started = Instant::now();
        assert!(matches!(heard(&ours, u64::MAX), Err(Silence::TimedOut)));
        assert!(started.elapsed() < Duration::from_secs(5));
        drop(ours);
        dripping.join().expect("drips");
    }
}
