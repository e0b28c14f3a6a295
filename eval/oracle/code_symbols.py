#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Compares the symbols of source trees with those of universal-ctags.

    eval/oracle/code_symbols.py [--program FILE] [--output eval/results/code-symbols.md] [FOLDER…]

After `cargo build --release -p rag_ingest --example code_symbols`.

Trees: this repository, and one package each of PyPI, npm and the Rust registry, got with pip, npm and cargo; or the folders given. A symbol of
ours and a tag are the same when they have the same name (without its containers) and the tag's line is among the symbol's. What is no
symbol by design is in RULES and is counted apart, with an example. Every other difference is listed with its cause, which is not
believed but tried: FAULTS says how to mend a copy of the file, and ctags must find the symbol there. Prints a line of TAP for each check: that no
character is lost, that a tree agrees by 98 %, that every difference has a cause; "# SKIP" for a tree that cannot be had. Exit status 1
when a check fails.
"""

import argparse
import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict

ROOT = pathlib.Path(__file__).resolve().parents[2]
WANTED = 0.98

# Kinds of tags that are symbols, by the language of ctags.
KINDS = {
    "Rust": {"function", "method", "struct", "enum", "interface", "implementation", "module", "macro", "typedef"},
    "Python": {"class", "function", "member"},
    "JavaScript": {"class", "function", "generator", "method", "getter", "setter"},
    "TypeScript": {"class", "function", "generator", "method", "interface", "enum", "namespace", "alias"},
    "Sh": {"function"},
    "SQL": {"function", "procedure", "table", "view", "index", "type", "trigger", "schema", "domain"},
    "C": {"function", "struct", "union", "enum", "typedef", "macro"},
    "C++": {"function", "struct", "union", "enum", "typedef", "macro", "class", "namespace"},
    "Go": {"func", "struct", "interface", "type", "talias", "methodSpec"},
    "Java": {"class", "interface", "enum", "method", "annotation"},
    "Ruby": {"class", "module", "method", "singletonMethod"},
    "PHP": {"class", "interface", "trait", "function", "namespace"},
    "C#": {"class", "interface", "struct", "enum", "method", "namespace"},
}
# Kinds of tags that a documented constant may be, or a function that is assigned.
VALUES = {"variable", "constant", "property", "macro", "field", "const", "var"}

RULES = {
    "local": "what is defined inside of a function is part of that function; ctags lists it on its own",
    "declared": "`mod name;` of Rust mentions another file; ctags lists it as a module",
    "constant": "documented `const` of Rust and read-only variables of a shell: this ctags has no kind for them",
    "imported": "ctags takes names that TypeScript imports with `type` for type aliases; nothing is defined there",
    "assigned": "ctags takes `name=()` of a shell, an empty array, for a function",
    "unknown": "statements of SQL that create what this ctags has no kind for (a schema, a role, a policy, an extension)",
    "signature": "constructors of TypeScript that are declared without a body; ctags lists those with one",
    "bodiless": "defined behind a TypeScript function that is declared without a body, after which ctags misses the next; "
                "it does not in a copy with empty bodies",
    "literal": "ctags takes an object of JavaScript that is assigned to a variable for a class",
    "unnamed": "implementations of Rust for a type without a name (a slice, a tuple), which ctags calls by the last name in it",
}
UNNAMED = re.compile(r"^impl\b.*\bfor\s+&?(?:'\w+\s+)?(?:mut\s+)?[\[(]")


# Comments and literals of Rust, by its reference.
RUST_LITERAL = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | \b(?:br|cr|r)(?P<hashes>\#*)".*?"(?P=hashes)
      | (?:\b[bc])?"(?:\\.|[^"\\])*"
      | (?:\bb)?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'""", re.VERBOSE | re.DOTALL)


def without_last_backslash(text):
    """Rust with the backslashes of those literals blank that end with one."""
    def mended(found):
        literal = found[0]
        ends = not found["comment"] and literal.rstrip("#")[:-1].endswith("\\")
        return literal.replace("\\", " ") if ends else literal
    return RUST_LITERAL.sub(mended, text)


