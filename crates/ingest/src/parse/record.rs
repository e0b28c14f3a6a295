// SPDX-License-Identifier: PostgreSQL

//! One JSON record: which of its fields mean what.
//!
//! Owns the defaults of [`FieldMap`]. A record is refused when its text is missing, because a document without text
//! that claims to be one hides a wrong field mapping; an empty text is fine (a title alone is a record of many sets).
//! The text is returned as the record has it; repair is the caller's.
//!
//! A listing only needs the [`key`], and gets it without building the rest: a value takes up to a hundred times the
//! memory of its text, and what one record does to a listing happens to all of them.

use super::metadata::{self, rfc3339, scalar};
use super::{Parsed, plain, post};
use crate::text::{repair, storable_map};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::{FieldMap, SourceOptions};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The parts of a record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// Key in its source.
    pub external_id: Option<String>,
    /// Title.
    pub title: Option<String>,
    /// Text as it stands in the record.
    pub text: String,
    /// Language.
    pub language: Option<String>,
    /// RFC 3339 time of publication.
    pub published_at: Option<String>,
    /// Everything else; a field `metadata` that is an object is merged in.
    pub metadata: Map<String, Value>,
    /// Bytes of the line that were not valid.
    pub repaired_bytes: u64,
}

/// Bytes of a bad line that a message quotes.
const QUOTED: usize = 80;

/// Fields that mean something when the options name no other.
const USUAL_KEYS: &[&str] = &["external_id", "_id", "id"];
const USUAL_TEXTS: &[&str] = &["text", "content", "body"];

/// The document of a record.
pub fn document(bytes: &[u8], options: &SourceOptions) -> Result<Parsed> {
    let record = parse(bytes, &options.fields)?;
    // Strings of a record may hold CR and (as an escape) NUL although the line itself does not.
    // A record that is nothing but a title is found by it.
    let said = Some(&record.text).filter(|t| !t.trim().is_empty()).or(record.title.as_ref()).unwrap_or(&record.text);
    let body = repair(said.as_bytes());
    Ok(Parsed {
        structure: plain::structure(&body.text, options),
        text: body.text,
        repaired_bytes: record.repaired_bytes + body.repaired_bytes,
        media_type: "text/plain".to_owned(),
        external_id: record.external_id,
        title: record.title.as_deref().map(metadata::short),
        language: record.language,
        published_at: record.published_at,
        metadata: record.metadata,
        ..Parsed::default()
    })
}

/// The key of a record, if it has one. Fails as [`parse`] does when there is no JSON object or no text in it.
pub fn key(bytes: &[u8], fields: &FieldMap) -> Result<Option<String>> {
    let line = repair(bytes);
    let values = values(&line.text)?;
    if take_raw(&values, fields.text.as_deref(), USUAL_TEXTS)?.is_none() {
        return Err(no_text(values.keys(), fields));
    }
    Ok(filled(take_raw(&values, fields.external_id.as_deref(), USUAL_KEYS)?))
}

/// The key of a record that is a thread, a work item or a recording.
pub fn key_only(bytes: &[u8], fields: &FieldMap) -> Result<Option<String>> {
    let line = repair(bytes);
    Ok(filled(take_raw(&values(&line.text)?, fields.external_id.as_deref(), post::KEYS)?))
}

/// Fields of an object, each as a slice of it; those that are null are left out.
fn values(line: &str) -> Result<BTreeMap<String, &RawValue>> {
    let whole: &RawValue = serde_json::from_str(line).map_err(|error| no_json(line, &error))?;
    if !whole.get().starts_with('{') {
        return Err(no_object(line));
    }
    let mut values: BTreeMap<String, &RawValue> =
        serde_json::from_str(whole.get()).map_err(|error| no_json(line, &error))?;
    values.retain(|_, value| value.get() != "null");
    Ok(values)
}

/// The text of the field that [`choose`] names.
fn take_raw(values: &BTreeMap<String, &RawValue>, named: Option<&str>, usual: &[&str]) -> Result<Option<String>> {
    let blank = |raw: &&RawValue| serde_json::from_str::<String>(raw.get()).is_ok_and(|s| s.trim().is_empty());
    let Some(name) = choose(named, usual, |name| values.get(name).map(blank)) else { return Ok(None) };
    let raw = values.get(name).map_or("", |raw| raw.get());
    if raw.starts_with(['[', '{']) {
        return Err(no_scalar(name, raw));
    }
    let value = serde_json::from_str(raw).map_err(|error| no_json(raw, &error))?;
    text_of(name, value).map(Some)
}

