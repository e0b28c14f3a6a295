// SPDX-License-Identifier: PostgreSQL

//! Unpacking under limits.
//!
//! Owns every byte that is unpacked: what is read from an archive comes through a [`Meter`] or a [`Stream`], which count
//! it against what one archive may unpack to and against how much larger than its packed bytes it may be. Both limits
//! are watched while bytes come and not believed from a header, so no bomb is unpacked further than they allow. Must not
//! know a container's format.

use flate2::bufread::MultiGzDecoder;
use rag_core::error::{Error, Kind};
use rag_core::source::Limits;
use rawzip::ReaderAt;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// Unpacked bytes up to which no ratio is too high: so small a thing is no bomb, and zeros are not rare.
const RATIO_FLOOR: u64 = 1 << 20;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;

/// Why an archive or a member of it cannot be used. The message is what is to be said of it, without its name, which
/// only the one who opened it knows.
#[derive(Debug)]
pub enum Trouble {
    /// Nothing is wrong with the others.
    Member(Error),
    /// Nothing more of this archive can be read; the archive around it can.
    Archive(Error),
    /// The outermost archive is more than its limits allow.
    Limit(Error),
}

impl Trouble {
    /// The error, whatever it concerns.
    pub fn into_error(self) -> Error {
        match self {
            Self::Member(error) | Self::Archive(error) | Self::Limit(error) => error,
        }
    }
}

/// A limit that was exceeded while reading, on its way through readers that only know `io::Error`.
#[derive(Debug)]
struct Exceeded {
    error: Error,
    whole: bool,
}

impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Exceeded {}

/// What an error while reading concerns: everything, when it is a limit of the outermost archive; else what it is said to,
/// with words of its own for what is no limit.
pub fn trouble(error: io::Error, concerns: fn(Error) -> Trouble, damage: impl FnOnce(&io::Error) -> Error) -> Trouble {
    match error.downcast::<Exceeded>() {
        Ok(Exceeded { error, whole: true }) => Trouble::Limit(error),
        Ok(Exceeded { error, whole: false }) => concerns(error),
        Err(other) => concerns(damage(&other)),
    }
}

/// What one outermost archive has been read for so far, shared by all that is open of it.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    entries: Cell<u64>,
    bytes: Cell<u64>,
}

impl Budget {
    /// Nothing is used yet.
    pub fn new(limits: &Limits) -> Rc<Self> {
        Rc::new(Self { limits: limits.clone(), entries: Cell::new(0), bytes: Cell::new(0) })
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Begins anew, for another member.
    pub fn reset(&self) {
        self.bytes.set(0);
        self.entries.set(0);
    }

    /// Counts entries.
    pub fn count_entries(&self, more: u64) -> Result<(), Trouble> {
        self.entries.set(self.entries.get().saturating_add(more));
        let max = self.limits.max_entries;
        if self.entries.get() <= max {
            return Ok(());
        }
        let error = Error::new(Kind::LimitExceeded, format!("has more entries than max_entries {max}"));
        Err(Trouble::Limit(error.with_hint("Raise it in the source's options: {\"limits\": {\"max_entries\": ...}}.")))
    }

    fn unpacked(&self, more: usize) -> io::Result<()> {
        self.bytes.set(self.bytes.get().saturating_add(more as u64));
        let max = self.limits.max_total_bytes;
        if self.bytes.get() <= max {
            return Ok(());
        }
        let error = Error::new(Kind::LimitExceeded, format!("unpacks to more bytes than max_total_bytes {max}"))
            .with_hint("Raise it in the source's options: {\"limits\": {\"max_total_bytes\": ...}}.");
        Err(io::Error::other(Exceeded { error, whole: true }))
    }

    /// Fails when so many bytes are more than so many packed ones may become.
    pub fn check_ratio(&self, packed: u64, unpacked: u64) -> Result<(), Error> {
        let max = self.limits.max_ratio;
        if unpacked <= RATIO_FLOOR || unpacked <= packed.saturating_mul(max) {
            return Ok(());
        }
        let message = format!("unpacks {packed} bytes to {unpacked} or more, beyond max_ratio {max}");
        Err(Error::new(Kind::LimitExceeded, message)
            .with_hint("If it is no bomb, raise it in the source's options: {\"limits\": {\"max_ratio\": ...}}."))
    }
}

/// Counts what one member unpacks to.
#[derive(Debug)]
pub struct Meter<R> {
    inner: R,
    budget: Rc<Budget>,
    packed: u64,
    unpacked: u64,
}

impl<R> Meter<R> {
    /// For a reader that unpacks so many bytes.
    pub fn new(inner: R, budget: Rc<Budget>, packed: u64) -> Self {
        Self { inner, budget, packed, unpacked: 0 }
    }
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.unpacked += read as u64;
        self.budget.unpacked(read)?;
        ratio(&self.budget, self.packed, self.unpacked)?;
        Ok(read)
    }
}

fn ratio(budget: &Budget, packed: u64, unpacked: u64) -> io::Result<()> {
    budget.check_ratio(packed, unpacked).map_err(|error| io::Error::other(Exceeded { error, whole: false }))
}

