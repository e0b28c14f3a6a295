#!/usr/bin/env python3
"""Makes the handbook's PDF from the Markdown beneath text/: build.py OUT.pdf

The same sources give the same bytes. Needs the packages in requirements.txt.

Sources: headings `#` (chapter) and `##` (section), paragraphs, `- ` and `1. ` lists, tables with `|` whose caption
`Table N.M: ...` follows them, **bold**, and `{{term}}` or `{{term, subterm}}` where the index should point to.
"""

import os
import re
import sys
from pathlib import Path

from reportlab import rl_config
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.platypus import (
    BaseDocTemplate, Flowable, Frame, FrameBreak, KeepTogether, NextPageTemplate, PageBreak, PageTemplate, Paragraph,
    Spacer, Table, TableStyle,
)

# The date of the edition is that of the file, too, whenever it is made.
rl_config.invariant = 1
os.environ["SOURCE_DATE_EPOCH"] = "1709251200"

TEXT = Path(__file__).resolve().parent / "text"
TITLE = "Handbook of Operations"
OWNER = "The Ollenmere Conservancy"
EDITION = "Seventh edition, 2024"
TWO_COLUMNS = {15}

WIDTH, HEIGHT = A5
INNER, OUTER, TOP, BOTTOM, GUTTER = 18 * mm, 14 * mm, 20 * mm, 20 * mm, 6 * mm
BODY_WIDTH = WIDTH - INNER - OUTER
BODY_HEIGHT = HEIGHT - TOP - BOTTOM
TITLE_HEIGHT = 24 * mm


def style(name, size=9.6, lead=12.4, **more):
    more.setdefault("fontName", "Times-Roman")
    return ParagraphStyle(name, fontSize=size, leading=lead, **more)


PROSE = {"alignment": TA_JUSTIFY, "hyphenationLang": "en_GB", "embeddedHyphenation": 1, "uriWasteReduce": 0.3}
STYLES = {
    "title": style("title", 24, 30, fontName="Helvetica-Bold", alignment=TA_CENTER),
    "subtitle": style("subtitle", 13, 18, fontName="Helvetica", alignment=TA_CENTER),
    "rights": style("rights", 8.5, 11, spaceAfter=6),
    "chapter": style("chapter", 17, 21, fontName="Helvetica-Bold", spaceAfter=12),
    "section": style("section", 11, 14, fontName="Helvetica-Bold", spaceBefore=9, spaceAfter=4, keepWithNext=1),
    "body": style("body", spaceAfter=5, **PROSE),
    "item": style("item", leftIndent=14, bulletIndent=2, spaceAfter=2, **PROSE),
    "narrow": style("narrow", 8.8, 11, spaceAfter=4, **PROSE),
    "entry": style("entry", 9.2, 11.6, leftIndent=10, firstLineIndent=-10, spaceAfter=3.5, **PROSE),
    "cell": style("cell", 8, 9.6),
    "head": style("head", 8, 9.6, fontName="Times-Bold"),
    "caption": style("caption", 8.4, 10.5, fontName="Times-Italic", spaceBefore=4, spaceAfter=3, keepWithNext=1),
    "letter": style("letter", 10, 13, fontName="Helvetica-Bold", spaceBefore=6, spaceAfter=2, keepWithNext=1),
    "term": style("term", 8.2, 10, leftIndent=10, firstLineIndent=-10),
    "subterm": style("subterm", 8.2, 10, leftIndent=20, firstLineIndent=-10),
}


# Marks and inline text


def plain(text):
    """Text without marks for the index, with typographic quotes."""
    return typographic(re.sub(r"\{\{[^}]*\}\}", "", text).strip())


def inlined(text):
    """Markup of a paragraph; a mark for the index becomes a call when its line is drawn."""
    text = typographic(text.replace("&", "&amp;").replace("<", "&lt;"))
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\{\{([^}]*)\}\}", r'<onDraw name="mark" label="\1"/>', text)


def typographic(text):
    text = re.sub(r'(^|[\s(*}])"', "\\1\u201c", text).replace('"', "\u201d")
    return text.replace("'", "\u2019")


# Flowables


