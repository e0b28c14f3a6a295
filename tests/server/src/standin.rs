// SPDX-License-Identifier: PostgreSQL

//! A model that costs nothing, for tests of anything but meaning: embedding with it takes no time worth measuring.
//!
//! Its tokens are those of the installed model, so what is chunked is chunked as usual. Owns the making of its folder and of
//! a collection that uses it.

use crate::{Cluster, TestResult, project};
use postgres::Client;
use std::path::{Path, PathBuf};

/// Name of the model and of the collection.
pub const STANDIN: &str = "standin";

/// Loads the model and makes a collection with it, both named [`STANDIN`].
pub fn collection(cluster: &Cluster, client: &mut Client) -> TestResult {
    let sharedir: String =
        client.query_one("SELECT setting FROM pg_catalog.pg_config WHERE name = 'SHAREDIR'", &[])?.get(0);
    let tokenizer = Path::new(&sharedir).join("pg_rag/models/all-MiniLM-L6-v2-int8/tokenizer.json");
    let network = project().join("tests/server/model/model.onnx");
    let mut folder = PathBuf::new();
    for (name, content) in [
        ("tokenizer.json", std::fs::read(tokenizer)?),
        ("model.onnx", std::fs::read(network)?),
        ("config.json", br#"{"hidden_size": 8, "max_position_embeddings": 256}"#.to_vec()),
    ] {
        folder = cluster.write(&format!("{STANDIN}/{name}"), content)?;
    }
    let folder = folder.parent().unwrap_or(&folder).display().to_string();
    client.execute("SELECT rag.load_model($1, 'embedding', $2)", &[&STANDIN, &folder])?;
    client.execute("SELECT rag.create_collection($1, $1)", &[&STANDIN])?;
    Ok(())
}
