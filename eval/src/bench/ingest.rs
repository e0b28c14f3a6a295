// SPDX-License-Identifier: PostgreSQL

//! A sync and its parts: how much of it is the model's time, and how much ours.
//!
//! The floor is the bare rate of the engine: `rag.embed` of the same texts in batches as large as those of a sync, once before
//! the sync and once after it, so that a machine that slows down or warms up shows in both. The indexes are made again alone.
//! What remains when the embedding is taken from the sync is reading, parsing, storing, and keeping both indexes.

use super::Bench;
use super::figure::{Figure, Kind, Table, number};
use super::judged::{Judged, beginning, import_of};
use super::turns::Connect;
use crate::{db, import};
use postgres::Client;
use rag_core::{Error, Result};
use std::time::Instant;

/// The collection and source that are made and dropped.
const NAME: &str = "bench_ingest";

/// Texts of one call, as many as the documents of a batch of a sync.
const BATCH: usize = 64;

const REMOVE: [&str; 2] = [
    "SELECT rag.drop_source(name) FROM rag.sources WHERE name = $1",
    "SELECT rag.drop_collection(name) FROM rag.collection WHERE name = $1",
];

/// Measures it.
pub fn measure(connect: Connect<'_>, request: &Bench, judged: &Judged) -> Result<Figure> {
    let mut client = connect()?;
    remove(&mut client)?;
    let done = synced(&mut client, request, judged);
    let removed = remove(&mut client);
    let figure = done?;
    removed.map(|()| figure)
}

fn remove(client: &mut Client) -> Result<()> {
    REMOVE.iter().try_for_each(|sql| client.execute(*sql, &[&NAME]).map(|_| ()).map_err(|e| db::sql(sql, &e)))
}

fn synced(client: &mut Client, request: &Bench, judged: &Judged) -> Result<Figure> {
    let failed = |e: postgres::Error| db::sql("could not measure", &e);
    // Texts over the window are cut with a warning, which is not the point here.
    client.batch_execute("SET client_min_messages = error").map_err(failed)?;
    let mut import = import_of(request, NAME)?;
    let part = import.stage.join(NAME);
    let texts = beginning(&judged.set, &part, request.records)?;
    import.beir_dir = part;
    embed(client, &texts[..texts.len().min(BATCH)], &judged.model)?;
    let before = embed(client, &texts, &judged.model)?;
    let imported = import::import(client, &import)?;
    if imported.failed > 0 {
        return Err(Error::invalid(format!("{} documents failed", imported.failed)));
    }
    let after = embed(client, &texts, &judged.model)?;
    let whole = imported.sync.as_secs_f64();
    let started = Instant::now();
    client.execute("SELECT rag.reindex_lexical($1)", &[&NAME]).map_err(failed)?;
    let lexical = started.elapsed().as_secs_f64();
    let sql = "SELECT format('REINDEX INDEX rag.chunk_embedding_hnsw_%s_%s', id, model_id) FROM rag.collection WHERE name = $1";
    let reindex: String = client.query_one(sql, &[&NAME]).map_err(failed)?.get(0);
    let started = Instant::now();
    client.batch_execute(&reindex).map_err(failed)?;
    let hnsw = started.elapsed().as_secs_f64();

    let records = imported.records as f64;
    let bare = (before + after) / 2.0;
    let mut figure = Figure::new(
        "A sync and its parts",
        format!(
            "The first {} records of {} through `CALL rag.sync`, and the same texts through `rag.embed` in batches of {BATCH}, once \
             before it ({before:.1} s) and once after it ({after:.1} s); their mean counts.",
            imported.records,
            judged.set.name(),
        ),
    );
    let columns =
        [("", Kind::Text), ("seconds", Kind::Seconds), ("records/s", Kind::Rate), ("of the sync", Kind::Share)];
    let mut table = Table::new("", &columns);
    let parts = [
        ("CALL rag.sync, whole", whole),
        ("the engine alone: rag.embed", bare),
        ("all else: read, parse, store, keep the indexes", whole - bare),
        ("rag.reindex_lexical, alone", lexical),
        ("REINDEX of HNSW, alone", hnsw),
    ];
    for (name, seconds) in parts {
        // What is too short to be told from noise has no rate.
        let rate = (seconds > 0.0).then_some(records / seconds);
        table.rows.push(vec![name.into(), number(seconds), number(rate), number(seconds / whole)]);
    }
    figure.tables.push(table);
    figure.notes.push(format!(
        "The sync reaches {:.0} % of the engine's bare rate. Making an index at once costs less than keeping it record by record, \
         so the last two rows are what the same index costs at least.",
        100.0 * bare / whole
    ));
    Ok(figure)
}

/// How long the engine takes for the texts.
fn embed(client: &mut Client, texts: &[String], model: &str) -> Result<f64> {
    let started = Instant::now();
    for batch in texts.chunks(BATCH) {
        let sql = "SELECT count(*) FROM rag.embed($1, $2)";
        client.query_one(sql, &[&batch, &model]).map_err(|e| db::sql("could not embed", &e))?;
    }
    Ok(started.elapsed().as_secs_f64())
}
