// SPDX-License-Identifier: PostgreSQL

//! Pages and packages that were made to hurt: each ends as a document or an error, soon.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod package;

use invariants::{check, options};
use package::zip;
use proptest::prelude::*;
use rag_core::document::Document;
use rag_core::error::{Error, Kind};
use rag_core::source::{Chunking, SourceKind};
use rag_core::tokens::WordCounter;
use serde_json::Map;
use std::time::{Duration, Instant};

/// A build without optimisation gets a tenth, or it would take minutes.
const MILLION: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

fn parse(kind: SourceKind, content: &[u8]) -> Result<Document, Error> {
    let options = options(kind, Chunking::Structure, 200);
    let counter = WordCounter { window: 254 };
    let start = Instant::now();
    let parsed = rag_ingest::parse_inline(kind, &options, "doc", content, &Map::new(), &counter).map_err(|f| f.error);
    let took = start.elapsed();
    // Generous, since builds without optimisation and busy machines run this too; a quadratic step takes hours.
    assert!(took < Duration::from_secs(60), "{took:?}");
    if let Ok(document) = &parsed {
        check(document, &options, &counter, 0);
    }
    parsed
}

fn page(html: &str) -> Document {
    let whole = parse(SourceKind::Html, html.as_bytes()).expect("a page");
    let article = parse(SourceKind::Article, html.as_bytes()).expect("a page");
    assert!(article.text.len() <= whole.text.len() + 10);
    whole
}

#[test]
fn nesting_ends() {
    for tag in [
        "div",
        "b",
        "p",
        "blockquote",
        "ul><li",
        "table><tr><td",
        "a href=x",
        "pre",
        "h1",
        "span class=a",
        "dl><dd",
        "font",
        "x-y",
        "svg",
        "math",
        "nobr",
        "form",
        "select",
        "button",
        "details",
    ] {
        let name = tag.split([' ', '>']).next().unwrap_or_default();
        let html = format!(
            "before {}inside{} after",
            format!("<{tag}>").repeat(MILLION / 10),
            format!("</{name}>").repeat(MILLION / 10)
        );
        let text = page(&html).text;
        assert!(
            text.contains("before") && (text.contains("inside") || matches!(tag, "svg" | "select" | "button" | "form")),
            "{tag}"
        );
        page(&format!("x {}y", format!("<{tag}>").repeat(MILLION / 10)));
        page(&format!("x {}", format!("</{name}>").repeat(MILLION / 10)));
    }
}

#[test]
fn much_of_one_thing_ends() {
    let n = MILLION / 2;
    let many = |part: &str| format!("x{}", part.repeat(n));
    for html in [
        many("<p>"),
        many("<p>a"),
        many("<b>a"),
        many("<b id=1><p>a"),
        many("<a href=b>c"),
        many("<li>a"),
        many("<tr><td>a"),
        many("<"),
        many("&"),
        many("&amp"),
        many("<!--"),
        many("<!-- -->"),
        many("</p>"),
        many("<br>"),
        many("<h1>a</h1>"),
        many("<x y=z "),
        many("]]>"),
        many("<![CDATA["),
        many("a, "),
        many("\0"),
        many("<img alt=a>"),
        many("[a](b)"),
        many("*_`"),
        many("<code>`</code>"),
        many("<td>"),
        many("<meta name=a content=b>"),
        many("<link rel=canonical href=a>"),
        many("<time datetime=a>"),
        many("<h1>"),
        many("<title>a</title>"),
        many("<script>"),
        many("<table>"),
        format!("x<p {}>y", "a1 ".repeat(n)),
        format!("x<p {}>y", (0..n).map(|i| format!("a{i}=b ")).collect::<String>()),
        format!("x<p class='{}'>y", "comment ".repeat(n)),
        format!("x<table><tr>{}</tr>{}</table>", "<td>a".repeat(n / 10), "<tr><td>b".repeat(n / 10)),
        format!(
            "x<table><tr>{}</tr>{}</table>",
            "<td rowspan=1000 colspan=1000>a".repeat(n / 100),
            "<tr><td>b".repeat(n / 100)
        ),
        format!("x{}", (0..n / 10).map(|i| format!("<t{i}>")).collect::<String>()),
        format!("x{}{}", (0..200).map(|i| format!("<b id={i}>")).collect::<String>(), "<p>a".repeat(n)),
        format!("x{}{}", "<ul><li>".repeat(90), "<li>a".repeat(n)),
        format!("x<pre>{}</pre>", "`".repeat(n)),
        format!("x<script type=application/ld+json>{}</script>", "[".repeat(n)),
    ] {
        let begin: String = html.chars().take(60).collect();
        let start = Instant::now();
        let size = html.len();
        let document = page(&html);
        println!("{:>9} bytes {:>8.0?} text {:>9} {begin}", size, start.elapsed(), document.text.len());
        assert!(document.text.len() < 40 * size + 1000, "{begin}");
    }
}

