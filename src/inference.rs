// SPDX-License-Identifier: PostgreSQL

//! Models at work: texts to vectors, texts to token counts, folders to descriptions.
//!
//! Owns what the engine is asked and the check of what comes back: as many vectors as texts, each as long as the
//! model's, so that nobody else counts. Who waits, and what happens when the engine dies, is the caller's affair.

use crate::engine_client::{self, unexpected};
use crate::guc::Waits;
use rag_core::protocol::{Input, ModelSpec, Priority, Reply, Request};
use rag_core::{Error, Kind, Result};

/// A vector, and whether its text was cut at the window.
pub type Embedded = (Vec<f32>, bool);

/// Bytes of one text. Cutting it into tokens is not interrupted, and a window holds some thousand of them.
const MAX_TEXT: usize = 16 << 20;

fn within_limit(text: &str) -> Result<()> {
    match text.len() > MAX_TEXT {
        true => Err(Error::new(Kind::LimitExceeded, format!("text of {} bytes is longer than {MAX_TEXT}", text.len()))),
        false => Ok(()),
    }
}

/// Vectors of texts, in their order.
pub fn embed(
    model: &ModelSpec,
    texts: Vec<String>,
    input: Input,
    priority: Priority,
    waits: Waits,
) -> Result<Vec<Embedded>> {
    texts.iter().try_for_each(|text| within_limit(text))?;
    let wanted = texts.len();
    let request = Request::Embed { model: model.clone(), texts, input, priority };
    let Reply::Embeddings(embeddings) = engine_client::ask(&request, waits)? else { return Err(unexpected()) };
    let rows = embeddings.rows()?;
    if embeddings.dimensions != model.dimensions || (rows.len(), embeddings.truncated.len()) != (wanted, wanted) {
        return Err(unexpected().with_detail(format!(
            "{wanted} vectors of {} numbers were wanted, and {} of {} came.",
            model.dimensions,
            rows.len(),
            embeddings.dimensions
        )));
    }
    Ok(rows.into_iter().zip(embeddings.truncated).collect())
}

/// The vector of a query for which somebody waits.
pub fn embed_query(model: &ModelSpec, query: &str, waits: Waits) -> Result<Embedded> {
    embed(model, vec![query.to_owned()], Input::Query, Priority::Interactive, waits)?.pop().ok_or_else(unexpected)
}

/// Tokens of a text, special tokens included.
pub fn count_tokens(model: &ModelSpec, text: &str, waits: Waits) -> Result<u32> {
    within_limit(text)?;
    let request = Request::CountTokens { model: model.clone(), texts: vec![text.to_owned()] };
    match engine_client::ask(&request, waits)? {
        Reply::Counts(counts) => counts.first().copied().ok_or_else(unexpected),
        _ => Err(unexpected()),
    }
}

/// What a model folder says of itself.
pub fn describe(name: &str, path: &str, waits: Waits) -> Result<ModelSpec> {
    let request = Request::DescribeModel { name: name.to_owned(), path: path.to_owned() };
    match engine_client::ask(&request, waits)? {
        Reply::Model(spec) => Ok(spec),
        _ => Err(unexpected()),
    }
}
