// SPDX-License-Identifier: PostgreSQL

//! Token ids to vectors: batches, pooling, normalisation.
//!
//! Owns the promise that a text's vector depends on the text alone, bit for bit, so that a repeated sync changes nothing
//! and a repeated evaluation gives the same numbers. Measured on ONNX Runtime 1.23.2: a 32-bit network keeps the promise
//! whatever the batch, the padding and the number of threads. A network with dynamic quantisation takes one scale from
//! the whole tensor, so that neighbours and padding move a vector by up to 0.04 in a component: such a model
//! ([`crate::manifest::Weights::shared_scale`]) gets every text alone and unpadded, which for texts of 64 tokens and
//! more costs nothing.
//!
//! It must not know priorities or queues: a caller takes [`plan`]'s batches one by one and may stop between them.

use crate::session::{Batch, Output, Runtime, Session, Settings};
use crate::tokenizer::Encoded;
use rag_core::protocol::{ModelSpec, Pooling};
use rag_core::{Error, Kind, Result};
use std::path::Path;

/// A network with the rules that turn its output into vectors.
#[derive(Debug)]
pub struct Encoder {
    session: Session,
    pooling: Pooling,
    normalize: bool,
    dimensions: usize,
    pad: u32,
}

impl Encoder {
    /// Opens the ONNX file at `onnx` for `model`.
    ///
    /// Fails with [`Kind::InvalidArgument`] when the network's vectors have another length than the model states.
    pub fn open(runtime: &Runtime, onnx: &Path, model: &ModelSpec, pad: u32, settings: Settings) -> Result<Self> {
        let session = Session::open(runtime, onnx, settings)?;
        let dimensions = model.dimensions as usize;
        if let Some(width) = session.width().filter(|w| *w != dimensions) {
            return Err(wrong_width(&model.name, width, dimensions));
        }
        Ok(Self { session, pooling: model.pooling, normalize: model.normalize, dimensions, pad })
    }

    /// Vectors of one batch of texts, in order.
    pub fn embed(&mut self, texts: &[&Encoded]) -> Result<Vec<Vec<f32>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let output = self.session.run(&pad(texts, self.pad))?;
        if output.width != self.dimensions {
            return Err(wrong_width("", output.width, self.dimensions));
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let mut vector = pool(&output, row, text.ids.len(), self.pooling);
            if self.normalize {
                normalize(&mut vector);
            }
            if !vector.iter().all(|x| x.is_finite()) {
                return Err(Error::internal("the model returned a vector that is not finite"));
            }
            vectors.push(vector);
        }
        Ok(vectors)
    }
}

fn wrong_width(name: &str, width: usize, dimensions: usize) -> Error {
    Error::new(Kind::InvalidArgument, format!("model \"{name}\" returns {width} dimensions, not {dimensions}"))
        .with_hint("Correct hidden_size in the folder's config.json, or export the ONNX file again.")
}

/// Which texts run together: indexes of `lengths`, shortest texts first, at most `budget` tokens with padding in each
/// batch. With `alone`, each text is a batch.
pub fn plan(lengths: &[usize], budget: usize, alone: bool) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|i| (lengths[*i], *i));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for index in order {
        match batches.last_mut() {
            // Sorted, so the text at hand is the longest of its batch.
            Some(batch) if !alone && (batch.len() + 1) * lengths[index] <= budget => batch.push(index),
            _ => batches.push(vec![index]),
        }
    }
    batches
}

fn pad(texts: &[&Encoded], with: u32) -> Batch {
    let columns = texts.iter().map(|t| t.ids.len()).max().unwrap_or(0);
    let rows = texts.len();
    let mut ids = Vec::with_capacity(rows * columns);
    let mut mask = Vec::with_capacity(rows * columns);
    for text in texts {
        let padding = columns - text.ids.len();
        ids.extend(text.ids.iter().map(|id| i64::from(*id)));
        ids.extend(std::iter::repeat_n(i64::from(with), padding));
        mask.extend(std::iter::repeat_n(1, text.ids.len()));
        mask.extend(std::iter::repeat_n(0, padding));
    }
    Batch { rows, columns, ids, mask }
}

fn pool(output: &Output, row: usize, tokens: usize, pooling: Pooling) -> Vec<f32> {
    let width = output.width;
    let start = row * output.positions * width;
    let vectors = output.data[start..start + output.positions * width].chunks_exact(width);
    let attended = match pooling {
        Pooling::Mean => tokens.min(output.positions).max(1),
        Pooling::Cls => 1,
    };
    let mut sum = vec![0.0; width];
    for vector in vectors.take(attended) {
        for (total, x) in sum.iter_mut().zip(vector) {
            *total += x;
        }
    }
    let count = attended as f32;
    sum.iter_mut().for_each(|x| *x /= count);
    sum
}

fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(ids: &[u32]) -> Encoded {
        Encoded { ids: ids.to_vec(), tokens: ids.len() as u32, truncated: false }
    }

    #[test]
    fn batches_are_sorted_bounded_and_complete() {
        let lengths = [200, 3, 5, 100, 4, 300];
        let batches = plan(&lengths, 250, false);
        assert_eq!(batches, vec![vec![1, 4, 2], vec![3], vec![0], vec![5]]);
        assert!(plan(&lengths, 250, true).iter().all(|b| b.len() == 1));
        assert!(plan(&[], 250, false).is_empty());
    }

    #[test]
    fn a_shorter_text_is_padded_and_masked() {
        let (a, b) = (text(&[1, 2, 3]), text(&[4]));
        let batch = pad(&[&a, &b], 9);
        assert_eq!((batch.rows, batch.columns), (2, 3));
        assert_eq!(batch.ids, vec![1, 2, 3, 4, 9, 9]);
        assert_eq!(batch.mask, vec![1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn pooling_leaves_padding_out() {
        let output = Output { data: vec![1.0, 0.0, 3.0, 4.0, 100.0, 100.0], positions: 3, width: 2 };
        assert_eq!(pool(&output, 0, 2, Pooling::Mean), vec![2.0, 2.0]);
        assert_eq!(pool(&output, 0, 2, Pooling::Cls), vec![1.0, 0.0]);
        let mut vector = vec![3.0, 4.0];
        normalize(&mut vector);
        assert_eq!(vector, vec![0.6, 0.8]);
    }
}
