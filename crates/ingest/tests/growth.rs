// SPDX-License-Identifier: PostgreSQL

//! The time of reading text, pages and configurations grows with their size; see [`linear`].
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod linear;

use linear::{MEGABYTE, grows, reader, repeats};
use rag_core::source::SourceKind;

#[test]
fn markdown() {
    let read = reader(SourceKind::Markdown, "a.md");
    for unit in [
        "[",
        "]",
        "[]",
        "[](",
        "![",
        "[[",
        "]]",
        "[a]: b\n",
        "[a][b] ",
        "[a]:",
        "[^a]",
        "[^a]: b\n\n",
        "*",
        "*a ",
        "**a ",
        "*a_",
        "_a*",
        "~",
        "~~a ",
        "`",
        "` a `` ",
        "`a",
        "<",
        "<a ",
        "<!--",
        "<!-- -->",
        "<?",
        "<![CDATA[",
        "<a>",
        "<a href='",
        "&",
        "&amp;",
        "&#",
        "\\",
        "|",
        "|a\n",
        "|-",
        "a|b\n-|-\n",
        "> ",
        "> a\n",
        "- ",
        "- a\n",
        "1. a\n",
        "  - a\n",
        "\t",
        "# ",
        "# a\n",
        "a\n=\n",
        "a\n-\n",
        "---\n",
        "```\n",
        "~~~\n",
        "    a\n",
        "$$",
        "$a",
        "{#a}",
        "# {",
        "http://a ",
        "www.a",
        "a@b.c ",
        ":::",
        "!",
        "![a](b",
        "[a](<b",
        "[a](b 'c",
        "[a](((",
        "*_*_",
        "**_**_",
        "<div>\n",
        "<script>\n",
        "\u{a0}",
        "é",
        "。",
        "e\u{301}",
        "\u{301}",
        "a",
        "a ",
        "a\n\n",
        "\n",
        " \n",
        "- [ ] ",
    ] {
        repeats("markdown", &read, unit);
        grows("markdown after text", MEGABYTE, &read, &|size| format!("x {}", unit.repeat(size / unit.len())));
    }
    // Opened and closed, and one after the other.
    for (open, close) in
        [("[", "]"), ("*", "*"), ("`", "`"), ("<", ">"), ("(", ")"), ("![", "](a)"), ("> ", "\n"), ("**", "**a")]
    {
        grows("markdown in pairs", MEGABYTE, &read, &|size| {
            let times = size / (open.len() + close.len());
            format!("a {}b{}", open.repeat(times), close.repeat(times))
        });
    }
    // Many lines against one long one.
    for (first, line) in
        [("[a]: /", "[a]\n"), ("# ", "# a\n"), ("|a", "|b\n"), ("---\ntitle: ", "\n---\n# b\n"), ("[^a]: ", "[^a] ")]
    {
        grows("markdown of a long line", MEGABYTE, &read, &|size| {
            format!("{first}{}\n{}", "x".repeat(size / 2), line.repeat(size / 2 / line.len()))
        });
    }
    // A table of many columns and many rows.
    grows("a wide table", MEGABYTE, &read, &|size| {
        format!("{}|\n{}|\n{}", "|a".repeat(size / 8), "|-".repeat(size / 8), "|b\n".repeat(size / 6))
    });
    grows("runs of backticks", MEGABYTE, &read, &|size| {
        (1..)
            .map(|n| format!("{} ", "`".repeat(n)))
            .scan(0, |sum, run| {
                *sum += run.len();
                (*sum < size).then_some(run)
            })
            .collect()
    });
}

#[test]
fn front_matter() {
    let read = reader(SourceKind::Markdown, "a.md");
    for (begin, unit, end) in [
        ("a: ", "[", ""),
        ("a: ", "{", ""),
        ("a: ", "[a, ", ""),
        ("a: ", "x ", ""),
        ("", "a: b\n", ""),
        ("a:\n", "- b\n", ""),
        ("", "? ", ""),
        ("a: ", "!a ", ""),
        ("a: ", "&a ", ""),
        ("a: '", "''", "'"),
        ("a: \"", "\\n", "\""),
        ("a: |\n", "  b\n", ""),
        ("", "#\n", ""),
        ("a: &b c\nd: [", "*b, ", "]"),
    ] {
        grows("front matter of YAML", MEGABYTE, &read, &|size| {
            format!("---\n{begin}{}{end}\n---\nx\n", unit.repeat(size / unit.len()))
        });
    }
    for (begin, unit, end) in
        [("a = ", "[", ""), ("", "a.", "a = 1"), ("a = [", "1, ", "]"), ("", "[[a]]\n", ""), ("[", "a.", "a]")]
    {
        grows("front matter of TOML", MEGABYTE, &read, &|size| {
            format!("+++\n{begin}{}{end}\n+++\nx\n", unit.repeat(size / unit.len()))
        });
    }
    grows("different keys", MEGABYTE, &read, &|size| {
        format!("---\n{}---\nx\n", (0..size / 10).map(|n| format!("k{n}: v\n")).collect::<String>())
    });
}

