// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg: terms; its index: what writes it, merging it, making it anew.

use crate::error::OrRaise;
use crate::retrieve::lexical;
use crate::spi::guarded;
use crate::store::collection;
use crate::store::lexeme::Configuration;
use crate::store::lexical::Unit;
use crate::store::lexical::changes;
use crate::store::lexical::compaction::{self, Extent};
use crate::store::source;
use crate::tsvector::TsVector;
use pgrx::default;
use pgrx::prelude::*;
use rag_core::Error;
use rag_core::lexical::{tokens, tsvector};
use std::convert::Infallible;

/// Writes what a statement changed in `rag.chunk` into the index. Its SQL is in `sql/schema/17_lexical.sql`.
#[pg_trigger(sql = false)]
fn index_terms<'a>(trigger: &'a pgrx::PgTrigger<'a>) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, Infallible> {
    if guarded(|| changes::statement(trigger, !super::is_announced())).or_raise() {
        super::announce();
    }
    Ok(None::<PgHeapTuple<'a, pgrx::AllocatedByRust>>)
}

/// Deletes the index of collections that were deleted. Its SQL is in `sql/schema/17_lexical.sql`.
#[pg_trigger(sql = false)]
fn drop_segments<'a>(
    trigger: &'a pgrx::PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, Infallible> {
    guarded(|| compaction::drop_segments(trigger)).or_raise();
    Ok(None::<PgHeapTuple<'a, pgrx::AllocatedByRust>>)
}

/// Whether the leg can use the index of a collection for what the caller sees: `ready`, `missing` (until rag.reindex_lexical or
/// rag.repair has run), or `unused`, where policies of the administrator's own decide what is seen, or nothing may be read. Its SQL
/// is in `sql/schema/17_lexical.sql`, because a view calls it.
#[pg_extern(sql = false)]
fn lexical_state(collection_id: i64, unit: &str) -> String {
    let state = || match unit {
        "chunk" => lexical::state(collection_id, Unit::Chunk),
        "document" => lexical::state(collection_id, Unit::Document),
        other => Err(Error::invalid(format!("there is no unit \"{other}\""))
            .with_hint("It is chunk or document: SELECT rag.lexical_state(1, 'chunk');")),
    };
    guarded(state).or_raise().to_owned()
}

/// The terms of a text, whether it is a passage or a query; those of a part of it, a title or a name, count more.
#[pg_extern(schema = "rag", stable, parallel_restricted, cost = 1000)]
fn terms(
    content: Option<&str>,
    text_search_config: default!(Option<&str>, "'english'"),
    emphasis: default!(Option<&str>, "NULL"),
) -> Option<TsVector> {
    let content = content?;
    let terms = || {
        let config = source::resolve_config(super::required("text_search_config", text_search_config)?)?;
        let lexer = Configuration(&config);
        let mut analysis = tokens::analyse(content, &lexer)?;
        if let Some(part) = emphasis {
            analysis = analysis.emphasise(&tokens::analyse(part, &lexer)?, tokens::EMPHASIS);
        }
        TsVector::read(&tsvector::write(&analysis.terms))
    };
    Some(guarded(terms).or_raise())
}

/// Merges the segments of the index of a collection, or of all, into one for each label; returns how many it merged.
#[pg_extern(schema = "rag", volatile, parallel_unsafe, security_definer)]
fn compact(collection: default!(Option<&str>, "NULL")) -> i64 {
    let compact = || {
        let mut merged = 0;
        for place in compaction::places(key(collection)?)? {
            merged += compaction::compact(&place, Extent::Full)?.merged;
        }
        Ok(merged as i64)
    };
    guarded(compact).or_raise()
}

/// Makes the index of a collection, or of all, anew from its passages; returns their number.
#[pg_extern(schema = "rag", volatile, parallel_unsafe, security_definer)]
fn reindex_lexical(collection: default!(Option<&str>, "NULL")) -> i64 {
    let reindex = || match key(collection)? {
        Some(id) => compaction::reindex(id),
        None => collection::ids()?.into_iter().map(compaction::reindex).sum(),
    };
    guarded(reindex).or_raise()
}

fn key(collection: Option<&str>) -> rag_core::Result<Option<i64>> {
    collection.map(|name| Ok(collection::by_name(name)?.id)).transpose()
}
