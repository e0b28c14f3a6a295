// SPDX-License-Identifier: PostgreSQL

//! From a tree to Markdown: headings, lists, code with its language, tables, links, the words of images.
//!
//! Owns what each element is written as; what is left out was decided before, by [`super::article`] or by what an element
//! is. Recursion is bounded by the depth of a tree.

use super::table;
use super::tags;
use super::tree::Tree;
use crate::parse::compose::{Composer, Inline, Place};
use url::Url;

/// Longest address that is written; what is longer carries data.
const MAX_URL: usize = 2000;

/// Bytes of a class in which a language is looked for; one frame may stand around any number of passages of code.
const MAX_CLASS: usize = 500;

/// Renders parts of one page.
pub struct Renderer<'t> {
    tree: &'t Tree,
    base: Option<&'t Url>,
    /// What is left out, node by node.
    removed: &'t [bool],
    out: Composer,
}

impl<'t> Renderer<'t> {
    /// A renderer of a page whose links are relative to `base`.
    pub fn new(tree: &'t Tree, base: Option<&'t Url>, removed: &'t [bool]) -> Self {
        Self { tree, base, removed, out: Composer::default() }
    }

    /// The Markdown.
    pub fn finish(self) -> String {
        self.out.finish()
    }

    /// Renders an element.
    pub fn node(&mut self, node: u32) {
        if self.tree.is_block(node) {
            return self.block(node);
        }
        let mut run = Inline::default();
        self.inline(node, &mut run);
        self.out.paragraph(&run.finish());
    }

    fn is_removed(&self, node: u32) -> bool {
        self.removed.get(node as usize).copied().unwrap_or(false)
    }

    fn children(&self, node: u32) -> Vec<u32> {
        self.tree.children(node).filter(|child| !self.is_removed(*child)).collect()
    }

    /// Renders what is inside an element.
    fn blocks(&mut self, node: u32) {
        let mut run = Inline::default();
        for child in self.children(node) {
            if self.tree.is_block(child) {
                self.out.paragraph(&run.take());
                self.block(child);
            } else {
                self.inline(child, &mut run);
            }
        }
        self.out.paragraph(&run.finish());
    }

    fn block(&mut self, node: u32) {
        let name = self.tree.name(node);
        if let Some(level) = tags::heading_level(name) {
            let text = self.line(node, Place::Heading);
            return self.out.heading(level, &text);
        }
        match name {
            "ul" | "ol" | "menu" | "dir" => self.list(node, name == "ol"),
            "blockquote" => {
                self.out.open_quote();
                self.blocks(node);
                self.out.close();
            }
            "li" | "dd" => {
                self.out.open_item(None, true);
                self.blocks(node);
                self.out.close();
            }
            "pre" | "xmp" | "listing" | "plaintext" => self.code(node),
            "table" => self.table(node),
            "hr" => self.out.rule(),
            _ => self.blocks(node),
        }
    }

    fn list(&mut self, node: u32, numbered: bool) {
        let start = self.tree.attribute(node, "start").and_then(|n| n.trim().parse().ok());
        let mut number: u32 = start.unwrap_or(1);
        let mut first = true;
        let mut run = Inline::default();
        for child in self.children(node) {
            if self.tree.name(child) == "li" {
                self.out.paragraph(&run.take());
                let value = self.tree.attribute(child, "value").and_then(|n| n.trim().parse().ok());
                number = value.unwrap_or(number);
                self.out.open_item(numbered.then_some(number), first);
                self.blocks(child);
                self.out.close();
                number = number.saturating_add(1);
                first = false;
            } else if self.tree.is_block(child) {
                self.out.paragraph(&run.take());
                // A list that stands in a list and not in an item means one in the item before it.
                self.out.open_item(None, first);
                self.block(child);
                self.out.close();
            } else {
                self.inline(child, &mut run);
            }
        }
        self.out.paragraph(&run.finish());
    }

    fn code(&mut self, node: u32) {
        let mut code = String::new();
        self.verbatim(node, &mut code);
        let code = code.replace('\u{a0}', " ");
        let language = self.language(node).unwrap_or_default();
        self.out.code(&language, code.strip_prefix('\n').unwrap_or(&code));
    }

    fn verbatim(&self, node: u32, out: &mut String) {
        if let Some(text) = self.tree.text(node) {
            return out.push_str(text);
        }
        if self.tree.name(node) == "br" {
            return out.push('\n');
        }
        for child in self.children(node) {
            let class = self.tree.attribute(child, "class").unwrap_or_default();
            let numbers = class
                .split_whitespace()
                .any(|c| matches!(c, "lineno" | "linenos" | "line-number" | "line-numbers" | "ln"));
            if !numbers {
                self.verbatim(child, out);
                // A line that is an element of its own.
                if tags::is_block(self.tree.name(child)) && !out.ends_with('\n') {
                    out.push('\n');
                }
            }
        }
    }

