// SPDX-License-Identifier: PostgreSQL

//! Vectors and counts of the real MiniLM model against published and independently computed values.
//!
//! Needs the model folder (`RAG_TEST_MODELS`, default `target/run/models`) and ONNX Runtime (`ORT_DYLIB_PATH`, default
//! `target/run/onnxruntime/libonnxruntime.so`); each test says so and passes where they are absent.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

use rag_core::tokens::TokenCounter;
use rag_model::embed::plan;
use rag_model::session::Settings;
use rag_model::tokenizer::PIECE;
use rag_model::{Encoder, Manifest, Runtime, Tokenizer};
use std::path::{Path, PathBuf};

const FULL: &str = "all-MiniLM-L6-v2";
const INT8: &str = "all-MiniLM-L6-v2-int8";

struct Model {
    tokenizer: Tokenizer,
    encoder: Encoder,
    alone: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn from_env(name: &str, default: &str) -> PathBuf {
    std::env::var_os(name).map_or_else(|| root().join(default), PathBuf::from)
}

/// The manifest of a model, or `None` with a message.
fn manifest(name: &str) -> Option<Manifest> {
    let models = from_env("RAG_TEST_MODELS", "target/run/models");
    if !models.join(name).is_dir() {
        eprintln!("skipped: no model folder \"{}\"", models.join(name).display());
        return None;
    }
    Some(Manifest::read(&models, name, name).expect("manifest"))
}

fn model(name: &str) -> Option<Model> {
    let mut manifest = manifest(name)?;
    let library = from_env("ORT_DYLIB_PATH", "target/run/onnxruntime/libonnxruntime.so");
    if !library.is_file() {
        eprintln!("skipped: no ONNX Runtime \"{}\"", library.display());
        return None;
    }
    let weights = manifest.hash(None).expect("hash");
    let runtime = Runtime::load(&library).expect("runtime");
    let tokenizer = Tokenizer::open(&manifest.tokenizer, manifest.spec.max_tokens).expect("tokenizer");
    let settings = Settings { threads: 2, arena: false };
    let encoder = Encoder::open(&runtime, &manifest.onnx, &manifest.spec, tokenizer.pad(), settings).expect("session");
    Some(Model { tokenizer, encoder, alone: weights.shared_scale })
}

impl Model {
    fn embed(&mut self, texts: &[&str]) -> Vec<Vec<f32>> {
        let encoded: Vec<_> = texts.iter().map(|t| self.tokenizer.encode(t).expect("encodes")).collect();
        let lengths: Vec<usize> = encoded.iter().map(|e| e.ids.len()).collect();
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in plan(&lengths, 2048, self.alone) {
            let of_batch: Vec<_> = batch.iter().map(|i| &encoded[*i]).collect();
            for (index, vector) in batch.iter().zip(self.encoder.embed(&of_batch).expect("embeds")) {
                vectors[*index] = vector;
            }
        }
        vectors
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[test]
fn the_model_card_s_cosines_are_reached() {
    let Some(mut model) = model(FULL) else { return };
    let v = model.embed(&[
        "That is a happy person",
        "That is a happy dog",
        "That is a very happy person",
        "Today is a sunny day",
    ]);
    for (other, expected) in [(1, 0.695), (2, 0.943), (3, 0.257)] {
        let found = cosine(&v[0], &v[other]);
        assert!((found - expected).abs() < 0.002, "{found} instead of {expected}");
    }
}

#[test]
fn vectors_and_counts_equal_the_reference() {
    let Some(mut model) = model(FULL) else { return };
    let path = root().join("../shared/data/embedding_reference.jsonl");
    let Ok(lines) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no reference \"{}\"", path.display());
        return;
    };
    let mut worst = 0.0_f32;
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let text = row["text"].as_str().expect("text");
        // The reference counts what the network saw, so a long text has the window's length.
        let encoded = model.tokenizer.encode(text).expect("encodes");
        assert_eq!(encoded.ids.len() as u64, row["tokens"].as_u64().expect("tokens"), "{text:.40}");
        assert_eq!(encoded.tokens as usize, model.tokenizer.count_with_specials(text).expect("counts"));
        assert_eq!(encoded.truncated, encoded.tokens > 256);
        let vector = model.embed(&[text]).remove(0);
        for (x, y) in vector.iter().zip(row["vector"].as_array().expect("vector")) {
            worst = worst.max((x - y.as_f64().expect("number") as f32).abs());
        }
    }
    assert!(worst < 1e-4, "largest difference {worst}");
}

#[test]
fn neighbours_padding_and_repeats_change_no_bit() {
    for name in [FULL, INT8] {
        let Some(mut model) = model(name) else { return };
        let long = "a sentence about tokens and their windows ".repeat(20);
        let texts = ["short", "a little longer than short", &long, "", "short", "漢字 and 🦀 and \0 too"];
        let together = model.embed(&texts);
        assert_eq!(together, model.embed(&texts), "{name}: a repeat");
        for (text, vector) in texts.iter().zip(&together) {
            assert_eq!(&model.embed(&[text])[0], vector, "{name}: alone");
            let length = cosine(vector, vector);
            assert!((length - 1.0).abs() < 1e-5, "{name}: length {length}");
        }
    }
}

