// SPDX-License-Identifier: PostgreSQL

//! The filter: which chunks may be returned at all.
//!
//! A JSON object: AND across keys, OR within a list, an object of operators for anything else, globs for paths:
//! `{"source": ["docs"], "language": {"not": ["rust", "go"]}, "line": {"gte": 3}, "uri": {"prefix": "guide/"},
//! "metadata.team": {"exists": true}}`. Key `not` holds a filter that must not pass.
//! This module checks the grammar and the types; it never makes SQL text of a value. What is not known of a passage equals
//! nothing, is in no range, and therefore passes every `not`.

use crate::error::{Error, Kind, Result, unknown_key};
use serde_json::{Map, Value};
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

impl Field {
    fn is_text(self) -> bool {
        !matches!(self, Field::Page | Field::Line | Field::PublishedAt)
    }
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
    /// The field begins with one of the values.
    Prefix(Field, Vec<String>),
    /// The field has a value, or has none.
    Exists(Field, bool),
    /// The chunk's or document's metadata at the key equals one of the values, or contains it.
    Metadata(String, Vec<Value>),
    /// The metadata at the key is a string that begins with one of the values.
    MetadataPrefix(String, Vec<String>),
    /// The metadata at the key is a number, or a string, within the bounds, which are of one type.
    MetadataRange(String, Vec<(Bound, Scalar)>),
    /// The metadata at the key has a value, or has none; JSON's null is none.
    MetadataExists(String, bool),
    /// Not all of these hold.
    Not(Vec<Clause>),
}

/// A bound of metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A number, in decimal.
    Number(String),
    /// Text, compared by code points.
    Text(String),
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
        let clauses = object.iter().map(|(key, value)| parse_clauses(key, value)).collect::<Result<Vec<_>>>()?;
        Ok(Self { clauses: clauses.concat() })
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

/// What a key may name.
enum Target {
    Column(Field),
    Metadata(String),
}

const OPERATORS: [&str; 7] = ["gt", "gte", "lt", "lte", "prefix", "exists", "not"];

fn parse_clauses(key: &str, value: &Value) -> Result<Vec<Clause>> {
    if key == "not" {
        let inner = Filter::parse(value)?;
        if inner.is_empty() {
            return Err(Error::invalid("filter key \"not\" needs a filter with a key, and has none"));
        }
        return Ok(vec![Clause::Not(inner.clauses)]);
    }
    let target = match key.strip_prefix("metadata.") {
        Some("") => return Err(Error::invalid(format!("filter key \"{key}\" names no metadata key"))),
        Some(path) => Target::Metadata(path.to_owned()),
        None => {
            let field = FIELDS.iter().find(|(name, _)| *name == key).map(|(_, field)| *field);
            Target::Column(field.ok_or_else(|| {
                let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).chain(["metadata.<key>", "not"]).collect();
                unknown_key("filter key", key, &known)
            })?)
        }
    };
    conditions(key, &target, value)
}

/// The conditions of one key; all must hold.
fn conditions(key: &str, target: &Target, value: &Value) -> Result<Vec<Clause>> {
    let Some(object) = operators(target, value) else { return Ok(vec![equality(key, target, value)?]) };
    if object.is_empty() {
        return Err(wrong(key, "a value, a list or operators", value));
    }
    let mut clauses = Vec::new();
    let mut bounds = Vec::new();
    for (operator, operand) in object {
        match operator.as_str() {
            "gt" => bounds.push((Bound::Gt, operand)),
            "gte" => bounds.push((Bound::Gte, operand)),
            "lt" => bounds.push((Bound::Lt, operand)),
            "lte" => bounds.push((Bound::Lte, operand)),
            "prefix" => clauses.push(prefix(key, target, operand)?),
            "exists" => {
                let wanted = operand.as_bool().ok_or_else(|| wrong(key, "true or false behind \"exists\"", operand))?;
                clauses.push(match target {
                    Target::Column(field) => Clause::Exists(*field, wanted),
                    Target::Metadata(path) => Clause::MetadataExists(path.clone(), wanted),
                });
            }
            "not" => clauses.push(Clause::Not(conditions(key, target, operand)?)),
            other => return Err(unknown_key("operator", other, &OPERATORS)),
        }
    }
    if !bounds.is_empty() {
        clauses.push(range(key, target, &bounds)?);
    }
    Ok(clauses)
}

