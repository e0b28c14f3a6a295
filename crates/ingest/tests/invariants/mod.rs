// SPDX-License-Identifier: PostgreSQL

//! What must hold for every chunked document, recomputed naively from the text alone.
#![allow(dead_code, reason = "each test binary uses a part")]

use rag_core::document::{Chunk, Document};
use rag_core::source::{Chunking, SourceKind, SourceOptions};
use rag_core::template::{EmbedFields, PREFIX_CUT};
use rag_core::tokens::{TokenCounter, WordCounter};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Four bytes a token, wherever they fall: counts white space, is not additive and cuts through characters.
pub struct ByteCounter {
    pub window: usize,
}

impl TokenCounter for ByteCounter {
    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }

    fn offsets(&self, text: &str) -> Vec<(usize, usize)> {
        (0..text.len()).step_by(4).map(|at| (at, (at + 4).min(text.len()))).collect()
    }

    fn window(&self) -> usize {
        self.window
    }
}

pub fn counters(window: usize) -> [Box<dyn TokenCounter>; 2] {
    [Box::new(WordCounter { window }), Box::new(ByteCounter { window })]
}

pub fn options(kind: SourceKind, chunking: Chunking, chunk_tokens: u32) -> SourceOptions {
    SourceOptions { chunking, chunk_tokens, ..SourceOptions::defaults(kind) }
}

pub fn parse(kind: SourceKind, options: &SourceOptions, content: &[u8], counter: &dyn TokenCounter) -> Document {
    let none = serde_json::Map::new();
    rag_ingest::parse_inline(kind, options, "doc", content, &none, counter).expect("any bytes are a document")
}

/// Processor time of this thread; where the kernel does not tell, the time.
pub fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

pub fn data() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/files");
    if !folder.is_dir() {
        eprintln!("skipped: {} is absent", folder.display());
        return None;
    }
    Some(folder)
}

/// What is embedded of a chunk.
pub fn embedded(document: &Document, chunk: &Chunk, options: &SourceOptions) -> String {
    let fields = EmbedFields {
        title: document.title.as_deref(),
        heading_path: &chunk.heading_path,
        context: chunk.context.as_deref(),
        content: &chunk.content,
        uri: &document.uri,
        path: document.path.as_deref(),
        symbol: chunk.facts.symbol.as_deref(),
        speaker: chunk.facts.speaker.as_deref(),
    };
    let cut = chunk.metadata.contains_key(PREFIX_CUT);
    options.embed_template.render(&if cut { fields.without_prefix() } else { fields })
}

/// Checks a document; front matter is what ends at `body`.
pub fn check(document: &Document, options: &SourceOptions, counter: &dyn TokenCounter, body: usize) {
    let text = &document.text;
    assert!(!text.contains(['\r', '\0']));
    let mut covered = vec![0_u8; text.len()];
    let (mut last_start, mut last_end) = (0, 0);
    // One pass for characters and lines; chunks are in order of their starts.
    let chars: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let newlines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let char_of = |byte: usize| chars.iter().position(|c| *c == byte).unwrap_or(chars.len());
    let char_of = |byte: usize| if text.len() < 20_000 { char_of(byte) } else { chars.partition_point(|c| *c < byte) };
    for chunk in &document.chunks {
        let span = chunk.span;
        let (start, end) = (span.byte_start as usize, span.byte_end as usize);
        assert_eq!(chunk.content, text[start..end], "content is the slice");
        assert!(!chunk.content.trim().is_empty(), "an empty chunk at {start}");
        assert!(start >= body, "front matter in a chunk");
        assert_eq!(span.char_start as usize, char_of(start));
        assert_eq!(span.char_end as usize, char_of(end));
        assert_eq!(chunk.content.chars().count() as u64, span.char_end - span.char_start);
        assert_eq!(span.line_start as usize, newlines.partition_point(|n| *n < start) + 1);
        assert_eq!(span.line_end as usize, newlines.partition_point(|n| *n < end - 1) + 1);
        assert_eq!(chunk.token_count as usize, counter.count(&chunk.content));
        assert!(start > last_start || last_end == 0, "spans in order");
        if options.overlap == 0 {
            assert!(start >= last_end, "spans overlap at {start}");
        }
        (last_start, last_end) = (start, end);
        covered[start..end].iter_mut().for_each(|c| *c = c.saturating_add(1));
        if options.chunking != Chunking::None {
            // A single character may have more tokens than a tiny window leaves.
            let one = chunk.content.trim().chars().count() == 1;
            assert!(one || chunk.token_count <= options.chunk_tokens, "{} tokens", chunk.token_count);
        }
        if !(options.chunking == Chunking::None && options.truncate) {
            let rendered = counter.count(&embedded(document, chunk, options));
            let one = chunk.content.trim().chars().count() == 1;
            assert!(one || rendered <= counter.window(), "{rendered} tokens do not fit: {chunk:?}");
        }
    }
    for (at, c) in text[body..].char_indices().filter(|(_, c)| !c.is_whitespace()) {
        let times = covered[body + at];
        let right = if options.overlap == 0 { times == 1 } else { times >= 1 };
        assert!(right, "{c:?} at {} is in {times} chunks", body + at);
    }
}
