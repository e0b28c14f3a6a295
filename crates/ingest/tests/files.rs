// SPDX-License-Identifier: PostgreSQL

//! Sources on a real filesystem: what is listed, what is refused, what is read.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod support;

use rag_core::error::{Error, Kind};
use rag_core::provenance::ContentHash;
use rag_core::source::{Item, Place, SourceKind, SourceOptions, SourceSpec};
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use support::{COUNTER, list};
use tempfile::TempDir;

/// A folder with some files; a name that ends with a slash is a folder.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("tempdir");
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, content).expect("file");
    }
    dir
}

fn spec(kind: SourceKind, location: &Path, allowed: &Path) -> SourceSpec {
    let allowed_paths = vec![allowed.to_str().expect("UTF-8").to_owned()];
    SourceSpec { allowed_paths, ..support::spec(kind, location, &json!({})) }
}

fn markdown(dir: &TempDir) -> SourceSpec {
    spec(SourceKind::Markdown, dir.path(), dir.path())
}

fn uris(spec: &SourceSpec) -> (Vec<String>, Vec<(String, Kind)>) {
    let (items, failures) = list(spec).expect("listing");
    (items.into_iter().map(|i| i.uri).collect(), failures.into_iter().map(|f| (f.uri, f.error.kind)).collect())
}

fn refused(spec: &SourceSpec) -> Error {
    list(spec).expect_err("refused")
}

#[test]
fn a_folder_is_listed_in_order_and_read() {
    let dir = folder(&[
        ("b.md", "# B\n"),
        ("a/z.MD", "z"),
        ("a/b/c.markdown", "c"),
        ("a.txt", "t"),
        (".h.md", "h"),
        (".git/x.md", "x"),
    ]);
    let spec = markdown(&dir);
    let (items, failures) = list(&spec).expect("listing");
    assert_eq!(items.iter().map(|i| i.uri.as_str()).collect::<Vec<_>>(), ["a/b/c.markdown", "a/z.MD", "b.md"]);
    assert!(failures.is_empty());
    let item = &items[2];
    let expected = Item {
        uri: "b.md".into(),
        content_sha256: ContentHash::of("# B\n"),
        size: 4,
        place: Place::File { path: "b.md".into() },
    };
    assert_eq!(item, &expected);
    let document = rag_ingest::read(&spec, item, &COUNTER).expect("readable");
    assert_eq!((document.title.as_deref(), document.path.as_deref()), (Some("B"), Some("b.md")));
    assert_eq!(document.content_sha256, item.content_sha256);
    assert_eq!(document.media_type, "text/markdown");
    assert_eq!(list(&spec).expect("again").0, items);
}

#[test]
fn one_file_is_read_whatever_its_name() {
    let dir = folder(&[("README", "# R\n")]);
    let spec = spec(SourceKind::Markdown, &dir.path().join("README"), dir.path());
    let (items, _) = list(&spec).expect("listing");
    assert_eq!((items[0].uri.as_str(), &items[0].place), ("README", &Place::File { path: String::new() }));
    let document = rag_ingest::read(&spec, &items[0], &COUNTER).expect("readable");
    assert_eq!((document.path.as_deref(), document.chunks.len()), (Some("README"), 1));
}

#[test]
fn globs_override_and_ignore_extends() {
    let dir = folder(&[("a.txt", ""), ("b.md", ""), ("d/c.TXT", ""), ("d/e/f.txt", ""), (".gitignore", "a.*\n")]);
    let with = |options: serde_json::Value| {
        let mut spec = markdown(&dir);
        spec.options = SourceOptions::parse(SourceKind::Markdown, &options).expect("options");
        uris(&spec).0
    };
    assert_eq!(with(json!({"glob": "*.txt"})), ["d/c.TXT", "d/e/f.txt"]);
    assert_eq!(with(json!({"glob": "d/*.txt"})), ["d/c.TXT"]);
    assert_eq!(with(json!({"glob": "**/*.txt", "ignore": ["e/"]})), ["d/c.TXT"]);
    assert_eq!(with(json!({"glob": ["*.txt", "*.md"], "ignore": "/d"})), ["b.md"]);
    let mut spec = markdown(&dir);
    spec.options.glob = vec!["[".into()];
    let error = refused(&spec);
    assert_eq!(
        (error.kind, error.message.as_str()),
        (Kind::InvalidArgument, "option \"glob\" has the bad pattern \"[\"")
    );
    assert_eq!(uris(&self::spec(SourceKind::Text, dir.path(), dir.path())).0, ["d/c.TXT", "d/e/f.txt"]);
}

#[test]
fn gitignore_is_honoured_as_in_git() {
    let dir = folder(&[
        (".gitignore", "\u{FEFF}/build\r\n*.tmp.md\n!keep.tmp.md\ndocs/private/\n# comment\n[bad\n"),
        ("build/a.md", ""),
        ("src/build/b.md", ""),
        ("x.tmp.md", ""),
        ("keep.tmp.md", ""),
        ("docs/private/c.md", ""),
        ("docs/d.md", ""),
        ("docs/.gitignore", "!y.tmp.md\ne.md"),
        ("docs/y.tmp.md", ""),
        ("docs/e.md", ""),
        ("e.md", ""),
    ]);
    assert_eq!(uris(&markdown(&dir)).0, ["docs/d.md", "docs/y.tmp.md", "e.md", "keep.tmp.md", "src/build/b.md"]);
}

