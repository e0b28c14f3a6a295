// SPDX-License-Identifier: PostgreSQL

//! The options of a source, parsed and checked.

use super::applies::{Location, check};
use super::file_glob;
use super::kind::SourceKind;
use super::limits::Limits;
use crate::error::{Error, Result, unknown_key};
use crate::template::EmbedTemplate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::str::FromStr;

/// How text is cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chunking {
    /// By what the format has: symbols, turns, sections; else by headings; else as `recursive`.
    Structure,
    /// By the heading tree, then by blocks under the token budget.
    Heading,
    /// By paragraphs, sentences and words under the token budget, blind to headings.
    Recursive,
    /// Not at all: the document is one chunk (already chunked elsewhere). Text beyond the model's window is still cut
    /// into several chunks unless `truncate` is on.
    None,
}

/// Which fields of a JSON record mean what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldMap {
    /// Field with the record's key; default: the first present of `external_id`, `_id`, `id`.
    pub external_id: Option<String>,
    /// Field with the title; default `title`.
    pub title: Option<String>,
    /// Field with the text; default: the first present of `text`, `content`, `body`.
    pub text: Option<String>,
    /// Field with the language; default `language`.
    pub language: Option<String>,
    /// Field with the time of publication; default `published_at`.
    pub published_at: Option<String>,
}

/// A password: part of the options, and of no message or log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(String);

impl Secret {
    /// What must not be shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Validated options of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceOptions {
    /// How text is cut.
    pub chunking: Chunking,
    /// Target size of a chunk in tokens of the collection's model, 16 to 8192; never above the model's window.
    pub chunk_tokens: u32,
    /// Tokens repeated from the end of the previous chunk (recursive chunking, and parts that are prose), below half of
    /// `chunk_tokens`.
    pub overlap: u32,
    /// Cut text beyond the window (counted and reported) instead of chunking it.
    pub truncate: bool,
    /// What text is embedded.
    pub embed_template: EmbedTemplate,
    /// Text search configuration of the BM25 leg, as typed; the backend resolves it. [`crate::lexical::language::AUTO`]: that of
    /// each document's language.
    pub text_search_config: String,
    /// Globs of files to take within a folder; empty: the kind's own.
    pub glob: Vec<String>,
    /// Globs of files to leave out, on top of `.gitignore` and hidden files.
    pub ignore: Vec<String>,
    /// Fields of a JSON record.
    pub fields: FieldMap,
    /// Branch, tag or commit of a repository; `None` for HEAD.
    pub reference: Option<String>,
    /// Hash, or its beginning, that the commit must have.
    pub expect_commit: Option<String>,
    /// Password of what is encrypted.
    pub password: Option<Secret>,
    /// Limits.
    pub limits: Limits,
}

impl SourceOptions {
    /// What holds when the user says nothing.
    pub fn defaults(kind: SourceKind) -> Self {
        Self {
            chunking: match kind {
                SourceKind::Text | SourceKind::Jsonl | SourceKind::Blog => Chunking::Recursive,
                SourceKind::Markdown => Chunking::Heading,
                _ => Chunking::Structure,
            },
            chunk_tokens: 200,
            overlap: kind.usual_overlap(),
            truncate: false,
            embed_template: EmbedTemplate::default(),
            text_search_config: "english".to_owned(),
            glob: Vec::new(),
            ignore: Vec::new(),
            fields: FieldMap::default(),
            reference: None,
            expect_commit: None,
            password: None,
            limits: Limits::default(),
        }
    }

    /// Parses and checks the user's options for a source of `kind`, wherever it is.
    pub fn parse(kind: SourceKind, options: &Value) -> Result<Self> {
        Self::parse_at(kind, Location::Any, options)
    }

