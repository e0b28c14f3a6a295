// SPDX-License-Identifier: PostgreSQL

//! PDF: own fixtures with known text, hostile ones for each limit, and real files against what is known about them.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod paper;

use invariants::{check, counters};
use proptest::prelude::*;
use rag_core::document::{Chunk, Document};
use rag_core::error::{Error, Kind};
use rag_core::source::{Chunking, Secret, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::WordCounter;
use serde_json::{Value, json};
use std::path::Path;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/pdf");

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(FIXTURES).join(name)).expect("a fixture")
}

fn options(password: Option<&str>) -> SourceOptions {
    let password = password.map(|word| Secret::from(word.to_owned()));
    SourceOptions { password, ..SourceOptions::defaults(SourceKind::Pdf) }
}

fn parse(bytes: &[u8], options: &SourceOptions) -> Result<Document, Error> {
    let counter = WordCounter { window: 254 };
    let none = serde_json::Map::new();
    rag_ingest::parse_inline(SourceKind::Pdf, options, "a.pdf", bytes, &none, &counter).map_err(|f| f.error)
}

fn read(name: &str) -> Document {
    parse(&fixture(name), &options(None)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn refused(name: &str) -> Error {
    parse(&fixture(name), &options(None)).expect_err(name)
}

fn with<'d>(document: &'d Document, text: &str) -> &'d Chunk {
    let found = document.chunks.iter().find(|chunk| chunk.content.contains(text));
    found.unwrap_or_else(|| panic!("no chunk with {text:?} in {:?}", document.text))
}

#[test]
fn a_book_has_pages_paths_roles_and_paragraphs() {
    let book = read("book.pdf");
    assert_eq!(book.title.as_deref(), Some("A Small Book"));
    assert_eq!(book.language.as_deref(), Some("en-GB"));
    assert_eq!(book.published_at.as_deref(), Some("2024-01-02T03:04:05+01:00"));
    assert_eq!(book.metadata["author"], "Nobody");
    assert_eq!(book.media_type, "application/pdf");

    let keeper = with(&book, "Its keeper wrote");
    assert_eq!(keeper.heading_path, ["1 The Lighthouse", "1.1 The Keeper"]);
    assert_eq!(keeper.pages, Some((4, 5)));
    let sentence = "he had an information that no other record holds: the colour of the sea. His well-known book was \
                    lost, although a copy is said to be in the library, where the keeper of manuscripts found";
    assert!(keeper.content.contains(sentence), "{}", keeper.content);
    assert!(keeper.content.contains("\n\nA second paragraph begins here"), "{}", keeper.content);
    assert!(
        keeper.content.starts_with("1 The Lighthouse\n\n1.1 The Keeper\n\nThe lighthouse was"),
        "{}",
        keeper.content
    );

    for (text, page, path, role) in [
        ("by Nobody in", 1, &[][..], None),
        ("ISBN", 2, &[], Some("metadata")),
        ("1.1 The Keeper .", 3, &[], Some("navigation")),
        ("Boats of a", 6, &["2 The Harbour", "Not on the page"], None),
        ("Mole: a wall", 7, &["Glossary"], Some("reference")),
        ("lighthouse, 4", 8, &["Index"], Some("navigation")),
    ] {
        let chunk = with(&book, text);
        assert_eq!(chunk.pages, Some((page, page)), "{text}");
        assert_eq!(chunk.heading_path, path, "{text}");
        assert_eq!(chunk.facts.role.as_deref(), role, "{text}");
    }
    // The header and the numbers of the pages are gone.
    assert_eq!(book.text.matches("A Small Book").count(), 1, "{}", book.text);
    assert!(!book.text.contains("\n5\n"));
}

#[test]
fn running_titles_of_short_chapters_and_roman_numbers_go() {
    let manual = read("manual.pdf");
    for said in ["The Manual", "Edition 2", "\nii", " iii", " i\n"] {
        assert!(!manual.text.contains(said), "{said:?} in {}", manual.text);
    }
    // Once as an entry of the contents and once as a heading.
    for title in ["1 Salt", "2 Ice", "3 Fog", "4 Wind"] {
        assert_eq!(manual.text.matches(title).count(), 2, "{title} in {}", manual.text);
    }
    for name in ["salt", "brine", "ice", "frost", "fog", "mist", "wind", "gales"] {
        assert!(manual.text.contains(&format!("Whoever reads of {name} here")), "{name}");
    }
}

