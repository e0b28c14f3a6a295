// SPDX-License-Identifier: PostgreSQL

//! What a document says about itself: front matter, and the fields every format shares.
//!
//! Front matter is YAML between `---` lines or TOML between `+++` lines at the very start, and only when it parses as a
//! table: anything else is ordinary text, because losing text to a guess is worse than missing a title. The same
//! names (title, language, time of publication) mean the same in front matter, in a record and in metadata given by the caller.

use super::Parsed;
use crate::text::{storable_map, without_nul};
use serde_json::{Map, Value};
use std::ops::Range;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime, PrimitiveDateTime, UtcOffset};

/// Longest title, name or address in characters: it goes with every chunk.
const MAX_SHORT: usize = 500;

const LANGUAGE_KEYS: &[&str] = &["language", "lang"];
const PUBLISHED_KEYS: &[&str] = &["published_at", "published", "date"];

/// Splits front matter off: its table, and the range of the rest.
pub fn front_matter(text: &str) -> (Map<String, Value>, Range<usize>) {
    let whole = 0..text.len();
    let Some((inside, rest, toml)) = fenced(text) else {
        return (Map::new(), whole);
    };
    let parsed = if toml {
        toml::from_str::<Map<String, Value>>(inside).ok().map(toml_times)
    } else if inside.lines().all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#')) {
        Some(Map::new())
    } else {
        serde_saphyr::from_str_with_options::<Map<String, Value>>(inside, yaml_1_2()).ok()
    };
    match parsed {
        Some(table) => (storable_map(table), rest..text.len()),
        None => (Map::new(), whole),
    }
}

/// YAML 1.2, in which `language: no` is Norwegian and not false.
fn yaml_1_2() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true }
}

/// The lines between the fences, the start of what follows, and whether it is TOML.
fn fenced(text: &str) -> Option<(&str, usize, bool)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    let toml = match first.trim_end() {
        "---" => false,
        "+++" => true,
        _ => return None,
    };
    let start = first.len();
    let mut at = start;
    for line in lines {
        let trimmed = line.trim_end();
        // A blank line after the opening one means a thematic break.
        if at == start && trimmed.is_empty() {
            return None;
        }
        let closes = if toml { trimmed == "+++" } else { trimmed == "---" || trimmed == "..." };
        if closes {
            return Some((&text[start..at], at + line.len(), toml));
        }
        at += line.len();
    }
    None
}

/// The toml crate hands a time to serde as a table with one private key; the text inside is what was written.
fn toml_times(table: Map<String, Value>) -> Map<String, Value> {
    fn mend(value: Value) -> Value {
        match value {
            Value::Object(object) if object.len() == 1 && object.contains_key("$__toml_private_datetime") => {
                object.into_iter().next().map_or(Value::Null, |(_, v)| v)
            }
            Value::Object(object) => Value::Object(toml_times(object)),
            Value::Array(many) => Value::Array(many.into_iter().map(mend).collect()),
            other => other,
        }
    }
    table.into_iter().map(|(k, v)| (k, mend(v))).collect()
}

/// Moves the fields that every format shares from `table` into what was parsed, and the rest into its metadata.
///
/// A value that cannot be used (a date that is none) stays in the metadata under its own name.
pub fn describe(parsed: &mut Parsed, table: Map<String, Value>) {
    let mut table = storable_map(table);
    if let Some(title) = take_text(&mut table, &["title"]) {
        parsed.title = Some(short(&title));
    }
    if let Some(language) = take_text(&mut table, LANGUAGE_KEYS) {
        parsed.language = Some(language);
    }
    let dated = PUBLISHED_KEYS.iter().find_map(|key| {
        let time = table.get(*key).and_then(Value::as_str).and_then(rfc3339)?;
        Some((*key, time))
    });
    if let Some((key, time)) = dated {
        table.shift_remove(key);
        parsed.published_at = Some(time);
    }
    parsed.metadata.extend(table);
}

fn take_text(table: &mut Map<String, Value>, keys: &[&str]) -> Option<String> {
    let (key, text) = keys.iter().find_map(|key| {
        let text = scalar(table.get(*key)?)?;
        (!text.trim().is_empty()).then(|| (*key, text.trim().to_owned()))
    })?;
    table.shift_remove(key);
    Some(text)
}

/// What is short enough to go with every chunk of a document or part.
pub fn short(text: &str) -> String {
    text.chars().take(MAX_SHORT).collect()
}

/// The text of a string or number; YAML reads a title like `2024` as a number.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(s) => Some(without_nul(s)),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