#[test]
fn pages() {
    for kind in [SourceKind::Html, SourceKind::Article] {
        let read = reader(kind, "a.html");
        for unit in [
            "<p>",
            "<p>a",
            "<b>",
            "<b>a",
            "<a href=b>",
            "<a href=#>",
            "<a href=#>a</a>",
            "<li>a",
            "<ul><li>",
            "<table>",
            "<tr>",
            "<td>",
            "<td>a",
            "<table><tr><td>",
            "<div>",
            "</div>",
            "<div>a",
            "<div class=a>",
            "<h1>",
            "<h1>a",
            "<pre>",
            "<code>",
            "<code>`",
            "<sup><a href=#>1",
            "<sup>",
            "<q>",
            "<svg>",
            "<math>",
            "<select>",
            "<form>",
            "<button>",
            "<p><button>",
            "<b><p>",
            "<font>",
            "<x-y>",
            "<br>",
            "<hr>",
            "<img alt=a>",
            "<title>a",
            "<script>",
            "<style>",
            "<!--",
            "<!--a-->",
            "<![CDATA[",
            "<",
            "</",
            "<a ",
            "<a b",
            "<a b=",
            "&",
            "&amp",
            "&#1",
            "\0",
            "|",
            "*",
            "`",
            "[",
            "]",
            "\\",
            "a",
            " ",
            "\n",
            "a, ",
            "<td rowspan=9>",
            "<blockquote>",
            "<dl><dt>",
            "<dd>",
            "<details>",
            "<time datetime=2024-01-01>",
            "<meta name=a content=b>",
            "<link rel=canonical href=a>",
            "<base href=a>",
            "<main>",
            "<article>",
            "<header>",
        ] {
            repeats("page", &read, unit);
        }
        let prose = "<p>Some words of a paragraph, long enough, with commas, to be taken for prose by who looks.</p>";
        grows("times beside paragraphs", MEGABYTE, &read, &|size| {
            let times = "<time>".repeat(size / 2 / 6);
            format!("<nav>{times}</nav><div>{}</div>", prose.repeat(size / 2 / prose.len()))
        });
        grows("a long class around code", MEGABYTE, &read, &|size| {
            format!("<div class='{}'>{}</div>", "a ".repeat((size / 16).min(8000)), "<pre>a</pre>".repeat(size / 12))
        });
        grows("different names", MEGABYTE, &read, &|size| (0..size / 9).map(|n| format!("<t{n}>")).collect());
        grows("different attributes", MEGABYTE, &read, &|size| {
            format!("<p {}>x", (0..size / 9).map(|n| format!("a{n}=b ")).collect::<String>())
        });
        grows("a wide table", MEGABYTE, &read, &|size| {
            format!("<table><tr>{}{}</table>", "<td>a".repeat(size / 10), "<tr><td>b".repeat(size / 18))
        });
        grows("a long title", MEGABYTE, &read, &|size| {
            format!("<title>{}</title>{}", "a ".repeat(size / 4), "<h2>b</h2>c".repeat(size / 22))
        });
    }
}

#[test]
fn configuration() {
    let units: &[&str] = &[
        "[",
        "]",
        "{",
        "}",
        "[a]\n",
        "[[a]]\n",
        "a=1\n",
        "a: 1\n",
        "a: ",
        "- ",
        "- a\n",
        "? ",
        "a.",
        "\"",
        "'",
        "\\",
        "#",
        "#\n",
        ";\n",
        ",",
        "[1,",
        "{a: ",
        "{\"a\":",
        "/*",
        "//",
        "&a ",
        "*a ",
        "!a ",
        "!!a",
        "---\n",
        "...\n",
        "|\n",
        "|\n a\n",
        ">\n a\n",
        "a\\\n",
        "a:\n ",
        "%a\n",
        "\"\"\"",
        "'''",
        "a = [",
        "a = {",
        "a = \"\"\"\n",
        "{{",
        "{% a %}\n",
        "\t",
        " ",
        "\n",
        "a",
        "a ",
        "a\n",
        "<<: *a\n",
        "0x",
        "1e",
        "1979-05-27\n",
        "é",
        "[a.b]\nc=1\n",
        "a.b.c = 1\n",
    ];
    for name in ["a.yaml", "a.toml", "a.json", "a.ini", "a.properties", "a"] {
        let read = reader(SourceKind::Config, name);
        for unit in units {
            repeats(name, &read, unit);
        }
        // A long name above many values.
        for (name_of, value) in [("[", "k = 1\n"), ("[a", "k = 1\n"), ("a: ", "b: c\n"), ("{\"", "\", \"a\": 1")] {
            grows("a long name", MEGABYTE, &read, &|size| {
                let close = if name_of.starts_with('[') { "x]\n" } else { "x\n" };
                format!("{name_of}{}{close}{}", "a.".repeat(size / 4), value.repeat(size / 2 / value.len()))
            });
        }
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{a: ", "}"), ("[1, ", "]")] {
            grows("nested", MEGABYTE, &read, &|size| {
                let times = size / (open.len() + close.len());
                format!("{}1{}", open.repeat(times), close.repeat(times))
            });
        }
        grows("different keys", MEGABYTE, &read, &|size| (0..size / 12).map(|n| format!("k{n} = v\n")).collect());
        grows("steps", MEGABYTE, &read, &|size| {
            (0..)
                .map(|n| format!("{}a:\n", " ".repeat(n)))
                .scan(0, |sum, line| {
                    *sum += line.len();
                    (*sum < size).then_some(line)
                })
                .collect()
        });
    }
}
