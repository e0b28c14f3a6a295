// SPDX-License-Identifier: PostgreSQL

//! Content of every kind, made up: the same words in the clothes of each format.
//!
//! What is made is what such a file usually is, so that it is read and not refused; hostile bytes are other tests' business.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

use proptest::prelude::*;
use rag_core::source::SourceKind;
use serde_json::{Value, json};
use std::io::Write;

/// A document to be.
#[derive(Debug, Clone)]
pub struct Made {
    pub kind: SourceKind,
    pub name: String,
    pub bytes: Vec<u8>,
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-zA-Z]{1,9}",
        1 => "[0-9]{1,6}",
        1 => "[漢字日本語中文]{1,12}",
        1 => "[äößéñ]{1,5}",
        1 => Just("👩‍👩‍👧‍👦".to_owned()),
        1 => "[.,;!?()-]{1,3}",
        1 => "[a-z]{30,300}",
        1 => Just("getHTTPResponse_codeV2".to_owned()),
    ]
}

/// Paragraphs, each of some words.
fn paragraphs() -> impl Strategy<Value = Vec<String>> {
    let paragraph = prop::collection::vec(word(), 1..60).prop_map(|words| words.join(" "));
    prop::collection::vec(paragraph, 1..12)
}

/// A document of any kind but a repository, whose files are those of the other kinds.
pub fn made() -> impl Strategy<Value = Made> {
    let kinds: Vec<SourceKind> = SourceKind::ALL.into_iter().filter(|kind| *kind != SourceKind::Git).collect();
    (prop::sample::select(kinds), 0_usize..14, paragraphs()).prop_map(|(kind, which, text)| make(kind, which, &text))
}

/// Text in the clothes of a kind; `which` chooses among the formats that a kind has.
pub fn make(kind: SourceKind, which: usize, text: &[String]) -> Made {
    let (name, bytes) = match kind {
        SourceKind::Text => ("a.txt", text.join("\n\n").into_bytes()),
        SourceKind::Markdown | SourceKind::Blog => ("a.md", markdown(text).into_bytes()),
        SourceKind::Zip | SourceKind::Git => [
            ("a.md", markdown(text).into_bytes()),
            ("README", text.join("\n").into_bytes()),
            ("a.py", code("py", text).into_bytes()),
        ][which % 3]
            .clone(),
        SourceKind::Code => return coded(which, text),
        SourceKind::Config => return configured(which, text),
        SourceKind::Html | SourceKind::Article => ("a.html", page(text).into_bytes()),
        SourceKind::Docx => ("a.docx", docx(text)),
        SourceKind::Epub => ("a.epub", epub(text)),
        SourceKind::Pdf => ("a.pdf", pdf(text)),
        SourceKind::Forum => ("f", forum(text).to_string().into_bytes()),
        SourceKind::Issues => ("i", issue(text).to_string().into_bytes()),
        SourceKind::Transcript => return spoken(which, text),
        SourceKind::Jsonl => {
            ("r", json!({"id": "r", "title": text[0], "text": text.join("\n")}).to_string().into_bytes())
        }
    };
    Made { kind, name: name.to_owned(), bytes }
}

fn markdown(text: &[String]) -> String {
    let block = |(at, words): (usize, &String)| match at % 6 {
        0 => format!("{} {words}\n\n", "#".repeat(1 + at % 4)),
        1 | 4 => format!("{words}\n\n"),
        2 => words.split(' ').map(|word| format!("- {word}\n")).collect::<String>() + "\n",
        3 => format!("```rust\n{}\n```\n\n", words.replace(' ', "\n")),
        _ => format!(
            "| a | b |\n|---|---|\n{}\n",
            words.split(' ').map(|w| format!("| {w} | x |\n")).collect::<String>()
        ),
    };
    text.iter().enumerate().map(block).collect()
}

