// SPDX-License-Identifier: PostgreSQL

//! Table `rag.source`.

use crate::spi::{self, Row};
use crate::store::collection::{self, Collection};
use pgrx::JsonB;
use rag_core::document::Document;
use rag_core::lexical::language::{self, AUTO};
use rag_core::source::{SourceKind, SourceOptions};
use rag_core::{Error, Kind, Result};
use serde_json::Value;

/// Kind of the sources that hold what `rag.ingest` was given.
pub const INLINE: &str = "inline";

/// A source.
#[derive(Debug, Clone)]
pub struct Source {
    /// Key.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Kind, or [`INLINE`].
    pub kind: String,
    /// Absolute path.
    pub location: String,
    /// Options as given.
    pub options: Value,
    /// Qualified text search configuration, or [`AUTO`].
    pub text_search_config: String,
    /// Project.
    pub project: Option<String>,
    /// Whether it may be synced.
    pub enabled: bool,
    /// Collection.
    pub collection_id: i64,
    /// Label needed to see it.
    pub acl: Option<String>,
}

impl Source {
    /// Kind and validated options; an inline source has neither.
    pub fn parsed(&self) -> Result<(SourceKind, SourceOptions)> {
        let kind = self.kind.parse()?;
        Ok((kind, SourceOptions::parse(kind, &self.options)?))
    }
}

fn read(row: &Row) -> Result<Source> {
    Ok(Source {
        id: row.get(1)?,
        name: row.get(2)?,
        kind: row.get(3)?,
        location: row.get(4)?,
        options: row.get::<JsonB>(5)?.0,
        text_search_config: row.get(6)?,
        project: row.optional(7)?,
        enabled: row.get(8)?,
        collection_id: row.get(9)?,
        acl: row.optional(10)?,
    })
}

const SELECT: &str =
    "SELECT id, name, kind, location, options, text_search_config, project, enabled, collection_id, acl
                        FROM rag.source";

/// The source of a name.
fn by_name(name: &str) -> Result<Source> {
    existing(name, spi::select_one(&format!("{SELECT} WHERE name = $1"), &[name.into()], read)?)
}

/// The source of a name, locked against other changes of it.
pub fn locked(name: &str) -> Result<Source> {
    existing(name, spi::write(&format!("{SELECT} WHERE name = $1 FOR NO KEY UPDATE"), &[name.into()], read)?.pop())
}

fn existing(name: &str, found: Option<Source>) -> Result<Source> {
    match found {
        Some(source) => Ok(source),
        None => Err(super::not_found("source", name, &super::names("SELECT name FROM rag.source ORDER BY name")?)),
    }
}

/// Keys and names of all sources.
pub fn all() -> Result<Vec<(i64, String)>> {
    spi::select("SELECT id, name FROM rag.source ORDER BY id", &[], |row| Ok((row.get(1)?, row.get(2)?)))
}

/// The source of a key, kept from being deleted or changed until the transaction ends: what is stored meanwhile must have
/// the label that the source has.
pub fn shared(id: i64) -> Result<Source> {
    spi::write(&format!("{SELECT} WHERE id = $1 FOR SHARE"), &[id.into()], read)?
        .pop()
        .ok_or_else(|| Error::new(Kind::InUse, format!("source {id} was dropped meanwhile")))
}

/// The source of a key.
pub fn by_id(id: i64) -> Result<Source> {
    spi::select_one(&format!("{SELECT} WHERE id = $1"), &[id.into()], read)?
        .ok_or_else(|| Error::internal(format!("source {id} does not exist")))
}

/// A source to be added.
#[derive(Debug)]
pub struct NewSource<'a> {
    /// Name.
    pub name: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Absolute path.
    pub location: &'a str,
    /// Options as given.
    pub options: Value,
    /// Qualified text search configuration, or [`AUTO`].
    pub text_search_config: String,
    /// Project.
    pub project: Option<&'a str>,
    /// Authority.
    pub authority: f64,
    /// Label needed to see it.
    pub acl: Option<&'a str>,
}