class Anchor(Flowable):
    """Nothing to see: tells the document that a heading is on this page."""

    def __init__(self, level, text, outline=True):
        super().__init__()
        self.level, self.text, self.outline = level, text, outline
        self.width = self.height = 0
        self.keepWithNext = 1

    def wrap(self, *_):
        return 0, 0

    def draw(self):
        self.canv.template.heading(self)


class ContentsLine(Flowable):
    """A heading, dots, and the number of its page."""

    def __init__(self, level, text, page):
        super().__init__()
        self.level, self.text, self.page = level, text, page
        self.font, self.size = ("Times-Bold", 9.6) if level == 0 else ("Times-Roman", 9)

    def wrap(self, width, _):
        self.width = width
        self.lines = simpleSplit(self.text, self.font, self.size, width - self.level * 14 - 34)
        self.above = 5 if self.level == 0 else 0
        return width, 11.6 * len(self.lines) + self.above

    def draw(self):
        x, y = self.level * 14, 11.6 * len(self.lines) - 9
        self.canv.setFont(self.font, self.size)
        for at, line in enumerate(self.lines):
            self.canv.drawString(x + (10 if at else 0), y, line)
            if at + 1 < len(self.lines):
                y -= 11.6
        end = x + (10 if len(self.lines) > 1 else 0) + stringWidth(self.lines[-1], self.font, self.size)
        self.canv.setFont("Times-Roman", 9)
        number = self.width - stringWidth(self.page, "Times-Roman", 9)
        dots = int((number - end - 8) / stringWidth(". ", "Times-Roman", 9))
        if dots > 0:
            self.canv.drawRightString(number - 4, y, " ".join("." * dots))
        self.canv.drawString(number, y, self.page)


# The document


def roman(number):
    out = ""
    for value, sign in ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")):
        while number >= value:
            out, number = out + sign, number - value
    return out


class Document(BaseDocTemplate):
    def __init__(self, out):
        super().__init__(out, pagesize=A5, title=f"{OWNER}: {TITLE}", author=OWNER, subject=EDITION, lang="en-GB",
                         creator="build.py", invariant=1, initialFontName="Times-Roman")
        self.headings, self.terms, self.front, self.running, self.opens = [], {}, None, "", False
        full = self.frame("full", 0, BODY_WIDTH, BODY_HEIGHT)
        column = (BODY_WIDTH - GUTTER) / 2
        self.addPageTemplates([
            self.template("bare", lambda left: [full(left)], lambda *_: None),
            self.template("one", lambda left: [full(left)], self.furniture),
            self.template("opening", lambda left: [
                self.frame("head", 0, BODY_WIDTH, TITLE_HEIGHT, BODY_HEIGHT - TITLE_HEIGHT)(left),
                self.frame("left", 0, column, BODY_HEIGHT - TITLE_HEIGHT)(left),
                self.frame("right", column + GUTTER, column, BODY_HEIGHT - TITLE_HEIGHT)(left)], self.furniture),
            self.template("two", lambda left: [
                self.frame("left", 0, column, BODY_HEIGHT)(left),
                self.frame("right", column + GUTTER, column, BODY_HEIGHT)(left)], self.furniture),
        ])

    @staticmethod
    def frame(name, x, width, height, y=0):
        return lambda left: Frame(left + x, BOTTOM + y, width, height, 0, 0, 0, 0, id=name)

    @staticmethod
    def template(name, frames, furniture):
        return PageTemplate(name, frames((INNER + OUTER) / 2), onPageEnd=furniture)

    def beforeDocument(self):
        self.headings, self.terms, self.front, self.running, self.opens = [], {}, None, "", False

    def handle_pageBegin(self):
        self.canv.template = self
        self.canv.setNamedCB("mark", self.mark)
        super().handle_pageBegin()

    def number(self):
        """What stands on the page: Roman numbers before the first chapter."""
        return roman(self.page) if self.front is None else str(self.page - self.front)

    def furniture(self, canvas, _):
        """Drawn when the page ends; a page on which a chapter begins has no running title."""
        left, right = (INNER + OUTER) / 2, WIDTH - (INNER + OUTER) / 2
        canvas.saveState()
        canvas.setFont("Helvetica", 7.5)
        canvas.setLineWidth(0.4)
        if not self.opens:
            if self.page % 2 == 0:
                canvas.drawString(left, HEIGHT - 13 * mm, f"{OWNER}: {TITLE}")
            else:
                canvas.drawRightString(right, HEIGHT - 13 * mm, self.running)
            canvas.line(left, HEIGHT - 14.5 * mm, right, HEIGHT - 14.5 * mm)
        self.opens = False
        if self.page % 2 == 0:
            canvas.drawString(left, 11 * mm, self.number())
            canvas.drawRightString(right, 11 * mm, EDITION)
        else:
            canvas.drawString(left, 11 * mm, EDITION)
            canvas.drawRightString(right, 11 * mm, self.number())
        canvas.restoreState()

    def heading(self, anchor):
        if anchor.level == 0:
            self.running, self.opens = anchor.text, True
            if self.front is None and anchor.text.startswith("1 "):
                self.front = self.page - 1
        key = f"h{len(self.headings)}"
        self.canv.bookmarkHorizontal(key, 0, 2)
        self.canv.addOutlineEntry(anchor.text, key, anchor.level, closed=anchor.level == 0)
        self.headings.append((anchor.level, anchor.text, self.number(), anchor.outline))

    def mark(self, canvas, kind, label):
        pages = self.terms.setdefault(label, [])
        if self.page - self.front not in pages:
            pages.append(self.page - self.front)


