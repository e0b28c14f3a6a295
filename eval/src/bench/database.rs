// SPDX-License-Identifier: PostgreSQL

//! A database for what measures on invented or on many passages: made, and dropped whatever came of it.
//!
//! Such a figure writes internal tables, takes an index away and vacuums, which nobody's database should be exposed to; and
//! what one figure leaves behind would be in the next one's numbers.

use super::turns::Connect;
use crate::db;
use rag_core::Result;

const NAME: &str = "rag_bench";

/// Does something in a new database that has the extension and nothing else.
pub fn with_own<T>(dsn: Option<&str>, work: impl FnOnce(Connect<'_>) -> Result<T>) -> Result<T> {
    let connect: Connect<'_> = &|| db::connect_to(dsn, NAME);
    remove(dsn)?;
    one_by_one(db::connect(dsn)?, &[&format!("CREATE DATABASE {NAME}")])?;
    let extension = ["SET client_min_messages = warning", "CREATE EXTENSION pg_rag CASCADE"];
    let done = connect().and_then(|client| one_by_one(client, &extension)).and_then(|()| work(connect));
    let removed = remove(dsn);
    done.and_then(|done| removed.map(|()| done))
}

/// By a connection of its own, because the server may have been restarted since.
fn remove(dsn: Option<&str>) -> Result<()> {
    let drop = format!("DROP DATABASE IF EXISTS {NAME} WITH (FORCE)");
    one_by_one(db::connect(dsn)?, &["SET client_min_messages = warning", &drop])
}

/// A database is made and dropped by a statement that stands alone.
fn one_by_one(mut client: postgres::Client, statements: &[&str]) -> Result<()> {
    statements.iter().try_for_each(|sql| client.batch_execute(sql).map_err(|e| db::sql(sql, &e)))
}
