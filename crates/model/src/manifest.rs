// SPDX-License-Identifier: PostgreSQL

//! What a model folder says about its model.
//!
//! Owns the reading of the small JSON files that sentence-transformers and transformers put beside the weights, and the
//! choice of the ONNX file. It must not open a session: describing a folder costs milliseconds (and one pass over the
//! weights for their hash). Values that a folder leaves out get the defaults that sentence-transformers uses, so a
//! model behaves here as it does there.

use rag_core::protocol::{ModelSpec, Pooling};
use rag_core::{Error, Kind, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Looked for in this order, in the folder and in its `onnx` subfolder; the full-precision file wins.
const ONNX_NAMES: &[&str] = &["model.onnx", "model_quantized.onnx", "model_int8.onnx", "model_uint8.onnx"];

/// Tokenizer configurations use huge numbers to say "no limit".
const LARGEST_WINDOW: u64 = 1 << 20;

/// A model folder that was read.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The model as its folder describes it; `sha256` is filled in by [`Manifest::hash`].
    pub spec: ModelSpec,
    /// The ONNX file.
    pub onnx: PathBuf,
    /// The `tokenizer.json`.
    pub tokenizer: PathBuf,
}

/// What one pass over an ONNX file finds out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// Hexadecimal SHA-256 of the file.
    pub sha256: String,
    /// Whether activations are quantised with one scale per tensor, so that texts in one batch change each other.
    pub shared_scale: bool,
}

/// The folder that `path` names: absolute, or beneath `models` and then without `..`.
pub fn locate(models: &Path, path: &str) -> Result<PathBuf> {
    let given = Path::new(path);
    if given.is_absolute() {
        return Ok(given.to_owned());
    }
    let plain = given.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if path.is_empty() || !plain {
        return Err(Error::invalid(format!(
            "model path \"{path}\" must be absolute or lead down from the model folder"
        )));
    }
    Ok(models.join(given))
}

impl Manifest {
    /// Reads the folder that `path` names beneath `models`.
    ///
    /// Fails with [`Kind::FileMissing`] when the folder, its ONNX file or its `tokenizer.json` is not there, and with
    /// [`Kind::BadContent`] when a configuration cannot be read.
    pub fn read(models: &Path, name: &str, path: &str) -> Result<Self> {
        let folder = locate(models, path)?;
        if !folder.is_dir() {
            let missing = format!("model folder \"{}\" does not exist", folder.display());
            return Err(Error::new(Kind::FileMissing, missing).with_hint(
                "Put the model's folder there (on a standby, too), or name another: SELECT rag.load_model(name, kind, path);",
            ));
        }
        let onnx = find_onnx(&folder)?;
        let tokenizer = folder.join("tokenizer.json");
        if !tokenizer.is_file() {
            let missing = format!("model folder \"{}\" has no tokenizer.json", folder.display());
            return Err(Error::new(Kind::FileMissing, missing)
                .with_hint("Save the model's fast tokenizer there (tokenizer.save_pretrained in Python)."));
        }
        let config = json(&folder.join("config.json"))?.unwrap_or_default();
        let pooling = json(&folder.join("1_Pooling/config.json"))?.unwrap_or_default();
        let prompts = json(&folder.join("config_sentence_transformers.json"))?.unwrap_or_default();
        let width = config["hidden_size"].as_u64().or_else(|| pooling["word_embedding_dimension"].as_u64());
        let spec = ModelSpec {
            name: name.to_owned(),
            path: path.to_owned(),
            sha256: None,
            dimensions: width.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0).ok_or_else(|| {
                Error::new(Kind::BadContent, format!("\"{}/config.json\" states no hidden_size", folder.display()))
            })?,
            max_tokens: window(&folder, &config)?,
            pooling: read_pooling(&folder, &pooling)?,
            normalize: read_normalize(&folder)?,
            query_prefix: prompt(&prompts, &["query"]),
            passage_prefix: prompt(&prompts, &["passage", "document"]),
        };
        Ok(Self { spec, onnx, tokenizer })
    }

    /// Reads the ONNX file once: its hash goes into the spec and is compared with `expected`.
    ///
    /// Fails with [`Kind::NotReady`] when the hash is not the expected one.
    pub fn hash(&mut self, expected: Option<&str>) -> Result<Weights> {
        let weights = weigh(&self.onnx)?;
        if let Some(expected) = expected.filter(|e| !e.eq_ignore_ascii_case(&weights.sha256)) {
            let ModelSpec { name, path, .. } = &self.spec;
            return Err(Error::new(Kind::NotReady, format!("the file of model \"{name}\" is not the one that was loaded"))
                .with_detail(format!(
                    "\"{}\" has SHA-256 {}, the catalog says {expected}.",
                    self.onnx.display(),
                    weights.sha256
                ))
                .with_hint(format!(
                    "Bring the file back, or take the new one as a model of its own: SELECT rag.load_model('{name}-2', 'embedding', '{path}');"
                )));
        }
        self.spec.sha256 = Some(weights.sha256.clone());
        Ok(weights)
    }
}

