# SPDX-License-Identifier: PostgreSQL

"""Compares what is read of pages that are on this machine with what trafilatura reads of them.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install trafilatura lxml_html_clean
    cargo build --release -p rag_ingest --example read
    /tmp/oracle/bin/python eval/oracle/pages.py target/release/examples/read /usr/share/doc/nodejs/api/*.html

Prints for each kind the share of trafilatura's words that are read (recall), the share of what is read that are words of
trafilatura (precision), the pages with the lowest values, and the bytes per second. Another reader is a second opinion and
not the truth: it leaves out what it takes for unimportant, so precision is below 1 for a reader that keeps tables and lists.
"""

import collections
import json
import re
import subprocess
import sys

import trafilatura


def words(text):
    return re.findall(r"[^\W_]+", text.lower())


def markdown_words(text):
    text = re.sub(r"\]\([^)\s]*\)", "] ", text)
    return words(text)


def share(wanted, found):
    wanted, found = collections.Counter(wanted), collections.Counter(found)
    return sum((wanted & found).values()) / max(1, sum(wanted.values()))


def main():
    program, *paths = sys.argv[1:]
    theirs = {}
    for path in paths:
        with open(path, "rb") as file:
            theirs[path] = words(trafilatura.extract(file.read(), include_comments=False) or "")
    for kind in ("article", "html"):
        out = subprocess.run([program, kind, *paths], capture_output=True, check=True, text=True).stdout
        pages = [json.loads(line) for line in out.splitlines()]
        rows, failed = [], []
        for page in pages:
            if "error" in page:
                failed.append(f"{page['path']}: {page['error']}")
            elif len(theirs[page["path"]]) >= 50:
                ours = markdown_words(page["text"])
                rows.append((share(theirs[page["path"]], ours), share(ours, theirs[page["path"]]), page["path"]))
        mean = lambda at: sum(row[at] for row in rows) / max(1, len(rows))
        size, seconds = sum(p["bytes"] for p in pages), sum(p["seconds"] for p in pages)
        print(f"{kind}: {len(pages)} pages, {len(rows)} compared, recall {mean(0):.3f}, precision {mean(1):.3f}, "
              f"{size / seconds / 1e6:.1f} MB/s, {len(failed)} failed")
        for row in sorted(rows)[:5]:
            print(f"  recall {row[0]:.3f} precision {row[1]:.3f} {row[2]}")
        for line in failed[:5]:
            print(f"  {line}")


main()
