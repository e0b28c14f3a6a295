#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Measures `pg_rag_engine chunk` on one core over whole corpora. Run by parse.sh.

Each corpus is read, parsed, chunked and printed three times; the best counts. Starting the program and loading the tokenizer is
measured on a folder with one small file and is told apart. The profile is that of perf, if there is one: samples of the processor
clock, put into groups by the name of the function.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter

ROOT = pathlib.Path(__file__).resolve().parents[2]
WANTED = 1.0

# The first that fits the name of a function.
GROUPS = [
    ("tokenizer", r"tokenizers|rag_model|unicode_normalization|unicode_categories|wordpiece|aho_corasick"),
    ("parser", r"tree_sitter|^ts_|^_?lex|scanner|pulldown|rag_ingest::parse|rag_ingest::format|rag_ingest::text"),
    ("chunker", r"rag_ingest::chunk|unicode_segmentation|rag_core::template"),
    ("JSON and printing", r"serde_json|serde|write|fmt::|itoa|ryu"),
    ("hash of the content", r"sha2|sha256"),
    ("walking and reading files", r"rag_ingest::source|ignore|globset|regex|cap_"),
    ("hash maps and comparing", r"hash|memcmp|str::|Sip|bcmp"),
    ("memory", r"malloc|free|realloc|calloc|memmove|memcpy|memset|alloc::|_int_|drop_in_place|unlink_chunk"),
]


def command(arguments, kind, folder, what="chunk"):
    return ["taskset", "-c", str(max(os.sched_getaffinity(0))), arguments.program, what, "--kind", kind, "--models", arguments.models,
            "--model", "all-MiniLM-L6-v2", str(folder)]


def seconds(arguments, kind, folder):
    best = None
    for _ in range(3):
        begin = time.perf_counter()
        run = subprocess.run(command(arguments, kind, folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        took = time.perf_counter() - begin
        if run.returncode:
            sys.exit(run.stderr)
        best = took if best is None else min(best, took)
    return best


def told(arguments, kind, folder):
    """Documents, bytes of their text, and chunks."""
    documents = subprocess.run(command(arguments, kind, folder, "parse"), stdout=subprocess.PIPE, check=True, text=True)
    texts = [len(json.loads(line)["text"].encode()) for line in documents.stdout.splitlines()]
    chunks = subprocess.run(command(arguments, kind, folder), stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
    return len(texts), sum(texts), chunks


def profile(arguments, kind, folder):
    """Shares of the processor time by group, and the functions that take most."""
    with tempfile.TemporaryDirectory() as scratch:
        data = os.path.join(scratch, "perf.data")
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-o", data, *command(arguments, kind, folder)]
        try:
            subprocess.run(record, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            report = subprocess.run(["perf", "report", "-i", data, "--stdio", "--no-children", "-F", "overhead,sym"],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: no profile: {error}", file=sys.stderr)
            return None
    shares, functions = Counter(), []
    for line in report.splitlines():
        found = re.match(r"\s+([0-9.]+)%\s+\[(.)\]\s+(.*)", line)
        if not found:
            continue
        share, where, name = float(found[1]), found[2], found[3].strip()
        group = "kernel" if where == "k" else next((g for g, pattern in GROUPS if re.search(pattern, name)), "other")
        shares[group] += share
        functions.append((share, group, name))
    return shares, functions[:12]


def fetched(into, package="Django==5.2.8"):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", into, package], check=True)
    with tarfile.open(next(into.glob("*.tar.gz"))) as tar:
        tar.extractall(into / "tree", filter="data")
    return into / "tree"


def corpora(arguments, scratch):
    if arguments.markdown:
        yield "Markdown, ../shared/data/files/md", "markdown", pathlib.Path(arguments.markdown)
    own = scratch / "own"
    own.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "x", "-C", own], input=archive, check=True)
    yield "code of this repository", "code", own
    try:
        yield "code of Django 5.2.8", "code", fetched(scratch)
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        print(f"skipped: Django cannot be fetched: {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    name = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown processor")
    rows, profiles, slow = [], [], False
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        (scratch / "one").mkdir()
        (scratch / "one" / "a.md").write_text("# A\n")
        start = seconds(arguments, "markdown", scratch / "one")
        for title, kind, place in corpora(arguments, scratch):
            documents, size, chunks = told(arguments, kind, place)
            took = seconds(arguments, kind, place)
            rate = size / 1e6 / (took - start)
            slow |= rate < WANTED
            rows.append(f"| {title} | {documents} | {size / 1e6:.2f} | {chunks} | {took:.2f} | {rate:.2f} |")
            profiles.append((title, profile(arguments, kind, place)))
    print("\n".join([
        "# Parsing and chunking on one core", "",
        "Made by `eval/bench/parse.sh > eval/results/parsing.md`: `pg_rag_engine chunk` on one core with the tokenizer of all-MiniLM-L6-v2: reading,",
        f"parsing, chunking with exact counts of tokens, and printing each chunk as JSON. {name}. Best of three runs; starting the program and",
        f"loading the tokenizer take {start:.2f} s, which are in the seconds and not in the rate. At least {WANTED:.0f} MB/s is wanted.", "",
        "| corpus | documents | MB of text | chunks | seconds | MB/s |", "|---|---:|---:|---:|---:|---:|", *rows,
    ]))
    for title, found in profiles:
        if found is None:
            continue
        shares, functions = found
        print("\n".join(["", f"## Where the time goes: {title}", "",
                         "; ".join(f"{group} {share:.0f} %" for group, share in shares.most_common()) + ".", "",
                         "| share | group | function |", "|---:|---|---|",
                         *(f"| {share:.1f} % | {group} | `{function[:100]}` |" for share, group, function in functions)]))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
