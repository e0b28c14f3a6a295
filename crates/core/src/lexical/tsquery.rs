// SPDX-License-Identifier: PostgreSQL

//! Writing a `tsquery` in its text form.
//!
//! Lexemes come out of dictionaries and may hold anything; they are quoted here, once, so that no lexeme can become an
//! operator.

/// The text of a query that matches any of `lexemes`; `None` when there are none.
pub fn any_of<S: AsRef<str>>(lexemes: &[S]) -> Option<String> {
    if lexemes.is_empty() {
        return None;
    }
    let quoted: Vec<String> = lexemes.iter().map(|l| quote(l.as_ref())).collect();
    Some(quoted.join(" | "))
}

/// A lexeme as the input functions of `tsquery` and `tsvector` read it.
pub(super) fn quote(lexeme: &str) -> String {
    format!("'{}'", lexeme.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lexemes_are_quoted() {
        assert_eq!(any_of(&["cat", "it's", "a\\b", "x | y"]).as_deref(), Some("'cat' | 'it''s' | 'a\\\\b' | 'x | y'"));
        assert_eq!(any_of::<&str>(&[]), None);
    }
}