    /// Parses and checks the user's options for a source of `kind` at `location`.
    ///
    /// Fails with [`Kind::InvalidArgument`] for an unknown key or a bad value and with [`Kind::Unsupported`] for an
    /// option that exists by name only.
    pub fn parse_at(kind: SourceKind, location: Location<'_>, options: &Value) -> Result<Self> {
        const KNOWN: &[&str] = &[
            "chunking",
            "chunk_tokens",
            "overlap",
            "truncate",
            "embed_template",
            "text_search_config",
            "glob",
            "ignore",
            "fields",
            "ref",
            "expect_commit",
            "password",
            "limits",
        ];
        const PLANNED: &[&str] = &["keep_raw", "keep_versions", "roles"];
        let mut parsed = Self::defaults(kind);
        let object = match options {
            Value::Null => return Ok(parsed),
            Value::Object(object) => object,
            other => return Err(Error::invalid(format!("options must be a JSON object, not {other}"))),
        };
        for (key, value) in object {
            check("option", key, kind, location)?;
            match key.as_str() {
                "chunking" => parsed.chunking = parse_chunking(string(key, value)?)?,
                "chunk_tokens" => parsed.chunk_tokens = number(key, value, 16, 8192)? as u32,
                "overlap" => parsed.overlap = number(key, value, 0, 4096)? as u32,
                "truncate" => parsed.truncate = boolean(key, value)?,
                "embed_template" => parsed.embed_template = EmbedTemplate::from_str(string(key, value)?)?,
                "text_search_config" => string(key, value)?.clone_into(&mut parsed.text_search_config),
                "glob" => parsed.glob = strings(key, value)?,
                "ignore" => parsed.ignore = strings(key, value)?,
                "fields" => parsed.fields = parse_fields(value)?,
                "ref" => parsed.reference = Some(reference(string(key, value)?)?),
                "expect_commit" => parsed.expect_commit = Some(commit(string(key, value)?)?),
                "password" => parsed.password = Some(parse_password(value)?),
                "limits" => parsed.limits = Limits::parse(kind, location, value)?,
                planned if PLANNED.contains(&planned) => {
                    return Err(Error::unsupported(format!("option \"{planned}\" is not supported yet")));
                }
                unknown => return Err(unknown_key("option", unknown, KNOWN)),
            }
        }
        parsed.glob.iter().try_for_each(|glob| file_glob(glob).map(|_| ()))?;
        let overlaps = parsed.chunking == Chunking::Recursive
            || (parsed.chunking == Chunking::Structure && kind.has_parts_of_prose());
        if !object.contains_key("overlap") {
            // What nobody asked for gives way to what somebody did.
            parsed.overlap = if overlaps { parsed.overlap.min((parsed.chunk_tokens - 1) / 4) } else { 0 };
        }
        if parsed.overlap * 2 >= parsed.chunk_tokens {
            return Err(Error::invalid(format!(
                "overlap {} is not below half of chunk_tokens {}",
                parsed.overlap, parsed.chunk_tokens
            )));
        }
        if parsed.overlap > 0 && !overlaps {
            return Err(Error::invalid("overlap needs chunking \"recursive\"")
                .with_hint("Add \"chunking\": \"recursive\" to the options, or leave overlap out."));
        }
        if parsed.truncate && parsed.chunking != Chunking::None {
            return Err(Error::invalid("truncate needs chunking \"none\"")
                .with_detail("Any other chunking cuts text so that it fits the window of the model.")
                .with_hint("Add \"chunking\": \"none\" to the options, or leave truncate out."));
        }
        if parsed.chunking == Chunking::None && object.contains_key("chunk_tokens") {
            return Err(Error::invalid("chunk_tokens does not apply to chunking \"none\""));
        }
        // What else a thread, a work item or a recording holds has names of its own.
        let only_key = FieldMap { external_id: parsed.fields.external_id.clone(), ..FieldMap::default() };
        if kind != SourceKind::Jsonl && parsed.fields != only_key {
            let message = format!("only \"external_id\" of the option \"fields\" applies to kind \"{}\"", kind.name());
            return Err(Error::invalid(message));
        }
        Ok(parsed)
    }
}

/// A name that a branch, tag or commit can have. What git itself says of it comes when the repository is open.
fn reference(name: &str) -> Result<String> {
    let bad = name.is_empty() || name.starts_with('-') || name.chars().any(|c| c.is_whitespace() || c.is_control());
    match bad {
        true => Err(Error::invalid(format!("\"ref\" names no branch, tag or commit: \"{name}\""))),
        false => Ok(name.to_owned()),
    }
}

fn commit(hash: &str) -> Result<String> {
    let hash = hash.to_ascii_lowercase();
    if (7..=64).contains(&hash.len()) && hash.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(hash);
    }
    Err(Error::invalid(format!("\"expect_commit\" must be 7 to 64 hexadecimal digits, not \"{hash}\"")))
}

fn parse_chunking(name: &str) -> Result<Chunking> {
    match name {
        "structure" => Ok(Chunking::Structure),
        "heading" => Ok(Chunking::Heading),
        "recursive" => Ok(Chunking::Recursive),
        "none" => Ok(Chunking::None),
        other => Err(unknown_key("chunking", other, &["structure", "heading", "recursive", "none"])),
    }
}

