// SPDX-License-Identifier: PostgreSQL

//! The body of a Word document as Markdown.
//!
//! What was deleted or moved away under tracked changes is not read, nor hidden text, nor comments, nor the table of
//! contents, which says again what the headings say. Recursion is bounded by the depth of the XML.

use super::styles::{self, Numberings, Role, Styles};
use crate::parse::compose::{Composer, Inline, Place};
use crate::parse::package::xml::{Element, Tree};
use std::collections::HashMap;

/// Most columns over which a cell spreads.
const MAX_SPAN: usize = 64;

/// What the body refers to.
pub struct Around<'d> {
    /// Styles.
    pub styles: &'d Styles,
    /// Addresses of links by their id.
    pub links: &'d HashMap<String, String>,
    /// Footnotes.
    pub footnotes: Option<&'d Tree>,
    /// Endnotes.
    pub endnotes: Option<&'d Tree>,
}

/// Writes a body.
pub struct Writer<'d> {
    around: &'d Around<'d>,
    numberings: Numberings,
    out: Composer,
    /// Lists and levels of the open items.
    items: Vec<(String, usize)>,
    /// Lines of code that are not yet written.
    code: String,
    /// Notes in the order in which they are referred to: whether at the end, and id.
    notes: Vec<(bool, String)>,
    seen: HashMap<(bool, String), usize>,
    /// Boxes of text in the paragraph that is being read.
    boxes: Vec<Element<'d>>,
    /// Text of the first paragraph that is styled as a title.
    pub title: Option<String>,
}

impl<'d> Writer<'d> {
    /// A writer for a body.
    pub fn new(around: &'d Around<'d>, numberings: Numberings) -> Self {
        Self {
            around,
            numberings,
            out: Composer::default(),
            items: Vec::new(),
            code: String::new(),
            notes: Vec::new(),
            seen: HashMap::new(),
            boxes: Vec::new(),
            title: None,
        }
    }

    /// The Markdown of all that was written, with the notes at its end.
    pub fn finish(mut self) -> String {
        self.end_items();
        self.end_code();
        let (footnotes, endnotes) = (notes(self.around.footnotes, "footnote"), notes(self.around.endnotes, "endnote"));
        let mut at = 0;
        // A note may refer to others.
        while let Some((end, id)) = self.notes.get(at).cloned() {
            at += 1;
            let mut run = Inline::default();
            if let Some(note) = if end { &endnotes } else { &footnotes }.get(id.as_str()) {
                self.inline(*note, &mut run);
            }
            self.out.footnote(&at.to_string(), &run.finish());
        }
        self.out.finish()
    }

    /// Writes what is inside an element that holds paragraphs and tables.
    pub fn blocks(&mut self, element: Element<'d>) {
        for child in element.children() {
            match child.name() {
                "p" => self.paragraph(child),
                "tbl" => self.table(child),
                "sdt" | "sdtContent" | "customXml" | "smartTag" | "ins" | "moveTo" => self.blocks(child),
                "AlternateContent" => {
                    if let Some(choice) = choice(child) {
                        self.blocks(choice);
                    }
                }
                _ => {}
            }
        }
    }

    fn paragraph(&mut self, element: Element<'d>) {
        let properties = element.child("pPr");
        let style = properties.and_then(|p| styles::value(p, "pStyle")).unwrap_or_default();
        let direct = properties.and_then(styles::outline);
        let role = match direct {
            Some(level @ 0..=8) => Some(Role::Heading(level + 1)),
            _ => self.around.styles.role(style),
        };
        let place =
            if matches!(role, Some(Role::Heading(_) | Role::Title)) { Place::Heading } else { Place::Paragraph };
        let mut run = Inline::new(place);
        match role {
            Some(Role::Contents) => return,
            Some(Role::Code) => {
                let mut line = String::new();
                verbatim(element, &mut line);
                self.end_items();
                self.code.push_str(&line);
                self.code.push('\n');
                return;
            }
            _ => self.inline(element, &mut run),
        }
        let text = run.finish();
        self.end_code();
        if text.trim().is_empty() {
            // An empty paragraph does not end a list.
        } else if let Some(Role::Heading(level)) = role {
            self.end_items();
            self.out.heading(level, &text);
        } else if role == Some(Role::Title) {
            self.end_items();
            self.out.heading(1, &text);
            let words: Vec<&str> = text.split_whitespace().collect();
            self.title.get_or_insert(words.join(" ").replace('\\', ""));
        } else {
            self.item(properties, style);
            self.out.paragraph(&text);
        }
        for inside in std::mem::take(&mut self.boxes) {
            self.blocks(inside);
        }
    }

    /// Opens the item of a list that a paragraph is, and closes those that it is not in.
    fn item(&mut self, properties: Option<Element<'d>>, style: &str) {
        let by_style = self.around.styles.numbering(style);
        let numbering = match (properties.and_then(styles::numbering), by_style) {
            (Some((Some(list), level)), _) => Some((list, level)),
            (Some((None, level)), Some((Some(list), _))) => Some((list, level)),
            (_, Some((Some(list), level))) => Some((list, level)),
            _ => None,
        };
        // Number 0 takes a paragraph out of the list of its style.
        let Some((list, level)) = numbering.filter(|(list, _)| list != "0") else {
            return self.end_items();
        };
        let mut first = true;
        while let Some((open, at)) = self.items.last() {
            if *at < level {
                break;
            }
            first = !(*at == level && *open == list);
            self.items.pop();
            self.out.close();
        }
        let number = self.numberings.next(&list, level);
        self.out.open_item(number, first);
        self.items.push((list, level));
    }