# From Markdown to flowables


def blocks(text):
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.strip().split("\n")
        if len(lines) > 1 and not lines[0].startswith(("|", "- ", "1. ")):
            items = [at for at, line in enumerate(lines) if re.match(r"- |\d+\. ", line)]
            if items and items[0] > 0:
                yield lines[: items[0]]
                lines = lines[items[0]:]
        yield lines


def table(lines):
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    longest = [max(max(stringWidth(plain(row[at]), "Times-Bold" if row is rows[0] else "Times-Roman", 8) for row in rows),
                   24) for at in range(len(rows[0]))]
    least = [max(max(stringWidth(word, "Times-Bold", 8) for word in plain(row[at]).split() or [""])
                 for row in rows) + 9 for at in range(len(rows[0]))]
    return rows, longest, least


def table_flowable(lines, width):
    rows, longest, least = table(lines)
    natural = [size + 9 for size in longest]
    if sum(natural) <= width:
        widths = natural
    else:
        spare = width - sum(least)
        wish = [max(natural[at] - least[at], 0) for at in range(len(natural))]
        widths = [least[at] + spare * wish[at] / (sum(wish) or 1) for at in range(len(natural))]
    cells = [[Paragraph(inlined(cell), STYLES["head" if at == 0 else "cell"]) for cell in row]
             for at, row in enumerate(rows)]
    out = Table(cells, colWidths=widths, repeatRows=1, hAlign="LEFT", spaceAfter=8)
    out.setStyle(TableStyle([
        ("LINEABOVE", (0, 0), (-1, 0), 0.8, "black"), ("LINEBELOW", (0, 0), (-1, 0), 0.5, "black"),
        ("LINEBELOW", (0, -1), (-1, -1), 0.8, "black"), ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LEFTPADDING", (0, 0), (-1, -1), 2), ("RIGHTPADDING", (0, 0), (-1, -1), 6),
        ("TOPPADDING", (0, 0), (-1, -1), 1.5), ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
    ]))
    return out


