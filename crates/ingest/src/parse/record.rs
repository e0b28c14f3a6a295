// SPDX-License-Identifier: PostgreSQL

//! One JSON record: which of its fields mean what.
//!
//! Owns the defaults of [`FieldMap`]. A record is refused when its text is missing, because a document without text
//! that claims to be one hides a wrong field mapping; an empty text is fine (a title alone is a record of many sets).
//! The text is returned as the record has it; repair is the caller's.

use super::metadata::{rfc3339, scalar};
use crate::text::{map_without_nul, repair};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::FieldMap;
use serde_json::{Map, Value};

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

/// Reads one JSON object.
pub fn parse(bytes: &[u8], fields: &FieldMap) -> Result<Record> {
    let line = repair(bytes);
    let mut object = match serde_json::from_str::<Value>(&line.text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(bad(format!("record is not a JSON object: \"{}\"", quote(&line.text)))),
        Err(error) => {
            let error =
                bad(format!("record is not valid JSON: \"{}\"", quote(&line.text))).with_detail(error.to_string());
            return Err(error);
        }
    };
    // A field that is null says nothing, wherever it would have gone.
    object.retain(|_, value| !value.is_null());
    let text = take_string(&mut object, fields.text.as_deref(), &["text", "content", "body"])?.ok_or_else(|| {
        let have: Vec<&str> = object.keys().map(String::as_str).take(20).collect();
        let wanted = fields.text.as_deref().unwrap_or("text");
        bad(format!("record has no field \"{wanted}\""))
            .with_detail(format!("It has: {}.", have.join(", ")))
            .with_hint("Name the field with the text in the source's options: {\"fields\": {\"text\": \"...\"}}.")
    })?;
    let external_id = take_string(&mut object, fields.external_id.as_deref(), &["external_id", "_id", "id"])?;
    let title = take_string(&mut object, fields.title.as_deref(), &["title"])?;
    let language = take_string(&mut object, fields.language.as_deref(), &["language"])?;
    let published_field = fields.published_at.as_deref().unwrap_or("published_at");
    let published_at = object.get(published_field).and_then(Value::as_str).and_then(rfc3339);
    if published_at.is_some() {
        object.shift_remove(published_field);
    }
    let filled = |value: Option<String>| value.map(|v| v.replace('\0', "\u{FFFD}")).filter(|v| !v.trim().is_empty());
    Ok(Record {
        external_id: filled(external_id),
        title: filled(title),
        text,
        language: filled(language),
        published_at,
        metadata: map_without_nul(flatten(object)),
        repaired_bytes: line.repaired_bytes,
    })
}

/// Takes the named field, or else the first of the usual ones that says something, or else the first that is there.
fn take_string(object: &mut Map<String, Value>, named: Option<&str>, usual: &[&str]) -> Result<Option<String>> {
    let present = |key: &&str| object.contains_key(*key);
    let blank = |key: &&str| object.get(*key).and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
    let found = match named {
        Some(name) => Some(name).filter(present),
        None => {
            let mut there = usual.iter().copied().filter(present);
            there.clone().find(|key| !blank(key)).or_else(|| there.next())
        }
    };
    let Some(key) = found else {
        return Ok(None);
    };
    match object.shift_remove(key) {
        Some(Value::String(s)) => Ok(Some(s)),
        Some(value) => match scalar(&value) {
            Some(text) => Ok(Some(text)),
            None => {
                Err(bad(format!("field \"{key}\" must be a string or number, not \"{}\"", quote(&value.to_string()))))
            }
        },
        None => Ok(None),
    }
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
