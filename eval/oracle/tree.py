#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""A real tree through rag.sync, as a folder of code, as a ZIP and as a tar.gz, and what Python finds in it. Run by eval/bench/tree.sh.

Members and documents are counted by the documented rules, written a second time in members.py, over os.walk, zipfile and tarfile. The
stand-in model (tests/server/model) costs nothing, so that the time is that of listing, reading, parsing, chunking and storing;
tokens are counted by the real tokenizer. Exit status 1 when a count differs or a document that others can read failed.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

from members import is_archive, is_code, is_document, is_hidden, members

ROOT = pathlib.Path(__file__).resolve().parents[2]


def in_archive(data, name, found, prefix=""):
    """Counts members, and collects documents and names that must be refused."""
    for path, content in members(data, name):
        found["seen"] += 1
        path = path.replace("\\", "/").removeprefix("./")
        if path.startswith("/") or ".." in path.split("/") or path[1:2] == ":":
            found["refused"].append(prefix + path)
            continue
        if content is None or is_hidden(path):
            continue
        if is_archive(path):
            in_archive(content, path.rsplit("/", 1)[-1], found, f"{prefix}{path}!/")
        elif is_document(path, content):
            found["documents"][prefix + path] = len(content)


def in_folder(folder, found):
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found["seen"] += len(names)
        for name in names:
            if not name.startswith(".") and is_code(name):
                full = os.path.join(path, name)
                found["documents"][os.path.relpath(full, folder)] = os.path.getsize(full)