fn parse_fields(value: &Value) -> Result<FieldMap> {
    const KNOWN: &[&str] = &["external_id", "title", "text", "language", "published_at"];
    let Value::Object(object) = value else {
        return Err(Error::invalid(format!("option \"fields\" must be a JSON object, not {value}")));
    };
    let mut fields = FieldMap::default();
    for (key, value) in object {
        let name = Some(string(key, value)?.to_owned());
        match key.as_str() {
            "external_id" => fields.external_id = name,
            "title" => fields.title = name,
            "text" => fields.text = name,
            "language" => fields.language = name,
            "published_at" => fields.published_at = name,
            unknown => return Err(unknown_key("field", unknown, KNOWN)),
        }
    }
    Ok(fields)
}

/// The message never says what was given.
fn parse_password(value: &Value) -> Result<Secret> {
    let text = value.as_str().ok_or_else(|| Error::invalid("\"password\" must be a string"))?;
    Ok(Secret::from(text.to_owned()))
}

fn string<'a>(key: &str, value: &'a Value) -> Result<&'a str> {
    value.as_str().ok_or_else(|| Error::invalid(format!("\"{key}\" must be a string, not {value}")))
}

fn boolean(key: &str, value: &Value) -> Result<bool> {
    value.as_bool().ok_or_else(|| Error::invalid(format!("\"{key}\" must be true or false, not {value}")))
}

pub(super) fn number(key: &str, value: &Value, min: u64, max: u64) -> Result<u64> {
    value
        .as_u64()
        .filter(|n| (min..=max).contains(n))
        .ok_or_else(|| Error::invalid(format!("\"{key}\" must be a whole number from {min} to {max}, not {value}")))
}

