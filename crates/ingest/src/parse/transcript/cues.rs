// SPDX-License-Identifier: PostgreSQL

//! Cues of SubRip and WebVTT.
//!
//! The formats are lines, and files in the wild are lenient with them, so this is too: hours may be missing or more
//! than 99, the comma may be a dot, a SubRip text may have blank lines in it. Markup is dropped; a voice (`<v Name>`), and in
//! either format a label (`[Name]: …`, `>> NAME: …`), is the speaker.

use super::{Found, MAX_TIME, Segment, identity};
use serde_json::Map;

/// Longest label of a speaker in characters.
const MAX_LABEL: usize = 80;

/// The cues of SubRip: a number, a line of times, and text up to the number of the next.
pub fn srt(text: &str) -> Found {
    let lines: Vec<&str> = text.lines().collect();
    let mut segments = Vec::new();
    let number = |at: usize| {
        let line = lines.get(at)?.trim().trim_start_matches('\u{FEFF}');
        (!line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())).then_some(line)
    };
    // Times are known by themselves; bad ones only after a number.
    let begins = |at: usize| {
        let line = lines.get(at).copied().unwrap_or_default();
        let numbered = at > 0 && number(at - 1).is_some();
        line.contains("-->").then(|| times(line)).filter(|times| times.0.is_some() && times.1.is_some() || numbered)
    };
    let mut at = 0;
    while at < lines.len() {
        let Some((from, to)) = begins(at) else {
            at += 1;
            continue;
        };
        let id = at.checked_sub(1).and_then(number).map(identity);
        let start = at + 1;
        at = start;
        while at < lines.len() && begins(at).is_none() {
            at += 1;
        }
        let mut end = at;
        if at < lines.len() && end > start && number(end - 1).is_some() {
            end -= 1;
        }
        let body = lines[start..end].join("\n");
        let (speaker, text) = label(&unmarked(&body));
        segments.push(Segment { from, to, id, speaker, text });
    }
    Found { segments, about: Map::new() }
}

/// The cues of WebVTT: blocks between blank lines; those without times are notes, styles and regions.
pub fn vtt(text: &str) -> Found {
    let mut found = Found::default();
    for (index, block) in blocks(text).into_iter().enumerate() {
        if index == 0 {
            header(&block, &mut found);
            continue;
        }
        let Some(at) = block.iter().take(2).position(|line| line.contains("-->")) else {
            continue;
        };
        let (from, to) = times(block[at]);
        let id = at.checked_sub(1).and_then(|i| block.get(i)).map(|line| identity(line.trim()));
        for (voice, text) in voices(&block[at + 1..].join("\n")) {
            let (named, text) = label(&text);
            found.segments.push(Segment { from, to, id: id.clone(), speaker: voice.or(named), text });
        }
    }
    found
}

/// Lines between blank lines. Times without a blank line before them begin a block too, with no identity.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            open = false;
            continue;
        }
        let again =
            line.contains("-->") && blocks.last().is_some_and(|b| b.len() > 1 || b.iter().any(|l| l.contains("-->")));
        match blocks.last_mut().filter(|_| open && !again) {
            Some(block) => block.push(line),
            None => blocks.push(vec![line]),
        }
        open = true;
    }
    blocks
}

/// A title after the signature, and the language that some writers put under it.
fn header(block: &[&str], found: &mut Found) {
    let title = block.first().and_then(|line| line.trim().strip_prefix("WEBVTT")).unwrap_or_default();
    let title = title.trim_start_matches([' ', '\t', '-', ':']).trim();
    if !title.is_empty() {
        found.about.insert("title".to_owned(), title.into());
    }
    for line in &block[1..] {
        if let Some(("Language", language)) = line.split_once(':').map(|(k, v)| (k.trim(), v.trim())) {
            found.about.insert("language".to_owned(), language.into());
        }
    }
}

/// Begin and end of a line of times; what follows the end are settings.
fn times(line: &str) -> (Option<i64>, Option<i64>) {
    let Some((from, to)) = line.split_once("-->") else {
        return (None, None);
    };
    (stamp(from), to.split_whitespace().next().and_then(stamp))
}