#[test]
fn hyphens_that_words_have_of_their_own_stay() {
    let text = read("manual.pdf").text;
    for said in ["the means are ten-minute means", "the log is kept half-yearly.", "an information on the cooperation"]
    {
        assert!(text.contains(said), "{said:?} in {text}");
    }
}

#[test]
fn rows_of_narrow_tables_stay_together() {
    let text = read("manual.pdf").text;
    for row in [
        "\nLamp Range by day Range by night Watched by\nMorrow Head seven miles nineteen miles the keeper\n",
        "\nHathery South two miles seven miles the coast guard\n",
        "\nup to 10 mm ordinary working of all of the nobody on the ice\n",
        "\nover 60 mm no locking on notice\n",
        "\n11 Traffic of the lock by the cabin, always\n67 Doctor, medical advice when asked\n",
    ] {
        assert!(text.contains(row), "{row:?} in {text}");
    }
}

#[test]
fn the_columns_of_an_index_are_read_one_after_the_other() {
    let text = read("manual.pdf").text;
    let index: Vec<&str> = text[text.rfind("Index").expect("an index")..].lines().filter(|l| !l.is_empty()).collect();
    let order = [
        "batteries, 4",
        "beacons, 5",
        "birds, 4, 7",
        "lifting of, 1",
        "cables, 6",
        "canoes, 1",
        "channels, 5",
        "charts, 2",
        "currents, 7",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|entry| index.iter().position(|line| line == entry).unwrap_or_else(|| panic!("{entry}: {index:?}")))
        .collect();
    assert!(places.is_sorted(), "{index:?}");
}

#[test]
fn a_glossary_goes_on_until_the_next_section() {
    let manual = read("manual.pdf");
    for text in ["Bank. A heap of sand", "Cut. A channel", "Index. The list", "Flood. The water", "Neap. A small tide."]
    {
        assert_eq!(with(&manual, text).facts.role.as_deref(), Some("reference"), "{text}");
    }
    for (text, role) in [("Whoever reads of gales", None), ("abandon ship, 5", Some("navigation"))] {
        assert_eq!(with(&manual, text).facts.role.as_deref(), role, "{text}");
    }
}

#[test]
fn headings_are_there_for_who_chunks_by_headings() {
    let options = SourceOptions { chunking: Chunking::Heading, ..options(None) };
    let book = parse(&fixture("book.pdf"), &options).expect("a document");
    assert_eq!(with(&book, "Its keeper wrote").heading_path, ["1 The Lighthouse", "1.1 The Keeper"]);
    assert_eq!(with(&book, "Mole: a wall").heading_path, ["Glossary"]);
}

