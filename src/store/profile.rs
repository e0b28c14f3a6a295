// SPDX-License-Identifier: PostgreSQL

//! Table `rag.profile`.

use crate::spi;
use pgrx::JsonB;
use rag_core::Result;
use serde_json::Value;

/// The settings of the newest version of a profile.
pub fn settings(name: &str) -> Result<Value> {
    newest(name).map(|(settings, _)| settings)
}

/// The settings of the newest version of a profile, and the version.
pub fn newest(name: &str) -> Result<(Value, i32)> {
    let sql = "SELECT settings, version FROM rag.profile WHERE name = $1 ORDER BY version DESC LIMIT 1";
    match spi::select_one(sql, &[name.into()], |row| Ok((row.get::<JsonB>(1)?, row.get(2)?)))? {
        Some((JsonB(settings), version)) => Ok((settings, version)),
        None => {
            let existing = super::names("SELECT DISTINCT name FROM rag.profile ORDER BY name")?;
            Err(super::not_found("profile", name, &existing))
        }
    }
}
