// SPDX-License-Identifier: PostgreSQL

//! Misbehaviour to order, in debug builds only.
//!
//! Owns what tests cannot get from a real document: workers and inference that do the worst they could if a document
//! had taken them over. A document asks for it by its URI, a listing by its location, and only while the environment
//! variable [`FAULT`] says who is to obey: `parse`, `acquire`, `clone` or `inference`.

use crate::frame;
use crate::task::{Said, Task};
use rag_core::provenance::ContentHash;
use rag_core::source::{Item, Place};
use rag_core::{Error, Kind, Result};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Names who misbehaves.
const FAULT: &str = "RAG_ENGINE_TEST_FAULT";

fn asked(who: &str) -> bool {
    std::env::var_os(FAULT).is_some_and(|wanted| wanted == who)
}

/// A worker does what its task's name says. What is denied becomes the failure of the task.
pub fn of_worker(doing: &str, task: &Task, output: &mut File) -> Result<()> {
    let Some((_, fault)) = task.about().split_once("fault-") else { return Ok(()) };
    let role = match doing {
        "parsing" => "parse",
        "cloning" => "clone",
        _ => "acquire",
    };
    if !asked(role) {
        return Ok(());
    }
    let fault = fault.split(['.', '/']).next().unwrap_or_default();
    match fault {
        "crash" => kill_self(),
        "hang" => std::thread::sleep(Duration::from_secs(3600)),
        "memory" => hoard(),
        "panic" => std::panic::resume_unwind(Box::new("asked for")),
        "cpu" => loop {
            std::hint::black_box(0);
        },
        "flood" => loop {
            frame::write(output, &page())?;
        },
        "garbage" => loop {
            write(output, &[0xC1; 4096])?;
        },
        // As large as it may be, and nothing that can be understood.
        "bulk" => {
            write(output, &u32::try_from(task.frame_limit()).unwrap_or(u32::MAX).to_le_bytes())?;
            loop {
                write(output, &[0xC1; 1 << 16])?;
            }
        }
        "liar" => frame::write(output, &Said::Document(Box::default()))?,
        "network" => report("connecting", std::net::TcpStream::connect("127.0.0.1:9").map(drop))?,
        "read" => report("reading", std::fs::read("/etc/passwd").map(drop))?,
        "write" => report("writing", File::create("/tmp/pg_rag-fault-write").map(drop))?,
        "exec" => report("executing", Err(Command::new("/bin/true").exec()))?,
        "fork" => report("forking", Command::new("/bin/true").spawn().map(drop))?,
        "thread" => report("threading", std::thread::Builder::new().spawn(|| ()).map(drop))?,
        other => return Err(Error::internal(format!("there is no fault \"{other}\""))),
    }
    Ok(())
}

/// The bulk lane stops working.
pub fn of_inference(bulk: bool) {
    if bulk && asked("inference") {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn kill_self() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

fn hoard() {
    // The limit is on address space, so nothing has to be written, which could take longer than the document may.
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(std::hint::black_box(Vec::with_capacity(64 << 20)));
    }
}

fn page() -> Said {
    let place = Place::File { path: String::new() };
    let item = Item { uri: "flood".to_owned(), content_sha256: ContentHash::of(b""), size: 0, place };
    Said::Page { items: vec![item; 1000], failures: Vec::new() }
}

fn write(output: &mut File, bytes: &[u8]) -> Result<()> {
    output.write_all(bytes).map_err(|e| Error::new(Kind::Connection, e.to_string()))
}

/// What came of an attempt, as the failure of the document.
fn report(attempt: &str, result: std::io::Result<()>) -> Result<()> {
    match result {
        Ok(()) => Err(Error::internal(format!("{attempt} was possible"))),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Error::new(Kind::Forbidden, format!("{attempt} was denied")))
        }
        Err(e) => Err(Error::internal(format!("{attempt} was not denied, but failed: {e}"))),
    }
}
