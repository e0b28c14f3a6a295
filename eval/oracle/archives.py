# SPDX-License-Identifier: PostgreSQL

"""Packs a real tree in several ways, and says which documents Python's own readers find in each archive.

    pip download --no-deps --no-binary :all: -d /tmp/sdist Django
    python3 eval/oracle/archives.py /tmp/sdist/django-*.tar.gz /tmp/archives
    ARCHIVES=$(printf '%s:' /tmp/archives/* | sed 's/:$//') \
      cargo test --release -p rag_ingest --test archives_real -- --ignored --nocapture

The documents are chosen by the documented rules, written a second time in members.py. The digest is the SHA-256 of one line for each
document, sorted: its path, a space, and the SHA-256 of its bytes.
"""
import hashlib
import io
import os
import sys
import tarfile
import zipfile

from members import is_archive, is_document, is_hidden, members


def documents(data, name, prefix, counts):
    for path, content in members(data, name):
        if content is None:
            continue
        counts["members"] += 1
        if path.startswith("/") or ".." in path.split("/"):
            counts["failures"] += 1
            print(f"{prefix}{path}: not a safe path", file=sys.stderr)
            continue
        if is_hidden(path):
            continue
        if is_archive(path):
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
