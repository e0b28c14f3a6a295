// SPDX-License-Identifier: PostgreSQL

//! Every file of `../shared/data/files` is ingested, or refused, as its manifest says, by SQL on a real server.
//!
//! The manifest drives: each of its rows must be known here by the very words that it says of the file, so a row that is new, or says
//! something else, fails the test until somebody has judged it. Skipped, with a message, where the files are not.

use postgres::Client;
use rag_core::provenance::ContentHash;
use rag_server_tests::{Cluster, Failure, TestResult, data, project, standin, with_cluster};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A row of the manifest.
struct Row {
    file: String,
    sha256: String,
    what: String,
}

/// What a file is to come to.
enum Expected {
    /// One document in which these texts are.
    Text(&'static [&'static str]),
    /// As many pages with text; opened with a password where one is needed.
    Pages(i32, Option<&'static str>, &'static str),
    /// A document without chunks.
    Nothing,
    /// No document; the error says this.
    Refused(&'static str),
    /// Documents with these paths, and failures that say these things.
    Members(&'static [&'static str], &'static [&'static str]),
    /// Looked at by a test of its own.
    Own,
}
use Expected::{Members, Nothing, Own, Pages, Refused, Text};

const GOOD: &str = "docs/good.md";

/// Each row that says what is special about its file, and what that means here. The Markdown files are the rows that say how many
/// fences and headings they have; `markdown` below has them all.
#[rustfmt::skip]
const FILES: &[(&str, &str, Expected)] = &[
    ("git/nasty-repo-open.bundle", "CRLF, latin-1, UTF-16, symlinks out, LFS pointer, minified 2 MB, merge, rename, emoji name", Own),
    ("nasty/bad-crc.zip", "index ok.md; report crc.md", Members(&["ok.md"], &["\"crc.md\" is damaged: its checksum"])),
    ("nasty/bomb-300mb.zip", "stop at the size/ratio limit; good.md may be indexed; bounded memory and time",
     Members(&[GOOD], &["\"zeros.txt\" has 300000000 bytes, more than max_document_bytes"])),
    ("nasty/duplicate-names.zip", "define which wins; stay deterministic", Members(&["A.md", "a.md", "a.md/b.md"], &[])),
    ("nasty/empty.zip", "0 documents, no error", Members(&[], &[])),
    ("nasty/encrypted.zip", "index plain.md, report secret.md as encrypted", Members(&["plain.md"], &["\"secret.md\" is encrypted"])),
    ("nasty/entries-70000.zip", "index all within limits or stop at the entry limit with a message", Own),
    ("nasty/mixed.zip", "text indexed, binaries skipped",
     Members(&["bom.md", "data.csv", GOOD, "empty.md", "latin1.txt", "node_modules/x/index.js", "nul.txt", "page.html",
               "src/main.py", "utf16.txt"], &[])),
    ("nasty/nested-3.zip", "either descend within the limit or report the nested archives as skipped; never crash",
     Members(&["level2.zip!/level1.zip!/level0.zip!/docs/good.md", "level2.zip!/level1.zip!/level0.zip!/src/main.py",
               "level2.zip!/level1.zip!/note0.md", "level2.zip!/note1.md", "note2.md"], &[])),
    ("nasty/non-utf8-names.zip", "all four texts indexed under some stable name, or the bad one reported",
     Members(&["%93%FA%96{%8C%EA.md", "bad%FF%FE.md", "café.md", "日本語.md"], &[])),
    ("nasty/prefix-junk.zip", "open as a zip if the tool sniffs the tail, or report", Members(&[GOOD], &[])),
    ("nasty/symlink.tar.gz", "index good.md only", Members(&[GOOD], &["\"l/evil.md\" lies beneath a link", "\"hard.md\" is a hard link"])),
    ("nasty/symlink.zip", "index docs/good.md; never follow a link; no content of /etc/passwd in the index",
     Members(&[GOOD], &["\"link.md\" is a symbolic link", "\"dirlink/evil.md\" lies beneath a link"])),
    ("nasty/text-crlf.md", "same chunks as with LF", Own),
    ("nasty/text-huge-fence.md", "chunks stay under the size limit; \"After the fence\" found", Text(&["After the fence"])),
    ("nasty/text-unclosed-fence.md", "no crash", Text(&["```"])),
    ("nasty/zero-pages.pdf", "0 chunks, no crash", Nothing),
    ("nasty/zipslip-absolute.zip", "index 1 good entry, refuse 2",
     Members(&[GOOD], &["\"/etc/cron.d/evil\" has an absolute path", "\"/tmp/evil.md\" has an absolute path"])),
    ("nasty/zipslip.zip", "index 2 good entries; refuse or neutralise 2 traversal entries; write nothing outside",
     Members(&[GOOD, "src/main.py"], &["\"../../evil.md\" leads out", "\"docs/../../evil2.md\" leads out"])),
    ("pdf/GeoTopo-komprimiert.pdf", "117 pages, outline 16, German, mathematics, TOC", Pages(117, None, "Dieses Skript wurde im Wintersemester")),
    ("pdf/Pages-tree-refs.pdf", "cyclic page tree", Pages(1, None, "Pages loop")),
    ("pdf/aes-256-r6.pdf", "AES-256 R6 (passwords in pdfminer tests: usersecret / ownersecret)", Pages(1, Some("usersecret"), "Hello World")),
    ("pdf/bug1020226.pdf", "truncated, 184 bytes", Refused("not a PDF that can be read")),
    ("pdf/cjk-ja-tounicode.pdf", "ja text with a ToUnicode map, several pages, text equals the first lines of the markdown file", Pages(5, None, "コンテナ内のFastAPI")),
    ("pdf/encrypted.pdf", "encrypted with empty user password, text readable", Pages(1, None, "What Is the Purpose of This Form?")),
    ("pdf/google-doc-document.pdf", "Google Docs export", Pages(1, None, "Beautiful is better than ugly.")),
    ("pdf/grayscale-image.pdf", "image only, no text", Refused("no text layer")),
    ("pdf/habibi.pdf", "right-to-left text", Pages(1, None, "حَبيبي habibi حَبيبي")),
    ("pdf/issue16063.pdf", "CJK text, 241 characters on page 1", Pages(1, None, "電線の接続")),
    ("pdf/issue9105_reduced.pdf", "broken xref", Pages(1, None, "Issue 9105")),
    ("pdf/issue_566_test_2.pdf", "CJK text, 12 characters", Pages(1, None, "中国饮料有限公司")),
    ("pdf/libreoffice-writer-password.pdf", "encrypted, needs a password", Pages(1, Some("openpassword"), "Lorem ipsum")),
    ("pdf/minimal-document.pdf", "plain text, 1 page", Pages(1, None, "Lorem ipsum dolor sit amet")),
    ("pdf/multicolumn.pdf", "multi-column, 3 pages", Pages(3, None, "Two-Column Document with Lorem Ipsum")),
    ("pdf/noembed-sjis.pdf", "CJK, Shift-JIS CMap, font not embedded", Pages(1, None, "あいうえお")),
    ("pdf/pdflatex-4-pages.pdf", "text, 4 pages", Pages(4, None, "Hello, here is some text without a meaning.")),
    ("pdf/pdflatex-outline.pdf", "outline (9 top items), 4 pages", Pages(4, None, "9 Baz")),
    ("pdf/poppler-937-0-fuzzed.pdf", "fuzzed page tree", Refused("not a PDF that can be read")),
    ("pdf/pr-00530-ml-lines.pdf", "dense table-like page", Pages(1, None, "Airworthiness Directive")),
    ("pdf/rc4-40.pdf", "RC4-40 encrypted (password foo or baz in the tests)", Pages(1, Some("foo"), "Secret!")),
    ("pdf/rotation.pdf", "rotated pages", Pages(2, None, "This is my first page with normal layout.")),
    ("pdf/tracemonkey.pdf", "two-column paper with figures and tables, 14 pages", Pages(14, None, "Trace-based Just-in-Time Type Specialization")),
    ("pdf/with-attachment.pdf", "embedded file", Pages(1, None, "Lorem ipsum dolor sit amet")),
    ("pdf/xref_command_missing.pdf", "broken xref (keyword missing)", Pages(1, None, "Reduced test-case")),
    ("pdf/zen_of_python_corrupted.pdf", "corrupted, text recoverable", Pages(1, None, "Namespaces are one honking great idea")),
];

