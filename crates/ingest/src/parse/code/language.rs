// SPDX-License-Identifier: PostgreSQL

//! Programming languages: their names, and which one a file is written in.
//!
//! Owns the table of names and the order of evidence: the extension, then well-known names without one, then the
//! interpreter of the first line. One extension says too little: a `.h` file is C++ when a line of it begins as no line
//! of C does, else C. Knows nothing of grammars: [`super::grammar`] does.

use std::fmt;

/// A programming language that can be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// Python and its stubs.
    Python,
    /// TypeScript without JSX.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    /// JavaScript, JSX included.
    JavaScript,
    /// Go.
    Go,
    /// Java.
    Java,
    /// C.
    C,
    /// C++.
    Cpp,
    /// C#.
    CSharp,
    /// Ruby.
    Ruby,
    /// PHP, with the HTML around it.
    Php,
    /// Bash and other shells of its family.
    Bash,
    /// SQL.
    Sql,
}

/// What is known of a language without parsing.
struct Known {
    language: Language,
    name: &'static str,
    media_type: &'static str,
    extensions: &'static [&'static str],
    /// Names of files without a telling extension.
    files: &'static [&'static str],
    interpreters: &'static [&'static str],
}

const fn known(
    language: Language,
    (name, media_type): (&'static str, &'static str),
    extensions: &'static [&'static str],
    files: &'static [&'static str],
    interpreters: &'static [&'static str],
) -> Known {
    Known { language, name, media_type, extensions, files, interpreters }
}

use Language::{Bash, C, CSharp, Cpp, Go, Java, JavaScript, Php, Python, Ruby, Rust, Sql, Tsx, TypeScript};

/// In the order of the enumeration.
const KNOWN: &[Known] = &[
    known(Rust, ("rust", "text/x-rust"), &["rs"], &[], &["rust-script"]),
    known(
        Python,
        ("python", "text/x-python"),
        &["py", "pyi", "pyw"],
        &["SConstruct", "SConscript", "wscript"],
        &["python", "python2", "python3", "pypy", "pypy3"],
    ),
    known(TypeScript, ("typescript", "text/x-typescript"), &["ts", "mts", "cts"], &[], &["deno", "ts-node", "tsx"]),
    known(Tsx, ("tsx", "text/x-tsx"), &["tsx"], &[], &[]),
    known(
        JavaScript,
        ("javascript", "text/javascript"),
        &["js", "mjs", "cjs", "jsx"],
        &["Jakefile"],
        &["node", "nodejs", "bun"],
    ),
    known(Go, ("go", "text/x-go"), &["go"], &[], &[]),
    known(Java, ("java", "text/x-java"), &["java"], &[], &[]),
    known(C, ("c", "text/x-c"), &["c", "h"], &[], &[]),
    known(
        Cpp,
        ("cpp", "text/x-c++"),
        &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "h++", "ipp", "inl", "tcc", "cu", "cuh"],
        &[],
        &[],
    ),
    known(CSharp, ("csharp", "text/x-csharp"), &["cs", "csx"], &[], &["dotnet-script"]),
    known(
        Ruby,
        ("ruby", "text/x-ruby"),
        &["rb", "rake", "gemspec", "ru", "rbw"],
        &["Rakefile", "Gemfile", "Vagrantfile", "Guardfile", "Podfile", "Fastfile", "Brewfile"],
        &["ruby", "jruby"],
    ),
    known(Php, ("php", "text/x-php"), &["php", "phtml", "php5", "php7", "inc"], &[], &["php"]),
    known(
        Bash,
        ("bash", "text/x-shellscript"),
        &["sh", "bash", "bats", "ksh", "zsh"],
        &["PKGBUILD", "APKBUILD"],
        &["sh", "bash", "dash", "ash", "ksh", "zsh", "bats"],
    ),
    known(Sql, ("sql", "application/sql"), &["sql", "ddl", "dml", "pgsql", "psql", "plpgsql"], &[], &[]),
];

/// Beginnings of lines that only C++ has.
const CPP_LINES: &[&str] =
    &["class ", "namespace ", "template<", "template <", "using ", "public:", "private:", "protected:", "constexpr "];

/// Bytes in which the dialect of a header is looked for.
const LOOK: usize = 64 << 10;

impl Language {
    /// The language that a path promises.
    pub fn of_name(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        if let Some(known) = KNOWN.iter().find(|known| known.files.contains(&name)) {
            return Some(known.language);
        }
        let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
        let known = KNOWN.iter().find(|known| known.extensions.contains(&extension.as_str()))?;
        Some(known.language)
    }

    /// The language of the interpreter that a first line asks for.
    pub fn of_shebang(text: &str) -> Option<Self> {
        let line = text.strip_prefix("#!")?.lines().next()?;
        let mut words = line.split_whitespace();
        let mut program = words.next()?.rsplit('/').next()?;
        if program == "env" {
            program = words.find(|word| !word.starts_with('-') && !word.contains('='))?.rsplit('/').next()?;
        }
        // `python3.12` is `python3`.
        let program = program.split_once('.').map_or(program, |(name, _)| name);
        KNOWN.iter().find(|known| known.interpreters.contains(&program)).map(|known| known.language)
    }

    /// The language of a text at a path.
    pub fn of(path: &str, text: &str) -> Option<Self> {
        let named = Self::of_name(path).or_else(|| Self::of_shebang(text))?;
        let header = path.len() > 2
            && path.is_char_boundary(path.len() - 2)
            && path[path.len() - 2..].eq_ignore_ascii_case(".h");
        Some(if named == Self::C && header && looks_like_cpp(text) { Self::Cpp } else { named })
    }

    /// Its name as filters and provenance say it.
    pub fn name(self) -> &'static str {
        self.known().name
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        self.known().media_type
    }

    fn known(self) -> &'static Known {
        &KNOWN[self as usize]
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn looks_like_cpp(text: &str) -> bool {
    let head = &text[..text.floor_char_boundary(LOOK)];
    head.lines().any(|line| {
        let line = line.trim_start();
        CPP_LINES.iter().any(|start| line.starts_with(start))
            || (line.contains("std::") && !line.starts_with(['/', '*']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        for (index, known) in KNOWN.iter().enumerate() {
            assert_eq!(known.language as usize, index, "{}", known.name);
        }
    }

    #[test]
    fn extension_then_name_then_shebang() {
        for (path, text, language) in [
            ("src/a.rs", "", Some(Rust)),
            ("a.PY", "", Some(Python)),
            ("a/Rakefile", "", Some(Ruby)),
            ("run", "#!/usr/bin/env -S python3.12 -u\n", Some(Python)),
            ("run", "#!/bin/bash -e\n", Some(Bash)),
            ("run", "#!/usr/bin/env X=1 node\n", Some(JavaScript)),
            ("run.sh", "#!/usr/bin/python\n", Some(Bash)),
            ("run", "#!/usr/bin/awk\n", None),
            ("run", "#!", None),
            ("a.txt", "fn main() {}", None),
            ("a.h", "int f(void);\n", Some(C)),
            ("a.H", "namespace x {\n}\n", Some(Cpp)),
            ("a.h", "/* std::vector is not used */\nstruct a;\n", Some(C)),
            ("a.h", "std::vector<int> f();\n", Some(Cpp)),
            ("a.c", "class x", Some(C)),
            ("é", "", None),
        ] {
            assert_eq!(Language::of(path, text), language, "{path} {text}");
        }
    }
}
