// SPDX-License-Identifier: PostgreSQL

//! Archives: what is listed, what is refused and in which words, what is read. The fixtures are made by
//! `tests/fixtures/archive/make.py`.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod support;

use invariants::{check, counters};
use rag_core::error::{Error, Kind, Result};
use rag_core::provenance::ContentHash;
use rag_core::source::{Item, Place, SourceKind, SourceSpec};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use support::{COUNTER, list};

fn fixture(name: &str) -> PathBuf {
    support::fixture("archive").join(name)
}

fn spec(location: &Path, options: &Value) -> SourceSpec {
    support::spec(SourceKind::Zip, location, options)
}

/// What an archive came to.
type Ingested = (Vec<(String, String)>, Vec<String>);

/// Paths and texts of the documents, and messages of the failures; every document's chunks are checked.
fn ingest(spec: &SourceSpec) -> Result<Ingested> {
    let (items, failures) = list(spec)?;
    let mut documents = Vec::new();
    for item in &items {
        for counter in counters(254) {
            let document = rag_ingest::read(spec, item, &*counter).expect("what was listed is read");
            check(&document, &spec.options, &*counter, 0);
        }
        let document = rag_ingest::read(spec, item, &COUNTER).expect("what was listed is read");
        assert_eq!((&document.uri, document.content_sha256), (&item.uri, item.content_sha256));
        let path = document.path.expect("a path");
        assert!(item.uri.ends_with(&format!("!/{path}")), "{} {path}", item.uri);
        documents.push((path, document.text));
    }
    Ok((documents, failures.into_iter().map(|f| f.error.message).collect()))
}

fn of(name: &str, options: &Value) -> Result<Ingested> {
    ingest(&spec(&fixture(name), options))
}

fn paths(documents: &[(String, String)]) -> Vec<&str> {
    documents.iter().map(|(path, _)| path.as_str()).collect()
}

/// Whether a fixture comes to these documents and these failures.
fn expect_with(name: &str, options: &Value, documents: &[&str], failures: &[&str]) {
    let (found, failed) = of(name, options).expect(name);
    assert_eq!(paths(&found), documents, "{name}");
    assert_eq!(failed, failures, "{name}");
}

fn expect(name: &str, documents: &[&str], failures: &[&str]) {
    expect_with(name, &json!({}), documents, failures);
}

fn refused(name: &str, options: &Value) -> Error {
    of(name, options).expect_err(name)
}

#[test]
fn members_are_documents_of_their_own_format() {
    let plain = spec(&fixture("plain.zip"), &json!({}));
    let (items, failures) = list(&plain).expect("listing");
    assert!(failures.is_empty());
    assert_eq!(items[0].uri, "plain.zip!/docs/guide.md");
    assert_eq!(items[0].place, Place::Member { archive: String::new(), chain: vec![1] });
    assert_eq!(items[0].content_sha256, ContentHash::of("# Guide\n\nTurn the wheel.\n"));
    let document = |at: usize| rag_ingest::read(&plain, &items[at], &COUNTER).expect("readable");
    let guide = document(0);
    assert_eq!(
        (guide.path.as_deref(), guide.title.as_deref(), guide.media_type.as_str()),
        (Some("docs/guide.md"), Some("Guide"), "text/markdown")
    );
    let (found, _) = ingest(&plain).expect("listing");
    assert_eq!(
        paths(&found),
        ["docs/guide.md", "notes.txt", "src/main.py", "LICENSE", "nul.txt", "empty.md", "vendor/lib.md", "marked"]
    );
    let text = |path: &str| found.iter().find(|(p, _)| p == path).map(|(_, text)| text.as_str());
    assert_eq!(text("notes.txt"), Some("na\u{FFFD}ve\n"));
    assert_eq!(text("nul.txt"), Some("a\u{FFFD}b\n"));
    assert_eq!(text("marked"), Some("über\n"));
    // A comment is no heading; a file without an extension may have one.
    assert_eq!((document(2).title, document(3).title.as_deref()), (None, Some("Licence")));
    assert_eq!(list(&plain).expect("again").0, items);
}

