// SPDX-License-Identifier: PostgreSQL

//! Source code: which symbols are found, what goes with them, and that nothing is lost, whatever the bytes.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{check, clock, counters, options};
use proptest::prelude::*;
use rag_core::document::{Chunk, Document};
use rag_core::source::{Chunking, SourceKind};
use rag_core::tokens::{TokenCounter, WordCounter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A build without optimisation gets a tenth, or it would take minutes.
const MILLION: usize = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };

const EXTENSIONS: &[&str] =
    &["rs", "py", "ts", "tsx", "js", "go", "java", "c", "h", "hpp", "cs", "rb", "php", "sh", "sql"];

fn parsed(path: &str, text: &[u8], chunk_tokens: u32, counter: &dyn TokenCounter) -> Document {
    let options = options(SourceKind::Code, Chunking::Structure, chunk_tokens);
    let none = serde_json::Map::new();
    let document = rag_ingest::parse_inline(SourceKind::Code, &options, path, text, &none, counter);
    let document = document.expect("any bytes are a document");
    check(&document, &options, counter, 0);
    document
}

fn code(path: &str, text: &str) -> Document {
    parsed(path, text.as_bytes(), 200, &WordCounter { window: 512 })
}

fn fixture(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/code").join(name);
    code(name, &std::fs::read_to_string(path).expect("a fixture"))
}

/// `kind name` of every symbol, in order, each once for each run of its chunks.
fn symbols(document: &Document) -> Vec<String> {
    let named = |chunk: &Chunk| Some(format!("{} {}", chunk.facts.symbol_kind.as_ref()?, chunk.facts.symbol.as_ref()?));
    let mut symbols: Vec<String> = document.chunks.iter().filter_map(named).collect();
    symbols.dedup();
    symbols
}

fn chunk_of<'d>(document: &'d Document, symbol: &str) -> &'d Chunk {
    let mut chunks = document.chunks.iter();
    chunks.find(|chunk| chunk.facts.symbol.as_deref() == Some(symbol)).expect(symbol)
}

#[test]
fn symbols_of_every_language() {
    for (name, language, expected) in [
        (
            "shapes.rs",
            "rust",
            "constant SIDES, struct Square, impl Square, method Square::area, impl Square, impl Wrapper, \
             method Wrapper::fmt, trait Shape, type Shape::Unit, method Shape::name, method Shape::twice, macro square, module tests, \
             function tests::area",
        ),
        (
            "shapes.py",
            "python",
            "constant SIDES, class Square, method Square.__init__, method Square.area, class Square, class Square.Corner, \
             method Square.Corner.angle, function many, function main",
        ),
        (
            "shapes.ts",
            "typescript",
            "constant SIDES, interface Shape, method Shape.area, type Maybe, enum Colour, class Square, \
             method Square.handler, method Square.constructor, method Square.area, method Square.unit, class Base, \
             method Base.draw, function outside, namespace Geometry, function Geometry.double, function twice, \
             function default",
        ),
        ("view.tsx", "tsx", "function View, function Row"),
        (
            "shapes.js",
            "javascript",
            "class Square, method Square.constructor, method Square.area, class Circle, method Circle.area, \
             function sides, function Square.prototype.perimeter, function module.exports.make",
        ),
        (
            "shapes.go",
            "go",
            "constant Sides, constant Red, struct Square, interface Shape, type List, method Square.Area, \
             method List.Len, function main",
        ),
        (
            "Shapes.java",
            "java",
            "class Square, constant Square.SIDES, class Square, method Square.Square, method Square.area, \
             enum Square.Colour, method Square.Colour.next, interface Shape, method Shape.area, record Point, \
             method Point.Point",
        ),
        (
            "shapes.c",
            "c",
            "constant SIDES, macro TWICE, struct square, struct circle, enum colour, function perimeter, \
             function area, function many",
        ),
        (
            "shapes.hpp",
            "cpp",
            "namespace geo, class geo::Square, method geo::Square::Square, method geo::Square::~Square, \
             method geo::Square::area, method geo::Square::operator==, class geo::Square, struct geo::Pair, \
             method geo::Pair::sum, function geo::twice, type geo::Name, enum geo::Colour, method geo::Square::area, \
             function c_function",
        ),
        (
            "Shapes.cs",
            "csharp",
            "namespace Example.Shapes, class Example.Shapes.Square, method Example.Shapes.Square.Square, \
             class Example.Shapes.Square, method Example.Shapes.Square.Area, enum Example.Shapes.Square.Colour, \
             interface Example.Shapes.IShape, method Example.Shapes.IShape.Area, record Example.Shapes.Point, \
             type Example.Shapes.Changed",
        ),
        (
            "shapes.rb",
            "ruby",
            "module Shapes, constant Shapes::SIDES, class Shapes::Square, method Shapes::Square#initialize, \
             method Shapes::Square.unit, method Shapes::Square.twice, method Shapes::Square#==, class Shapes::Empty, \
             method helper",
        ),
        (
            "shapes.php",
            "php",
            "namespace Example\\Shapes, class Example\\Shapes\\Square, constant Example\\Shapes\\Square::SIDES, \
             class Example\\Shapes\\Square, method Example\\Shapes\\Square::__construct, \
             method Example\\Shapes\\Square::area, interface Example\\Shapes\\Shape, \
             method Example\\Shapes\\Shape::area, trait Example\\Shapes\\Named, method Example\\Shapes\\Named::name, \
             enum Example\\Shapes\\Colour, method Example\\Shapes\\Colour::label, function Example\\Shapes\\twice",
        ),
        ("shapes.sh", "bash", "function area, function main"),
        ("shapes.sql", "sql", "table geo.square, index square_side, view geo.area, function geo.twice"),
    ] {
        let document = fixture(name);
        assert_eq!(document.language.as_deref(), Some(language), "{name}");
        assert_eq!(symbols(&document).join(", "), expected, "{name}");
    }
}