fn strings(key: &str, value: &Value) -> Result<Vec<String>> {
    match value {
        Value::String(one) => Ok(vec![one.clone()]),
        Value::Array(many) => many.iter().map(|v| string(key, v).map(str::to_owned)).collect(),
        other => Err(Error::invalid(format!("\"{key}\" must be a string or an array of strings, not {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_hold_without_options() {
        let o = SourceOptions::parse(SourceKind::Markdown, &Value::Null).expect("defaults");
        assert_eq!((o.chunking, o.chunk_tokens, o.truncate), (Chunking::Heading, 200, false));
    }

    #[test]
    fn every_option_is_checked() {
        for (options, message) in [
            (json!({"chunk_token": 3}), "unknown option \"chunk_token\""),
            (json!({"chunk_tokens": 3}), "\"chunk_tokens\" must be a whole number from 16 to 8192, not 3"),
            (json!({"glob": "a["}), "option \"glob\" has the bad pattern \"a[\""),
            (json!({"chunking": "nun"}), "unknown chunking \"nun\""),
            (json!({"overlap": 10}), "overlap needs chunking \"recursive\""),
            (json!({"overlap": 100, "chunking": "recursive"}), "overlap 100 is not below half of chunk_tokens 200"),
            (json!({"truncate": true}), "truncate needs chunking \"none\""),
            (json!({"chunking": "none", "chunk_tokens": 50}), "chunk_tokens does not apply to chunking \"none\""),
            (json!({"truncate": "yes"}), "\"truncate\" must be true or false, not \"yes\""),
            (json!({"fields": {"text": "t"}}), "option \"fields\" does not apply to kind \"markdown\""),
            (json!({"password": "x"}), "option \"password\" does not apply to kind \"markdown\""),
            (json!({"limits": {"max_ratio": 5}}), "limit \"max_ratio\" does not apply to kind \"markdown\""),
            (json!({"keep_raw": true}), "option \"keep_raw\" is not supported yet"),
            (json!([]), "options must be a JSON object, not []"),
        ] {
            let error = SourceOptions::parse(SourceKind::Markdown, &options).expect_err(message);
            assert_eq!(error.message, message);
        }
    }

    #[test]
    fn limits_of_archives_are_checked() {
        let parse = |limits: Value| SourceOptions::parse(SourceKind::Zip, &json!({"limits": limits}));
        let given = json!({"max_entries": 1, "max_total_bytes": 2, "max_ratio": 3, "max_depth": 0});
        let l = parse(given).expect("valid").limits;
        assert_eq!((l.max_entries, l.max_total_bytes, l.max_ratio, l.max_depth), (1, 2, 3, 0));
        for (limits, message) in [
            (json!({"max_entries": 0}), "\"max_entries\" must be a whole number from 1 to 1000000, not 0"),
            (
                json!({"max_total_bytes": "1"}),
                "\"max_total_bytes\" must be a whole number from 1 to 1099511627776, not \"1\"",
            ),
            (json!({"max_ratio": 1.5}), "\"max_ratio\" must be a whole number from 1 to 1000000, not 1.5"),
            (json!({"max_depth": 9}), "\"max_depth\" must be a whole number from 0 to 8, not 9"),
            (json!({"max_depht": 1}), "unknown limit \"max_depht\""),
        ] {
            assert_eq!(parse(limits).expect_err(message).message, message);
        }
        let open =
            SourceOptions::parse(SourceKind::Zip, &json!({"password": "secret", "glob": "*.md"})).expect("valid");
        let password = open.password.as_ref().map(Secret::reveal);
        assert_eq!((password, open.chunking), (Some("secret"), Chunking::Structure));
    }

    #[test]
    fn limits_of_clones_are_for_repositories() {
        let limits = json!({"limits": {"max_download_bytes": 1000, "max_download_seconds": 2, "max_pages": 3}});
        let parsed = SourceOptions::parse(SourceKind::Git, &limits).expect("valid").limits;
        assert_eq!((parsed.max_download_bytes, parsed.max_download_seconds, parsed.max_pages), (1000, 2, 3));
        let defaults = SourceOptions::defaults(SourceKind::Git).limits;
        assert_eq!((defaults.max_download_bytes, defaults.max_download_seconds), (1 << 30, 240));
        for kind in [SourceKind::Zip, SourceKind::Pdf] {
            let error = SourceOptions::parse(kind, &limits).expect_err("another kind").message;
            assert_eq!(error, format!("limit \"max_download_bytes\" does not apply to kind \"{}\"", kind.name()));
        }
        let unknown = SourceOptions::parse(SourceKind::Git, &json!({"limits": {"max_download_byte": 1}}));
        assert!(unknown.expect_err("unknown").hint.is_some_and(|hint| hint.contains("max_download_bytes")));
    }

    #[test]
    fn an_overlap_is_usual_for_some_kinds_and_possible_for_prose() {
        let overlap = |kind, options| SourceOptions::parse(kind, &options).map(|o| o.overlap).map_err(|e| e.message);
        assert_eq!(overlap(SourceKind::Blog, Value::Null), Ok(40));
        assert_eq!(overlap(SourceKind::Transcript, Value::Null), Ok(30));
        assert_eq!(overlap(SourceKind::Transcript, json!({"chunk_tokens": 16})), Ok(3));
        assert_eq!(overlap(SourceKind::Transcript, json!({"chunking": "none"})), Ok(0));
        assert_eq!(overlap(SourceKind::Transcript, json!({"overlap": 0})), Ok(0));
        assert_eq!(overlap(SourceKind::Forum, json!({"overlap": 10})), Ok(10));
        assert!(overlap(SourceKind::Config, json!({"overlap": 10})).is_err());
    }

    #[test]
    fn only_the_key_of_a_thread_can_be_named() {
        let parse = |kind, options| SourceOptions::parse(kind, &options).map(drop).map_err(|e| e.message);
        for kind in [SourceKind::Forum, SourceKind::Issues, SourceKind::Transcript, SourceKind::Jsonl] {
            assert_eq!(parse(kind, json!({"fields": {"external_id": "tid"}})), Ok(()));
        }
        let message = "only \"external_id\" of the option \"fields\" applies to kind \"issues\"";
        assert_eq!(parse(SourceKind::Issues, json!({"fields": {"text": "t"}})), Err(message.to_owned()));
        let message = "option \"fields\" does not apply to kind \"config\"";
        assert_eq!(parse(SourceKind::Config, json!({"fields": {"external_id": "t"}})), Err(message.to_owned()));
    }

    #[test]
    fn what_means_nothing_at_a_location_is_refused() {
        let parse = |kind, location, options: &Value| SourceOptions::parse_at(kind, location, options).map(drop);
        let (glob, ignore) = (json!({"glob": "*.md"}), json!({"ignore": "drafts/"}));
        let download = json!({"limits": {"max_download_seconds": 5}});
        for (kind, location, options, message, detail) in [
            (SourceKind::Blog, "https://a.example/feed", &glob, "option \"glob\"", "A feed holds posts and no files."),
            (SourceKind::Blog, "/srv/feed.xml", &ignore, "option \"ignore\"", "A feed holds posts and no files."),
            (
                SourceKind::Html,
                "http://a.example/",
                &ignore,
                "option \"ignore\"",
                "At a URL is one page and no folder.",
            ),
            (
                SourceKind::Markdown,
                "https://a.example/a.md",
                &glob,
                "option \"glob\"",
                "At a URL is one page and no folder.",
            ),
            (
                SourceKind::Git,
                "/srv/repo",
                &download,
                "limit \"max_download_seconds\"",
                "Only what is at a URL is cloned.",
            ),
        ] {
            let error = parse(kind, Location::At(location), options).expect_err(location);
            assert_eq!(error.message, format!("{message} does not apply to \"{location}\""));
            assert_eq!(error.detail.as_deref(), Some(detail));
            assert!(error.hint.is_some());
            assert_eq!(parse(kind, Location::Any, options), Ok(()), "another location of the kind");
        }
        for (kind, location, options) in [
            (SourceKind::Git, "https://a.example/r.git", &glob),
            (SourceKind::Git, "https://a.example/r.git", &download),
            (SourceKind::Git, "/srv/repo", &ignore),
            (SourceKind::Blog, "/srv/posts", &glob),
            (SourceKind::Transcript, "/srv/talks", &ignore),
            (SourceKind::Zip, "/srv/docs.zip", &glob),
            (SourceKind::Html, "/srv/site", &glob),
        ] {
            assert_eq!(parse(kind, Location::At(location), options), Ok(()), "{location}");
        }
        for options in [glob, ignore, json!({"text_search_config": "simple"})] {
            let error = parse(SourceKind::Markdown, Location::Inline, &options).expect_err("inline").message;
            assert!(error.ends_with("does not apply to inline documents"), "{error}");
        }
        assert_eq!(parse(SourceKind::Markdown, Location::Inline, &json!({"chunk_tokens": 50})), Ok(()));
    }

    #[test]
    fn every_option_is_for_some_kinds_and_refused_by_the_others() {
        use SourceKind as K;
        let files = K::ALL.into_iter().filter(|k| !matches!(k, K::Jsonl | K::Forum | K::Issues)).collect::<Vec<_>>();
        for (key, value, kinds) in [
            ("glob", json!("*.md"), files.clone()),
            ("ignore", json!(["a"]), files),
            ("fields", json!({"external_id": "k"}), vec![K::Forum, K::Issues, K::Transcript, K::Jsonl]),
            ("ref", json!("main"), vec![K::Git]),
            ("expect_commit", json!("0123456"), vec![K::Git]),
            ("password", json!("x"), vec![K::Pdf, K::Zip, K::Git]),
            ("chunk_tokens", json!(50), K::ALL.to_vec()),
        ] {
            for kind in K::ALL {
                let parsed = SourceOptions::parse(kind, &json!({ key: value })).map(drop).map_err(|e| e.message);
                let expected = match kinds.contains(&kind) {
                    true => Ok(()),
                    false => Err(format!("option \"{key}\" does not apply to kind \"{}\"", kind.name())),
                };
                assert_eq!(parsed, expected);
            }
        }
    }

    #[test]
    fn a_password_is_for_pdf_and_shown_nowhere() {
        let options = json!({"password": "hunter2", "limits": {"max_pages": 3}});
        let parsed = SourceOptions::parse(SourceKind::Pdf, &options).expect("options");
        assert_eq!(parsed.limits.max_pages, 3);
        assert_eq!(parsed.password.as_ref().map(Secret::reveal), Some("hunter2"));
        assert!(!format!("{parsed:?}").contains("hunter2"));
        // A PDF may lie in an archive or a repository, too.
        for kind in [SourceKind::Zip, SourceKind::Git] {
            let parsed = SourceOptions::parse(kind, &options).expect("options");
            assert_eq!(parsed.password.as_ref().map(Secret::reveal), Some("hunter2"));
        }
        let error = SourceOptions::parse(SourceKind::Pdf, &json!({"password": 1234})).expect_err("no string");
        assert_eq!(error.message, "\"password\" must be a string");
        for options in [json!({"password": "x"}), json!({"limits": {"max_pages": 3}})] {
            let error = SourceOptions::parse(SourceKind::Text, &options).expect_err("another kind");
            assert!(error.message.ends_with("does not apply to kind \"text\""), "{}", error.message);
        }
    }
}
