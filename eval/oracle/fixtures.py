# SPDX-License-Identifier: PostgreSQL

"""Counts what is in the fixtures with Python's own readers and poppler, and compares it with tests/fixtures/EXPECTED.tsv.

    python3 eval/oracle/fixtures.py

Needs nothing but Python and, for the PDFs, pdfinfo and pdftotext. The rules are those of docs/sources.md, written here a second
time. What a row says and these readers cannot tell (symbols of code, content of an article, files that are damaged on
purpose) is in HAND with where its numbers come from. Prints every row with what was compared; exit status 1 when one differs.
"""

import csv
import gzip
import html.parser
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as tree
import zipfile

FIXTURES = pathlib.Path(__file__).parents[2] / "tests" / "fixtures"
KNOWN = {"md", "txt", "py"}
CONTROL = set(range(9)) | set(range(14, 27)) | set(range(28, 32)) | {127}

MAKE = "made so by the make.py beside it, whose source says what is in it"
HAND = {
    "archive": {name: MAKE for name in (
        "absolute.zip aes.zip bomb.tar.gz bomb.zip bzip2.zip crc.tar.gz cut.tar.gz cut.zip encrypted.zip header.tar lies.zip links.tar.gz "
        "links.zip names.zip nested.zip overlap.zip sparse.tar strange.zip traversal.zip unsafe.tar.gz words.zip").split()},
    "hostile": {name: MAKE for name in (
        "chapters.epub entities.rss fields.csv folders.zip header.tar.gz language.md names.docx nested.docx ratio.docx nested.c nested.html nested.json nested.md "
        "nested.py nested.rss nested.toml nested.yaml utf16.csv").split()},
    "code": "symbols were counted by reading the file; crates/ingest/tests/code.rs has their names",
    "pdf": {name: MAKE for name in "bomb-content.pdf bomb-glyphs.pdf bomb-objects.pdf bomb-twice.pdf".split()},
    "feed": {"late.rss": "its declaration stands late, which is no XML; it was counted by reading it"},
    "languages": {"code/harbour.rs": "symbols were counted by reading the file"},
    "config": {"broken.yaml": "does not parse, so it is one text", "proxy.conf": "does not parse, so it is one text"},
}


def sections(levels, before):
    """Chunks of a short text: what is before the first heading, and each heading but one that only has a deeper one beneath."""
    return bool(before) + sum(filled or not deeper for filled, deeper in levels)


def of_markdown(text):
    front = re.match(r"---\n.*?\n---\n", text, re.S)
    language = front and re.search(r"^lang(?:uage)?: (\w+)", front[0], re.M)
    parts = re.split(r"^(#{1,6}) .*$", text[front.end() if front else 0:], flags=re.M)
    marks, texts = parts[1::2], [bool(part.strip()) for part in parts[2::2]]
    levels = [(text, len(marks[at + 1:]) > 0 and len(marks[at + 1]) > len(mark)) for at, (mark, text) in enumerate(zip(marks, texts))]
    return {"chunks": sections(levels, parts[0].strip()), "languages": [language[1]] if language else []}


def is_document(name, data):
    last = name.rsplit("/", 1)[-1]
    if last.startswith(".") or name.startswith((".", "__MACOSX")):
        return False
    if "." in last and last.rsplit(".", 1)[1] in KNOWN or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    return not CONTROL & set(data[:8192])


def of_archive(path):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
        if data[257:262] != b"ustar" and data.strip(b"\0"):
            return {"seen": 1, "documents": 1, **of_markdown(data.decode())}
    if path.suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = [(m.filename, file.read(m)) for m in file.infolist() if not m.is_dir()]
    else:
        with tarfile.open(fileobj=io.BytesIO(data)) as file:
            members = [(m.name, file.extractfile(m).read()) for m in file if m.isfile()]
    kept = {name: data for name, data in members if is_document(name, data)}
    return {"seen": len(members), "documents": len(kept), "chunks": sum(bool(data) for data in kept.values())}


def load(text):
    # Python bounds the digits of a number that it makes of text.
    return json.loads(text, parse_int=str)


