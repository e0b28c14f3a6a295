// SPDX-License-Identifier: PostgreSQL

//! Configuration: YAML, TOML, JSON and INI by their top-level keys and sections.
//!
//! Each syntax is read by a scanner of its own that only says where keys and their values are ([`outline`]); what they
//! mean is nobody's business here, so no alias is expanded and no value is built. The text stays as it is: every
//! character is in the part of one key, a comment in that of the key below it. What cannot be read is cut by its lines
//! and says so in its metadata, because a template or a broken file is still what somebody searches.

mod ini;
mod json;
mod outline;
mod toml;
mod yaml;

use super::{Parsed, Part, Structure, role};
use crate::text;
use outline::{Entry, Outline};
use rag_core::source::SourceOptions;
use serde_json::Value;

/// Bytes of a text up to which keys are looked for. What is larger is data; its tokens would take too much memory.
const MAX_BYTES: usize = 16 << 20;

/// Bytes that a token of a configuration surely has; decides when a value is cut at its own keys. A part that still does
/// not fit is cut at its lines.
const BYTES_PER_TOKEN: usize = 3;

/// Why a text is not of a syntax.
type Refused = String;

/// A syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Yaml,
    Toml,
    Json,
    Ini,
    Properties,
}

impl Syntax {
    fn name(self) -> &'static str {
        match self {
            Syntax::Yaml => "yaml",
            Syntax::Toml => "toml",
            Syntax::Json => "json",
            Syntax::Ini => "ini",
            Syntax::Properties => "properties",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Syntax::Yaml => "application/yaml",
            Syntax::Toml => "application/toml",
            Syntax::Json => "application/json",
            Syntax::Ini | Syntax::Properties => "text/plain",
        }
    }

    /// What a name promises, or what may be tried, in this order.
    fn of(path: &str, text: &str) -> &'static [Self] {
        let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        match extension.as_deref() {
            Some("yaml" | "yml") => &[Syntax::Yaml],
            Some("toml") => &[Syntax::Toml],
            Some("json" | "jsonc") => &[Syntax::Json],
            Some("ini" | "cfg" | "conf") => &[Syntax::Ini],
            Some("properties") => &[Syntax::Properties],
            _ if text.trim_start().starts_with(['{', '[']) => &[Syntax::Json, Syntax::Toml, Syntax::Ini, Syntax::Yaml],
            _ => &[Syntax::Toml, Syntax::Yaml, Syntax::Ini],
        }
    }

    fn outline(self, text: &str, limit: usize) -> Result<Outline, Refused> {
        let mut outline = Outline::new(limit);
        match self {
            Syntax::Yaml => yaml::scan(text, &mut outline)?,
            Syntax::Toml => toml::scan(text, &mut outline)?,
            Syntax::Json => json::scan(text, &mut outline)?,
            Syntax::Ini => ini::scan(text, false, &mut outline)?,
            Syntax::Properties => ini::scan(text, true, &mut outline)?,
        }
        Ok(outline)
    }
}

/// Parses a configuration; `path` tells its syntax.
pub fn parse(path: &str, bytes: &[u8], options: &SourceOptions) -> Parsed {
    let repaired = text::repair(bytes);
    let text = repaired.text;
    let name = path.rsplit('/').next().unwrap_or_default().trim();
    let mut parsed = Parsed {
        repaired_bytes: repaired.repaired_bytes,
        media_type: "text/plain".to_owned(),
        title: Some(name).filter(|n| !n.is_empty()).map(str::to_owned),
        role: Some(role::CONFIGURATION.to_owned()),
        ..Parsed::default()
    };
    let limit = (options.chunk_tokens as usize).saturating_mul(BYTES_PER_TOKEN);
    let mut refused = None;
    for syntax in Syntax::of(path, &text) {
        let outline = if text.len() > MAX_BYTES {
            Err(format!("{} bytes are more than {MAX_BYTES}, so its keys were not looked for", text.len()))
        } else {
            syntax.outline(&text, limit)
        };
        match outline {
            Ok(outline) => {
                parsed.media_type = syntax.media_type().to_owned();
                parsed.metadata.insert("syntax".to_owned(), syntax.name().into());
                parsed.structure.parts = parts(&text, &outline);
                refused = None;
                break;
            }
            // The first is the likeliest.
            Err(why) => refused = refused.or(Some((syntax, why))),
        }
    }
    if let Some((syntax, why)) = refused {
        parsed.metadata.insert("parse_error".to_owned(), Value::String(format!("no valid {}: {why}", syntax.name())));
    }
    if parsed.structure.parts.is_empty() && !text.trim().is_empty() {
        parsed.structure.parts = vec![Part { range: 0..text.len(), ..Part::default() }];
    }
    parsed.structure.body = 0..text.len();
    parsed.text = text;
    parsed
}

/// The parts of an outline, which tile the text.
fn parts(text: &str, outline: &Outline) -> Vec<Part> {
    let mut parts = Vec::new();
    let entries = outline.entries();
    let Some(first) = entries.first() else {
        return parts;
    };
    // What a file begins with is about the file and not about its first key when a blank line stands between them.
    let before = &text[..first.range.start.min(text.len())];
    let start = before.rfind("\n\n").map_or(0, |blank| blank + 2);
    let start = if before[..start].contains(char::is_alphanumeric) { start } else { 0 };
    if start > 0 {
        parts.push(Part { range: 0..start, ..Part::default() });
    }
    split(text, outline.limit(), entries, start..text.len(), &[], &mut parts);
    parts
}

/// Parts of `entries`, which tile `region`; no deeper than the outline.
fn split(
    text: &str,
    limit: usize,
    entries: &[Entry],
    region: std::ops::Range<usize>,
    path: &[String],
    parts: &mut Vec<Part>,
) {
    let mut start = region.start;
    for (index, entry) in entries.iter().enumerate() {
        let end = entries.get(index + 1).map_or(region.end, |next| {
            let end = entry.range.end.clamp(start, region.end);
            between(text, end, next.range.start.clamp(end, region.end))
        });
        let mut path = path.to_vec();
        if let Some(key) = &entry.key {
            key.names(text, &mut path);
        }
        if entry.children.is_empty() || end - start <= limit {
            parts.push(Part { range: start..end, path, ..Part::default() });
        } else {
            split(text, limit, &entry.children, start..end, &path, parts);
        }
        start = end;
    }
}

/// Where the text between two keys is divided: what stands on the line of the first belongs to it, the rest, which are
/// comments, to the second.
fn between(text: &str, end: usize, start: usize) -> usize {
    let gap = &text[end..start];
    match gap.find('\n').or_else(|| gap.rfind(',')) {
        Some(at) => end + at + 1,
        None => start,
    }
}

impl Structure {
    /// The paths of its parts, for tests.
    #[cfg(test)]
    fn paths(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.path.join("/")).collect()
    }
}

#[cfg(test)]
mod tests;
