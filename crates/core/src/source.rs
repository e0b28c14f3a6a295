// SPDX-License-Identifier: PostgreSQL

//! What a source is: its kind, and the options that steer its ingestion, validated once.
//!
//! The backend parses the user's jsonb into [`SourceOptions`] when a source is added, so that a wrong option fails at
//! `rag.add_source` and not in the middle of the night in a sync. The engine receives the same struct and may rely on
//! it. Nothing here reads a file.

mod kind;
mod limits;
mod options;

pub use kind::SourceKind;
pub use limits::Limits;
pub use options::{Chunking, FieldMap, Secret, SourceOptions};

use crate::document::Version;
use crate::error::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::str::FromStr;

/// The kinds that can be ingested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// Plain text: a file or a folder.
    Text,
    /// Markdown: a file or a folder.
    Markdown,
    /// One JSON object per line: a file.
    Jsonl,
    /// Pages, all of each: a file or a folder.
    Html,
    /// Pages, the article of each: a file or a folder.
    Article,
    /// Word documents: a file or a folder.
    Docx,
    /// EPUB books: a file or a folder.
    Epub,
}

/// Kinds that have a name but no reader yet.
const PLANNED_KINDS: &[&str] =
    &["code", "config", "pdf", "zip", "git", "forum", "issues", "blog", "transcript", "table"];

impl SourceKind {
    /// All kinds that can be ingested.
    pub const ALL: [SourceKind; 7] = [
        SourceKind::Text,
        SourceKind::Markdown,
        SourceKind::Jsonl,
        SourceKind::Html,
        SourceKind::Article,
        SourceKind::Docx,
        SourceKind::Epub,
    ];

    /// The name used in SQL.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Text => "text",
            SourceKind::Markdown => "markdown",
            SourceKind::Jsonl => "jsonl",
            SourceKind::Html => "html",
            SourceKind::Article => "article",
            SourceKind::Docx => "docx",
            SourceKind::Epub => "epub",
        }
    }
}

impl SourceKind {
    /// The kind of one document that is given inline.
    pub fn of_document(name: &str) -> Result<Self> {
        match name.parse() {
            Ok(Self::Jsonl) => Err(Error::unsupported("kind \"jsonl\" cannot be ingested inline")
                .with_hint("Call rag.ingest once for each record, or add the file as a source.")),
            Ok(kind) => Ok(kind),
            Err(_) => Err(Self::unknown(
                "kind",
                name,
                &[Self::Text, Self::Markdown, Self::Html, Self::Article, Self::Docx, Self::Epub],
            )),
        }
    }

    fn unknown(what: &str, name: &str, kinds: &[Self]) -> Error {
        let known: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
        if PLANNED_KINDS.contains(&name) {
            return Error::unsupported(format!("{what} \"{name}\" is not supported yet"))
                .with_hint(format!("Supported: {}.", known.join(", ")));
        }
        unknown_key(what, name, &known)
    }
}

impl FromStr for SourceKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let kind = Self::ALL.into_iter().find(|k| k.name() == name);
        kind.ok_or_else(|| Self::unknown("source kind", name, &Self::ALL))
    }
}

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

/// Limits of one parse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of one document as acquired.
    pub max_document_bytes: u64,
    /// Documents of one source.
    pub max_documents: u64,
    /// Wall-clock seconds for one document.
    pub max_seconds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_document_bytes: 64 << 20, max_documents: 5_000_000, max_seconds: 60 }
    }
}

/// Validated options of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceOptions {
    /// How text is cut.
    pub chunking: Chunking,
    /// Target size of a chunk in tokens of the collection's model, 16 to 8192; never above the model's window.
    pub chunk_tokens: u32,
    /// Tokens repeated from the end of the previous chunk (recursive chunking), below half of `chunk_tokens`.
    pub overlap: u32,
    /// Cut text beyond the window (counted and reported) instead of chunking it.
    pub truncate: bool,
    /// What text is embedded.
    pub embed_template: EmbedTemplate,
    /// Text search configuration of the BM25 leg, as typed; the backend resolves it.
    pub text_search_config: String,
    /// Globs of files to take within a folder; empty: the kind's own.
    pub glob: Vec<String>,
    /// Globs of files to leave out, on top of `.gitignore` and hidden files.
    pub ignore: Vec<String>,
    /// Fields of a JSON record.
    pub fields: FieldMap,
    /// Limits.
    pub limits: Limits,
}

