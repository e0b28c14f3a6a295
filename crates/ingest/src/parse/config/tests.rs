// SPDX-License-Identifier: PostgreSQL

//! Configurations of each syntax, small enough to be read at a glance.

use super::*;
use rag_core::source::SourceKind;

fn read(path: &str, text: &str, chunk_tokens: u32) -> Parsed {
    let options = SourceOptions { chunk_tokens, ..SourceOptions::defaults(SourceKind::Config) };
    parse(path, text.as_bytes(), &options)
}

/// Parts as `path: text`, line feeds shown.
fn shown(path: &str, text: &str, chunk_tokens: u32) -> Vec<String> {
    let parsed = read(path, text, chunk_tokens);
    assert_eq!(parsed.metadata.get("parse_error"), None, "{path}");
    let parts = parsed.structure.parts.iter();
    let tiled = parts.clone().fold(0, |at, part| {
        assert_eq!(part.range.start, at, "{path}: parts tile the text");
        part.range.end
    });
    assert_eq!(tiled, text.len(), "{path}");
    parts.map(|p| format!("{}: {}", p.path.join("/"), parsed.text[p.range.clone()].replace('\n', "⏎"))).collect()
}

#[test]
fn yaml_by_its_keys() {
    let text = "# about\n\n# of a\na: 1 # one\nb:\n  - x\n  # of y\n  - y\n# of c\n\"c d\": {e: 1,\n  f: 2}\ng: |\n  text\n\n  # no comment\nh:\n# end\n";
    let expected = [
        ": # about⏎⏎",
        "a: # of a⏎a: 1 # one⏎",
        "b: b:⏎  - x⏎  # of y⏎  - y⏎",
        "c d: # of c⏎\"c d\": {e: 1,⏎  f: 2}⏎",
        "g: g: |⏎  text⏎⏎  # no comment⏎",
        "h: h:⏎# end⏎",
    ];
    assert_eq!(shown("a.yaml", text, 200), expected);
}

#[test]
fn a_large_value_is_cut_at_its_own_keys() {
    let text = "jobs:\n  one:\n    run: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n  two: 2\n  three: 3\n  # four\n  four:\n    - bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n    - cccccccccccccccccccccccccccccccccccc\n";
    let expected = [
        "jobs/one/run: jobs:⏎  one:⏎    run: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa⏎",
        "jobs:   two: 2⏎  three: 3⏎",
        "jobs/four/[0]:   # four⏎  four:⏎    - bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb⏎",
        "jobs/four/[1]:     - cccccccccccccccccccccccccccccccccccc⏎",
    ];
    assert_eq!(shown("a.yml", text, 16), expected);
}

#[test]
fn documents_of_yaml_are_sections() {
    let text = "---\na: 1\n---\n# second\nb: 2\n...\n";
    assert_eq!(shown("a.yaml", text, 200), ["[0]: ---⏎a: 1⏎", "[1]: ---⏎# second⏎b: 2⏎...⏎"]);
    assert_eq!(shown("a.yaml", "---\na: 1\nb: 2\n", 200), ["a: ---⏎a: 1⏎", "b: b: 2⏎"]);
    assert_eq!(shown("a.yaml", "- a\n- b\n", 200), [": - a⏎- b⏎"]);
    assert_eq!(shown("a.yaml", "? [a, b]\n: c\nd: e\n", 200), [": ? [a, b]⏎: c⏎", "d: d: e⏎"]);
}

#[test]
fn toml_by_keys_and_tables() {
    let text = "# about\n\na = 1 # one\nb.\"c.d\" = [1,\n  2]\n\n# of e\n[e.'f g']\nh = '''\n# no comment\n'''\n[[i]]\nj = {k = 1}\n[[i]]\n# end\n";
    let expected = [
        ": # about⏎⏎",
        "a: a = 1 # one⏎",
        "b/c.d: b.\"c.d\" = [1,⏎  2]⏎",
        "e/f g: ⏎# of e⏎[e.'f g']⏎h = '''⏎# no comment⏎'''⏎",
        "i: [[i]]⏎j = {k = 1}⏎",
        "i: [[i]]⏎# end⏎",
    ];
    assert_eq!(shown("a.toml", text, 200), expected);
}

