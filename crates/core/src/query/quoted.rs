// SPDX-License-Identifier: PostgreSQL

//! Quotes in a query.
//!
//! Owns the syntax that setting `phrase` switches on: what stands between two `"` is a phrase, whatever it is, and there is no
//! escape. Typographic quotes are punctuation. What a phrase means is [`crate::lexical::phrase`]'s.

use crate::error::{Error, Result};
use crate::lexical::phrase::Words;

/// A query taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quoted {
    /// All of it, with a space for each quote: what passages are ranked by.
    pub text: String,
    /// What stands outside of quotes, with a space for each phrase.
    pub loose: String,
    /// The phrases, each once.
    pub phrases: Vec<String>,
}

/// Reads a query with quotes. One that is not closed, or that has no word in it, is an invalid argument.
pub fn read(query: &str) -> Result<Quoted> {
    if let Some(open) = query.rfind('"').filter(|_| query.matches('"').count() % 2 == 1) {
        return Err(Error::invalid(format!("quote is not closed in query: {}", &query[open..]))
            .with_hint("Close the phrase with a quote, or search without setting \"phrase\"."));
    }
    let mut quoted = Quoted { text: query.replace('"', " "), ..Quoted::default() };
    for (at, part) in query.split('"').enumerate() {
        if at % 2 == 0 {
            quoted.loose.push_str(if at > 0 { " " } else { "" });
            quoted.loose.push_str(part);
        } else if Words::of(part).is_empty() {
            return Err(Error::invalid(format!("phrase \"{part}\" has no words"))
                .with_hint("Write words between the quotes, or search without setting \"phrase\"."));
        } else if !quoted.phrases.iter().any(|phrase| phrase == part) {
            quoted.phrases.push(part.to_owned());
        }
    }
    Ok(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_stands_between_quotes_is_a_phrase() {
        let quoted = read("a \"b c\"d \"e\" \"b c\"").expect("valid");
        assert_eq!(quoted.text, "a  b c d  e   b c ");
        assert_eq!(quoted.loose, "a  d    ");
        assert_eq!(quoted.phrases, ["b c", "e"]);
        let plain = read("a b").expect("valid");
        assert_eq!((plain.text.as_str(), plain.loose.as_str(), plain.phrases.len()), ("a b", "a b", 0));
    }

    #[test]
    fn a_query_ends_in_a_space_when_it_ends_in_a_phrase() {
        assert!(read("a \"b\"").expect("valid").loose.ends_with(' '));
    }

    #[test]
    fn nonsense_is_refused_with_a_hint() {
        for (query, message) in [
            ("a \"b c", "quote is not closed in query: \"b c"),
            ("\"a\" b\"", "quote is not closed in query: \""),
            ("a \"\"", "phrase \"\" has no words"),
            ("\" ,\" a", "phrase \" ,\" has no words"),
        ] {
            let error = read(query).expect_err("nonsense");
            assert_eq!(error.message, message);
            assert!(error.hint.is_some(), "{query}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost(query in "[ab \"]{0,12}") {
            if let Ok(quoted) = read(&query) {
                prop_assert_eq!(&quoted.text, &query.replace('"', " "));
                prop_assert_eq!(query.contains('"'), !quoted.phrases.is_empty());
            }
        }
    }
}