/// A comment that documents makes a constant a symbol; without one it is text of what it stands in.
#[test]
fn documented_constants() {
    for (path, text, expected) in [
        (
            "tide.c",
            "/* Metres. */\n#define DRAUGHT 4\n#define BEAM 3\n\n// How often.\nstatic const int RATE = 6;\n\nconst int plain = 1;\n\n\
             /* Its name. */\nconst char *const HARBOUR = \"Sund\";\n\n/* May be another one. */\nconst char *moored = \"Sund\";\n\n\
             /* A table. */\nstatic const unsigned char DEPTHS[] = {1, 2};\n\n/* Two at once. */\nconst int one = 1, two = 2;\n\n\
             /* Set elsewhere. */\nextern const int ZONE;\n\n/* Changes. */\nstatic int level = 2;\n\n\
             /* Where it is. */\nconst struct point ORIGIN = {0, 0};\n",
            "constant DRAUGHT, constant RATE, constant HARBOUR, constant DEPTHS, constant ZONE, constant ORIGIN",
        ),
        (
            "tide.hpp",
            "namespace tide {\n/// Metres.\nconstexpr double draught = 4.5;\n\n/// Its name.\ninline constexpr const char *harbour = \"Sund\";\n\n\
             class Gauge {\npublic:\n    /// How often.\n    static constexpr int rate = 6;\n    /// Of all.\n    static const int number;\n\
             \x20   /// Of each.\n    const int own = 1;\n    static const int silent = 2;\n};\n\n/// How many there are.\nconst int Gauge::number = 3;\n\n\
             /// Of any type.\ntemplate <typename T> constexpr T zero = T(0);\n\n// No documentation.\nconst int remark = 5;\n} // namespace tide\n",
            "namespace tide, constant tide::draught, constant tide::harbour, class tide::Gauge, constant tide::Gauge::rate, \
             constant tide::Gauge::number, class tide::Gauge, constant tide::Gauge::number, constant tide::zero, namespace tide",
        ),
        (
            "Tide.cs",
            "namespace Tides\n{\n    public class Gauge\n    {\n        /// <summary>How often.</summary>\n        public const int Rate = 6;\n\n\
             \x20       /// <summary>Its name.</summary>\n        [Obsolete]\n        private static readonly string Harbour = \"Sund\";\n\n\
             \x20       /// <summary>Of each.</summary>\n        private readonly int own;\n        public const int Silent = 1;\n\n\
             \x20       /// <summary>Two at once.</summary>\n        const int One = 1, Two = 2;\n    }\n}\n",
            "namespace Tides, class Tides.Gauge, constant Tides.Gauge.Rate, constant Tides.Gauge.Harbour, class Tides.Gauge",
        ),
        (
            "tide.sh",
            "#!/bin/sh\nreadonly FIRST=1\n# Where boats lie.\nreadonly HARBOUR=sund\n\n# How often.\ndeclare -ir RATE=6\n\n\
             # All of them.\nreadonly -a NAMES=(a b)\n\nreadonly SILENT=1\n\n# Changes.\ndeclare -i level=2\n\n\
             # Far above.\n\nreadonly FAR=1\n\n# Two at once.\nreadonly ONE=1 TWO=2\n\nif true; then\n  # Within.\n  readonly WITHIN=1\nfi\n",
            "constant HARBOUR, constant RATE, constant NAMES, constant WITHIN",
        ),
        (
            "tide.php",
            "<?php\nnamespace Tides;\n\n/** How often. */\ndefine('RATE', 6);\n\n/** Its name. */\n\\define('Tides\\\\HARBOUR', \"Sund\");\n\n\
             /** Unless it is there. */\ndefined('ZONE') || define(\"ZONE\", 1);\n\ndefine('SILENT', 1);\n\n/** Computed. */\ndefine($name, 1);\n\n\
             /** Metres. */\nconst DRAUGHT = 4;\n\n/** Something else. */\nrequire('RATE');\n\nif (true) {\n    /** Within. */\n    define('WITHIN', 1);\n}\n\n\
             interface Gauge\n{\n    /** Of all. */\n    const NUMBER = 3;\n    const SILENT = 4;\n}\n",
            "namespace Tides, constant RATE, constant Tides\\HARBOUR, constant ZONE, constant Tides\\DRAUGHT, constant WITHIN, \
             interface Tides\\Gauge, constant Tides\\Gauge::NUMBER, interface Tides\\Gauge",
        ),
    ] {
        assert_eq!(symbols(&code(path, text)).join(", "), expected, "{path}");
    }
    let shell = code("a.sh", "# Where boats lie.\nreadonly HARBOUR=sund\n");
    assert_eq!(chunk_of(&shell, "HARBOUR").content, "# Where boats lie.\nreadonly HARBOUR=sund");
}

