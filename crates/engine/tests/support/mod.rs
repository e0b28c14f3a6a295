// SPDX-License-Identifier: PostgreSQL

//! Starts an engine as the supervisor does, and talks to it as a backend does.
// Each test program uses a part.
#![allow(dead_code)]

pub mod reading;

use rag_core::protocol::{Answer, ModelSpec, PROTOCOL_VERSION, Pooling, Reply, Request, decode, encode, frame_length};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Folder of clones, beneath that of an engine.
const CLONES: &str = "clones";

/// A running engine; killed when dropped.
pub struct Engine {
    pub child: Child,
    pub folder: tempfile::TempDir,
    _listener: UnixListener,
}

/// A connection after its handshake.
pub struct Client(pub UnixStream);

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn from_env(name: &str, default: &str) -> PathBuf {
    std::env::var_os(name).map_or_else(|| root().join(default), PathBuf::from)
}

pub fn models() -> PathBuf {
    from_env("RAG_TEST_MODELS", "target/run/models")
}

pub fn onnxruntime() -> PathBuf {
    from_env("ORT_DYLIB_PATH", "target/run/onnxruntime/libonnxruntime.so")
}

/// The specification of a model that is there, or `None` with a message.
pub fn model(name: &str) -> Option<ModelSpec> {
    if !models().join(name).is_dir() || !onnxruntime().is_file() {
        eprintln!("skipped: no \"{}\" or no \"{}\"", models().join(name).display(), onnxruntime().display());
        return None;
    }
    Some(ModelSpec {
        name: name.into(),
        path: name.into(),
        sha256: None,
        dimensions: 384,
        max_tokens: 256,
        pooling: Pooling::Mean,
        normalize: true,
        query_prefix: String::new(),
        passage_prefix: String::new(),
    })
}

impl Engine {
    pub fn start(environment: &[(&str, &str)], arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("folder"), environment, arguments)
    }

    /// Kills it and starts another in its place.
    pub fn restart(mut self) -> Self {
        self.child.kill().expect("kills");
        self.child.wait().expect("ends");
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().expect("folder"));
        std::fs::remove_file(folder.path().join("engine.sock")).expect("removes");
        Self::start_in(folder, &[], &[])
    }

    /// Names of the folders of its clones.
    pub fn clones(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join(CLONES)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn start_in(folder: tempfile::TempDir, environment: &[(&str, &str)], arguments: &[&str]) -> Self {
        let listener = UnixListener::bind(folder.path().join("engine.sock")).expect("socket");
        // The only descriptor that children may inherit.
        rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::empty()).expect("fcntl");
        let child = Command::new(env!("CARGO_BIN_EXE_pg_rag_engine"))
            .args(["serve", "--listen-fd", &listener.as_raw_fd().to_string()])
            .arg("--models")
            .arg(models())
            .arg("--onnxruntime")
            .arg(onnxruntime())
            .arg("--workspaces")
            .arg(folder.path().join(CLONES))
            .args(arguments)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .expect("engine");
        rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::CLOEXEC).expect("fcntl");
        Self { child, folder, _listener: listener }
    }

    pub fn raw(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("engine.sock")).expect("connects")
    }

    pub fn client(&self) -> Client {
        let mut client = Client(self.raw());
        match client.ask(&Request::Hello { version: PROTOCOL_VERSION.into() }) {
            Reply::Hello { version, pid } => assert_eq!((version.as_str(), pid), (PROTOCOL_VERSION, self.child.id())),
            other => panic!("no hello: {other:?}"),
        }
        client
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    pub fn send(&mut self, request: &Request) {
        self.0.write_all(&encode(request).expect("encodes")).expect("writes");
    }

    pub fn receive(&mut self) -> Answer {
        let mut head = [0; 4];
        self.0.read_exact(&mut head).expect("an answer");
        let mut body = vec![0; frame_length(head).expect("length")];
        self.0.read_exact(&mut body).expect("a whole answer");
        decode(&body).expect("decodes")
    }

    /// All frames of an answer.
    pub fn ask_all(&mut self, request: &Request) -> Vec<Reply> {
        self.send(request);
        let mut replies = Vec::new();
        loop {
            let answer = self.receive();
            replies.push(answer.reply);
            if answer.last {
                return replies;
            }
        }
    }

    pub fn ask(&mut self, request: &Request) -> Reply {
        let mut replies = self.ask_all(request);
        assert_eq!(replies.len(), 1, "{replies:?}");
        replies.remove(0)
    }
}
