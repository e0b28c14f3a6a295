// SPDX-License-Identifier: PostgreSQL

//! The time of reading transcripts, posts, records and feeds grows with their size; see [`linear`].
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;
mod linear;

use linear::{MEGABYTE, grows, reader, repeats};
use rag_core::source::{SourceKind, SourceOptions, SourceSpec};

#[test]
fn transcripts() {
    let read = reader(SourceKind::Transcript, "a.srt");
    let cue = "00:00:01,000 --> 00:00:02,000\n";
    for begin in ["", "WEBVTT\n\n", "1\n00:00:01,000 --> 00:00:02,000\n", "WEBVTT\n\n00:01.000 --> 00:02.000\n"] {
        for unit in [
            "1\n",
            "a\n",
            "\n",
            "-->",
            "-->\n",
            "a-->\n",
            "1\na-->\n",
            cue,
            "<",
            "<v ",
            "<v a>",
            "<v a>b",
            "<i>",
            "</",
            "{\\",
            "{\\a}",
            "[a]:",
            ">> a: ",
            "&",
            "&amp;",
            "00:",
            "[",
            "]:",
            "NOTE\n\n",
            "00:00:01.000 --> 00:00:02.000\n<v a>b\n\n",
            "1\n00:00:01,000 --> 00:00:02,000\na\n\n",
        ] {
            grows("cues", MEGABYTE, &read, &|size| format!("{begin}{}", unit.repeat(size / unit.len())));
        }
    }
    // A long identity, which the cues without a begin after it share.
    grows("a long number", MEGABYTE, &read, &|size| {
        format!("{}\n{cue}a\n\n{}", "1".repeat(size / 2), "1\nx-->\na\n\n".repeat(size / 22))
    });
    grows("a long identity of many voices", MEGABYTE, &read, &|size| {
        format!("WEBVTT\n\n{}\n00:01.000 --> 00:02.000\n{}", "i".repeat(size / 2), "<v a>b".repeat(size / 12))
    });
    grows("a long name of many turns", MEGABYTE, &read, &|size| {
        let turns = "{\"speaker\":1,\"text\":\"a\"},{\"speaker\":2,\"text\":\"b\"},".repeat(size / 2 / 50);
        format!("{{\"speakers\":{{\"1\":\"{}\"}},\"segments\":[{turns}\"c\"]}}", "n".repeat(size / 2))
    });
    grows("a long identity of segments", MEGABYTE, &read, &|size| {
        let rest = "{\"text\":\"a\"},".repeat(size / 2 / 13);
        format!("[{{\"start\":1,\"id\":\"{}\",\"text\":\"a\"}},{rest}\"c\"]", "n".repeat(size / 2))
    });
}

#[test]
fn records() {
    let long = |size: usize| "n ".repeat(size / 4);
    for kind in [SourceKind::Forum, SourceKind::Issues, SourceKind::Jsonl, SourceKind::Transcript] {
        let read = reader(kind, "a.json");
        for unit in ["[", "{", "{\"a\":", "\"", "\\", "1", "[1,", ",", " ", "{\"text\":\"a\"}\n"] {
            repeats("record", &read, unit);
        }
        grows("different fields", MEGABYTE, &read, &|size| {
            format!("{{\"text\":\"a\"{}}}", (0..size / 10).map(|n| format!(",\"k{n}\":1")).collect::<String>())
        });
        grows("a text of HTML", MEGABYTE, &read, &|size| {
            format!("{{\"title\":\"t\",\"body\":\"<p>{}\"}}", "<p>a".repeat(size / 4))
        });
    }
    let posts = |name: &str, size: usize| format!("\"{name}\":[{}\"c\"]", "\"a\",".repeat(size / 8));
    let forum = reader(SourceKind::Forum, "a.json");
    grows("a long title", MEGABYTE, &forum, &|size| {
        format!("{{\"title\":\"{}\",\"question\":\"q\",{}}}", long(size), posts("answers", size.min(300_000)))
    });
    grows("a long question", MEGABYTE, &forum, &|size| {
        format!("{{\"question\":\"{}\",{}}}", long(size), posts("answers", size.min(300_000)))
    });
    for field in ["url", "author", "id"] {
        grows(field, MEGABYTE, &forum, &|size| {
            format!(
                "{{\"question\":{{\"text\":\"{}\",\"{field}\":\"{}\"}},\"answers\":[]}}",
                "a b ".repeat(size / 8),
                "n".repeat(size / 2)
            )
        });
    }
    grows("a long number", MEGABYTE, &forum, &|size| {
        format!(
            "{{\"question\":{{\"text\":\"{}\",\"votes\":{}}},\"answers\":[]}}",
            "a b ".repeat(size / 8),
            "1".repeat(size / 2)
        )
    });
    let issues = reader(SourceKind::Issues, "a.json");
    grows("a long name of an attachment", MEGABYTE, &issues, &|size| {
        format!(
            "{{\"title\":\"t\",\"attachments\":[{{\"name\":\"{}\",\"text\":\"{}\"}}]}}",
            "n".repeat(size / 2),
            "a b ".repeat(size / 8)
        )
    });
    grows("a long title of many comments", MEGABYTE, &issues, &|size| {
        format!("{{\"title\":\"{}\",{}}}", long(size), posts("comments", size.min(300_000)))
    });
}

