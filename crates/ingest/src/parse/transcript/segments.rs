// SPDX-License-Identifier: PostgreSQL

//! Segments in JSON: our own schema, and what recognisers write.
//!
//! `{"segments": [{"start", "end", "text", "speaker", "id"}], "title", "language", "speakers": {"id": "Name"}}`, or the array
//! alone. Times are seconds, or text like `00:01:02.5`; under names with `ms`, and in `offsets`, milliseconds.

use super::cues::{label, stamp};
use super::{Found, MAX_TIME, Segment, identity};
use crate::parse::metadata::{scalar, short};
use crate::parse::post::{first, person, text_of};
use rag_core::error::{Error, Kind, Result};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Fields that hold segments.
const SEGMENTS: &[&str] =
    &["segments", "turns", "utterances", "cues", "transcription", "meeting_transcripts", "results", "transcript"];
const FROM: &[&str] = &["start", "start_time", "begin", "from", "startTime"];
const TO: &[&str] = &["end", "end_time", "stop", "to", "endTime"];
const FROM_MS: &[&str] = &["start_ms", "begin_ms", "startMs", "from_ms"];
const TO_MS: &[&str] = &["end_ms", "stop_ms", "endMs", "to_ms"];
const TEXTS: &[&str] = &["text", "content", "transcript", "utterance"];
const SPEAKERS: &[&str] = &["speaker", "speaker_name", "speaker_label", "speaker_id", "name"];
const IDS: &[&str] = &["id", "index", "seq", "number"];

/// Whether a JSON text is an object that holds segments.
pub fn is_recording(bytes: &[u8]) -> bool {
    let fields = serde_json::from_slice::<BTreeMap<String, &RawValue>>(bytes);
    fields
        .is_ok_and(|fields| SEGMENTS.iter().any(|name| fields.get(*name).is_some_and(|raw| raw.get().starts_with('['))))
}

/// Reads a recording.
pub fn read(text: &str) -> Result<Found> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        Error::new(Kind::BadContent, "transcript is not valid JSON")
            .with_detail(error.to_string())
            .with_hint("Many recordings go into one array of objects, or one on each line of a file named .jsonl.")
    })?;
    let mut about = Map::new();
    let segments = match value {
        Value::Array(segments) => segments,
        Value::Object(mut object) => {
            let name = SEGMENTS.iter().find(|name| object.get(**name).is_some_and(Value::is_array));
            let segments = name.and_then(|name| object.shift_remove(*name));
            about = object;
            match segments {
                Some(Value::Array(segments)) => segments,
                // What was said in one piece.
                _ => match text_of(&about, TEXTS) {
                    Some(text) => vec![Value::String(text)],
                    None => return Err(no_segments(&about)),
                },
            }
        }
        _ => return Err(no_segments(&about)),
    };
    let names = names(about.shift_remove("speakers"));
    let segments = segments.iter().enumerate().map(|(index, value)| segment(index, value, &names));
    let segments = segments.collect::<Result<Vec<_>>>()?;
    // The whole text once more.
    ["text", "words", "word_segments", "content"].iter().for_each(|name| {
        about.shift_remove(*name);
    });
    Ok(Found { segments, about })
}

fn no_segments(about: &Map<String, Value>) -> Error {
    let have = about.keys().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
    Error::new(Kind::BadContent, "transcript has no segments")
        .with_detail(format!("It has: {have}."))
        .with_hint("A transcript is {\"segments\": [{\"start\", \"end\", \"text\", \"speaker\"}]}.")
}

/// Names of speakers by their identity.
fn names(value: Option<Value>) -> BTreeMap<String, String> {
    match value {
        Some(Value::Object(object)) => {
            object.iter().filter_map(|(id, name)| Some((id.clone(), person(name)?))).collect()
        }
        Some(Value::Array(list)) => {
            let one = |value: &Value| {
                let object = value.as_object()?;
                Some((
                    text_of(object, &["id", "label", "speaker"])?,
                    short(&text_of(object, &["name", "display_name"])?),
                ))
            };
            list.iter().filter_map(one).collect()
        }
        _ => BTreeMap::new(),
    }
}

fn segment(index: usize, value: &Value, names: &BTreeMap<String, String>) -> Result<Segment> {
    let object = match value {
        Value::Object(object) => object,
        Value::String(text) => return Ok(Segment { text: text.clone(), ..Segment::default() }),
        _ => {
            let message = format!("segment {} of the transcript is neither an object nor a text", index + 1);
            return Err(Error::new(Kind::BadContent, message));
        }
    };
    let offsets = object.get("offsets").and_then(Value::as_object);
    let time = |seconds: &[&str], milliseconds: &[&str], offset: &str| {
        let ms = first(object, milliseconds).or_else(|| offsets?.get(offset));
        ms.and_then(|ms| number(ms, 1.0)).or_else(|| number(first(object, seconds)?, 1000.0))
    };
    let text = first(object, TEXTS).and_then(scalar).unwrap_or_default();
    let speaker = first(object, SPEAKERS).and_then(|who| match who {
        Value::Number(number) => Some(short(&number.to_string())),
        who => person(who),
    });
    let speaker = speaker.map(|who| names.get(&who).cloned().unwrap_or(who));
    let (labelled, text) = if speaker.is_none() { label(&text) } else { (None, text) };
    Ok(Segment {
        from: time(FROM, FROM_MS, "from"),
        to: time(TO, TO_MS, "to"),
        id: text_of(object, IDS).as_deref().map(identity),
        speaker: speaker.or(labelled),
        text,
    })
}

/// Milliseconds of a number, as such or as text, or of a time of day.
fn number(value: &Value, scale: f64) -> Option<i64> {
    let plain = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().trim_end_matches('s').parse::<f64>().ok(),
        _ => None,
    };
    match plain {
        // Below 2^53 every millisecond is a double of its own.
        Some(number) => Some((number * scale).round()).filter(|ms| ms.abs() <= MAX_TIME as f64).map(|ms| ms as i64),
        None => stamp(value.as_str()?),
    }
}