/// Packs one page.
fn of_page(page: &str) -> Ingested {
    let mut packed = Vec::new();
    let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::best());
    encoder.write_all(page.as_bytes()).expect("packed");
    encoder.finish().expect("packed");
    let (_dir, path) = support::write("page.html.gz", &packed);
    ingest(&spec(&path, &json!({}))).expect("listing")
}

#[test]
fn a_page_without_text_is_a_template() {
    let one = |text: &str| (vec![("page.html".to_owned(), text.to_owned())], Vec::new());
    assert_eq!(of_page("<p>Words</p>"), one("Words\n"));
    assert_eq!(of_page("<input type=\"{{ kind }}\">\n"), one("<input type=\"{{ kind }}\">\n"));
    assert_eq!(of_page(""), one(""));
}

#[test]
fn globs_are_about_members() {
    let with = |options: Value| paths(&of("plain.zip", &options).expect("listing").0).join(" ");
    assert_eq!(with(json!({"glob": "*.md"})), "docs/guide.md empty.md vendor/lib.md");
    assert_eq!(with(json!({"glob": "*.md", "ignore": "vendor/"})), "docs/guide.md empty.md");
    assert_eq!(with(json!({"glob": "src/**"})), "src/main.py");
    assert_eq!(with(json!({"glob": "*.png"})), "");
    expect_with(
        "nested.zip",
        &json!({"glob": "depth*.md", "ignore": "next2.zip"}),
        &["depth0.md", "next0.zip!/depth1.md", "next0.zip!/next1.zip!/depth2.md"],
        &["member \"next0.zip!/words.zip\" is no archive of a known kind"],
    );
}

#[test]
fn a_folder_of_archives() {
    let dir = tempfile::tempdir().expect("tempdir");
    fs::create_dir(dir.path().join("sub")).expect("folder");
    for (from, to) in
        [("stored.zip", "b.zip"), ("plain.tar.gz", "sub/a.TGZ"), ("words.zip", "bad.zip"), ("page.md.gz", "page.md.gz")]
    {
        fs::copy(fixture(from), dir.path().join(to)).expect("copy");
    }
    fs::write(dir.path().join("not-listed.md"), "# No archive\n").expect("file");
    let spec = spec(dir.path(), &json!({"glob": "*.md"}));
    let (items, failures) = list(&spec).expect("listing");
    let uris: Vec<&str> = items.iter().map(|i| i.uri.as_str()).collect();
    let expected = ["b.zip!/ok.md", "page.md.gz!/page.md", "sub/a.TGZ!/docs/guide.md", "sub/a.TGZ!/ok.md"];
    assert_eq!(uris, expected);
    assert_eq!(items[3].place, Place::Member { archive: "sub/a.TGZ".into(), chain: vec![2] });
    assert_eq!(failures.len(), 1);
    assert_eq!(
        (failures[0].uri.as_str(), failures[0].error.message.as_str()),
        ("bad.zip", "archive \"bad.zip\" is no archive of a known kind")
    );
    let (found, _) = ingest(&spec).expect("listing");
    assert_eq!(paths(&found), ["ok.md", "page.md", "docs/guide.md", "ok.md"]);
}

#[test]
fn names_that_lead_out_are_refused() {
    expect(
        "traversal.zip",
        &["ok.md"],
        &[
            "member \"../up.md\" leads out of its folder by \"..\"",
            "member \"a/../../up.md\" leads out of its folder by \"..\"",
            "member \"../win.md\" leads out of its folder by \"..\"",
        ],
    );
    expect(
        "absolute.zip",
        &["ok.md"],
        &["member \"/etc/x.md\" has an absolute path", "member \"C:/x.md\" has an absolute path"],
    );
    expect(
        "unsafe.tar.gz",
        &["ok.md"],
        &["member \"../up.md\" leads out of its folder by \"..\"", "member \"/etc/x.md\" has an absolute path"],
    );
}

#[test]
fn links_are_not_followed() {
    expect(
        "links.zip",
        &["ok.md"],
        &[
            "member \"link.md\" is a symbolic link; links are not followed",
            "member \"dir/through.md\" lies beneath a link; links are not followed",
            "member \"pipe.md\" is a device, a pipe or a socket",
        ],
    );
    expect(
        "links.tar.gz",
        &["ok.md"],
        &[
            "member \"link.md\" is a symbolic link; links are not followed",
            "member \"hard.md\" is a hard link; links are not followed",
            "member \"dir/through.md\" lies beneath a link; links are not followed",
            "member \"pipe.md\" is a device, a pipe or a socket",
        ],
    );
}

