// SPDX-License-Identifier: PostgreSQL

//! Repositories: what of a commit is a document, by the word of the program `git` itself.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

use rag_core::document::Document;
use rag_core::source::{Failure, Item, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::WordCounter;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const COUNTER: WordCounter = WordCounter { window: 254 };

/// Runs git without anybody's settings; `None` when it is not installed.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(["-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .output()
        .inspect_err(|_| eprintln!("skipped: git is not installed"))
        .ok()?;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn write(folder: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    std::fs::write(path, content).expect("file");
}

fn spec(folder: &Path, options: &Value) -> SourceSpec {
    SourceSpec {
        kind: SourceKind::Git,
        location: folder.to_str().expect("UTF-8").to_owned(),
        options: SourceOptions::parse(SourceKind::Git, options).expect("options"),
        allowed_paths: vec![folder.to_str().expect("UTF-8").to_owned()],
        allowed_hosts: Vec::new(),
        seen: None,
    }
}

fn list(spec: &SourceSpec) -> rag_core::error::Result<(Vec<Item>, Vec<Failure>)> {
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    rag_ingest::list(spec, &mut |more, failed| {
        items.extend(more);
        failures.extend(failed);
        Ok(())
    })?;
    Ok((items, failures))
}

fn uris(spec: &SourceSpec) -> Vec<String> {
    list(spec).expect("lists").0.into_iter().map(|item| item.uri).collect()
}

fn read(spec: &SourceSpec, item: &Item) -> Document {
    rag_ingest::read(spec, item, &COUNTER).expect("reads")
}

fn refused(spec: &SourceSpec) -> String {
    list(spec).expect_err("refused").message
}

#[test]
fn the_files_of_a_commit_are_its_documents() {
    let folder = tempfile::tempdir().expect("folder");
    let at = folder.path();
    let Some(_) = git(at, &["init", "-q"]) else { return };
    write(at, "README.md", "# Well\n\nDraw water.\n");
    write(at, "docs/deep/bucket.md", "# Bucket\r\n\r\nOf wood.\r\n");
    write(at, "gen/made.md", "# Made\n");
    write(at, "vendor/lib.md", "# Lib\n");
    write(at, "vendor/ours.md", "# Ours\n");
    write(at, ".hidden/x.md", "# Hidden\n");
    write(
        at,
        ".gitattributes",
        "gen/*.md linguist-generated -linguist-vendored\ngen/made.md linguist-vendored=false\n\
         vendor/** linguist-vendored=true\nvendor/ours.md -linguist-vendored\n",
    );
    write(at, "big.md", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n");
    write(at, "latin.txt", b"caf\xe9 au lait\n");
    std::os::unix::fs::symlink("/etc/passwd", at.join("out.md")).expect("link");
    git(at, &["add", "-A"]);
    git(at, &["commit", "-qm", "first"]);
    let first = git(at, &["rev-parse", "HEAD"]).expect("commit");
    git(at, &["tag", "v1"]);
    git(at, &["checkout", "-qb", "next"]);
    write(at, "README.md", "# Well\n\nDraw more water.\n");
    git(at, &["commit", "-qam", "second"]);
    let second = git(at, &["rev-parse", "HEAD"]).expect("commit");
    // What is not committed is not there.
    write(at, "loose.md", "# Loose\n");

    let head = spec(at, &json!({}));
    let (items, failures) = list(&head).expect("lists");
    let names: Vec<&str> = items.iter().map(|i| i.uri.as_str()).collect();
    assert_eq!(names, ["README.md", "docs/deep/bucket.md", "latin.txt", "vendor/ours.md"]);
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].error.message, "\"big.md\" is kept by Git LFS and not in the repository");

    let readme = read(&head, &items[0]);
    assert!(readme.text.contains("Draw more water."));
    assert_eq!(readme.version.commit.as_deref(), Some(second.as_str()));
    assert_eq!(readme.version.reference.as_deref(), Some("next"));
    assert_eq!(readme.version.repository.as_deref(), at.to_str());
    assert_eq!(readme.path.as_deref(), Some("README.md"));
    let blob = git(at, &["rev-parse", "HEAD:README.md"]).expect("blob");
    assert_eq!(readme.metadata.get("blob"), Some(&json!(blob)));
    let bucket = read(&head, &items[1]);
    assert_eq!(bucket.text, "# Bucket\n\nOf wood.\n");
    assert_eq!(bucket.chunks.len(), 1);
    assert_eq!(read(&head, &items[2]).repaired_bytes, 1);

    for (name, commit, text) in
        [("v1", &first, "Draw water."), ("main", &first, "Draw water."), ("next", &second, "more")]
    {
        let source = spec(at, &json!({"ref": name, "glob": "README.md"}));
        let (items, _) = list(&source).expect("lists");
        let document = read(&source, &items[0]);
        assert_eq!(document.version.commit.as_ref(), Some(commit), "{name}");
        assert!(document.text.contains(text), "{name}");
    }
    let source = spec(at, &json!({"ref": first[..10], "ignore": "docs/"}));
    assert_eq!(uris(&source), ["README.md", "latin.txt", "vendor/ours.md"]);

    assert_eq!(uris(&spec(at, &json!({"ref": "v1", "expect_commit": first[..12]}))).len(), 4);
    assert_eq!(
        refused(&spec(at, &json!({"ref": "v1", "expect_commit": second}))),
        format!("\"v1\" is at commit {first} and not at \"{second}\"")
    );
    let missing = list(&spec(at, &json!({"ref": "nope"}))).expect_err("refused");
    assert_eq!(missing.message, "repository has no branch, tag or commit \"nope\"");
    assert_eq!(missing.hint.as_deref(), Some("It has: main, next."));
    assert_eq!(refused(&spec(at, &json!({"ref": "@{-1}"}))), "repository has no branch, tag or commit \"@{-1}\"");
}

