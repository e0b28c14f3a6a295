# SPDX-License-Identifier: PostgreSQL

"""Right values for configurations, transcripts and tables, from other implementations.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install pyyaml srt webvtt-py pysubs2
    /tmp/oracle/bin/python eval/oracle/records.py --own > eval/oracle/records.json     (or FILE..., or @LIST)

Reads each file with PyYAML, tomllib, json, configparser, csv, srt, webvtt-py and pysubs2 and says what a reader must find
in it: the top-level keys in order with the texts beneath each, the cues with their times, the rows. The test
`crates/ingest/tests/oracle.rs` compares; without RECORDS_ORACLE it takes eval/oracle/records.json, which is of the project's
own fixtures and configuration.
"""
import configparser, csv, datetime, json, os, re, subprocess, sys, tomllib

import pysubs2, srt, webvtt, yaml


Loader = yaml.SafeLoader  # only composed: every scalar is its text, duplicates stay, tags are forgotten


def mapping(loader, node):
    return [(text(loader, k), build(loader, v)) for k, v in node.value]


def text(loader, node):
    return node.value if isinstance(node, yaml.ScalarNode) else None


SEEN = {}


def build(loader, node):
    # An alias is the same node once more; its text stands where its anchor is.
    if id(node) in SEEN:
        return None
    SEEN[id(node)] = node
    if isinstance(node, yaml.ScalarNode):
        # What is folded between double quotes may have escapes at the ends of its lines.
        return None if node.style == '"' and node.start_mark.line != node.end_mark.line else node.value
    if isinstance(node, yaml.SequenceNode):
        return [build(loader, n) for n in node.value]
    return dict_of(mapping(loader, node))


def dict_of(pairs):
    out = {}
    for k, v in pairs:
        out.setdefault(k, []).append(v)
    return out


def leaves(value):
    """Texts of one line that stand in the file as they are."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(key)
            yield from leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, bool) or value is None:
        pass
    elif isinstance(value, str):
        if value and value.isascii() and not re.search(r"[\n\r\t\"'\\\\]", value) and value.isprintable() and "  " not in value and value.strip() == value:
            yield value


def paths(value, above=()):
    """Names from the top to every key, elements not counted."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = " ".join(str(key or "").split())[:200]
            path = above + (name,) if name else above
            yield path
            yield from paths(inner, path)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from paths(inner, above)


def named(values):
    return sorted({path[:16] for value in values for path in paths(value)})


def documents(path):
    with open(path, "rb") as f:
        return [n for n in yaml.compose_all(f, Loader=Loader) if n is not None]


def config(path):
    name = path.lower()
    if name.endswith((".yaml", ".yml")):
        nodes = documents(path)
        if len(nodes) > 1:
            built = [build(None, n) for n in nodes]
            return [[f"[{i}]", sorted(set(leaves(b)))] for i, b in enumerate(built)], named(built)
        if nodes and isinstance(nodes[0], yaml.ScalarNode):
            raise ValueError("a scalar, which any prose is")
        if not nodes or not isinstance(nodes[0], yaml.MappingNode):
            return None, named([build(None, n) for n in nodes])
        built = [(text(None, k), build(None, v)) for k, v in nodes[0].value]
        return [[k, sorted(set(leaves(v)))] for k, v in built], named([dict_of(built)])
    if name.endswith(".toml"):
        with open(path, "rb") as f:
            table = tomllib.load(f)
        return [[k, sorted(set(leaves(v)))] for k, v in table.items()], named([table])
    if name.endswith(".json"):
        with open(path, encoding="utf-8-sig") as f:
            value = json.load(f)
        return [[k, sorted(set(leaves(v)))] for k, v in value.items()] if isinstance(value, dict) else None, named([value])
    parser = configparser.RawConfigParser(allow_no_value=True, comment_prefixes=("#", ";"), delimiters=("=", ":"), strict=False)
    parser.optionxform = str
    with open(path, encoding="utf-8-sig") as f:
        parser.read_file(f)
    table = {s: dict(parser.items(s)) for s in parser.sections()}
    if parser.defaults():
        return None, named([table, {s: parser.defaults() for s in [*table, "DEFAULT"]}])
    return [[s, sorted(set(leaves([list(v), list(v.values())])))] for s, v in table.items()], named([table])


def plain(markup):
    return " ".join(re.sub(r"<[^>]*>|\{\\[^}]*\}", "", markup).split())


def cues(path):
    with open(path, "rb") as f:
        raw = f.read()
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    content = raw.decode(encoding, "replace").replace("\r\n", "\n")
    ms = lambda delta: round(delta / datetime.timedelta(milliseconds=1))
    if path.endswith(".srt"):
        found = [[ms(c.start), ms(c.end), plain(c.content)] for c in srt.parse(content)]
        other = [[e.start, e.end, plain(e.text.replace("\\N", "\n"))] for e in pysubs2.SSAFile.from_string(content, format_="srt")]
        if max((c[1] for c in found), default=0) < 360000000:
            assert found == other, (path, found, other)
        return found
    stamp = lambda s: sum(round(float(x) * u) for x, u in zip(s.split(":"), (3600000, 60000, 1000)))
    unescape = lambda s: s.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return [[stamp(c.start), stamp(c.end), unescape(plain(c.raw_text))] for c in webvtt.read(path)]


def rows(path):
    with open(path, newline="", encoding="utf-8-sig") as f:
        delimiter = "\t" if path.endswith(".tsv") else ";" if "semicolon" in path else ","
        reader = csv.reader(f, delimiter=delimiter)
        header = next(reader)
        return [dict(zip(header, row)) if len(row) == len(header) else None for row in reader if row]


def main():
    files = sys.argv[1:]
    if files == ["--own"]:
        tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
        own = lambda f: "/hostile/" not in f and (f.startswith("tests/fixtures/") or f.endswith((".toml", ".yml", ".yaml", ".json")))
        files = [f for f in tracked if own(f) and not f.endswith("oracle/records.json")]
    files = [f for name in files for f in (open(name[1:]).read().split("\n") if name.startswith("@") else [name]) if f]
    out = []
    for path in sorted(files):
        name = path.lower()
        try:
            if name.endswith((".yaml", ".yml", ".toml", ".ini", ".cfg")) or (name.endswith(".json") and "/fixtures/" not in name or "/config/" in name):
                if name.endswith((".properties", ".conf")):
                    continue
                found, every = config(path)
                out.append({"file": path, "kind": "config", "keys": found, "paths": every})
            elif name.endswith((".srt", ".vtt")):
                out.append({"file": path, "kind": "transcript", "cues": cues(path)})
            elif name.endswith((".csv", ".tsv")):
                out.append({"file": path, "kind": "jsonl", "rows": rows(path)})
        except Exception as error:  # what the oracle refuses is listed, not hidden
            out.append({"file": path, "kind": "refused", "error": f"{type(error).__name__}: {str(error).splitlines()[0]}"})
    json.dump(out, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
