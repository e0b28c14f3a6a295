// SPDX-License-Identifier: PostgreSQL

//! Tables `rag.question_set`, `rag.question` and `rag.gold`.
//!
//! What is written was checked by [`rag_core::evaluation::question`]; what is read is checked again, because anybody with the right
//! to may write rows himself.

use crate::spi;
use pgrx::JsonB;
use rag_core::evaluation::question::{Address, Gold, Question, Span, check};
use rag_core::{Error, Kind, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A question set.
#[derive(Debug, Clone)]
pub struct QuestionSet {
    /// Key.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Collection that is asked.
    pub collection_id: i64,
}

/// A question and its gold with their keys.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Key of the question.
    pub id: i64,
    /// The question.
    pub question: Question,
    /// Keys of its gold, in its order.
    pub gold_ids: Vec<i64>,
}

/// The set of a name.
pub fn by_name(name: &str) -> Result<QuestionSet> {
    let sql = "SELECT id, name, collection_id FROM rag.question_set WHERE name = $1";
    match spi::select_one(sql, &[name.into()], read_set)? {
        Some(set) => Ok(set),
        None => {
            let existing = super::names("SELECT name FROM rag.question_set ORDER BY name")?;
            Err(super::not_found("question set", name, &existing))
        }
    }
}

/// The set of a key.
pub fn by_id(id: i64) -> Result<QuestionSet> {
    let sql = "SELECT id, name, collection_id FROM rag.question_set WHERE id = $1";
    spi::select_one(sql, &[id.into()], read_set)?
        .ok_or_else(|| Error::new(Kind::NotFound, format!("question set {id} does not exist")))
}

fn read_set(row: &spi::Row) -> Result<QuestionSet> {
    Ok(QuestionSet { id: row.get(1)?, name: row.get(2)?, collection_id: row.get(3)? })
}

/// Adds an empty set.
pub fn insert_set(name: &str, collection_id: i64, description: Option<&str>, acl: Option<&str>) -> Result<QuestionSet> {
    let sql = "INSERT INTO rag.question_set (name, collection_id, description, acl) VALUES ($1, $2, $3, $4)
               ON CONFLICT (name) DO NOTHING RETURNING id";
    let args =
        [name.into(), collection_id.into(), description.map(str::to_owned).into(), acl.map(str::to_owned).into()];
    let id = spi::write(sql, &args, |row| row.get(1))?
        .pop()
        .ok_or_else(|| Error::new(Kind::AlreadyExists, format!("question set \"{name}\" already exists")))?;
    Ok(QuestionSet { id, name: name.to_owned(), collection_id })
}

/// Keeps a set and its questions as they are until the transaction ends; an error if it is gone.
pub fn share(set: &QuestionSet) -> Result<()> {
    spi::lock::shared("rag.question_set", set.id)?;
    still_there(set)
}

/// Whether a set without a label asks documents that the caller sees by one.
pub fn tells_more(set: &QuestionSet) -> Result<bool> {
    let sql = "SELECT s.acl IS NULL AND EXISTS (SELECT FROM rag.source o JOIN rag.document d ON d.source_id = o.id
                                                 WHERE o.collection_id = s.collection_id AND d.acl IS NOT NULL)
                 FROM rag.question_set s WHERE s.id = $1";
    Ok(spi::select_one(sql, &[set.id.into()], |row| row.get(1))?.unwrap_or(false))
}

fn still_there(set: &QuestionSet) -> Result<()> {
    by_name(&set.name).and_then(|now| match now.id == set.id {
        true => Ok(()),
        false => Err(Error::new(Kind::NotReady, format!("question set \"{}\" was dropped meanwhile", set.name))),
    })
}

/// Drops a set with its questions and runs; returns how many questions it had.
pub fn delete_set(set: &QuestionSet) -> Result<u64> {
    spi::lock::exclusive("rag.question_set", set.id)?;
    let count = "SELECT pg_catalog.count(*) FROM rag.question WHERE set_id = $1";
    let questions: i64 = spi::select_one(count, &[set.id.into()], |row| row.get(1))?.unwrap_or_default();
    spi::execute("DELETE FROM rag.question_set WHERE id = $1", &[set.id.into()])?;
    Ok(questions.unsigned_abs())
}

