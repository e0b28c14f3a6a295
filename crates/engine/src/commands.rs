// SPDX-License-Identifier: PostgreSQL

//! The commands that show one stage: what the engine does, without a server.
//!
//! Owns their output: JSON on standard output, one line per thing, so that it can be piped into `jq`.

use crate::Places;
use crate::inference::MICRO_BATCH;
use crate::models::Models;
use clap::Args;
use rag_core::document::Document;
use rag_core::source::{Failure, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::{TokenCounter, WordCounter};
use rag_core::{Error, Kind, Result};
use rag_model::embed::plan;
use rag_model::session::Settings;
use rag_model::{Encoder, Manifest, Tokenizer};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

/// The model that is used when none is named: that of the built-in collection.
pub const DEFAULT_MODEL: &str = "all-MiniLM-L6-v2-int8";

/// What to read, and how.
#[derive(Debug, Args)]
pub struct Reading {
    /// File or folder
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Kind of the source, as in rag.add_source; found out for a file
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Options of the source, as in rag.add_source
    #[arg(long, value_name = "JSON", default_value = "{}")]
    options: String,
    #[command(flatten)]
    places: Places,
    /// Folder of the model whose tokens are counted, beneath the model folder or absolute
    #[arg(long, value_name = "NAME", default_value = DEFAULT_MODEL)]
    model: String,
    /// Count words instead of the model's tokens, so that no model is needed
    #[arg(long)]
    words: bool,
}

/// Prints each document without its chunks.
pub fn parse(reading: &Reading) -> Result<()> {
    read(reading, &mut |document| {
        let mut value = json_of(document)?;
        if let Some(fields) = value.as_object_mut() {
            fields.shift_remove("chunks");
            // Bytes on the wire, hexadecimal for people.
            fields.insert("content_sha256".to_owned(), document.content_sha256.hex().into());
        }
        print(&value)
    })
}

/// Prints each chunk.
pub fn chunk(reading: &Reading) -> Result<()> {
    read(reading, &mut |document| document.chunks.iter().try_for_each(|chunk| print(&json_of(chunk)?)))
}

/// Lists and reads as a sync does, but in this process. A document that fails is reported, and the others are read.
fn read(reading: &Reading, each: &mut dyn FnMut(&Document) -> Result<()>) -> Result<()> {
    let given = reading.path.to_string_lossy();
    let path = reading.path.canonicalize().map_err(|e| Error::io(&given, &e))?;
    // What is neither may have no end.
    if !path.is_file() && !path.is_dir() {
        return Err(Error::invalid(format!("\"{given}\" is neither a file nor a folder")));
    }
    let kind = match &reading.kind {
        Some(kind) => SourceKind::from_str(kind)?,
        None if path.is_dir() => return Err(Error::invalid(format!("\"{given}\" is a folder: name its --kind"))),
        None => rag_ingest::detect_kind(&given, &std::fs::read(&path).map_err(|e| Error::io(&given, &e))?),
    };
    let options = serde_json::from_str(&reading.options)
        .map_err(|e| Error::invalid(format!("--options \"{}\" is not JSON: {e}", reading.options)))?;
    let location = path.to_string_lossy().into_owned();
    // Who may run this command may read the file anyway.
    let root = if path.is_dir() { &path } else { path.parent().unwrap_or(&path) };
    let allowed_paths = vec![root.to_string_lossy().into_owned()];
    let source = SourceSpec {
        kind,
        location,
        options: SourceOptions::parse(kind, &options)?,
        allowed_paths,
        allowed_hosts: Vec::new(),
        seen: None,
    };
    let counter: Box<dyn TokenCounter> = if reading.words {
        Box::new(WordCounter { window: 254 })
    } else {
        let manifest = Manifest::read(&reading.places.models, &reading.model, &reading.model)
            .map_err(|e| Error { hint: Some("Name another --model, or count --words.".to_owned()), ..e })?;
        Box::new(Tokenizer::open(&manifest.tokenizer, manifest.spec.max_tokens)?)
    };
    let mut failures = 0;
    let mut failed = |failure: Failure| {
        failures += 1;
        crate::log(&format!("{}: {}", failure.uri, failure.error));
    };
    rag_ingest::list(&source, &mut |items, unlisted| {
        unlisted.into_iter().for_each(&mut failed);
        for item in &items {
            match rag_ingest::read(&source, item, &*counter) {
                Ok(document) => each(&document)?,
                Err(failure) => failed(failure),
            }
        }
        Ok(())
    })?;
    match failures {
        0 => Ok(()),
        n => Err(Error::new(Kind::BadContent, format!("{n} documents could not be read"))),
    }
}

/// Prints the vector of each text.
pub fn embed(folder: PathBuf, onnxruntime: PathBuf, name: &str, query: bool, texts: &[String]) -> Result<()> {
    let models = Models::new(folder, onnxruntime);
    let spec = Manifest::read(models.folder(), name, name)?.spec;
    let model = models.get(&spec)?;
    let prefix = if query { &spec.query_prefix } else { &spec.passage_prefix };
    let encode = |text: &String| model.tokenizer.encode(&format!("{prefix}{text}"));
    let encoded = texts.iter().map(encode).collect::<Result<Vec<_>>>()?;
    let settings = Settings { threads: 2, arena: false };
    let mut encoder = Encoder::open(&models.runtime()?, &model.onnx, &spec, model.tokenizer.pad(), settings)?;
    let lengths: Vec<usize> = encoded.iter().map(|e| e.ids.len()).collect();
    let mut vectors = vec![Vec::new(); texts.len()];
    for batch in plan(&lengths, MICRO_BATCH, model.alone) {
        let of_batch: Vec<_> = batch.iter().map(|i| &encoded[*i]).collect();
        for (index, vector) in batch.iter().zip(encoder.embed(&of_batch)?) {
            vectors[*index] = vector;
        }
    }
    for ((text, encoded), vector) in texts.iter().zip(&encoded).zip(vectors) {
        let (tokens, truncated) = (encoded.tokens, encoded.truncated);
        print(&json!({"text": text, "tokens": tokens, "truncated": truncated, "embedding": vector}))?;
    }
    Ok(())
}

/// Prints what each subfolder of the model folder says about itself; one that cannot be used says why.
pub fn models(folder: PathBuf, onnxruntime: PathBuf) -> Result<()> {
    let entries = std::fs::read_dir(&folder).map_err(|e| Error::io(&folder.to_string_lossy(), &e))?;
    let mut names: Vec<String> = entries
        .filter_map(std::result::Result::ok)
        .filter(|e| e.path().is_dir())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let models = Models::new(folder, onnxruntime);
    for name in names {
        print(&match models.describe(&name, &name) {
            Ok(spec) => json_of(&spec)?,
            Err(error) => json!({"name": name, "error": error.message, "detail": error.detail, "hint": error.hint}),
        })?;
    }
    Ok(())
}

fn json_of<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).map_err(|e| Error::internal(format!("could not write JSON: {e}")))
}

fn print(value: &Value) -> Result<()> {
    match writeln!(std::io::stdout(), "{value}") {
        // The reader of a pipe may have seen enough.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(Kind::Io, format!("could not write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
