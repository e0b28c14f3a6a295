// SPDX-License-Identifier: PostgreSQL

//! Profiles: storing settings by name, comparing them, and carrying them to another database.

use super::admin::named;
use super::{or_null, required};
use crate::error::OrRaise;
use crate::json::Json;
use crate::spi::{guarded, snapshot};
use crate::store::profile;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{JsonB, default};
use rag_core::query::profile::{self as form, storable};

/// Stores settings under a name and returns the version that has them.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn set_profile(name: Option<&str>, settings: Option<Json>, base: default!(Option<&str>, "NULL")) -> i32 {
    let set = || {
        let name = storable(named("profile", required("name", name)?)?)?;
        let mut settings = form::checked(or_null(Some(required("settings", settings)?)))?;
        if let Some(base) = base {
            settings = form::over(profile::by_name(base)?.settings, settings);
        }
        profile::store(name, &settings)
    };
    guarded(set).or_raise()
}

/// Deletes what was stored under a name; returns the number of versions.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn drop_profile(name: Option<&str>) -> i64 {
    guarded(|| profile::delete(required("name", name)?)).or_raise()
}

/// Settings that are in force by one profile and not by another.
#[pg_extern(schema = "rag", stable, parallel_restricted)]
#[allow(clippy::type_complexity)]
fn diff_profiles(
    left_profile: Option<&str>,
    right_profile: default!(Option<&str>, "'default'"),
) -> TableIterator<'static, (name!(setting, String), name!(left_value, JsonB), name!(right_value, JsonB))> {
    let diff = || {
        let left = profile::by_name(required("left_profile", left_profile)?)?;
        let right = profile::by_name(required("right_profile", right_profile)?)?;
        form::differences(&left.settings, &right.settings)
    };
    let differences = guarded(|| snapshot(diff)).or_raise();
    TableIterator::new(differences.into_iter().map(|d| (d.setting, JsonB(d.left), JsonB(d.right))))
}

/// All settings that are in force by a profile.
#[pg_extern(schema = "rag", stable, parallel_restricted)]
fn profile_settings(profile: default!(Option<&str>, "'default'")) -> JsonB {
    let read = || form::in_force(&profile::by_name(required("profile", profile)?)?.settings);
    JsonB(guarded(|| snapshot(read)).or_raise())
}

/// Profiles as JSON, for `rag.import_profiles` of another database.
#[pg_extern(schema = "rag", stable, parallel_restricted)]
fn export_profiles(names: default!(Option<Vec<Option<String>>>, "NULL")) -> JsonB {
    let export = || {
        let profiles = match names {
            None => profile::all()?,
            Some(names) => {
                let by_name = |name: Option<String>| profile::by_name(&required("a name", name)?);
                names.into_iter().map(by_name).collect::<rag_core::Result<_>>()?
            }
        };
        let profiles: Vec<_> = profiles.into_iter().map(|p| (p.name, p.version, p.settings)).collect();
        Ok(form::export(&profiles))
    };
    JsonB(guarded(|| snapshot(export)).or_raise())
}

/// Stores exported profiles; one whose newest version is the same is left alone. Returns each with its version here.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn import_profiles(profiles: Option<Json>) -> TableIterator<'static, (name!(name, String), name!(version, i32))> {
    let import = || {
        let profiles = form::import(&required("profiles", profiles)?.0)?;
        let store = |exported: form::Exported| {
            let name = named("profile", &exported.name)?;
            let version = profile::store(name, &exported.settings)?;
            Ok((exported.name, version))
        };
        profiles.into_iter().map(store).collect::<rag_core::Result<Vec<_>>>()
    };
    TableIterator::new(guarded(import).or_raise())
}
