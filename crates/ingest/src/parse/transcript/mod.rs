// SPDX-License-Identifier: PostgreSQL

//! Transcripts: who said what, when.
//!
//! A document is a recording, from SubRip, WebVTT or segments in JSON. Segments are put in one total order, by begin, end
//! and identity, and become turns: neighbours of one speaker. The text is what was said, turn by turn with a blank line
//! between them; the speaker's name is not in it but in the facts of the turn's part, so a renamed speaker changes no
//! text. Each segment keeps its time, and a chunk that of all segments it has a part of.
//!
//! A segment without a begin stays behind the one before it in the file and has no time; a negative time is 0; an end before
//! its begin is the begin. What was mended is counted in the metadata. Empty segments say nothing and are left out.

mod cues;
mod segments;

use super::{Parsed, Part, Structure, Timed, metadata, record, role};
use crate::text::{repair, without_nul};
use rag_core::document::Facts;
use rag_core::error::{Error, Kind, Result};
use rag_core::source::SourceOptions;
pub use segments::is_recording;
use serde_json::{Map, Value};

/// Something said, as it was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Segment {
    /// Begin in milliseconds.
    pub from: Option<i64>,
    /// End in milliseconds.
    pub to: Option<i64>,
    /// Identity, that orders what was said at one time.
    pub id: Option<String>,
    /// Who spoke.
    pub speaker: Option<String>,
    /// What was said.
    pub text: String,
}

/// A transcript as it was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Segments in the order of the file.
    pub segments: Vec<Segment>,
    /// What it says about itself.
    pub about: Map<String, Value>,
}

/// Milliseconds beyond which a time is none: a database keeps microseconds, in 64 bits.
const MAX_TIME: i64 = 9_000_000_000_000_000;

/// Bytes of an identity that count; others may be as long as the file, and segments without a begin have that of another.
const MAX_IDENTITY: usize = 64;

/// An identity as far as it orders segments.
fn identity(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_IDENTITY)].to_owned()
}

/// The document of a recording.
pub fn parse(bytes: &[u8], options: &SourceOptions) -> Result<Parsed> {
    let repaired = repair(bytes);
    let text = repaired.text.as_str();
    let mut external_id = None;
    let (format, media_type, found) = match text.trim_start().as_bytes() {
        [b'W', b'E', b'B', b'V', b'T', b'T', ..] => ("vtt", "text/vtt", cues::vtt(text)),
        [b'{', ..] => {
            external_id = record::key_only(bytes, &options.fields)?;
            ("json", "application/json", segments::read(text)?)
        }
        [b'[', ..] => ("json", "application/json", segments::read(text)?),
        _ => ("srt", "application/x-subrip", cues::srt(text)),
    };
    if found.segments.is_empty() && !text.trim().is_empty() && format == "srt" {
        return Err(Error::new(Kind::BadContent, "transcript has no cue")
            .with_detail("A cue has a line like 00:00:01,000 --> 00:00:02,000 and lines of text.")
            .with_hint("Use kind \"text\" for a transcript without times."));
    }
    let mut parsed = Parsed {
        media_type: media_type.to_owned(),
        repaired_bytes: repaired.repaired_bytes,
        external_id,
        role: Some(role::EVIDENCE.to_owned()),
        ..Parsed::default()
    };
    metadata::describe(&mut parsed, found.about);
    parsed.metadata.insert("format".to_owned(), format.into());
    tell(found.segments, &mut parsed);
    Ok(parsed)
}

/// A segment in its place.
struct Placed {
    /// Begin, end, identity: those of the segment before for one without a begin.
    order: (u64, u64, Identity),
    timed: bool,
    segment: Segment,
}

/// Numbers in their order, then other names, then none.
type Identity = (u64, bool, Option<String>);

/// Puts segments in order; also how many of them had a time that had to be mended.
fn order(segments: Vec<Segment>) -> (Vec<Placed>, u64) {
    let mut mended = 0;
    let mut before = (0, 0, (0, false, None));
    let mut placed: Vec<Placed> = Vec::with_capacity(segments.len());
    for segment in segments {
        let whole = |time: i64| u64::try_from(time).unwrap_or(0);
        let negative = segment.from.is_some_and(i64::is_negative) || segment.to.is_some_and(i64::is_negative);
        let reversed = segment.from.zip(segment.to).is_some_and(|(from, to)| to < from);
        mended += u64::from(negative || reversed);
        let timed = segment.from.is_some();
        if let Some(from) = segment.from.map(whole) {
            let id = segment.id.clone();
            let number = id.as_deref().and_then(|id| id.parse::<u64>().ok()).unwrap_or(u64::MAX);
            before = (from, segment.to.map_or(from, whole).max(from), (number, id.is_none(), id));
        }
        placed.push(Placed { order: before.clone(), timed, segment });
    }
    // A stable sort: the place in the file decides last.
    placed.sort_by(|a, b| a.order.cmp(&b.order));
    (placed, mended)
}

/// Writes text, turns and times.
fn tell(segments: Vec<Segment>, parsed: &mut Parsed) {
    let (placed, mended) = order(segments);
    let mut text = String::new();
    let mut parts: Vec<Part> = Vec::new();
    let mut times = Vec::new();
    for Placed { order: (from, to, _), timed, segment } in placed {
        let said = without_nul(&segment.text.split_whitespace().collect::<Vec<_>>().join(" "));
        if said.is_empty() {
            continue;
        }
        let speaker = segment.speaker.map(|name| without_nul(name.trim())).filter(|name| !name.is_empty());
        match parts.last_mut().filter(|part| part.facts.speaker == speaker) {
            Some(_) => text.push(' '),
            None => {
                if !text.is_empty() {
                    text.push_str("\n\n");
                }
                let facts = Facts { speaker, ..Facts::default() };
                parts.push(Part { range: text.len()..text.len(), prose: true, facts, ..Part::default() });
            }
        }
        let start = text.len();
        text.push_str(&said);
        if timed {
            times.push(Timed { range: start..text.len(), from, to });
        }
        if let Some(part) = parts.last_mut() {
            part.range.end = text.len();
        }
    }
    if mended > 0 {
        parsed.metadata.insert("mended_times".to_owned(), mended.into());
    }
    parsed.structure = Structure { body: 0..text.len(), parts, times, ..Structure::default() };
    parsed.text = text;
}

#[cfg(test)]
mod tests;