/// Adds a source and returns its key; `None` when the name is taken.
pub fn insert(collection: &Collection, new: NewSource<'_>) -> Result<Option<i64>> {
    collection::share(collection.id)?;
    let sql = "INSERT INTO rag.source (collection_id, name, kind, location, options, text_search_config, project,
                                       authority, acl)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (name) DO NOTHING RETURNING id";
    let args = [
        collection.id.into(),
        new.name.into(),
        new.kind.into(),
        new.location.into(),
        JsonB(new.options).into(),
        new.text_search_config.into(),
        new.project.map(str::to_owned).into(),
        new.authority.into(),
        new.acl.map(str::to_owned).into(),
    ];
    Ok(spi::write(sql, &args, |row| row.get(1))?.pop())
}

/// The source that holds what `rag.ingest` is given for a collection, made when it is first needed.
pub fn inline(collection: &Collection) -> Result<Source> {
    let name = match collection.name.as_str() {
        "default" => INLINE.to_owned(),
        other => format!("{INLINE}/{other}"),
    };
    let defaults = SourceOptions::defaults(SourceKind::Text);
    let new = NewSource {
        name: &name,
        kind: INLINE,
        location: "",
        options: Value::Object(serde_json::Map::new()),
        text_search_config: resolve_config(&defaults.text_search_config)?,
        project: None,
        authority: 1.0,
        acl: None,
    };
    insert(collection, new)?;
    let source = shared(by_name(&name)?.id)?;
    if source.kind != INLINE || source.collection_id != collection.id {
        return Err(Error::new(Kind::AlreadyExists, format!("the name \"{name}\" is taken by another source"))
            .with_hint("Drop or rename that source: rag.ingest needs the name."));
    }
    Ok(source)
}

/// Changes what is given of a source.
pub fn update(
    id: i64,
    location: Option<&str>,
    options: Option<Value>,
    text_search_config: Option<String>,
    project: Option<&str>,
    authority: Option<f64>,
    enabled: Option<bool>,
) -> Result<()> {
    let sql = "UPDATE rag.source SET location = coalesce($2, location), options = coalesce($3, options),
                      text_search_config = coalesce($4, text_search_config), project = CASE WHEN $5 IS NULL THEN project ELSE nullif($5, '') END,
                      authority = coalesce($6, authority), enabled = coalesce($7, enabled) WHERE id = $1";
    let args = [
        id.into(),
        location.map(str::to_owned).into(),
        options.map(JsonB).into(),
        text_search_config.into(),
        project.map(str::to_owned).into(),
        authority.into(),
        enabled.into(),
    ];
    spi::execute(sql, &args).map(|_| ())
}

/// Labels a source and everything that came from it; an empty label means none.
pub fn label(id: i64, acl: &str) -> Result<()> {
    spi::needs_fresh_snapshots("a label cannot be changed")?;
    let document = "EXISTS (SELECT FROM rag.document d WHERE d.id = t.document_id AND d.source_id = $1)";
    let chunk = "EXISTS (SELECT FROM rag.chunk c WHERE c.id = t.chunk_id AND c.source_id = $1)";
    for (table, of_source) in
        [("source", "t.id = $1"), ("document", "t.source_id = $1"), ("chunk", document), ("chunk_embedding", chunk)]
    {
        let sql = format!(
            "UPDATE rag.{table} t SET acl = nullif($2, '')
              WHERE {of_source} AND t.acl IS DISTINCT FROM nullif($2, '')"
        );
        spi::execute(&sql, &[id.into(), acl.into()])?;
    }
    Ok(())
}

/// Removes a source with everything that came from it; returns the number of its documents.
pub fn delete(source: &Source) -> Result<i64> {
    if let Some(pid) = super::sync::at_work(source.id)? {
        return Err(super::sync::busy(&source.name, pid));
    }
    spi::needs_fresh_snapshots("a source cannot be dropped")?;
    // What the caller may not see stays, and a trigger then keeps the source.
    let documents = spi::execute("DELETE FROM rag.document WHERE source_id = $1", &[source.id.into()])?;
    spi::execute("DELETE FROM rag.source WHERE id = $1", &[source.id.into()])?;
    Ok(documents as i64)
}

/// What a source's option `text_search_config` means: [`AUTO`], or a configuration. One that is called that has to be named
/// with its schema.
pub fn resolve_option(name: &str) -> Result<String> {
    if name == AUTO { Ok(AUTO.to_owned()) } else { resolve_config(name) }
}

