// SPDX-License-Identifier: PostgreSQL

//! Table `rag.profile`.

use crate::spi;
use pgrx::JsonB;
use rag_core::Result;
use serde_json::Value;

/// The settings of the newest version of a profile.
pub fn settings(name: &str) -> Result<Value> {
    let sql = "SELECT settings FROM rag.profile WHERE name = $1 ORDER BY version DESC LIMIT 1";
    match spi::select_one(sql, &[name.into()], |row| row.get::<JsonB>(1))? {
        Some(JsonB(settings)) => Ok(settings),
        None => {
            let existing = super::names("SELECT DISTINCT name FROM rag.profile ORDER BY name")?;
            Err(super::not_found("profile", name, &existing))
        }
    }
}
