// SPDX-License-Identifier: PostgreSQL

//! Table `rag.profile`: settings by name and version.
//!
//! Versions of a name only grow, and none is changed once it is there: a run of an evaluation says which it used. Those with an
//! id below [`BUILT_IN`] are the extension's own and always version 1; a user's versions of the same name come after them.

use crate::spi::{self, lock};
use pgrx::JsonB;
use rag_core::query::profile::Name;
use rag_core::{Error, Kind, Result};
use serde_json::Value;

/// Keys below it are of the extension's own rows.
const BUILT_IN: i64 = 100;

/// A profile.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its version, from 1.
    pub version: i32,
    /// What it says of settings.
    pub settings: Value,
}

/// The profile that `name` or `name@version` means.
pub fn by_name(text: &str) -> Result<Profile> {
    // A name of an older database may have an @ that is none of a version.
    let name = Name::parse(text);
    if let Ok(Name { name, version: Some(version) }) = name
        && let Some(found) = version_of(name, version)?
    {
        return Ok(found);
    }
    if let Some(found) = newest(text)? {
        return Ok(found);
    }
    let Name { name, version } = name?;
    if let Some(version) = version
        && let Some(newest) = newest(name)?
    {
        return Err(Error::new(Kind::NotFound, format!("profile \"{name}\" has no version {version}"))
            .with_hint(format!("The newest is \"{name}@{}\".", newest.version)));
    }
    let existing = super::names("SELECT DISTINCT name FROM rag.profile ORDER BY name")?;
    Err(super::not_found("profile", name, &existing))
}

fn newest(name: &str) -> Result<Option<Profile>> {
    let sql = "SELECT name, version, settings FROM rag.profile WHERE name = $1 ORDER BY version DESC LIMIT 1";
    spi::select_one(sql, &[name.into()], read)
}

fn version_of(name: &str, version: i32) -> Result<Option<Profile>> {
    let sql = "SELECT name, version, settings FROM rag.profile WHERE name = $1 AND version = $2";
    spi::select_one(sql, &[name.into(), version.into()], read)
}

fn read(row: &spi::Row) -> Result<Profile> {
    let JsonB(settings) = row.get(3)?;
    Ok(Profile { name: row.get(1)?, version: row.get(2)?, settings })
}

/// The newest version of each name, by name.
pub fn all() -> Result<Vec<Profile>> {
    let sql =
        "SELECT DISTINCT ON (p.name) p.name, p.version, p.settings FROM rag.profile p ORDER BY p.name, p.version DESC";
    spi::select(sql, &[], read)
}

/// Stores settings as the next version of a name, if they are not those of its newest; returns the version that has them.
pub fn store(name: &str, settings: &Value) -> Result<i32> {
    alone()?;
    let newest = newest(name)?;
    if let Some(same) = newest.as_ref().filter(|newest| newest.settings == *settings) {
        return Ok(same.version);
    }
    let version = newest.map_or(Some(1), |newest| newest.version.checked_add(1));
    let version =
        version.ok_or_else(|| Error::new(Kind::LimitExceeded, format!("profile \"{name}\" has no next version")))?;
    let sql = "INSERT INTO rag.profile (name, version, settings) VALUES ($1, $2, $3)";
    spi::execute(sql, &[name.into(), version.into(), JsonB(settings.clone()).into()])?;
    Ok(version)
}

/// Deletes the versions of a name that are not the extension's own, or one of them; returns how many.
pub fn delete(text: &str) -> Result<i64> {
    alone()?;
    let found = by_name(text)?;
    let version = (found.name != text).then_some(found.version);
    let sql = "DELETE FROM rag.profile WHERE name = $1 AND id >= $2 AND version = coalesce($3, version)";
    let deleted = spi::execute(sql, &[found.name.as_str().into(), BUILT_IN.into(), version.into()])?;
    match deleted {
        0 => Err(Error::new(Kind::NotReady, format!("profile \"{text}\" is built in"))
            .with_detail("What comes with the extension cannot be dropped.")),
        more => Ok(more as i64),
    }
}

/// One at a time: the next version is found by looking at the last.
fn alone() -> Result<()> {
    lock::exclusive("rag.profile", 0)
}
