// SPDX-License-Identifier: PostgreSQL

//! Whatever a text is named by, whole or in part, finds it.
#![allow(clippy::expect_used, reason = "a test may end anywhere")]

use proptest::prelude::*;
use rag_core::Result;
use rag_core::lexical::tokens::{Analysis, Lexer, MAX_TOKEN_BYTES, analyse, analyse_all, normalise};
use rag_core::lexical::tsvector::{self, Lexeme};
use std::collections::{BTreeMap, BTreeSet};

/// A stand-in for the configuration "english": words of letters and digits in lower case, without a plural s; like
/// PostgreSQL's parser it takes a path for one word and a hyphen before a digit for a sign.
struct Plain;

impl Lexer for Plain {
    fn lexemes(&self, texts: &[&str]) -> Result<Vec<Vec<Lexeme>>> {
        Ok(texts.iter().map(|text| lexemes(text)).collect())
    }
}

fn lexemes(text: &str) -> Vec<Lexeme> {
    let mut found: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    let mut last = 0;
    for token in text.split_whitespace().map(|t| t.trim_matches(|c: char| !c.is_alphanumeric())) {
        let is_file = token.contains('/') && token.chars().all(|c| c.is_ascii_alphanumeric() || "/._".contains(c));
        let words: Vec<&str> =
            if is_file { vec![token] } else { token.split(|c: char| !c.is_alphanumeric()).collect() };
        for word in words {
            let word = word.to_lowercase();
            let stem = word.strip_suffix('s').filter(|s| s.len() > 2).unwrap_or(&word);
            if !stem.is_empty() {
                last += 1;
                if !["the", "of", "is"].contains(&stem) {
                    found.entry(stem.to_owned()).or_default().push(last);
                }
            }
        }
    }
    found.into_iter().collect()
}

fn analysed(text: &str) -> Analysis {
    analyse(text, &Plain).expect("the stand-in never fails")
}

fn terms(text: &str) -> BTreeSet<String> {
    analysed(text).terms.into_iter().map(|(term, _)| term).collect()
}

/// Every name and the queries that must find it, from what developers type.
const NAMES: [(&str, &[&str]); 21] = [
    ("HybridRetriever", &["HybridRetriever", "hybridretriever", "hybrid", "retrievers"]),
    ("rrf_k", &["rrf_k", "RRF_K", "rrf", "k"]),
    ("std::io::Read", &["std::io::Read", "std::io::read", "std", "io", "read"]),
    ("v0.8.6", &["v0.8.6", "V0.8.6", "0.8.6", "v0"]),
    ("ERR_CONN_RESET", &["ERR_CONN_RESET", "err_conn_reset", "conn", "reset"]),
    ("C++", &["C++", "c++", "c"]),
    ("C#", &["C#", "c#", "c"]),
    ("CVE-2024-1234", &["CVE-2024-1234", "cve-2024-1234", "cve", "2024", "1234"]),
    ("src/store/sync.rs", &["src/store/sync.rs", "SRC/store/sync.rs", "sync.rs", "store", "sync", "rs"]),
    ("foo.bar.baz()", &["foo.bar.baz()", "foo.bar.baz", "bar", "baz"]),
    ("UTF-8", &["UTF-8", "utf-8", "utf", "8"]),
    ("x86_64", &["x86_64", "X86_64", "x86", "64"]),
    ("node_modules", &["node_modules", "node", "module"]),
    ("HTTPServer", &["HTTPServer", "httpserver", "http", "server"]),
    ("a/b/HybridRetriever.py:12", &["HybridRetriever", "HybridRetriever.py", "retriever", "py"]),
    ("検索エンジン", &["検索エンジン", "検索", "検", "エンジン", "ジン"]),
    ("전문검색", &["전문검색", "검색", "검"]),
    ("HTML解析器", &["HTML解析器", "html", "解析"]),
    ("ＨＴＴＰＳｅｒｖｅｒ", &["HTTPServer", "server"]),
    ("İstanbul_kodu", &["İstanbul_kodu", "İSTANBUL_KODU", "kodu"]),
    ("ΟΔΟΣ_ς", &["οδος_ς", "ΟΔΟΣ_Σ"]),
];

#[test]
fn names_are_found_whole_and_by_their_parts() {
    for (name, queries) in NAMES {
        for text in [name.to_owned(), format!("See {name}, please."), format!("({name})\n`{name}`")] {
            let content = terms(&text);
            for query in queries {
                let query_terms = terms(query);
                assert!(!query_terms.is_disjoint(&content), "\"{query}\" {query_terms:?} in \"{text}\" {content:?}");
            }
        }
    }
}

#[test]
fn a_whole_name_is_a_term_that_its_words_do_not_have() {
    for (name, words) in [("rrf_k", "rrf k"), ("C++", "c"), ("CVE-2024-1234", "cve 2024 1234"), ("漢字", "漢 字")] {
        let difference: Vec<String> = terms(name).difference(&terms(words)).cloned().collect();
        assert_eq!(difference, [name.to_lowercase()], "{name}");
    }
}

