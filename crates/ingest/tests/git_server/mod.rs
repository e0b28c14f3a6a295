// SPDX-License-Identifier: PostgreSQL

//! A server of repositories over HTTP, made of the program `git` and a few lines, which also does what servers should not.
//!
//! `/NAME/` is the repository NAME beneath its folder, `/open/NAME/` the same and gives out any commit by its hash. Any other
//! first word of a path is a vice: see [`Server::answer`].
// Each test program uses a part.
#![allow(dead_code)]

use rag_core::source::{SourceKind, SourceOptions, SourceSpec};
use serde_json::Value;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const RESULT: &str = "application/x-git-upload-pack-result";

/// Runs git without anybody's settings; `None` when it is not installed.
pub fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(["-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .output()
        .inspect_err(|_| eprintln!("skipped: git is not installed"))
        .ok()?;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Writes a file into a repository and commits it; returns the commit.
pub fn commit(folder: &Path, path: &str, content: &str) -> Option<String> {
    let file = folder.join(path);
    std::fs::create_dir_all(file.parent().expect("parent")).expect("folder");
    std::fs::write(file, content).expect("file");
    git(folder, &["add", "-A"])?;
    git(folder, &["commit", "-qm", path])?;
    git(folder, &["rev-parse", "HEAD"])
}

/// A running server; its threads end with the test.
#[derive(Clone)]
pub struct Server {
    /// Host and port.
    pub address: String,
    /// First lines of the requests so far.
    pub asked: Arc<Mutex<Vec<String>>>,
    folder: PathBuf,
}

struct Request {
    line: String,
    body: Vec<u8>,
}

impl Server {
    /// Serves the repositories beneath a folder.
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("port");
        let address = listener.local_addr().expect("address").to_string();
        let server = Self { address, asked: Arc::default(), folder: folder.to_owned() };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || {
                    let mut stream = stream;
                    if let Some(request) = Request::read(&stream) {
                        serving.asked.lock().expect("asked").push(request.line.clone());
                        serving.answer(&request, &mut stream);
                    }
                });
            }
        });
        server
    }

    /// The URL of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// A repository of it as a source, which may talk to it.
    pub fn source(&self, path: &str, options: &Value) -> SourceSpec {
        SourceSpec {
            kind: SourceKind::Git,
            location: self.url(path),
            options: SourceOptions::parse(SourceKind::Git, options).expect("options"),
            allowed_paths: Vec::new(),
            allowed_hosts: vec![self.address.clone()],
            seen: None,
        }
    }

    /// How often it was asked for objects.
    pub fn downloads(&self) -> usize {
        self.packs("")
    }

    fn answer(&self, request: &Request, stream: &mut TcpStream) {
        let target = request.line.split(' ').nth(1).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default().trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let query = target.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
        let done = request.body.windows(4).any(|w| w == b"done");
        let pack = request.line.starts_with("POST");
        match first {
            "open" => self.serve(rest, &["-c", "uploadpack.allowAnySHA1InWant=true"], request, stream),
            "fussy" | "refusing" if pack && (first == "refusing" || !self.is_end(rest, &request.body)) => {
                reply(stream, "500 Internal Server Error", &[], b"cannot");
            }
            "fussy" | "refusing" => self.serve(rest, &["-c", "uploadpack.allowAnySHA1InWant=true"], request, stream),
            "once" if pack && self.packs(first) == 1 => {
                std::thread::sleep(Duration::from_secs(1));
                reply(stream, "500 Internal Server Error", &[], b"not yet");
            }
            "late-pack" if pack => {
                std::thread::sleep(Duration::from_secs(1));
                self.serve(rest, &[], request, stream);
            }
            "moved" => redirect(stream, &format!("/{rest}{query}")),
            "private" => redirect(stream, &format!("http://10.0.0.1/{rest}{query}")),
            "other-port" => redirect(stream, &format!("http://127.0.0.1:1/{rest}{query}")),
            "elsewhere" => redirect(stream, "/page"),
            "loop" => redirect(stream, target),
            "late" if pack => redirect(stream, &format!("/{rest}")),
            "page" => reply(stream, "200 OK", &["Content-Type: text/html"], b"<p>A page.</p>"),
            "secret" => reply(stream, "401 Unauthorized", &["WWW-Authenticate: Basic realm=x"], b"who?"),
            "absent" => reply(stream, "404 Not Found", &[], b"no"),
            "junk" => reply(stream, "200 OK", &[&format!("Content-Type: {ADVERTISEMENT}")], &[b'z'; 5000]),
            "junk-pack" if done => {
                reply(stream, "200 OK", &[&format!("Content-Type: {RESULT}")], b"0008NAK\n0009\x01zzzz0000")
            }
            "long-refs" => {
                let _ = head(stream, ADVERTISEMENT).and_then(|()| {
                    let mut stream = BufWriter::with_capacity(1 << 20, stream);
                    stream.write_all(b"001e# service=git-upload-pack\n0000")?;
                    let mut capabilities = "\0symref=HEAD:refs/heads/0";
                    for number in 0.. {
                        let line = format!("{:040x} refs/heads/{number}{capabilities}\n", number + 1);
                        capabilities = "";
                        stream.write_all(format!("{:04x}{line}", line.len() + 4).as_bytes())?;
                    }
                    Ok(())
                });
            }
            "endless" if done => {
                let _ = endless(stream);
            }
            "slow" if done => {
                let _ = head(stream, RESULT).and_then(|()| stream.write_all(b"0008NAK\n"));
                while band(stream, 2, b".").is_ok() {
                    std::thread::sleep(Duration::from_millis(200));
                }
            }
            "silent" => std::thread::sleep(Duration::from_secs(60)),
            "junk-pack" | "endless" | "slow" | "late" | "late-pack" | "once" => self.serve(rest, &[], request, stream),
            _ => self.serve(path, &[], request, stream),
        }
    }

    /// How often it was asked for objects of a path that begins so.
    pub fn packs(&self, start: &str) -> usize {
        let start = format!("POST /{start}");
        self.asked.lock().expect("asked").iter().filter(|line| line.starts_with(&start)).count()
    }

    /// Whether the first object that a request wants is the end of a branch or tag.
    fn is_end(&self, path: &str, body: &[u8]) -> bool {
        let body = String::from_utf8_lossy(body);
        let wanted = body.split_once("want ").map(|(_, rest)| rest.get(..40).unwrap_or_default()).unwrap_or_default();
        let folder = self.folder.join(path.trim_end_matches("/git-upload-pack"));
        git(&folder, &["for-each-ref", "--format=%(objectname)"])
            .is_some_and(|ends| ends.lines().any(|end| end == wanted))
    }

    /// Has git answer.
    fn serve(&self, path: &str, settings: &[&str], request: &Request, stream: &mut TcpStream) {
        let (name, refs) = match (path.strip_suffix("/info/refs"), path.strip_suffix("/git-upload-pack")) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => return reply(stream, "404 Not Found", &[], b"no"),
        };
        let mut command = Command::new("git");
        command.args(settings).args(["upload-pack", "--stateless-rpc"]).env("GIT_CONFIG_NOSYSTEM", "1");
        if refs {
            command.arg("--advertise-refs");
        }
        command.arg(self.folder.join(name)).env("HOME", "/nonexistent").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("git");
        let mut input = child.stdin.take().expect("input");
        let body = request.body.clone();
        let writer = std::thread::spawn(move || input.write_all(&body));
        let mut answer = if refs { b"001e# service=git-upload-pack\n0000".to_vec() } else { Vec::new() };
        child.stdout.take().expect("output").read_to_end(&mut answer).expect("reads");
        let _ = (writer.join(), child.wait());
        reply(stream, "200 OK", &[&format!("Content-Type: {}", if refs { ADVERTISEMENT } else { RESULT })], &answer);
    }
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).ok()?;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 || header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self { line: line.trim().to_owned(), body })
    }
}

