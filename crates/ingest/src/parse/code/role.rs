// SPDX-License-Identifier: PostgreSQL

//! What code is for, as far as it says so itself: by how its tests are written. What its path says, [`path`] knows.

use super::grammar::Grammar;
use super::language::Language;
use crate::parse::role as path;

/// The role of a file: what its path says, or its text, or else implementation.
pub fn of_file(path: &str, language: Language, text: &str) -> &'static str {
    path::of_code(path, || describes(language, text))
}

/// Whether a file of JavaScript or Ruby begins lines as its test runners are told.
fn describes(language: Language, text: &str) -> bool {
    let starts: &[&str] = match language {
        Language::JavaScript | Language::TypeScript | Language::Tsx => &["describe(", "describe.", "test(", "it("],
        Language::Ruby => &["describe ", "RSpec.describe "],
        _ => return false,
    };
    text.lines().any(|line| starts.iter().any(|start| line.starts_with(start)))
}

/// The role of a symbol that says by an attribute what it is for; `lead` is what stands before it.
pub fn of_symbol(grammar: &Grammar, lead: &str) -> Option<&'static str> {
    if !grammar.attributes.contains(&"attribute_item") {
        return None;
    }
    let mut attributes = lead.lines().map(str::trim_start).filter(|line| line.starts_with("#["));
    let test = |line: &str| line.starts_with("#[test]") || line.starts_with("#[cfg(test)]") || line.contains("::test]");
    attributes.any(test).then_some(path::TEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_then_content() {
        for (path, text, role) in [
            ("a.js", "import x from 'y';\ndescribe('x', () => {});\n", "test"),
            ("docs/a.js", "describe('x', () => {});\n", "test"),
            ("a.config.js", "describe('x', () => {});\n", "configuration"),
            ("a.py", "describe(1)\n", "implementation"),
            ("a.rb", "RSpec.describe 'x' do\nend\n", "test"),
        ] {
            let language = Language::of_name(path).expect("a language");
            assert_eq!(of_file(path, language, text), role, "{path}");
        }
    }
}