def replaced(pattern, by):
    return lambda text: re.sub(pattern, by, text, flags=re.IGNORECASE)


# Where ctags misses symbols: the language, what it stumbles over, and how a copy of the file does without it, line by line.
FAULTS = (
    ("rust", "a literal before it ends with a backslash, which ctags takes to escape the quote behind", without_last_backslash),
    ("sql", "`CREATE SCHEMA IF NOT EXISTS` stands before it; ctags lists nothing behind", replaced(r"\b(CREATE SCHEMA) IF NOT EXISTS\b", r"\1")),
    ("sql", "`SET name = value` of a function; ctags stops at the sign", replaced(r"(\bSET\s+\w+\s*)=", r"\1 TO ")),
    ("sql", "`BEGIN;` of a transaction stands before it, which ctags takes for that of a function", replaced(r"\bBEGIN;", "")),
    ("sql", "a trigger that executes a function; ctags lists those with statements", replaced(r"\bEXECUTE (FUNCTION|PROCEDURE)\b[^;]*;", "BEGIN NULL; END;")),
)
WITH_BODIES = replaced(r"(\bdeclare function [^;{]*);", r"\1 {}")


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def reason(error):
    """Why a program failed, in one line."""
    said = (getattr(error, "stderr", None) or "").strip().splitlines()
    return said[-1] if said else f"{type(error).__name__}: {error}"


def trees(into):
    """Name of every tree, and what gets its folder."""
    yield "this repository", lambda: ROOT
    yield "itsdangerous 2.2.0 (PyPI)", lambda: pypi(into)
    yield "ky 1.14.3 (npm)", lambda: npm(into)
    yield "hexyl 0.17.0 (Rust)", lambda: cargo(into)


def unpacked(archive, into):
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    return next(path for path in into.iterdir() if path.is_dir())


def pypi(into, package="itsdangerous==2.2.0"):
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "-d")
    into = into / package.split("=")[0]
    run(*pip, into, package)
    return unpacked(next(into.glob("*.tar.gz")), into)


def npm(into):
    (into / "npm").mkdir()
    run("npm", "pack", "ky@1.14.3", cwd=into / "npm")
    return unpacked(next((into / "npm").glob("*.tgz")), into / "npm")


def cargo(into):
    package = into / "cargo"
    (package / "src").mkdir(parents=True)
    (package / "src" / "lib.rs").write_text("")
    lines = ['[package]', 'name = "fetch"', 'version = "0.0.0"', '[dependencies]', 'hexyl = "=0.17.0"', '[workspace]']
    (package / "Cargo.toml").write_text("\n".join(lines))
    run("cargo", "vendor", "vendor", cwd=package)
    return package / "vendor" / "hexyl"


def our_symbols(program, folder):
    """Files, and symbols with the lines of all their chunks."""
    files, symbols = {}, {}
    for line in run(program, "symbols", str(folder)).splitlines():
        record = json.loads(line)
        path = record.get("file") or record["path"]
        # Fixtures are written to be odd.
        if "fixtures/" in path:
            continue
        if "file" in record:
            files[path] = record
            continue
        key = (path, record["symbol"], record["kind"])
        symbol = symbols.setdefault(key, {**record, "ranges": [], "found": False})
        symbol["ranges"].append((record["from"], record["to"]))
    return files, list(symbols.values())


def ctags(folder, paths):
    command = ("ctags", "--output-format=json", "--fields=+nKzZlS", "--sort=no", "-L", "-", "-f", "-")
    out = run(*command, input="\n".join(paths) + "\n", cwd=folder)
    return [tag for tag in map(json.loads, out.splitlines()) if tag.get("_type") == "tag"]


def last_name(symbol):
    # The type of a Rust implementation may be in brackets; a name in brackets is one of JavaScript.
    symbol = symbol.rpartition("]::")[2]
    return symbol if symbol.startswith(("[", "operator")) else re.split(r"::|[.#\\]", symbol)[-1]