#[test]
fn only_what_is_beneath_an_allowed_path_is_read() {
    let allowed = folder(&[("in/a.md", "a")]);
    let outside = folder(&[("b.md", "b")]);
    let forbidden = |location: &Path| {
        let error = refused(&spec(SourceKind::Markdown, location, &allowed.path().join("in")));
        (error.kind, error.message)
    };
    for location in [
        outside.path().to_path_buf(),
        outside.path().join("b.md"),
        allowed.path().to_path_buf(),
        allowed.path().join("in/../.."),
        allowed.path().join("in/../in2"),
        allowed.path().join("into"),
        "/nowhere/at/all".into(),
        "/".into(),
    ] {
        let message = format!("location \"{}\" is not beneath an allowed path", location.display());
        assert_eq!(forbidden(&location), (Kind::Forbidden, message));
    }
    symlink(outside.path(), allowed.path().join("in/out")).expect("link");
    assert_eq!(forbidden(&allowed.path().join("in/out")).0, Kind::Forbidden);
    assert_eq!(forbidden(Path::new("in")).0, Kind::InvalidArgument);
    assert_eq!(forbidden(&allowed.path().join("in/none.md")).0, Kind::FileMissing);
    let mut nothing = spec(SourceKind::Markdown, &allowed.path().join("in"), allowed.path());
    nothing.allowed_paths.clear();
    assert_eq!(refused(&nothing).kind, Kind::Forbidden);
    nothing.allowed_paths = vec!["/nowhere".into(), allowed.path().to_str().expect("UTF-8").into()];
    assert_eq!(uris(&nothing).0, ["a.md"]);
    // The same by another name.
    symlink(allowed.path(), outside.path().join("link")).expect("link");
    assert_eq!(uris(&spec(SourceKind::Markdown, &outside.path().join("link/in"), allowed.path())).0, ["a.md"]);
}

#[test]
fn links_are_followed_to_files_within_and_refused_without() {
    let dir = folder(&[("docs/a.md", "a"), ("other/b.md", "b")]);
    let outside = folder(&[("secret.md", "secret")]);
    let docs = dir.path().join("docs");
    let link = |target: &Path, name: &str| symlink(target, docs.join(name)).expect("link");
    link(Path::new("../other/b.md"), "relative.md");
    link(&dir.path().join("other/b.md"), "absolute.md");
    link(&outside.path().join("secret.md"), "escape.md");
    link(Path::new("/etc/passwd"), "passwd.md");
    link(Path::new("nowhere"), "dangling.md");
    link(Path::new("self.md"), "self.md");
    link(Path::new("."), "loop");
    link(Path::new(".."), "up");
    link(outside.path(), "out");
    link(&outside.path().join("secret.md"), "not-markdown");
    let spec = spec(SourceKind::Markdown, &docs, dir.path());
    let (found, failed) = uris(&spec);
    assert_eq!(found, ["a.md", "absolute.md", "relative.md"]);
    let failed: Vec<_> = failed.iter().map(|(uri, kind)| (uri.as_str(), *kind)).collect();
    let expected = [
        ("dangling.md", Kind::FileMissing),
        ("escape.md", Kind::Forbidden),
        ("passwd.md", Kind::Forbidden),
        ("self.md", Kind::Io),
    ];
    assert_eq!(failed, expected);
    // What was listed and then became a link out is refused when it is read.
    let item = Item {
        uri: "a.md".into(),
        content_sha256: ContentHash::of("a"),
        size: 1,
        place: Place::File { path: "a.md".into() },
    };
    fs::remove_file(docs.join("a.md")).expect("removed");
    link(&outside.path().join("secret.md"), "a.md");
    assert_eq!(rag_ingest::read(&spec, &item, &COUNTER).expect_err("escape").error.kind, Kind::Forbidden);
    for path in ["../other/b.md", "/etc/passwd", "x/../../other/b.md", "."] {
        let item = Item { place: Place::File { path: path.into() }, ..item.clone() };
        let error = rag_ingest::read(&spec, &item, &COUNTER).expect_err("outside").error;
        assert_eq!(error.kind, Kind::Forbidden, "{path}");
    }
}

#[test]
fn names_that_are_not_utf8_fail_by_a_stable_name() {
    let dir = folder(&[("a.md", "")]);
    let name = |bytes: &'static [u8]| dir.path().join(OsStr::from_bytes(bytes));
    fs::write(name(b"caf\xE9.md"), "x").expect("file");
    fs::write(name(b"caf\xE9.png"), "x").expect("file");
    fs::create_dir(name(b"d\xFF")).expect("folder");
    fs::write(name("ü 漢%E9.md".as_bytes()), "x").expect("file");
    let (found, failed) = uris(&markdown(&dir));
    assert_eq!(found, ["a.md", "ü 漢%E9.md"]);
    assert_eq!(failed, [("caf%E9.md".to_owned(), Kind::BadContent), ("d%FF/".to_owned(), Kind::BadContent)]);
}

