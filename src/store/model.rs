// SPDX-License-Identifier: PostgreSQL

//! Table `rag.model`.

use crate::spi::{self, Row};
use rag_core::protocol::{ModelSpec, Pooling};
use rag_core::{Error, Kind, Result};

/// A model with its key.
#[derive(Debug, Clone)]
pub struct Model {
    /// Key.
    pub id: i64,
    /// What the engine needs.
    pub spec: ModelSpec,
}

const COLUMNS: &str = "m.id, m.name, m.path, m.sha256, m.dimensions, m.max_tokens, m.pooling, m.normalize, m.query_prefix, m.passage_prefix";

fn read(row: &Row) -> Result<Model> {
    let unsigned = |column| row.get::<i32>(column).map(i32::unsigned_abs);
    Ok(Model {
        id: row.get(1)?,
        spec: ModelSpec {
            name: row.get(2)?,
            path: row.get(3)?,
            sha256: row.optional(4)?,
            dimensions: unsigned(5)?,
            max_tokens: unsigned(6)?,
            pooling: match row.get::<String>(7)?.as_str() {
                "cls" => Pooling::Cls,
                _ => Pooling::Mean,
            },
            normalize: row.get(8)?,
            query_prefix: row.get(9)?,
            passage_prefix: row.get(10)?,
        },
    })
}

/// The model of a name.
pub fn by_name(name: &str) -> Result<Model> {
    let sql = format!("SELECT {COLUMNS} FROM rag.model m WHERE m.name = $1");
    match spi::select_one(&sql, &[name.into()], read)? {
        Some(model) => Ok(model),
        None => Err(super::not_found("model", name, &super::names("SELECT name FROM rag.model ORDER BY name")?)),
    }
}

/// The model of a key.
pub fn by_id(id: i64) -> Result<Model> {
    let sql = format!("SELECT {COLUMNS} FROM rag.model m WHERE m.id = $1");
    spi::select_one(&sql, &[id.into()], read)?.ok_or_else(|| Error::internal(format!("model {id} does not exist")))
}

/// Adds a model and returns its key.
pub fn insert(spec: &ModelSpec) -> Result<i64> {
    let sql = "INSERT INTO rag.model (name, kind, path, sha256, dimensions, max_tokens, pooling, normalize,
                                      query_prefix, passage_prefix)
               VALUES ($1, 'embedding', $2, $3, $4, $5, $6, $7, $8, $9)
               ON CONFLICT (name) DO NOTHING RETURNING id";
    let pooling = match spec.pooling {
        Pooling::Mean => "mean",
        Pooling::Cls => "cls",
    };
    let args = [
        spec.name.as_str().into(),
        spec.path.as_str().into(),
        spec.sha256.clone().into(),
        (spec.dimensions as i32).into(),
        (spec.max_tokens as i32).into(),
        pooling.into(),
        spec.normalize.into(),
        spec.query_prefix.as_str().into(),
        spec.passage_prefix.as_str().into(),
    ];
    spi::write(sql, &args, |row| row.get(1))?
        .pop()
        .ok_or_else(|| Error::new(Kind::AlreadyExists, format!("model \"{}\" already exists", spec.name)))
}
