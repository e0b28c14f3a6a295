// SPDX-License-Identifier: PostgreSQL

//! The models that this engine holds.
//!
//! Owns loading each model once, however many connections ask at the same moment, and the check that its file is the
//! one the catalog knows. Sessions are not in here: each belongs to the inference thread that runs it.

use crate::os;
use rag_core::protocol::{ModelSpec, Pooling};
use rag_core::{Error, Result};
use rag_model::session::Settings;
use rag_model::{Encoder, Manifest, Runtime, Tokenizer};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a failure is answered from memory. Long enough that a sync of a thousand texts does not hash a wrong file
/// a thousand times, short enough that a repaired folder works at once.
const FAILURE_TTL: Duration = Duration::from_secs(2);

/// What makes two requests use the same model; the name and the prefixes belong to the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    path: String,
    sha256: Option<String>,
    dimensions: u32,
    max_tokens: u32,
    cls: bool,
    normalize: bool,
}

impl Key {
    /// The key of a model.
    pub fn of(model: &ModelSpec) -> Self {
        Self {
            path: model.path.clone(),
            sha256: model.sha256.clone(),
            dimensions: model.dimensions,
            max_tokens: model.max_tokens,
            cls: model.pooling == Pooling::Cls,
            normalize: model.normalize,
        }
    }
}

/// A model whose file was checked and whose tokenizer is loaded.
#[derive(Debug)]
pub struct Model {
    /// What makes it this model.
    pub key: Key,
    /// As the catalog has it.
    pub spec: ModelSpec,
    /// Its tokenizer.
    pub tokenizer: Tokenizer,
    /// Its ONNX file.
    pub onnx: PathBuf,
    /// Whether a text must be run alone (see [`rag_model::embed`]).
    pub alone: bool,
}

/// All models of the engine.
#[derive(Debug)]
pub struct Models {
    folder: PathBuf,
    onnxruntime: PathBuf,
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Empty,
    Loaded(Arc<Model>),
    Failed(Instant, Error),
}

impl Models {
    /// Models beneath `folder`, run by the library at `onnxruntime`. Nothing is loaded yet.
    pub fn new(folder: PathBuf, onnxruntime: PathBuf) -> Self {
        Self { folder, onnxruntime, slots: Mutex::default() }
    }

    /// The model folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The model that `spec` names, loaded on first use.
    pub fn get(&self, spec: &ModelSpec) -> Result<Arc<Model>> {
        let key = Key::of(spec);
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(key.clone()).or_default().clone()
        };
        // Held while loading: whoever wants the same model waits here, others do not.
        let mut state = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Loaded(model) => return Ok(model.clone()),
            State::Failed(when, error) if when.elapsed() < FAILURE_TTL => return Err(error.clone()),
            _ => {}
        }
        match load(&self.folder, spec, key) {
            Ok(model) => {
                let model = Arc::new(model);
                *state = State::Loaded(model.clone());
                Ok(model)
            }
            Err(error) => {
                *state = State::Failed(Instant::now(), error.clone());
                Err(error)
            }
        }
    }

    /// Reads a folder, checks that its network fits what it says, and describes it.
    pub fn describe(&self, name: &str, path: &str) -> Result<ModelSpec> {
        let mut manifest = Manifest::read(&self.folder, name, path)?;
        manifest.hash(None)?;
        let tokenizer = Tokenizer::open(&manifest.tokenizer, manifest.spec.max_tokens)?;
        let settings = Settings { threads: 1, arena: false };
        let runtime = self.runtime()?;
        let mut encoder = Encoder::open(&runtime, &manifest.onnx, &manifest.spec, tokenizer.pad(), settings)?;
        // A file may leave the length of its vectors open; then only a run tells.
        encoder.embed(&[&tokenizer.encode("a")?])?;
        Ok(manifest.spec)
    }

    /// ONNX Runtime.
    pub fn runtime(&self) -> Result<Runtime> {
        Runtime::load(&self.onnxruntime)
    }

    /// Names of the loaded models, sorted.
    pub fn names(&self) -> Vec<String> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = slots.values().filter_map(|slot| match slot.0.try_lock().as_deref() {
            Ok(State::Loaded(model)) => Some(model.spec.name.clone()),
            _ => None, // a slot that is locked is being loaded
        });
        let mut names: Vec<String> = loaded.collect();
        names.sort();
        names.dedup();
        names
    }
}

fn load(folder: &Path, spec: &ModelSpec, key: Key) -> Result<Model> {
    let mut manifest = Manifest::read(folder, &spec.name, &spec.path)?;
    let tokenizer_file = manifest.tokenizer.clone();
    // Both take about as long; a first query waits for them.
    let (weights, tokenizer) = std::thread::scope(|scope| {
        let open = || Tokenizer::open(&tokenizer_file, spec.max_tokens);
        let tokenizer = os::spawn_scoped(scope, Builder::new().name("tokenizer".into()), open)?;
        let weights = manifest.hash(spec.sha256.as_deref());
        Ok((weights, tokenizer.join().unwrap_or_else(|_| Err(Error::internal("loading a tokenizer panicked")))))
    })?;
    Ok(Model { key, spec: spec.clone(), tokenizer: tokenizer?, onnx: manifest.onnx, alone: weights?.shared_scale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::Kind;

    #[test]
    fn a_failure_is_told_again_and_then_forgotten() {
        let folder = tempfile::tempdir().expect("folder");
        let models = Models::new(folder.path().to_owned(), PathBuf::from("/nowhere"));
        let spec = ModelSpec {
            name: "m".into(),
            path: "m".into(),
            sha256: None,
            dimensions: 3,
            max_tokens: 16,
            pooling: Pooling::Mean,
            normalize: true,
            query_prefix: String::new(),
            passage_prefix: String::new(),
        };
        let first = models.get(&spec).expect_err("missing");
        assert_eq!(first.kind, Kind::FileMissing);
        std::fs::create_dir(folder.path().join("m")).expect("folder");
        assert_eq!(models.get(&spec).expect_err("remembered"), first);
        std::thread::sleep(FAILURE_TTL);
        assert_ne!(models.get(&spec).expect_err("looked again").message, first.message);
        assert!(models.names().is_empty());
    }
}