class Sources:
    """Lines of a tree."""

    def __init__(self, folder):
        self.folder, self.files = pathlib.Path(folder), {}

    def lines(self, path):
        if path not in self.files:
            self.files[path] = (self.folder / path).read_text(errors="replace").split("\n")
        return self.files[path]

    def line(self, path, number):
        return self.lines(path)[number - 1]


def definition(symbol, sources):
    """Number and text of the line that defines a symbol: the first that is no comment and has its name.

    A symbol of ours begins with its doc comment, which may hold code that names it.
    """
    first, last = symbol["ranges"][0]
    lines = [sources.line(symbol["path"], number) for number in range(first, last + 1)]
    # What stands in a comment goes, its line ends stay, so that lines keep their numbers.
    if symbol["language"] != "sql":
        without = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), "\n".join(lines), flags=re.DOTALL)
        lines = without.split("\n")
    lines = [(first + at, line.strip()) for at, line in enumerate(lines)]
    code = [(at, line) for at, line in lines if line and not line.startswith(("//", "--", "#"))] or lines
    named = re.compile(rf"(?<!\w){re.escape(last_name(symbol['symbol']))}(?!\w)")
    return next(((at, line) for at, line in code if named.search(line)), code[0])


FUNCTIONS = {"function", "method", "member", "generator", "getter", "setter", "func"}


def rule_for(tag, sources, functions):
    """The rule by which a tag is no symbol, judged by the source alone."""
    line, name, scope = sources.line(tag["path"], tag["line"]), re.escape(tag["name"]), tag.get("scope", "")
    parts = re.split(r"::|\.", scope)
    inside = [part for part in parts if (tag["path"], part) in functions]
    if tag.get("scopeKind") in FUNCTIONS or inside:
        return "local"
    if tag["language"] == "Rust" and tag["kind"] == "module" and re.search(rf"\bmod\s+{name}\s*;", line):
        return "declared"
    if tag["language"] == "TypeScript" and tag["kind"] == "alias" and line.startswith("import "):
        return "imported"
    if tag["language"] == "Sh" and re.search(r"\w=\(", line):
        return "assigned"
    if tag["language"] == "JavaScript" and tag["kind"] == "class" and re.search(rf"\b{name} = \{{", line):
        return "literal"
    if tag["language"] == "Rust" and tag["kind"] == "implementation" and UNNAMED.match(line.strip()):
        return "unnamed"
    return None


def symbol_rule(symbol, line, sources):
    """The rule by which a symbol has no tag, judged by the source, and by ctags itself where it loses its place."""
    name, language, kind = re.escape(last_name(symbol["symbol"])), symbol["language"], symbol["kind"]
    constant = {"rust": rf"\bconst\s+{name}\b", "bash": rf"\b(readonly|declare|typeset)\b.*\b{name}="}.get(language)
    if kind == "constant" and constant and re.search(constant, line):
        return "constant"
    if language == "sql" and kind not in ctags_kinds("SQL") and re.match(rf"create\b.*\b{kind}\b", line, re.IGNORECASE):
        return "unknown"
    if language == "rust" and UNNAMED.match(line):
        return "unnamed"
    if language == "typescript" and re.match(r"constructor\(.*\);", line):
        return "signature"
    if language == "typescript" and is_mended(symbol, WITH_BODIES, sources):
        return "bodiless"
    return None


@functools.cache
def ctags_kinds(language):
    """Names of the kinds that this ctags has for a language."""
    lines = run("ctags", "--machinable", f"--list-kinds-full={language}").splitlines()
    return {line.split("\t")[1] for line in lines[1:]}


def is_mended(symbol, mend, sources):
    """Whether ctags lists a symbol in a copy of its file that does without what it stumbles over."""
    text = "\n".join(sources.lines(symbol["path"]))
    copy = mend(text)
    if copy == text:
        return False
    with tempfile.TemporaryDirectory() as folder:
        name = pathlib.Path(symbol["path"]).name
        (pathlib.Path(folder) / name).write_text(copy)
        tags = ctags(folder, [name])
    name = last_name(symbol["symbol"])
    return any(tag["name"] == name and any(first <= tag["line"] <= last for first, last in symbol["ranges"]) for tag in tags)


