// SPDX-License-Identifier: PostgreSQL

//! The rows a search returns: a chunk with its provenance, and its ranks and scores from the trace.

use crate::spi;
use pgrx::{JsonB, Uuid};
use rag_core::Result;
use rag_core::provenance::Place;
use rag_core::rank::trace::{Stage, Trace};
use serde_json::{Map, Value, json};

/// One row.
#[derive(Debug)]
pub struct Evidence {
    pub rank: i32,
    pub chunk_id: i64,
    pub chunk_key: Uuid,
    pub score: f64,
    pub content: String,
    pub title: Option<String>,
    pub uri: String,
    pub citation: String,
    pub locator: Value,
    pub source: String,
    pub document_id: i64,
    pub role: Option<String>,
    pub language: Option<String>,
    pub path: Option<String>,
    pub commit: Option<String>,
    pub current: bool,
    pub dense_rank: Option<i32>,
    pub dense_score: Option<f64>,
    pub bm25_rank: Option<i32>,
    pub bm25_score: Option<f64>,
    pub fused_score: Option<f64>,
    pub metadata: Value,
}

/// Reads the rows of ranked chunks.
pub fn read(ranked: &[(i64, f64)], trace: &Trace) -> Result<Vec<Evidence>> {
    if ranked.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = ranked.iter().map(|(id, _)| *id).collect();
    let sql = include_str!("../../sql/query/evidence.sql");
    let read = |row: &spi::Row| {
        let id: i64 = row.get(1)?;
        let place: i64 = row.get(24)?;
        let title: Option<String> = row.optional(4)?;
        let uri: String = row.get(5)?;
        let headings: Vec<String> = row.get(6)?;
        let range = |from, to| -> Result<Option<(u32, u32)>> {
            Ok(row.optional::<i32>(from)?.zip(row.optional::<i32>(to)?).map(|(a, b)| (a as u32, b as u32)))
        };
        let (lines, pages) = (range(7, 8)?, range(9, 10)?);
        let record = row.optional::<String>(25)?.is_some();
        let mut locator = Map::new();
        if !headings.is_empty() {
            locator.insert("heading_path".into(), json!(headings));
        }
        for (name, value) in [("line_start", lines.map(|l| l.0)), ("line_end", lines.map(|l| l.1))] {
            locator.extend(value.map(|v| (name.to_owned(), json!(v))));
        }
        for (name, value) in [("page_start", pages.map(|p| p.0)), ("page_end", pages.map(|p| p.1))] {
            locator.extend(value.map(|v| (name.to_owned(), json!(v))));
        }
        for (name, column) in [("char_start", 11), ("char_end", 12)] {
            locator.extend(row.optional::<i64>(column)?.map(|v| (name.to_owned(), json!(v))));
        }
        for (name, column) in [("symbol", 13), ("symbol_kind", 14), ("speaker", 15), ("external_id", 25)] {
            locator.extend(row.optional::<String>(column)?.map(|v| (name.to_owned(), json!(v))));
        }
        let (symbol, speaker): (Option<String>, Option<String>) = (row.optional(13)?, row.optional(15)?);
        let begin: Option<i64> = row.optional(26)?;
        // Milliseconds of a recording.
        for (name, value) in [("time_start", begin), ("time_end", row.optional(27)?)] {
            locator.extend(value.map(|v| (name.to_owned(), json!(v))));
        }
        let cited = Place {
            uri: &uri,
            title: title.as_deref(),
            heading_path: &headings,
            symbol: symbol.as_deref(),
            speaker: speaker.as_deref(),
            pages,
            // The lines of a text that was made of something else are nothing a reader could go to.
            lines: lines.filter(|_| !record && pages.is_none() && begin.is_none()),
            time: begin.map(|ms| ms.unsigned_abs() / 1000),
        };
        let cited = cited.citation();
        let rank_of = |stage| trace.rank(stage, id).map(|r| r as i32);
        Ok(Evidence {
            rank: place as i32,
            chunk_id: id,
            chunk_key: row.get(2)?,
            score: trace.score(Stage::TopK, id).unwrap_or_default(),
            content: row.get(3)?,
            citation: cited,
            title,
            uri,
            locator: Value::Object(locator),
            source: row.get(16)?,
            document_id: row.get(17)?,
            role: row.optional(18)?,
            language: row.optional(19)?,
            path: row.optional(20)?,
            commit: row.optional(21)?,
            current: row.get(22)?,
            dense_rank: rank_of(Stage::Dense),
            dense_score: trace.score(Stage::Dense, id),
            bm25_rank: rank_of(Stage::Bm25),
            bm25_score: trace.score(Stage::Bm25, id),
            fused_score: trace.score(Stage::Fusion, id),
            metadata: row.get::<JsonB>(23)?.0,
        })
    };
    spi::by_keys(|| spi::select(sql, &[ids.into()], read))
}
