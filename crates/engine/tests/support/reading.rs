// SPDX-License-Identifier: PostgreSQL

//! Sources for engines to read, and what came of them.

use super::{Client, Engine, model};
use rag_core::protocol::{Reply, Request, Status};
use rag_core::source::{Failure, Item, SourceKind, SourceOptions, SourceSpec};
use std::path::Path;

pub fn source(folder: &Path, limits: &serde_json::Value) -> SourceSpec {
    let options = SourceOptions::parse(SourceKind::Markdown, &serde_json::json!({ "limits": limits }));
    let location = folder.to_str().expect("UTF-8").to_owned();
    SourceSpec {
        kind: SourceKind::Markdown,
        allowed_paths: vec![location.clone()],
        location,
        options: options.expect("options"),
        allowed_hosts: Vec::new(),
        seen: None,
    }
}

pub fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    for name in files {
        std::fs::write(folder.path().join(name), format!("# About {name}\n\nA paragraph.\n")).expect("file");
    }
    folder
}

pub fn list(client: &mut Client, source: &SourceSpec) -> (Vec<Item>, Vec<Failure>) {
    let mut all = (Vec::new(), Vec::new());
    for reply in client.ask_all(&Request::List { source: source.clone() }) {
        match reply {
            Reply::Items { items, failures } => {
                all.0.extend(items);
                all.1.extend(failures);
            }
            Reply::Listed { seen } => assert!(seen >= (all.0.len() + all.1.len()) as u64, "{seen} entries"),
            other => panic!("no items: {other:?}"),
        }
    }
    all
}

/// Title or failure of each item.
pub fn read(client: &mut Client, source: &SourceSpec, items: &[Item]) -> Vec<Result<String, Failure>> {
    let model = model("all-MiniLM-L6-v2").expect("model");
    let request = Request::Read { source: source.clone(), items: items.to_vec(), model };
    let title = |reply| match reply {
        Reply::Document(Ok(document)) => Ok(document.title.clone().unwrap_or_default()),
        Reply::Document(Err(failure)) => Err(failure),
        other => panic!("no document: {other:?}"),
    };
    client.ask_all(&request).into_iter().map(title).collect()
}

pub fn status(client: &mut Client) -> Status {
    match client.ask(&Request::Status) {
        Reply::Status(status) => status,
        other => panic!("no status: {other:?}"),
    }
}

/// Process ids of the workers of an engine.
pub fn children(engine: &Engine) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", engine.child.id())).expect("tasks") {
        let path = task.expect("task").path().join("children");
        let list = std::fs::read_to_string(path).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    found
}

pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("pid")).expect("pid");
    rustix::process::kill_process(pid, signal).expect("signals");
}

/// Gone, or a zombie whose parent has not looked yet.
pub fn is_ended(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}
