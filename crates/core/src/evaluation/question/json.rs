// SPDX-License-Identifier: PostgreSQL

//! Questions as JSON objects.

use super::{Address, GRADES, Gold, MAX_LABEL, MAX_STRATA, Question, Span, checked, shortened};
use crate::error::{Error, Result, unknown_key};
use serde_json::{Map, Value};

/// Reads questions as JSON: an array of objects, or one object a line.
pub fn from_json(text: &str) -> Result<Vec<Question>> {
    if text.trim_start().starts_with('[') {
        let values: Vec<Value> = serde_json::from_str(text).map_err(|e| Error::invalid(format!("questions: {e}")))?;
        return from_values(&values);
    }
    let mut values = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        values.push(
            serde_json::from_str(line).map_err(|e| Error::invalid(format!("line {} of the questions: {e}", at + 1)))?,
        );
    }
    from_values(&values)
}

/// Reads questions from JSON objects.
pub fn from_values(values: &[Value]) -> Result<Vec<Question>> {
    checked(values.iter().enumerate().map(|(at, value)| read_question(at + 1, value)).collect::<Result<_>>()?)
}

const QUESTION_KEYS: &[&str] =
    &["id", "text", "strata", "cluster", "answerable", "filter", "metadata", "gold", "_id", "question", "stratum"];
const GOLD_KEYS: &[&str] = &["source", "uri", "external_id", "lines", "pages", "chars", "quote", "grade", "note"];

/// Reads fields of one object; `of` says whose, for messages.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    of: String,
}

impl<'a> Fields<'a> {
    fn new(value: &'a Value, of: String, known: &[&str]) -> Result<Self> {
        let Value::Object(object) = value else { return Err(Error::invalid(format!("{of} is not a JSON object"))) };
        if let Some(strange) = object.keys().find(|key| !known.contains(&key.as_str())) {
            let mut error = unknown_key("key", strange, known);
            error.message = format!("{of}: {}", error.message);
            return Err(error);
        }
        Ok(Self { object, of })
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|v| !v.is_null())
    }

    fn wrong(&self, key: &str, what: &str) -> Error {
        let given = self.object.get(key).map(Value::to_string).unwrap_or_default();
        Error::invalid(format!("{}: \"{key}\" must be {what}, not {}", self.of, shortened(&given)))
    }

    fn string(&self, key: &str) -> Result<Option<String>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) if matches!(key, "id" | "_id" | "external_id") => Ok(Some(number.to_string())),
            Some(_) => Err(self.wrong(key, "a string")),
        }
    }

    fn label(&self, key: &str) -> Result<Option<String>> {
        let label = self.string(key)?;
        match label.as_ref().is_some_and(|l| l.is_empty() || l.len() > MAX_LABEL) {
            true => Err(self.wrong(key, &format!("of 1 to {MAX_LABEL} bytes"))),
            false => Ok(label),
        }
    }

    fn object(&self, key: &str) -> Result<Map<String, Value>> {
        match self.get(key) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(_) => Err(self.wrong(key, "a JSON object")),
        }
    }

    fn range(&self, key: &str) -> Result<Option<(u64, u64)>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let pair = match value {
            Value::Number(_) => value.as_u64().map(|n| (n, n)),
            Value::Array(two) if two.len() == 2 => two[0].as_u64().zip(two[1].as_u64()),
            _ => None,
        };
        pair.map(Some).ok_or_else(|| self.wrong(key, "two whole numbers, [first, last]"))
    }
}

fn read_question(at: usize, value: &Value) -> Result<Question> {
    let named = value.get("id").or_else(|| value.get("_id"));
    let of = match named {
        Some(Value::String(id)) => format!("question \"{}\"", shortened(id)),
        Some(Value::Number(id)) => format!("question \"{id}\""),
        _ => format!("question {at} of the list"),
    };
    let fields = Fields::new(value, of.clone(), QUESTION_KEYS)?;
    let either = |one: &str, other: &str| match fields.string(one)? {
        Some(text) => Ok(Some(text)),
        None => fields.string(other),
    };
    let key = either("id", "_id")?.ok_or_else(|| Error::invalid(format!("{of} has no \"id\"")))?;
    let text = either("text", "question")?.ok_or_else(|| Error::invalid(format!("{of} has no \"text\"")))?;
    let mut strata: Vec<String> = fields.label("stratum")?.into_iter().collect();
    match fields.get("strata") {
        None => {}
        Some(Value::Array(many)) => {
            for one in many {
                let label = one.as_str().filter(|l| !l.is_empty() && l.len() <= MAX_LABEL);
                strata.push(label.ok_or_else(|| fields.wrong("strata", "a list of names"))?.to_owned());
            }
        }
        Some(_) => return Err(fields.wrong("strata", "a list of names")),
    }
    strata.sort_unstable();
    strata.dedup();
    if strata.len() > MAX_STRATA {
        return Err(Error::invalid(format!("{of} is in more than {MAX_STRATA} strata")));
    }
    let answerable = match fields.get("answerable") {
        None => true,
        Some(Value::Bool(answerable)) => *answerable,
        Some(_) => return Err(fields.wrong("answerable", "true or false")),
    };
    let gold = match fields.get("gold") {
        None => Vec::new(),
        Some(Value::Array(many)) => {
            let read = |(n, value)| read_gold(value, format!("gold {} of {of}", n + 1));
            many.iter().enumerate().map(read).collect::<Result<_>>()?
        }
        Some(_) => return Err(fields.wrong("gold", "a list of objects")),
    };
    Ok(Question {
        key,
        text,
        strata,
        cluster: fields.label("cluster")?,
        answerable,
        filter: Value::Object(fields.object("filter")?),
        metadata: fields.object("metadata")?,
        gold,
    })
}

/// Reads one judgment; `of` names it in messages.
fn read_gold(value: &Value, of: String) -> Result<Gold> {
    let fields = Fields::new(value, of, GOLD_KEYS)?;
    let one_of = |message: &str| Error::invalid(format!("{} {message}", fields.of));
    let document = match (fields.string("uri")?, fields.string("external_id")?) {
        (Some(uri), None) => Address::Uri(uri),
        (None, Some(id)) => Address::ExternalId(id),
        _ => return Err(one_of("needs either \"uri\" or \"external_id\"")),
    };
    let narrow = |key: &str, (a, b): (u64, u64)| {
        let two = u32::try_from(a).ok().zip(u32::try_from(b).ok());
        two.ok_or_else(|| fields.wrong(key, "below 2^32"))
    };
    let mut spans = Vec::new();
    if let Some(lines) = fields.range("lines")? {
        let (a, b) = narrow("lines", lines)?;
        spans.push(Span::Lines(a, b));
    }
    if let Some(pages) = fields.range("pages")? {
        let (a, b) = narrow("pages", pages)?;
        spans.push(Span::Pages(a, b));
    }
    spans.extend(fields.range("chars")?.map(|(a, b)| Span::Chars(a, b)));
    spans.extend(fields.string("quote")?.map(Span::Quote));
    if spans.len() > 1 {
        return Err(one_of("has more than one of \"lines\", \"pages\", \"chars\" and \"quote\""));
    }
    let grade = match fields.get("grade") {
        None => 1,
        Some(value) => value
            .as_i64()
            .filter(|g| GRADES.contains(g))
            .and_then(|g| i32::try_from(g).ok())
            .ok_or_else(|| fields.wrong("grade", "a whole number from -100 to 1000"))?,
    };
    let span = spans.pop().unwrap_or(Span::Document);
    Ok(Gold { source: fields.string("source")?, document, span, grade, note: fields.string("note")? })
}