/// Makes a set have exactly these questions: those of a known key are changed in place, others added, and what is not among them
/// is deleted, unless runs count it.
pub fn replace(set: &QuestionSet, questions: &[Question]) -> Result<()> {
    // Two imports into one set would each delete what the other adds.
    spi::lock::exclusive("rag.question_set", set.id)?;
    still_there(set)?;
    let keys: Vec<String> = questions.iter().map(|q| q.key.clone()).collect();
    let gone = "SELECT q.key, EXISTS (SELECT FROM rag.run r WHERE r.set_id = q.set_id) FROM rag.question q
                 WHERE q.set_id = $1 AND q.key <> ALL ($2) ORDER BY q.ordinal";
    let gone: Vec<(String, bool)> =
        spi::select(gone, &[set.id.into(), keys.clone().into()], |row| Ok((row.get(1)?, row.get(2)?)))?;
    if let Some((key, true)) = gone.first() {
        let name = &set.name;
        return Err(Error::new(
            Kind::InUse,
            format!("question \"{key}\" would be deleted, but question set \"{name}\" has runs"),
        )
        .with_detail("The means of these runs would change with it.")
        .with_hint("Import into another set, or drop the runs: SELECT rag.drop_run(id) FROM rag.runs …;"));
    }
    spi::execute("DELETE FROM rag.question WHERE set_id = $1 AND key <> ALL ($2)", &[set.id.into(), keys.into()])?;
    for (ordinal, question) in (1..).zip(questions) {
        put(set, ordinal, question)?;
    }
    Ok(())
}

fn put(set: &QuestionSet, ordinal: i32, question: &Question) -> Result<()> {
    let sql = "INSERT INTO rag.question (set_id, key, ordinal, text, strata, cluster, answerable, filter, metadata)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
               ON CONFLICT (set_id, key) DO UPDATE SET ordinal = excluded.ordinal, text = excluded.text, strata = excluded.strata,
                   cluster = excluded.cluster, answerable = excluded.answerable, filter = excluded.filter, metadata = excluded.metadata
               RETURNING id";
    let args = [
        set.id.into(),
        question.key.as_str().into(),
        ordinal.into(),
        question.text.as_str().into(),
        question.strata.clone().into(),
        question.cluster.clone().into(),
        question.answerable.into(),
        JsonB(question.filter.clone()).into(),
        JsonB(Value::Object(question.metadata.clone())).into(),
    ];
    let id: i64 =
        spi::write(sql, &args, |row| row.get(1))?.pop().ok_or_else(|| Error::internal("no question was inserted"))?;
    spi::execute("DELETE FROM rag.gold WHERE question_id = $1", &[id.into()])?;
    for (ordinal, gold) in (1_i32..).zip(&question.gold) {
        let (uri, external_id) = match &gold.document {
            Address::Uri(uri) => (Some(uri.clone()), None),
            Address::ExternalId(id) => (None, Some(id.clone())),
        };
        let narrow = |n: u32| i32::try_from(n).map_err(|_| Error::invalid(format!("position {n} is too large")));
        let wide = |n: u64| i64::try_from(n).map_err(|_| Error::invalid(format!("position {n} is too large")));
        let (mut lines, mut pages, mut chars, mut quote) = (None, None, None, None);
        match &gold.span {
            Span::Document => {}
            Span::Lines(a, b) => lines = Some((narrow(*a)?, narrow(*b)?)),
            Span::Pages(a, b) => pages = Some((narrow(*a)?, narrow(*b)?)),
            Span::Chars(a, b) => chars = Some((wide(*a)?, wide(*b)?)),
            Span::Quote(words) => quote = Some(words.clone()),
        }
        let sql =
            "INSERT INTO rag.gold (question_id, ordinal, source, uri, external_id, line_start, line_end, page_start,
                       page_end, char_start, char_end, quote, grade, note)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let args = [
            id.into(),
            ordinal.into(),
            gold.source.clone().into(),
            uri.into(),
            external_id.into(),
            lines.map(|l| l.0).into(),
            lines.map(|l| l.1).into(),
            pages.map(|p| p.0).into(),
            pages.map(|p| p.1).into(),
            chars.map(|c| c.0).into(),
            chars.map(|c| c.1).into(),
            quote.into(),
            gold.grade.into(),
            gold.note.clone().into(),
        ];
        spi::execute(sql, &args)?;
    }
    Ok(())
}

