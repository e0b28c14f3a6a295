// SPDX-License-Identifier: PostgreSQL

//! Where text is cut, case by case; tokens are words and marks.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

mod invariants;

use invariants::{check, options, parse};
use rag_core::document::{Chunk, Document};
use rag_core::source::{Chunking, SourceKind};
use rag_core::tokens::WordCounter;

fn with(text: &str, chunking: Chunking, chunk_tokens: u32, window: usize) -> Document {
    let options = options(SourceKind::Markdown, chunking, chunk_tokens);
    let counter = WordCounter { window };
    let document = parse(SourceKind::Markdown, &options, text.as_bytes(), &counter);
    check(&document, &options, &counter, 0);
    document
}

fn heading(text: &str, chunk_tokens: u32) -> Vec<Chunk> {
    with(text, Chunking::Heading, chunk_tokens, 512).chunks
}

fn contents(chunks: &[Chunk]) -> Vec<&str> {
    chunks.iter().map(|c| c.content.as_str()).collect()
}

fn words(prefix: &str, count: usize) -> String {
    (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn sections_are_not_mixed_and_bare_headings_go_with_their_subsection() {
    let chunks = heading("intro\n\n# A\n\n## B\n\n### C\n\nc\n\n## D\n\nd\n\n### E\n\n# F\n", 100);
    assert_eq!(contents(&chunks), ["intro", "# A\n\n## B\n\n### C\n\nc", "## D\n\nd", "### E", "# F"]);
    let paths: Vec<String> = chunks.iter().map(|c| c.heading_path.join("/")).collect();
    assert_eq!(paths, ["", "A/B/C", "A/D", "A/D/E", "F"]);
    assert_eq!((chunks[1].span.line_start, chunks[1].span.line_end), (3, 9));
}

#[test]
fn skipped_levels_and_setext_headings() {
    let chunks = heading("Top\n===\n\na\n\n#### Deep\n\nb\n\nMid\n---\n\nc\n", 100);
    let paths: Vec<String> = chunks.iter().map(|c| c.heading_path.join("/")).collect();
    assert_eq!(paths, ["Top", "Top/Deep", "Top/Mid"]);
}

#[test]
fn a_heading_is_not_left_alone() {
    let text = format!("# H\n\n{}. {}.\n", words("A", 20), words("B", 20));
    let chunks = heading(&text, 44);
    assert_eq!(chunks.len(), 1, "all 44 tokens fit");
    let chunks = heading(&text, 43);
    assert_eq!(chunks[0].content, format!("# H\n\n{}.", words("A", 20)));
    // The paragraph alone would fit, but then the heading would be a chunk of its own.
    assert_eq!(chunks[1].content, format!("{}.", words("B", 20)));
}

#[test]
fn a_list_is_whole_where_it_fits_and_else_cut_between_items() {
    let list = "- one two three four five\n- six seven eight nine ten\n- a b c d e f\n";
    let text = format!("{}\n\n{list}", words("w", 10));
    assert_eq!(contents(&heading(&text, 22)), [words("w", 10).as_str(), list.trim_end()]);
    let chunks = heading(list, 16);
    assert_eq!(contents(&chunks), ["- one two three four five\n- six seven eight nine ten", "- a b c d e f"]);
    let nested = "- top of it all\n  - one two three four five\n  - six seven eight nine ten\n";
    let chunks = heading(nested, 16);
    assert_eq!(contents(&chunks), ["- top of it all", "  - one two three four five\n  - six seven eight nine ten"]);
}

#[test]
fn a_quote_is_cut_between_its_paragraphs() {
    let chunks =
        heading("> one two three four five six seven\n>\n> eight nine ten eleven twelve thirteen fourteen\n", 16);
    assert_eq!(
        contents(&chunks),
        ["> one two three four five six seven\n>", "> eight nine ten eleven twelve thirteen fourteen"]
    );
}

#[test]
fn code_is_cut_between_lines_and_says_its_language() {
    let text = "# H\n\n```rust\nfn a() {\n    b;\n}\n\nfn c() {\n    d;\n}\n```\n\nend\n";
    let chunks = heading(text, 22);
    assert_eq!(contents(&chunks), ["# H\n\n```rust\nfn a() {\n    b;\n}", "fn c() {\n    d;\n}\n```\n\nend"]);
    assert_eq!((chunks[0].context.as_deref(), chunks[1].context.as_deref()), (None, Some("```rust")));
    let plain = heading("```\na b c d e f g h i j\nk l m n o p q r s\n```\n", 16);
    assert_eq!(contents(&plain), ["```\na b c d e f g h i j", "k l m n o p q r s\n```"]);
    assert_eq!(plain[1].context, None);
}

#[test]
fn a_table_is_cut_between_rows_and_repeats_its_header() {
    let text = "| a | b |\n|---|---|\n| c | d |\n| e | f |\n| g | h |\n";
    let chunks = heading(text, 20);
    assert_eq!(contents(&chunks), ["| a | b |\n|---|---|\n| c | d |", "| e | f |\n| g | h |"]);
    assert_eq!(chunks[1].context.as_deref(), Some("| a | b |\n|---|---|"));
}

#[test]
fn a_context_that_does_not_fit_is_left_out_and_said_so() {
    let header = format!("| {} | b |\n|---|---|\n", words("h", 40));
    let text = format!("{header}{}", format!("| {} | x |\n", words("c", 20)).repeat(4));
    let chunks = with(&text, Chunking::Heading, 60, 64).chunks;
    assert!(chunks.len() >= 3);
    let last = chunks.last().expect("chunks");
    assert_eq!((last.context.as_deref(), last.metadata.get("context_cut")), (None, Some(&true.into())));
}

#[test]
fn headings_that_do_not_fit_are_kept_true_and_said_to_be_cut() {
    let text = format!("# {}\n\n{}\n", words("h", 40), words("w", 100));
    let document = with(&text, Chunking::Heading, 200, 64);
    for chunk in &document.chunks {
        assert_eq!(chunk.heading_path, [words("h", 40)]);
        assert_eq!(chunk.metadata.get("embed_prefix_cut"), Some(&true.into()));
    }
    assert_eq!(document.chunks.len(), 3, "141 tokens in pieces of up to 64");
}

#[test]
fn prose_is_cut_at_sentences_and_hand_wrapped_lines_are_none() {
    let text = "One two three\nfour five. Six seven\neight nine ten. Eleven twelve.\n";
    let chunks = with(text, Chunking::Recursive, 16, 512).chunks;
    assert_eq!(contents(&chunks), ["One two three\nfour five. Six seven\neight nine ten. Eleven twelve."]);
    let twice = format!("{text}{text}");
    let chunks = with(&twice, Chunking::Recursive, 16, 512).chunks;
    assert_eq!(chunks.len(), 2);
    let cjk = "今日は良い天気です。明日も晴れるでしょう！本当に？はい。";
    let chunks = with(cjk, Chunking::Heading, 16, 512).chunks;
    assert_eq!(contents(&chunks), ["今日は良い天気です。", "明日も晴れるでしょう！本当に？", "はい。"]);
}

#[test]
fn a_long_log_is_cut_at_lines() {
    let text: String = (0..40).map(|i| format!("line {i} of a log without a full stop\n")).collect();
    let chunks = with(&text, Chunking::Recursive, 40, 512).chunks;
    assert!(chunks.iter().all(|c| c.content.starts_with("line ") && c.content.ends_with("stop")));
}

#[test]
fn graphemes_stay_whole() {
    let family = "👩‍👩‍👧‍👦";
    let chunks = with(&family.repeat(100), Chunking::Recursive, 16, 512).chunks;
    assert!(chunks.len() > 10);
    assert!(chunks.iter().all(|c| c.content.replace(family, "").is_empty()));
}

#[test]
fn overlap_begins_at_a_sentence_or_word() {
    let mut options = options(SourceKind::Text, Chunking::Recursive, 16);
    options.overlap = 6;
    let counter = WordCounter { window: 512 };
    let text = "A b c d. E f g. H i j k l. M n o. P q r s t u. V w x.";
    let document = parse(SourceKind::Text, &options, text.as_bytes(), &counter);
    check(&document, &options, &counter, 0);
    assert_eq!(
        contents(&document.chunks),
        ["A b c d. E f g.", "E f g. H i j k l. M n o.", "M n o. P q r s t u.", "q r s t u. V w x."]
    );
    let text = "a b c d. e f g. h i j k l. m n o. p q r s t u. v w x.";
    let document = parse(SourceKind::Text, &options, text.as_bytes(), &counter);
    // No capital, no sentence (UAX #29): words decide, and the overlap does not begin with a full stop.
    assert_eq!(contents(&document.chunks)[..2], ["a b c d. e f g. h", "e f g. h i j k l. m n o. p"]);
    let text = words("w", 40);
    let document = parse(SourceKind::Text, &options, text.as_bytes(), &counter);
    assert!(document.chunks[1].content.starts_with("w4 "), "{:?}", contents(&document.chunks));
}

#[test]
fn not_cut_at_all() {
    let text = format!("\n# A\n\n{}\n\n# B\n\nb\n\n", words("w", 50));
    let one = with(&text, Chunking::None, 16, 512);
    assert_eq!(contents(&one.chunks), [text.trim()]);
    assert!(one.chunks[0].heading_path.is_empty());
    let cut = with(&text, Chunking::None, 16, 40);
    // The heading is a paragraph here, and all the window holds beside the title "A" is 37.
    assert_eq!(cut.chunks.iter().map(|c| c.token_count).collect::<Vec<_>>(), [2, 37, 16]);
    let mut options = options(SourceKind::Markdown, Chunking::None, 16);
    options.truncate = true;
    let kept = parse(SourceKind::Markdown, &options, text.as_bytes(), &WordCounter { window: 40 });
    assert_eq!(contents(&kept.chunks), [text.trim()]);
    assert_eq!(kept.chunks[0].token_count, 55);
}

#[test]
fn front_matter_is_in_no_chunk() {
    let text = "---\ntitle: T\nlang: en\n---\n# H\n\nbody\n";
    let document = {
        let options = options(SourceKind::Markdown, Chunking::Heading, 100);
        let counter = WordCounter { window: 512 };
        let document = parse(SourceKind::Markdown, &options, text.as_bytes(), &counter);
        check(&document, &options, &counter, text.find("# H").expect("there"));
        document
    };
    assert_eq!((document.title.as_deref(), document.language.as_deref()), (Some("T"), Some("en")));
    assert_eq!((document.chunks[0].span.line_start, document.chunks[0].span.line_end), (5, 7));
}

#[test]
fn link_definitions_and_footnotes_are_found() {
    let chunks = heading("a [x] b[^1]\n\n[x]: /url \"t\"\n\n[^1]: note\n\n[y]: /last\n", 100);
    assert_eq!(contents(&chunks), ["a [x] b[^1]\n\n[x]: /url \"t\"\n\n[^1]: note\n\n[y]: /last"]);
}