#[test]
fn types_of_cpp_that_a_declaration_uses_at_once() {
    for (text, expected) in [
        ("struct Boat { int draught() { return 4; } } first, *second;\n", "struct Boat, method Boat::draught"),
        ("union Word { char low() { return 1; } int all; } word;\n", "union Word, method Word::low, union Word"),
        ("union Word { char low() { return 1; } };\n", "union Word, method Word::low"),
        ("class Boat { int draught() { return 4; } } *boat;\n", "class Boat, method Boat::draught"),
        ("typedef struct { int draught() { return 4; } } Boat;\n", "struct Boat, method Boat::draught"),
        ("typedef struct tag { int a; } Boat;\n", "struct Boat"),
        ("enum Tide { ebb, flow } tide;\n", "enum Tide"),
        (
            "struct Quay {\n    struct Berth { int depth() { return 2; } } berth;\n    int length() { return 9; }\n};\n",
            "struct Quay, struct Quay::Berth, method Quay::Berth::depth, method Quay::length",
        ),
    ] {
        assert_eq!(symbols(&code("a.hpp", text)).join(", "), expected, "{text}");
    }
    // What is declared with it goes with what closes it.
    let document = code("a.hpp", "struct Boat {\n    int draught() { return 4; }\n} first, *second;\n");
    assert_eq!(chunk_of(&document, "Boat::draught").content, "    int draught() { return 4; }\n} first, *second;");
    // In C a type has no methods: it is one symbol.
    assert_eq!(symbols(&code("a.c", "struct boat { struct berth { int a; } b; } first;\n")), ["struct boat"]);
}

/// Files of the project itself, by their names and its folder.
fn own_files(folder: &Path, root: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            own_files(&path, root, into);
        } else {
            let within = path.strip_prefix(root).expect("within").to_string_lossy().into_owned();
            into.push((within, std::fs::read(&path).expect("a file")));
        }
    }
}