/// Hashes an ONNX file and looks for the operator that shares a scale among the texts of a batch. Operators stand by
/// name in the file, so no protobuf reader is needed; a false alarm would only cost speed.
pub fn weigh(onnx: &Path) -> Result<Weights> {
    const OPERATOR: &[u8] = b"DynamicQuantizeLinear";
    let failed = |e: std::io::Error| Error::io(&onnx.to_string_lossy(), &e);
    let mut file = File::open(onnx).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 20];
    let mut kept = 0; // bytes of the previous block that may begin the operator's name
    let mut shared_scale = false;
    loop {
        let read = file.read(&mut buffer[kept..]).map_err(failed)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[kept..kept + read]);
        let filled = kept + read;
        shared_scale = shared_scale || contains(&buffer[..filled], OPERATOR);
        kept = filled.min(OPERATOR.len() - 1);
        buffer.copy_within(filled - kept..filled, 0);
    }
    let sha256 = hasher.finalize().iter().map(|b| format!("{b:02x}")).collect();
    Ok(Weights { sha256, shared_scale })
}

/// Whether `needle` occurs. Its first byte is rare enough in weights that looking for it first is quick.
fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    let mut rest = haystack;
    while let Some(at) = rest.iter().position(|b| *b == needle[0]) {
        if rest[at..].starts_with(needle) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

fn find_onnx(folder: &Path) -> Result<PathBuf> {
    let places = [folder.to_owned(), folder.join("onnx")];
    for name in ONNX_NAMES {
        if let Some(found) = places.iter().map(|p| p.join(name)).find(|p| p.is_file()) {
            return Ok(found);
        }
    }
    // Exports name quantised variants after instruction sets (model_qint8_avx512.onnx); the first by name is as good
    // as any, and always the same.
    let mut others: Vec<PathBuf> = places
        .iter()
        .filter_map(|p| std::fs::read_dir(p).ok())
        .flat_map(|entries| entries.filter_map(std::result::Result::ok).map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "onnx") && p.is_file())
        .collect();
    others.sort();
    others.into_iter().next().ok_or_else(|| {
        Error::new(Kind::FileMissing, format!("model folder \"{}\" has no ONNX file", folder.display()))
            .with_hint("Export the model to ONNX and save it there as model.onnx or onnx/model.onnx.")
    })
}

/// The file as JSON; `None` when it does not exist.
fn json(path: &Path) -> Result<Option<Value>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(&path.to_string_lossy(), &e)),
    };
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|e| Error::new(Kind::BadContent, format!("\"{}\" is not JSON: {e}", path.display())))
}

/// What sentence-transformers was told, else what the tokenizer was; never more than the network has positions for.
fn window(folder: &Path, config: &Value) -> Result<u32> {
    let sentence = json(&folder.join("sentence_bert_config.json"))?.unwrap_or_default();
    let tokenizer = json(&folder.join("tokenizer_config.json"))?.unwrap_or_default();
    let stated = [&sentence["max_seq_length"], &tokenizer["model_max_length"]]
        .into_iter()
        .find_map(|v| v.as_u64().filter(|n| (1..LARGEST_WINDOW).contains(n)));
    // RoBERTa counts positions from the padding index on, so two of them can never be used.
    let offset = if config["model_type"].as_str().is_some_and(|t| t.contains("roberta")) { 2 } else { 0 };
    let positions = config["max_position_embeddings"].as_u64().map(|n| n.saturating_sub(offset));
    let window = match (stated, positions) {
        (Some(stated), Some(positions)) => stated.min(positions),
        (stated, positions) => stated.or(positions).unwrap_or(512),
    };
    u32::try_from(window).ok().filter(|n| *n >= 8).ok_or_else(|| {
        Error::new(Kind::BadContent, format!("\"{}\" states a window of {window} tokens", folder.display()))
    })
}

fn read_pooling(folder: &Path, pooling: &Value) -> Result<Pooling> {
    let on = |key: &str| pooling[key].as_bool() == Some(true);
    let mode = pooling["pooling_mode"].as_str();
    if on("pooling_mode_cls_token") || mode == Some("cls") {
        return Ok(Pooling::Cls);
    }
    let other = ["pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_lasttoken"];
    if on("pooling_mode_mean_tokens") || mode == Some("mean") || !other.iter().any(|key| on(key)) && mode.is_none() {
        return Ok(Pooling::Mean);
    }
    Err(Error::unsupported(format!("model folder \"{}\" asks for a pooling other than mean or cls", folder.display())))
}

