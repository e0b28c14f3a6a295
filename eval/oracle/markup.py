# SPDX-License-Identifier: PostgreSQL

"""Makes markup.json: what other readers take for the text of the fixtures in HTML and Word.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install trafilatura lxml_html_clean python-docx
    /tmp/oracle/bin/python eval/oracle/markup.py > eval/oracle/markup.json

For pages it is the text that trafilatura finds, for Word documents that of python-docx (paragraphs and cells, in the
order of the body). A test compares words, since no two readers agree on where lines end.
"""

import json
import pathlib
import re
import sys

import docx
import trafilatura

FIXTURES = pathlib.Path(__file__).parents[2] / "tests" / "fixtures"


def words(text):
    return re.findall(r"\w+", text.lower())


def of_docx(path):
    out = []
    for block in docx.Document(path).iter_inner_content():
        if isinstance(block, docx.text.paragraph.Paragraph):
            out.append(block.text)
        else:
            seen = set()
            for row in block.rows:
                for cell in row.cells:
                    if cell._tc not in seen:
                        seen.add(cell._tc)
                        out.append(cell.text)
    return "\n".join(out)


def main():
    found = {}
    for path in sorted((FIXTURES / "html").glob("*.html")):
        text = trafilatura.extract(path.read_bytes(), include_comments=False, include_tables=True, favor_recall=False)
        found[f"html/{path.name}"] = {"reader": f"trafilatura {trafilatura.__version__}", "words": words(text or "")}
    for path in sorted((FIXTURES / "docx").glob("*.docx")):
        version = __import__("importlib.metadata").metadata.version("python-docx")
        found[f"docx/{path.name}"] = {"reader": f"python-docx {version}", "words": words(of_docx(path))}
    json.dump(found, sys.stdout, ensure_ascii=False, indent=0)
    print()


main()