/// The schema-qualified text search configuration that a document of a source is read by.
pub fn config_of(source: &Source, document: &Document) -> Result<String> {
    if source.text_search_config != AUTO {
        return Ok(source.text_search_config.clone());
    }
    let language = document.language.as_deref().or(document.text_language.as_deref());
    let name = language.and_then(language::configuration).unwrap_or(language::NONE);
    // An older server has fewer, and an administrator may have dropped one.
    let sql = "SELECT pg_catalog.format('%I.%I', n.nspname, c.cfgname) FROM pg_catalog.pg_ts_config c
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.cfgnamespace AND n.nspname = 'pg_catalog'
                WHERE c.cfgname IN ($1, $2) ORDER BY c.cfgname = $2 LIMIT 1";
    match spi::select_one(sql, &[name.into(), language::NONE.into()], |row| row.get(1))? {
        Some(config) => Ok(config),
        None => resolve_config(language::NONE),
    }
}

/// The schema-qualified name of a text search configuration. A bare name means PostgreSQL's own before any other.
pub fn resolve_config(name: &str) -> Result<String> {
    let sql = "SELECT pg_catalog.format('%I.%I', n.nspname, c.cfgname) FROM pg_catalog.pg_ts_config c
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.cfgnamespace
                WHERE c.cfgname = $1
                   OR pg_catalog.format('%s.%s', n.nspname, c.cfgname) = $1
                   OR pg_catalog.format('%I.%I', n.nspname, c.cfgname) = $1
                ORDER BY n.nspname <> 'pg_catalog', 1 LIMIT 1";
    match spi::select_one(sql, &[name.into()], |r| r.get(1))? {
        Some(qualified) => Ok(qualified),
        None => {
            let existing = super::names("SELECT cfgname::text FROM pg_catalog.pg_ts_config ORDER BY 1")?;
            Err(super::not_found("text search configuration", name, &existing))
        }
    }
}

/// The text search configurations of a collection.
#[derive(Debug, Default)]
pub struct Configs {
    /// Those that exist, each once.
    pub usable: Vec<String>,
    /// Sources whose configuration was dropped, with its name.
    pub missing: Vec<(String, String)>,
}

/// The text search configurations of a collection: those of its sources, and those that its documents were read by, which
/// are others where a source is [`AUTO`] or was altered since.
pub fn configs(collection_id: i64) -> Result<Configs> {
    // From one configuration of a source to the next by the index on documents, however many there are.
    let sql = "SELECT u.config, EXISTS (SELECT FROM pg_catalog.pg_ts_config c
                                          JOIN pg_catalog.pg_namespace n ON n.oid = c.cfgnamespace
                                         WHERE c.cfgname = (pg_catalog.parse_ident(u.config))[2]::name
                                           AND n.nspname = (pg_catalog.parse_ident(u.config))[1]::name), s.name
                 FROM rag.source s
                CROSS JOIN LATERAL (
                    SELECT s.text_search_config AS config WHERE s.text_search_config <> $2
                    UNION
                    SELECT r.config FROM (
                        WITH RECURSIVE read_by (config) AS (
                            SELECT (SELECT d.text_search_config FROM rag.document d
                                     WHERE d.source_id + 0 = s.id AND d.current AND d.text_search_config IS NOT NULL
                                     ORDER BY d.text_search_config LIMIT 1)
                            UNION ALL
                            SELECT (SELECT d.text_search_config FROM rag.document d
                                     WHERE d.source_id + 0 = s.id AND d.current AND d.text_search_config > l.config
                                     ORDER BY d.text_search_config LIMIT 1)
                              FROM read_by l WHERE l.config IS NOT NULL)
                        SELECT config FROM read_by WHERE config IS NOT NULL) r) u
                WHERE s.collection_id = $1 ORDER BY 1, 3";
    let mut configs = Configs::default();
    let read = |row: &Row| Ok((row.get::<String>(1)?, row.get(2)?, row.get(3)?));
    for (config, exists, source) in spi::by_keys(|| spi::select(sql, &[collection_id.into(), AUTO.into()], read))? {
        match exists {
            true => configs.usable.push(config),
            false => configs.missing.push((source, config)),
        }
    }
    configs.usable.dedup();
    Ok(configs)
}
