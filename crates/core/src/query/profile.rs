// SPDX-License-Identifier: PostgreSQL

//! Profiles as people name, compare and carry them.
//!
//! A profile is a named object of settings that grows by versions; the table of them is the extension's affair. Owns how one
//! is named (`docs`, or `docs@3` for a version that must not change under an experiment), what differs between two, and the
//! form in which they travel between databases. A stored object says only what it changes, so that a better default reaches
//! it; a difference is told of what is in force, because that is what a search does.

use super::settings::Settings;
use crate::error::{Error, Kind, Result};
use serde_json::{Map, Value, json};

/// A profile as a caller names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// Its name.
    pub name: &'a str,
    /// The version asked for; without one, the newest.
    pub version: Option<i32>,
}

impl<'a> Name<'a> {
    /// Reads `name` or `name@version`.
    pub fn parse(text: &'a str) -> Result<Self> {
        let Some((name, version)) = text.rsplit_once('@') else { return Ok(Self { name: text, version: None }) };
        let plain = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
        match version.parse::<i32>() {
            Ok(number) if plain && number > 0 => Ok(Self { name, version: Some(number) }),
            _ => Err(Error::invalid(format!("\"{version}\" in profile \"{text}\" is not a version"))
                .with_hint(format!("It is a number from 1: \"{name}@1\"; SELECT name, version FROM rag.profiles;"))),
        }
    }
}

/// A name that a profile can be stored by.
pub fn storable(name: &str) -> Result<&str> {
    match name.contains('@') {
        true => Err(Error::invalid(format!("name \"{name}\" of the profile has an @"))
            .with_detail("What follows an @ is a version.")),
        false => Ok(name),
    }
}

/// A setting that is not the same in two objects of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Key of the setting.
    pub setting: String,
    /// What is in force by the first.
    pub left: Value,
    /// What is in force by the second.
    pub right: Value,
}

/// All settings that are in force by an object of some.
pub fn in_force(settings: &Value) -> Result<Value> {
    Ok(Settings::default().apply(settings)?.to_json())
}

/// What is in force by one object and not by the other, by key.
pub fn differences(left: &Value, right: &Value) -> Result<Vec<Difference>> {
    let (left, right) = (in_force(left)?, in_force(right)?);
    let Value::Object(keys) = &left else { return Err(Error::internal("settings are no object")) };
    let other = keys.iter().filter(|(key, value)| right.get(key.as_str()) != Some(value));
    let mut differences: Vec<Difference> = other
        .map(|(key, value)| Difference {
            setting: key.clone(),
            left: value.clone(),
            right: right.get(key).cloned().unwrap_or(Value::Null),
        })
        .collect();
    differences.sort_by(|a, b| a.setting.cmp(&b.setting));
    Ok(differences)
}

/// One profile of an export.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// Its name.
    pub name: String,
    /// Its settings, checked.
    pub settings: Value,
}

/// Writes profiles with the version each had, in the order given.
pub fn export(profiles: &[(String, i32, Value)]) -> Value {
    profiles
        .iter()
        .map(|(name, version, settings)| json!({"name": name, "version": version, "settings": settings}))
        .collect()
}

/// Reads what [`export`] wrote, or a person did: an array of objects with `name` and `settings`, or one such object. The version
/// each had says where it came from and not which it becomes.
pub fn import(profiles: &Value) -> Result<Vec<Exported>> {
    let list = match profiles {
        Value::Array(list) => list.as_slice(),
        Value::Object(_) => std::slice::from_ref(profiles),
        other => return Err(Error::invalid(format!("profiles must be a JSON array of objects, not {other}"))),
    };
    let mut read: Vec<Exported> = Vec::with_capacity(list.len());
    for (profile, ordinal) in list.iter().zip(1..) {
        let told = |error: Error| Error { message: format!("profile {ordinal}: {}", error.message), ..error };
        let one = imported(profile).map_err(told)?;
        if read.iter().any(|known| known.name == one.name) {
            return Err(Error::new(Kind::AlreadyExists, format!("profile {ordinal}: \"{}\" is there twice", one.name)));
        }
        read.push(one);
    }
    Ok(read)
}

