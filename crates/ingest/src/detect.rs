// SPDX-License-Identifier: PostgreSQL

//! Which kind some content is, for a command line that was given a file and no kind.
//!
//! Content speaks first, because names lie: a first line that is a whole JSON object means records. Markdown and plain text
//! cannot be told apart by content when both are possible, so the name decides, and only an unknown name lets the
//! first lines decide.

use crate::text;
use rag_core::source::SourceKind;
use serde_json::{Map, Value};

/// Bytes that are looked at; enough for one long record.
const LOOK: usize = 1 << 20;

/// The kind of some content, by content and then by name.
pub fn detect_kind(path_or_uri: &str, content: &[u8]) -> SourceKind {
    let head = text::repair(&content[..content.len().min(LOOK)]).text;
    let mut lines = head.lines().filter(|line| !line.trim().is_empty());
    if lines.next().is_some_and(|line| serde_json::from_str::<Map<String, Value>>(line).is_ok()) {
        return SourceKind::Jsonl;
    }
    let name = path_or_uri.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "md" | "markdown" | "mdown" | "mkd" => SourceKind::Markdown,
        "jsonl" | "ndjson" => SourceKind::Jsonl,
        "txt" | "text" | "rst" | "adoc" | "org" | "log" => SourceKind::Text,
        _ if looks_like_markdown(&head) => SourceKind::Markdown,
        _ => SourceKind::Text,
    }
}

/// Whether an ATX heading, a labelled fence or front matter is among the first lines.
fn looks_like_markdown(head: &str) -> bool {
    head.lines().take(200).enumerate().any(|(i, line)| {
        let hashes = line.bytes().take_while(|b| *b == b'#').count();
        let heading = (1..=6).contains(&hashes) && line[hashes..].starts_with(' ');
        // A first line with one hash is as often a comment of a script as a title.
        let script = i == 0 && line.starts_with("#!");
        (heading && !script) || line.starts_with("```") || (i == 0 && line.trim_end() == "---")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_then_name_then_looks() {
        for (name, content, kind) in [
            ("a.md", "plain", SourceKind::Markdown),
            ("a.MD", "plain", SourceKind::Markdown),
            ("a.txt", "# title", SourceKind::Text),
            ("notes", "# title\n", SourceKind::Markdown),
            ("notes", "```sh\n", SourceKind::Markdown),
            ("notes", "plain", SourceKind::Text),
            ("script", "#!/bin/sh\n", SourceKind::Text),
            ("a.txt", "\n{\"text\": \"x\"}\n", SourceKind::Jsonl),
            ("a.jsonl", "", SourceKind::Jsonl),
            ("a.txt", "{not json}", SourceKind::Text),
            ("", "", SourceKind::Text),
        ] {
            assert_eq!(detect_kind(name, content.as_bytes()), kind, "{name} {content}");
        }
    }
}
