// SPDX-License-Identifier: PostgreSQL

//! Content roles: what a document is there for, as far as its path says.
//!
//! The words for roles are these here and those of the parsers that see more than a path. The rules are small, so that one can
//! foresee them, and the first that holds decides. Code: configuration by names that build tools read; test by a
//! folder or name that test runners look for, or by a text that describes tests; documentation by a folder of docs or examples;
//! else implementation. A text has a role only among files of every sort, and none when its path says none: a folder of
//! notes is not a tree of code, and an unknown role is never held against a document.

/// What programs and build tools read.
pub const CONFIGURATION: &str = "configuration";
/// What explains.
pub const DOCUMENTATION: &str = "documentation";
/// What does the work.
pub const IMPLEMENTATION: &str = "implementation";
/// What people said or reported.
pub const EVIDENCE: &str = "evidence";
/// What is about the document: rights, imprint.
pub const METADATA: &str = "metadata";
/// What helps to find a place: contents, index.
pub const NAVIGATION: &str = "navigation";
/// What is there to look things up: a glossary.
pub const REFERENCE: &str = "reference";
/// Tests, and what they read.
pub const TEST: &str = "test";

const CONFIGURATION_NAMES: &[&str] = &[
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
    "makefile",
    "gnumakefile",
    "cmakelists.txt",
    "dockerfile",
    "containerfile",
    "justfile",
    "procfile",
    "jenkinsfile",
    "requirements.txt",
    "constraints.txt",
    "go.mod",
];

const TEST_FOLDERS: &[&str] =
    &["test", "tests", "__tests__", "spec", "specs", "testing", "testdata", "e2e", "fixtures", "__mocks__"];

const DOCUMENTATION_FOLDERS: &[&str] = &["doc", "docs", "documentation", "example", "examples", "samples"];

/// Folders of tests in which texts are what tests read; a specification or a guide to testing is none.
const TEXT_TEST_FOLDERS: &[&str] = &["test", "tests", "__tests__", "testdata", "e2e", "fixtures", "__mocks__"];

/// Beginnings of names, up to a dot, a hyphen or an underscore, and whole names, up to a dot, of what a project says of itself.
const DOCUMENTATION_NAMES: &[&str] = &["readme", "changelog"];
const DOCUMENTATION_WHOLE: &[&str] = &["changes", "history", "news", "contributing", "install", "upgrading"];

/// The same of what is about the rights, as such pages of a PDF are.
const RIGHTS_NAMES: &[&str] = &["license", "licence", "copying"];
const RIGHTS_WHOLE: &[&str] = &["notice", "copyright"];

/// Folders and name of a path, in lower case.
fn parts(lower: &str) -> (Vec<&str>, &str) {
    let mut folders: Vec<&str> = lower.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    (folders, name)
}

/// The role of a file of code; `tests` looks whether its text describes tests.
pub fn of_code(path: &str, tests: impl FnOnce() -> bool) -> &'static str {
    let lower = path.to_lowercase();
    let (folders, name) = parts(&lower);
    // Of a name with capitals, where they separate words.
    let cased = path.rsplit('/').next().unwrap_or_default();
    if is_configuration(name) {
        CONFIGURATION
    } else if folders.iter().any(|folder| TEST_FOLDERS.contains(folder)) || is_test(name, cased) || tests() {
        TEST
    } else if folders.iter().any(|folder| DOCUMENTATION_FOLDERS.contains(folder)) {
        DOCUMENTATION
    } else {
        IMPLEMENTATION
    }
}

/// The role of a text, a page or a book among files of every sort, if its path says one.
///
/// The outermost folder that says something decides: a guide in `docs/testing` is documentation, a page in `tests/docs` is what
/// tests read.
pub fn of_text(path: &str) -> Option<&'static str> {
    let lower = path.to_lowercase();
    let (folders, name) = parts(&lower);
    if is_configuration(name) {
        return Some(CONFIGURATION);
    }
    let of_folder = |folder: &&str| match *folder {
        folder if TEXT_TEST_FOLDERS.contains(&folder) => Some(TEST),
        folder if DOCUMENTATION_FOLDERS.contains(&folder) => Some(DOCUMENTATION),
        _ => None,
    };
    let whole = name.split('.').next().unwrap_or_default();
    let begins = whole.split(['-', '_']).next().unwrap_or_default();
    folders.iter().find_map(of_folder).or_else(|| {
        if DOCUMENTATION_NAMES.contains(&begins) || DOCUMENTATION_WHOLE.contains(&whole) {
            Some(DOCUMENTATION)
        } else {
            (RIGHTS_NAMES.contains(&begins) || RIGHTS_WHOLE.contains(&whole)).then_some(METADATA)
        }
    })
}

fn is_configuration(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    CONFIGURATION_NAMES.contains(&name)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_by_its_path() {
        for (path, role) in [
            ("src/lib.rs", "implementation"),
            ("tests/a.rs", "test"),
            ("src/tests.py", "test"),
            ("src/test_a.py", "test"),
            ("src/latest.py", "implementation"),
            ("src/a.test.ts", "test"),
            ("src/FooTest.java", "test"),
            ("src/Contest.java", "implementation"),
            ("pkg/a_test.go", "test"),
            ("docs/conf.py", "configuration"),
            ("webpack.config.js", "configuration"),
            ("docs/a.py", "documentation"),
            ("Rakefile", "configuration"),
        ] {
            assert_eq!(of_code(path, || false), role, "{path}");
        }
    }

    #[test]
    fn text_by_its_path() {
        for (path, role) in [
            ("README", Some("documentation")),
            ("README.de.md", Some("documentation")),
            ("pkg/ReadMe-EN.rst", Some("documentation")),
            ("CHANGELOG.md", Some("documentation")),
            ("kiosk-1.2/CHANGES.rst", Some("documentation")),
            ("changes-in-tides.md", None),
            ("docs/tides.md", Some("documentation")),
            ("doc/index.html", Some("documentation")),
            ("docs/testing/guide.md", Some("documentation")),
            ("tests/docs/page.md", Some("test")),
            ("tests/README.md", Some("test")),
            ("crates/a/tests/fixtures/page.html", Some("test")),
            ("specs/protocol.md", None),
            ("testing/strategy.md", None),
            ("inner.zip!/docs/a.txt", Some("documentation")),
            ("LICENSE", Some("metadata")),
            ("LICENSE-MIT", Some("metadata")),
            ("COPYING.LESSER", Some("metadata")),
            ("licensed.md", None),
            ("NOTICE.txt", Some("metadata")),
            ("notice-board.md", None),
            ("Makefile", Some("configuration")),
            ("sub/CMakeLists.txt", Some("configuration")),
            ("notes/contest.md", None),
            ("src/notes.md", None),
            ("", None),
        ] {
            assert_eq!(of_text(path), role, "{path}");
        }
    }
}
