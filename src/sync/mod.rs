// SPDX-License-Identifier: PostgreSQL

//! From a source to the catalog.
//!
//! A sync is a row of short transactions that `CALL rag.sync` strings together: [`begin`] starts the run, [`list`] lists
//! the source and writes the manifest, [`batch`] reads, embeds and stores some pending documents, and the batch that
//! finds nothing pending ends the run. Each batch asks the engine first and writes afterwards, so locks are held for the writes only.
//! A document that cannot be read or stored costs itself: its error goes to the manifest and its old version stays.

mod engine;
pub mod ingest;
pub mod job;

use crate::error;
use crate::guc::{Allowed, Waits};
use crate::spi;
use crate::store::collection::{self, Collection};
use crate::store::job::{self as queue, Work};
use crate::store::source::{self, Source};
use crate::store::sync::{self as runs, Run};
use crate::store::{document, embedding, statistics};
use rag_core::document::PARSER_VERSION;
use rag_core::error::Kind;
use rag_core::provenance::ContentHash;
use rag_core::source::{Failure, Item, SourceKind, SourceSpec, is_feed, is_url};
use rag_core::{Error, Result};
use serde_json::Value;
use std::cell::Cell;

/// Longest URI in bytes; PostgreSQL's indexes hold no more than about 2,700.
const MAX_URI: usize = 2000;
/// Most documents of one batch.
const BATCH_DOCUMENTS: i32 = 64;
/// Most bytes of one batch, unless one document alone has more.
const BATCH_BYTES: i64 = 512 << 10;

/// The source of a name, locked, if it can be synced.
pub fn syncable(name: &str) -> Result<Source> {
    let source = source::locked(name)?;
    if source.kind == source::INLINE {
        return Err(Error::unsupported(format!("source \"{name}\" holds inline documents and cannot be synced"))
            .with_hint("Give it new versions of its documents with rag.ingest."));
    }
    if !source.enabled {
        return Err(Error::new(Kind::NotReady, format!("source \"{name}\" is disabled")).with_hint(format!(
            "Enable it: SELECT rag.alter_source({}, enabled => true);",
            pgrx::spi::quote_literal(name)
        )));
    }
    Ok(source)
}

/// Queues vectors for the chunks that have none, of every source that has such chunks. Returns the sources' names.
pub fn enqueue_missing() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (id, name) in source::all()? {
        if embedding::any_missing(id)? {
            queue::enqueue(Work::Embed, id)?;
            names.push(name);
        }
    }
    Ok(names)
}

/// Starts a run over a source. Returns the run's key.
pub fn begin(name: &str) -> Result<i64> {
    if spi::in_transaction_block() {
        return Err(Error::new(Kind::InTransaction, "rag.sync cannot run inside a transaction block")
            .with_hint("Run CALL rag.sync(...) on its own, or queue it: SELECT rag.enqueue_sync(...);"));
    }
    Ok(runs::start(syncable(name)?.id, name, PARSER_VERSION)?.id)
}

/// Lists the source of a run into its manifest.
pub fn list(run_id: i64, allowed: Allowed, waits: Waits) -> Result<()> {
    let run = runs::running(run_id)?;
    let source = source::shared(run.source_id)?;
    let collection = collection::by_id(source.collection_id)?;
    let spec = spec_of(&source, allowed)?;
    let options = options_sha256(&source, &collection, &source.options);
    let listed = Cell::new(0);
    let seen = engine::list(&spec, waits, &mut || listed.set(0), &mut |items, mut failures| {
        spi::scratch(|| {
            let (items, long): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.uri.len() <= MAX_URI);
            failures.extend(long.into_iter().map(|item| too_long(&item.uri)));
            runs::add_items(run, listed.get(), &items, &options.0, source.acl.as_deref())?;
            listed.set(listed.get() + items.len() as i64);
            runs::add_failures(run, listed.get(), &failures)?;
            listed.set(listed.get() + failures.len() as i64);
            Ok(())
        })
    })?;
    // A feed that is as it was seen lists nothing.
    let again = listed.get() == 0 && spec.seen.is_some() && is_feed(spec.kind, &spec.location);
    let count = match again {
        true => runs::add_items_again(run, &spec.location, &options.0, source.acl.as_deref())?,
        false => listed.get(),
    };
    let seen = i64::try_from(seen).unwrap_or(i64::MAX).max(count);
    runs::listed(run, seen, count)
}

/// What a batch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// There may be more.
    More,
    /// The run has ended, and every chunk of the source has a vector.
    Done,
    /// The run has ended, and a job was queued for chunks without a vector.
    Queued,
}

