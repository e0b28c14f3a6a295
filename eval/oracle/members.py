# SPDX-License-Identifier: PostgreSQL

"""What Python's own readers find in an archive, and which members are documents by the documented rules, written here a second time."""

import gzip
import io
import tarfile
import zipfile

CODE = set("rs py pyi pyw ts mts cts tsx js mjs cjs jsx go java c h cc cpp cxx c++ hh hpp hxx h++ ipp inl tcc cu cuh cs csx rb rake "
           "gemspec ru rbw php phtml php5 php7 inc sh bash bats ksh zsh sql ddl dml pgsql psql plpgsql".split())
CODE_NAMES = {"SConstruct", "SConscript", "wscript", "Jakefile", "Rakefile", "Gemfile", "Vagrantfile", "Guardfile", "Podfile",
              "Fastfile", "Brewfile", "PKGBUILD", "APKBUILD"}
OTHERS = set("md markdown mdown mkd txt text rst adoc org log jsonl ndjson yaml yml toml json jsonc ini cfg conf properties srt vtt "
             "html htm xhtml docx docm dotx epub pdf".split())
ARCHIVES = (".zip", ".tar", ".tgz", ".gz")
CONTROL = set(range(9)) | set(range(14, 27)) | set(range(28, 32)) | {127}


def is_code(path):
    name = path.rsplit("/", 1)[-1]
    return name in CODE_NAMES or ("." in name and name.rsplit(".", 1)[1].lower() in CODE)


def is_document(path, data):
    name = path.rsplit("/", 1)[-1]
    if is_code(path) or ("." in name and name.rsplit(".", 1)[1].lower() in OTHERS):
        return True
    head = data[:8192]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    bad = len(head) - len(head.decode("utf-8", "ignore").encode())
    return not CONTROL & set(head) and (bad <= 3 or bad * 3 <= len(head))


def members(data, name):
    """Names of what is no folder, with its bytes, or None where it is no regular file."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
        if data[257:262] != b"ustar":
            yield name[:-3], data
            return
    if data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                if not member.isdir():
                    yield member.name, tar.extractfile(member).read() if member.isreg() else None
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                yield entry.filename, archive.read(entry)


def is_hidden(path):
    return any(part.startswith(".") or part == "__MACOSX" for part in path.split("/"))


def is_archive(path):
    return path.lower().endswith(ARCHIVES)
