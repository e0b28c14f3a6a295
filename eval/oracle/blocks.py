# SPDX-License-Identifier: PostgreSQL

"""Makes blocks.jsonl: where another parser finds paragraphs, code fences and tables in the Markdown files beside the project.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install markdown-it-py mdit-py-plugins
    /tmp/oracle/bin/python eval/oracle/blocks.py ../shared/data/files/md > eval/oracle/blocks.jsonl

For each file the last line of its front matter (0 without), and first and last line of its first and last paragraph, of each
fence and of each table, outside of quotes. Only numbers of lines: what stands there a test reads in the file.
"""

import json
import pathlib
import sys

from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin

parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    found = {"file": path.name, "front_matter": 0, "paragraphs": [], "fences": [], "tables": []}
    quotes = 0
    # Lines end as in the file; a carriage return is none of its own.
    for token in parser.parse(path.read_bytes().decode().replace("\r\n", "\n")):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        lines = token.map and [token.map[0] + 1, token.map[1]]
        if token.type == "front_matter":
            found["front_matter"] = lines[1]
        elif token.type == "paragraph_open" and token.level == 0:
            found["paragraphs"].append(lines)
        elif token.type == "fence" and not quotes:
            found["fences"].append(lines)
        elif token.type == "table_open" and not quotes:
            found["tables"].append(lines)
    paragraphs = found["paragraphs"]
    found["paragraphs"] = [paragraphs[0], paragraphs[-1]] if paragraphs else []
    print(json.dumps(found))