fn reply(stream: &mut TcpStream, status: &str, headers: &[&str], body: &[u8]) {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).and_then(|()| stream.write_all(body));
}

fn redirect(stream: &mut TcpStream, to: &str) {
    reply(stream, "302 Found", &[&format!("Location: {to}")], b"");
}

fn head(stream: &mut TcpStream, content_type: &str) -> std::io::Result<()> {
    stream.write_all(format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {content_type}\r\n\r\n").as_bytes())
}

/// A packet of the side band: 1 is the pack, 2 what a person should see.
fn band(stream: &mut TcpStream, number: u8, content: &[u8]) -> std::io::Result<()> {
    stream.write_all(format!("{:04x}", content.len() + 5).as_bytes())?;
    stream.write_all(&[number])?;
    stream.write_all(content)
}

/// A pack of one file that never ends, of stored blocks.
fn endless(stream: &mut TcpStream) -> std::io::Result<()> {
    head(stream, RESULT)?;
    stream.write_all(b"0008NAK\n")?;
    // Version 2, one object; a file of 2^39 bytes or so; a zlib header.
    band(stream, 1, b"PACK\0\0\0\x02\0\0\0\x01\xbf\xff\xff\xff\xff\x0f\x78\x01")?;
    let block: Vec<u8> = [&[0, 0, 0x80, 0xFF, 0x7F][..], &[b'x'; 0x8000]].concat();
    loop {
        band(stream, 1, &block)?;
    }
}
