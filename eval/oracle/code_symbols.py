#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Compares the symbols of source trees with those of universal-ctags.

    eval/oracle/code_symbols.py [--program FILE] [--output eval/results/code-symbols.md] [FOLDER…]

After `cargo build --release -p rag_ingest --example code_symbols`.

Trees: this repository, and one package each of PyPI, npm and the Rust registry, got with pip, npm and cargo; or the folders given. A tree
that cannot be had is named on a line that begins with "skipped:". A symbol of ours and a tag are the same when they have the same
name (without its containers) and the tag's line is among the symbol's. What is no symbol by design is in RULES and is counted
apart; every other difference is listed with what explains it. Exit status 1 when a tree agrees by less than 98 %.
"""

import argparse
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
    "constant": "documented constants of Rust: this ctags has no kind for them",
    "imported": "ctags takes names that TypeScript imports with `type` for type aliases; nothing is defined there",
    "assigned": "ctags takes `name=()` of a shell, an empty array, for a function",
    "unknown": "statements of SQL that create what this ctags has no kind for (a schema, a role, a policy, an extension)",
    "signature": "constructors of TypeScript that are declared without a body; ctags lists those with one",
    "predicate": "defined after a TypeScript function that returns a type predicate (`x is T`); ctags lists nothing more of that file",
    "literal": "ctags takes an object of JavaScript that is assigned to a variable for a class",
}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def fetched(into):
    """(name, folder) of every tree that can be had."""
    yield "this repository", ROOT
    packages = (("itsdangerous 2.2.0 (PyPI)", pypi), ("ky 1.14.3 (npm)", npm), ("hexyl 0.17.0 (Rust)", cargo))
    for name, fetch in packages:
        try:
            yield name, fetch(into)
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            print(f"skipped: {name} cannot be fetched: {error}", file=sys.stderr)


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
    return symbol if symbol.startswith(("[", "operator")) else re.split(r"::|[.#\\]", symbol)[-1]


class Sources:
    """Lines of a tree."""

    def __init__(self, folder):
        self.folder, self.files = pathlib.Path(folder), {}

    def line(self, path, number):
        if path not in self.files:
            self.files[path] = (self.folder / path).read_text(errors="replace").split("\n")
        return self.files[path][number - 1]


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


# A function whose result is declared as `x is T`, without or before a body.
PREDICATE = r"\s*(export )?(declare )?(async )?function \w+(<.*?>)?\(.*\): \w+ is [^;{]+[;{]"


def after_predicate(path, number, sources, tags):
    """Whether a line stands after a type predicate at which ctags lost its place: it lists nothing behind it."""
    last = max((tag["line"] for tag in tags if tag["path"] == path), default=0)
    return last < number and any(re.match(PREDICATE, sources.line(path, line)) for line in range(max(last, 1), number))


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
    return None


def explanation(side, language, kind, line):
    if side == "ctags" and language == "JavaScript" and kind == "class":
        return "not a class in the source; ctags guesses from an assignment to its prototype"
    if side == "ours" and language == "rust":
        return "defined there; a literal with two backslashes stands before it, after which ctags loses its place"
    if side == "ours":
        return "defined there, as the line shows; ctags misses it"
    return "not found by us"


def compare(program, name, folder):
    files, symbols = our_symbols(program, folder)
    tags = ctags(folder, sorted(files))
    sources = Sources(folder)
    places = defaultdict(list)
    for symbol in symbols:
        places[symbol["path"], last_name(symbol["symbol"])].append(symbol)
    functions = {(tag["path"], tag["name"]) for tag in tags if tag["kind"] in FUNCTIONS}
    left_out, both, differences = Counter(), Counter(), []
    for tag in tags:
        wanted = tag["kind"] in KINDS.get(tag["language"], ())
        around = places.get((tag["path"], last_name(tag["name"])), [])
        match = [s for s in around if any(first <= tag["line"] <= last for first, last in s["ranges"])]
        for symbol in match:
            if wanted or (tag["kind"] in VALUES and symbol["kind"] in ("constant", "function", "method", "macro")):
                symbol["found"] = True
        if not wanted:
            continue
        rule = None if match else rule_for(tag, sources, functions)
        if match:
            both[tag["language"]] += 1
        elif rule:
            left_out[rule] += 1
        else:
            line = sources.line(tag["path"], tag["line"]).strip()
            why = explanation("ctags", tag["language"], tag["kind"], line)
            differences.append(("ctags", tag["path"], tag["line"], tag["kind"], tag["name"], line, why))
    for symbol in symbols:
        if symbol["found"]:
            continue
        if symbol["language"] == "rust" and symbol["kind"] == "constant":
            left_out["constant"] += 1
            continue
        if symbol["language"] == "sql" and symbol["kind"] in ("schema", "role", "policy", "extension"):
            left_out["unknown"] += 1
            continue
        number, line = definition(symbol, sources)
        if symbol["language"] == "typescript" and re.match(r"constructor\(.*\);", line):
            left_out["signature"] += 1
            continue
        if symbol["language"] == "typescript" and after_predicate(symbol["path"], number, sources, tags):
            left_out["predicate"] += 1
            continue
        why = explanation("ours", symbol["language"], symbol["kind"], line)
        differences.append(("ours", symbol["path"], number, symbol["kind"], symbol["symbol"], line, why))
    matched = sum(both.values())
    return {
        "name": name, "files": len(files), "chunks": sum(f["chunks"] for f in files.values()), "symbols": len(symbols),
        "tags": len(tags), "both": matched, "languages": both, "left_out": left_out, "differences": differences,
        "agreement": matched / max(1, matched + len(differences)),
    }


def measured(program, into):
    """Rows about a large tree that is not compared, and the speed of parsing."""
    trees = [("this repository", ROOT)]
    lines = []
    try:
        trees.append(("Django 5.2.8 (PyPI)", pypi(into, "Django==5.2.8")))
        records = [json.loads(line) for line in run(program, "symbols", str(trees[-1][1])).splitlines()]
        files = [record for record in records if "file" in record]
        symbols = {(record["path"], record["symbol"], record["kind"]) for record in records if "file" not in record}
        lines.append(
            f"Django 5.2.8: {len(files)} files of code, {sum(file['bytes'] for file in files)} bytes, "
            f"{len(symbols)} symbols, {sum(file['chunks'] for file in files)} chunks; no character is lost or told twice."
        )
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        print(f"skipped: Django cannot be fetched: {error}", file=sys.stderr)
    for name, tree in trees:
        lines += ["", f"Speed, {name} (`code_symbols speed FOLDER`, one core, best of three runs for each file):", "", "```"]
        lines += [*run(program, "speed", str(tree)).splitlines(), "```"]
    return lines


def report(results, command, measurements):
    """The page of results."""
    text = [
        "# Symbols of code against universal-ctags", "",
        f"Made by `{command}` (after `cargo build --release -p rag_ingest --example code_symbols`) with",
        f"{run('ctags', '--version').splitlines()[0]}.", "",
        "Agreement is what both have, divided by that and every difference listed below. Each character that is not white",
        "space was in exactly one chunk in every file; the program stops otherwise.", "",
        "| tree | files | chunks | symbols | in both (tags) | by rule | only ctags | only ours | agreement |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in results:
        sides = Counter(difference[0] for difference in r["differences"])
        text.append(
            f"| {r['name']} | {r['files']} | {r['chunks']} | {r['symbols']} | {r['both']} | {sum(r['left_out'].values())} "
            f"| {sides['ctags']} | {sides['ours']} | {100 * r['agreement']:.2f} % |"
        )
    text += ["", "Tags in both, by language: " + "; ".join(
        f"{r['name']}: " + ", ".join(f"{language} {count}" for language, count in sorted(r["languages"].items()))
        for r in results) + ".", "", "Left out by rule:", ""]
    counts = sum((r["left_out"] for r in results), Counter())
    text += [f"- {counts[rule]} × {rule}: {why}." for rule, why in RULES.items() if counts[rule]]
    for r in results:
        text += ["", f"## Differences: {r['name']}", ""]
        if not r["differences"]:
            text.append("None.")
            continue
        text += ["| only | where | kind | name | the line | why |", "|---|---|---|---|---|---|"]
        for side, path, line, kind, name, source, why in r["differences"]:
            source = source[:60].replace("|", "\\|").replace("`", "'")
            text.append(f"| {side} | {path}:{line} | {kind} | {name} | `{source}` | {why} |")
    return "\n".join(text + ["", "## Coverage and speed", "", *measurements]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "target/release/examples/code_symbols"))
    parser.add_argument("--output")
    parser.add_argument("folders", nargs="*")
    arguments = parser.parse_args()
    for tool in ("ctags", arguments.program):
        if not shutil.which(tool):
            print(f"skipped: {tool} is absent", file=sys.stderr)
            return 0
    results = []
    with tempfile.TemporaryDirectory() as folder:
        given = [(name, name) for name in arguments.folders]
        for name, tree in given or fetched(pathlib.Path(folder)):
            result = compare(arguments.program, name, tree)
            results.append(result)
            print(json.dumps({key: value for key, value in result.items() if key != "differences"}))
            for difference in result["differences"]:
                print(*difference, sep="\t")
        if arguments.output:
            measurements = measured(arguments.program, pathlib.Path(folder))
            command = "eval/oracle/code_symbols.py --output " + arguments.output
            pathlib.Path(arguments.output).write_text(report(results, command, measurements))
    return 0 if all(result["agreement"] >= WANTED for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