const EXTENSIONS: [&str; 14] =
    ["rs", "py", "ts", "tsx", "js", "go", "java", "c", "cpp", "cs", "rb", "php", "sh", "sql"];

fn coded(which: usize, text: &[String]) -> Made {
    let extension = EXTENSIONS[which % EXTENSIONS.len()];
    Made { kind: SourceKind::Code, name: format!("a.{extension}"), bytes: code(extension, text).into_bytes() }
}

/// One function for each paragraph, whose words are its comment and its lines.
fn code(extension: &str, text: &[String]) -> String {
    let function = |(at, words): (usize, &String)| {
        let line = |mark: &str| {
            words.split(' ').map(|word| format!("    {mark} {word}\n    x = x + {at};\n")).collect::<String>()
        };
        match extension {
            "rs" => format!("/// {words}\nfn f{at}() {{\n{}}}\n\n", line("//")),
            "py" => format!("def f{at}(x):\n    \"\"\"{words}\"\"\"\n{}\n", line("#").replace(';', "")),
            "rb" => format!("# {words}\ndef f{at}(x)\n{}end\n\n", line("#").replace(';', "")),
            "sh" => format!(
                "# {words}\nf{at}() {{\n{}}}\n\n",
                words.split(' ').map(|_| "    echo one\n").collect::<String>()
            ),
            "sql" => format!("-- {words}\nCREATE TABLE t{at} (a integer);\n"),
            "go" => format!("// {words}\nfunc f{at}() {{\n{}}}\n\n", line("//")),
            "java" | "cs" => format!("/** {words} */\nclass C{at} {{ void f(int x) {{\n{}}} }}\n\n", line("//")),
            "php" => format!("<?php\n// {words}\nfunction f{at}($x) {{\n    $x++;\n}}\n?>\n"),
            "ts" | "tsx" | "js" => format!("/** {words} */\nfunction f{at}(x) {{\n{}}}\n\n", line("//")),
            _ => format!("/* {words} */\nint f{at}(int x) {{\n{}    return x;\n}}\n\n", line("//")),
        }
    };
    text.iter().enumerate().map(function).collect()
}

fn configured(which: usize, text: &[String]) -> Made {
    let quoted = |words: &String| serde_json::to_string(words).expect("JSON");
    let pairs = || text.iter().enumerate();
    let (name, content) = match which % 4 {
        0 => ("a.yaml", pairs().map(|(at, words)| format!("key{at}:\n  inner: {}\n", quoted(words))).collect()),
        1 => ("a.toml", pairs().map(|(at, words)| format!("[key{at}]\ninner = {}\n", quoted(words))).collect()),
        2 => ("a.ini", pairs().map(|(at, words)| format!("[key{at}]\ninner = {words}\n")).collect()),
        _ => ("a.json", pairs().map(|(at, words)| (format!("key{at}"), json!(words))).collect::<Value>().to_string()),
    };
    Made { kind: SourceKind::Config, name: name.to_owned(), bytes: String::into_bytes(content) }
}

fn page(text: &[String]) -> String {
    let block = |(at, words): (usize, &String)| match at % 4 {
        0 => format!("<h{0}>{words}</h{0}>", 1 + at % 3),
        1 => format!("<ul>{}</ul>", words.split(' ').map(|word| format!("<li>{word}")).collect::<String>()),
        2 => format!("<pre><code>{}</code></pre>", words.replace(' ', "\n")),
        _ => format!("<p>{words}</p>"),
    };
    format!(
        "<html><body><main>{}<p>The end.</p></main></body></html>",
        text.iter().enumerate().map(block).collect::<String>()
    )
}