#[test]
fn every_byte_of_this_repository_is_in_one_chunk() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    own_files(&root, &root, &mut files);
    let mut read = 0;
    for (path, content) in &files {
        if rag_ingest::detect_kind(path, content) == SourceKind::Code {
            for counter in counters(254) {
                let document = parsed(path, content, 200, &*counter);
                // Some fixtures are made to be refused.
                let whole = document.language.is_some() && !document.metadata.contains_key("parse_error");
                assert!(whole || path.contains("fixtures/"), "{path}");
            }
            read += 1;
        }
    }
    assert!(read > 200, "{read} files of {}", files.len());
}

#[test]
fn what_goes_with_a_symbol() {
    let rust = fixture("shapes.rs");
    let area = chunk_of(&rust, "Square::area");
    assert_eq!(area.context.as_deref(), Some("impl Square {"));
    assert!(area.content.starts_with("    /// The area.\n    #[must_use]\n    pub fn area"), "{}", area.content);
    assert_eq!((area.span.line_start, area.span.line_end), (21, 25));
    let square = chunk_of(&rust, "Square");
    assert!(
        square.content.starts_with("/// A square.\n#[derive(Debug)]")
            && square.content.ends_with("} // a trailing remark")
    );
    assert!(rust.chunks.iter().any(|c| c.content == "// A remark that stands alone." && c.facts.symbol.is_none()));
    let roles = ["tests", "tests::area", "Square"].map(|s| chunk_of(&rust, s).facts.role.clone().unwrap_or_default());
    assert_eq!(roles, ["test", "test", "implementation"]);
    assert_eq!(
        (rust.media_type.as_str(), rust.title.as_deref(), rust.role.as_deref()),
        ("text/x-rust", None, Some("implementation"))
    );

    let python = fixture("shapes.py");
    let init = chunk_of(&python, "Square.__init__");
    assert!(init.content.starts_with("    # What makes it.\n    def __init__"));
    assert_eq!(init.context.as_deref(), Some("class Square:"));
    assert!(
        chunk_of(&python, "Square")
            .content
            .starts_with("@functools.total_ordering\nclass Square:\n    \"\"\"A square.\"\"\"")
    );
    assert_eq!(chunk_of(&python, "Square.Corner.angle").context.as_deref(), Some("class Square:\nclass Corner:"));
    assert!(chunk_of(&python, "many").content.starts_with("if SIDES > 3:\n\n    def many"));

    let java = fixture("Shapes.java");
    let next = chunk_of(&java, "Square.Colour.next");
    assert_eq!(next.context.as_deref(), Some("public final class Square implements Shape {\nenum Colour {"));
    // What only closes goes with what it closes.
    assert!(next.content.ends_with("        }\n    }\n}"));
    let typescript = fixture("shapes.ts");
    assert!(chunk_of(&typescript, "Square").content.starts_with("/** A square. */\n@sealed\nexport class Square"));
}

/// What an implementation is for is its name, also behind a reference.
#[test]
fn an_implementation_for_a_reference_is_called_after_the_type() {
    let text = "impl Read for &mut Pipe<u8> {\n    fn read(&mut self) {}\n}\nimpl<'a> Write for &'a io::Pipe {\n    fn write(&self) {}\n}\n";
    let document = parsed("a.rs", text.as_bytes(), 200, &WordCounter { window: 512 });
    assert_eq!(symbols(&document), ["impl Pipe", "method Pipe::read", "impl io::Pipe", "method io::Pipe::write"]);
}

#[test]
fn a_large_symbol_is_cut_at_statements_and_says_what_it_is() {
    let statement = |i: usize| format!("        if value > {i} {{\n            total += {i};\n        }}\n");
    let body: String = (0..30).map(statement).collect();
    let text = format!("impl Adder {{\n    /// Adds.\n    fn add(&mut self, value: u64) {{\n{body}    }}\n}}\n");
    let document = parsed("a.rs", text.as_bytes(), 60, &WordCounter { window: 512 });
    let chunks: Vec<&Chunk> =
        document.chunks.iter().filter(|c| c.facts.symbol.as_deref() == Some("Adder::add")).collect();
    assert!(chunks.len() > 5, "{}", chunks.len());
    assert_eq!(chunks[0].context.as_deref(), Some("impl Adder {"));
    assert!(chunks[0].content.starts_with("    /// Adds.\n    fn add"));
    for chunk in &chunks[1..] {
        assert_eq!(chunk.context.as_deref(), Some("impl Adder {\nfn add(&mut self, value: u64) {"));
        assert!(chunk.content.starts_with("        if value > "), "{}", chunk.content);
    }
    assert!(chunks.iter().all(|chunk| chunk.content.ends_with("        }") || chunk.content.ends_with("}\n    }\n}")));
}