#[test]
fn columns_are_read_one_after_the_other() {
    let text = read("columns.pdf").text;
    let order = [
        "A title across",
        "The left column begins",
        "left column before the right",
        "The right column begins",
        "the right column ends",
        "read last of all",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|sentence| text.find(sentence)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {text}");
}

#[test]
fn ligatures_maps_and_marked_text_are_read() {
    let text = read("fonts.pdf").text;
    assert_eq!(text, "the first baffle costs 5 €\n\n灯台の本\n\nChapter nine\n");
}

#[test]
fn text_that_stands_for_glyphs_is_text() {
    let mut file = fixture("fonts.pdf");
    let at = file.windows(9).position(|bytes| bytes == b"(Chapter)").expect("the text");
    file[at..at + 9].copy_from_slice(b"(C\0a\rt\x01r)");
    let document = parse(&file, &options(None)).expect("a document");
    assert!(document.text.ends_with("\n\nCa tr nine\n"), "{:?}", document.text);
    check(&document, &options(None), &WordCounter { window: 254 }, 0);
}

#[test]
fn turned_text_and_turned_pages_are_read() {
    assert_eq!(read("turned.pdf").text, "Upright text comes first, line after line.\n\nA note along the margin\n");
    assert_eq!(read("rotated.pdf").text, "Read on a turned page from top to bottom.\n");
}

#[test]
fn a_password_opens_and_its_absence_is_said() {
    assert_eq!(read("open.pdf").text, "Encrypted, and open to everybody.\n");
    let locked = fixture("locked.pdf");
    let error = refused("locked.pdf");
    assert_eq!((error.kind, error.message.as_str()), (Kind::BadContent, "PDF is encrypted and needs a password"));
    assert!(error.hint.is_some_and(|hint| hint.contains("\"password\"")));
    let error = parse(&locked, &options(Some("simsim"))).expect_err("a wrong word");
    assert_eq!(error.message, "PDF is encrypted and option \"password\" is not its password");
    for word in ["sesame", "owner"] {
        let document = parse(&locked, &options(Some(word))).expect("the word");
        assert_eq!(document.text, "Encrypted, and open to who knows the word.\n");
    }
}

/// Texts of the documents of a source and messages of what failed.
fn ingest(kind: SourceKind, location: &Path, options: &Value) -> (Vec<String>, Vec<String>) {
    let spec = SourceSpec {
        kind,
        location: location.to_str().expect("UTF-8").to_owned(),
        options: SourceOptions::parse(kind, options).expect("options"),
        allowed_paths: vec![location.parent().expect("a folder").to_str().expect("UTF-8").to_owned()],
        allowed_hosts: Vec::new(),
        seen: None,
    };
    let (mut texts, mut failed) = (Vec::new(), Vec::new());
    let counter = WordCounter { window: 254 };
    rag_ingest::list(&spec, &mut |items, failures| {
        failed.extend(failures.into_iter().map(|failure| failure.error.message));
        for item in &items {
            match rag_ingest::read(&spec, item, &counter) {
                Ok(document) => texts.push(document.text),
                Err(failure) => failed.push(failure.error.message),
            }
        }
        Ok(())
    })
    .expect("lists");
    (texts, failed)
}

#[test]
fn a_password_reaches_what_lies_in_a_folder_an_archive_or_a_repository() {
    let folder = tempfile::tempdir().expect("a folder");
    let papers = folder.path().join("papers");
    std::fs::create_dir(&papers).expect("a folder");
    let mut archive = tar::Builder::new(Vec::new());
    for name in ["locked.pdf", "open.pdf"] {
        let bytes = fixture(name);
        std::fs::write(papers.join(name), &bytes).expect("a file");
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes.as_slice()).expect("a member");
    }
    let packed = folder.path().join("papers.tar");
    std::fs::write(&packed, archive.into_inner().expect("an archive")).expect("a file");
    let mut places = vec![(SourceKind::Pdf, papers.clone()), (SourceKind::Zip, packed)];
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(&papers).args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(arguments);
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent").output().is_ok_and(|done| done.status.success())
    };
    match git(&["init", "-q"]) && git(&["add", "."]) && git(&["commit", "-qm", "papers"]) {
        true => places.push((SourceKind::Git, papers.clone())),
        false => eprintln!("skipped: git is not installed"),
    }
    let (open, locked) = ("Encrypted, and open to everybody.\n", "Encrypted, and open to who knows the word.\n");
    for (kind, place) in places {
        let (texts, failed) = ingest(kind, &place, &json!({"password": "sesame"}));
        assert_eq!((texts, failed), (vec![locked.to_owned(), open.to_owned()], vec![]), "{kind:?}");
        for (options, message) in [
            (json!({}), "PDF is encrypted and needs a password"),
            (json!({"password": "simsim"}), "PDF is encrypted and option \"password\" is not its password"),
        ] {
            let (texts, failed) = ingest(kind, &place, &options);
            assert_eq!((texts, failed), (vec![open.to_owned()], vec![message.to_owned()]), "{kind:?}");
        }
        let (texts, failed) = ingest(kind, &place, &json!({"password": "sesame", "limits": {"max_pages": 1}}));
        assert_eq!((texts.len(), failed.len()), (2, 0), "{kind:?}");
    }
}