    /// The language of code, as highlighters write it on the element, the code inside or a frame around.
    fn language(&self, node: u32) -> Option<String> {
        let inside = self.tree.children(node).filter(|child| self.tree.name(*child) == "code").take(1);
        let around = self.tree.above(node).take(2).filter(|at| matches!(self.tree.name(*at), "div" | "figure"));
        for at in std::iter::once(node).chain(inside).chain(around) {
            let named = self.tree.attribute(at, "data-lang").or_else(|| self.tree.attribute(at, "data-language"));
            let class = self.tree.attribute(at, "class").unwrap_or_default();
            let class = &class[..class.floor_char_boundary(MAX_CLASS)];
            let mut words = class.split([' ', '\t', '\n', ':', ';']).filter(|word| !word.is_empty());
            let mut of_class = || {
                while let Some(word) = words.next() {
                    if word == "brush" {
                        return words.next();
                    }
                    let prefixes = ["language-", "lang-", "highlight-source-", "sourceCode-", "highlight-"];
                    if let Some(rest) = prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)) {
                        return Some(rest);
                    }
                }
                None
            };
            let found = named
                .or_else(&mut of_class)
                .and_then(|found| found.split([',', '{']).next())
                .map(str::to_ascii_lowercase);
            let sound = |l: &String| {
                (1..=20).contains(&l.len())
                    && l.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'#' | b'-' | b'_' | b'.'))
            };
            if let Some(language) = found.filter(sound) {
                let none = matches!(
                    language.as_str(),
                    "none" | "default" | "plaintext" | "text" | "nohighlight" | "notranslate"
                );
                return (!none).then_some(language);
            }
        }
        None
    }

    fn table(&mut self, node: u32) {
        let found = table::rows(self.tree, node, &|at| self.is_removed(at));
        let Some(found) = found else {
            return self.blocks(node);
        };
        for caption in &found.captions {
            let caption = self.line(*caption, Place::Paragraph);
            self.out.paragraph(&caption);
        }
        let mut rows = Vec::with_capacity(found.rows.len() + 1);
        if !found.header {
            rows.push(Vec::new());
        }
        for row in &found.rows {
            let cell = |cell: &Option<u32>| cell.map_or_else(String::new, |cell| self.line(cell, Place::Cell));
            rows.push(row.iter().map(cell).collect::<Vec<_>>());
        }
        if rows.iter().flatten().any(|cell| !cell.is_empty()) {
            self.out.table(&rows);
        }
    }

    /// The inside of an element as inline text.
    fn line(&self, node: u32, place: Place) -> String {
        let mut run = Inline::new(place);
        self.inside(node, &mut run);
        run.finish().trim().to_owned()
    }

    fn inside(&self, node: u32, run: &mut Inline) {
        for child in self.tree.children(node).filter(|child| !self.is_removed(*child)) {
            self.inline(child, run);
        }
    }

    fn inline(&self, node: u32, run: &mut Inline) {
        if let Some(text) = self.tree.text(node) {
            return run.text(text);
        }
        match self.tree.name(node) {
            "br" => run.line_break(),
            "code" | "kbd" | "samp" | "tt" => {
                let mut code = String::new();
                self.verbatim(node, &mut code);
                run.code(&code);
            }
            "strong" | "b" => run.stress("**", |run| self.inside(node, run)),
            "em" | "i" => run.stress("*", |run| self.inside(node, run)),
            "a" if self.is_anchor(node) => {}
            "a" => {
                let url = self.tree.attribute(node, "href").and_then(|href| self.address(href));
                run.link(url.as_deref(), |run| self.inside(node, run));
            }
            "img" => {
                let url = self.tree.attribute(node, "src").and_then(|src| self.address(src));
                run.image(self.tree.attribute(node, "alt").unwrap_or_default(), url.as_deref());
            }
            "sup" if self.is_note(node) => run.text(&format!("[{}]", self.tree.words(node))),
            "q" => {
                run.raw("“");
                self.inside(node, run);
                run.raw("”");
            }
            "math" if self.tree.attribute(node, "alttext").is_some_and(|text| !text.trim().is_empty()) => {
                run.text(self.tree.attribute(node, "alttext").unwrap_or_default());
            }
            // What repeats a formula in another notation.
            "annotation" | "annotation-xml" | "rp" => {}
            name if tags::is_block(name) => {
                run.space();
                self.inside(node, run);
                run.space();
            }
            _ => self.inside(node, run),
        }
    }

    /// Whether a link only shows where a heading is.
    fn is_anchor(&self, node: u32) -> bool {
        let here = self.tree.attribute(node, "href").is_some_and(|href| href.starts_with('#'));
        here && matches!(
            self.tree.words(node).as_str(),
            "" | "¶" | "#" | "§" | "🔗" | "\u{f0c1}" | "\u{200b}" | "Anchor" | "Permalink"
        )
    }

    /// Whether a raised text is nothing but a link to a note.
    fn is_note(&self, node: u32) -> bool {
        let mut inside = self.tree.children(node);
        let (Some(link), None) = (inside.next(), inside.next()) else { return false };
        let here = self.tree.attribute(link, "href").is_some_and(|href| href.starts_with('#'));
        let label = if here { self.tree.words(link) } else { String::new() };
        (1..=4).contains(&label.len()) && label.bytes().all(|b| b.is_ascii_alphanumeric())
    }

    /// An address as it is written; nothing for places in the page itself and for programs.
    fn address(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_URL {
            return None;
        }
        let absolute = match self.base {
            Some(base) => Some(base.join(href).ok()?),
            None => Url::parse(href).ok(),
        };
        match absolute {
            Some(url) if !matches!(url.scheme(), "http" | "https" | "mailto" | "ftp" | "tel") => None,
            Some(url) => Some(url.to_string()),
            None => Some(href.to_owned()),
        }
    }
}