#[test]
fn int8_stays_close_to_full_precision() {
    let (Some(mut full), Some(mut int8)) = (model(FULL), model(INT8)) else { return };
    for text in ["That is a happy person", "how does the write-ahead log work", "fn main() { println!(\"x\"); }"] {
        let similarity = cosine(&full.embed(&[text])[0], &int8.embed(&[text])[0]);
        assert!(similarity > 0.97, "{text}: {similarity}");
    }
}

#[test]
fn a_cut_text_keeps_its_separator() {
    let Some(manifest) = manifest(FULL) else { return };
    let tokenizer = Tokenizer::open(&manifest.tokenizer, 8).expect("tokenizer");
    let cut = tokenizer.encode("one two three four five six seven eight").expect("encodes");
    assert_eq!((cut.ids[0], cut.ids[7], cut.ids.len()), (101, 102, 8));
    assert_eq!((cut.tokens, cut.truncated), (10, true));
    let fits = tokenizer.encode("one two three four five six").expect("encodes");
    assert_eq!((fits.ids.len(), fits.tokens, fits.truncated), (8, 8, false));
    assert_eq!(tokenizer.window(), 6);
    assert!(Tokenizer::open(&manifest.tokenizer, 2).is_err());
}

#[test]
fn odd_texts_are_counted_and_located() {
    let Some(manifest) = manifest(FULL) else { return };
    let tokenizer = Tokenizer::open(&manifest.tokenizer, 256).expect("tokenizer");
    assert_eq!(tokenizer.count_with_specials(""), Ok(2));
    assert_eq!(tokenizer.encode("").map(|e| e.ids), Ok(vec![101, 102]));
    for text in ["", " ", "\0", "a\0b", "🦀🦀", "漢字かな", "é̀ combining", "ﬁ ligature", "\u{200b}", "naïve café"]
    {
        let offsets = tokenizer.offsets(text);
        assert_eq!(offsets.len(), tokenizer.count(text), "{text:?}");
        for (start, end) in offsets {
            assert!(start <= end && text.get(start..end).is_some(), "{text:?} {start} {end}");
        }
    }
    let offsets = tokenizer.offsets("naïve café");
    assert_eq!(offsets, vec![(0, 6), (7, 12)]);
}

/// Counting word by word must come to what the tokenizer makes of the whole.
#[test]
fn words_add_up() {
    let Some(manifest) = manifest(FULL) else { return };
    let tokenizer = Tokenizer::open(&manifest.tokenizer, manifest.spec.max_tokens).expect("tokenizer");
    let parts = [
        "a",
        "Straße",
        "naïve",
        "e\u{301}\u{302}",
        "\u{301}",
        "漢字かな",
        "ｶﾅ",
        "👩‍👩‍👧‍👦",
        "\u{0}",
        "\u{B}",
        "\u{C}",
        "\u{85}",
        "\u{A0}",
        "\u{2028}",
        "\u{3000}",
        "\u{FFFD}",
        "\u{AD}",
        "\u{200B}",
        "[SEP]",
        "[MASK",
        "]",
        "##ing",
        "İ",
        "ΑΣ",
        "ﬁ",
        "x_y",
        "don't",
        "--",
        "…",
        "。",
        "«",
        "1,000.5",
        "\t",
        "\r\n",
        "getHTTPResponse_codeV2",
        "supercalifragilistic",
        "z̶a̶l̶g̶o̶",
    ];
    let long = "w".repeat(150);
    let mut texts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).chain([long]).collect();
    for (at, one) in parts.iter().enumerate() {
        for other in parts {
            texts.push(format!("{one}{other}"));
            texts.push(format!("{one} {other}.{one}/{}", parts[(at * 7 + 3) % parts.len()]));
        }
    }
    for text in &texts {
        let whole = tokenizer.encode(text).expect("tokens").tokens as usize;
        assert_eq!(tokenizer.count_with_specials(text).expect("a count"), whole, "{text:?}");
    }
}

#[test]
fn a_text_of_ten_megabytes_is_counted_in_pieces_and_embedded_from_its_head() {
    let Some(manifest) = manifest(FULL) else { return };
    let tokenizer = Tokenizer::open(&manifest.tokenizer, 256).expect("tokenizer");
    let unit = "the quick brown fox jumps over the lazy dog, again and again. ";
    let per_unit = tokenizer.count(unit);
    let text = unit.repeat(if cfg!(debug_assertions) { 2 * PIECE } else { 10 << 20 } / unit.len());
    assert_eq!(tokenizer.count(&text), per_unit * (text.len() / unit.len()));
    let head = tokenizer.encode(&text).expect("encodes");
    assert_eq!((head.ids.len(), head.truncated), (256, true));
    assert_eq!(head.ids, tokenizer.encode(&text[..PIECE / 4]).expect("encodes").ids);
    // A megabyte without a token must not hide what follows it.
    let blank = format!("{}word", " ".repeat(PIECE + 9));
    assert_eq!(tokenizer.encode(&blank).map(|e| e.ids.len()), Ok(3));
}