#[test]
fn a_comment_stays_with_its_statement() {
    let body: String = (0..20).map(|i| format!("    # why {i} it is so\n    call(value, {i})\n")).collect();
    let document = parsed("a.py", format!("def f(value):\n{body}").as_bytes(), 30, &WordCounter { window: 512 });
    assert!(document.chunks.len() > 5);
    assert!(document.chunks[1..].iter().all(|chunk| chunk.content.starts_with("    # why")));
}

#[test]
fn what_does_not_parse_is_text_and_costs_nothing_else() {
    let rust = code("a.rs", "fn good() {}\n\n%% not rust at all {{ fn (\n\n/// Doc.\nfn better() { 1 }\n");
    assert!(symbols(&rust).contains(&"function good".to_owned()));
    let python = code("a.py", "def a():\n    return 1\n\n)))\n\ndef b():\n    return 2\n");
    assert_eq!(symbols(&python), ["function a", "function b"]);
    let sql = code("a.sql", "CREATE TABLE a (;\nCREATE WHATEVER x;\nCREATE VIEW b AS SELEC 1;\n");
    assert_eq!(symbols(&sql), ["table a", "view b"]);
    // Nothing but the name of a language is known of these.
    for text in
        ["", "\n", "\u{FEFF}", "\0\0\0", "漢字 🙂 \u{301}", "'", "\"", "`", "/*", "\"\"\"", "r#\"", "<<EOF", "$$"]
    {
        for extension in EXTENSIONS {
            code(&format!("a.{extension}"), text);
        }
    }
}

#[test]
fn an_unknown_language_is_text() {
    let document = code("notes.xyz", "one\n\ntwo\n");
    assert_eq!((document.language, document.role, document.media_type.as_str()), (None, None, "text/plain"));
    assert_eq!(code("run", "#!/bin/sh\nf() {\n  :\n}\n").language.as_deref(), Some("bash"));
    assert_eq!(code("a.h", "class A {\n};\n").language.as_deref(), Some("cpp"));
}

/// Parses, checks and compares the time with that of a quarter of the text: what takes the square of it takes sixteen
/// times as long for all.
fn soon(path: &str, text: &str) -> Document {
    let read = |text: &str| {
        let start = clock();
        let document = parsed(path, text.as_bytes(), 200, &WordCounter { window: 254 });
        (document, clock().saturating_sub(start))
    };
    let (_, quick) = read(&text[..text.floor_char_boundary(text.len() / 4)]);
    let (document, took) = read(text);
    assert!(
        took <= quick * 8 + Duration::from_millis(500),
        "{path}: {} bytes took {took:?}, a quarter {quick:?}",
        text.len()
    );
    document
}

#[test]
fn one_line_of_two_megabytes() {
    let function = |i: usize| {
        format!("function f{i}(a,b){{if(a){{return b+{i}}}else{{return[a,b,{{c:{i}}}]}}}}var v{i}=f{i}({i});")
    };
    let script: String = (0..MILLION / 40).map(function).collect();
    let document = soon("a.min.js", &script);
    assert!(document.chunks.len() > 1000);
    let numbers: String = (0..MILLION / 4).map(|i| format!("{i},")).collect();
    soon("a.py", &format!("x = [{numbers}]\n"));
    soon("a.json.ts", &format!("const x = [{numbers}];"));
    soon("a.c", &"int x; ".repeat(MILLION / 4));
    soon("a.sql", &"insert into t values (1, 'x'); ".repeat(MILLION / 20));
    soon("a.sql", &"create table t (a int); ".repeat(MILLION / 20));
}