/// What files of a repository are there for; the same files as a source of Markdown have no role.
#[test]
fn roles_by_path() {
    let folder = tempfile::tempdir().expect("folder");
    let at = folder.path();
    let Some(_) = git(at, &["init", "-q"]) else { return };
    let all = [
        ("CMakeLists.txt", "project(well)\n", Some("configuration")),
        ("LICENSE.txt", "Do as you like.\n", Some("metadata")),
        ("README.md", "# Well\n\nDraw water.\n", Some("documentation")),
        ("docs/bucket.md", "# Bucket\n\nOf wood.\n", Some("documentation")),
        ("docs/page.html", "<html><body><p>Of iron.</p></body></html>\n", Some("documentation")),
        ("docs/template.html", "<html><body></body></html>\n", Some("documentation")),
        ("notes.md", "# Notes\n\nDry in July.\n", None),
        ("src/well.py", "depth = 9\n", Some("implementation")),
        ("tests/expected.txt", "nine\n", Some("test")),
        ("tests/settings.toml", "depth = 9\n", Some("configuration")),
    ];
    for (path, content, _) in all {
        write(at, path, content);
    }
    git(at, &["add", "-A"]);
    git(at, &["commit", "-qm", "first"]);
    let source = spec(at, &json!({}));
    let (items, _) = list(&source).expect("lists");
    assert_eq!(items.len(), all.len());
    for (item, (path, _, role)) in items.iter().zip(all) {
        let document = read(&source, item);
        assert_eq!((document.uri.as_str(), document.role.as_deref()), (path, role));
        assert!(!document.chunks.is_empty(), "{path}");
        assert!(document.chunks.iter().all(|chunk| chunk.facts.role.as_deref() == role), "{path}");
    }
    let source = SourceSpec {
        kind: SourceKind::Markdown,
        options: SourceOptions::parse(SourceKind::Markdown, &json!({})).expect("options"),
        ..source
    };
    let (items, _) = list(&source).expect("lists");
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(|item| read(&source, item).role.is_none()));
}

#[test]
fn what_is_no_repository_or_borrows_one_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let at = folder.path();
    assert_eq!(refused(&spec(at, &json!({}))), format!("location \"{}\" is not a git repository", at.display()));
    let Some(_) = git(at, &["init", "-q", "whole"]) else { return };
    let whole = at.join("whole");
    assert_eq!(refused(&spec(&whole, &json!({}))), format!("repository \"{}\" has no commit at HEAD", whole.display()));
    write(&whole, "a.md", "# A\n");
    git(&whole, &["add", "."]);
    git(&whole, &["commit", "-qm", "a"]);
    git(at, &["clone", "-q", "--shared", "whole", "shared"]);
    git(at, &["clone", "-q", "--bare", "whole", "bare.git"]);
    git(&whole, &["worktree", "add", "-q", "../tree"]);
    assert_eq!(uris(&spec(&at.join("bare.git"), &json!({}))), ["a.md"]);
    let shared = at.join("shared");
    let why = "borrows objects by \"objects/info/alternates\"";
    assert_eq!(refused(&spec(&shared, &json!({}))), format!("repository \"{}\" {why}", shared.display()));
    let tree = at.join("tree");
    assert_eq!(
        refused(&spec(&tree, &json!({}))),
        format!("repository \"{}\" keeps its objects elsewhere", tree.display())
    );
    // A broken object costs its file.
    write(&whole, "b.md", "# B\n");
    git(&whole, &["add", "."]);
    git(&whole, &["commit", "-qm", "b"]);
    let blob = git(&whole, &["rev-parse", "HEAD:b.md"]).expect("blob");
    let object = whole.join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    std::fs::remove_file(&object).expect("removed");
    let (items, failures) = list(&spec(&whole, &json!({}))).expect("lists");
    assert_eq!((items.len(), failures.len()), (1, 1));
    assert_eq!(failures[0].error.message, format!("object {blob} cannot be read"));
}

#[test]
fn a_repository_full_of_oddities_is_read_as_far_as_it_is_text() {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/files/git/nasty-repo-open.bundle");
    if !bundle.exists() {
        return eprintln!("skipped: no {}", bundle.display());
    }
    let folder = tempfile::tempdir().expect("folder");
    let Some(_) = git(folder.path(), &["clone", "-q", bundle.to_str().expect("UTF-8"), "nasty"]) else { return };
    let at = folder.path().join("nasty");
    let source = spec(&at, &json!({}));
    let (items, failures) = list(&source).expect("lists");
    let listed: Vec<&str> =
        items.iter().map(|i| i.uri.as_str()).chain(failures.iter().map(|f| f.uri.as_str())).collect();
    // Every regular file of the commit that is not hidden, by git's own list.
    let tree = git(&at, &["-c", "core.quotepath=off", "ls-tree", "-r", "HEAD"]).expect("list");
    for line in tree.lines().filter(|line| line.starts_with("100")) {
        let path = line.split_once('\t').expect("path").1;
        eprintln!("{} {path}", if listed.contains(&path) { "listed " } else { "left   " });
    }
    for item in &items {
        let document = read(&source, item);
        assert_eq!(document.version.commit.as_deref(), Some("fced45a9b0fccef3d1c34f57d761c2629c419302"));
    }
}
