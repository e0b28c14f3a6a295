// SPDX-License-Identifier: PostgreSQL

//! One throwaway cluster.
//!
//! Everything lies in one folder: `data/` (the server's), the socket, `log`, and `files/` for what is ingested, which
//! `pg_rag.allowed_paths` names. The folder is removed at the end and kept when the test failed.

use crate::process::{self, Process};
use crate::server::{Server, run};
use crate::{Failure, TestResult};
use postgres::{Client, Config, NoTls};
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Roll back and disconnect everybody.
    Fast,
    /// Quit at once; the next start recovers.
    Immediate,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Fast => "fast",
            Mode::Immediate => "immediate",
        }
    }
}

/// A cluster of its own. Dropping it stops the server and removes the folder.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    folder: PathBuf,
    keep: bool,
}

/// Runs a test on a fresh cluster with pg_rag; `settings` are lines of postgresql.conf.
pub fn with_cluster(settings: &[&str], test: impl FnOnce(&mut Cluster) -> TestResult) -> TestResult {
    with(settings, true, test)
}

/// Runs a test on a fresh cluster without pg_rag.
pub fn with_bare_cluster(settings: &[&str], test: impl FnOnce(&mut Cluster) -> TestResult) -> TestResult {
    with(settings, false, test)
}

fn with(settings: &[&str], extension: bool, test: impl FnOnce(&mut Cluster) -> TestResult) -> TestResult {
    let mut cluster = Cluster::create(settings)?;
    // Until the test is through, whatever happens is a failure.
    cluster.keep = true;
    cluster.start()?;
    if extension {
        cluster.create_extension()?;
    }
    test(&mut cluster)?;
    cluster.keep = thread::panicking();
    Ok(())
}

impl Cluster {
    /// Makes the folder and the configuration.
    fn create(settings: &[&str]) -> TestResult<Self> {
        let cluster = Self::folder(Server::from_environment()?)?;
        cluster.make_folder(&cluster.files())?;
        cluster.server.init(&cluster.data())?;
        cluster.configure(settings)?;
        Ok(cluster)
    }