def cause(symbol, sources):
    """What ctags stumbles over before it would find a symbol; None when nothing known is it."""
    tried = (what for language, what, mend in FAULTS if symbol["language"] == language and is_mended(symbol, mend, sources))
    return next(tried, None)


def compare(program, name, folder):
    files, symbols = our_symbols(program, folder)
    tags = ctags(folder, sorted(files))
    sources = Sources(folder)
    places = defaultdict(list)
    for symbol in symbols:
        places[symbol["path"], last_name(symbol["symbol"])].append(symbol)
    functions = {(tag["path"], tag["name"]) for tag in tags if tag["kind"] in FUNCTIONS}
    left_out, both, differences = defaultdict(list), Counter(), []
    for tag in tags:
        wanted = tag["kind"] in KINDS.get(tag["language"], ())
        around = places.get((tag["path"], last_name(tag["name"])), [])
        match = [s for s in around if any(first <= tag["line"] <= last for first, last in s["ranges"])]
        for symbol in match:
            if wanted or (tag["kind"] in VALUES and symbol["kind"] in ("constant", "function", "method", "macro")):
                symbol["found"] = True
        if not wanted:
            continue
        if match:
            both[tag["language"]] += 1
            continue
        where = (tag["path"], tag["line"], tag["kind"], tag["name"], sources.line(tag["path"], tag["line"]).strip())
        rule = rule_for(tag, sources, functions)
        if rule:
            left_out[rule].append(where)
        else:
            differences.append(("ctags", *where, None))
    for symbol in symbols:
        if symbol["found"]:
            continue
        number, line = definition(symbol, sources)
        where = (symbol["path"], number, symbol["kind"], symbol["symbol"], line)
        rule = symbol_rule(symbol, line, sources)
        if rule:
            left_out[rule].append(where)
        else:
            differences.append(("ours", *where, cause(symbol, sources)))
    matched, mended = sum(both.values()), sum(1 for difference in differences if difference[-1])
    return {
        "name": name, "files": len(files), "chunks": sum(f["chunks"] for f in files.values()), "symbols": len(symbols),
        "both": matched, "languages": both, "left_out": left_out, "differences": differences,
        "mended": mended, "agreement": (matched + mended) / max(1, matched + len(differences)),
    }


def measured(program, into):
    """Rows about a large tree that is not compared, and the speed of parsing."""
    measured_trees = [("this repository", ROOT)]
    lines = []
    try:
        measured_trees.append(("Django 5.2.8 (PyPI)", pypi(into, "Django==5.2.8")))
        records = [json.loads(line) for line in run(program, "symbols", str(measured_trees[-1][1])).splitlines()]
        files = [record for record in records if "file" in record]
        symbols = {(record["path"], record["symbol"], record["kind"]) for record in records if "file" not in record}
        lines.append(
            f"Django 5.2.8: {len(files)} files of code, {sum(file['bytes'] for file in files)} bytes, "
            f"{len(symbols)} symbols, {sum(file['chunks'] for file in files)} chunks; no character is lost or told twice."
        )
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        lines.append(f"Django cannot be fetched: {reason(error)}")
    for name, tree in measured_trees:
        lines += ["", f"Speed, {name} (`code_symbols speed FOLDER`, one core, best of three runs for each file):", "", "```"]
        lines += [*run(program, "speed", str(tree)).splitlines(), "```"]
    return lines


def shown(source):
    """A line of source in a table."""
    return source[:60].replace("|", "\\|").replace("`", "'")