/// The bytes of an archive: a file, or a member that is an archive itself.
#[derive(Debug)]
pub enum Input {
    /// A file.
    File(File),
    /// Bytes.
    Memory(Cursor<Vec<u8>>),
}

impl Input {
    /// How many there are.
    pub fn length(&mut self) -> io::Result<u64> {
        match self {
            Self::File(file) => file.metadata().map(|m| m.len()),
            Self::Memory(bytes) => Ok(bytes.get_ref().len() as u64),
        }
    }

    /// The first bytes, as many as there are.
    pub fn head(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let more @ 1.. = self.read_at(&mut buffer[filled..], filled as u64)? {
            filled += more;
        }
        Ok(filled)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Memory(bytes) => bytes.seek(to),
        }
    }
}

impl ReaderAt for Input {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => FileExt::read_at(file, buffer, offset),
            Self::Memory(bytes) => {
                let all = bytes.get_ref();
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
                let length = buffer.len().min(all.len() - from);
                buffer[..length].copy_from_slice(&all[from..from + length]);
                Ok(length)
            }
        }
    }
}

/// Counts the packed bytes.
#[derive(Debug)]
struct Counted {
    input: Input,
    read: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

#[derive(Debug)]
enum Source {
    Plain(BufReader<Input>),
    Gzip(Box<MultiGzDecoder<BufReader<Counted>>>),
}

/// Bytes that can be read once, from the first to the last.
#[derive(Debug)]
pub struct Stream {
    source: Source,
    budget: Rc<Budget>,
    /// Bytes that were read to look at them and are still to come.
    ahead: Cursor<Vec<u8>>,
    unpacked: u64,
}

impl Stream {
    /// Bytes as they are.
    pub fn plain(input: Input, budget: Rc<Budget>) -> Self {
        Self::new(Source::Plain(BufReader::with_capacity(BUFFER, input)), budget)
    }

    /// The bytes that gzip packed, all of its members one after the other.
    pub fn gzip(input: Input, budget: Rc<Budget>) -> Self {
        let packed = BufReader::with_capacity(BUFFER, Counted { input, read: 0 });
        Self::new(Source::Gzip(Box::new(MultiGzDecoder::new(packed))), budget)
    }

    fn new(source: Source, budget: Rc<Budget>) -> Self {
        Self { source, budget, ahead: Cursor::default(), unpacked: 0 }
    }

    /// Looks at the next bytes, at most `most` of them.
    pub fn look(&mut self, most: u64) -> io::Result<&[u8]> {
        let mut bytes = Vec::new();
        self.by_ref().take(most).read_to_end(&mut bytes)?;
        let at = self.ahead.position() as usize;
        bytes.extend_from_slice(&self.ahead.get_ref()[at..]);
        self.ahead = Cursor::new(bytes);
        Ok(self.ahead.get_ref())
    }

    /// Leaves bytes out; what is not packed is not even read.
    pub fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let mut left = bytes - self.take_ahead(bytes);
        if let Source::Plain(file) = &mut self.source {
            let here = file.stream_position()?;
            let end = file.get_mut().length()?;
            if end.saturating_sub(here) < left {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            return file.seek_relative(i64::try_from(left).map_err(io::Error::other)?);
        }
        let mut buffer = vec![0; BUFFER];
        while left > 0 {
            let most = left.min(BUFFER as u64) as usize;
            match self.read(&mut buffer[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => left -= read as u64,
            }
        }
        Ok(())
    }

    fn take_ahead(&mut self, most: u64) -> u64 {
        let there = (self.ahead.get_ref().len() as u64).saturating_sub(self.ahead.position()).min(most);
        self.ahead.set_position(self.ahead.position() + there);
        there
    }

    /// Reads what is packed to its end, which is where its checksum is.
    pub fn finish(&mut self) -> io::Result<()> {
        if matches!(self.source, Source::Gzip(_)) {
            let mut buffer = vec![0; BUFFER];
            while self.read(&mut buffer)? > 0 {}
        }
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.ahead.read(buffer)?;
        if ready > 0 || buffer.is_empty() {
            return Ok(ready);
        }
        let read = match &mut self.source {
            Source::Plain(file) => return file.read(buffer),
            Source::Gzip(decoder) => decoder.read(buffer)?,
        };
        self.unpacked += read as u64;
        self.budget.unpacked(read)?;
        if let Source::Gzip(decoder) = &self.source {
            ratio(&self.budget, decoder.get_ref().get_ref().read, self.unpacked)?;
        }
        Ok(read)
    }
}

/// Reads no more than what is left of some bound, and says so when there was more.
#[derive(Debug)]
pub struct Bounded<'a, R> {
    /// What is read.
    pub inner: &'a mut R,
    /// Bytes that may still be read.
    pub left: u64,
    /// What has so many bytes, for the error.
    pub what: &'static str,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            let error = Error::new(Kind::LimitExceeded, format!("has {} that is too long", self.what));
            return Err(io::Error::other(Exceeded { error, whole: false }));
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buffer[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}