    fn end_items(&mut self) {
        for _ in self.items.drain(..) {
            self.out.close();
        }
    }

    fn end_code(&mut self) {
        let code = std::mem::take(&mut self.code);
        self.out.code("", &code);
    }

    /// Writes what is inside an element within a line.
    fn inline(&mut self, element: Element<'d>, run: &mut Inline) {
        for child in element.children() {
            match child.name() {
                "t" => child.children().filter_map(Element::text).for_each(|t| run.text(t)),
                "tab" | "ptab" => run.space(),
                "br" | "cr" => run.line_break(),
                "noBreakHyphen" => run.text("-"),
                "r" if is_hidden(child) => {}
                "hyperlink" => {
                    let url = child.attribute("id").and_then(|id| self.around.links.get(id)).cloned();
                    run.link(url.as_deref(), |run| self.inline(child, run));
                }
                "footnoteReference" => self.reference(false, child, run),
                "endnoteReference" => self.reference(true, child, run),
                "docPr" => run.image(child.attribute("descr").unwrap_or_default(), None),
                "txbxContent" => self.boxes.push(child),
                "AlternateContent" => {
                    if let Some(choice) = choice(child) {
                        self.inline(choice, run);
                    }
                }
                // Within a cell or note.
                "p" => {
                    run.space();
                    self.inline(child, run);
                    run.space();
                }
                "del" | "moveFrom" | "pPr" | "rPr" | "sdtPr" | "tblPr" | "instrText" | "delText" | "rt"
                | "footnoteRef" | "endnoteRef" => {}
                _ => self.inline(child, run),
            }
        }
    }

    fn reference(&mut self, end: bool, element: Element<'d>, run: &mut Inline) {
        let Some(id) = element.attribute("id") else { return };
        let key = (end, id.to_owned());
        let number = match self.seen.get(&key) {
            Some(number) => *number,
            None => {
                self.notes.push(key.clone());
                self.seen.insert(key, self.notes.len());
                self.notes.len()
            }
        };
        run.raw(&format!("[^{number}]"));
    }

    fn table(&mut self, element: Element<'d>) {
        self.end_items();
        self.end_code();
        let lines: Vec<Vec<Element<'d>>> = rows(element).iter().map(|row| inside(*row, "tc")).collect();
        let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
        // A table of one column is a frame around text.
        if columns <= 1 {
            for cell in lines.into_iter().flatten() {
                self.blocks(cell);
                self.end_items();
                self.end_code();
            }
            return;
        }
        let mut written = Vec::with_capacity(lines.len());
        for cells in lines {
            let mut row = Vec::with_capacity(cells.len());
            for cell in cells {
                let mut run = Inline::new(Place::Cell);
                self.inline(cell, &mut run);
                row.push(run.finish().trim().to_owned());
                let wide = cell
                    .child("tcPr")
                    .and_then(|p| styles::value(p, "gridSpan"))
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(1);
                row.extend(std::iter::repeat_n(String::new(), usize::min(wide, MAX_SPAN).saturating_sub(1)));
            }
            written.push(row);
        }
        if written.iter().flatten().any(|cell| !cell.is_empty()) {
            self.out.table(&written);
        }
        for inside in std::mem::take(&mut self.boxes) {
            self.blocks(inside);
        }
    }
}

/// Notes by their id; of two with one id the first.
fn notes<'d>(tree: Option<&'d Tree>, name: &str) -> HashMap<&'d str, Element<'d>> {
    let mut notes = HashMap::new();
    for note in tree.into_iter().flat_map(|tree| tree.all(name)) {
        if let Some(id) = note.attribute("id") {
            notes.entry(id).or_insert(note);
        }
    }
    notes
}

/// Rows of a table, without those that were deleted.
fn rows(table: Element<'_>) -> Vec<Element<'_>> {
    let deleted = |row: &Element<'_>| row.child("trPr").is_some_and(|p| p.child("del").is_some());
    inside(table, "tr").into_iter().filter(|row| !deleted(row)).collect()
}

/// Elements of a name, also those in controls of content.
fn inside<'t>(element: Element<'t>, name: &str) -> Vec<Element<'t>> {
    let mut found = Vec::new();
    for child in element.children() {
        match child.name() {
            own if own == name => found.push(child),
            "sdt" | "sdtContent" | "customXml" | "ins" => found.extend(inside(child, name)),
            _ => {}
        }
    }
    found
}

/// Of the same thing said for several readers, what is said first.
fn choice(element: Element<'_>) -> Option<Element<'_>> {
    element.child("Choice").or_else(|| element.child("Fallback"))
}

fn is_hidden(run: Element<'_>) -> bool {
    let vanish = run.child("rPr").and_then(|p| p.child("vanish"));
    vanish.is_some_and(|v| !matches!(v.attribute("val"), Some("0" | "false" | "off")))
}

/// The text of a line of code, with its spaces.
fn verbatim(element: Element<'_>, out: &mut String) {
    for child in element.children() {
        match child.name() {
            "t" => child.children().filter_map(Element::text).for_each(|text| out.push_str(text)),
            "tab" => out.push('\t'),
            "br" | "cr" => out.push('\n'),
            "noBreakHyphen" => out.push('-'),
            "del" | "moveFrom" | "pPr" | "rPr" | "instrText" | "delText" => {}
            "r" if is_hidden(child) => {}
            _ => verbatim(child, out),
        }
    }
}