fn manifest(folder: &Path) -> TestResult<Vec<Row>> {
    let text = std::fs::read_to_string(folder.join("MANIFEST.tsv"))?;
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, _, sha256, _, _, what] = fields[..] else {
            return Err(Failure::new(format!("not six fields: {line}")));
        };
        // For the nasty ones: what a correct reader does.
        let what = what.split_once("| expected: ").map_or(what, |(_, expected)| expected);
        rows.push(Row { file: file.to_owned(), sha256: sha256.to_owned(), what: what.to_owned() });
    }
    Ok(rows)
}

/// A sync of a source of its own, and what became of each of its documents.
struct Synced {
    name: String,
    /// State and error, by URI.
    items: BTreeMap<String, (String, Option<String>)>,
    /// Entries looked at, documents listed, documents, chunks.
    counts: [i64; 4],
}

struct Reader<'a> {
    cluster: &'a Cluster,
    client: Client,
}

impl Reader<'_> {
    /// Adds a source over something beneath the folder of files and syncs it.
    fn sync(&mut self, name: &str, kind: &str, place: &str, options: &Value) -> TestResult<Synced> {
        let place = self.cluster.files().join(place).display().to_string();
        let add = "SELECT rag.add_source($1, $2, $3, $4, $5)";
        self.client.execute(add, &[&name, &kind, &place, options, &standin::STANDIN])?;
        self.client.execute("CALL rag.sync($1)", &[&name])?;
        let run = "SELECT y.id, y.seen, y.total, y.documents, y.chunks, y.failed::int8 FROM rag.sync y
                     JOIN rag.source s ON s.id = y.source_id WHERE s.name = $1 AND y.status = 'done'";
        let row = self.client.query_one(run, &[&name])?;
        let counts = [1, 2, 3, 4].map(|at| row.get::<_, i64>(at));
        let items = "SELECT uri, state, error FROM rag.sync_item WHERE sync_id = $1";
        let items = self.client.query(items, &[&row.get::<_, i64>(0)])?;
        let items: BTreeMap<_, _> = items.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
        // What the history says is what was listed, and what failed is in it.
        let failed = items.values().filter(|(state, _): &&(String, _)| state == "failed").count() as i64;
        assert_eq!((counts[1], row.get::<_, i64>(5)), (items.len() as i64, failed), "{name}");
        assert_eq!(counts[2], counts[1] - failed, "{name}: what did not fail is a document");
        assert!(counts[0] >= counts[1], "{name}: {counts:?}");
        for (view, count) in [("rag.documents", counts[2]), ("rag.chunks", counts[3])] {
            let sql = format!("SELECT count(*) FROM {view} WHERE source = $1");
            assert_eq!(self.client.query_one(&sql, &[&name])?.get::<_, i64>(0), count, "{name}: {view}");
        }
        Ok(Synced { name: name.to_owned(), items, counts })
    }

    fn number(&mut self, sql: &str, source: &str, uri: &str) -> TestResult<i64> {
        Ok(self.client.query_one(sql, &[&source, &uri])?.get(0))
    }

    /// Whether the chunks of a document have a text, however it was broken into lines.
    fn has(&mut self, source: &str, uri: &str, text: &str) -> TestResult {
        let sql = "SELECT content FROM rag.chunks WHERE source = $1 AND uri = $2 ORDER BY ordinal";
        let chunks: Vec<String> = self.client.query(sql, &[&source, &uri])?.iter().map(|row| row.get(0)).collect();
        assert!(chunks.iter().any(|chunk| chunk.contains(text)), "{source} {uri}: no {text:?}");
        Ok(())
    }

    /// The chunks of a document as they are told apart from others.
    fn chunks(&mut self, source: &str, uri: &str) -> TestResult<Vec<(String, i32, i32)>> {
        let sql =
            "SELECT content, line_start, line_end FROM rag.chunks WHERE source = $1 AND uri = $2 ORDER BY ordinal";
        let rows = self.client.query(sql, &[&source, &uri])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
    }

    /// Whether a document was stored with the bytes of the manifest.
    fn stored(&mut self, synced: &Synced, uri: &str, row: &Row) -> TestResult {
        let (state, error) = &synced.items[uri];
        assert_eq!(state, "new", "{}: {error:?}", row.file);
        let sql = "SELECT count(*) FROM rag.documents WHERE source = $1 AND uri = $2 AND content_sha256 = $3";
        let found: i64 = self.client.query_one(sql, &[&synced.name, &uri, &row.sha256])?.get(0);
        assert_eq!(found, 1, "{}", row.file);
        Ok(())
    }
}

fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A text without white space: where a line goes on in the next chunk, what was between is in neither.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Bytes of a paragraph, a fence, a table or a row of one that surely fit into a chunk, and so stay in one.
const SMALL: usize = 150;

/// The lines of a file but for its front matter are all in chunks, which say so by their lines; what is small of the blocks that
/// another parser found is whole in one. Returns how many of those there are.
fn texts(uri: &str, text: &str, blocks: &Value, chunks: &[(String, i32, i32)]) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let front = blocks["front_matter"].as_u64().unwrap_or(0) as usize;
    assert!(chunks.iter().all(|(_, first, _)| *first as usize > front), "{uri}: front matter in a chunk");
    let at = |from: usize, to: usize| {
        let on = move |(_, first, last): &&(String, i32, i32)| *first as usize <= from && to <= *last as usize;
        chunks.iter().filter(on).map(|(content, ..)| squeezed(content))
    };
    for (index, line) in lines.iter().enumerate().skip(front) {
        let said: String = at(index + 1, index + 1).collect();
        assert!(said.contains(&squeezed(line)), "{uri}:{}: no chunk has {line:?}", index + 1);
    }
    let mut whole = 0;
    for kind in ["paragraphs", "fences", "tables"] {
        let ranges = blocks[kind].as_array().into_iter().flatten();
        let ranges = ranges.filter_map(|range| Some((range[0].as_u64()? as usize, range[1].as_u64()? as usize)));
        let rows = |(from, to): (usize, usize)| (from..=to).map(|row| (row, row)).filter(|_| kind == "tables");
        for (from, to) in ranges.flat_map(|range| rows(range).chain([range])) {
            let block = lines[from - 1..to].join("\n");
            if block.len() <= SMALL {
                let holds = |chunk: String| chunk.contains(&squeezed(&block));
                assert!(at(from, to).any(holds), "{uri}:{from}: not in one chunk: {block:?}");
                whole += 1;
            }
        }
    }
    whole
}