/// Reads and stores some of a run's pending documents; ends the run when there are none.
pub fn batch(run_id: i64, embed: bool, allowed: Allowed, waits: Waits) -> Result<Batch> {
    let run = runs::running(run_id)?;
    if !runs::is_listed(run)? {
        return Err(Error::new(Kind::NotReady, format!("sync {run_id} has not listed its source"))
            .with_hint("Use CALL rag.sync, which takes the steps in order."));
    }
    let source = source::shared(run.source_id)?;
    let pending = runs::pending(run, BATCH_DOCUMENTS, BATCH_BYTES)?;
    if pending.is_empty() {
        finish(run, &source)?;
        return Ok(match embedding::any_missing(source.id)? {
            true => {
                queue::enqueue(Work::Embed, source.id)?;
                Batch::Queued
            }
            false => Batch::Done,
        });
    }
    let collection = collection::by_id(source.collection_id)?;
    let (_, options) = source.parsed()?;
    let items: Vec<Item> = pending.iter().map(|p| p.item.clone()).collect();
    let read = engine::read(&spec_of(&source, allowed)?, &items, &collection.model, waits)?;
    let fingerprint = options_sha256(&source, &collection, &source.options);
    let (source_of, acl) = (&source, Some(source.acl.as_deref().unwrap_or_default()));
    let task =
        ingest::Task { source: source_of, collection: &collection, options: &options, fingerprint, acl, embed, waits };
    // A page that a post links to may be refused again: then the post is as it is stored.
    let stored = read.iter().flatten().map(|document| &**document);
    let stored = document::as_read(source.id, stored, &fingerprint.0, source.acl.as_deref())?;
    let (same, others): (Vec<_>, Vec<_>) = pending
        .iter()
        .zip(read)
        .partition(|(_, read)| read.as_ref().is_ok_and(|document| stored.contains(&document.uri)));
    for (pending, _) in &same {
        runs::settle(run, pending.ordinal, "unchanged", None)?;
    }
    let (pending, read): (Vec<_>, Vec<_>) = others.into_iter().unzip();
    let (mut new, mut modified, mut failed) = (0, 0, 0);
    for (pending, stored) in pending.iter().zip(task.store_all(read)?) {
        let (state, count, error) = match stored {
            Ok(stored) if stored.new => ("new", &mut new, None),
            Ok(_) => ("modified", &mut modified, None),
            Err(Failure { error, .. }) => ("failed", &mut failed, Some(error.message)),
        };
        *count += 1;
        runs::settle(run, pending.ordinal, state, error.as_deref())?;
    }
    let (done, all) = runs::advance(run, new, modified, same.len() as i32, failed)?;
    if done < all {
        error::notice(format!("sync of \"{}\": {done} of {all} documents", source.name));
    }
    Ok(Batch::More)
}

fn finish(run: Run, source: &Source) -> Result<()> {
    let feed = source.kind.parse::<SourceKind>().is_ok_and(|kind| is_feed(kind, &source.location));
    let counts = runs::finish(run, feed.then_some(source.location.as_str()))?;
    statistics::renew()?;
    error::notice(format!(
        "sync of \"{}\": {} new, {} modified, {} unchanged, {} deleted, {} failed",
        source.name, counts.new, counts.modified, counts.unchanged, counts.deleted, counts.failed
    ));
    if counts.failed > 0 {
        let all = counts.new + counts.modified + counts.unchanged + counts.failed;
        error::warn(
            format!("{} of {all} documents of \"{}\" could not be read", counts.failed, source.name),
            Some(&format!("SELECT uri, error FROM rag.sync_item WHERE sync_id = {} AND state = 'failed';", run.id)),
        );
    }
    Ok(())
}

fn spec_of(source: &Source, allowed: Allowed) -> Result<SourceSpec> {
    let (kind, options) = source.parsed()?;
    let location = source.location.clone();
    let seen = match is_url(&location) {
        true if is_feed(kind, &location) => runs::feed_seen(source.id, &location)?,
        true => document::seen(source.id, &location)?,
        false => None,
    };
    Ok(SourceSpec { kind, location, options, allowed_paths: allowed.paths, allowed_hosts: allowed.hosts, seen })
}

/// What a document's chunks and vectors depend on besides its bytes; a change of any of it makes the document be read
/// again.
fn options_sha256(source: &Source, collection: &Collection, options: &Value) -> ContentHash {
    let model = &collection.model.spec;
    ContentHash::of(format!(
        "{PARSER_VERSION}\n{}\n{}\n{}\n{options}\n{}",
        source.kind,
        source.text_search_config,
        model.name,
        source.project.as_deref().unwrap_or_default(),
    ))
}

/// The failure of a document whose URI is longer than an index holds.
fn too_long(uri: &str) -> Failure {
    let shown: String = uri.chars().take(100).collect();
    let message = format!("uri of {} bytes exceeds {MAX_URI}: \"{shown}\"", uri.len());
    Failure { uri: shown, error: Error::new(Kind::LimitExceeded, message) }
}