#[test]
fn pages_without_text_are_refused_and_no_pages_are_no_chunks() {
    let error = refused("scan.pdf");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (Kind::BadContent, "PDF has no text layer: 0 of 1 pages have text")
    );
    assert_eq!(read("empty.pdf").chunks.len(), 0);
    let error = parse(b"no such thing", &options(None)).expect_err("text");
    assert_eq!((error.kind, error.message.as_str()), (Kind::BadContent, "document is not a PDF that can be read"));
}

#[test]
fn each_limit_is_named() {
    for (name, says) in [
        ("bomb-content.pdf", "a stream has more than 134217728 bytes when decompressed"),
        ("bomb-objects.pdf", "a stream has more than 134217728 bytes when decompressed"),
        ("bomb-twice.pdf", "a stream is compressed more than once"),
        ("bomb-glyphs.pdf", "a page has more than 500000 glyphs"),
    ] {
        let error = refused(name);
        assert_eq!(error.kind, Kind::LimitExceeded, "{name}: {error}");
        assert!(error.message.ends_with(says), "{name}: {error}");
    }
    let mut few = options(None);
    few.limits.max_pages = 7;
    let error = parse(&fixture("book.pdf"), &few).expect_err("eight pages");
    assert_eq!(error.message, "PDF exceeds a limit: 8 pages are more than max_pages 7");
    assert!(error.hint.is_some());
}

#[test]
fn what_goes_round_or_deep_ends() {
    let loops = read("loops.pdf");
    assert!(loops.text.contains("round"));
    assert_eq!(loops.title.as_deref(), Some("again"));
    assert!(read("deep.pdf").text.starts_with("text"));
}

/// A title goes with every chunk, so a long one is cut, whatever the format.
#[test]
fn a_long_title_is_cut() {
    let bytes = fixture("loops.pdf");
    let at = bytes.windows(7).position(|w| w == b"(again)").expect("the title");
    let long = format!("({})", "again ".repeat(200));
    let bytes = [&bytes[..at], long.as_bytes(), &bytes[at + 7..]].concat();
    let document = parse(&bytes, &options(None)).expect("a document");
    assert_eq!(document.title.map(|title| title.chars().count()), Some(500));
}

#[test]
fn every_document_is_tiled() {
    for name in ["book.pdf", "columns.pdf", "manual.pdf", "fonts.pdf", "turned.pdf", "loops.pdf"] {
        for chunking in [Chunking::Structure, Chunking::Heading, Chunking::Recursive] {
            for counter in counters(254) {
                let options = SourceOptions { chunking, chunk_tokens: 40, ..options(None) };
                let none = serde_json::Map::new();
                let document =
                    rag_ingest::parse_inline(SourceKind::Pdf, &options, "a.pdf", &fixture(name), &none, &*counter);
                check(&document.expect("a document"), &options, &*counter, 0);
            }
        }
    }
}

#[test]
fn many_pages_are_read_to_the_last() {
    // A thousand are read by the engine's tests, within a worker's memory.
    let count = 150;
    let document = parse(&paper::pdf(count, paper::LINES), &options(None)).expect("a document");
    let lines = (1..=count).flat_map(|page| (1..=paper::LINES).map(move |n| paper::line(page, n)));
    let words: Vec<String> = lines.flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
    assert!(document.text.split_whitespace().eq(words.iter()), "other words than were written");
    assert_eq!(document.chunks.last().and_then(|chunk| chunk.pages).map(|(_, last)| last as usize), Some(count));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 600 }))]

    #[test]
    fn damaged_files_are_documents_or_errors(
        which in 0_usize..6,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let names = ["book.pdf", "columns.pdf", "fonts.pdf", "locked.pdf", "open.pdf", "loops.pdf"];
        let mut file = fixture(names[which]);
        for (at, byte) in edits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if cuts {
            file.truncate(cut.index(file.len()));
        }
        let options = options(Some("sesame"));
        match parse(&file, &options) {
            Ok(document) => check(&document, &options, &WordCounter { window: 254 }, 0),
            Err(error) => prop_assert!(!error.message.is_empty() && error.kind != Kind::Internal),
        }
    }

    #[test]
    fn any_bytes_are_a_document_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut file = b"%PDF-1.7\n1 0 obj\n".to_vec();
        file.extend(bytes);
        let _ = parse(&file, &options(None));
    }
}
