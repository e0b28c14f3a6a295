// SPDX-License-Identifier: PostgreSQL

//! Collections, sources and models: adding, changing and dropping them.

use super::required;
use crate::error::{self, OrRaise};
use crate::guc;
use crate::inference;
use crate::json::Json;
use crate::spi::guarded;
use crate::store::{collection, model, source};
use pgrx::default;
use pgrx::prelude::*;
use rag_core::source::{Location, SourceKind, SourceOptions, is_url, not_allowed, not_at_allowed_host};
use rag_core::{Error, Kind, Result};
use serde_json::Value;
use std::path::Path;

/// Adds a collection; without a model it gets that of the default collection.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn create_collection(name: Option<&str>, model: default!(Option<&str>, "NULL")) -> i64 {
    let create = || {
        let name = named("collection", required("name", name)?)?;
        let model = match model {
            Some(model) => model::by_name(model)?,
            None => collection::by_name("default")?.model,
        };
        collection::insert(name, &model)
    };
    guarded(create).or_raise()
}

/// Drops a collection that has no sources.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn drop_collection(name: Option<&str>) {
    guarded(|| collection::delete(&collection::by_name(required("name", name)?)?)).or_raise()
}

/// Adds a source to a collection and returns its key.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
#[allow(clippy::too_many_arguments)]
fn add_source(
    name: Option<&str>,
    kind: Option<&str>,
    location: Option<&str>,
    options: default!(Option<Json>, "'{}'"),
    collection: default!(Option<&str>, "'default'"),
    project: default!(Option<&str>, "NULL"),
    authority: default!(Option<f64>, 1),
    schedule: default!(Option<&str>, "NULL"),
    acl: default!(Option<&str>, "NULL"),
) -> i64 {
    let add = || {
        let name = named("source", required("name", name)?)?;
        if schedule.is_some() {
            return Err(Error::unsupported("schedule is not supported yet")
                .with_hint("Call rag.sync from a scheduler of your own."));
        }
        let kind: SourceKind = required("kind", kind)?.parse()?;
        let options = or_empty(options);
        let location = place_of(kind, required("location", location)?)?;
        let parsed = SourceOptions::parse_at(kind, Location::At(location), &options)?;
        let new = source::NewSource {
            name,
            kind: kind.name(),
            location,
            options,
            text_search_config: source::resolve_option(&parsed.text_search_config)?,
            project,
            authority: checked_authority(authority.unwrap_or(1.0))?,
            acl: acl.filter(|label| !label.is_empty()),
        };
        let added = source::insert(&collection::by_name(collection.unwrap_or("default"))?, new)?;
        let id = added.ok_or_else(|| {
            Error::new(Kind::AlreadyExists, format!("source \"{name}\" already exists"))
                .with_hint("Change it with rag.alter_source, or remove it with rag.drop_source.")
        })?;
        Ok((id, warnings(kind, location, true, &parsed)))
    };
    let (id, warnings) = guarded(add).or_raise();
    warnings.into_iter().for_each(warn);
    id
}

/// What a sync would refuse now: the place, if it `is_new`, and options for it. The engine decides; this is for the one who is
/// typing.
fn warnings(kind: SourceKind, place: &str, is_new: bool, options: &SourceOptions) -> Vec<Error> {
    let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let beneath = |root: &String| Path::new(place).starts_with(root) || real(place).starts_with(real(root));
    let allowed = guc::allowed();
    let elsewhere = match is_url(place) {
        true => not_at_allowed_host(place, &allowed.hosts),
        false => (!allowed.paths.iter().any(beneath)).then(|| not_allowed(place)),
    };
    let is_cloned = kind == SourceKind::Git && is_url(place);
    let large = is_cloned.then(|| options.limits.within_clone_disk(guc::clone_disk()).err()).flatten();
    elsewhere.filter(|_| is_new).into_iter().chain(large).collect()
}

fn warn(warning: Error) {
    error::warn(warning.message, warning.hint.as_deref());
}