def report(results, command, measurements):
    """The page of results."""
    text = [
        "# Symbols of code against universal-ctags", "",
        f"Made by `{command}` (after `cargo build --release -p rag_ingest --example code_symbols`) with",
        f"{run('ctags', '--version').splitlines()[0]}.", "",
        "Agreement is what both have, at once or in a mended copy, divided by that and every other difference listed below; what is left",
        "out by rule is neither. A mended copy is one of the file that does without what ctags stumbles over, which is the cause named",
        "below: ctags finds the symbol there. Each character that is not white space was in exactly one chunk in every file; the program",
        "stops otherwise. `make test-full` compares anew.", "",
        "| tree | files | chunks | symbols | in both (tags) | in a mended copy | by rule | only ctags | only ours | agreement |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in results:
        sides = Counter(difference[0] for difference in r["differences"])
        text.append(
            f"| {r['name']} | {r['files']} | {r['chunks']} | {r['symbols']} | {r['both']} | {r['mended']} | {sum(map(len, r['left_out'].values()))} "
            f"| {sides['ctags']} | {sides['ours'] - r['mended']} | {100 * r['agreement']:.2f} % |"
        )
    text += ["", "Tags in both, by language: " + "; ".join(
        f"{r['name']}: " + ", ".join(f"{language} {count}" for language, count in sorted(r["languages"].items()))
        for r in results) + ".", "", "Left out by rule:", ""]
    for rule, why in RULES.items():
        found = [(r["name"], *where) for r in results for where in r["left_out"].get(rule, ())]
        if found:
            tree, path, line, _, name, source = found[0]
            text.append(f"- {len(found)} × {rule}: {why}. For example `{name}` of {tree}, {path}:{line}: `{shown(source)}`.")
    for r in results:
        text += ["", f"## Differences: {r['name']}", ""]
        if not r["differences"]:
            text.append("None.")
            continue
        text += ["| only | where | kind | name | the line | why |", "|---|---|---|---|---|---|"]
        for side, path, line, kind, name, source, why in r["differences"]:
            text.append(f"| {side} | {path}:{line} | {kind} | {name} | `{shown(source)}` | {why or 'unexplained'} |")
    return "\n".join(text + ["", "## Coverage and speed", "", *measurements]) + "\n"


class Tap:
    """Checks, a line for each."""

    def __init__(self):
        self.number, self.failed = 0, False

    def line(self, holds, what):
        self.number += 1
        self.failed = self.failed or not holds
        print(f"{'ok' if holds else 'not ok'} {self.number} - {what}", flush=True)


def checked(tap, program, name, fetch):
    """The comparison of a tree, if there is one, and a line for each of its checks."""
    try:
        tree = fetch()
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        return tap.line(True, f"{name} # SKIP cannot be fetched: {reason(error)}")
    try:
        result = compare(program, name, tree)
    except subprocess.CalledProcessError as error:
        return tap.line(False, f"{name}: {reason(error)}")
    tap.line(True, f"{name}: no character of {result['files']} files is lost or told twice")
    agreement = f"{result['both']} tags and {result['mended']} more of mended copies agree, {100 * result['agreement']:.2f} % of what is compared"
    tap.line(result["agreement"] >= WANTED, f"{name}: {agreement}")
    unexplained = [difference for difference in result["differences"] if not difference[-1]]
    for side, path, line, kind, symbol, source, _ in unexplained:
        print(f"# only {side}: {path}:{line} {kind} {symbol}: {source}")
    tap.line(not unexplained, f"{name}: {len(unexplained)} of {len(result['differences'])} differences are unexplained")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "target/release/examples/code_symbols"))
    parser.add_argument("--output")
    parser.add_argument("folders", nargs="*")
    arguments = parser.parse_args()
    for tool in ("ctags", arguments.program):
        if not shutil.which(tool):
            sys.exit(f"error: there is no \"{tool}\"\nHINT: Run `scripts/setup.sh dev` and build the example.")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        given = [(name, lambda name=name: pathlib.Path(name)) for name in arguments.folders]
        all_trees = given or trees(pathlib.Path(folder))
        results = [result for name, fetch in all_trees if (result := checked(tap, arguments.program, name, fetch))]
        if arguments.output:
            measurements = measured(arguments.program, pathlib.Path(folder))
            command = "eval/oracle/code_symbols.py --output " + arguments.output
            pathlib.Path(arguments.output).write_text(report(results, command, measurements))
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