#[test]
fn files_of_records() {
    let dir = tempfile::tempdir().expect("a folder");
    let read = |name: &'static str| {
        let path = dir.path().join(name);
        let spec = SourceSpec {
            kind: SourceKind::Jsonl,
            location: path.to_str().expect("UTF-8").to_owned(),
            options: SourceOptions::defaults(SourceKind::Jsonl),
            allowed_paths: vec![dir.path().to_str().expect("UTF-8").to_owned()],
            allowed_hosts: Vec::new(),
            seen: None,
        };
        move |text: &str| {
            std::fs::write(&path, text).expect("a file");
            let _either = rag_ingest::list(&spec, &mut |_, _| Ok(()));
        }
    };
    for (name, units) in [
        ("a.jsonl", &["\n", "{}\n", "{\"text\":1}\n", "[", "{", "\"", " "][..]),
        ("a.json", &["[", "[1,", "[{},", "{\"items\":[", "[\"", "[\"\\\"", "[ "][..]),
        ("a.csv", &["a\n", "a,", "\"", "\"\n", "\"a\"\"", ",\n", "\n", "a\r"][..]),
        ("a.tsv", &["a\t", "\t\n", "\""][..]),
    ] {
        let read = read(name);
        for unit in units {
            grows(name, MEGABYTE / 4, &read, &|size| unit.repeat(size / unit.len()));
            grows(name, MEGABYTE / 4, &read, &|size| format!("text\n{}", unit.repeat(size / unit.len())));
        }
    }
}

#[test]
fn feeds() {
    let dir = tempfile::tempdir().expect("a folder");
    let read = |name: &'static str| {
        let path = dir.path().join(name);
        let spec = SourceSpec {
            kind: SourceKind::Blog,
            location: path.to_str().expect("UTF-8").to_owned(),
            options: SourceOptions::defaults(SourceKind::Blog),
            allowed_paths: vec![dir.path().to_str().expect("UTF-8").to_owned()],
            allowed_hosts: Vec::new(),
            seen: None,
        };
        move |text: &str| {
            std::fs::write(&path, text).expect("a file");
            let mut items = Vec::new();
            let listed = rag_ingest::list(&spec, &mut |more, _| {
                items.extend(more);
                Ok(())
            });
            let read = |item| rag_ingest::read(&spec, item, &linear::COUNTER);
            let _either = (listed, items.iter().map(read).filter(Result::is_ok).count());
        }
    };
    let xml = read("a.xml");
    for begin in
        ["<rss version='2.0'><channel>", "<feed xmlns='http://www.w3.org/2005/Atom'>", "<RDF><item><link>a</link>"]
    {
        for unit in [
            "<item>",
            "<item/>",
            "<item><guid>1</guid></item>",
            "<entry/>",
            "<entry><id>1</id><link href='a'/></entry>",
            "<title>a</title>",
            "<author>",
            "<author>a@b.cc\u{e9}</author>",
            "<author><name>a</name></author>",
            "<link href='a'/>",
            "<category term='a'/>",
            "<a xmlns='b'/>",
            "<a xml:base='b'/>",
            "<a b='c' d='e'/>",
            "&a;",
            "&#1;",
            "&lt;",
            "<!-- -->",
            "<![CDATA[a]]>",
            "<?a?>",
            "a@",
            "@\u{e9}",
        ] {
            grows("a feed in XML", MEGABYTE / 4, &xml, &|size| format!("{begin}{}", unit.repeat(size / unit.len())));
        }
    }
    let many =
        |size: usize, what: &str| (0..size / what.len()).map(|n| what.replace('#', &n.to_string())).collect::<String>();
    let channel = |size: usize, inside: &str| {
        format!(
            "<rss version='2.0'><channel>{inside}{}</channel></rss>",
            many(size, "<item><guid>#</guid><title>t</title></item>")
        )
    };
    grows("posts", MEGABYTE / 4, &xml, &|size| channel(size, ""));
    grows("a long title of many posts", MEGABYTE / 4, &xml, &|size| {
        channel(size / 2, &format!("<title>{}</title>", "n ".repeat(size / 4)))
    });
    grows("a long name in an author", MEGABYTE / 4, &xml, &|size| {
        channel(10, &format!("<item><author>{}</author></item>", "a@b.cc\u{e9}".repeat(size / 8)))
    });
    let json = read("a.json");
    let feed = |about: &str, items: &str| {
        format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"title\":\"t\"{about},\"items\":[{items}{{}}]}}")
    };
    for unit in ["{},", "{\"id\":\"1\"},", "{\"id\":1},", "{\"tags\":[\"a\"]},", "[", "{\"items\":"] {
        grows("a feed in JSON", MEGABYTE / 4, &json, &|size| feed("", &unit.repeat(size / unit.len())));
    }
    grows("a long author of many posts", MEGABYTE / 4, &json, &|size| {
        let about = format!(",\"authors\":[{{\"name\":\"{}\"}}]", "n".repeat(size / 2));
        feed(&about, &many(size / 2, "{\"id\":\"#\"},"))
    });
}
