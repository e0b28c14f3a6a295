// SPDX-License-Identifier: PostgreSQL

//! Questions and their gold, read from what people write them in.
//!
//! Owns the three formats: JSON objects (one a line, or an array), BEIR (`queries.jsonl` and `qrels.tsv`) and TREC (topics as
//! `id<TAB>text`, qrels of four columns). Nothing is repaired and nothing is left out without being counted: a question that
//! is dropped changes every mean. Every error names the question, and the line where there is one.
//!
//! Must not know documents: whether gold is really there is [`super::resolve`]'s.

mod json;
mod qrels;
#[cfg(test)]
mod tests;

pub use json::{from_json, from_values};
pub use qrels::{from_beir, from_trec};

use crate::error::{Error, Kind, Result};
use crate::query::MAX_QUERY;
use crate::query::filter::Filter;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Questions of a set.
const MAX_QUESTIONS: usize = 100_000;

/// Judgments of a question.
const MAX_GOLD: usize = 10_000;

/// Labels of a question.
const MAX_STRATA: usize = 50;

/// Bytes of a key, a stratum, a cluster or a note.
const MAX_LABEL: usize = 500;

/// Grades that may be given; 1 and above is relevant.
const GRADES: std::ops::RangeInclusive<i64> = -100..=1000;

/// One question with what is known of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Its name in the set, unique there.
    pub key: String,
    /// What is asked.
    pub text: String,
    /// Groups that it is reported in.
    pub strata: Vec<String>,
    /// Questions with the same cluster are about the same thing; without one it stands alone.
    pub cluster: Option<String>,
    /// Whether the corpus has an answer.
    pub answerable: bool,
    /// Filter of its search; an object.
    pub filter: Value,
    /// What else was said of it.
    pub metadata: Map<String, Value>,
    /// Judged places.
    pub gold: Vec<Gold>,
}

/// One judged place.
#[derive(Debug, Clone, PartialEq)]
pub struct Gold {
    /// Source of the document; without one it is looked for in all sources of the collection.
    pub source: Option<String>,
    /// The document.
    pub document: Address,
    /// The place in it.
    pub span: Span,
    /// How relevant it is; 0 and below: judged and not relevant.
    pub grade: i32,
    /// Why, for people.
    pub note: Option<String>,
}

/// What a document is named by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// Its URI in its source.
    Uri(String),
    /// The source's own key.
    ExternalId(String),
}

/// A place in a document. Ranges include both ends, as locators do; characters end before the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// All of it.
    Document,
    /// Lines of the stored text, from 1.
    Lines(u32, u32),
    /// Pages, from 1.
    Pages(u32, u32),
    /// Characters of the stored text, from 0.
    Chars(u64, u64),
    /// These words; white space is compared loosely.
    Quote(String),
}

impl Gold {
    /// How it is named in messages.
    pub fn shown(&self) -> String {
        match &self.span {
            Span::Quote(quote) => format!("quote \"{}\" of {}", shortened(quote), self.whole()),
            _ => self.place(),
        }
    }

    fn whole(&self) -> String {
        let document = match &self.document {
            Address::Uri(uri) => format!("\"{uri}\""),
            Address::ExternalId(id) => format!("external id \"{id}\""),
        };
        document + &self.source.as_ref().map(|s| format!(" of source \"{s}\"")).unwrap_or_default()
    }

    /// What tells it from another.
    fn place(&self) -> String {
        let of = self.whole();
        match &self.span {
            Span::Document => of,
            Span::Lines(a, b) => format!("lines {a} to {b} of {of}"),
            Span::Pages(a, b) => format!("pages {a} to {b} of {of}"),
            Span::Chars(a, b) => format!("characters {a} to {b} of {of}"),
            Span::Quote(quote) => format!("quote \"{quote}\" of {of}"),
        }
    }
}

fn shortened(text: &str) -> String {
    // A message ends at a NUL.
    let text = &text.replace('\0', "\\0");
    if text.chars().count() <= 60 {
        text.to_owned()
    } else {
        format!("{}…", text.chars().take(60).collect::<String>())
    }
}

/// Checks what only the whole shows.
fn checked(questions: Vec<Question>) -> Result<Vec<Question>> {
    if questions.is_empty() {
        return Err(Error::invalid("there is no question"));
    }
    if questions.len() > MAX_QUESTIONS {
        return Err(too_many("questions", questions.len(), MAX_QUESTIONS));
    }
    let mut keys = BTreeSet::new();
    for question in &questions {
        if !keys.insert(question.key.as_str()) {
            return Err(Error::invalid(format!("question \"{}\" comes twice", question.key)));
        }
        check(question)?;
    }
    Ok(questions)
}

