// SPDX-License-Identifier: PostgreSQL

//! The planner's statistics of the tables that a sync fills.
//!
//! Autovacuum renews them within a minute, if it has a worker to spare; a query that comes before takes a hundred thousand new
//! rows for one, and a join of them for nothing. So whoever has just written much renews them himself.

use crate::spi;
use rag_core::Result;

/// Rows written since the last time from which statistics are outdated, besides a share of the table (that of autovacuum, but
/// more rows: a sync of a few documents should not read samples of three tables).
const ROWS: i64 = 1000;
const SHARE: f64 = 0.1;

/// Renews what is outdated, where the caller has the right to; who has not leaves it to autovacuum.
pub fn renew() -> Result<()> {
    let sql = "SELECT c.relname::text FROM pg_catalog.pg_class c
                WHERE c.oid IN ('rag.document'::regclass, 'rag.chunk'::regclass, 'rag.chunk_embedding'::regclass)
                  AND pg_catalog.pg_stat_get_mod_since_analyze(c.oid) > $1 + $2 * greatest(c.reltuples, 0)
                  AND CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 170000
                           THEN pg_catalog.has_table_privilege(c.oid, 'MAINTAIN')
                           ELSE pg_catalog.pg_has_role(c.relowner, 'USAGE') END
                ORDER BY c.oid";
    let outdated: Vec<String> = spi::select(sql, &[ROWS.into(), SHARE.into()], |row| row.get(1))?;
    outdated.iter().try_for_each(|table| spi::command(&format!("ANALYZE rag.{table}")))
}
