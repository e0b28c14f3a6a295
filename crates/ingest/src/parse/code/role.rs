// SPDX-License-Identifier: PostgreSQL

//! What code is for: implementation, test, configuration or documentation.
//!
//! The rule is small, so that one can foresee it, and the first that holds decides. Configuration: names that build tools
//! read. Test: a folder or name that test runners look for, or a file that describes tests. Documentation: a folder of
//! docs or examples. Else implementation. A symbol that is a test by its attribute is a test wherever it stands.

use super::grammar::Grammar;
use super::language::Language;

const CONFIGURATION: &[&str] = &[
    "setup.py",
    "conf.py",
    "noxfile.py",
    "settings.py",
    "build.rs",
    "rakefile",
    "gemfile",
    "vagrantfile",
    "guardfile",
    "podfile",
    "fastfile",
    "brewfile",
    "gulpfile.js",
    "gruntfile.js",
    "jakefile",
    "sconstruct",
    "sconscript",
    "wscript",
    "pkgbuild",
    "apkbuild",
];

const TEST_FOLDERS: &[&str] =
    &["test", "tests", "__tests__", "spec", "specs", "testing", "testdata", "e2e", "fixtures", "__mocks__"];

const DOCUMENTATION_FOLDERS: &[&str] = &["doc", "docs", "example", "examples", "samples"];

/// The role of a file.
pub fn of_file(path: &str, language: Language, text: &str) -> &'static str {
    let lower = path.to_lowercase();
    let mut folders: Vec<&str> = lower.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    // Of a name with capitals, where they separate words.
    let cased = path.rsplit('/').next().unwrap_or_default();
    if is_configuration(name) {
        "configuration"
    } else if folders.iter().any(|folder| TEST_FOLDERS.contains(folder))
        || is_test(name, cased)
        || describes(language, text)
    {
        "test"
    } else if folders.iter().any(|folder| DOCUMENTATION_FOLDERS.contains(folder)) {
        "documentation"
    } else {
        "implementation"
    }
}

fn is_configuration(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    CONFIGURATION.contains(&name)
        || name.ends_with(".gemspec")
        || stem.ends_with(".config")
        || stem.ends_with(".conf")
        || (stem.starts_with('.') && stem.ends_with("rc"))
}

fn is_test(name: &str, cased: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let cased = cased.split('.').next().unwrap_or_default();
    matches!(stem, "test" | "tests" | "conftest" | "spec")
        || stem.starts_with("test_")
        || [".test.", ".tests.", ".spec.", ".bats"].iter().any(|part| name.contains(part))
        || ["_test", "_tests", "_spec", "-test", "-spec"].iter().any(|end| stem.ends_with(end))
        || ["Test", "Tests", "TestCase", "Spec"].iter().any(|end| cased.len() > end.len() && cased.ends_with(end))
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
    attributes.any(test).then_some("test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_then_content() {
        for (path, text, role) in [
            ("src/lib.rs", "", "implementation"),
            ("tests/a.rs", "", "test"),
            ("src/tests.py", "", "test"),
            ("src/test_a.py", "", "test"),
            ("src/latest.py", "", "implementation"),
            ("src/a.test.ts", "", "test"),
            ("src/FooTest.java", "", "test"),
            ("src/Contest.java", "", "implementation"),
            ("pkg/a_test.go", "", "test"),
            ("docs/conf.py", "", "configuration"),
            ("webpack.config.js", "", "configuration"),
            ("docs/a.py", "", "documentation"),
            ("a.js", "import x from 'y';\ndescribe('x', () => {});\n", "test"),
            ("a.py", "describe(1)\n", "implementation"),
            ("Rakefile", "", "configuration"),
        ] {
            let language = Language::of_name(path).unwrap_or(Language::Python);
            assert_eq!(of_file(path, language, text), role, "{path}");
        }
    }
}
