// SPDX-License-Identifier: PostgreSQL

//! pg_rag: the PostgreSQL edge.
//!
//! Translates, stores and schedules; holds no algorithm. SQL functions are in [`api`], which parses arguments and calls
//! one of [`sync`] (a source into the catalog), [`retrieve`] (a query into evidence) or [`evaluate`] (questions into numbers); both stand on [`store`] (one
//! file per table) and that on [`spi`] (the only door to SQL) and [`am`] (rows by an index, without SQL). Models and parsers live in another process, reached
//! through [`engine_client`] (for models by [`inference`]) and supervised by [`worker`]. The pure rules are the crate `rag_core`'s.
//!
//! The schema is made by the SQL files listed below, in this order, each requiring the one before.

mod am;
mod api;
mod engine_client;
mod error;
mod evaluate;
mod guc;
mod inference;
mod json;
mod retrieve;
mod spi;
mod store;
mod sync;
mod tsvector;
mod vector;
mod worker;

pgrx::pg_module_magic!(name, version);

/// Names the schema of all functions for the generator; the bootstrap script makes it.
#[pgrx::pg_schema]
mod rag {}

pgrx::extension_sql_file!("../sql/schema/00_schema.sql", name = "schema", bootstrap);
pgrx::extension_sql_file!("../sql/schema/10_tables.sql", name = "tables", requires = ["schema"]);
pgrx::extension_sql_file!("../sql/schema/15_references.sql", name = "references", requires = ["tables"]);
pgrx::extension_sql_file!("../sql/schema/17_lexical.sql", name = "lexical", requires = ["references"]);
pgrx::extension_sql_file!("../sql/schema/18_evaluation.sql", name = "evaluation", requires = ["lexical"]);
pgrx::extension_sql_file!("../sql/schema/20_builtin.sql", name = "builtin", requires = ["evaluation"]);
pgrx::extension_sql_file!("../sql/schema/25_policies.sql", name = "policies", requires = ["builtin"]);
pgrx::extension_sql_file!("../sql/schema/30_views.sql", name = "views", requires = ["policies"]);
pgrx::extension_sql_file!("../sql/schema/35_comments.sql", name = "comments", requires = ["views"]);
pgrx::extension_sql_file!("../sql/schema/40_procedures.sql", name = "procedures", requires = ["comments"]);
pgrx::extension_sql_file!("../sql/schema/90_grants.sql", name = "grants", finalize);

/// Called by PostgreSQL when the library is loaded.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    // A server started from a shell with RUST_BACKTRACE would put a backtrace into the DETAIL of every error.
    // SAFETY: a backend has one thread, and nothing else runs while the library is loaded.
    unsafe { std::env::set_var("RUST_LIB_BACKTRACE", "0") };
    guc::define();
    worker::preload_launcher();
}
