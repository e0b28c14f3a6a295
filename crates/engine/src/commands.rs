//! The commands that show one stage: what the engine does, without a server.
//!
//! Owns their output: JSON on standard output, one line per thing, so that it can be piped into `jq`.

use crate::models::Models;
use rag_core::protocol::ModelSpec;
use rag_core::{Error, Kind, Result};
use rag_model::embed::plan;
use rag_model::session::Settings;
use rag_model::{Encoder, Manifest};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// The model that is used when none is named.
pub const DEFAULT_MODEL: &str = "all-MiniLM-L6-v2";

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
    for batch in plan(&lengths, 2048, model.alone) {
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
            Ok(spec) => described(&spec)?,
            Err(error) => json!({"name": name, "error": error.message, "detail": error.detail, "hint": error.hint}),
        })?;
    }
    Ok(())
}

fn described(spec: &ModelSpec) -> Result<Value> {
    serde_json::to_value(spec).map_err(|e| Error::internal(format!("could not write a model as JSON: {e}")))
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