#[test]
fn deep_nesting() {
    let deep = MILLION / 50;
    for (extension, open, close) in [
        ("rs", "{", "}"),
        ("rs", "mod m {", "}"),
        ("py", "(", ")"),
        ("js", "[", "]"),
        ("ts", "namespace a {", "}"),
        ("go", "{", "}"),
        ("java", "class A {", "}"),
        ("c", "(", ")"),
        ("hpp", "namespace a {", "}"),
        ("hpp", "template <A<", ">>"),
        ("cs", "namespace A {", "}"),
        ("rb", "module A;", "end;"),
        ("php", "<?php if (a) {", "}"),
        ("sh", "$(", ")"),
        ("sh", "if a; then ", "fi; "),
        ("sql", "/*", "*/"),
    ] {
        soon(&format!("a.{extension}"), &format!("{}x{}", open.repeat(deep), close.repeat(deep)));
        soon(&format!("a.{extension}"), &open.repeat(deep));
    }
    let steps: String = (0..400).map(|i| format!("{}if x:\n", "  ".repeat(i))).collect();
    soon("a.py", &format!("{steps}{}pass\n", "  ".repeat(400)));
    let classes: String = (0..400).map(|i| format!("{}class A{i}:\n", " ".repeat(i))).collect();
    let document = soon("a.py", &format!("{classes}{}pass\n", " ".repeat(400)));
    assert!(document.chunks.iter().all(|chunk| chunk.context.as_ref().is_none_or(|context| context.len() <= 1000)));
}

#[test]
fn many_marks() {
    for mark in [
        "\"", "'", "`", "/*", "//", "#", "\"\"\"", "r#\"", "${", "<<E\n", "$a$", "R\"(", "%q(", "<", ">", "\\", "@",
        "=begin\n", "<?", "#if\n", "${{",
    ] {
        for extension in EXTENSIONS {
            soon(&format!("a.{extension}"), &mark.repeat(MILLION / 20 / mark.len()));
        }
    }
}

#[test]
fn many_small_symbols() {
    for (extension, symbol) in
        [("rs", "fn a(){}\n"), ("py", "def a(): pass\n"), ("js", "a=()=>1\n"), ("sql", "create role a;\n")]
    {
        let document = soon(&format!("a.{extension}"), &symbol.repeat(MILLION / 4 / symbol.len()));
        assert!(document.chunks.len() >= 1000, "{extension}: {} chunks", document.chunks.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 400 }))]

    #[test]
    fn any_bytes_are_a_document(bytes in proptest::collection::vec(any::<u8>(), 0..400), extension in 0..EXTENSIONS.len()) {
        for counter in counters(254) {
            parsed(&format!("a.{}", EXTENSIONS[extension]), &bytes, 16, &*counter);
        }
    }

    #[test]
    fn any_pieces_of_code_are_a_document(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "class A", "def f():", "fn f() ", "{", "}", "\n", "\n    ", " ", "(", ")", ";", "// c\n", "# c\n", "/** d */", "\"s\"", "'",
            "@x\n", "#[test]\n", "export ", "const X = ", "function g() ", "namespace n ", "if x:", "end\n", "impl T for U ", "é",
            "type T struct ", "CREATE TABLE t ", "$$", "--c\n", "template <T> ", "\t", "#ifdef X\n", "#endif\n", "<?php ", "=> ", "module M\n",
        ]), 0..60),
        extension in 0..EXTENSIONS.len(),
    ) {
        for counter in counters(64) {
            parsed(&format!("a.{}", EXTENSIONS[extension]), pieces.concat().as_bytes(), 24, &*counter);
        }
    }

    #[test]
    fn half_a_file_is_a_document(cut in 0.0_f64..1.0, at in 0..EXTENSIONS.len()) {
        let fixtures: Vec<PathBuf> = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/code"))
            .expect("fixtures").map(|entry| entry.expect("entry").path()).collect();
        let path = &fixtures[at % fixtures.len()];
        let text = std::fs::read(path).expect("a fixture");
        let (from, name) = ((text.len() as f64 * cut) as usize, path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        parsed(&name, &text[from..], 32, &WordCounter { window: 254 });
        parsed(&name, &text[..from], 32, &WordCounter { window: 254 });
    }
}
