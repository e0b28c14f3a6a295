// SPDX-License-Identifier: PostgreSQL

//! Pages, Word documents and books: what is in them arrives, what is around it does not.
//!
//! Right values come from the files, which were written for this; from other readers (`eval/oracle/markup.py`); and from
//! Markdown whose HTML another program wrote.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{check, counters, options};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html};
use rag_core::document::Document;
use rag_core::source::{Chunking, SourceKind, SourceOptions, SourceSpec};
use rag_core::tokens::WordCounter;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads content, and checks what must hold of every document.
fn read(kind: SourceKind, content: &[u8]) -> Document {
    let mut document = Document::default();
    for (chunking, tokens) in [(Chunking::Recursive, 40), (Chunking::Structure, 200), (Chunking::Structure, 20)] {
        let options = options(kind, chunking, tokens);
        for counter in counters(254) {
            let parse = || rag_ingest::parse_inline(kind, &options, "doc", content, &Map::new(), &*counter);
            document = parse().expect("a document");
            check(&document, &options, &*counter, 0);
            assert_eq!(parse().expect("a document"), document, "twice the same");
        }
    }
    document
}

/// What Markdown holds, as a parser of Markdown sees it.
#[derive(Debug, Default, PartialEq)]
struct Content {
    headings: Vec<(u8, String)>,
    code: Vec<(String, String)>,
    tables: Vec<Vec<String>>,
    links: Vec<String>,
    words: Vec<String>,
}

const EXTENSIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_HEADING_ATTRIBUTES)
    .union(Options::ENABLE_YAML_STYLE_METADATA_BLOCKS);

fn events(markdown: &str) -> Vec<Event<'_>> {
    let mut matter = false;
    let keep = |event: &Event<'_>| {
        match event {
            Event::Start(Tag::MetadataBlock(_)) => matter = true,
            Event::End(TagEnd::MetadataBlock(_)) => {
                matter = false;
                return false;
            }
            _ => {}
        }
        let html = matches!(
            event,
            Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock)
        );
        !matter && !html
    };
    Parser::new_ext(markdown, EXTENSIONS).filter(keep).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