def of_records(path, kind, options):
    text = path.read_text("utf-8-sig")
    if path.suffix in (".csv", ".tsv"):
        first = text.split("\n", 1)[0]
        rows = list(csv.reader(io.StringIO(text), delimiter="," if "," in first else ";" if ";" in first else "\t"))
        rows = [row for row in rows if row]
        records = [dict(zip(rows[0], row)) if len(row) == len(rows[0]) else None for row in rows[1:]]
    elif text.lstrip().startswith("["):
        records = load(text)
    elif "\n{" in text or path.suffix == ".jsonl":
        records = []
        for line in text.splitlines():
            try:
                records.append(load(line))
            except ValueError:
                records.append(None)
    else:
        records = load(text)
        records = records.get("items", [records])
    count = {"forum": posts_of_thread, "issues": posts_of_issue, "transcript": turns, "jsonl": lambda r: [None] if "text" in r else None}[kind]
    if kind == "transcript" and isinstance(records, list) and "segments" not in records[0]:
        records = [{"segments": records}]
    keys, posts, documents = set(), [], 0
    for number, record in enumerate(records):
        key = next((str(record[k]) for k in ("_id", "question_id", "number", "iid", "id") if record.get(k)), f"#{number}") if isinstance(record, dict) else None
        found = count(record) if key is not None and key not in keys else None
        large = any(len(json.dumps(record)) > limit for name, limit in options.get("limits", {}).items() if name == "max_document_bytes")
        if found and not large and len(key) <= 2048:
            documents += 1
            posts += found
            keys.add(key)
    return {"seen": len(records), "documents": documents, "chunks": len(posts), "speakers": sum(post is not None for post in posts)}


def who(value):
    return value if isinstance(value, str) or value is None else value.get("display_name") or value.get("login") or value.get("username")


def posts_of_thread(thread):
    if "post_stream" in thread:
        return [post["username"] for post in thread["post_stream"]["posts"]]
    question = thread.get("question", thread)
    question = {"text": question} if isinstance(question, str) else question
    if not (question.get("text") or question.get("body") or thread.get("title")):
        return None
    posts = []
    for post in [question] + thread.get("answers", []):
        posts += [who(post.get("author") or post.get("owner"))] + [who(c.get("author")) for c in post.get("comments", [])]
    return posts


def posts_of_issue(issue):
    notes = issue.get("notes", []) + [note for talk in issue.get("discussions", []) for note in talk["notes"]]
    notes = [note for note in notes if not note.get("system")] + (issue["comments"] if isinstance(issue.get("comments"), list) else [])
    return ([who(issue.get("user") or issue.get("author"))] + [who(note.get("user") or note.get("author")) for note in notes]
            + [None for attached in issue.get("attachments", []) if attached.get("text")])


def turns(recording):
    said = [segment.get("speaker") for segment in recording["segments"]]
    return [speaker for at, speaker in enumerate(said) if at == 0 or said[at - 1] != speaker]


def of_subtitles(path):
    data = path.read_bytes()
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1")
    cues = [block.split("\n") for block in re.split(r"\n\n+", text) if "-->" in block]
    said = [re.search(r"<v[.\w]* ([^>]+)>", " ".join(cue)) for cue in cues]
    found = turns({"segments": [{"speaker": name and name[1]} for name in said]})
    return {"chunks": len(found), "speakers": sum(name is not None for name in found)}


class Page(html.parser.HTMLParser):
    """Headings of `main` or the body, and whether text is before the first."""

    SKIPPED = {"script", "style", "nav", "title", "head", "button"}

    def __init__(self, main):
        super().__init__()
        self.main, self.inside, self.skipped = main, 0 if main else 1, 0
        self.levels, self.filled, self.before, self.heading, self.language = [], [], False, False, None

    def handle_starttag(self, tag, attributes):
        self.language = dict(attributes).get("lang", self.language) if tag == "html" else self.language
        self.inside += tag == "main" and self.main
        self.skipped += tag in self.SKIPPED
        if re.fullmatch("h[1-6]", tag) and self.inside and not self.skipped:
            self.levels.append(int(tag[1]))
            self.filled.append(False)
            self.heading = True

    def handle_endtag(self, tag):
        self.inside -= tag == "main" and self.main
        self.skipped -= tag in self.SKIPPED
        self.heading = self.heading and not re.fullmatch("h[1-6]", tag)

    def handle_data(self, data):
        if data.strip() and self.inside and not self.skipped and not self.heading:
            if self.filled:
                self.filled[-1] = True
            else:
                self.before = True

    def chunks(self):
        deeper = [b > a for a, b in zip(self.levels, self.levels[1:])] + [False]
        return sections(list(zip(self.filled, deeper)), self.before)


# Headings of the article by reading the page: without what else a site shows.
ARTICLES = {"ferry.html": 4, "forum.html": 3, "handbook.html": 2, "soup.html": 3}


def of_page(path, kind):
    text = path.read_text("latin-1" if "iso-8859-1" in path.read_text("latin-1") else "utf-8")
    page = Page("<main" in text)
    page.feed(text)
    found = {"chunks": ARTICLES[path.name] if kind == "article" else page.chunks(), "languages": [page.language] if page.language else []}
    if 'content="mdBook"' in text:
        found["roles"] = {"documentation": found["chunks"]}
    return found


