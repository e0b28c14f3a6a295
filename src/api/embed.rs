// SPDX-License-Identifier: PostgreSQL

//! Inference on its own: vectors and token counts.

use crate::error::{self, OrRaise};
use crate::guc;
use crate::inference;
use crate::spi::guarded;
use crate::store::collection;
use crate::store::model::{self, Model};
use crate::vector::Vector;
use pgrx::default;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use rag_core::protocol::{Input, Priority};
use rag_core::{Error, Kind, Result};

/// The named model, or that of the default collection.
fn model_or_default(name: Option<&str>) -> Result<Model> {
    match name {
        Some(name) => model::by_name(name),
        None => Ok(collection::by_name("default")?.model),
    }
}

fn warn_cut(model: &Model, cut: usize, of: usize) {
    if cut > 0 {
        error::warn(
            format!("{cut} of {of} texts exceed the window of model \"{}\" and were cut", model.spec.name),
            Some(&format!("The window is {} tokens; see rag.count_tokens.", model.spec.max_tokens)),
        );
    }
}

/// Most texts of a request that somebody is taken to wait for; more than that must not hold up the queries of others.
const INTERACTIVE_TEXTS: usize = 8;

/// Embeds passages: one row per text, in order; a null text has a null embedding, a null array has no rows.
#[pg_extern(schema = "rag", stable, parallel_restricted, cost = 10000)]
fn embed(
    texts: Option<Vec<Option<String>>>,
    model: default!(Option<&str>, "NULL"),
) -> TableIterator<'static, (name!(ordinal, i32), name!(embedding, Option<Vector>))> {
    let texts = texts.unwrap_or_default();
    let run = || {
        let model = model_or_default(model)?;
        let present: Vec<String> = texts.iter().flatten().cloned().collect();
        let mut vectors = Vec::new();
        if !present.is_empty() {
            let of = present.len();
            let priority = if of > INTERACTIVE_TEXTS { Priority::Bulk } else { Priority::Interactive };
            vectors = inference::embed(&model.spec, present, Input::Passage, priority, guc::waits())?;
            warn_cut(&model, vectors.iter().filter(|(_, cut)| *cut).count(), of);
        }
        let mut vectors = vectors.into_iter();
        Ok(texts
            .into_iter()
            .map(|text| text.and_then(|_| vectors.next()).map(|(vector, _)| Vector(vector)))
            .collect::<Vec<_>>())
    };
    TableIterator::new(guarded(run).or_raise().into_iter().zip(1..).map(|(embedding, ordinal)| (ordinal, embedding)))
}

/// Embeds a query; a null query has a null vector.
#[pg_extern(schema = "rag", stable, parallel_restricted, cost = 10000)]
fn embed_query(query: Option<&str>, model: default!(Option<&str>, "NULL")) -> Option<Vector> {
    let query = query?;
    let run = || {
        let model = model_or_default(model)?;
        let (vector, cut) = inference::embed_query(&model.spec, query, guc::waits())?;
        warn_cut(&model, usize::from(cut), 1);
        Ok(Vector(vector))
    };
    Some(guarded(run).or_raise())
}

/// Tokens of a text, special tokens included; null for null.
#[pg_extern(schema = "rag", stable, parallel_restricted, cost = 1000)]
fn count_tokens(text: Option<&str>, model: default!(Option<&str>, "NULL")) -> Option<i32> {
    let text = text?;
    let run = || {
        let count = inference::count_tokens(&model_or_default(model)?.spec, text, guc::waits())?;
        i32::try_from(count).map_err(|_| Error::new(Kind::LimitExceeded, format!("the text has {count} tokens")))
    };
    Some(guarded(run).or_raise())
}
