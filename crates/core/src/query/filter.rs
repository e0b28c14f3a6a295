// SPDX-License-Identifier: PostgreSQL

//! The filter: which chunks may be returned at all.
//!
//! A JSON object: AND across keys, OR within a list, `{"gte": …}` for ranges, globs for paths:
//! `{"source": ["docs"], "language": ["rust", "go"], "line": {"gte": 3}, "metadata.team": "search"}`.
//! This module checks the grammar and the types; it never makes SQL text of a value.

use crate::error::{Error, Kind, Result, unknown_key};
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// A column that a filter may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Source name.
    Source,
    /// Kind of source.
    SourceKind,
    /// Project of the source.
    Project,
    /// Language of the chunk.
    Language,
    /// Repository of the document.
    Repository,
    /// Path of the document, matched as a glob.
    Path,
    /// Branch or tag.
    Ref,
    /// Commit.
    Commit,
    /// Content role.
    Role,
    /// Speaker.
    Speaker,
    /// URI of the document, matched as a glob.
    Uri,
    /// Kind of symbol.
    SymbolKind,
    /// Page, a range.
    Page,
    /// Line, a range.
    Line,
    /// Time of publication, a range.
    PublishedAt,
}

const FIELDS: &[(&str, Field)] = &[
    ("source", Field::Source),
    ("source_kind", Field::SourceKind),
    ("source_type", Field::SourceKind),
    ("project", Field::Project),
    ("language", Field::Language),
    ("repository", Field::Repository),
    ("path", Field::Path),
    ("ref", Field::Ref),
    ("commit", Field::Commit),
    ("role", Field::Role),
    ("content_role", Field::Role),
    ("speaker", Field::Speaker),
    ("uri", Field::Uri),
    ("symbol_kind", Field::SymbolKind),
    ("page", Field::Page),
    ("line", Field::Line),
    ("published_at", Field::PublishedAt),
];

/// How two bounds of a range are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
}

/// One condition; all of a filter's must hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// The field equals one of the values (for `Path` and `Uri`: matches one of the globs).
    OneOf(Field, Vec<String>),
    /// The whole number lies within the bounds.
    Number(Field, Vec<(Bound, i64)>),
    /// The time lies within the bounds; RFC 3339 text.
    Time(Field, Vec<(Bound, String)>),
    /// The chunk's or document's metadata at the key equals one of the values.
    Metadata(String, Vec<Value>),
}

/// A checked filter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Conditions, all of which must hold.
    pub clauses: Vec<Clause>,
}

/// Keys of a filter.
const MAX_KEYS: usize = 1000;

/// Values of one key.
const MAX_VALUES: usize = 100_000;

/// Bytes of a glob; a regular expression is made of it.
const MAX_GLOB: usize = 1000;

fn too_long(what: &str, given: usize, max: usize) -> Error {
    Error::new(Kind::LimitExceeded, format!("filter has {given} {what}, and {max} at most are allowed"))
}

impl Filter {
    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// Parses and checks a filter.
    pub fn parse(value: &Value) -> Result<Self> {
        let object = match value {
            Value::Null => return Ok(Self::default()),
            Value::Object(object) => object,
            other => return Err(Error::invalid(format!("filter must be a JSON object, not {other}"))),
        };
        if object.len() > MAX_KEYS {
            return Err(too_long("keys", object.len(), MAX_KEYS));
        }
        let clauses = object.iter().map(|(key, value)| parse_clause(key, value)).collect::<Result<_>>()?;
        Ok(Self { clauses })
    }
}

/// The regular expression that matches what a glob matches, whole. `*` and `?` stop at `/`, `**` does not, and `**/`
/// also matches nothing, so `**/a` finds `a`.
pub fn glob_to_regex(glob: &str) -> String {
    let mut out = String::from("^");
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        let (token, taken) = match c {
            '*' if rest.starts_with("**/") => ("(.*/)?", 3),
            '*' if rest.starts_with("**") => (".*", 2),
            '*' => ("[^/]*", 1),
            '?' => ("[^/]", 1),
            _ => {
                if !c.is_alphanumeric() && c != '/' && c != '_' && !c.is_whitespace() {
                    out.push('\\');
                }
                out.push(c);
                ("", c.len_utf8())
            }
        };
        out.push_str(token);
        rest = &rest[taken..];
    }
    out.push('$');
    out
}

fn parse_clause(key: &str, value: &Value) -> Result<Clause> {
    if let Some(path) = key.strip_prefix("metadata.") {
        if path.is_empty() {
            return Err(Error::invalid(format!("filter key \"{key}\" names no metadata key")));
        }
        let values = match value {
            Value::Array(many) => many.clone(),
            one => vec![one.clone()],
        };
        if values.len() > MAX_VALUES {
            return Err(too_long("values of one key", values.len(), MAX_VALUES));
        }
        return Ok(Clause::Metadata(path.to_owned(), values));
    }
    let field = FIELDS.iter().find(|(name, _)| *name == key).map(|(_, field)| *field).ok_or_else(|| {
        let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).chain(["metadata.<key>"]).collect();
        unknown_key("filter key", key, &known)
    })?;
    match field {
        Field::Page | Field::Line => Ok(Clause::Number(field, bounds(key, value, whole_number)?)),
        Field::PublishedAt => Ok(Clause::Time(field, bounds(key, value, timestamp)?)),
        _ => {
            let values: Vec<String> = one_or_many(key, value)?
                .into_iter()
                .map(|v| v.as_str().map(str::to_owned).ok_or_else(|| wrong(key, "a string", v)))
                .collect::<Result<_>>()?;
            if values.len() > MAX_VALUES {
                return Err(too_long("values of one key", values.len(), MAX_VALUES));
            }
            let globs = matches!(field, Field::Path | Field::Uri);
            if let Some(long) = values.iter().find(|v| globs && v.len() > MAX_GLOB) {
                return Err(too_long("bytes in a glob", long.len(), MAX_GLOB));
            }
            Ok(Clause::OneOf(field, values))
        }
    }
}

