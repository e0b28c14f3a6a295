// SPDX-License-Identifier: PostgreSQL

//! ONNX Runtime: loading the library once, opening sessions, running them.
//!
//! The only file that names `ort`. It owns the settings under which a network runs beside a database: threads never
//! spin while they wait, memory is returned instead of kept in arenas, and no memory pattern is remembered for shapes
//! that differ at each call. It must not know texts or vectors: rows of ids go in, floats come out.

use ort::environment::Environment;
use ort::session::Session as OrtSession;
use ort::value::{Tensor, TensorElementType, ValueType};
use rag_core::{Error, Kind, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The loaded runtime. A process has at most one.
#[derive(Debug, Clone)]
pub struct Runtime {
    environment: Environment,
}

/// How a session runs.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Threads that share one operator.
    pub threads: usize,
    /// Whether freed tensors are kept for the next call. Faster by a little, but the memory of the largest batch ever
    /// seen stays taken.
    pub arena: bool,
}

/// A network that is ready to run.
#[derive(Debug)]
pub struct Session {
    inner: OrtSession,
    inputs: Vec<Input>,
    output: usize,
    width: Option<usize>,
}

/// What the network may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Ids,
    Mask,
    Types,
}

/// What came out of one run.
#[derive(Debug)]
pub struct Output {
    /// The numbers, row by row.
    pub data: Vec<f32>,
    /// Vectors per text: the length of the padded row, or 1 when the network pools by itself.
    pub positions: usize,
    /// Length of one vector.
    pub width: usize,
}

/// Several ids of equal length, and how many of each are real.
#[derive(Debug)]
pub struct Batch {
    /// Texts.
    pub rows: usize,
    /// Tokens of each row, padding included.
    pub columns: usize,
    /// `rows * columns` ids.
    pub ids: Vec<i64>,
    /// 1 for a real token, 0 for padding.
    pub mask: Vec<i64>,
}

/// The library that is loaded; the lock also keeps two callers from loading at once.
static LOADED: Mutex<Option<(PathBuf, Runtime)>> = Mutex::new(None);

impl Runtime {
    /// Loads the runtime library at `path`, or returns the one that is loaded already.
    ///
    /// Fails with [`Kind::NotReady`] when the library is missing or too old; the next call tries again.
    pub fn load(path: &Path) -> Result<Self> {
        let mut loaded = LOADED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, runtime)) = loaded.as_ref() {
            return Ok(runtime.clone());
        }
        let failed = |why: String| {
            Error::new(Kind::NotReady, format!("could not load ONNX Runtime \"{}\"", path.display()))
                .with_detail(why)
                .with_hint(
                    "Install ONNX Runtime 1.22 or later and set pg_rag.onnxruntime_path to its libonnxruntime.so.",
                )
        };
        // The loader's own message for a missing file names every folder it searched.
        if !path.is_file() {
            return Err(failed("There is no such file.".to_owned()));
        }
        let builder = ort::init_from(path).map_err(|e| failed(format!("{e}.")))?;
        let environment =
            builder.with_name("pg_rag").with_telemetry(false).build().map_err(|e| failed(format!("{e}.")))?;
        environment.set_log_level(ort::logging::LogLevel::Error);
        let runtime = Self { environment };
        *loaded = Some((path.to_owned(), runtime.clone()));
        Ok(runtime)
    }
}

impl Session {
    /// Opens the ONNX file at `path`.
    ///
    /// The calling thread's priority is inherited by the threads of the session. Fails with [`Kind::BadContent`] when
    /// the file is no usable network and with [`Kind::Unsupported`] when it wants inputs that a text does not have.
    pub fn open(runtime: &Runtime, path: &Path, settings: Settings) -> Result<Self> {
        let inner = build(runtime, path, settings).map_err(|e| {
            Error::new(Kind::BadContent, format!("could not open ONNX file \"{}\"", path.display()))
                .with_detail(format!("{e}."))
        })?;
        let mut inputs = Vec::new();
        for input in inner.inputs() {
            inputs.push(match input.name() {
                "input_ids" => Input::Ids,
                "attention_mask" => Input::Mask,
                "token_type_ids" => Input::Types,
                other => {
                    return Err(Error::unsupported(format!(
                        "ONNX file \"{}\" wants an input \"{other}\"",
                        path.display()
                    ))
                    .with_detail("An embedding model may want input_ids, attention_mask and token_type_ids."));
                }
            });
        }
        let (output, width) = choose_output(&inner).ok_or_else(|| {
            Error::unsupported(format!("ONNX file \"{}\" has no output of 32-bit token vectors", path.display()))
        })?;
        Ok(Self { inner, inputs, output, width })
    }

    /// Length of a vector, when the file states it.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Runs the network over one batch.
    pub fn run(&mut self, batch: &Batch) -> Result<Output> {
        let failed = |e: ort::Error| {
            let text = e.to_string();
            // ONNX Runtime has no code of its own for this.
            let kind = if text.contains("bad_alloc") || text.contains("allocate") {
                Kind::OutOfMemory
            } else {
                Kind::Internal
            };
            Error::new(kind, format!("inference failed: {text}"))
        };
        let shape = [batch.rows, batch.columns];
        let mut values: Vec<(Cow<'_, str>, Tensor<i64>)> = Vec::with_capacity(3);
        for input in &self.inputs {
            let (name, data) = match input {
                Input::Ids => ("input_ids", batch.ids.clone()),
                Input::Mask => ("attention_mask", batch.mask.clone()),
                Input::Types => ("token_type_ids", vec![0; batch.ids.len()]),
            };
            values.push((name.into(), Tensor::from_array((shape, data)).map_err(failed)?));
        }
        let outputs = self.inner.run(values).map_err(failed)?;
        let (shape, data) = outputs[self.output].try_extract_tensor::<f32>().map_err(failed)?;
        let (positions, width) = match shape[..] {
            [rows, width] if rows == batch.rows as i64 => (1, width as usize),
            [rows, positions, width] if rows == batch.rows as i64 => (positions as usize, width as usize),
            _ => return Err(Error::internal(format!("{} texts came out as {shape:?}", batch.rows))),
        };
        Ok(Output { data: data.to_vec(), positions, width })
    }
}

fn build(runtime: &Runtime, path: &Path, settings: Settings) -> ort::Result<OrtSession> {
    OrtSession::builder(&runtime.environment)?
        .with_intra_threads(settings.threads)?
        .with_inter_threads(1)?
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        .with_memory_pattern(false)?
        .with_execution_providers([ort::ep::CPU::default().with_arena_allocator(settings.arena).build()])?
        .commit_from_file(path)
}

/// The output to read, and its width when stated: token vectors by their usual names, else the first that fits.
fn choose_output(session: &OrtSession) -> Option<(usize, Option<usize>)> {
    let mut usable: Vec<(usize, &str, Option<usize>, usize)> = Vec::new();
    for (at, output) in session.outputs().iter().enumerate() {
        if let ValueType::Tensor { ty: TensorElementType::Float32, shape, .. } = output.dtype() {
            let width = shape.last().and_then(|n| usize::try_from(*n).ok()).filter(|n| *n > 0);
            if shape.len() == 2 || shape.len() == 3 {
                usable.push((at, output.name(), width, shape.len()));
            }
        }
    }
    let by_name = |name: &str| usable.iter().find(|o| o.1 == name);
    let found = by_name("last_hidden_state")
        .or_else(|| by_name("token_embeddings"))
        .or_else(|| usable.iter().find(|o| o.3 == 3))
        .or_else(|| by_name("sentence_embedding"))
        .or_else(|| usable.first())?;
    Some((found.0, found.2))
}