/// Reads one JSON object.
pub fn parse(bytes: &[u8], fields: &FieldMap) -> Result<Record> {
    let line = repair(bytes);
    let mut object = match serde_json::from_str::<Value>(&line.text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(no_object(&line.text)),
        Err(error) => return Err(no_json(&line.text, &error)),
    };
    // A field that is null says nothing, wherever it would have gone.
    object.retain(|_, value| !value.is_null());
    let text =
        take_string(&mut object, fields.text.as_deref(), USUAL_TEXTS)?.ok_or_else(|| no_text(object.keys(), fields))?;
    let external_id = take_string(&mut object, fields.external_id.as_deref(), USUAL_KEYS)?;
    let title = take_string(&mut object, fields.title.as_deref(), &["title"])?;
    let language = take_string(&mut object, fields.language.as_deref(), &["language"])?;
    let published_field = fields.published_at.as_deref().unwrap_or("published_at");
    let published_at = object.get(published_field).and_then(Value::as_str).and_then(rfc3339);
    if published_at.is_some() {
        object.shift_remove(published_field);
    }
    Ok(Record {
        external_id: filled(external_id),
        title: filled(title),
        text,
        language: filled(language),
        published_at,
        metadata: storable_map(flatten(object)),
        repaired_bytes: line.repaired_bytes,
    })
}

/// The named field, or else the first of the usual ones that says something, or else the first that is there; `blank`
/// says of a field that is there whether it says nothing.
fn choose<'k>(named: Option<&'k str>, usual: &[&'k str], blank: impl Fn(&str) -> Option<bool>) -> Option<&'k str> {
    let present = |key: &&str| blank(key).is_some();
    match named {
        Some(name) => Some(name).filter(present),
        None => {
            let mut there = usual.iter().copied().filter(present);
            there.clone().find(|key| blank(key) == Some(false)).or_else(|| there.next())
        }
    }
}

/// Takes the field that [`choose`] names.
fn take_string(object: &mut Map<String, Value>, named: Option<&str>, usual: &[&str]) -> Result<Option<String>> {
    let blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    let chosen = choose(named, usual, |key| object.get(key).map(blank));
    let Some((key, value)) = chosen.and_then(|key| Some((key, object.shift_remove(key)?))) else { return Ok(None) };
    text_of(key, value).map(Some)
}

/// A string or number as text.
fn text_of(key: &str, value: Value) -> Result<String> {
    match value {
        Value::String(s) => Ok(s),
        value => scalar(&value).ok_or_else(|| no_scalar(key, &value.to_string())),
    }
}

/// Without NUL, and nothing when there is only white space.
fn filled(value: Option<String>) -> Option<String> {
    value.map(|v| v.replace('\0', "\u{FFFD}")).filter(|v| !v.trim().is_empty())
}

/// Merges an object under `metadata` into its parent; a field that stands there already wins.
fn flatten(mut object: Map<String, Value>) -> Map<String, Value> {
    match object.shift_remove("metadata") {
        Some(Value::Object(inner)) => {
            for (key, value) in inner {
                object.entry(key).or_insert(value);
            }
        }
        None => {}
        Some(other) => {
            object.insert("metadata".to_owned(), other);
        }
    }
    object
}

fn quote(text: &str) -> String {
    let text = text.trim();
    if text.len() <= QUOTED { text.to_owned() } else { format!("{}…", &text[..text.floor_char_boundary(QUOTED)]) }
}

fn no_json(text: &str, error: &serde_json::Error) -> Error {
    bad(format!("record is not valid JSON: \"{}\"", quote(text))).with_detail(error.to_string())
}

fn no_object(text: &str) -> Error {
    bad(format!("record is not a JSON object: \"{}\"", quote(text)))
}

fn no_text<'n>(names: impl Iterator<Item = &'n String>, fields: &FieldMap) -> Error {
    let have: Vec<&str> = names.map(String::as_str).take(20).collect();
    let wanted = fields.text.as_deref().unwrap_or("text");
    bad(format!("record has no field \"{wanted}\""))
        .with_detail(format!("It has: {}.", have.join(", ")))
        .with_hint("Name the field with the text in the source's options: {\"fields\": {\"text\": \"...\"}}.")
}

fn no_scalar(key: &str, value: &str) -> Error {
    bad(format!("field \"{key}\" must be a string or number, not \"{}\"", quote(value)))
}

