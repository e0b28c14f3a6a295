// SPDX-License-Identifier: PostgreSQL

//! The planner's statistics of the tables that a sync fills.
//!
//! Autovacuum renews them within a minute, if it has a worker to spare; a query that comes before takes a hundred thousand new
//! rows for one, and a join of them for nothing. So whoever has just written much renews them himself.

use crate::spi;
use rag_core::Result;

/// How much a table must have grown since the last time: to so many times its pages, and so many more. The planner knows by itself
/// how many pages there are, so the little growth of an old table changes nothing; and the counters of written rows, which
/// autovacuum goes by, are not told before the end of a `CALL`.
const TIMES: f64 = 1.5;
const PAGES: i64 = 32;

/// Renews what is outdated, where the caller has the right to; who has not leaves it to autovacuum.
pub fn renew() -> Result<()> {
    let sql = "SELECT c.relname::text FROM pg_catalog.pg_class c
                WHERE c.oid IN ('rag.document'::regclass, 'rag.chunk'::regclass, 'rag.chunk_embedding'::regclass)
                  AND pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::int > $1 + $2 * c.relpages
                  AND CASE WHEN pg_catalog.current_setting('server_version_num')::int >= 170000
                           THEN pg_catalog.has_table_privilege(c.oid, 'MAINTAIN')
                           ELSE pg_catalog.pg_has_role(c.relowner, 'USAGE') END
                ORDER BY c.oid";
    let outdated: Vec<String> = spi::select(sql, &[PAGES.into(), TIMES.into()], |row| row.get(1))?;
    outdated.iter().try_for_each(|table| spi::command(&format!("ANALYZE rag.{table}")))
}
