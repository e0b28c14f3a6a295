# SPDX-License-Identifier: PostgreSQL

"""Packs a real tree in several ways, and says which documents Python's own readers find in each archive.

    pip download --no-deps --no-binary :all: -d /tmp/sdist Django
    python3 eval/oracle/archives.py /tmp/sdist/django-*.tar.gz /tmp/archives
    ARCHIVES=$(printf '%s:' /tmp/archives/* | sed 's/:$//') \
      cargo test --release -p rag_ingest --test archives_real -- --ignored --nocapture

The documents are chosen by the documented rules, written here a second time. The digest is the SHA-256 of one line for each
document, sorted: its path, a space, and the SHA-256 of its bytes.
"""
import gzip
import hashlib
import io
import os
import sys
import tarfile
import zipfile

KNOWN = {"md", "markdown", "mdown", "mkd", "txt", "text", "rst", "adoc", "org", "log", "jsonl", "ndjson"}
CONTROL = set(range(9)) | set(range(14, 27)) | set(range(28, 32)) | {127}


def is_document(path, data):
    name = path.rsplit("/", 1)[-1]
    if "." in name and name.rsplit(".", 1)[1].lower() in KNOWN:
        return True
    head = data[:8192]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    bad = len(head) - len(head.decode("utf-8", "ignore").encode())
    return not CONTROL & set(head) and (bad <= 3 or bad * 3 <= len(head))


def members(data, name):
    """Names and bytes of the regular files."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
        if data[257:262] != b"ustar":
            yield name[:-3], data
            return
    if data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as t:
            for m in t:
                if m.isreg():
                    yield m.name, t.extractfile(m).read()
        return
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        for i in z.infolist():
            if not i.is_dir():
                yield i.filename, z.read(i)


def documents(data, name, prefix, counts):
    for path, content in members(data, name):
        counts["members"] += 1
        if path.startswith("/") or ".." in path.split("/"):
            counts["failures"] += 1
            print(f"{prefix}{path}: not a safe path", file=sys.stderr)
            continue
        if any(part.startswith(".") or part == "__MACOSX" for part in path.split("/")):
            continue
        if path.lower().endswith((".zip", ".tar", ".tgz", ".gz")):
            try:
                yield from list(documents(content, path.rsplit("/", 1)[-1], f"{prefix}{path}!/", counts))
            except Exception as error:
                counts["failures"] += 1
                print(f"{prefix}{path}: {error}", file=sys.stderr)
        elif is_document(path, content):
            yield prefix + path, content


def main(source, target):
    os.makedirs(target, exist_ok=True)
    with tarfile.open(source) as t:
        files = [(m.name, t.extractfile(m).read()) for m in t if m.isreg()]
    with open(os.path.join(target, "tree.zip"), "wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in files:
            z.writestr(name, data)
    for name, some in ("tree.tar.gz", files), ("first-2000.tar.gz", files[:2000]), ("tree.tar", files):
        with tarfile.open(os.path.join(target, name), "w:gz" if name.endswith("gz") else "w") as t:
            for path, data in some:
                i = tarfile.TarInfo(path)
                i.size = len(data)
                t.addfile(i, io.BytesIO(data))
    print("| archive | packed bytes | members | documents | failures | digest |\n|---|---|---|---|---|---|")
    for name in sorted(os.listdir(target)):
        with open(os.path.join(target, name), "rb") as file:
            data = file.read()
        counts = {"members": 0, "failures": 0}
        found = sorted(f"{p} {hashlib.sha256(d).hexdigest()}\n" for p, d in documents(data, name, "", counts))
        digest = hashlib.sha256("".join(found).encode()).hexdigest()[:12]
        print(f"| {name} | {len(data)} | {counts['members']} | {len(found)} | {counts['failures']} | {digest} |")


main(*sys.argv[1:])