fn bad(message: String) -> Error {
    Error::new(Kind::BadContent, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Record> {
        parse(value.to_string().as_bytes(), &FieldMap::default())
    }

    #[test]
    fn the_usual_fields_are_found_and_the_rest_is_metadata() {
        let record = read(json!({
            "_id": 7, "title": "T", "text": "x", "language": "en", "published_at": "2024-01-02",
            "n": 1, "metadata": {"n": 2, "m": 3}
        }))
        .expect("valid");
        let expected = Record {
            external_id: Some("7".into()),
            title: Some("T".into()),
            text: "x".into(),
            language: Some("en".into()),
            published_at: Some("2024-01-02T00:00:00Z".into()),
            metadata: json!({"n": 1, "m": 3}).as_object().cloned().unwrap_or_default(),
            repaired_bytes: 0,
        };
        assert_eq!(record, expected);
    }

    #[test]
    fn precedence_is_as_documented() {
        let record =
            read(json!({"id": "c", "_id": "b", "external_id": "a", "body": "3", "content": "2"})).expect("valid");
        assert_eq!((record.external_id.as_deref(), record.text.as_str()), (Some("a"), "2"));
        assert_eq!(Value::Object(record.metadata), json!({"id": "c", "_id": "b", "body": "3"}));
    }

    #[test]
    fn a_blank_field_yields_to_one_that_says_something() {
        let record = read(json!({"external_id": "", "_id": "x", "text": " ", "body": "t"})).expect("valid");
        assert_eq!((record.external_id.as_deref(), record.text.as_str()), (Some("x"), "t"));
    }

    #[test]
    fn numbers_keep_their_digits() {
        let record = parse(br#"{"id": 1234567890123456789012, "text": "t", "n": 1e400}"#, &FieldMap::default());
        let record = record.expect("valid");
        assert_eq!(record.external_id.as_deref(), Some("1234567890123456789012"));
        assert_eq!(record.metadata["n"].to_string(), "1e+400");
    }

    #[test]
    fn a_key_is_that_of_the_whole_record() {
        let named = FieldMap { text: Some("t".into()), external_id: Some("k".into()), ..FieldMap::default() };
        for line in [
            r#"{"_id": 7, "text": "x", "n": {"id": 8}}"#,
            r#"{"id": "c", "_id": "b", "external_id": "a", "body": "3"}"#,
            r#"{"external_id": "", "_id": "x", "text": " ", "body": "t"}"#,
            r#"{"id": null, "text": "", "title": [1]}"#,
            r#"{"id": "a\u0000b", "text": "x"}"#,
            r#"{"id": 1234567890123456789012, "text": 1e400, "id": 3}"#,
            r#"{"id": true, "text": "x"}"#,
            r#"{"id": {"a":1}, "text": "x"}"#,
            r#"{"t": "x", "k": "1", "id": "2"}"#,
            r#"{"text": [1]}"#,
            r#"{"text": null, "a": 1}"#,
            r#" {"text": "x"} "#,
            "[1]",
            "{oops",
            "",
        ] {
            for fields in [&FieldMap::default(), &named] {
                match (key(line.as_bytes(), fields), parse(line.as_bytes(), fields)) {
                    (key, Ok(record)) => assert_eq!(key, Ok(record.external_id), "{line}"),
                    (Err(key), Err(whole)) => assert_eq!(key.message, whole.message, "{line}"),
                    // What a record fails by besides its key and text is found when it is parsed.
                    (Ok(_), Err(whole)) => assert!(whole.message.contains("\"title\""), "{line}: {whole}"),
                }
            }
        }
        assert!(key("[".repeat(100_000).as_bytes(), &named).is_err());
    }

    #[test]
    fn named_fields_replace_the_usual_ones() {
        let fields = FieldMap { text: Some("t".into()), external_id: Some("k".into()), ..FieldMap::default() };
        let record = parse(br#"{"t": "x", "text": "y", "k": "1", "id": "2"}"#, &fields).expect("valid");
        assert_eq!((record.text.as_str(), record.external_id.as_deref()), ("x", Some("1")));
        assert_eq!(parse(br#"{"text": "y"}"#, &fields).expect_err("missing").message, "record has no field \"t\"");
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let message = |bytes: &[u8]| parse(bytes, &FieldMap::default()).expect_err("invalid").message;
        assert_eq!(message(b"{oops"), "record is not valid JSON: \"{oops\"");
        assert_eq!(message(b"[1]"), "record is not a JSON object: \"[1]\"");
        assert_eq!(message(b"{\"a\": 1}"), "record has no field \"text\"");
        assert_eq!(message(b"{\"text\": null}"), "record has no field \"text\"");
        assert_eq!(message(b"{\"text\": [1]}"), "field \"text\" must be a string or number, not \"[1]\"");
        assert_eq!(message("é".repeat(100).as_bytes()).len(), "record is not valid JSON: \"…\"".len() + 80);
        assert!(message("[".repeat(100_000).as_bytes()).starts_with("record is not valid JSON"));
    }

    #[test]
    fn empty_and_null_are_no_values_but_an_empty_text_is_one() {
        let record = read(json!({"text": "", "title": null, "id": "", "language": " "})).expect("valid");
        assert_eq!(record, Record::default());
    }

    #[test]
    fn broken_bytes_and_nul_escapes_are_mended() {
        let record = parse(b"{\"text\": \"a\xFFb\", \"k\": \"\\u0000\", \"title\": \"\\u0000\"}", &FieldMap::default());
        let record = record.expect("valid");
        assert_eq!((record.text.as_str(), record.repaired_bytes), ("a\u{FFFD}b", 1));
        assert_eq!(Value::Object(record.metadata), json!({"k": "\u{FFFD}"}));
        assert_eq!(record.title.as_deref(), Some("\u{FFFD}"));
    }
}