impl SourceOptions {
    /// What holds when the user says nothing.
    pub fn defaults(kind: SourceKind) -> Self {
        Self {
            chunking: match kind {
                SourceKind::Text => Chunking::Recursive,
                SourceKind::Markdown => Chunking::Heading,
                SourceKind::Jsonl => Chunking::Recursive,
                SourceKind::Html | SourceKind::Article | SourceKind::Docx | SourceKind::Epub => Chunking::Structure,
            },
            chunk_tokens: 200,
            overlap: 0,
            truncate: false,
            embed_template: EmbedTemplate::default(),
            text_search_config: "english".to_owned(),
            glob: Vec::new(),
            ignore: Vec::new(),
            fields: FieldMap::default(),
            limits: Limits::default(),
        }
    }

    /// Parses and checks the user's options for a source of `kind`.
    ///
    /// Fails with [`Kind::InvalidArgument`] for an unknown key or a bad value and with [`Kind::Unsupported`] for an
    /// option that exists by name only.
    pub fn parse(kind: SourceKind, options: &Value) -> Result<Self> {
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
            "limits",
        ];
        const PLANNED: &[&str] = &["keep_raw", "keep_versions", "roles", "password"];
        let mut parsed = Self::defaults(kind);
        let object = match options {
            Value::Null => return Ok(parsed),
            Value::Object(object) => object,
            other => return Err(Error::invalid(format!("options must be a JSON object, not {other}"))),
        };
        for (key, value) in object {
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
                "limits" => parsed.limits = parse_limits(value)?,
                planned if PLANNED.contains(&planned) => {
                    return Err(Error::unsupported(format!("option \"{planned}\" is not supported yet")));
                }
                unknown => return Err(unknown_key("option", unknown, KNOWN)),
            }
        }
        parsed.glob.iter().try_for_each(|glob| file_glob(glob).map(|_| ()))?;
        if parsed.overlap * 2 >= parsed.chunk_tokens {
            return Err(Error::invalid(format!(
                "overlap {} is not below half of chunk_tokens {}",
                parsed.overlap, parsed.chunk_tokens
            )));
        }
        if parsed.overlap > 0 && parsed.chunking != Chunking::Recursive {
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
        if object.contains_key("fields") && kind != SourceKind::Jsonl {
            return Err(Error::invalid(format!("option \"fields\" does not apply to kind \"{}\"", kind.name())));
        }
        if kind == SourceKind::Jsonl && (!parsed.glob.is_empty() || !parsed.ignore.is_empty()) {
            return Err(Error::invalid("options \"glob\" and \"ignore\" do not apply to kind \"jsonl\""));
        }
        Ok(parsed)
    }
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

fn parse_limits(value: &Value) -> Result<Limits> {
    const KNOWN: &[&str] = &["max_document_bytes", "max_documents", "max_seconds"];
    let Value::Object(object) = value else {
        return Err(Error::invalid(format!("option \"limits\" must be a JSON object, not {value}")));
    };
    let mut limits = Limits::default();
    for (key, value) in object {
        match key.as_str() {
            // The protocol's frame is the hard upper bound of a document.
            "max_document_bytes" => limits.max_document_bytes = number(key, value, 1, 256 << 20)?,
            "max_documents" => limits.max_documents = number(key, value, 1, 100_000_000)?,
            "max_seconds" => limits.max_seconds = number(key, value, 1, 3600)? as u32,
            unknown => return Err(unknown_key("limit", unknown, KNOWN)),
        }
    }
    Ok(limits)
}

fn string<'a>(key: &str, value: &'a Value) -> Result<&'a str> {
    value.as_str().ok_or_else(|| Error::invalid(format!("\"{key}\" must be a string, not {value}")))
}

fn boolean(key: &str, value: &Value) -> Result<bool> {
    value.as_bool().ok_or_else(|| Error::invalid(format!("\"{key}\" must be true or false, not {value}")))
}

fn number(key: &str, value: &Value, min: u64, max: u64) -> Result<u64> {
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

/// Where the text of one document is, within a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A whole file, relative to the source's location (empty: the location itself is the file).
    File {
        /// Relative path with `/` separators.
        path: String,
    },
    /// A byte range of the source's file.
    Record {
        /// First byte of the line, element or row.
        offset: u64,
        /// Bytes of it without its end.
        length: u64,
    },
    /// A file of a commit.
    Blob {
        /// Path in the repository.
        path: String,
        /// Hash of the object.
        blob: String,
        /// Hash of the commit.
        commit: String,
    },
    /// A member of an archive.
    Member {
        /// Path of the archive, relative to the source's location (empty: the location itself is the archive).
        archive: String,
        /// Where it is: its place among the entries of the archive, and before that, outermost first, those of the
        /// archives inside of one another that lead to it.
        chain: Vec<u64>,
    },
    /// A page.
    Url {
        /// Where it was asked for.
        url: String,
    },
}

