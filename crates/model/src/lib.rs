// SPDX-License-Identifier: PostgreSQL

//! rag_model: texts in, vectors and token counts out.
//!
//! Owns everything that knows ONNX Runtime or a tokenizer file: reading a Hugging Face-style folder ([`manifest`]),
//! exact token ids ([`tokenizer`]), running the network ([`session`]) and turning its output into vectors ([`embed`]).
//! It must not know PostgreSQL, sockets, queues or priorities: who waits for a vector is the engine's business. It has
//! no global state but the loaded runtime, and never touches the network.
//!
//! The parts are separate because they are used apart: a parse worker needs the tokenizer and must not pay for a
//! session; a session belongs to one thread, a tokenizer is shared by all.
#![deny(missing_docs)]

pub mod embed;
pub mod manifest;
pub mod session;
pub mod tokenizer;
mod words;

pub use embed::Encoder;
pub use manifest::Manifest;
pub use session::Runtime;
pub use tokenizer::{Encoded, Tokenizer};