/// Checks one question; what is stored was checked by this.
pub fn check(question: &Question) -> Result<()> {
    let bad = |why: String| Err(Error::invalid(format!("question \"{}\" {why}", shortened(&question.key))));
    if question.key.trim().is_empty() || question.key.len() > MAX_LABEL {
        let id = shortened(&question.key);
        return Err(Error::invalid(format!("the id of a question must have 1 to {MAX_LABEL} bytes, not \"{id}\"")));
    }
    if question.text.trim().is_empty() {
        return bad("has no text".into());
    }
    if has_nul(question) {
        return bad("has a character that PostgreSQL cannot store (U+0000)".into());
    }
    if question.text.len() > MAX_QUERY {
        return bad(format!("has a text of more than {MAX_QUERY} bytes"));
    }
    if question.gold.len() > MAX_GOLD {
        return bad(format!("has more than {MAX_GOLD} judgments"));
    }
    let relevant = question.gold.iter().any(|g| g.grade >= 1);
    if question.answerable && !relevant {
        let error = format!("question \"{}\" has no gold of grade 1 or more", shortened(&question.key));
        return Err(Error::invalid(error).with_hint("If nothing answers it, say \"answerable\": false."));
    }
    if !question.answerable && relevant {
        return bad("is not answerable, but has gold of grade 1 or more".into());
    }
    // What is judged and not relevant may be a whole document beside spans: it has no item of its own.
    let whole = |g: &&Gold| g.span == Span::Document;
    let spans = question.gold.iter().filter(|g| g.grade >= 1);
    if spans.clone().any(|g| g.span == Span::Document) && !spans.clone().all(|g| whole(&g)) {
        return bad("has gold that is whole documents and gold that is spans".into());
    }
    for gold in &question.gold {
        check_gold(gold).or_else(|why| bad(format!("has gold that {why}: {}", gold.shown())))?;
    }
    let mut places = BTreeSet::new();
    if let Some(again) = question.gold.iter().find(|g| !places.insert(g.place())) {
        return bad(format!("judges one place twice: {}", again.shown()));
    }
    Filter::parse(&question.filter).map_err(|mut error| {
        error.message = format!("question \"{}\": {}", shortened(&question.key), error.message);
        error
    })?;
    Ok(())
}

/// Whether a string of it holds U+0000.
fn has_nul(question: &Question) -> bool {
    let of_gold = question.gold.iter().flat_map(|gold| {
        let (Address::Uri(name) | Address::ExternalId(name)) = &gold.document;
        let quote = match &gold.span {
            Span::Quote(quote) => Some(quote),
            _ => None,
        };
        [Some(name), gold.source.as_ref(), gold.note.as_ref(), quote].into_iter().flatten()
    });
    let own = [&question.key, &question.text].into_iter().chain(&question.strata).chain(&question.cluster);
    let json = [&question.filter].into_iter().chain(question.metadata.values()).any(value_has_nul);
    own.chain(of_gold).any(|text| text.contains('\0')) || question.metadata.keys().any(|key| key.contains('\0')) || json
}

fn value_has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(value_has_nul),
        Value::Object(object) => object.iter().any(|(key, value)| key.contains('\0') || value_has_nul(value)),
        _ => false,
    }
}

fn check_gold(gold: &Gold) -> std::result::Result<(), &'static str> {
    let (Address::Uri(name) | Address::ExternalId(name)) = &gold.document;
    let ends_first = match gold.span {
        Span::Lines(a, b) | Span::Pages(a, b) => a == 0 || b < a,
        Span::Chars(a, b) => b <= a,
        Span::Document | Span::Quote(_) => false,
    };
    match () {
        () if name.is_empty() => Err("names no document"),
        () if ends_first => Err("is an empty range"),
        () if matches!(&gold.span, Span::Quote(q) if q.trim().is_empty()) => Err("quotes nothing"),
        () if !GRADES.contains(&i64::from(gold.grade)) => Err("has a grade that is not from -100 to 1000"),
        () => Ok(()),
    }
}

fn too_many(what: &str, given: usize, max: usize) -> Error {
    Error::new(Kind::LimitExceeded, format!("{given} {what} are more than {max}"))
}