def chapter(text):
    parts = list(blocks(text))
    name = plain(parts[0][0][2:])
    number = int(name.split()[0]) if name[0].isdigit() else None
    two = number in TWO_COLUMNS
    width = (BODY_WIDTH - GUTTER) / 2 if two else BODY_WIDTH
    body = STYLES["narrow" if two else "entry" if number is None else "body"]
    story = [NextPageTemplate("opening" if two else "one"), PageBreak(), Anchor(0, name)]
    story.append(Paragraph(inlined(name), STYLES["chapter"]))
    if two:
        story += [NextPageTemplate("two"), FrameBreak()]
    at = 1
    while at < len(parts):
        lines = parts[at]
        at += 1
        if lines[0].startswith("## "):
            section = plain(lines[0][3:])
            story += [Anchor(1, section), Paragraph(inlined(section), STYLES["section"])]
        elif lines[0].startswith("|"):
            # The heading above stays with its table.
            group = [story.pop(), story.pop()][::-1] if parts[at - 2][0].startswith("## ") else []
            if at < len(parts) and parts[at][0].startswith("Table "):
                group.append(Paragraph(inlined(parts[at][0]), STYLES["caption"]))
                at += 1
            story.append(KeepTogether(group + [table_flowable(lines, width)]))
        elif re.match(r"- |\d+\. ", lines[0]):
            for line in lines:
                found = re.match(r"(-|\d+\.) (.*)", line)
                if not found:
                    raise SystemExit(f"{name}: not an item of a list: {line}")
                bullet = "\u2022" if found[1] == "-" else found[1]
                story.append(Paragraph(inlined(found[2]), STYLES["item"], bulletText=bullet))
            story.append(Spacer(0, 4))
        else:
            story.append(Paragraph(inlined(" ".join(lines)), body))
    return story


def title_page():
    story = [Spacer(0, 45 * mm), Paragraph(OWNER, STYLES["subtitle"]), Spacer(0, 12 * mm)]
    story += [Paragraph(TITLE, STYLES["title"]), Spacer(0, 8 * mm)]
    story += [Paragraph("for the Tide-lock, the Ferries and the Lights of Ollenmere Sound", STYLES["subtitle"])]
    story += [Spacer(0, 40 * mm), Paragraph(EDITION, STYLES["subtitle"])]
    return story


def rights_page():
    story = [PageBreak(), Spacer(0, 30 * mm)]
    for lines in list(blocks((TEXT / "00-rights.md").read_text(encoding="utf-8")))[1:]:
        story.append(Paragraph(inlined(" ".join(lines)), STYLES["rights"]))
    return story


def contents(headings):
    story = [NextPageTemplate("one"), PageBreak(), Anchor(0, "Contents", outline=False)]
    story.append(Paragraph("Contents", STYLES["chapter"]))
    return story + [ContentsLine(level, text, page) for level, text, page, shown in headings if shown]


def index(terms):
    story = [NextPageTemplate("opening"), PageBreak(), Anchor(0, "Index"), Paragraph("Index", STYLES["chapter"])]
    story += [NextPageTemplate("two"), FrameBreak()]
    groups = {}
    for term, pages in terms.items():
        head, _, sub = term.partition(", ")
        groups.setdefault(head, {})[sub] = ", ".join(str(page) for page in sorted(pages))
    letter = ""
    for head in sorted(groups, key=lambda head: (head.lower(), head)):
        if head[0].upper() != letter:
            letter = head[0].upper()
            story.append(Paragraph(letter, STYLES["letter"]))
        subs = groups[head]
        if len(subs) == 1:
            (sub, pages), = subs.items()
            story.append(Paragraph(inlined(f"{head}, {sub}, {pages}" if sub else f"{head}, {pages}"), STYLES["term"]))
            continue
        story.append(Paragraph(inlined(f"{head}, {subs['']}" if "" in subs else head), STYLES["term"]))
        for sub in sorted(sub for sub in subs if sub):
            story.append(Paragraph(inlined(f"{sub}, {subs[sub]}"), STYLES["subterm"]))
    return story


def story(headings, terms):
    out = title_page() + rights_page() + contents(headings)
    for path in sorted(TEXT.glob("*.md")):
        if path.name != "00-rights.md":
            out += chapter(path.read_text(encoding="utf-8"))
    return out + index(terms)


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: build.py OUT.pdf")
    headings, terms = [(0, "Contents", "iii", False)], {}
    for _ in range(8):
        document = Document(sys.argv[1])
        document.build(story(headings, terms))
        if (document.headings, document.terms) == (headings, terms):
            print(f"{sys.argv[1]}: {document.page} pages, {len(terms)} terms in the index")
            return
        headings, terms = document.headings, document.terms
    raise SystemExit("the numbers of pages do not settle")


if __name__ == "__main__":
    main()