#[test]
fn prose_is_the_configuration_alone() {
    let text = "The retrievers of NASA's URLs, (HTTP) naïve; 3.14 is well. 😀 👩‍💻 Über — ﬁnally";
    assert_eq!(analysed(text).terms, lexemes(&normalise(text)));
    // And what it keeps of a name is not repeated.
    assert_eq!(
        analysed("store/sync and store/sync").terms,
        [("and", vec![2]), ("store", vec![5, 7]), ("store/sync", vec![1, 3]), ("sync", vec![5, 7])]
            .map(|(t, positions)| (t.to_owned(), positions))
    );
    assert_eq!(analysed("漢").terms, [("漢".to_owned(), vec![1])]);
}

#[test]
fn texts_beside_it_change_nothing() {
    let texts: Vec<&str> =
        NAMES.iter().map(|n| n.0).chain(["", "rrf_k and HybridRetriever", "HybridRetriever"]).collect();
    let all = analyse_all(&texts, &Plain).expect("the stand-in never fails");
    assert_eq!(all, texts.iter().map(|text| analysed(text)).collect::<Vec<_>>());
}

#[test]
fn a_huge_text_is_read_to_the_limits_of_a_vector() {
    let words: Vec<String> = (0..100_000).map(|i| format!("word{i}x")).collect();
    for text in [words.join(" "), "漢字".repeat(100_000), "a_b/".repeat(80_000), "x".repeat(300_000)] {
        let analysis = analysed(&text);
        let size: usize = analysis.terms.iter().map(|(t, p)| tsvector::size(t, p)).sum();
        assert!(size <= tsvector::MAX_BYTES && analysis.terms.len() < 100_000, "{size}");
    }
}

#[test]
fn the_dotless_i_is_its_own_letter() {
    assert!(terms("ılık_su").contains("ılık_su"));
    assert!(terms("ılık_su").is_disjoint(&terms("ilik")));
    assert!(terms("ID_I").contains("id_i"));
}

#[test]
fn soft_hyphens_are_not_there() {
    assert_eq!(terms("Hybrid\u{ad}Retriever"), terms("HybridRetriever"));
}

#[test]
fn long_names_are_left_out_and_their_parts_stay() {
    let path = vec!["folder"; 60].join("/");
    let content = terms(&format!("{path}/file_name"));
    assert!(content.contains("file_name") && content.contains("folder"));
    // The configuration sees no underscores in what is that long.
    let own: BTreeSet<String> = lexemes(&format!("{path}/file name")).into_iter().map(|l| l.0).collect();
    assert!(content.difference(&own).all(|t| t.len() <= MAX_TOKEN_BYTES));
    // A base64 blob or a digest has no parts.
    let blob = "aB3xK9".repeat(300);
    assert_eq!(analysed(&blob).terms.len(), 1);
}

/// Text that is likely to be joined in strange ways.
fn strange() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z0-9]{1,8}",
        "[_./:#+-]{1,3}",
        "[ \n]",
        "[A-Z][a-z]{1,4}[A-Z]{1,3}",
        "[漢字かなカナ한글ー]{1,4}",
        "[\u{300}\u{301}ßİıςΣ\u{fb01}\u{ff21}\u{ad}\u{200d}😀]",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_text_finds_itself_and_analysis_repeats(text in strange()) {
        let first = analysed(&text);
        prop_assert_eq!(&first, &analysed(&text));
        prop_assert_eq!(first.dl as usize, first.terms.iter().map(|t| t.1.len()).sum::<usize>());
        prop_assert!(first.terms.windows(2).all(|t| t[0].0 < t[1].0));
        // Normalised text is analysed as it is.
        prop_assert_eq!(first, analysed(&normalise(&text)));
    }

    #[test]
    fn every_name_in_a_text_finds_it(
        names in proptest::collection::vec(
            prop_oneof![
                "[A-Z]{0,3}[a-z]{1,5}([A-Z][a-z]{1,5}){0,2}[0-9]{0,3}",
                "[a-z]{1,4}([_./-][a-zA-Z0-9]{1,4}){1,4}(\\+\\+|#)?",
                "[a-z]{1,4}(::[a-zA-Z]{1,5}){1,3}",
                "[漢字かなカナ한글]{1,6}",
                "v?[0-9]{1,2}(\\.[0-9]{1,3}){1,3}",
            ],
            1..6,
        ),
    ) {
        let content = terms(&names.join(", "));
        for name in &names {
            let whole = terms(name);
            prop_assert!(whole.is_subset(&content), "\"{}\" {:?} in {:?}", name, whole, content);
            // The parts at each kind of separator, and what remains when the first or last is left out.
            for separator in ["::", "/", ".", "-", "_"] {
                let only_kind = ["::", "/", ".", "-", "_"].iter().filter(|s| name.contains(**s)).count() == 1;
                for part in name.split(separator).filter(|_| only_kind) {
                    let part_terms = terms(part);
                    prop_assert!(part_terms.is_subset(&content), "\"{}\" of \"{}\" in {:?}", part, name, content);
                }
            }
        }
    }

    #[test]
    fn the_result_is_linear_in_the_text(text in strange(), times in 1..40usize) {
        let text = text.repeat(times);
        let size: usize = analysed(&text).terms.iter().map(|(t, p)| t.len() * p.len()).sum();
        let own: usize = lexemes(&normalise(&text)).iter().map(|(t, p)| t.len() * p.len()).sum();
        // Six levels, or three bytes of grams for each byte, and lower case that may take more bytes.
        prop_assert!(size <= own + 12 * normalise(&text).len(), "{} bytes from {}", size, text.len());
    }
}