fn content(events: &[Event<'_>]) -> Content {
    let mut content = Content::default();
    let (mut heading, mut code, mut cell) = (None, None, None);
    let mut line = String::new();
    for event in events {
        match event {
            Event::Start(Tag::Heading { level, .. }) => heading = Some((*level as u8, String::new())),
            Event::End(TagEnd::Heading(_)) => {
                let (level, text) = heading.take().expect("open");
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                content.headings.extend((!text.is_empty()).then_some((level, text)));
                line.push('\n');
            }
            Event::Start(Tag::List(_) | Tag::Item) => line.push('\n'),
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = if let CodeBlockKind::Fenced(info) = kind { info.as_ref() } else { "" };
                let language = info.split([' ', ',', '{', '\t']).next().unwrap_or_default().to_lowercase();
                code = Some((language, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => {
                let (language, text) = code.take().expect("open");
                let language = if matches!(language.as_str(), "text" | "none") { String::new() } else { language };
                content
                    .code
                    .extend((!text.trim().is_empty()).then(|| (language, text.trim_end().replace('\u{a0}', " "))));
            }
            Event::Start(Tag::Table(_)) => content.tables.push(Vec::new()),
            Event::Start(Tag::TableCell) => cell = Some(String::new()),
            Event::End(TagEnd::TableCell) => {
                let text = words(&cell.take().unwrap_or_default()).join(" ");
                content.tables.last_mut().expect("open").push(text);
                line.push('\n');
            }
            Event::Start(Tag::Link { dest_url, .. }) if dest_url.contains("://") => {
                content.links.push(dest_url.to_string())
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, heading)) = &mut heading {
                    heading.push_str(text);
                }
                if let Some(cell) = &mut cell {
                    cell.push_str(text);
                }
                match &mut code {
                    Some((_, code)) => code.push_str(text),
                    None => line.push_str(text),
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                line.push(' ');
                if let Some((_, heading)) = &mut heading {
                    heading.push(' ');
                }
            }
            Event::End(end)
                if !matches!(end, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Strikethrough) =>
            {
                line.push('\n')
            }
            _ => {}
        }
    }
    content.words = words(&line);
    content
}

fn of(document: &Document) -> Content {
    content(&events(&document.text))
}

/// The share of `wanted` that is in `found`, each word as often as it is there.
fn recall(wanted: &[String], found: &[String]) -> f64 {
    let mut left: HashMap<&str, usize> = HashMap::new();
    found.iter().for_each(|word| *left.entry(word).or_default() += 1);
    let hits = wanted.iter().filter(|word| left.get_mut(word.as_str()).filter(|n| **n > 0).map(|n| *n -= 1).is_some());
    hits.count() as f64 / wanted.len().max(1) as f64
}

#[test]
fn an_article_arrives_without_its_surroundings() {
    let document = read(SourceKind::Article, &fixture("html/ferry.html"));
    assert_eq!(document.title.as_deref(), Some("How the night ferry learned to wait"));
    assert_eq!(document.language.as_deref(), Some("en-GB"));
    assert_eq!(document.published_at.as_deref(), Some("2025-03-14T18:20:00+01:00"));
    let metadata = json!({
        "canonical_url": "https://harbour.example/notes/night-ferry",
        "author": "Ines Calder, Tom Brandt",
        "site_name": "Harbour Notes",
        "description": "Why the last boat now leaves when the train is in, and not before.",
        "modified_at": "2025-03-15T00:00:00Z",
    });
    assert_eq!(Value::Object(document.metadata.clone()), metadata);
    let found = of(&document);
    let headings = [
        (1, "How the night ferry learned to wait"),
        (2, "What the rules say"),
        (2, "The numbers so far"),
        (3, "How the program decides"),
    ];
    assert_eq!(found.headings, headings.map(|(level, text)| (level, text.to_owned())));
    let code = "def wait(minutes, passengers):\n    if minutes < 4:\n        return True\n    return passengers > 30 and minutes <= 12";
    assert_eq!(found.code, [("python".to_owned(), code.to_owned())]);
    let cells = "month,on time,waited,missed trains,january,31,0,9,february,19,9,1";
    assert_eq!(found.tables, [cells.split(',').map(str::to_owned).collect::<Vec<_>>()]);
    assert_eq!(found.links, ["https://harbour.example/rules/waiting?v=2#top"]);
    for there in [
        "![The northern pier at night, one lamp lit](https://harbour.example/img/pier.jpg)",
        "1. If the train is less than four minutes away, wait.\n2. If it carries",
        "   - wait up to twelve minutes,\n   - tell the southern pier.\n3. Otherwise",
        "> “We never needed",
        "sell *soup* after",
        "due in May.",
    ] {
        assert!(document.text.contains(there), "{there:?} is not in\n{}", document.text);
    }
    for gone in [
        "cookies", "Tides", "Skip", "Accept", "like", "fog", "Finally", "airport", "mailbox", "©", "never\"", "color",
        "By Ines",
    ] {
        assert!(!document.text.contains(gone), "{gone:?} is in\n{}", document.text);
    }
    let chunk = document.chunks.iter().find(|chunk| chunk.content.contains("def wait")).expect("a chunk");
    let path = ["How the night ferry learned to wait", "The numbers so far", "How the program decides"];
    assert_eq!(chunk.heading_path, path);
}

#[test]
fn a_page_of_old_markup_arrives() {
    for kind in [SourceKind::Html, SourceKind::Article] {
        let document = read(kind, &fixture("html/soup.html"));
        assert_eq!(document.title.as_deref(), Some("Bread soup"));
        let headings: Vec<_> = of(&document).headings;
        let expected = [(1, "Bread soup"), (2, "What you need"), (2, "How long it keeps")];
        assert_eq!(headings, expected.map(|(level, text)| (level, text.to_owned())));
        for there in [
            "Meine Großmutter would",
            "- 300 g of old rye bread\n- 1 onion, 40 g of butter\n- 1 l of broth & a bay leaf\n",
            "again.\n\nServe it",
        ] {
            assert!(document.text.contains(there), "{there:?} is not in\n{}", document.text);
        }
        assert_eq!(document.text.contains("Stews"), kind == SourceKind::Html, "{}", document.text);
        assert_eq!(document.repaired_bytes, 0);
    }
}

#[test]
fn a_page_of_documentation_arrives() {
    let document = read(SourceKind::Html, &fixture("html/handbook.html"));
    let expected = "# Locks

A `quay::Lock` is held by one boat. See [signals](signals.html) and `Lock<T>`.

## `open()` and `close()`

```rust
let lock = Lock::new();

lock.open()?;
```

`timeout`

- Seconds to wait. Default: 30.

`force`

- Open even if a boat is “inside”.

|  |  |
| --- | --- |
| Level | 3.2 m |
| Gate \\| side | east west |

H2O rises 1.5
metres a minute.

1\\. This is no list. ![A lock, half full](lock.png)
";
    assert_eq!(document.text, expected);
    assert_eq!(document.role.as_deref(), Some("documentation"));
}

#[test]
fn a_word_document_arrives() {
    let document = read(SourceKind::Docx, &fixture("docx/locks.docx"));
    let expected = "# Schleusen & Tore

# Über

Die Schleuse hat zwei Tore und einen [Wärter](https://lock.example/keeper).[^1]

Es war eingefügt, sagt sie.

## Was man braucht

- eine Kurbel
  - aus Eisen
- Geduld

Dann:

1. öffnen
2. warten
3. schließen

## Maße

| Tor | Breite \\| m |
| --- | --- |
| Ost | 3,2 gemessen |
| beide gleich |  |

```
open()
  wait(3)
```

\\# kein Titel

[^1]: Er heißt Anton.
";
    assert_eq!(document.text, expected);
    assert_eq!((document.title.as_deref(), document.language.as_deref()), (Some("Von Schleusen"), Some("de-AT")));
    assert_eq!(
        Value::Object(document.metadata),
        json!({"author": "Ines Calder", "created_at": "2025-02-03T04:05:06Z"})
    );
}

#[test]
fn a_word_document_of_another_program_arrives() {
    let document = read(SourceKind::Docx, &fixture("docx/tides.docx"));
    let expected = "# On tides

The sea comes and goes twice a day, a little later each time.

# Why

The moon pulls at the water, and the earth turns beneath it.

## Spring and neap

- Sun and moon in line: spring tide
- Sun and moon at right angles: neap tide

1. Look up the table.
2. Add an hour in summer.

# A table

| Day | High | Low |
| --- | --- | --- |
| Monday | 04:10 | 10:25 |
| Tuesday | 05:02 | 11:15 |

Times are those of the southern pier.

The end.
";
    assert_eq!(document.text, expected);
    assert_eq!(document.title.as_deref(), Some("On tides"));
    assert_eq!(
        (&document.metadata["author"], &document.metadata["created_at"]),
        (&json!("Tom Brandt"), &json!("2025-04-05T06:07:08Z"))
    );
}

#[test]
fn a_folder_of_pages_is_listed_by_either_kind() {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").canonicalize().expect("fixtures");
    for (kind, expected) in [
        (SourceKind::Html, &["html/ferry.html", "html/forum.html", "html/handbook.html", "html/soup.html"][..]),
        (SourceKind::Article, &["html/ferry.html", "html/forum.html", "html/handbook.html", "html/soup.html"]),
        (SourceKind::Docx, &["docx/locks.docx", "docx/tides.docx"]),
        (SourceKind::Epub, &["epub/quay.epub"]),
    ] {
        let location = folder.to_string_lossy().into_owned();
        let options = SourceOptions { ignore: vec!["hostile/".to_owned()], ..SourceOptions::defaults(kind) };
        let spec = SourceSpec {
            kind,
            location: location.clone(),
            options,
            allowed_paths: vec![location],
            allowed_hosts: Vec::new(),
            seen: None,
        };
        let mut found = Vec::new();
        rag_ingest::list(&spec, &mut |items, failures| {
            assert_eq!(failures, []);
            found.extend(items);
            Ok(())
        })
        .expect("a listing");
        let uris: Vec<&str> = found.iter().map(|item| item.uri.as_str()).collect();
        assert_eq!(uris, expected);
        let document = rag_ingest::read(&spec, &found[0], &WordCounter { window: 254 }).expect("a document");
        assert_eq!(document.path.as_deref(), Some(expected[0]));
    }
}

#[test]
fn a_book_arrives_in_the_order_of_reading() {
    let document = read(SourceKind::Epub, &fixture("epub/quay.epub"));
    let expected = "# Contents\n\n1. [Tides](text/one.xhtml)\n2. [Boats](text/chapter%202.xhtml)\n\n# Tides\n\nThe tide comes in twice a day, as everybody knows.\n\n## Spring tides\n\nThey are higher than the others.\n\n# Boats\n\nA boat is held by a rope.\n";
    assert_eq!(document.text, expected);
    assert_eq!((document.title.as_deref(), document.language.as_deref()), (Some("The Quay"), Some("en")));
    assert_eq!(document.published_at.as_deref(), Some("2024-05-06T00:00:00Z"));
    assert_eq!(document.metadata["author"], "Ines Calder, Tom Brandt");
    let options = SourceOptions::defaults(SourceKind::Epub);
    let content = fixture("epub/quay.epub");
    let counter = WordCounter { window: 254 };
    let book =
        rag_ingest::parse_inline(SourceKind::Epub, &options, "u", &content, &Map::new(), &counter).expect("a book");
    let chunks: Vec<_> = book.chunks.iter().map(|c| (c.facts.role.as_deref(), c.heading_path.join("/"))).collect();
    let expected = [(Some("navigation"), "Contents"), (None, "Tides"), (None, "Tides/Spring tides"), (None, "Boats")];
    assert_eq!(chunks, expected.map(|(role, path)| (role, path.to_owned())));
}

#[test]
fn other_readers_find_the_same_words() {
    let oracle = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../eval/oracle/markup.json");
    let oracle: Map<String, Value> = serde_json::from_slice(&fs::read(oracle).expect("the oracle")).expect("JSON");
    for (name, found) in &oracle {
        let mut theirs: Vec<String> =
            found["words"].as_array().expect("words").iter().filter_map(|w| Some(w.as_str()?.to_owned())).collect();
        if name.ends_with(".docx") {
            // A line of a table of contents and hidden text, which are not to be read.
            theirs.retain(|word| !["contents", "line", "not", "read", "verborgen"].contains(&word.as_str()));
        }
        let kind = if name.ends_with(".docx") { SourceKind::Docx } else { SourceKind::Article };
        let document = read(kind, &fixture(name));
        let found = of(&document);
        let mut ours = found.words;
        found.code.iter().for_each(|(_, code)| ours.extend(words(code)));
        let (recall, precision) = (recall(&theirs, &ours), recall(&ours, &theirs));
        println!("| {name} | {} | {} | {recall:.3} | {precision:.3} |", theirs.len(), ours.len());
        // They read a hidden paragraph and navigation that we do not; we read lists and words of images that they do not.
        assert!(recall >= 0.93 && precision >= 0.75, "{name}: {recall} {precision}\n{}", document.text);
    }
}

/// Around a page as around those of real sites.
fn site(title: &str, body: &str) -> String {
    let links: String = (0..20).map(|n| format!("<li><a href='/p{n}'>Another page, number {n}</a></li>")).collect();
    format!(
        "<!DOCTYPE html><html lang='en'><head><title>{title} | Site</title><script>var x = '<p>no</p>';</script></head>
        <body><header><a href='/'>Site</a></header><nav><ul>{links}</ul></nav><div id='consent'><p>surroundings cookies</p></div>
        <main><article>{body}</article></main><aside class='sidebar'><p>surroundings aside</p><ul>{links}</ul></aside>
        <footer><p>surroundings footer</p></footer></body></html>"
    )
}

#[test]
fn markdown_that_became_a_page_becomes_the_same_markdown() {
    let Some(data) = invariants::data() else { return };
    let mut files: Vec<PathBuf> =
        fs::read_dir(data.join("md")).expect("md").map(|e| e.expect("entry").path()).collect();
    files.sort();
    let (mut all, mut bytes) = (0, 0);
    let mut lost = Vec::new();
    for file in &files {
        let text = String::from_utf8_lossy(&fs::read(file).expect("file")).replace("\r\n", "\n");
        let source = events(&text);
        let mut body = String::new();
        html::push_html(&mut body, source.iter().cloned());
        let wanted = content(&source);
        if wanted.words.len() < 100 {
            continue;
        }
        let page = site("Title", &body);
        all += 1;
        bytes += page.len();
        for kind in [SourceKind::Html, SourceKind::Article] {
            let options = SourceOptions::defaults(kind);
            let counter = WordCounter { window: 254 };
            let document = rag_ingest::parse_inline(kind, &options, "u", page.as_bytes(), &Map::new(), &counter)
                .expect("a document");
            check(&document, &options, &counter, 0);
            let found = of(&document);
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (recall, precision) = (recall(&wanted.words, &found.words), recall(&found.words, &wanted.words));
            let same = |what: &str, same: bool| (!same).then(|| what.to_owned());
            let mut differ: Vec<String> = Vec::new();
            differ.extend(same("headings", found.headings == wanted.headings));
            differ.extend(same("code", found.code == wanted.code));
            differ.extend(same("tables", found.tables == wanted.tables));
            differ.extend(same("words", recall >= 0.97 && precision >= 0.97));
            if document.text.contains("surroundings") {
                differ.push("surroundings".to_owned());
            }
            if !differ.is_empty() {
                lost.push(format!(
                    "{name} as {}: {} (recall {recall:.3}, precision {precision:.3})",
                    kind.name(),
                    differ.join(", ")
                ));
                if std::env::var_os("MARKUP_SHOW").is_some() {
                    for (what, ours, theirs) in [
                        ("headings", format!("{:#?}", found.headings), format!("{:#?}", wanted.headings)),
                        ("code", format!("{:#?}", found.code), format!("{:#?}", wanted.code)),
                        ("tables", format!("{:#?}", found.tables), format!("{:#?}", wanted.tables)),
                    ] {
                        let theirs: Vec<&str> = theirs.lines().collect();
                        let ours: Vec<&str> = ours.lines().collect();
                        let first = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at));
                        if let Some(at) = first {
                            println!("{name} {what} ours {:?} theirs {:?}", ours.get(at), theirs.get(at));
                        }
                    }
                }
            }
        }
    }
    println!("{all} pages, {bytes} bytes, {} that differ:\n{}", lost.len(), lost.join("\n"));
    assert!(all >= 20, "{all} pages");
    assert!(lost.len() * 20 <= all * 2, "{} of {} differ", lost.len(), all * 2);
}
