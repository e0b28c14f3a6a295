// SPDX-License-Identifier: PostgreSQL

//! Tests that need a server of their own: crash, restart, stop, README, judged numbers.
//!
//! This library is the harness. It owns throwaway clusters ([`Cluster`]: start, stop, restart, kill, clean up), the
//! look at processes from outside ([`process`]) and the reading of README blocks ([`readme`]); the tests lie in
//! `tests/`, one file per question. A test here must not reach into the extension's internals where a view or a
//! function of the product says the same.
//!
//! `PG_CONFIG` names the `pg_config` of a server that has pg_rag installed; `make server-test` sets it up. As root the
//! server runs as the user in `RAG_SERVER_USER`, or `nobody`, because PostgreSQL refuses to run as root. `RAG_SERVER_CONF`
//! holds further lines of postgresql.conf for all clusters, to run every test under another setting.
//!
//! A test is a closure, so that a cluster is kept for inspection whether the test fails by `?` or by a panic:
//!
//! ```no_run
//! use rag_server_tests::{TestResult, with_cluster};
//! # fn main() -> TestResult {
//! with_cluster(&["pg_rag.parse_workers = 1"], |cluster| {
//!     let one: i32 = cluster.connect()?.query_one("SELECT 1", &[])?.get(0);
//!     assert_eq!(one, 1);
//!     Ok(())
//! })
//! # }
//! ```
#![deny(missing_docs)]

pub mod chaos;
mod cluster;
mod failure;
pub mod process;
pub mod readme;
mod server;
pub mod site;
pub mod standin;

pub use cluster::{Cluster, Mode, with_bare_cluster, with_cluster};
pub use failure::{Failure, TestResult};
pub use rag_eval::bm25;

use std::path::{Path, PathBuf};

/// The project's root folder.
pub fn project() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// A file or folder of the data that lies beside a development checkout; `None`, and a message, where it does not.
pub fn data(name: &str) -> Option<PathBuf> {
    let path = project().join("../shared/data").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: ../shared/data/{name} is not there");
    None
}