/// A time as RFC 3339, from the ways in which people write it; without an offset it is UTC.
pub fn rfc3339(text: &str) -> Option<String> {
    let text = text.trim();
    let zoned = [
        format_description!(
            "[year]-[month]-[day] [hour]:[minute]:[second] [offset_hour sign:mandatory]:[offset_minute]"
        ),
        format_description!(
            "[year]-[month]-[day] [hour]:[minute]:[second] [offset_hour sign:mandatory][offset_minute]"
        ),
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second][offset_hour sign:mandatory][offset_minute]"),
    ];
    let local = [
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond]"),
        format_description!("[year]-[month]-[day] [hour]:[minute]:[second].[subsecond]"),
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]"),
        format_description!("[year]-[month]-[day] [hour]:[minute]:[second]"),
        format_description!("[year]-[month]-[day]T[hour]:[minute]"),
        format_description!("[year]-[month]-[day] [hour]:[minute]"),
    ];
    let day = [format_description!("[year]-[month]-[day]"), format_description!("[year]/[month]/[day]")];
    let time = OffsetDateTime::parse(text, &Rfc3339)
        .ok()
        .or_else(|| zoned.iter().find_map(|f| OffsetDateTime::parse(text, f).ok()))
        .or_else(|| {
            local.iter().find_map(|f| PrimitiveDateTime::parse(text, f).ok()).map(PrimitiveDateTime::assume_utc)
        })
        .or_else(|| day.iter().find_map(|f| Date::parse(text, f).ok()).map(|d| d.midnight().assume_utc()))?;
    // PostgreSQL takes no offset from UTC beyond 15 hours; the moment is the same in UTC.
    let time = if time.offset().whole_hours().abs() > 15 { time.checked_to_offset(UtcOffset::UTC)? } else { time };
    // PostgreSQL has no year 0, and RFC 3339 none beyond 9999.
    if !(1..=9999).contains(&time.year()) {
        return None;
    }
    time.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn described(text: &str) -> (Parsed, usize) {
        let (table, rest) = front_matter(text);
        let mut parsed = Parsed::default();
        describe(&mut parsed, table);
        (parsed, rest.start)
    }

    #[test]
    fn yaml_is_read() {
        let text = "---\ntitle: \"A: b\"\nlang: de\ndate: 2024-02-03\ntags: [x, y]\nweight: 2\n---\n# B\n";
        let (d, rest) = described(text);
        assert_eq!((d.title.as_deref(), d.language.as_deref()), (Some("A: b"), Some("de")));
        assert_eq!(d.published_at.as_deref(), Some("2024-02-03T00:00:00Z"));
        assert_eq!(Value::Object(d.metadata), json!({"tags": ["x", "y"], "weight": 2}));
        assert_eq!(&text[rest..], "# B\n");
    }

    #[test]
    fn toml_is_read() {
        let (d, _) = described("+++\ntitle = 'T'\ndate = 2024-02-03T04:05:06+01:00\n[a]\nb = 1979-05-27\n+++\n");
        assert_eq!(d.title.as_deref(), Some("T"));
        assert_eq!(d.published_at.as_deref(), Some("2024-02-03T04:05:06+01:00"));
        assert_eq!(Value::Object(d.metadata), json!({"a": {"b": "1979-05-27"}}));
    }

    #[test]
    fn what_is_no_table_is_text() {
        for text in [
            "---\n\ntitle: x\n---\n",       // a thematic break
            "---\njust prose\n---\n",       // a scalar
            "---\n- a\n- b\n---\n",         // a list
            "---\na: [\n---\n",             // broken
            "---\ntitle: x\n",              // unclosed
            "+++\nnot toml\n+++\n",         // broken
            " ---\ntitle: x\n---\n",        // indented
            "\n---\ntitle: x\n---\n",       // not at the start
            "---\na: &x [1]\nb: *y\n---\n", // unknown alias
        ] {
            let (d, rest) = described(text);
            assert_eq!((d, rest), (Parsed::default(), 0), "{text:?}");
        }
    }

    #[test]
    fn empty_front_matter_is_still_one() {
        assert_eq!(described("---\n---\nx").1, 8);
        assert_eq!(described("---\n# comment\n---\nx").1, 18);
        assert_eq!(described("---\na: 1\n...\nx").1, 13);
    }

    #[test]
    fn an_alias_bomb_is_refused_quickly() {
        let mut text = "---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..12 {
            let alias = format!("*a{},", i - 1).repeat(10);
            text.push_str(&format!("a{i}: &a{i} [{alias}]\n"));
        }
        text.push_str("---\n");
        assert_eq!(described(&text).1, 0);
    }

    #[test]
    fn an_unusable_value_stays_in_the_metadata() {
        let (d, _) = described("---\ndate: soon\ntitle: [a]\nlang: {}\n---\n");
        assert_eq!((d.title, d.language, d.published_at), (None, None, None));
        assert_eq!(Value::Object(d.metadata), json!({"date": "soon", "title": ["a"], "lang": {}}));
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, time) in [
            ("2024-02-03", Some("2024-02-03T00:00:00Z")),
            ("2024/02/03", Some("2024-02-03T00:00:00Z")),
            ("2024-02-03 04:05", Some("2024-02-03T04:05:00Z")),
            ("2024-02-03 04:05:06 +0200", Some("2024-02-03T04:05:06+02:00")),
            ("2024-02-03T04:05:06.5Z", Some("2024-02-03T04:05:06.5Z")),
            ("2024-02-03T04:05:06", Some("2024-02-03T04:05:06Z")),
            ("2024-02-30", None),
            ("0000-01-01", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(rfc3339(text).as_deref(), time, "{text}");
        }
    }
}
