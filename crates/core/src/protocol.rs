// SPDX-License-Identifier: PostgreSQL

//! Messages between a backend and the engine.
//!
//! A frame is a little-endian `u32` length and that many bytes of MessagePack. One connection carries one request at a
//! time; a reply may come in several frames, the last of which has `last` set, so that a listing of a million records
//! never needs one giant frame. The first request on a connection is [`Request::Hello`]: library and engine must be of
//! the same build version, because the encoding of these types is not kept stable across versions.
//!
//! This module owns the encoding and nothing else: reading from a socket with interrupts is `engine_client`'s, reading
//! with blocking I/O is the engine's.

use crate::document::Document;
use crate::error::{Error, Kind, Result};
use crate::source::{Failure, Item, SourceKind, SourceOptions, SourceSpec};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Version of the messages; both sides must agree exactly.
pub const PROTOCOL_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+4");

/// Largest frame either side accepts.
pub const MAX_FRAME: usize = 512 << 20;

/// How token vectors become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// Mean over the attended tokens.
    Mean,
    /// The first token.
    Cls,
}

/// A model as the catalog describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// Name in the catalog, for messages.
    pub name: String,
    /// Folder; a relative path is beneath the engine's model folder.
    pub path: String,
    /// Hexadecimal SHA-256 of the ONNX file; a different file is refused.
    pub sha256: Option<String>,
    /// Length of a vector.
    pub dimensions: u32,
    /// Window in tokens, special tokens counted.
    pub max_tokens: u32,
    /// Pooling.
    pub pooling: Pooling,
    /// Whether vectors are scaled to length 1.
    pub normalize: bool,
    /// Put before a query.
    pub query_prefix: String,
    /// Put before a passage.
    pub passage_prefix: String,
}

/// Who waits for an inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// A person or a search: served before anything in bulk.
    Interactive,
    /// A sync: served in small micro-batches between interactive requests.
    Bulk,
}

/// Which prefix a text gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// The model's query prefix.
    Query,
    /// The model's passage prefix.
    Passage,
}

/// What is asked of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// First message on every connection.
    Hello {
        /// [`PROTOCOL_VERSION`] of the caller.
        version: String,
    },
    /// Reads a model folder and describes it → [`Reply::Model`].
    DescribeModel {
        /// Catalog name.
        name: String,
        /// Folder.
        path: String,
    },
    /// Embeds texts → [`Reply::Embeddings`].
    Embed {
        /// Model.
        model: ModelSpec,
        /// Texts, each embedded on its own.
        texts: Vec<String>,
        /// Prefix.
        input: Input,
        /// Who waits.
        priority: Priority,
    },
    /// Counts tokens, special tokens included → [`Reply::Counts`].
    CountTokens {
        /// Model.
        model: ModelSpec,
        /// Texts.
        texts: Vec<String>,
    },
    /// Lists what a source holds → many [`Reply::Items`], then [`Reply::Listed`].
    List {
        /// Source.
        source: SourceSpec,
    },
    /// Reads, parses and chunks listed items → one [`Reply::Document`] per item, in order.
    Read {
        /// Source.
        source: SourceSpec,
        /// Items to read.
        items: Vec<Item>,
        /// Model whose tokens bound the chunks.
        model: ModelSpec,
    },
    /// Parses and chunks inline content → one [`Reply::Document`].
    Parse {
        /// Kind of the content.
        kind: SourceKind,
        /// Options.
        options: SourceOptions,
        /// Identity of the document.
        uri: String,
        /// The bytes.
        #[serde(with = "serde_bytes")]
        content: Vec<u8>,
        /// Metadata given with it; overrides what the content says.
        metadata: Map<String, Value>,
        /// Model whose tokens bound the chunks.
        model: ModelSpec,
    },
    /// Asks how the engine is → [`Reply::Status`].
    Status,
    /// Sends the bytes back → [`Reply::Echo`]; measures the round trip.
    Echo {
        /// Payload.
        #[serde(with = "serde_bytes")]
        payload: Vec<u8>,
    },
}

/// What the engine answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Versions agree.
    Hello {
        /// [`PROTOCOL_VERSION`] of the engine.
        version: String,
        /// Process id of the engine.
        pid: u32,
    },
    /// A model's own description of itself, with its sha256.
    Model(ModelSpec),
    /// Vectors of the texts, in order.
    Embeddings(Embeddings),
    /// Token counts of the texts, in order, special tokens included.
    Counts(Vec<u32>),
    /// Some of the items of a listing, and those that failed.
    Items {
        /// Items.
        items: Vec<Item>,
        /// Items that could not be listed.
        failures: Vec<Failure>,
    },
    /// The listing is complete.
    Listed {
        /// Entries that were looked at, whether they are documents or not.
        seen: u64,
    },
    /// One document, or why not.
    Document(std::result::Result<Box<Document>, Failure>),
    /// How the engine is.
    Status(Status),
    /// The payload.
    Echo(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The request failed as a whole.
    Error(Error),
}

