// SPDX-License-Identifier: PostgreSQL

//! PDFs that others made: each is ingested or refused as the manifest of the files says.
//!
//! The right words come from pdftotext (poppler), where it is installed, and from the manifest.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{check, data};
use rag_core::document::Document;
use rag_core::error::{Error, Kind};
use rag_core::source::{Secret, SourceKind, SourceOptions};
use rag_core::tokens::WordCounter;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// What is to become of a file.
enum Expected {
    /// A document of so many pages with chunks, in which these texts are; with a password where one is needed.
    Text(u32, Option<&'static str>, &'static [&'static str]),
    /// An error of this kind that says so.
    Refused(Kind, &'static str),
    /// A document without chunks.
    Nothing,
}
use Expected::{Nothing, Refused, Text};

/// Each row of the manifest, by its own words; texts are those of the files.
const FILES: &[(&str, Expected)] = &[
    ("nasty/zero-pages.pdf", Nothing),
    // 117 pages, outline 16, German, mathematics, TOC
    (
        "pdf/GeoTopo-komprimiert.pdf",
        Text(117, None, &["Dieses Skript wurde im Wintersemester 2013/2014 von Martin Thoma geschrieben."]),
    ),
    // cyclic page tree
    ("pdf/Pages-tree-refs.pdf", Text(1, None, &["Pages loop"])),
    // AES-256 R6 (passwords: usersecret / ownersecret)
    ("pdf/aes-256-r6.pdf", Text(1, Some("usersecret"), &["Hello World"])),
    // truncated, 184 bytes
    ("pdf/bug1020226.pdf", Refused(Kind::BadContent, "not a PDF that can be read")),
    // ja text with a ToUnicode map, several pages
    ("pdf/cjk-ja-tounicode.pdf", Text(5, None, &["コンテナ内のFastAPI - Docker", "Linuxコンテナの使用には"])),
    // encrypted with empty user password, text readable
    ("pdf/encrypted.pdf", Text(1, None, &["What Is the Purpose of This Form?"])),
    ("pdf/google-doc-document.pdf", Text(1, None, &["Beautiful is better than ugly."])),
    // image only, no text
    ("pdf/grayscale-image.pdf", Refused(Kind::BadContent, "no text layer")),
    // right-to-left text
    ("pdf/habibi.pdf", Text(1, None, &["حَبيبي habibi حَبيبي"])),
    // CJK text, 241 characters on page 1
    ("pdf/issue16063.pdf", Text(1, None, &["工具を用いずに電線の接続を行うことができる速結端子"])),
    // broken xref
    ("pdf/issue9105_reduced.pdf", Text(1, None, &["Issue 9105"])),
    // CJK text, 12 characters
    ("pdf/issue_566_test_2.pdf", Text(1, None, &["甲方：中国饮料有限公司（盖章）"])),
    // encrypted, needs a password
    ("pdf/libreoffice-writer-password.pdf", Text(1, Some("openpassword"), &["Lorem ipsum"])),
    ("pdf/minimal-document.pdf", Text(1, None, &["Lorem ipsum dolor sit amet, consetetur"])),
    // multi-column, 3 pages
    ("pdf/multicolumn.pdf", Text(3, None, &["Two-Column Document with Lorem Ipsum"])),
    // CJK, Shift-JIS CMap, font not embedded
    ("pdf/noembed-sjis.pdf", Text(1, None, &["あいうえお"])),
    ("pdf/pdflatex-4-pages.pdf", Text(4, None, &["Hello, here is some text without a meaning."])),
    // outline (9 top items), 4 pages
    ("pdf/pdflatex-outline.pdf", Text(4, None, &["9 Baz"])),
    // fuzzed page tree
    ("pdf/poppler-937-0-fuzzed.pdf", Refused(Kind::BadContent, "not a PDF that can be read")),
    // dense table-like page
    ("pdf/pr-00530-ml-lines.pdf", Text(1, None, &["supersede Airworthiness Directive (AD) 2018–23–51"])),
    // RC4-40 encrypted (password foo or baz in the tests)
    ("pdf/rc4-40.pdf", Text(1, Some("foo"), &["Secret!"])),
    // rotated pages
    (
        "pdf/rotation.pdf",
        Text(2, None, &["This is my first page with normal layout.", "It will have a landscape layout."]),
    ),
    // two-column paper with figures and tables, 14 pages
    ("pdf/tracemonkey.pdf", Text(14, None, &["Trace-based Just-in-Time Type Specialization"])),
    // embedded file
    ("pdf/with-attachment.pdf", Text(1, None, &["Lorem ipsum dolor sit amet, consetetur"])),
    // broken xref (keyword missing)
    ("pdf/xref_command_missing.pdf", Text(1, None, &["Reduced test-case"])),
    // corrupted, text recoverable
    (
        "pdf/zen_of_python_corrupted.pdf",
        Text(1, None, &["Beautiful is better than ugly.", "Namespaces are one honking great idea"]),
    ),
];

/// Files that are text enough to compare their words. Left out: two scripts that pdftotext stores in another order
/// (habibi) or has no map for without its language packs (noembed-sjis).
fn compared() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let left_out = ["pdf/habibi.pdf", "pdf/noembed-sjis.pdf"];
    FILES.iter().filter_map(move |(name, expected)| match expected {
        Text(_, password, _) if !left_out.contains(name) => Some((*name, *password)),
        _ => None,
    })
}

fn parse(path: &Path, password: Option<&str>) -> Result<Document, Error> {
    let bytes = std::fs::read(path).expect("a file");
    let options = options(password);
    let none = serde_json::Map::new();
    let counter = WordCounter { window: 254 };
    rag_ingest::parse_inline(SourceKind::Pdf, &options, "a.pdf", &bytes, &none, &counter).map_err(|f| f.error)
}

fn options(password: Option<&str>) -> SourceOptions {
    let password = password.map(|word| Secret::from(word.to_owned()));
    SourceOptions { password, ..SourceOptions::defaults(SourceKind::Pdf) }
}

#[test]
fn every_file_is_what_the_manifest_says() {
    let Some(data) = data() else { return };
    let manifest = std::fs::read_to_string(data.join("MANIFEST.tsv")).expect("a manifest");
    let rows: BTreeSet<&str> = manifest.lines().filter_map(|row| row.split('\t').next()).collect();
    let rows: BTreeSet<&str> = rows.into_iter().filter(|name| name.ends_with(".pdf")).collect();
    assert_eq!(rows, FILES.iter().map(|(name, _)| *name).collect());
    for (name, expected) in FILES {
        let path = data.join(name);
        match expected {
            Nothing => assert_eq!(parse(&path, None).expect(name).chunks.len(), 0, "{name}"),
            Refused(kind, says) => {
                let error = parse(&path, None).expect_err(name);
                assert_eq!(error.kind, *kind, "{name}: {error}");
                assert!(error.message.contains(says), "{name}: {error}");
            }
            Text(pages, password, texts) => {
                if password.is_some() {
                    let error = parse(&path, None).expect_err(name);
                    assert_eq!(error.message, "PDF is encrypted and needs a password", "{name}");
                    let error = parse(&path, Some("wrong")).expect_err(name);
                    assert!(error.message.ends_with("is not its password"), "{name}: {error}");
                }
                let document = parse(&path, *password).unwrap_or_else(|e| panic!("{name}: {e}"));
                let last = document.chunks.iter().filter_map(|chunk| chunk.pages).map(|(_, last)| last).max();
                assert_eq!(last, Some(*pages), "{name}");
                for text in *texts {
                    assert!(
                        document.text.contains(text),
                        "{name}: no {text:?} in {:?}",
                        document.text.chars().take(2000).collect::<String>()
                    );
                }
                check(&document, &options(None), &WordCounter { window: 254 }, 0);
            }
        }
    }
}

/// Words with how often they are there; an ideograph is one, because nothing separates them.
fn words(text: &str) -> BTreeMap<String, usize> {
    let mut words = BTreeMap::new();
    let mut open = String::new();
    for c in text.chars().chain([' ']) {
        let ideograph = matches!(c, '\u{3040}'..='\u{9FFF}' | '\u{FF10}'..='\u{FF5A}');
        if !c.is_alphanumeric() || ideograph {
            if !open.is_empty() {
                *words.entry(std::mem::take(&mut open)).or_default() += 1;
            }
            if ideograph {
                *words.entry(c.to_string()).or_default() += 1;
            }
        } else {
            open.push(c);
        }
    }
    words
}

fn f1(ours: &BTreeMap<String, usize>, theirs: &BTreeMap<String, usize>) -> f64 {
    let shared: usize = ours.iter().map(|(word, n)| theirs.get(word).copied().unwrap_or(0).min(*n)).sum();
    2.0 * shared as f64 / (ours.values().sum::<usize>() + theirs.values().sum::<usize>()).max(1) as f64
}

/// A text without hyphens at the ends of lines and without ligatures, which both of us repair, each in his own way.
fn plain(text: &str) -> String {
    let mut plain = text.replace("-\n", "").replace('\u{AD}', "").replace('\u{C}', "\n");
    for (ligature, letters) in [("ﬀ", "ff"), ("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬃ", "ffi"), ("ﬄ", "ffl")] {
        plain = plain.replace(ligature, letters);
    }
    plain
}

#[test]
fn the_words_are_those_of_pdftotext() {
    let Some(data) = data() else { return };
    for (name, password) in compared() {
        let mut command = Command::new("pdftotext");
        command.args(["-enc", "UTF-8"]);
        if let Some(password) = password {
            command.args(["-upw", password, "-opw", password]);
        }
        let Ok(output) = command.arg(data.join(name)).arg("-").output() else {
            eprintln!("skipped: pdftotext is not installed");
            return;
        };
        let theirs = words(&plain(&String::from_utf8_lossy(&output.stdout)));
        let ours = words(&plain(&parse(&data.join(name), password).expect(name).text));
        let f1 = f1(&ours, &theirs);
        let (n, m) = (ours.values().sum::<usize>(), theirs.values().sum::<usize>());
        eprintln!("| {name} | {n} | {m} | {f1:.4} |");
        assert!(f1 >= 0.95, "{name}: {f1:.4}");
    }
}

fn in_order(document: &Document, sentences: &[&str]) {
    let mut at = 0;
    for sentence in sentences {
        let found = document.text[at..].find(sentence);
        let found = found.unwrap_or_else(|| panic!("no {sentence:?} after byte {at}"));
        at += found + sentence.len();
    }
}

#[test]
fn columns_are_read_in_order() {
    let Some(data) = data() else { return };
    let paper = parse(&data.join("pdf/tracemonkey.pdf"), None).expect("a document");
    in_order(
        &paper,
        &[
            "Trace-based Just-in-Time Type Specialization for Dynamic Languages",
            "Dynamic languages such as JavaScript are more difficult to compile than statically typed ones.",
            "1. Introduction",
            "They are used for small scripts as well as for complex applications.",
            // The right column of the first page.
            "spend most of their time in hot loops",
            "expect hot loops to be mostly type-stable",
            // From here on one column after the other, over thirteen pages.
            "2. Overview: Example Tracing Run",
            "3. Trace Trees",
            "4. Nested Trace Tree Formation",
            "5. Trace Tree Optimization",
            "6. Implementation",
            "7. Evaluation",
            "8. Related Work",
            "9. Conclusions",
            "References",
        ],
    );
    let columns = parse(&data.join("pdf/multicolumn.pdf"), None).expect("a document");
    in_order(
        &columns,
        &[
            "Two-Column Document with Lorem Ipsum",
            "This is a sample document with two columns filled with Lorem Ipsum text.",
            "Lorem ipsum dolor sit amet, consectetuer adipiscing elit.",
            "Nam dui ligula, fringilla a, euismod sodales, sollicitudin vel, wisi.",
            "Nulla malesuada porttitor diam.",
            "Quisque ullamcorper placerat ipsum.",
            "Fusce mauris. Vestibulum luctus nibh at lectus.",
        ],
    );
}

#[test]
fn contents_and_index_are_navigation() {
    let Some(data) = data() else { return };
    let with_role = |document: &Document, text: &str| {
        let chunk = document.chunks.iter().find(|chunk| chunk.content.contains(text));
        chunk.unwrap_or_else(|| panic!("no {text:?}")).facts.role.clone()
    };
    let navigation = Some("navigation".to_owned());
    let book = parse(&data.join("pdf/GeoTopo-komprimiert.pdf"), None).expect("a document");
    for text in ["Inhaltsverzeichnis", "1.2 Metrische Räume . .", "Stichwortverzeichnis"] {
        assert_eq!(with_role(&book, text), navigation, "{text}");
    }
    for text in ["Dieses Skript wurde im Wintersemester", "Erforderliche Vorkenntnisse", "Die Kugeloberfläche"] {
        assert_eq!(with_role(&book, text), None, "{text}");
    }
    let pages: BTreeSet<u32> =
        book.chunks.iter().filter(|c| c.facts.role == navigation).filter_map(|c| c.pages).map(|(p, _)| p).collect();
    assert!(pages.iter().all(|page| *page == 4 || *page >= 115), "{pages:?}");
    let outline = parse(&data.join("pdf/pdflatex-outline.pdf"), None).expect("a document");
    assert_eq!(with_role(&outline, "Contents"), navigation);
    assert_eq!(with_role(&outline, "Hello, here is some text"), None);
}

#[test]
fn an_outline_gives_heading_paths() {
    let Some(data) = data() else { return };
    let book = parse(&data.join("pdf/GeoTopo-komprimiert.pdf"), None).expect("a document");
    let chunk = book.chunks.iter().find(|c| c.content.contains("Ein topologischer Raum ist ein Paar"));
    let chunk = chunk.expect("the definition");
    assert_eq!(chunk.heading_path, ["1 Topologische Grundbegriffe", "1.1 Topologische Räume"]);
    assert_eq!(chunk.pages.map(|(first, _)| first), Some(6));
}
