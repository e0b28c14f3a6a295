// SPDX-License-Identifier: PostgreSQL

//! The connection to the server under test.
//!
//! Owns how a server is found (libpq's environment variables or a connection string) and how its errors are told: a
//! failure of the server keeps the server's message, detail and hint.

use postgres::{Client, Config, NoTls};
use rag_core::error::Kind;
use rag_core::{Error, Result};
use std::env;

/// Connects by `dsn`, or by `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD` and `PGDATABASE`.
///
/// Notices of the server go to standard error, so that a long sync can be watched.
pub fn connect(dsn: Option<&str>) -> Result<Client> {
    open(config(dsn)?)
}

/// Connects to another database of the same server.
pub fn connect_to(dsn: Option<&str>, database: &str) -> Result<Client> {
    let mut config = config(dsn)?;
    config.dbname(database);
    open(config)
}

fn config(dsn: Option<&str>) -> Result<Config> {
    match dsn {
        Some(dsn) => dsn.parse::<Config>().map_err(|e| Error::invalid(format!("bad connection string: {e}"))),
        None => from_environment(),
    }
}

fn open(mut config: Config) -> Result<Client> {
    config.application_name("rag_eval");
    config.notice_callback(|notice| eprintln!("{}: {}", notice.severity().to_lowercase(), notice.message()));
    config.connect(NoTls).map_err(|e| sql("could not connect", &e))
}

fn from_environment() -> Result<Config> {
    let host = env::var("PGHOST").map_err(|_| {
        Error::invalid("no server given").with_hint(
            "Set PGHOST (a host or the folder of the server's socket), PGPORT, PGUSER and PGDATABASE, or use --dsn.",
        )
    })?;
    let mut config = Config::new();
    // A host that begins with a slash is the folder of a Unix socket.
    config.host(&host);
    if let Ok(port) = env::var("PGPORT") {
        config.port(port.parse().map_err(|_| Error::invalid(format!("PGPORT \"{port}\" is not a port")))?);
    }
    let user = env::var("PGUSER").or_else(|_| env::var("USER")).unwrap_or_else(|_| "postgres".to_owned());
    config.user(&user);
    config.dbname(env::var("PGDATABASE").as_ref().unwrap_or(&user));
    if let Ok(password) = env::var("PGPASSWORD") {
        config.password(password);
    }
    Ok(config)
}

/// A failure of the server while doing `what`.
pub fn sql(what: &str, error: &postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db) => {
            let mut told = Error::new(Kind::Io, format!("{what}: {} ({})", db.message(), db.code().code()));
            told.detail = db.detail().map(str::to_owned);
            told.hint = db.hint().map(str::to_owned);
            told
        }
        None => Error::new(Kind::Connection, format!("{what}: {error}")),
    }
}

/// Whether the server refused because a thing of that name exists already.
pub fn is_duplicate(error: &postgres::Error) -> bool {
    error.code() == Some(&postgres::error::SqlState::DUPLICATE_OBJECT)
}

/// What the numbers were measured on: one `name: value` per line, without a date.
pub fn environment(client: &mut Client) -> Result<Vec<(String, String)>> {
    let versions = client
        .query(
            "SELECT 'PostgreSQL', current_setting('server_version') UNION ALL
             (SELECT extname::text, extversion FROM pg_extension WHERE extname IN ('vector', 'pg_rag') ORDER BY 1)",
            &[],
        )
        .map_err(|e| sql("could not read the versions", &e))?;
    let mut facts: Vec<(String, String)> = versions.iter().map(|row| (row.get(0), row.get(1))).collect();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    facts.push(("cores".to_owned(), cores.to_string()));
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if let Some(model) = cpu.lines().find_map(|l| l.strip_prefix("model name")) {
        facts.push(("processor".to_owned(), model.trim_start_matches([' ', '\t', ':']).to_owned()));
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_connection_string_is_told() {
        let error = connect(Some("host=/tmp port=many")).err().expect("refused");
        assert!(error.message.starts_with("bad connection string"), "{error}");
    }
}