W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def of_word(path):
    with zipfile.ZipFile(path) as file:
        body = tree.fromstring(file.read("word/document.xml"))[0]
        styles = tree.fromstring(file.read("word/styles.xml"))
        core = tree.fromstring(file.read("docProps/core.xml"))
    value = lambda node, path: next((n.get(W + "val") for n in node.iterfind(path)), None)
    known = {style.get(W + "styleId"): style for style in styles.iter(W + "style")}

    def level(style, own=None):
        if own is not None or style not in known:
            return own
        name = (value(known[style], W + "name") or "").lower()
        own = 0 if name == "title" else value(known[style], f"{W}pPr/{W}outlineLvl")
        return level(value(known[style], W + "basedOn"), own)

    levels, before = [], False
    for block in body:
        style = value(block, f"{W}pPr/{W}pStyle")
        found = level(style, value(block, f"{W}pPr/{W}outlineLvl"))
        text = "".join(t.text or "" for t in block.iter(W + "t")).strip()
        if found is not None and int(found) < 9:
            levels.append([int(found), False])
        elif text and not (style or "").startswith("Verzeichnis"):
            if levels:
                levels[-1][1] = True
            before = before or not levels
    # A title is not above the headings, which begin at the same level.
    pairs = [(filled, at + 1 < len(levels) and levels[at + 1][0] > own) for at, (own, filled) in enumerate(levels)]
    language = core.findtext("{http://purl.org/dc/elements/1.1/}language") or next(n.get(W + "val") for n in styles.iter(W + "lang"))
    return {"chunks": sections(pairs, before), "languages": [language]}


def of_book(path):
    with zipfile.ZipFile(path) as file:
        package = tree.fromstring(file.read("OPS/book.opf"))
        opf = "{http://www.idpf.org/2007/opf}"
        items = {item.get("id"): item for item in package.iter(opf + "item")}
        chunks = roles = 0
        for reference in package.iter(opf + "itemref"):
            item = items[reference.get("idref")]
            text = file.read("OPS/" + item.get("href").replace("%20", " ")).decode()
            headings = len(re.findall(r"<h[1-6]>", text))
            chunks += headings
            roles += headings if item.get("properties") == "nav" else 0
    language = next(package.iter("{http://purl.org/dc/elements/1.1/}language")).text
    return {"chunks": chunks, "languages": [language], "roles": {"navigation": roles}}


def of_config(path):
    text = path.read_text()
    comment = {".yaml": "#", ".toml": "#", ".cfg": ";", ".properties": "#"}.get(path.suffix)
    # A comment with a blank line below it is about the file.
    head = bool(comment) and re.match(rf"({comment}.*\n)+\n", text) is not None
    if path.suffix == ".json":
        plain = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        count = len(json.loads(re.sub(r",(\s*[}\]])", r"\1", plain)))
    elif path.suffix == ".yaml":
        parts = [part for part in re.split(r"^---\n", text, flags=re.M) if part.strip()]
        count = len(parts) if len(parts) > 1 else len(re.findall(r"""^(?!- )[\w'"][^\n]*?:(?= |$)""", text, re.M))
    elif path.suffix == ".toml":
        first = text.index("\n[")
        count = len(re.findall(r"^\w+ = ", text[:first], re.M)) + len(re.findall(r"^\[", text[first:], re.M))
    elif path.suffix == ".properties":
        count = len(dict.fromkeys(re.findall(r"^([a-z]+)[.\w]* ?[=:]", text, re.M)))
    else:
        count = len(re.findall(r"^\[", text, re.M))
    return {"chunks": head + count}


def of_feed(path):
    """Posts of a feed, each a text short enough for one chunk."""
    if path.suffix == ".json":
        feed = json.loads(path.read_text())
        # What says the same as another post is that one.
        posts = len({json.dumps(item, sort_keys=True) for item in feed["items"]})
        languages = [item.get("language", feed.get("language")) for item in feed["items"]]
    else:
        root = tree.fromstring(path.read_bytes())
        plain = lambda element: element.tag.rpartition("}")[2]
        posts = sum(plain(element) in ("item", "entry") for element in root.iter())
        said = [element.text for element in root.iter() if plain(element) == "language"]
        said += [root.get("{http://www.w3.org/XML/1998/namespace}lang")]
        languages = [next(filter(None, said), None)]
    languages = sorted({language.lower() for language in languages if language})
    return {"seen": posts, "documents": posts, "chunks": posts, "languages": languages}


