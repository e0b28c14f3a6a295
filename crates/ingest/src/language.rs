// SPDX-License-Identifier: PostgreSQL

//! In which language a text is written.
//!
//! Owns when that is known: by `whatlang` (scripts, then trigrams), from the beginning of the text, if it is sure. A wrong
//! stemmer loses words and none loses only their forms, so what is doubtful has no language. What it is used for, and that
//! a document's own word goes first, is the caller's.

use whatlang::Detector;

/// Bytes of the beginning that are looked at; more of it makes nothing surer.
const SAMPLE: usize = 16 << 10;

/// Letters below which a text is too short to tell.
const FEW: usize = 40;

/// The ISO 639-3 code of a text's language, if it can be told.
pub fn detect(text: &str) -> Option<&'static str> {
    let words = prose(&text[..text.floor_char_boundary(SAMPLE)]);
    if words.chars().filter(|c| c.is_alphabetic()).take(FEW).count() < FEW {
        return None;
    }
    Detector::new().detect(&words).filter(whatlang::Info::is_reliable).map(|found| found.lang().code())
}

/// The words of a text; not its addresses, names of files and identifiers, which are of no language, nor what stands in
/// fences (Markdown), which is code.
fn prose(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        for word in line.split_whitespace().filter(|word| !fenced && is_plain(word)) {
            words.push_str(word);
            words.push(' ');
        }
    }
    words
}

/// Whether a word is nothing but letters, with punctuation around it and hyphens or apostrophes inside.
fn is_plain(word: &str) -> bool {
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
    let inside = |c: char| c.is_alphabetic() || !c.is_ascii() || matches!(c, '-' | '\'');
    !inner.is_empty() && inner.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn languages_are_told_apart() {
        for (text, right) in [
            ("Der Hafen liegt am Fluss, und die Schiffe warten dort auf die Flut, bevor sie auslaufen.", Some("deu")),
            ("Le port est au bord du fleuve, et les bateaux y attendent la marée avant de partir.", Some("fra")),
            ("The harbour lies by the river, and the ships wait there for the tide before they leave.", Some("eng")),
            (
                "港は川のそばにあり、船は出港する前にそこで満潮を待っています。とても静かな朝でした。船長は窓の外を見ています。",
                Some("jpn"),
            ),
            (
                "Россия является крупнейшим государством мира, и её территория занимает большую часть восточной Европы и северной \
                 Азии. Население страны составляет более ста сорока миллионов человек. Столица называется Москвой, а официальным \
                 языком является русский.",
                Some("rus"),
            ),
            ("Der Hafen", None),
            ("a1 b2 c3 foo_bar src/main.rs https://a.example/der/die/das x = y + 1;", None),
            ("", None),
        ] {
            assert_eq!(detect(text), right, "{text}");
        }
    }

    #[test]
    fn code_in_a_text_has_no_say() {
        let text = "Der Hafen liegt am Fluss, und die Schiffe warten dort auf die Flut.\n```sh\nthe of and is that with for\n```\n";
        assert_eq!(detect(text), Some("deu"));
        assert_eq!(detect(&format!("```\n{}\n```", "the ships are of the river and wait ".repeat(9))), None);
    }

    proptest! {
        #[test]
        fn any_text_may_come(text in "\\PC{0,200}", many in 1..200usize) {
            let _ = detect(&text.repeat(many));
        }
    }
}