fn one_or_many<'a>(key: &str, value: &'a Value) -> Result<Vec<&'a Value>> {
    match value {
        Value::Array(many) => Ok(many.iter().collect()),
        Value::Object(_) | Value::Null => Err(wrong(key, "a value or a list of values", value)),
        one => Ok(vec![one]),
    }
}

/// A range is an object of bounds; a bare value means equality.
fn bounds<T: Clone>(key: &str, value: &Value, read: fn(&str, &Value) -> Result<T>) -> Result<Vec<(Bound, T)>> {
    let Value::Object(object) = value else {
        let exact = read(key, value)?;
        return Ok(vec![(Bound::Gte, exact.clone()), (Bound::Lte, exact)]);
    };
    object
        .iter()
        .map(|(name, value)| {
            let bound = match name.as_str() {
                "gt" => Bound::Gt,
                "gte" => Bound::Gte,
                "lt" => Bound::Lt,
                "lte" => Bound::Lte,
                other => return Err(unknown_key("bound", other, &["gt", "gte", "lt", "lte"])),
            };
            Ok((bound, read(key, value)?))
        })
        .collect()
}

fn whole_number(key: &str, value: &Value) -> Result<i64> {
    value.as_i64().filter(|n| i32::try_from(*n).is_ok()).ok_or_else(|| wrong(key, "a whole number", value))
}

fn timestamp(key: &str, value: &Value) -> Result<String> {
    let text = value.as_str().ok_or_else(|| wrong(key, "an RFC 3339 time", value))?;
    // A bare date means its first moment in UTC.
    let full = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    // PostgreSQL has no year 0, and takes no offset from UTC beyond 15 hours: the moment is the same in UTC.
    let time = OffsetDateTime::parse(&full, &Rfc3339).ok().map(|time| time.to_offset(UtcOffset::UTC));
    let time = time.filter(|time| time.year() > 0).and_then(|time| time.format(&Rfc3339).ok());
    time.ok_or_else(|| wrong(key, "an RFC 3339 time", value))
}

fn wrong(key: &str, wanted: &str, value: &Value) -> Error {
    Error::invalid(format!("filter key \"{key}\" needs {wanted}, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_grammar_of_the_documentation_is_understood() {
        let filter = Filter::parse(&json!({
            "source": ["docs"], "language": "rust", "page": {"gte": 3}, "path": "src/**",
            "metadata.team": ["a", 1], "published_at": {"lt": "2026-01-01"}
        }))
        .expect("valid");
        assert_eq!(filter.clauses.len(), 6);
        assert!(filter.clauses.contains(&Clause::Number(Field::Page, vec![(Bound::Gte, 3)])));
        assert!(filter.clauses.contains(&Clause::Metadata("team".into(), vec![json!("a"), json!(1)])));
        let time = Clause::Time(Field::PublishedAt, vec![(Bound::Lt, "2026-01-01T00:00:00Z".into())]);
        assert!(filter.clauses.contains(&time));
    }

    #[test]
    fn metadata_may_be_any_json() {
        for value in [json!(null), json!({"a": 1}), json!(false), json!(1e40)] {
            let filter = Filter::parse(&json!({"metadata.k": value})).expect("valid");
            assert_eq!(filter.clauses, [Clause::Metadata("k".into(), vec![value])]);
        }
    }

    #[test]
    fn globs_become_regular_expressions() {
        assert_eq!(glob_to_regex("src/**/*.rs"), "^src/(.*/)?[^/]*\\.rs$");
        assert_eq!(glob_to_regex("a+(b)|c"), "^a\\+\\(b\\)\\|c$");
        assert_eq!(glob_to_regex("docs/**"), "^docs/.*$");
    }

    #[test]
    fn aliases_mean_the_same() {
        let of = |v| Filter::parse(&v).expect("valid");
        assert_eq!(of(json!({"source_type": "git"})), of(json!({"source_kind": "git"})));
        assert_eq!(of(json!({"content_role": "test"})), of(json!({"role": "test"})));
    }

    #[test]
    fn mistakes_are_named() {
        for (filter, message) in [
            (json!({"sorce": "a"}), "unknown filter key \"sorce\""),
            (json!({"source": 3}), "filter key \"source\" needs a string, not 3"),
            (json!({"page": "three"}), "filter key \"page\" needs a whole number, not \"three\""),
            (json!({"page": {"min": 3}}), "unknown bound \"min\""),
            (
                json!({"published_at": "0000-01-01"}),
                "filter key \"published_at\" needs an RFC 3339 time, not \"0000-01-01\"",
            ),
            (json!({"published_at": "soon"}), "filter key \"published_at\" needs an RFC 3339 time, not \"soon\""),
            (json!({"metadata.": 1}), "filter key \"metadata.\" names no metadata key"),
            (json!("docs"), "filter must be a JSON object, not \"docs\""),
        ] {
            assert_eq!(Filter::parse(&filter).expect_err(message).message, message);
        }
    }
}