#[test]
fn special_and_unreadable_files_fail_without_blocking() {
    let dir = folder(&[("a.md", ""), ("locked.md", ""), ("locked/b.md", "")]);
    let fifo = std::process::Command::new("mkfifo")
        .arg(dir.path().join("fifo.md"))
        .arg(dir.path().join(".gitignore"))
        .status();
    assert!(fifo.expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket.md")).expect("socket");
    symlink("/dev/zero", dir.path().join("zero.md")).expect("link");
    fs::create_dir(dir.path().join("folder.md")).expect("folder");
    for locked in ["locked.md", "locked"] {
        fs::set_permissions(dir.path().join(locked), fs::Permissions::from_mode(0o000)).expect("mode");
    }
    let (found, mut failed) = uris(&markdown(&dir));
    let readable = found.iter().filter(|uri| uri.starts_with("locked")).count();
    if readable == 0 {
        let locked: Vec<_> = failed.extract_if(.., |(uri, _)| uri.starts_with("locked")).collect();
        assert_eq!(locked, [("locked/".to_owned(), Kind::Forbidden), ("locked.md".to_owned(), Kind::Forbidden)]);
    } else {
        eprintln!("root reads every file; the unreadable ones were not tested");
    }
    assert_eq!(found[0], "a.md");
    let expected = [("fifo.md", Kind::Unsupported), ("socket.md", Kind::Unsupported), ("zero.md", Kind::Forbidden)];
    assert_eq!(failed.iter().map(|(u, k)| (u.as_str(), *k)).collect::<Vec<_>>(), expected);
    let fifo = spec(SourceKind::Markdown, &dir.path().join("fifo.md"), dir.path());
    assert_eq!(refused(&fifo).kind, Kind::InvalidArgument);
    fs::set_permissions(dir.path().join("locked"), fs::Permissions::from_mode(0o700)).expect("mode");
}

#[test]
fn limits_hold() {
    let dir = folder(&[("a.md", "12345"), ("b.md", "123456"), ("c.md", "")]);
    let mut spec = markdown(&dir);
    spec.options.limits.max_document_bytes = 5;
    let (items, failures) = list(&spec).expect("listing");
    assert_eq!(items.len(), 2);
    assert_eq!((failures[0].uri.as_str(), failures[0].error.kind), ("b.md", Kind::LimitExceeded));
    assert_eq!(failures[0].error.message, "document of 6 bytes is larger than max_document_bytes 5");
    fs::write(dir.path().join("a.md"), "now it is longer").expect("file");
    assert_eq!(rag_ingest::read(&spec, &items[0], &COUNTER).expect_err("longer").error.kind, Kind::LimitExceeded);
    let inline =
        rag_ingest::parse_inline(SourceKind::Text, &spec.options, "u", b"123456", &Default::default(), &COUNTER);
    assert_eq!(inline.expect_err("longer").error.kind, Kind::LimitExceeded);
    spec.options.limits.max_documents = 2;
    let error = refused(&spec);
    assert_eq!(
        (error.kind, error.message.as_str()),
        (Kind::LimitExceeded, "source has more documents than max_documents 2")
    );
}

#[test]
fn a_file_that_changed_is_read_as_it_is_and_one_that_went_fails() {
    let dir = folder(&[("a.md", "old")]);
    let spec = markdown(&dir);
    let item = list(&spec).expect("listing").0.remove(0);
    fs::write(dir.path().join("a.md"), "new").expect("file");
    let document = rag_ingest::read(&spec, &item, &COUNTER).expect("readable");
    assert_eq!((document.text.as_str(), document.content_sha256), ("new", ContentHash::of("new")));
    fs::remove_file(dir.path().join("a.md")).expect("removed");
    let failure = rag_ingest::read(&spec, &item, &COUNTER).expect_err("gone");
    assert_eq!((failure.uri.as_str(), failure.error.kind), ("a.md", Kind::FileMissing));
}

#[test]
fn a_deep_folder_and_a_long_listing_end() {
    let dir = folder(&[]);
    let mut deep = dir.path().to_path_buf();
    (0..300).for_each(|_| deep.push("d"));
    fs::create_dir_all(&deep).expect("folders");
    fs::write(deep.join("x.md"), "x").expect("file");
    for i in 0..2500 {
        fs::write(dir.path().join(format!("{i:04}.md")), "x").expect("file");
    }
    let mut pages = Vec::new();
    rag_ingest::list(&markdown(&dir), &mut |items, _| {
        pages.push(items.len());
        Ok(())
    })
    .expect("listing");
    assert_eq!(pages, [1000, 1000, 501]);
    let stopped = rag_ingest::list(&markdown(&dir), &mut |_, _| Err(Error::internal("stop")));
    assert_eq!(stopped.expect_err("stopped").message, "stop");
}