/// The operators of a value, if it has any. Metadata may be an object itself, so there all of its keys must be operators; in a list
/// it is taken as it is.
fn operators<'a>(target: &Target, value: &'a Value) -> Option<&'a Map<String, Value>> {
    let object = value.as_object()?;
    let all = !object.is_empty() && object.keys().all(|key| OPERATORS.contains(&key.as_str()));
    (all || matches!(target, Target::Column(_))).then_some(object)
}

fn equality(key: &str, target: &Target, value: &Value) -> Result<Clause> {
    let field = match target {
        Target::Column(field) => *field,
        Target::Metadata(path) => {
            let values = match value {
                Value::Array(many) => many.clone(),
                one => vec![one.clone()],
            };
            within(values.len())?;
            return Ok(Clause::Metadata(path.clone(), values));
        }
    };
    match field {
        Field::Page | Field::Line => {
            let exact = whole_number(key, value)?;
            Ok(Clause::Number(field, vec![(Bound::Gte, exact), (Bound::Lte, exact)]))
        }
        Field::PublishedAt => {
            let exact = timestamp(key, value)?;
            Ok(Clause::Time(field, vec![(Bound::Gte, exact.clone()), (Bound::Lte, exact)]))
        }
        _ => {
            let values = texts(key, value)?;
            let globs = matches!(field, Field::Path | Field::Uri);
            if let Some(long) = values.iter().find(|v| globs && v.len() > MAX_GLOB) {
                return Err(too_long("bytes in a glob", long.len(), MAX_GLOB));
            }
            Ok(Clause::OneOf(field, values))
        }
    }
}

fn prefix(key: &str, target: &Target, operand: &Value) -> Result<Clause> {
    match target {
        Target::Metadata(path) => Ok(Clause::MetadataPrefix(path.clone(), texts(key, operand)?)),
        Target::Column(field) if field.is_text() => Ok(Clause::Prefix(*field, texts(key, operand)?)),
        Target::Column(_) => Err(Error::invalid(format!("filter key \"{key}\" is no text, so it has no \"prefix\""))),
    }
}

fn range(key: &str, target: &Target, bounds: &[(Bound, &Value)]) -> Result<Clause> {
    match target {
        Target::Metadata(path) => {
            let bounds: Vec<(Bound, Scalar)> = read_bounds(key, bounds, scalar)?;
            let numbers = bounds.iter().filter(|(_, scalar)| matches!(scalar, Scalar::Number(_))).count();
            match numbers == 0 || numbers == bounds.len() {
                true => Ok(Clause::MetadataRange(path.clone(), bounds)),
                false => Err(Error::invalid(format!("bounds of filter key \"{key}\" are numbers and strings"))),
            }
        }
        Target::Column(field @ (Field::Page | Field::Line)) => {
            Ok(Clause::Number(*field, read_bounds(key, bounds, whole_number)?))
        }
        Target::Column(field @ Field::PublishedAt) => Ok(Clause::Time(*field, read_bounds(key, bounds, timestamp)?)),
        Target::Column(_) => Err(Error::invalid(format!("filter key \"{key}\" has no order, so it has no bounds"))
            .with_hint("Give a value, a list, or {\"prefix\": …}, {\"exists\": …}, {\"not\": …}.")),
    }
}