#[test]
fn json_by_keys_on_one_line_or_many() {
    let text = "{\n  // of a\n  \"a\": [1, 2],\n  \"b\\u0020\\\"\": {\"c\": null}, /* b */\n  \"d\": \"x, y\",\n}\n";
    let expected = [
        "a: {⏎  // of a⏎  \"a\": [1, 2],⏎",
        "b \":   \"b\\u0020\\\"\": {\"c\": null}, /* b */⏎",
        "d:   \"d\": \"x, y\",⏎}⏎",
    ];
    assert_eq!(shown("a.json", text, 200), expected);
    assert_eq!(
        shown("a.json", "{\"a\":{\"b\":1,\"c\":2},\"d\":3}", 200),
        ["a: {\"a\":{\"b\":1,\"c\":2},", "d: \"d\":3}"]
    );
    assert_eq!(shown("a.json", "[{\"a\":1}, 2]", 200), [": [{\"a\":1}, 2]"]);
    for bad in [
        "{",
        "{a: 1}",
        "{\"a\" 1}",
        "{\"a\": 1} x",
        "[1 2]",
        "{\"a\": tru}",
        "[\"a\nb\"]",
        "{\"a\":1]",
        "/*",
        ",",
        "{,}",
    ] {
        let parsed = read("a.json", bad, 200);
        assert!(parsed.metadata.contains_key("parse_error"), "{bad}");
        assert_eq!(parsed.structure.paths(), [""], "{bad}");
    }
}

#[test]
fn ini_by_sections() {
    let text = "top = 1\n; of s\n[s t]\na: 1\n  goes on\nb = 2\n\n[u]\nskip-networking\n";
    assert_eq!(
        shown("a.ini", text, 200),
        ["top: top = 1⏎", "s t: ; of s⏎[s t]⏎a: 1⏎  goes on⏎b = 2⏎", "u: ⏎[u]⏎skip-networking⏎"]
    );
    let text = "[core]\n\ta = 1\n\tb = 2\n";
    assert_eq!(shown("git.cfg", text, 200), ["core: [core]⏎\ta = 1⏎\tb = 2⏎"]);
    assert!(read("nginx.conf", "server {\n  listen 80;\n}\n", 200).metadata.contains_key("parse_error"));
}

#[test]
fn properties_by_the_first_of_their_names() {
    let text = "! c\na.b=1\na.c: x \\\n  y=2\nd e\n";
    assert_eq!(shown("x.properties", text, 200), ["a: ! c⏎a.b=1⏎a.c: x \\⏎  y=2⏎", "d: d e⏎"]);
}

#[test]
fn what_cannot_be_read_says_so() {
    for (path, text) in [
        ("a.yaml", "a: [1\nb: {{ x }}\n"),
        ("a.yaml", "just prose\n"),
        ("a.toml", "a = foo\n"),
        ("a.toml", "[a\n"),
        ("a.ini", "this is prose, not a key\n"),
    ] {
        let parsed = read(path, text, 200);
        let why = parsed.metadata["parse_error"].as_str().unwrap_or_default();
        assert!(why.starts_with("no valid "), "{why}");
        assert_eq!(parsed.structure.paths(), [""], "{text}");
    }
    assert!(read("a.yaml", "# nothing\n", 200).metadata.contains_key("syntax"));
    assert_eq!(read("a.yaml", "", 200).structure.parts, []);
}

#[test]
fn a_name_that_says_nothing_leaves_it_to_the_text() {
    for (text, syntax) in
        [("{\"a\": 1}", "json"), ("[a]\nb = 1\n", "toml"), ("a: 1\n", "yaml"), ("[a]\nb = c d\n", "ini")]
    {
        assert_eq!(read("x", text, 200).metadata["syntax"], syntax, "{text}");
    }
}

#[test]
fn bombs_end_well() {
    let deep = |open: &str, n: usize| open.repeat(n);
    for (path, text) in [
        ("a.json", deep("[", 1_000_000)),
        ("a.json", deep("{\"a\":", 200_000)),
        ("a.json", format!("{}{}", deep("[", 500_000), deep("]", 500_000))),
        ("a.yaml", deep("[", 100_000)),
        ("a.yaml", deep("- ", 20_000)),
        ("a.yaml", deep("{a: ", 20_000)),
        ("a.toml", format!("a = {}", deep("[", 100_000))),
        ("a.toml", format!("a = {}", deep("{a=", 100_000))),
        ("a.toml", format!("[{}a]", deep("a.", 200_000))),
        ("a.json", format!("[{}0]", deep("0,", 1_000_000))),
        ("a.json", format!("{{{}\"z\":0}}", (0..100_000).map(|i| format!("\"{i}\":0,")).collect::<String>())),
        ("a.properties", (0..100_000).map(|i| format!("k{i}=0\n")).collect()),
    ] {
        let parsed = read(path, &text, 16);
        assert!(parsed.structure.parts.len() < text.len() / 8 + 4097, "{path} {}", parsed.structure.parts.len());
    }
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..40 {
        bomb.push_str(&format!("a{i}: &a{i} [{}]\n", format!("*a{},", i - 1).repeat(10)));
    }
    assert_eq!(read("a.yaml", &bomb, 200).structure.parts.len(), 40);
}
