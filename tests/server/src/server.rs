// SPDX-License-Identifier: PostgreSQL

//! The installed server and the user it runs as.
//!
//! Owns how a program of the server is started and the cached result of `initdb`; knows nothing of a running cluster.

use crate::{Failure, TestResult};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An installed PostgreSQL.
#[derive(Debug, Clone)]
pub struct Server {
    /// Folder of its programs.
    pub bin: PathBuf,
    version: String,
    user: Option<User>,
    /// User id that the server's files belong to.
    pub uid: u32,
}

/// Whom root runs the server as.
#[derive(Debug, Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl Server {
    /// The one that `PG_CONFIG` names.
    pub fn from_environment() -> TestResult<Self> {
        let pg_config = env::var_os("PG_CONFIG").filter(|p| !p.is_empty()).ok_or_else(|| {
            Failure::new("PG_CONFIG is not set: run `make server-test`, which installs pg_rag and sets it")
        })?;
        let ask = |what: &str| -> TestResult<String> {
            let output = Command::new(&pg_config).arg(what).output().map_err(|e| {
                Failure::new(format!("PG_CONFIG {pg_config:?} does not run ({e}): run `make server-test`"))
            })?;
            Ok(text(&output, "pg_config")?.trim().to_owned())
        };
        let (bin, version) = (PathBuf::from(ask("--bindir")?), ask("--version")?);
        let me = fs::metadata("/proc/self")?.uid();
        let user = if me == 0 {
            Some(User::named(&env::var("RAG_SERVER_USER").unwrap_or_else(|_| "nobody".into()))?)
        } else {
            None
        };
        Ok(Self { bin, version, uid: user.map_or(me, |u| u.uid), user })
    }

    /// A program of the server, to be run as the server's user.
    pub fn program(&self, name: &str) -> Command {
        self.as_user(self.bin.join(name))
    }

    /// Any program, to be run as the server's user.
    pub fn as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match self.user {
            Some(User { uid, gid }) => {
                let mut command = Command::new("setpriv");
                command.args([
                    format!("--reuid={uid}"),
                    format!("--regid={gid}"),
                    "--clear-groups".into(),
                    "--".into(),
                ]);
                command.arg(program);
                command
            }
            None => Command::new(program),
        };
        // The tester's folder may be closed to the server's user, and so may be its home.
        command.current_dir("/").env("HOME", "/tmp").env("LC_ALL", "C");
        for name in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGOPTIONS"] {
            command.env_remove(name);
        }
        command
    }

    /// Gives a path to the server's user.
    pub fn give(&self, path: &Path) -> TestResult {
        if let Some(User { uid, gid }) = self.user {
            std::os::unix::fs::chown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    }

    /// Copies a fresh data folder to `target`. `initdb` runs once for each version and is then copied.
    pub fn init(&self, target: &Path) -> TestResult {
        let template = self.template()?;
        run(self.as_user("cp").args(["-a", "--reflink=auto", "--"]).arg(&template).arg(target))?;
        Ok(())
    }

    fn template(&self) -> TestResult<PathBuf> {
        let digest = rag_core::provenance::ContentHash::of(format!("{} {}", self.version, self.bin.display()));
        let name = format!("pg_rag_template_{}_{}", self.uid, &format!("{digest}")[..12]);
        let template = env::temp_dir().join(&name);
        let lock = File::create(env::temp_dir().join(format!("{name}.lock_{}", fs::metadata("/proc/self")?.uid())))?;
        lock.lock()?;
        if !template.exists() {
            let fresh = env::temp_dir().join(format!("{name}.new"));
            if fresh.exists() {
                fs::remove_dir_all(&fresh)?;
            }
            // The folder for temporary files may be closed to the server's user.
            fs::create_dir(&fresh)?;
            self.give(&fresh)?;
            run(self
                .program("initdb")
                .args([
                    "-U",
                    "postgres",
                    "-A",
                    "trust",
                    "-E",
                    "UTF8",
                    "--locale=C",
                    "--no-sync",
                    "--no-instructions",
                    "-D",
                ])
                .arg(&fresh))?;
            fs::rename(&fresh, &template)?;
        }
        // The folder for temporary files is open to all: somebody else's cluster is not to be run.
        if fs::symlink_metadata(&template)?.uid() != self.uid {
            return Err(Failure::new(format!("{} belongs to another user: remove it", template.display())));
        }
        Ok(template)
    }
}

impl User {
    fn named(name: &str) -> TestResult<Self> {
        let id =
            |flag: &str| -> TestResult<u32> { Ok(run(Command::new("id").args([flag, "--", name]))?.trim().parse()?) };
        let user = Self { uid: id("-u")?, gid: id("-g")? };
        if user.uid == 0 {
            return Err(Failure::new("RAG_SERVER_USER is root: PostgreSQL refuses to run as root"));
        }
        Ok(user)
    }
}

/// Runs a command and returns its standard output; fails with all it wrote.
pub fn run(command: &mut Command) -> TestResult<String> {
    let what = format!("{command:?}");
    let output = command.output().map_err(|e| Failure::new(format!("{what}: {e}")))?;
    text(&output, &what)
}

fn text(output: &Output, what: &str) -> TestResult<String> {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(Failure::new(format!("{what}: {}\n{out}{err}", output.status)));
    }
    Ok(out.into_owned())
}