/// The bytes of an item, and what is known of where they came from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// The bytes.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Where they came from.
    pub origin: Origin,
}

/// Where the bytes of a document came from. It is said by who acquired them and not by who parses them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Path within the source, for files.
    pub path: Option<String>,
    /// Which version of the source they are of.
    pub version: Version,
    /// Content type, with its charset, as a server said it.
    pub content_type: Option<String>,
    /// URL against which links are resolved.
    pub base: Option<String>,
    /// What else the source says.
    pub metadata: serde_json::Map<String, Value>,
}

/// What the catalog has of a page that was fetched before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// ETag it was served with.
    pub etag: Option<String>,
    /// Time of the last change it was served with.
    pub last_modified: Option<String>,
    /// Hash of its bytes.
    pub content_sha256: crate::provenance::ContentHash,
    /// Its bytes.
    pub size: u64,
}

/// One document that a source holds, found by listing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Identity within the source.
    pub uri: String,
    /// Hash of the bytes as acquired.
    pub content_sha256: crate::provenance::ContentHash,
    /// Bytes as acquired.
    pub size: u64,
    /// Where to read it.
    pub place: Place,
}

/// A document that could not be listed, read or parsed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Identity within the source.
    pub uri: String,
    /// Why.
    pub error: Error,
}

/// A glob of the option `glob`. Without a slash it matches a file's name at any depth, with one the path from the
/// location; case does not matter.
pub fn file_glob(glob: &str) -> Result<globset::Glob> {
    let anywhere = format!("**/{glob}");
    let pattern = if glob.contains('/') { glob.trim_start_matches("./").trim_start_matches('/') } else { &anywhere };
    let built = globset::GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
    built.map_err(|e| {
        Error::invalid(format!("option \"glob\" has the bad pattern \"{glob}\""))
            .with_detail(format!("It says: {}.", e.kind()))
    })
}

/// What the engine needs to know to read a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// Kind.
    pub kind: SourceKind,
    /// Absolute path of a file or folder, or a URL.
    pub location: String,
    /// Options.
    pub options: SourceOptions,
    /// Absolute roots that locations are confined to; empty: nothing may be read.
    pub allowed_paths: Vec<String>,
    /// Hosts that may be talked to; empty: none.
    pub allowed_hosts: Vec<String>,
    /// What is known of a page that was fetched before.
    pub seen: Option<Seen>,
}

/// Whether a location is a URL and not a path.
pub fn is_url(location: &str) -> bool {
    location.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

/// The error for a location outside of every allowed root.
pub fn not_allowed(location: &str) -> Error {
    Error::new(Kind::Forbidden, format!("location \"{location}\" is not beneath an allowed path")).with_hint(
        "A superuser can add its folder to the list: ALTER SYSTEM SET pg_rag.allowed_paths = '/others,/folder'; SELECT pg_reload_conf();",
    )
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
        assert_eq!((open.password.as_deref(), open.chunking), (Some("secret"), Chunking::Structure));
    }

    #[test]
    fn a_planned_kind_is_unsupported_and_a_strange_one_invalid() {
        assert_eq!(SourceKind::from_str("pdf").map_err(|e| e.kind), Err(Kind::Unsupported));
        assert_eq!(SourceKind::from_str("markdwon").map_err(|e| e.kind), Err(Kind::InvalidArgument));
    }

    #[test]
    fn a_document_is_of_another_kind_than_a_file_of_many() {
        assert_eq!(SourceKind::of_document("text"), Ok(SourceKind::Text));
        let strange = SourceKind::of_document("docx").expect_err("strange");
        assert_eq!(strange.hint.as_deref(), Some("Known: text, markdown."));
        assert_eq!(SourceKind::of_document("jsonl").map_err(|e| e.kind), Err(Kind::Unsupported));
        assert_eq!(SourceKind::of_document("zip").map_err(|e| e.kind), Err(Kind::Unsupported));
        assert_eq!(SourceKind::of_document("pdf").map_err(|e| e.kind), Err(Kind::Unsupported));
    }
}