/// The questions of a set with their gold, in their order.
pub fn of_set(set: &QuestionSet) -> Result<Vec<Stored>> {
    let sql = "SELECT id, key, text, strata, cluster, answerable, filter, metadata FROM rag.question
                WHERE set_id = $1 ORDER BY ordinal, id";
    let read = |row: &spi::Row| {
        let metadata = match row.get::<JsonB>(8)?.0 {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        Ok(Stored {
            id: row.get(1)?,
            question: Question {
                key: row.get(2)?,
                text: row.get(3)?,
                strata: row.get(4)?,
                cluster: row.optional(5)?,
                answerable: row.get(6)?,
                filter: row.get::<JsonB>(7)?.0,
                metadata,
                gold: Vec::new(),
            },
            gold_ids: Vec::new(),
        })
    };
    let mut questions = spi::select(sql, &[set.id.into()], read)?;
    let mut gold = gold_of(set)?;
    for stored in &mut questions {
        (stored.gold_ids, stored.question.gold) = gold.remove(&stored.id).unwrap_or_default().into_iter().unzip();
        check(&stored.question)?;
    }
    if questions.is_empty() {
        return Err(Error::new(Kind::NotReady, format!("question set \"{}\" has no questions", set.name))
            .with_hint("Add some with rag.import_questions."));
    }
    Ok(questions)
}

/// The gold of the questions of a set with its keys, by question.
fn gold_of(set: &QuestionSet) -> Result<BTreeMap<i64, Vec<(i64, Gold)>>> {
    let sql =
        "SELECT g.question_id, g.source, g.uri, g.external_id, g.line_start, g.line_end, g.page_start, g.page_end,
                      g.char_start, g.char_end, g.quote, g.grade, g.note, g.id
                 FROM rag.gold g JOIN rag.question q ON q.id = g.question_id WHERE q.set_id = $1
                ORDER BY g.question_id, g.ordinal";
    let mut gold: BTreeMap<i64, Vec<(i64, Gold)>> = BTreeMap::new();
    spi::each(sql, &[set.id.into()], |row| {
        let narrow = |column| -> Result<Option<u32>> { Ok(row.optional::<i32>(column)?.map(i32::unsigned_abs)) };
        let wide = |column| -> Result<Option<u64>> { Ok(row.optional::<i64>(column)?.map(i64::unsigned_abs)) };
        let document = match (row.optional::<String>(3)?, row.optional::<String>(4)?) {
            (Some(uri), _) => Address::Uri(uri),
            (None, id) => Address::ExternalId(id.unwrap_or_default()),
        };
        let lines = narrow(5)?.zip(narrow(6)?).map(|(a, b)| Span::Lines(a, b));
        let pages = narrow(7)?.zip(narrow(8)?).map(|(a, b)| Span::Pages(a, b));
        let chars = wide(9)?.zip(wide(10)?).map(|(a, b)| Span::Chars(a, b));
        let quote = row.optional::<String>(11)?.map(Span::Quote);
        let span = lines.or(pages).or(chars).or(quote).unwrap_or(Span::Document);
        let one = Gold { source: row.optional(2)?, document, span, grade: row.get(12)?, note: row.optional(13)? };
        gold.entry(row.get(1)?).or_default().push((row.get(14)?, one));
        Ok(())
    })?;
    Ok(gold)
}