#[test]
fn encrypted_members_need_the_password() {
    expect("encrypted.zip", &["ok.md"], &["member \"secret.md\" is encrypted"]);
    expect_with(
        "encrypted.zip",
        &json!({"password": "open sesam"}),
        &["ok.md"],
        &["member \"secret.md\" is encrypted with another password"],
    );
    let (found, failed) = of("encrypted.zip", &json!({"password": "open sesame"})).expect("listing");
    assert!(failed.is_empty());
    assert_eq!(found[0], ("secret.md".to_owned(), "# Secret\n\nThe key is under the mat.\n".to_owned()));
    let aes = ["member \"secret.md\" is encrypted with AES, which is not supported"];
    expect_with("aes.zip", &json!({"password": "x"}), &["ok.md"], &aes);
}

#[test]
fn damage_of_one_member_is_its_own() {
    let (found, failed) = of("lies.zip", &json!({})).expect("listing");
    assert_eq!(paths(&found), ["ok.md"]);
    let begin = [
        "member \"longer.md\" is damaged: it unpacks to more than the 10 bytes that it should have",
        "member \"shorter.md\" is damaged: it unpacks to 5 bytes and should have 10",
        "member \"crc.md\" is damaged: its checksum is ",
        "member \"garbage.md\" is damaged: ",
        "member \"nowhere.md\" ",
    ];
    assert_eq!(failed.len(), begin.len(), "{failed:?}");
    for (message, begin) in failed.iter().zip(begin) {
        assert!(message.starts_with(begin), "{message}");
    }
    expect("overlap.zip", &["a.md"], &["member \"b.md\" shares its packed bytes with another member"]);
    expect("bzip2.zip", &[], &["member \"a.md\" is packed by method 12 (BZIP2), which is not supported"]);
}

#[test]
fn damage_of_an_archive_is_that_of_all() {
    for (name, message) in [
        ("cut.zip", "archive \"cut.zip\" is damaged: it ends before the directory of its members"),
        ("words.zip", "archive \"words.zip\" is no archive of a known kind"),
        ("strange.zip", "archive \"strange.zip\" is packed by 7z, which is not supported"),
        ("cut.tar.gz", "archive \"cut.tar.gz\" is damaged: "),
        ("crc.tar.gz", "archive \"crc.tar.gz\" is damaged: "),
        ("header.tar", "archive \"header.tar\" is damaged: archive header checksum mismatch"),
    ] {
        let error = refused(name, &json!({}));
        assert!(error.message.starts_with(message), "{}", error.message);
    }
}

#[test]
fn of_two_members_of_one_name_the_last_counts() {
    for name in ["twice.zip", "twice.tar"] {
        let (found, failed) = of(name, &json!({})).expect("listing");
        assert!(failed.is_empty());
        let found: Vec<(&str, &str)> = found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(found, [("a.md", "# Second\n"), ("A.md", "# Upper\n"), ("a.md/b.md", "# Beneath a file\n")]);
    }
}

#[test]
fn names_in_any_encoding() {
    let (found, failed) = of("names.zip", &json!({})).expect("listing");
    assert_eq!(
        paths(&found),
        [
            "café.md",
            "straße.md",
            "日本語.md",
            "中文.md",
            "bad%FF.md",
            "neuÖ.md",
            "back/slash.md",
            "日本.md",
            "%93%FA%96{.md"
        ]
    );
    assert_eq!(failed.len(), 2);
    assert_eq!(failed[0], "member \"a\u{FFFD}b.md\" has a NUL in its name");
    assert!(failed[1].ends_with("x…\" has a name of 5003 bytes, longer than 4096"), "{}", failed[1]);
}