class Server:
    def __init__(self, psql):
        self.psql = psql

    def ask(self, sql):
        run = subprocess.run([self.psql, "-XAtq", "-v", "ON_ERROR_STOP=1"], input=sql, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{sql}\n{run.stderr}")
        return run.stdout.strip()

    def json(self, sql):
        return json.loads(self.ask(f"SELECT coalesce(json_agg(r), '[]') FROM ({sql}) r"))


def fetch(package, into):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", into, package], check=True)
    return next(into.glob("*.tar.gz"))


def prepare(package, stage):
    """The tree in its three forms, readable by the server's user."""
    packed = fetch(package, stage)
    with tarfile.open(packed) as tar:
        tar.extractall(stage / "tree", filter="data")
    with tarfile.open(packed) as tar, zipfile.ZipFile(stage / "tree.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for member in tar:
            if member.isreg():
                archive.writestr(member.name, tar.extractfile(member).read())
    subprocess.run(["chmod", "-R", "a+rX", stage], check=True)
    return [("folder", "code", stage / "tree"), ("ZIP", "zip", stage / "tree.zip"), ("tar.gz", "zip", packed)]


def use_standin(server, stage, sharedir):
    folder = stage / "standin"
    folder.mkdir()
    shutil.copy(ROOT / "tests/server/model/model.onnx", folder)
    shutil.copy(sharedir / "pg_rag/models/all-MiniLM-L6-v2-int8/tokenizer.json", folder)
    (folder / "config.json").write_text('{"hidden_size": 8, "max_position_embeddings": 256}')
    subprocess.run(["chmod", "-R", "a+rX", stage], check=True)
    server.ask(f"SELECT rag.load_model('standin', 'embedding', '{folder}')")


def measure(server, form, kind, place, collection):
    found = {"seen": 0, "documents": {}, "refused": []}
    if kind == "code":
        in_folder(place, found)
    else:
        in_archive(place.read_bytes(), place.name, found)
    server.ask(f"SELECT rag.add_source('{form}', '{kind}', '{place}', collection => '{collection}')")
    begin = time.time()
    server.ask(f"CALL rag.sync('{form}')")
    took = time.time() - begin
    row = server.json(f"""SELECT y.* FROM rag.sync y JOIN rag.source s ON s.id = y.source_id WHERE s.name = '{form}'""")[0]
    failed = server.json(f"SELECT uri, error FROM rag.sync_item WHERE sync_id = {row['id']} AND state = 'failed' ORDER BY uri")
    prefix = "" if kind == "code" else place.name + "!/"
    uris = {record["uri"].removeprefix(prefix) for record in server.json(
        f"SELECT uri FROM rag.documents WHERE source = '{form}'")}
    begin = time.time()
    server.ask(f"CALL rag.sync('{form}')")
    return {"form": form, "kind": kind, "row": row, "failed": failed, "uris": uris, "took": took, "again": time.time() - begin,
            "bytes": sum(found["documents"].values()), "found": found, "prefix": prefix}


def wrong(result):
    """What does not agree, in words."""
    row, found = result["row"], result["found"]
    refused = {record["uri"].removeprefix(result["prefix"]) for record in result["failed"]}
    if row["seen"] != found["seen"]:
        yield f"{row['seen']} members seen, Python counts {found['seen']}"
    for uri in sorted(set(found["documents"]) - result["uris"]):
        yield f"\"{uri}\" is a document for Python and none for us"
    for uri in sorted(result["uris"] - set(found["documents"])):
        yield f"\"{uri}\" is a document for us and none for Python"
    if row["total"] != len(found["documents"]) + len(refused) or row["documents"] != len(found["documents"]):
        yield f"{row['total']} listed, {row['documents']} stored, {len(refused)} refused; Python: {len(found['documents'])}"


def page(package, results, model, processor):
    text = [
        f"# A real tree: the sdist of {package.replace('==', ' ')}", "",
        "Made by `eval/bench/tree.sh > eval/results/django.md`: `rag.add_source` and `CALL rag.sync` on a throwaway server, the tree as a",
        "folder of kind `code`, repacked as a ZIP, and as the tar.gz itself (both of kind `zip`). The counts are those of the row that each",
        "run leaves in `rag.sync`; `eval/oracle/tree.py` counts members and documents a second time with `os.walk`, `zipfile` and `tarfile`,",
        "and compares the documents one by one.", "",
        f"Model: `{model}`" + (", which costs nothing (`tests/server/model`), with the tokenizer of all-MiniLM-L6-v2: the time is that of listing, "
                              "reading, parsing, chunking and storing." if model == "standin" else ".") + f" {processor}", "",
        "| form | members seen | supported | parsed | refused by rule | documents | symbols | chunks | MB of documents | seconds | MB/s | again, seconds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in results:
        row, size = r["row"], r["bytes"] / 1e6
        supported = len(r["found"]["documents"])
        text.append(f"| {r['form']} | {row['seen']} | {supported} | {row['documents']} ({100 * row['documents'] / supported:.2f} %) | {len(r['failed'])} "
                    f"| {row['documents']} | {row['symbols']} | {row['chunks']} | {size:.1f} | {r['took']:.1f} | {size / r['took']:.2f} | {r['again']:.1f} |")
    text += ["", "Differences from Python's counts: " + ("; ".join(f"{r['form']}: {what}" for r in results for what in wrong(r)) or "none") + "."]
    for r in results:
        if r["failed"]:
            text += ["", f"Refused in the {r['form']}, each by name and for its own reason:", ""]
            text += [f"- `{record['uri'].removeprefix(r['prefix'])}`: {record['error']}" for record in r["failed"]]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", type=pathlib.Path, required=True)
    parser.add_argument("--psql", required=True)
    parser.add_argument("--sharedir", type=pathlib.Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("package")
    arguments = parser.parse_args()
    server = Server(arguments.psql)
    forms = prepare(arguments.package, arguments.stage)
    if arguments.model == "standin":
        use_standin(server, arguments.stage, arguments.sharedir)
    server.ask(f"SELECT rag.create_collection('tree', '{arguments.model}')")
    results = [measure(server, form, kind, place, "tree") for form, kind, place in forms]
    name = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown processor")
    print(page(arguments.package, results, arguments.model, f"{os.cpu_count()} cores of {name}."), end="")
    return 1 if any(what for r in results for what in wrong(r)) else 0


if __name__ == "__main__":
    sys.exit(main())