fn package(members: &[(&str, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut out);
    for (name, data) in members {
        let (mut entry, config) = archive.new_file(name).start().expect("a member");
        let mut writer = config.wrap(&mut entry);
        writer.write_all(data.as_bytes()).expect("data");
        let (_, descriptor) = writer.finish().expect("data");
        entry.finish(descriptor).expect("a member");
    }
    archive.finish().expect("an archive");
    out
}

fn docx(text: &[String]) -> Vec<u8> {
    let body: String = text.iter().map(|words| format!("<w:p><w:r><w:t>{words}</w:t></w:r></w:p>")).collect();
    package(&[("word/document.xml", format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>"))])
}

fn epub(text: &[String]) -> Vec<u8> {
    let container = "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'><rootfiles><rootfile full-path='b.opf' \
                     media-type='application/oebps-package+xml'/></rootfiles></container>";
    let book = "<package xmlns='http://www.idpf.org/2007/opf'><manifest><item id='c' href='c.xhtml' \
                media-type='application/xhtml+xml'/></manifest><spine><itemref idref='c'/></spine></package>";
    let chapter: String = text.iter().map(|words| format!("<p>{words}</p>")).collect();
    let chapter = format!("<html xmlns='http://www.w3.org/1999/xhtml'><body>{chapter}</body></html>");
    package(&[("META-INF/container.xml", container.to_owned()), ("b.opf", book.to_owned()), ("c.xhtml", chapter)])
}

/// A page of lines. Courier has no other letters than those of ASCII.
fn pdf(text: &[String]) -> Vec<u8> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == ' ' { c } else { 'o' };
    let words: String = text.join(" ").chars().map(plain).collect();
    let lines: Vec<&[u8]> = words.as_bytes().chunks(70).take(50).collect();
    let line = |(at, line): (usize, &&[u8])| {
        format!("BT /F 10 Tf 50 {} Td ({}) Tj ET\n", 760 - 14 * at, String::from_utf8_lossy(line))
    };
    let content: String = lines.iter().enumerate().map(line).collect();
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/MediaBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>>>/Count 1/Kids[4 0 R]>>".to_owned(),
        "<</Type/Font/Subtype/Type1/BaseFont/Courier>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/Contents 5 0 R>>".to_owned(),
        format!("<</Length {}>>stream\n{content}endstream", content.len()),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = String::new();
    for (number, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let at = file.len();
    file.push_str(&format!(
        "xref\n0 6\n0000000000 65535 f \n{places}trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n{at}\n%%EOF\n"
    ));
    file.into_bytes()
}

fn forum(text: &[String]) -> Value {
    let answers: Vec<Value> =
        text[1..].iter().map(|words| json!({"text": words, "author": "ann", "votes": 3})).collect();
    json!({"id": "t", "title": "Why", "question": {"text": text[0], "author": "bob"}, "answers": answers})
}

fn issue(text: &[String]) -> Value {
    let comments: Vec<Value> = text[1..].iter().map(|words| json!({"text": words, "author": "ann"})).collect();
    json!({"id": 7, "title": "It fails", "text": text[0], "author": "bob", "state": "open", "comments": comments})
}

fn spoken(which: usize, text: &[String]) -> Made {
    let said = || text.iter().enumerate();
    let time = |at: usize, comma: char| format!("00:{:02}:{:02}{comma}000", at / 60, at % 60);
    let cue = |(at, words): (usize, &String), comma: char| {
        format!("{} --> {}\n{words}\n\n", time(at, comma), time(at + 1, comma))
    };
    let (name, content) = match which % 3 {
        0 => ("a.srt", said().map(|said| format!("{}\n{}", said.0 + 1, cue(said, ','))).collect()),
        1 => ("a.vtt", format!("WEBVTT\n\n{}", said().map(|said| cue(said, '.')).collect::<String>())),
        _ => {
            let segment = |(at, words): (usize, &String)| {
                let speaker = if at % 2 == 0 { "A" } else { "B" };
                json!({"start": at, "end": at + 1, "speaker": speaker, "text": words})
            };
            ("a.json", json!({"segments": said().map(segment).collect::<Vec<_>>()}).to_string())
        }
    };
    Made { kind: SourceKind::Transcript, name: name.to_owned(), bytes: String::into_bytes(content) }
}