fn read_bounds<T>(
    key: &str,
    bounds: &[(Bound, &Value)],
    read: fn(&str, &Value) -> Result<T>,
) -> Result<Vec<(Bound, T)>> {
    bounds.iter().map(|(bound, value)| Ok((*bound, read(key, value)?))).collect()
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>> {
    let text = |v: &Value| v.as_str().map(str::to_owned).ok_or_else(|| wrong(key, "a string", v));
    let values: Vec<String> = one_or_many(key, value)?.into_iter().map(text).collect::<Result<_>>()?;
    within(values.len())?;
    Ok(values)
}

fn within(values: usize) -> Result<()> {
    match values > MAX_VALUES {
        true => Err(too_long("values of one key", values, MAX_VALUES)),
        false => Ok(()),
    }
}

fn scalar(key: &str, value: &Value) -> Result<Scalar> {
    match value {
        Value::Number(number) => Ok(Scalar::Number(number.to_string())),
        Value::String(text) => Ok(Scalar::Text(text.clone())),
        other => Err(wrong(key, "a number or a string as a bound", other)),
    }
}

fn one_or_many<'a>(key: &str, value: &'a Value) -> Result<Vec<&'a Value>> {
    match value {
        Value::Array(many) => Ok(many.iter().collect()),
        Value::Object(_) | Value::Null => Err(wrong(key, "a value or a list of values", value)),
        one => Ok(vec![one]),
    }
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
    fn operators_are_for_every_key_that_can_have_them() {
        let of = |v| Filter::parse(&v).expect("valid").clauses;
        let text = |t: &str| vec![t.to_owned()];
        let tests = Clause::OneOf(Field::Role, text("test"));
        assert_eq!(of(json!({"role": {"not": "test"}})), [Clause::Not(vec![tests.clone()])]);
        assert_eq!(of(json!({"not": {"role": "test"}})), [Clause::Not(vec![tests])]);
        assert_eq!(of(json!({"speaker": {"exists": false}})), [Clause::Exists(Field::Speaker, false)]);
        assert_eq!(of(json!({"uri": {"prefix": "guide/"}})), [Clause::Prefix(Field::Uri, text("guide/"))]);
        assert_eq!(
            of(json!({"page": {"not": 3, "gte": 1}})),
            [
                Clause::Not(vec![Clause::Number(Field::Page, vec![(Bound::Gte, 3), (Bound::Lte, 3)])]),
                Clause::Number(Field::Page, vec![(Bound::Gte, 1)])
            ]
        );
        let range = |bounds: &[(Bound, Scalar)]| Clause::MetadataRange("votes".into(), bounds.to_vec());
        assert_eq!(
            of(json!({"metadata.votes": {"gt": 1.5, "lte": 7}})),
            [range(&[(Bound::Gt, Scalar::Number("1.5".into())), (Bound::Lte, Scalar::Number("7".into()))])]
        );
        assert_eq!(of(json!({"metadata.votes": {"exists": true}})), [Clause::MetadataExists("votes".into(), true)]);
        assert_eq!(of(json!({"metadata.votes": {"prefix": "a"}})), [Clause::MetadataPrefix("votes".into(), text("a"))]);
        // Metadata may be an object that has such keys; in a list it is one.
        let object = json!({"gt": 1, "unit": "m"});
        assert_eq!(of(json!({"metadata.votes": object})), [Clause::Metadata("votes".into(), vec![object])]);
        let object = json!({"gt": 1});
        assert_eq!(of(json!({"metadata.votes": [object]})), [Clause::Metadata("votes".into(), vec![object])]);
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
            (json!({"page": {"min": 3}}), "unknown operator \"min\""),
            (json!({"page": {}}), "filter key \"page\" needs a value, a list or operators, not {}"),
            (json!({"page": {"prefix": "3"}}), "filter key \"page\" is no text, so it has no \"prefix\""),
            (json!({"language": {"gte": "a"}}), "filter key \"language\" has no order, so it has no bounds"),
            (json!({"role": {"exists": 1}}), "filter key \"role\" needs true or false behind \"exists\", not 1"),
            (json!({"role": {"not": {"nott": "a"}}}), "unknown operator \"nott\""),
            (json!({"not": {}}), "filter key \"not\" needs a filter with a key, and has none"),
            (json!({"not": {"sorce": "a"}}), "unknown filter key \"sorce\""),
            (
                json!({"metadata.k": {"gte": 1, "lt": "b"}}),
                "bounds of filter key \"metadata.k\" are numbers and strings",
            ),
            (
                json!({"metadata.k": {"gte": []}}),
                "filter key \"metadata.k\" needs a number or a string as a bound, not []",
            ),
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