def of_pdf(path, options):
    password = ["-upw", options["password"]] if "password" in options else []
    run = lambda *command: subprocess.run([*command], capture_output=True, text=True)
    info = run("pdfinfo", *password, path)
    if "Incorrect password" in info.stderr:
        return {"documents": 0}
    pages = re.search(r"Pages: +(\d+)", info.stdout)
    if pages is None:
        return {"chunks": 0}
    text = run("pdftotext", *password, path, "-").stdout
    if not text.strip() or int(pages[1]) > options.get("limits", {}).get("max_pages", 5000):
        return {"documents": 0}
    found = {"pages": int(pages[1])}
    if found["pages"] == 1:
        found["chunks"] = 1
    else:
        # A page each, but for the paragraph that goes on over one.
        page = text.split("\f")
        goes_on = sum(not re.search(r"[.!?]\s*(\d+\s*)?$", page[at].strip()) and bool(re.match(r"(A Small Book\s+)?[a-z]", page[at + 1])) for at in range(len(page) - 2))
        found["chunks"] = found["pages"] - goes_on
        roles = {"metadata": "Copyright", "navigation": "Contents|Index", "reference": "Glossary"}
        found["roles"] = {role: len(re.findall(rf"^({words})\b(?! \.)", text.replace("\f", "\n"), re.M)) for role, words in roles.items()}
    return found


def counted(file, kind, options):
    path = FIXTURES / file
    if options.get("limits", {}).get("max_document_bytes", 1 << 30) < path.stat().st_size and kind == "markdown":
        return {"documents": 0, "chunks": 0}
    if kind in ("zip",):
        if options.get("limits", {}).get("max_entries") or options.get("limits", {}).get("max_document_bytes"):
            return None
        return of_archive(path)
    if kind == "blog" and path.suffix in (".atom", ".rdf", ".rss", ".json", ".xml"):
        return None if "max_documents" in options.get("limits", {}) else of_feed(path)
    if kind in ("markdown", "blog"):
        found = of_markdown(path.read_text())
        return {**found, "chunks": 1} if kind == "blog" else found
    if kind == "text":
        return {"chunks": 1}
    if path.suffix in (".srt", ".vtt"):
        return of_subtitles(path)
    if kind in ("jsonl", "forum", "issues", "transcript"):
        return None if "max_documents" in options.get("limits", {}) else of_records(path, kind, options)
    if kind in ("html", "article"):
        return of_page(path, kind)
    return {"docx": of_word, "epub": of_book, "config": of_config}[kind](path) if kind != "pdf" else of_pdf(path, options)


def said(outcome):
    """The numbers of a row."""
    if outcome.startswith("refused"):
        return None
    first = re.match(r"(\d+) of (\d+), (\d+) chunks", outcome)
    roles = re.search(r"roles: ([^;]+)", outcome)
    pages = re.search(r"; (\d+) pages", outcome)
    speakers = re.search(r"; (\d+) of speakers", outcome)
    return {"documents": int(first[1]), "seen": int(first[2]), "chunks": int(first[3]), "pages": int(pages[1]) if pages else 0,
            "roles": {role: int(n) for n, role in re.findall(r"(\d+) (\w+)", roles[1])} if roles else {},
            "languages": re.findall(r"\d+ ([\w-]+)", (re.search(r"languages: ([^;]+)", outcome) or ["", ""])[1]),
            "speakers": int(speakers[1]) if speakers else 0, "failed": outcome.count("; failed ")}


def main():
    wrong = 0
    for line in (FIXTURES / "EXPECTED.tsv").read_text().splitlines():
        if line.startswith("#") or line.startswith("file\t"):
            continue
        file, kind, options, outcome = line.split("\t")
        folder, _, name = file.partition("/")
        hand = HAND.get(folder, {})
        why = hand if isinstance(hand, str) else hand.get(name)
        found = None if why else counted(file, kind, json.loads(options))
        if found is None:
            print(f"by hand  {file} {options}: {why or 'a limit that the options set'}")
            continue
        numbers = said(outcome) or {}
        found.setdefault("documents", 1)
        found.setdefault("seen", 1)
        if found["documents"] == 0:
            found["chunks"] = 0
        role = {"config": "configuration", "forum": "evidence", "issues": "evidence", "transcript": "evidence"}.get(kind)
        if role and found["chunks"]:
            found["roles"] = {role: found["chunks"]}
        differs = {key: (value, numbers.get(key)) for key, value in found.items() if numbers.get(key) != value}
        wrong += bool(differs)
        print(f"{'DIFFERS' if differs else 'same   '}  {file} as {kind} {options}: {differs or found}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
