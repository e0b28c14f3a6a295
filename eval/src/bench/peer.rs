// SPDX-License-Identifier: PostgreSQL

//! Extensions with an access method for BM25, where the server has one: they take part in the comparisons.
//!
//! Owns how each makes its index over a table with the columns `id` and `content`, and how it is asked for the best hundred.
//! An extension that was not there before is made in a schema of its own and dropped at the end. One that is not installed,
//! or cannot be made (another has the name of its access method, the library is not preloaded), is named in a note: a
//! comparison must say whom it left out.

use crate::db;
use postgres::Client;
use rag_core::Result;

/// Settings of a session that asks a peer.
pub const SESSION: &str = "SET search_path = rag_bench, rag_bench_peer, public";

const DROP: &str = "DROP SCHEMA IF EXISTS rag_bench_peer CASCADE";

/// An extension and its ways.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Name of the extension.
    pub extension: &'static str,
    index: &'static str,
    best: &'static str,
}

const PEERS: [Peer; 2] = [
    Peer {
        extension: "pg_textsearch",
        index: "CREATE INDEX {index} ON {table} USING bm25 (content) WITH (text_config = 'english')",
        best: "SELECT id, -(content <@> to_bm25query($1, '{index}')) AS score FROM {table}
                ORDER BY content <@> to_bm25query($1, '{index}') LIMIT 100",
    },
    Peer {
        extension: "pg_search",
        index: "CREATE INDEX {index} ON {table} USING bm25 (id, content) WITH (key_field = 'id')",
        best: "SELECT id, paradedb.score(id) AS score FROM {table}
                WHERE id @@@ paradedb.match('content', $1) ORDER BY score DESC LIMIT 100",
    },
];

impl Peer {
    /// The statement for the best hundred of a table, with their scores, for the words in `$1`.
    pub fn best(&self, table: &str) -> String {
        with_names(self.best, table)
    }
}

/// Peers that are ready to be asked, and what is to be said of the others.
#[derive(Debug, Default)]
pub struct Peers {
    /// Those that are ready.
    pub ready: Vec<Peer>,
    /// A note on each of the others.
    pub notes: Vec<String>,
    made: Vec<&'static str>,
}

impl Peers {
    /// All that could be there.
    pub fn known() -> &'static [Peer] {
        &PEERS
    }

    /// Makes the indexes of those that the server has, on a table that [`SESSION`] finds.
    pub fn make(client: &mut Client, table: &str) -> Result<Self> {
        let failed = |e: postgres::Error| db::sql("could not look for other extensions", &e);
        client.batch_execute(DROP).map_err(failed)?;
        client.batch_execute("CREATE SCHEMA rag_bench_peer").map_err(failed)?;
        let mut peers = Self::default();
        for peer in PEERS {
            let sql = "SELECT a.installed_version IS NOT NULL,
                              EXISTS (SELECT FROM pg_available_extension_versions v
                                       WHERE v.name = a.name AND v.version = a.default_version AND v.schema IS NULL)
                         FROM pg_available_extensions a WHERE a.name = $1";
            let Some(row) = client.query_opt(sql, &[&peer.extension]).map_err(failed)? else {
                peers.notes.push(format!("{} is not present on this server.", peer.extension));
                continue;
            };
            let (installed, anywhere): (bool, bool) = (row.get(0), row.get(1));
            match peer.index_on(client, table, installed, anywhere) {
                Ok(()) => {
                    peers.ready.push(peer);
                    peers.made.extend((!installed).then_some(peer.extension));
                }
                Err(error) => peers.notes.push(format!("{} could not take part: {error}.", peer.extension)),
            }
        }
        Ok(peers)
    }

    /// Drops what was made, and the indexes with it.
    pub fn drop(self, client: &mut Client) -> Result<()> {
        let extensions = self.made.iter().map(|name| format!("DROP EXTENSION {name} CASCADE"));
        let mut statements = extensions.chain([DROP.to_owned()]);
        statements.try_for_each(|sql| client.batch_execute(&sql).map_err(|e| db::sql(&sql, &e)))
    }
}

/// The index is in the schema of its table, which the session finds.
fn with_names(sql: &str, table: &str) -> String {
    sql.replace("{table}", table).replace("{index}", &format!("{table}_peer"))
}

impl Peer {
    fn index_on(&self, client: &mut Client, table: &str, installed: bool, anywhere: bool) -> Result<()> {
        let failed = |e: postgres::Error| db::sql(self.extension, &e);
        let mut transaction = client.transaction().map_err(failed)?;
        if !installed {
            let schema = if anywhere { " SCHEMA rag_bench_peer" } else { "" };
            let create = format!("CREATE EXTENSION {}{schema}", self.extension);
            transaction.batch_execute(&create).map_err(failed)?;
        }
        let local = SESSION.replacen("SET", "SET LOCAL", 1);
        transaction.batch_execute(&local).map_err(failed)?;
        transaction.batch_execute(&with_names(self.index, table)).map_err(failed)?;
        transaction.commit().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_asked_for_a_hundred_of_the_table_that_it_has_indexed() {
        for peer in PEERS {
            let best = peer.best("passage");
            assert!(best.contains("FROM passage") && best.contains("$1") && best.ends_with("LIMIT 100"), "{best}");
            assert!(!best.contains('{') && peer.index.contains("ON {table} "), "{best}");
        }
    }
}