#[test]
fn ten_megabytes_of_tags_end() {
    let html = "<div class=a><p>one <b>two</b> <a href=/three>three</a>, four.</p><ul><li>five</ul></div>\n"
        .repeat(MILLION / 9);
    let start = Instant::now();
    let document = parse(SourceKind::Article, html.as_bytes()).expect("a page");
    println!("{} bytes in {:?}", html.len(), start.elapsed());
    assert_eq!(document.text.matches("five").count(), MILLION / 9);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_soup_of_tags_keeps_every_promise(parts in proptest::collection::vec(prop_oneof![
        proptest::sample::select(vec![
            "<p>", "</p>", "<div>", "</div>", "<ul>", "</ul>", "<li>", "<ol start=7>", "</ol>", "<table>", "<tr>", "<td>", "<th>", "</table>",
            "<h1>", "</h1>", "<h3>", "</h3>", "<pre>", "</pre>", "<code>", "</code>", "<b>", "</b>", "<a href='x y'>", "</a>", "<br>", "<hr>",
            "<blockquote>", "</blockquote>", "<img alt='q' src=r>", "<td colspan=3 rowspan=2>", "<dl>", "<dt>", "<dd>", "<script>", "</script>",
            "<nav>", "</nav>", "<article>", "</article>", "<main>", "<!-- ", "-->", "&lt;", "&#0;", "&#13;", "&#x110000;", "<svg/>", "<title>", "</title>",
            "# ", "- ", "1. ", "> ", "```", "|", "---", "\n", " ", "\t", "[a]: b", "*", "\r\n", "\0", "<p hidden>", "<details>", "<select><option>",
        ]).prop_map(str::to_owned),
        "[a-zé漢🎉 .,_`*#<>&\\[\\]{}\\\\|-]{0,12}",
    ], 0..60)) {
        let html = parts.concat();
        for kind in [SourceKind::Html, SourceKind::Article] {
            let first = parse(kind, html.as_bytes());
            if let Err(error) = &first {
                prop_assert_eq!(&error.message, "html has no readable content");
            }
            prop_assert_eq!(first, parse(kind, html.as_bytes()));
        }
    }

    #[test]
    fn any_bytes_end_as_page_word_or_book(content in proptest::collection::vec(any::<u8>(), 0..300)) {
        for kind in [SourceKind::Html, SourceKind::Article, SourceKind::Docx, SourceKind::Epub] {
            let _either = parse(kind, &content);
            rag_ingest::detect_kind("x", &content);
        }
    }

    #[test]
    fn a_damaged_package_ends(at in 0..3581_usize, value in any::<u8>(), cut in any::<bool>()) {
        let mut content = include_bytes!("../../../tests/fixtures/docx/locks.docx").to_vec();
        let at = at % content.len();
        if cut { content.truncate(at) } else { content[at] = value }
        let _either = parse(SourceKind::Docx, &content);
    }
}