/// One frame of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The reply.
    pub reply: Reply,
    /// Whether this is the last frame of the answer.
    pub last: bool,
}

/// Vectors as one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embeddings {
    /// Length of each vector.
    pub dimensions: u32,
    /// Little-endian `f32`, row by row.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
    /// Tokens of each text before cutting, special tokens included.
    pub tokens: Vec<u32>,
    /// Whether each text was cut at the window.
    pub truncated: Vec<bool>,
}

impl Embeddings {
    /// Packs rows of equal length.
    pub fn pack(dimensions: u32, rows: &[Vec<f32>], tokens: Vec<u32>, truncated: Vec<bool>) -> Self {
        let data = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        Self { dimensions, data, tokens, truncated }
    }

    /// The rows; fails when the block does not divide into rows.
    pub fn rows(&self) -> Result<Vec<Vec<f32>>> {
        let width = self.dimensions as usize * 4;
        if width == 0 || !self.data.len().is_multiple_of(width) {
            let message = format!("{} bytes do not divide into rows of {width}", self.data.len());
            return Err(Error::new(Kind::Connection, message));
        }
        let float = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok(self.data.chunks_exact(width).map(|row| row.chunks_exact(4).map(float).collect()).collect())
    }
}

/// How the engine is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Process id.
    pub pid: u32,
    /// Resident memory in bytes.
    pub memory: u64,
    /// Names of the loaded models.
    pub models: Vec<String>,
    /// Parse workers alive.
    pub parse_workers: u32,
    /// Requests waiting for inference.
    pub queued: u32,
    /// Seconds since the engine started.
    pub uptime_seconds: u64,
    /// What the kernel confines workers by, such as "landlock 7, seccomp"; "none" where it can do nothing.
    pub sandbox: String,
}

/// What the supervisor of the engine writes to `status` beside the socket; read by backends that wait.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Supervision {
    /// Process id of the supervising launcher.
    pub launcher_pid: u32,
    /// Process id of the engine, 0 when it is not running.
    pub engine_pid: u32,
    /// Times the engine was started after the first.
    pub restarts: u32,
    /// Starts in a row that ended before the engine was ready.
    pub failures: u32,
    /// Why the last one ended.
    pub last_error: Option<String>,
}

/// Encodes a message as a frame with its length.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    rmp_serde::encode::write_named(&mut frame, message)
        .map_err(|e| Error::internal(format!("could not encode a message: {e}")))?;
    let length = frame.len() - 4;
    if length > MAX_FRAME {
        return Err(Error::new(Kind::LimitExceeded, format!("a message of {length} bytes exceeds {MAX_FRAME}")));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// The length in a frame's head, checked.
pub fn frame_length(head: [u8; 4]) -> Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length > MAX_FRAME {
        return Err(Error::new(Kind::Connection, format!("a frame of {length} bytes exceeds {MAX_FRAME}")));
    }
    Ok(length)
}

/// Decodes the body of a frame.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    rmp_serde::from_slice(body).map_err(|e| Error::new(Kind::Connection, format!("could not decode a message: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_frame() {
        let request = Request::Parse {
            kind: SourceKind::Markdown,
            options: SourceOptions::defaults(SourceKind::Markdown),
            uri: "a".into(),
            content: vec![0, 255],
            metadata: Map::from_iter([("n".to_owned(), Value::from(1.5))]),
            model: ModelSpec {
                name: "m".into(),
                path: "m".into(),
                sha256: None,
                dimensions: 3,
                max_tokens: 8,
                pooling: Pooling::Mean,
                normalize: true,
                query_prefix: String::new(),
                passage_prefix: String::new(),
            },
        };
        let frame = encode(&request).expect("encodes");
        let head: [u8; 4] = frame[..4].try_into().expect("four bytes");
        assert_eq!(frame_length(head).expect("fits"), frame.len() - 4);
        assert_eq!(decode::<Request>(&frame[4..]).expect("decodes"), request);
    }

    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"big":1e400,"long":1234567890123456789012,"deep":[{"n":-0.10}]}"#;
        let metadata: Map<String, Value> = serde_json::from_str(text).expect("JSON");
        let reply = Reply::Document(Ok(Box::new(Document { metadata, ..Document::default() })));
        let frame = encode(&reply).expect("encodes");
        assert_eq!(decode::<Reply>(&frame[4..]).expect("decodes"), reply);
    }

    #[test]
    fn rows_survive_packing() {
        let rows = vec![vec![1.0, -2.5], vec![0.0, f32::MIN_POSITIVE]];
        let packed = Embeddings::pack(2, &rows, vec![3, 4], vec![false, true]);
        assert_eq!(packed.rows().expect("rows"), rows);
        assert!(Embeddings { data: vec![0; 7], ..packed }.rows().is_err());
    }

    #[test]
    fn garbage_is_an_error_and_not_a_panic() {
        assert!(decode::<Request>(&[0xc1, 0, 1]).is_err());
        assert!(frame_length([255; 4]).is_err());
    }
}
