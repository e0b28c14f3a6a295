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

/// The text of a query that matches all lexemes of any of these; `None` when one of them has none, and all match.
pub fn any_of_all<S: AsRef<str>>(groups: &[Vec<S>]) -> Option<String> {
    let all = |lexemes: &Vec<S>| {
        let quoted: Vec<String> = lexemes.iter().map(|l| quote(l.as_ref())).collect();
        (!quoted.is_empty()).then(|| format!("({})", quoted.join(" & ")))
    };
    let groups: Option<Vec<String>> = groups.iter().map(all).collect();
    groups.filter(|groups| !groups.is_empty()).map(|groups| groups.join(" | "))
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

    #[test]
    fn a_group_without_lexemes_matches_all() {
        let groups = |groups: &[&[&str]]| any_of_all(&groups.iter().map(|g| g.to_vec()).collect::<Vec<_>>());
        assert_eq!(groups(&[&["a", "b"], &["it's"]]).as_deref(), Some("('a' & 'b') | ('it''s')"));
        assert_eq!(groups(&[&["a"], &[]]), None);
        assert_eq!(groups(&[]), None);
    }
}