#[test]
fn unusual_archives_are_read() {
    for (name, documents) in [
        ("prefixed.zip", &["ok.md"][..]),
        ("stored.zip", &["ok.md"]),
        ("zip64.zip", &["ok.md", "second.md"]),
        ("empty.zip", &[]),
        ("empty.tar", &[]),
        ("empty.tar.gz", &[]),
        ("plain.tar", &["docs/guide.md", "ok.md"]),
        ("plain.tar.gz", &["docs/guide.md", "ok.md"]),
        ("page.md.gz", &["page.md"]),
        ("two.md.gz", &["two.md"]),
    ] {
        expect(name, documents, &[]);
    }
    let long = format!("{}long.md", "deep/".repeat(60));
    for name in ["long-pax.tar.gz", "long-gnu.tar.gz"] {
        expect(name, &[&long, "ok.md"], &[]);
    }
    expect("sparse.tar", &["ok.md"], &["member \"holes.md\" is a file with holes, which is not supported"]);
    assert_eq!(of("two.md.gz", &json!({})).expect("listing").0[0].1, "# One\n\n# Two\n");
}

#[test]
fn archives_in_archives() {
    let words = "member \"next0.zip!/words.zip\" is no archive of a known kind";
    let word = "member \"next0.zip!/next1.zip!/next2.zip!/next3.zip\" is an archive beneath max_depth 3 others";
    let shallow = [
        "depth0.md",
        "next0.zip!/depth1.md",
        "next0.zip!/next1.zip!/depth2.md",
        "next0.zip!/next1.zip!/next2.zip!/depth3.md",
        "next0.zip!/next1.zip!/page.md.gz!/page.md",
        "more.tar.gz!/inside.md",
    ];
    let (mut found, failed) = of("nested.zip", &json!({})).expect("listing");
    assert_eq!(paths(&found), shallow);
    assert_eq!(failed.len(), 2);
    assert!(failed.contains(&words.to_owned()) && failed.contains(&word.to_owned()), "{failed:?}");
    (found, _) = of("nested.zip", &json!({"limits": {"max_depth": 4}})).expect("listing");
    assert!(paths(&found).contains(&"next0.zip!/next1.zip!/next2.zip!/next3.zip!/depth4.md"));
    expect_with(
        "nested.zip",
        &json!({"limits": {"max_depth": 0}}),
        &["depth0.md"],
        &[
            "member \"next0.zip\" is an archive beneath max_depth 0 others",
            "member \"more.tar.gz\" is an archive beneath max_depth 0 others",
        ],
    );
    let nested = spec(&fixture("nested.zip"), &json!({}));
    let item = &list(&nested).expect("listing").0[3];
    assert_eq!(item.uri, "nested.zip!/next0.zip!/next1.zip!/next2.zip!/depth3.md");
    assert_eq!(item.place, Place::Member { archive: String::new(), chain: vec![1, 1, 1, 0] });
}

#[test]
fn limits_hold() {
    let bomb = "member \"zeros.txt\" unpacks 3073 bytes to 3145728 or more, beyond max_ratio 200";
    let (found, failed) = of("bomb.zip", &json!({})).expect("listing");
    assert_eq!((paths(&found), failed.len()), (vec!["ok.md"], 1));
    let (begin, end) = bomb.split_once("3073").expect("a number");
    assert!(failed[0].starts_with(begin) && failed[0].ends_with(end), "{}", failed[0]);
    expect_with("bomb.zip", &json!({"limits": {"max_ratio": 2000}}), &["zeros.txt", "ok.md"], &[]);
    expect_with(
        "bomb.zip",
        &json!({"limits": {"max_document_bytes": 1000}}),
        &["ok.md"],
        &["member \"zeros.txt\" has 3145728 bytes, more than max_document_bytes 1000"],
    );
    expect_with(
        "page.md.gz",
        &json!({"limits": {"max_document_bytes": 5}}),
        &[],
        &["member \"page.md\" has more than max_document_bytes 5 bytes"],
    );
    let whole = |name: &str, limits: Value| {
        let error = refused(name, &json!({"limits": limits}));
        assert_eq!(error.kind, Kind::LimitExceeded);
        error
    };
    let ratio = whole("bomb.tar.gz", json!({}));
    assert!(ratio.message.starts_with("archive \"bomb.tar.gz\" unpacks 40987 bytes to "), "{}", ratio.message);
    assert_eq!(ratio.detail.as_deref(), Some("It was at the member \"zeros.txt\" or after it."));
    let total = whole("bomb.tar.gz", json!({"max_ratio": 10_000, "max_total_bytes": 30_000_000}));
    assert_eq!(total.message, "archive \"bomb.tar.gz\" unpacks to more bytes than max_total_bytes 30000000");
    assert_eq!(whole("nested.zip", json!({"max_total_bytes": 1000})).kind, Kind::LimitExceeded);
    for name in ["plain.zip", "plain.tar", "plain.tar.gz", "nested.zip"] {
        let message = format!("archive \"{name}\" has more entries than max_entries 2");
        assert_eq!(whole(name, json!({"max_entries": 2})).message, message);
    }
}