/// Milliseconds of `[hours:]minutes:seconds[.,]fraction`; negative with a minus sign. What is beyond any recording is no time.
pub fn stamp(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches('\u{FEFF}');
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (clock, fraction) = text.split_once([',', '.']).unwrap_or((text, ""));
    let digits = |part: &str| {
        (!part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<i64>().ok())?
    };
    let parts = clock.split(':').map(digits).collect::<Option<Vec<i64>>>()?;
    let seconds = match parts.as_slice() {
        [minutes, seconds] => minutes.checked_mul(60)?.checked_add(*seconds)?,
        [hours, minutes, seconds] => {
            hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(*seconds)?
        }
        _ => return None,
    };
    // Three digits, however many are written.
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let milliseconds = digits(&thousandths)?;
    let time = seconds.checked_mul(1000)?.checked_add(milliseconds)?;
    (time <= MAX_TIME).then_some(time * sign)
}

/// Text without the markup of SubRip.
fn unmarked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '{']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = if rest.starts_with("{\\") {
            rest[..rest.floor_char_boundary(MAX_TAG)].find('}')
        } else {
            tag(rest).filter(|(name, _)| is_style(name)).map(|t| t.1)
        };
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => {
                out.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_style(name: &str) -> bool {
    matches!(name.trim_start_matches('/').to_ascii_lowercase().as_str(), "i" | "b" | "u" | "s" | "font" | "c" | "v")
}

/// Bytes of a tag that are looked at.
const MAX_TAG: usize = 200;

/// The name of the tag at the start of a text, and where its `>` is.
fn tag(text: &str) -> Option<(&str, usize)> {
    let head = &text[..text.floor_char_boundary(MAX_TAG)];
    let end = head.find('>')?;
    let inside = &head[1..end];
    if inside.contains('<') || !inside.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/') {
        return None;
    }
    let name = inside.split(|c: char| c.is_whitespace() || c == '.').next().unwrap_or_default();
    Some((name, end))
}

/// The text of a cue of WebVTT by its voices, without markup.
fn voices(text: &str) -> Vec<(Option<String>, String)> {
    let mut said: Vec<(Option<String>, String)> = vec![(None, String::new())];
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        push(&mut said, &rest[..at]);
        rest = &rest[at..];
        let Some((name, end)) = tag(rest) else {
            push(&mut said, "<");
            rest = &rest[1..];
            continue;
        };
        let inside = &rest[1..end];
        match name {
            "v" => {
                let who = inside.split_once(char::is_whitespace).map(|(_, who)| decoded(who.trim()));
                said.push((who.filter(|who| !who.is_empty()), String::new()));
            }
            "/v" => said.push((None, String::new())),
            _ => {}
        }
        rest = &rest[end + 1..];
    }
    push(&mut said, rest);
    said.retain(|(_, text)| !text.trim().is_empty());
    said
}

fn push(said: &mut [(Option<String>, String)], text: &str) {
    if let Some((_, last)) = said.last_mut() {
        last.push_str(&decoded(text));
    }
}

/// Text with the character references that WebVTT has.
fn decoded(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let mut out = text.to_owned();
    for (name, c) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&nbsp;", "\u{A0}"),
        ("&lrm;", "\u{200E}"),
        ("&rlm;", "\u{200F}"),
        ("&amp;", "&"),
    ] {
        out = out.replace(name, c);
    }
    out
}

/// Splits a speaker's label off a text.
pub fn label(text: &str) -> (Option<String>, String) {
    let trimmed = text.trim();
    let found = match trimmed.strip_prefix('[') {
        Some(rest) => rest.split_once("]:"),
        None => trimmed.strip_prefix(">>").and_then(|rest| rest.split_once(':')),
    };
    let is_name = |name: &str| {
        name.chars().count() <= MAX_LABEL
            && !name.contains(['\n', '[', ']', '.', '?', '!'])
            && name.contains(char::is_alphabetic)
    };
    match found.map(|(name, rest)| (name.trim(), rest)).filter(|(name, _)| is_name(name)) {
        Some((name, rest)) => (Some(name.to_owned()), rest.to_owned()),
        None => (None, text.to_owned()),
    }
}