/// Changes what is given of a source; the next sync applies it. A label holds at once, for everything that came from the
/// source. An empty project or label means none.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn alter_source(
    name: Option<&str>,
    location: default!(Option<&str>, "NULL"),
    options: default!(Option<Json>, "NULL"),
    project: default!(Option<&str>, "NULL"),
    authority: default!(Option<f64>, "NULL"),
    enabled: default!(Option<bool>, "NULL"),
    acl: default!(Option<&str>, "NULL"),
) {
    let alter = || {
        let name = required("name", name)?;
        let source = source::locked(name)?;
        // A JSON null says no more than an SQL one.
        let options: Option<Value> = options.map(|o| o.0).filter(|o| !o.is_null());
        if source.kind == source::INLINE && (location.is_some() || options.is_some() || acl.is_some()) {
            return Err(Error::invalid(format!("source \"{name}\" holds inline documents"))
                .with_detail("It has neither a location nor options, and each document has a label of its own."));
        }
        let (mut config, mut warned) = (None, Vec::new());
        if location.is_some() || options.is_some() {
            let kind: SourceKind = source.kind.parse()?;
            let place = location.map_or(Ok(source.location.as_str()), |location| place_of(kind, location))?;
            // What stays must go together with what is new.
            let parsed =
                SourceOptions::parse_at(kind, Location::At(place), options.as_ref().unwrap_or(&source.options))?;
            warned = warnings(kind, place, location.is_some(), &parsed);
            if options.is_some() {
                config = Some(source::resolve_option(&parsed.text_search_config)?);
            }
        }
        let authority = authority.map(checked_authority).transpose()?;
        source::update(source.id, location, options, config, project, authority, enabled)?;
        acl.map_or(Ok(()), |label| source::label(source.id, label))?;
        Ok(warned)
    };
    guarded(alter).or_raise().into_iter().for_each(warn);
}

/// Drops a source with everything that came from it; returns the number of its documents.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn drop_source(name: Option<&str>) -> i64 {
    let drop = || source::delete(&source::locked(required("name", name)?)?);
    guarded(drop).or_raise()
}

/// Registers a model folder and returns its key.
#[pg_extern(schema = "rag", volatile, parallel_unsafe)]
fn load_model(name: Option<&str>, kind: Option<&str>, path: Option<&str>) -> i64 {
    let load = || {
        let name = named("model", required("name", name)?)?;
        let path = required("path", path)?;
        match required("kind", kind)? {
            "embedding" => {}
            "reranker" => return Err(Error::unsupported("model kind \"reranker\" is not supported yet")),
            other => return Err(rag_core::error::unknown_key("model kind", other, &["embedding", "reranker"])),
        }
        model::insert(&inference::describe(name, path, guc::waits())?)
    };
    guarded(load).or_raise()
}

fn or_empty(object: Option<Json>) -> Value {
    object.map_or_else(|| Value::Object(serde_json::Map::new()), |o| o.0)
}

/// Bytes of a name. It is part of index entries and of every message.
const MAX_NAME: usize = 255;

pub(super) fn named<'a>(what: &str, name: &'a str) -> Result<&'a str> {
    if name.len() > MAX_NAME {
        return Err(Error::invalid(format!("name \"{name}\" of the {what} is longer than {MAX_NAME} bytes")));
    }
    match name.trim() {
        "" => Err(Error::invalid(format!("name of the {what} is empty"))),
        trimmed if trimmed == name => Ok(name),
        _ => Err(Error::invalid(format!("name \"{name}\" begins or ends with white space"))),
    }
}

/// A location that a source of `kind` can have.
fn place_of(kind: SourceKind, location: &str) -> Result<&str> {
    if is_url(location) && !kind.is_read_from_url() {
        return Err(kind.not_from_url());
    }
    if location.starts_with('/') || is_url(location) {
        return Ok(location);
    }
    Err(Error::invalid(format!("location \"{location}\" is neither an absolute path nor a URL"))
        .with_hint("Give the path as the server sees it, beginning with a slash."))
}

fn checked_authority(authority: f64) -> Result<f64> {
    if authority > 0.0 && authority <= 1.0 {
        return Ok(authority);
    }
    Err(Error::invalid(format!("authority must be above 0 and at most 1, not {authority}")))
}