#[test]
fn what_changed_is_never_read_as_what_was_listed() {
    let dir = tempfile::tempdir().expect("tempdir");
    let place = dir.path().join("a.zip");
    let replace = |name: &str| fs::copy(fixture(name), &place).map(|_| ()).expect("copy");
    for (listed, now) in [
        ("plain.zip", "nested.zip"),
        ("plain.zip", "plain.tar.gz"),
        ("plain.tar.gz", "plain.zip"),
        ("nested.zip", "plain.zip"),
        ("plain.zip", "empty.zip"),
        ("plain.tar", "links.tar.gz"),
    ] {
        replace(listed);
        let spec = spec(&place, &json!({"glob": "*.md"}));
        let items = list(&spec).expect("listing").0;
        rag_ingest::fetch(&spec, &items[0]).expect("as it was");
        replace(now);
        for item in &items {
            match rag_ingest::fetch(&spec, item) {
                Ok(content) => assert_eq!(ContentHash::of(&content.bytes), item.content_sha256),
                Err(error) => {
                    assert_eq!(
                        error.message,
                        format!("\"{}\" changed since it was listed", item.uri),
                        "{listed} {now}"
                    );
                }
            }
        }
        replace(listed);
        rag_ingest::fetch(&spec, &items[0]).expect("as it was again");
    }
    replace("plain.zip");
    let spec = spec(&place, &json!({}));
    let item = list(&spec).expect("listing").0.remove(0);
    replace("words.zip");
    let error = rag_ingest::fetch(&spec, &item).expect_err("no archive any more");
    assert_eq!(error.message, "archive of \"a.zip!/docs/guide.md\" is no archive of a known kind");
    fs::remove_file(&place).expect("removed");
    assert_eq!(rag_ingest::fetch(&spec, &item).expect_err("gone").kind, Kind::FileMissing);
}

#[test]
fn members_are_read_in_any_order() {
    for name in ["nested.zip", "plain.zip", "plain.tar.gz", "plain.tar"] {
        let spec = spec(&fixture(name), &json!({}));
        let items = list(&spec).expect("listing").0;
        for step in [1, 2, 3, 5] {
            for at in (0..3 * items.len()).map(|n| n * step % items.len()).chain((0..items.len()).rev()) {
                let bytes = rag_ingest::fetch(&spec, &items[at]).expect("readable");
                assert_eq!(ContentHash::of(&bytes.bytes), items[at].content_sha256, "{name} {at}");
            }
        }
    }
}

#[test]
fn a_place_that_is_none_is_refused() {
    let spec = spec(&fixture("plain.zip"), &json!({}));
    let item = list(&spec).expect("listing").0.remove(0);
    let fetch = |place: Place| rag_ingest::fetch(&spec, &Item { place, ..item.clone() }).expect_err("no place");
    let member = |archive: &str, chain: Vec<u64>| fetch(Place::Member { archive: archive.to_owned(), chain });
    assert_eq!(member("../plain.zip", vec![1]).kind, Kind::Forbidden);
    assert_eq!(member("/etc/passwd", vec![1]).kind, Kind::Forbidden);
    assert_eq!(fetch(Place::File { path: String::new() }).kind, Kind::Internal);
    for chain in [vec![], vec![99], vec![u64::MAX], vec![0], vec![2]] {
        assert_eq!(
            member("", chain.clone()).message,
            "\"plain.zip!/docs/guide.md\" changed since it was listed",
            "{chain:?}"
        );
    }
    member("", vec![1, 0]);
}