fn word(body: &str) -> Vec<u8> {
    zip(&[("word/document.xml", format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>").as_bytes())])
}

fn refused(kind: SourceKind, content: &[u8]) -> (Kind, String) {
    let error = parse(kind, content).expect_err("refused");
    (error.kind, error.message)
}

#[test]
fn packages_have_bounds() {
    let text = |t: &str| format!("<w:p><w:r><w:t>{t}</w:t></w:r></w:p>");
    assert_eq!(parse(SourceKind::Docx, &word(&text("a"))).expect("a document").text, "a\n");
    let spaces = " ".repeat(8 << 20);
    let bomb = refused(SourceKind::Docx, &word(&text(&spaces)));
    assert_eq!(
        bomb,
        (
            Kind::LimitExceeded,
            "docx has member \"word/document.xml\" that unpacks to more than 200 times its size".to_owned()
        )
    );
    let deep = refused(SourceKind::Docx, &word(&"<w:ins>".repeat(1000)));
    assert_eq!(
        deep,
        (Kind::LimitExceeded, "docx member \"word/document.xml\": xml is nested deeper than 256".to_owned())
    );
    let deep = format!("{}{}{}", "<w:tbl><w:tr><w:tc>".repeat(80), text("a"), "</w:tc></w:tr></w:tbl>".repeat(80));
    assert_eq!(parse(SourceKind::Docx, &word(&deep)).expect("a document").text, "a\n");
    assert_eq!(refused(SourceKind::Docx, &word("")).1, "docx has no text");
    assert_eq!(
        refused(SourceKind::Docx, &word("<w:p>")).1,
        "docx member \"word/document.xml\": xml is not well formed"
    );
    assert_eq!(refused(SourceKind::Docx, &zip(&[("a", b"b")])).1, "docx has no member \"word/document.xml\"");
    assert_eq!(refused(SourceKind::Docx, b"plain"), (Kind::BadContent, "docx is not a ZIP file".to_owned()));
    assert_eq!(refused(SourceKind::Epub, &zip(&[("a", b"b")])).1, "epub has no member \"META-INF/container.xml\"");
    let entity = "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'><!ENTITY l 'lol'><!ENTITY m '&l;&l;'>]>";
    let document = format!("{entity}<w:document xmlns:w='w'><w:body>{}</w:body></w:document>", text("a&e;&m;&lt;b"));
    assert_eq!(
        parse(SourceKind::Docx, &zip(&[("word/document.xml", document.as_bytes())])).expect("a document").text,
        "a<b\n"
    );
    let names: Vec<String> = (0..20_001).map(|n| n.to_string()).collect();
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert_eq!(
        refused(SourceKind::Docx, &zip(&members)),
        (Kind::LimitExceeded, "docx has more than 20000 members".to_owned())
    );
}

#[test]
fn a_list_is_no_deeper_than_in_word() {
    let item = |level: &str| {
        format!(
            "<w:p><w:pPr><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>"
        )
    };
    for level in ["8", "9", "1000", "18446744073709551615"] {
        let content = word(&format!("{}{}", item("0"), item(level)));
        assert_eq!(parse(SourceKind::Docx, &content).expect("a document").text, "- a\n  - a\n", "{level}");
    }
}

#[test]
fn code_that_ends_a_word_document_is_read() {
    let paragraph = |text: &str, style: &str| {
        format!("<w:p><w:pPr><w:pStyle w:val='{style}'/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
    };
    let content = word(&format!("{}{}", paragraph("before", "Normal"), paragraph("let x = 1;", "Code")));
    assert_eq!(parse(SourceKind::Docx, &content).expect("a document").text, "before\n\n```\nlet x = 1;\n```\n");
}

#[test]
fn code_has_lines_as_text_has() {
    let code = "<w:p><w:pPr><w:pStyle w:val='Code'/></w:pPr><w:r><w:t>a&#13;b&#13;&#10;c&#0;</w:t></w:r></w:p>";
    assert_eq!(parse(SourceKind::Docx, &word(code)).expect("a document").text, "```\na\nb\nc\n```\n");
    let page = page("<pre>a&#13;b&#13;&#10;c</pre>");
    assert_eq!(page.text, "```\na\nb\nc\n```\n");
}

#[test]
fn styles_that_are_based_on_themselves_end() {
    let styles = "<w:styles xmlns:w='w'><w:style w:styleId='a'><w:basedOn w:val='b'/></w:style><w:style w:styleId='b'><w:basedOn w:val='a'/></w:style></w:styles>";
    let document = "<w:document xmlns:w='w'><w:body><w:p><w:pPr><w:pStyle w:val='a'/></w:pPr><w:r><w:t>x</w:t></w:r></w:p></w:body></w:document>";
    let content = zip(&[("word/document.xml", document.as_bytes()), ("word/styles.xml", styles.as_bytes())]);
    assert_eq!(parse(SourceKind::Docx, &content).expect("a document").text, "x\n");
}

#[test]
fn what_something_is_shows_in_its_content() {
    for (content, kind) in [
        // A package of no known kind is an archive.
        (zip(&[("a.txt", b"x".as_slice())]), SourceKind::Zip),
        (include_bytes!("../../../tests/fixtures/docx/locks.docx").to_vec(), SourceKind::Docx),
        (include_bytes!("../../../tests/fixtures/epub/quay.epub").to_vec(), SourceKind::Epub),
        (include_bytes!("../../../tests/fixtures/html/ferry.html").to_vec(), SourceKind::Html),
        (b"\n<HTML lang=x>".to_vec(), SourceKind::Html),
    ] {
        assert_eq!(rag_ingest::detect_kind("unnamed", &content), kind);
    }
}