    fn folder(server: Server) -> TestResult<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pg_rag_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(name);
        // The path of a socket has 107 bytes at most, and the server adds a name of its own.
        if folder.as_os_str().len() > 85 {
            return Err(Failure::new(format!("TMPDIR is too long for a socket in {}", folder.display())));
        }
        fs::create_dir(&folder)?;
        let cluster = Self { server, folder, keep: false };
        fs::set_permissions(&cluster.folder, Permissions::from_mode(0o755))?;
        cluster.server.give(&cluster.folder)?;
        Ok(cluster)
    }

    fn configure(&self, settings: &[&str]) -> TestResult {
        let own = [
            "listen_addresses = ''".to_owned(),
            format!("unix_socket_directories = '{}'", self.folder.display()),
            "port = 5432".to_owned(),
            // A crash of the machine is not what is tested.
            "fsync = off".to_owned(),
            "shared_buffers = 64MB".to_owned(),
            "log_line_prefix = '%m [%p] '".to_owned(),
            format!("pg_rag.allowed_paths = '{}'", self.files().display()),
        ];
        let mut conf = OpenOptions::new().append(true).open(self.data().join("postgresql.conf"))?;
        let everywhere = env::var("RAG_SERVER_CONF").unwrap_or_default();
        for line in own.iter().map(String::as_str).chain(everywhere.lines()).chain(settings.iter().copied()) {
            writeln!(conf, "{line}")?;
        }
        Ok(())
    }

    /// A standby of this server that follows it, on the same machine; it may read the same files.
    pub fn standby(&self) -> TestResult<Cluster> {
        let standby = Self::folder(self.server.clone())?;
        let mut copy = self.program("pg_basebackup");
        run(copy.args(["-R", "-X", "stream", "-c", "fast", "-D"]).arg(standby.data()))?;
        let mut conf = OpenOptions::new().append(true).open(standby.data().join("postgresql.conf"))?;
        writeln!(conf, "unix_socket_directories = '{}'", standby.folder.display())?;
        standby.start()?;
        Ok(standby)
    }

    fn create_extension(&self) -> TestResult {
        let created = self.connect()?.batch_execute("CREATE EXTENSION pg_rag CASCADE");
        created.map_err(|e| {
            Failure::new(format!("{}\npg_rag is not usable in this server: run `make server-test`", Failure::from(e)))
        })
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of the socket.
    pub fn socket(&self) -> &Path {
        &self.folder
    }

    /// The folder that sources may read.
    pub fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// A program of the server with the environment that makes it connect here.
    pub fn program(&self, name: &str) -> Command {
        let mut command = self.server.program(name);
        command
            .env("PGHOST", self.socket())
            .env("PGPORT", "5432")
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres");
        command
    }

    /// Writes a file beneath [`Cluster::files`], readable by the server, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> TestResult<PathBuf> {
        let path = self.files().join(name);
        if let Some(parent) = path.parent() {
            self.make_folder(parent)?;
        }
        fs::write(&path, content)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        Ok(path)
    }

    /// Makes a folder and its parents, readable by the server whatever the umask is.
    fn make_folder(&self, folder: &Path) -> TestResult {
        fs::create_dir_all(folder)?;
        for part in folder.ancestors().take_while(|part| *part != self.folder) {
            fs::set_permissions(part, Permissions::from_mode(0o755))?;
        }
        Ok(())
    }

    /// Starts the server and waits until it accepts connections.
    pub fn start(&self) -> TestResult {
        let log = self.folder.join("log");
        let started = run(self
            .server
            .program("pg_ctl")
            .args(["-w", "-t", "60", "-D"])
            .arg(self.data())
            .arg("-l")
            .arg(&log)
            .arg("start"));
        started.map(|_| ()).map_err(|e| Failure::new(format!("{e}\n{}", self.log())))
    }

    /// Stops the server and waits until it is gone; returns how long that took.
    pub fn stop(&self, mode: Mode) -> TestResult<Duration> {
        let started = Instant::now();
        run(self
            .server
            .program("pg_ctl")
            .args(["-w", "-t", "60", "-m", mode.name(), "-D"])
            .arg(self.data())
            .arg("stop"))?;
        Ok(started.elapsed())
    }

    /// Stops and starts the server.
    pub fn restart(&self, mode: Mode) -> TestResult {
        self.stop(mode)?;
        self.start()
    }

    /// A new session as superuser.
    pub fn connect(&self) -> TestResult<Client> {
        Ok(self.config().connect(NoTls)?)
    }

    /// A new session as superuser in another database.
    pub fn connect_to(&self, database: &str) -> TestResult<Client> {
        Ok(self.config().dbname(database).connect(NoTls)?)
    }

    /// A new session of another role.
    pub fn connect_as(&self, role: &str) -> TestResult<Client> {
        Ok(self.config().user(role).connect(NoTls)?)
    }

    /// A new session as soon as the server takes one, for instance after a crash.
    pub fn reconnect(&self) -> TestResult<Client> {
        let mut client = None;
        process::wait_until("the server takes connections", Duration::from_secs(60), || {
            client = self.config().connect(NoTls).ok();
            client.as_mut().is_some_and(|client| client.simple_query("SELECT 1").is_ok())
        })?;
        client.ok_or_else(|| Failure::new("no connection"))
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.host_path(self.socket()).port(5432).user("postgres").dbname("postgres");
        config
    }

    /// The server log so far.
    pub fn log(&self) -> String {
        fs::read(self.folder.join("log")).map_or_else(|e| e.to_string(), |b| String::from_utf8_lossy(&b).into_owned())
    }

    /// The postmaster's process id.
    pub fn postmaster(&self) -> TestResult<i32> {
        let file = fs::read_to_string(self.data().join("postmaster.pid"))?;
        Ok(file.lines().next().unwrap_or_default().trim().parse()?)
    }

    /// Process ids of all client sessions, in order.
    pub fn backends(&self, client: &mut Client) -> TestResult<Vec<i32>> {
        let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' ORDER BY pid";
        Ok(client.query(sql, &[])?.iter().map(|row| row.get(0)).collect())
    }

    /// The engine, which must be running.
    pub fn engine(&self, client: &mut Client) -> TestResult<Process> {
        let pid: Option<i32> = client.query_one("SELECT engine_pid FROM rag.health()", &[])?.get(0);
        let pid = pid.filter(|p| *p > 0).ok_or_else(|| Failure::new("rag.health() names no engine"))?;
        Process::find(pid).ok_or_else(|| Failure::new(format!("the engine {pid} of rag.health() is not alive")))
    }

    /// Living processes of this cluster, whoever their parent is.
    pub fn processes(&self) -> Vec<Process> {
        process::of_folder(&self.data())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() && self.stop(Mode::Immediate).is_err() {
            // A server that does not stop must not outlive its test.
            for process in self.processes() {
                process::signal(process.pid, "KILL").ok();
            }
        }
        if self.keep || thread::panicking() {
            eprintln!("the cluster of the failed test is kept in {} (its log is the file log)", self.folder.display());
        } else if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("could not remove {}: {error}", self.folder.display());
        }
    }
}
