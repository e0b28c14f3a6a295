// SPDX-License-Identifier: PostgreSQL

//! Frames over a blocking stream.
//!
//! Owns reading and writing of `rag_core::protocol` frames by a peer that is trusted to end; must not know what is in
//! them.

use rag_core::protocol::{MAX_FRAME, decode, encode, frame_length};
use rag_core::{Error, Kind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Write};

/// Writes one message.
pub fn write<T: Serialize>(stream: &mut impl Write, message: &T) -> Result<()> {
    write_within(stream, message, MAX_FRAME as u64)
}

/// Writes one message unless it has more than `limit` bytes; then nothing is written.
pub fn write_within<T: Serialize>(stream: &mut impl Write, message: &T, limit: u64) -> Result<()> {
    let frame = encode(message)?;
    let length = frame.len() as u64 - 4;
    if length > limit {
        return Err(Error::new(Kind::LimitExceeded, format!("a message of {length} bytes exceeds {limit}")));
    }
    stream.write_all(&frame).and_then(|()| stream.flush()).map_err(|e| broken("write to", &e))
}

/// Reads one message; `None` when the stream ends where a frame would begin.
pub fn read<T: DeserializeOwned>(stream: &mut impl Read) -> Result<Option<T>> {
    let mut head = [0; 4];
    let mut filled = 0;
    while filled < head.len() {
        match stream.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(Error::new(Kind::Connection, "the connection ended within a frame")),
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(broken("read from", &e)),
        }
    }
    let length = frame_length(head)?;
    // The buffer grows with what really arrives: a stated length alone must not take half a gigabyte.
    let mut body = Vec::with_capacity(length.min(1 << 16));
    stream.take(length as u64).read_to_end(&mut body).map_err(|e| broken("read from", &e))?;
    if body.len() < length {
        return Err(Error::new(Kind::Connection, "the connection ended within a frame"));
    }
    decode(&body).map(Some)
}

fn broken(what: &str, error: &std::io::Error) -> Error {
    Error::new(Kind::Connection, format!("could not {what} the connection: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::protocol::Request;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_message_crosses_a_socket_in_small_pieces() {
        let (mut ours, mut theirs) = UnixStream::pair().expect("pair");
        let request = Request::Echo { payload: vec![7; 100_000] };
        let frame = encode(&request).expect("encodes");
        let writer = std::thread::spawn(move || {
            for piece in frame.chunks(1000) {
                theirs.write_all(piece).expect("writes");
            }
        });
        assert_eq!(read::<Request>(&mut ours).expect("reads"), Some(request));
        writer.join().expect("writer");
        assert_eq!(read::<Request>(&mut ours).expect("ends"), None);
    }

    #[test]
    fn a_message_over_the_limit_leaves_the_stream_clean() {
        let mut stream = Vec::new();
        let large = Request::Echo { payload: vec![7; 1000] };
        assert_eq!(write_within(&mut stream, &large, 1000).map_err(|e| e.kind), Err(Kind::LimitExceeded));
        assert!(stream.is_empty());
        write_within(&mut stream, &large, 1100).expect("fits");
    }

    #[test]
    fn a_broken_frame_is_an_error() {
        let (mut ours, mut theirs) = UnixStream::pair().expect("pair");
        theirs.write_all(&[10, 0, 0, 0, 1]).expect("writes");
        drop(theirs);
        assert_eq!(read::<Request>(&mut ours).map_err(|e| e.kind).err(), Some(Kind::Connection));
        let (mut ours, mut theirs) = UnixStream::pair().expect("pair");
        theirs.write_all(&[255; 8]).expect("writes");
        assert!(read::<Request>(&mut ours).is_err());
    }
}