/// Every Markdown file of the folder: its headings, by another parser, are each in a chunk that says so by its lines, and so is
/// its text.
fn markdown(reader: &mut Reader<'_>, folder: &Path, rows: &[&Row]) -> TestResult {
    let synced = reader.sync("md", "markdown", "md", &json!({}))?;
    assert_eq!(
        synced.items.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        rows.iter().map(|r| name_of(&r.file)).collect()
    );
    let reference = std::fs::read_to_string(folder.join("md_reference.jsonl"))?;
    let mut headings: BTreeMap<String, Value> = BTreeMap::new();
    for line in reference.lines() {
        let value: Value = serde_json::from_str(line).map_err(|e| Failure::new(e.to_string()))?;
        headings.insert(value["file"].as_str().unwrap_or_default().to_owned(), value["headings"].clone());
    }
    let oracle = std::fs::read_to_string(project().join("eval/oracle/blocks.jsonl"))?;
    let blocks =
        oracle.lines().map(|line| serde_json::from_str::<Value>(line).map_err(|e| Failure::new(e.to_string())));
    let blocks = blocks.collect::<TestResult<Vec<_>>>()?;
    let mut whole = 0;
    for row in rows {
        let uri = name_of(&row.file);
        reader.stored(&synced, uri, row)?;
        let chunks = reader.chunks("md", uri)?;
        assert!(!chunks.is_empty(), "{uri}");
        let blocks = blocks.iter().find(|blocks| blocks["file"] == uri);
        let blocks = blocks.ok_or_else(|| Failure::new(format!("no blocks of {uri}")))?;
        whole += texts(uri, &std::fs::read_to_string(folder.join(&row.file))?, blocks, &chunks);
        let told = headings
            .get(&row.file)
            .and_then(Value::as_array)
            .ok_or_else(|| Failure::new(format!("no reference of {uri}")))?;
        for heading in told {
            let (text, line) = (heading[1].as_str().unwrap_or_default(), heading[2].as_i64().unwrap_or(0) as i32);
            let last = text.lines().last().unwrap_or_default().trim();
            let holds =
                |(content, first, to): &(String, i32, i32)| *first <= line && line <= *to && content.contains(last);
            // A heading of several lines may be cut between them only by its length.
            assert!(chunks.iter().any(holds) || text.is_empty(), "{uri}:{line}: no chunk has {text:?}");
        }
    }
    assert!(whole > 500, "{whole} blocks");
    let without_lines = |chunks: Vec<(String, i32, i32)>| chunks.into_iter().map(|chunk| chunk.0).collect::<Vec<_>>();
    for row in rows.iter().filter(|row| row.what.starts_with("same chunks as")) {
        let twin = row.what.split(' ').nth(3).ok_or_else(|| Failure::new("no twin is named"))?;
        let (own, other) = (reader.chunks("md", name_of(&row.file))?, reader.chunks("md", twin)?);
        assert!(!own.is_empty());
        assert_eq!(without_lines(own), without_lines(other), "{}", row.file);
    }
    Ok(())
}