/// A list of modules says whether vectors are normalised; without one they are, because similarity is by cosine.
fn read_normalize(folder: &Path) -> Result<bool> {
    let modules = json(&folder.join("modules.json"))?;
    Ok(modules
        .as_ref()
        .and_then(Value::as_array)
        .is_none_or(|modules| modules.iter().any(|m| m["type"].as_str().is_some_and(|t| t.ends_with("Normalize")))))
}

fn prompt(config: &Value, names: &[&str]) -> String {
    names.iter().find_map(|name| config["prompts"][name].as_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rag_model_{}_{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("folder");
        for (file, content) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            std::fs::write(path, content).expect("file");
        }
        folder
    }

    fn read(folder: &Path) -> Result<Manifest> {
        Manifest::read(Path::new("/nowhere"), "m", &folder.to_string_lossy())
    }

    #[test]
    fn a_full_folder_says_everything() {
        let folder = folder(
            "full",
            &[
                ("onnx/model.onnx", "x"),
                ("tokenizer.json", "{}"),
                ("config.json", r#"{"hidden_size": 768, "max_position_embeddings": 514, "model_type": "xlm-roberta"}"#),
                ("tokenizer_config.json", r#"{"model_max_length": 1000000000000000019884624838656}"#),
                ("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#),
                ("modules.json", r#"[{"type": "sentence_transformers.models.Pooling"}]"#),
                ("config_sentence_transformers.json", r#"{"prompts": {"query": "query: ", "document": "passage: "}}"#),
            ],
        );
        let mut manifest = read(&folder).expect("reads");
        manifest.hash(None).expect("hashes");
        let spec = &manifest.spec;
        assert_eq!((spec.dimensions, spec.max_tokens, spec.pooling, spec.normalize), (768, 512, Pooling::Cls, false));
        assert_eq!((spec.query_prefix.as_str(), spec.passage_prefix.as_str()), ("query: ", "passage: "));
        assert_eq!(spec.sha256.as_deref(), Some("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"));
        let mismatch = manifest.hash(Some("00")).expect_err("mismatch");
        assert_eq!(mismatch.kind, Kind::NotReady);
        assert!(mismatch.hint.is_some_and(|h| h.contains("rag.load_model(")));
    }

    #[test]
    fn a_bare_folder_gets_defaults_and_a_quantised_file_is_found() {
        let files =
            [("model_quantized.onnx", "x"), ("tokenizer.json", "{}"), ("config.json", r#"{"hidden_size": 384}"#)];
        let manifest = read(&folder("bare", &files)).expect("reads");
        let spec = &manifest.spec;
        assert_eq!((spec.max_tokens, spec.pooling, spec.normalize), (512, Pooling::Mean, true));
        assert!(manifest.onnx.ends_with("model_quantized.onnx"));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (name, files, message) in [
            ("no_onnx", vec![("tokenizer.json", "{}")], "has no ONNX file"),
            ("no_tokenizer", vec![("model.onnx", "x")], "has no tokenizer.json"),
        ] {
            let error = read(&folder(name, &files)).expect_err(message);
            assert_eq!(error.kind, Kind::FileMissing);
            assert!(error.message.contains(message), "{error}");
        }
        assert_eq!(read(Path::new("/no/such/model")).map_err(|e| e.kind).err(), Some(Kind::FileMissing));
        let files = [("model.onnx", "x"), ("tokenizer.json", "{}"), ("config.json", "{")];
        assert_eq!(read(&folder("bad", &files)).map_err(|e| e.kind).err(), Some(Kind::BadContent));
    }

    #[test]
    fn a_relative_path_stays_beneath_the_model_folder() {
        let models = Path::new("/models");
        assert_eq!(locate(models, "a/b"), Ok(PathBuf::from("/models/a/b")));
        assert_eq!(locate(models, "/x"), Ok(PathBuf::from("/x")));
        assert!(locate(models, "../x").is_err());
        assert!(locate(models, "").is_err());
    }

    #[test]
    fn an_operator_is_found_across_blocks() {
        let mut bytes = vec![b'D'; (1 << 20) - 5];
        bytes.extend_from_slice(b"DynamicQuantizeLinear tail");
        let path = folder("blocks", &[]).join("w.onnx");
        std::fs::write(&path, &bytes).expect("file");
        let weights = weigh(&path).expect("weighs");
        assert!(weights.shared_scale);
        let whole: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(weights.sha256, whole);
    }
}