fn imported(profile: &Value) -> Result<Exported> {
    let Value::Object(object) = profile else {
        return Err(Error::invalid(format!("must be a JSON object, not {profile}")));
    };
    const KEYS: [&str; 3] = ["name", "version", "settings"];
    if let Some(unknown) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(crate::error::unknown_key("key", unknown, &KEYS));
    }
    let name = match object.get("name") {
        Some(Value::String(name)) => storable(name)?.to_owned(),
        Some(other) => return Err(Error::invalid(format!("name must be a string, not {other}"))),
        None => return Err(Error::invalid("has no name")),
    };
    let settings = object.get("settings").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    Ok(Exported { name, settings: checked(settings)? })
}

/// Settings with others over them, key by key.
pub fn over(base: Value, settings: Value) -> Value {
    match (base, settings) {
        (Value::Object(mut base), Value::Object(settings)) => {
            base.extend(settings);
            Value::Object(base)
        }
        (_, settings) => settings,
    }
}

/// An object of settings that a search takes; a JSON null is an empty one.
pub fn checked(settings: Value) -> Result<Value> {
    Settings::default().apply(&settings)?;
    Ok(if settings.is_null() { Value::Object(Map::new()) } else { settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_a_version() {
        let name = |name, version| Ok(Name { name, version });
        assert_eq!(Name::parse("docs"), name("docs", None));
        assert_eq!(Name::parse("docs@3"), name("docs", Some(3)));
        assert_eq!(Name::parse("a@b@12"), name("a@b", Some(12)), "an older database may have such a name");
        for bad in ["docs@", "docs@0", "docs@-1", "docs@+1", "docs@x", "docs@99999999999", "docs@1 "] {
            assert_eq!(Name::parse(bad).map_err(|e| e.kind), Err(Kind::InvalidArgument), "{bad}");
        }
        assert!(storable("docs@3").is_err());
        assert_eq!(storable("docs"), Ok("docs"));
    }

    #[test]
    fn differences_are_of_what_is_in_force() {
        let differ = |left, right| differences(&left, &right).expect("valid");
        assert_eq!(differ(json!({}), json!({"rrf_k": 60, "mode": "hybrid"})), []);
        let found = differ(json!({"rrf_k": 10}), json!({"exact": true, "alpha": 0.5, "rrf_k": 10}));
        let expected = [("alpha", json!(0.7), json!(0.5)), ("exact", json!(false), json!(true))];
        assert_eq!(
            found,
            expected.map(|(key, left, right)| Difference { setting: key.to_owned(), left, right }).to_vec()
        );
        assert!(differences(&json!({"rrfk": 1}), &json!({})).is_err());
    }

    #[test]
    fn an_export_is_read_back() {
        let profiles =
            [("code".to_owned(), 2, json!({"fusion": "convex", "alpha": 0.95})), ("docs".to_owned(), 1, json!({}))];
        let read = import(&export(&profiles)).expect("valid");
        let back: Vec<(&str, &Value)> = read.iter().map(|p| (p.name.as_str(), &p.settings)).collect();
        assert_eq!(back, [("code", &profiles[0].2), ("docs", &profiles[1].2)]);
    }

    #[test]
    fn what_is_written_by_hand_is_checked_and_told_of_by_its_place() {
        assert_eq!(import(&json!({"name": "a"})).expect("valid"), [Exported { name: "a".into(), settings: json!({}) }]);
        for (bad, message) in [
            (json!("a"), "profiles must be a JSON array of objects, not \"a\""),
            (json!([1]), "profile 1: must be a JSON object, not 1"),
            (json!([{"name": "a"}, {"settings": {}}]), "profile 2: has no name"),
            (json!([{"name": 1}]), "profile 1: name must be a string, not 1"),
            (json!([{"name": "a", "setting": {}}]), "profile 1: unknown key \"setting\""),
            (json!([{"name": "a", "settings": {"rrfk": 1}}]), "profile 1: unknown setting \"rrfk\""),
            (json!([{"name": "a"}, {"name": "a"}]), "profile 2: \"a\" is there twice"),
            (json!([{"name": "a@1"}]), "profile 1: name \"a@1\" of the profile has an @"),
        ] {
            assert_eq!(import(&bad).map_err(|e| e.message), Err(message.to_owned()));
        }
    }
}