fn members(reader: &mut Reader<'_>, row: &Row, documents: &[&str], failures: &[&str]) -> TestResult {
    let synced = reader.sync(&row.file, "zip", &row.file, &json!({}))?;
    let prefix = format!("{}!/", name_of(&row.file));
    let of_state = |failed: bool| {
        let items = synced.items.iter().filter(move |(_, (state, _))| (state == "failed") == failed);
        items
            .map(|(uri, (_, error))| (uri.trim_start_matches(&prefix), error.as_deref().unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    let found: BTreeSet<&str> = of_state(false).into_iter().map(|(path, _)| path).collect();
    assert_eq!(found, documents.iter().copied().collect(), "{}", row.file);
    let failed = of_state(true);
    assert_eq!(failed.len(), failures.len(), "{}: {failed:?}", row.file);
    for part in failures {
        assert!(failed.iter().any(|(_, error)| error.contains(part)), "{}: {part:?} in {failed:?}", row.file);
    }
    let leaked = "SELECT count(*) FROM rag.chunks WHERE source = $1 AND content LIKE '%root:%' AND uri <> $2";
    assert_eq!(reader.number(leaked, &row.file, "")?, 0, "{} has the content of /etc/passwd", row.file);
    Ok(())
}

fn pdf(
    reader: &mut Reader<'_>,
    synced: &Synced,
    row: &Row,
    pages: i32,
    password: Option<&str>,
    text: &str,
) -> TestResult {
    let uri = name_of(&row.file);
    let opened;
    let synced = match password {
        None => synced,
        Some(password) => {
            let (state, error) = &synced.items[uri];
            let error = error.as_deref().unwrap_or_default();
            assert_eq!((state.as_str(), error), ("failed", "PDF is encrypted and needs a password"), "{}", row.file);
            opened = reader.sync(&row.file, "pdf", &row.file, &json!({ "password": password }))?;
            &opened
        }
    };
    reader.stored(synced, uri, row)?;
    let last = "SELECT max(page_end)::int8 FROM rag.chunks WHERE source = $1 AND uri = $2";
    assert_eq!(reader.number(last, &synced.name, uri)?, i64::from(pages), "{}", row.file);
    reader.has(&synced.name, uri, text)
}

fn repository(reader: &mut Reader<'_>, folder: &Path, row: &Row) -> TestResult {
    let clone = reader.cluster.files().join("clone");
    let mut git = Command::new("git");
    git.args(["clone", "-q", "--bare"]).arg(folder.join(&row.file)).arg(&clone);
    let Ok(output) = git.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent").output() else {
        eprintln!("skipped: git is not installed");
        return Ok(());
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let synced = reader.sync(&row.file, "git", "clone", &json!({}))?;
    let stored: Vec<&str> =
        synced.items.iter().filter(|(_, item)| item.0 == "new").map(|(uri, _)| uri.as_str()).collect();
    // The links are not followed, the binary file is no document, and neither is what only points to one.
    let expected = [
        "docs/emoji 😀 name.md",
        "docs/guide.md",
        "docs/side.md",
        "node_modules/x/index.js",
        "src/bundle.min.js",
        "src/crlf.py",
        "src/empty.go",
        "src/latin1.rs",
        "src/new.ts",
        "src/utf16.txt",
    ];
    assert_eq!(stored, expected);
    assert!(
        synced.items.keys().all(|uri| expected.contains(&uri.as_str()) || uri == "docs/big.pdf"),
        "{:?}",
        synced.items.keys()
    );
    let reference = std::fs::read_to_string(folder.join("git_reference.jsonl"))?;
    let reference: Value = serde_json::from_str(reference.trim()).map_err(|e| Failure::new(e.to_string()))?;
    assert_eq!(Some(synced.counts[0]), reference["files"].as_i64(), "every file of the commit was looked at");
    let sql = "SELECT DISTINCT commit FROM rag.documents WHERE source = $1";
    let commits: Vec<String> = reader.client.query(sql, &[&row.file])?.iter().map(|row| row.get(0)).collect();
    assert_eq!(commits, [reference["head"].as_str().unwrap_or_default()]);
    let repaired = "SELECT repaired_bytes FROM rag.documents WHERE source = $1 AND uri = $2";
    assert_eq!(reader.number(repaired, &row.file, "src/latin1.rs")?, 1);
    assert_eq!(reader.number(repaired, &row.file, "src/utf16.txt")?, 0);
    let carriage = "SELECT count(*) FROM rag.chunks WHERE source = $1 AND uri = $2 AND content LIKE E'%\\r%'";
    assert_eq!(reader.number(carriage, &row.file, "src/crlf.py")?, 0);
    Ok(())
}

/// All entries are looked at within the limit, and below it the archive is refused by name.
fn many_entries(reader: &mut Reader<'_>, row: &Row) -> TestResult {
    let all = std::env::var_os("RAG_TEST_FULL").is_some();
    let options = if all { json!({}) } else { json!({"glob": "n/99/*.txt"}) };
    let synced = reader.sync(&row.file, "zip", &row.file, &options)?;
    assert_eq!(synced.counts[..3], if all { [70_000; 3] } else { [70_000, 700, 700] });
    reader.has(&row.file, &format!("{}!/n/99/69999.txt", name_of(&row.file)), "note 69999")?;
    let place = reader.cluster.files().join(&row.file).display().to_string();
    let few = json!({"limits": {"max_entries": 69_999}});
    let add = "SELECT rag.add_source('few', 'zip', $1, $2, $3)";
    reader.client.execute(add, &[&place, &few, &standin::STANDIN])?;
    let error = reader.client.execute("CALL rag.sync('few')", &[]).err().ok_or_else(|| Failure::new("no error"))?;
    let error = error.as_db_error().map(|error| error.message().to_owned());
    assert_eq!(error.as_deref(), Some("archive \"entries-70000.zip\" has more entries than max_entries 69999"));
    Ok(())
}

fn file(reader: &mut Reader<'_>, folder: &Path, pdfs: &Synced, row: &Row, expected: &Expected) -> TestResult {
    let uri = name_of(&row.file);
    match expected {
        Members(documents, failures) => members(reader, row, documents, failures),
        Pages(pages, password, text) => pdf(reader, pdfs, row, *pages, *password, text),
        Refused(why) => {
            let (state, error) = &pdfs.items[uri];
            let error = error.as_deref().unwrap_or_default();
            assert!(state == "failed" && error.contains(why), "{}: {state}, {error}", row.file);
            Ok(())
        }
        Nothing => {
            let synced = reader.sync(&row.file, "pdf", &row.file, &json!({}))?;
            assert_eq!(synced.counts, [1, 1, 1, 0], "{}", row.file);
            reader.stored(&synced, uri, row)
        }
        Text(texts) => {
            let synced = reader.sync(&row.file, "markdown", &row.file, &json!({}))?;
            reader.stored(&synced, uri, row)?;
            let largest = "SELECT max(token_count)::int8 FROM rag.chunks WHERE source = $1 AND uri = $2";
            assert!(reader.number(largest, &row.file, uri)? <= 200, "{}", row.file);
            texts.iter().try_for_each(|text| reader.has(&row.file, uri, text))
        }
        Own if row.file.starts_with("git/") => repository(reader, folder, row),
        Own if row.file == "nasty/entries-70000.zip" => many_entries(reader, row),
        Own => {
            assert_eq!(row.what, "same chunks as with LF");
            let text = std::fs::read_to_string(folder.join(&row.file))?;
            reader.cluster.write("lf.md", text.replace("\r\n", "\n"))?;
            let synced = reader.sync(&row.file, "markdown", &row.file, &json!({}))?;
            reader.stored(&synced, uri, row)?;
            reader.sync("lf", "markdown", "lf.md", &json!({}))?;
            let (own, other) = (reader.chunks(&row.file, uri)?, reader.chunks("lf", "lf.md")?);
            assert!(!own.is_empty());
            assert_eq!(own, other);
            Ok(())
        }
    }
}

#[test]
fn every_file_is_ingested_or_refused_as_the_manifest_says() -> TestResult {
    let Some(folder) = data("files") else { return Ok(()) };
    let rows = manifest(&folder)?;
    let (documents, special): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.file.starts_with("md/"));
    // Both ways: no row without an expectation, no expectation without a row.
    let told: BTreeSet<(&str, &str)> = special.iter().map(|row| (row.file.as_str(), row.what.as_str())).collect();
    assert_eq!(told, FILES.iter().map(|(file, what, _)| (*file, *what)).collect());
    for row in &documents {
        let counts = row.what.split(' ').all(|word| word == "front-matter" || word.split_once('=').is_some());
        assert!(counts || row.what.starts_with("same chunks as "), "nothing is expected of {}: {}", row.file, row.what);
    }
    with_cluster(&[], |cluster| {
        for row in &rows {
            let bytes = std::fs::read(folder.join(&row.file))?;
            assert_eq!(ContentHash::of(&bytes).hex(), row.sha256, "{}", row.file);
            cluster.write(&row.file, bytes)?;
        }
        let mut client = cluster.connect()?;
        standin::collection(cluster, &mut client)?;
        let engine = cluster.engine(&mut client)?.pid;
        let mut reader = Reader { cluster, client };
        markdown(&mut reader, &folder, &documents)?;
        let pdfs = reader.sync("pdf", "pdf", "pdf", &json!({}))?;
        for row in &special {
            let expected = FILES.iter().find(|(file, _, _)| *file == row.file);
            let (_, _, expected) = expected.ok_or_else(|| Failure::new(row.file.as_str()))?;
            file(&mut reader, &folder, &pdfs, row, expected)?;
        }
        assert_eq!(cluster.engine(&mut reader.client)?.pid, engine, "the engine was restarted");
        Ok(())
    })
}
