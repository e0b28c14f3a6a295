// SPDX-License-Identifier: PostgreSQL

//! The time of reading Word documents and books grows with what is in them; see [`linear`].
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod linear;
mod package;

use linear::{COUNTER, MEGABYTE, grows};
use package::zip;
use rag_core::source::{SourceKind, SourceOptions};
use serde_json::Map;

/// What no text can hold, so that one text can be several members.
const BETWEEN: char = '\u{1}';

/// Numbers from 0, each in its place in `unit`, that together have about `size` bytes.
fn numbered(size: usize, unit: &str) -> String {
    (0..size / unit.len()).map(|n| unit.replace("{}", &n.to_string())).collect()
}

/// Reads the package whose members of these names a text has, one after the other.
fn reader(kind: SourceKind, names: &'static [&'static str]) -> impl Fn(&str) {
    move |text| {
        let members: Vec<(&str, &[u8])> = names.iter().copied().zip(text.split(BETWEEN).map(str::as_bytes)).collect();
        let options = SourceOptions::defaults(kind);
        let _either = rag_ingest::parse_inline(kind, &options, "a", &zip(&members), &Map::new(), &COUNTER);
    }
}

fn word(body: &str) -> String {
    format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>")
}

#[test]
fn word_documents() {
    let read = reader(SourceKind::Docx, &["word/document.xml"]);
    for unit in [
        "<w:p/>",
        "<w:p><w:r><w:t>a{}</w:t></w:r></w:p>",
        "<w:p><w:pPr><w:pStyle w:val='s{}'/></w:pPr><w:r><w:t>a</w:t></w:r></w:p>",
        "<w:p><w:pPr><w:outlineLvl w:val='1'/></w:pPr><w:r><w:t>a{}</w:t></w:r></w:p>",
        "<w:p><w:pPr><w:numPr><w:ilvl w:val='{}'/><w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>",
        "<w:p><w:pPr><w:numPr><w:ilvl w:val='1'/><w:numId w:val='{}'/></w:numPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>",
        "<w:tbl><w:tr><w:tc><w:p/></w:tc><w:tc><w:p><w:r><w:t>a{}</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
    ] {
        grows(unit, MEGABYTE, &read, &|size| word(&numbered(size, unit)));
    }
    for unit in [
        "<w:r><w:t>a{}</w:t></w:r>",
        "<w:r><w:footnoteReference w:id='{}'/></w:r>",
        "<w:hyperlink r:id='r{}'><w:r><w:t>a</w:t></w:r></w:hyperlink>",
        "<w:r><w:br/></w:r>",
        "<w:del><w:r><w:t>a</w:t></w:r></w:del>",
    ] {
        grows(unit, MEGABYTE, &read, &|size| word(&format!("<w:p>{}</w:p>", numbered(size, unit))));
    }
    grows("cells of a row", MEGABYTE, &read, &|size| {
        word(&format!(
            "<w:tbl><w:tr>{}</w:tr></w:tbl>",
            numbered(size, "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>")
        ))
    });
    grows("attributes", MEGABYTE, &read, &|size| word(&format!("<w:p {}/>", numbered(size, "a{}='b' "))));
    grows("references", MEGABYTE, &read, &|size| {
        word(&format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "&a;".repeat(size / 3)))
    });
}

#[test]
fn what_word_documents_refer_to() {
    let paragraph = "<w:p><w:r><w:footnoteReference w:id='{}'/></w:r></w:p>";
    let note = "<w:footnote w:id='{}'><w:p><w:r><w:t>n</w:t></w:r></w:p></w:footnote>";
    let read = reader(SourceKind::Docx, &["word/document.xml", "word/footnotes.xml"]);
    grows("notes", MEGABYTE, &read, &|size| {
        let notes = numbered(size / 2, note);
        format!("{}{BETWEEN}<w:footnotes xmlns:w='w'>{notes}</w:footnotes>", word(&numbered(size / 2, paragraph)))
    });
    let read = reader(SourceKind::Docx, &["word/document.xml", "word/styles.xml"]);
    let styled = "<w:p><w:pPr><w:pStyle w:val='s{}'/></w:pPr><w:r><w:t>a</w:t></w:r></w:p>";
    for style in [
        "<w:style w:styleId='s{}'><w:name w:val='Code'/></w:style>",
        "<w:style w:styleId='s{}'><w:basedOn w:val='s1'/><w:name w:val='heading 1'/></w:style>",
    ] {
        grows("styles", MEGABYTE, &read, &|size| {
            let styles = numbered(size / 2, style);
            format!("{}{BETWEEN}<w:styles xmlns:w='w'>{styles}</w:styles>", word(&numbered(size / 2, styled)))
        });
    }
    let read = reader(SourceKind::Docx, &["word/document.xml", "word/numbering.xml"]);
    let item = "<w:p><w:pPr><w:numPr><w:numId w:val='{}'/></w:numPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>";
    grows("numberings", MEGABYTE, &read, &|size| {
        let kinds = numbered(size / 4, "<w:abstractNum w:abstractNumId='{}'><w:lvl w:ilvl='0'/></w:abstractNum>");
        let lists = numbered(size / 4, "<w:num w:numId='{}'><w:abstractNumId w:val='{}'/></w:num>");
        format!("{}{BETWEEN}<w:numbering xmlns:w='w'>{kinds}{lists}</w:numbering>", word(&numbered(size / 2, item)))
    });
    let read = reader(SourceKind::Docx, &["word/document.xml", "word/_rels/document.xml.rels"]);
    grows("relations", MEGABYTE, &read, &|size| {
        let link = "<Relationship Id='r{}' Type='t/hyperlink' Target='https://a.example/{}' TargetMode='External'/>";
        let text = numbered(size / 2, "<w:p><w:hyperlink w:id='r{}'><w:r><w:t>a</w:t></w:r></w:hyperlink></w:p>");
        format!("{}{BETWEEN}<Relationships>{}</Relationships>", word(&text), numbered(size / 2, link))
    });
}

#[test]
fn books() {
    let read = reader(SourceKind::Epub, &["META-INF/container.xml", "a.opf", "c.xhtml"]);
    let container = "<container><rootfiles><rootfile full-path='a.opf'/></rootfiles></container>";
    let book = |items: &str, spine: &str, chapter: &str| {
        let package = format!("<package><manifest>{items}</manifest><spine>{spine}</spine></package>");
        format!("{container}{BETWEEN}{package}{BETWEEN}{chapter}")
    };
    // As many as there may be.
    let size = MEGABYTE.min(300_000);
    for property in ["", "properties='nav'"] {
        grows("chapters", size, &read, &|size| {
            let items = numbered(size / 2, &format!("<item id='c{{}}' href='c.xhtml' {property}/>"));
            book(&items, &numbered(size / 2, "<itemref idref='c{}'/>"), "<h1>a</h1><p>b</p>")
        });
        grows("headings", MEGABYTE, &read, &|size| {
            let items = format!("<item id='c' href='c.xhtml' {property}/>");
            book(&items, "<itemref idref='c'/>", &numbered(size, "<h2>a{}</h2><p>b</p>"))
        });
    }
}
