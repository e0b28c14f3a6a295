// SPDX-License-Identifier: PostgreSQL

//! Composing Markdown: what every format without a text of its own (HTML, Word, EPUB) is stored as.
//!
//! Owns how blocks are separated, indented and escaped, so that the Markdown that is written is read back with the same
//! structure. Escapes only what would change that structure: a backslash in a name would hide it from a search. Knows no
//! format. Nesting deeper than [`MAX_NESTED`] is written at that depth, so that the output grows with the input.

/// Deepest nesting of quotes and list items that is written.
const MAX_NESTED: usize = 10;

/// Longest inline code that is written as such; a longer one is text.
const MAX_CODE: usize = 10_000;

/// A quote or list item that is open.
struct Container {
    /// What its first line begins with.
    marker: String,
    /// What its other lines begin with.
    rest: &'static str,
    /// Spaces after `rest`, the width of the marker.
    indent: usize,
    /// Whether nothing of it is written.
    fresh: bool,
    /// Whether an item of the same list stands right before it, or it opens a list in an item.
    tight: bool,
}

/// Writes blocks.
#[derive(Default)]
pub struct Composer {
    out: String,
    open: Vec<Container>,
    /// Containers beyond the bound.
    beyond: usize,
}

impl Composer {
    /// The Markdown.
    pub fn finish(self) -> String {
        self.out
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// A paragraph; white space at its ends does not count.
    pub fn paragraph(&mut self, inline: &str) {
        let text = inline.trim();
        if text.is_empty() {
            return;
        }
        self.begin();
        for line in text.split('\n').map(str::trim).filter(|line| !line.is_empty()) {
            let line = escaped(line);
            self.line(&line);
        }
    }

    /// A heading; `inline` was written for headings.
    pub fn heading(&mut self, level: u8, inline: &str) {
        let words: Vec<&str> = inline.split_whitespace().collect();
        if words.is_empty() {
            return;
        }
        let mut text = words.join(" ");
        // A closing sequence of hashes would not be part of the heading.
        if text.ends_with('#') {
            let at = text.trim_end_matches('#').len();
            text.insert(at, '\\');
        }
        // A backslash does not keep braces from being read as attributes.
        if text.ends_with('}') {
            text.pop();
            text.push_str("&#125;");
        }
        self.begin();
        let hashes = "#".repeat(usize::from(level.clamp(1, 6)));
        self.line(&format!("{hashes} {text}"));
    }

    /// Code between fences.
    pub fn code(&mut self, language: &str, code: &str) {
        // References to characters can say what no text holds.
        let code = code.trim_end().replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{FFFD}");
        if code.trim().is_empty() {
            return;
        }
        let fence = "`".repeat(longest_run(&code).max(2) + 1);
        self.begin();
        self.line(&format!("{fence}{language}"));
        code.split('\n').for_each(|line| self.line(line));
        self.line(&fence);
    }

    /// A table of cells that were written for cells; the first row is its header.
    pub fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let Some((header, body)) = rows.split_first() else { return };
        if columns == 0 {
            return;
        }
        self.begin();
        self.line(&row(header, columns));
        self.line(&format!("|{}", " --- |".repeat(columns)));
        for cells in body {
            self.line(&row(cells, 0));
        }
    }

    /// A thematic break.
    pub fn rule(&mut self) {
        if !self.is_empty() {
            self.begin();
            self.line("---");
        }
    }

    /// A footnote; `label` has letters and digits only.
    pub fn footnote(&mut self, label: &str, inline: &str) {
        let words: Vec<&str> = inline.split_whitespace().collect();
        self.begin();
        self.line(&format!("[^{label}]: {}", words.join(" ")));
    }

    /// Opens a quote.
    pub fn open_quote(&mut self) {
        self.open("> ".to_owned(), ">", 1, false);
    }

    /// Opens an item of a list, numbered if there is a number; `first` in its list or not.
    pub fn open_item(&mut self, number: Option<u32>, first: bool) {
        let marker = number.map_or("- ".to_owned(), |n| format!("{}. ", n.min(999_999_999)));
        let indent = marker.len();
        // A list in an item may follow its text at once, unless its number keeps it from interrupting a paragraph.
        let in_item = self.open.last().is_some_and(|outer| outer.rest.is_empty() && !outer.fresh);
        self.open(marker, "", indent, !first || (in_item && number.is_none()));
    }

    /// Closes the innermost quote or item.
    pub fn close(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else {
            self.open.pop();
        }
    }

    fn open(&mut self, marker: String, rest: &'static str, indent: usize, tight: bool) {
        if self.open.len() >= MAX_NESTED {
            self.beyond += 1;
        } else {
            self.open.push(Container { marker, rest, indent, fresh: true, tight });
        }
    }

    /// Separates the next block from what stands before.
    fn begin(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let fresh = self.open.iter().position(|container| container.fresh);
        if fresh.is_some_and(|at| self.open[at].tight) {
            return;
        }
        // The blank line belongs to what was open before.
        let started = fresh.unwrap_or(self.open.len());
        let at = self.out.len();
        for container in &self.open[..started] {
            self.out.push_str(container.rest);
            self.out.extend(std::iter::repeat_n(' ', container.indent));
        }
        self.out.truncate(at + self.out[at..].trim_end_matches(' ').len());
        self.out.push('\n');
    }

    fn line(&mut self, line: &str) {
        let at = self.out.len();
        for container in &mut self.open {
            if std::mem::take(&mut container.fresh) {
                self.out.push_str(&container.marker);
            } else {
                self.out.push_str(container.rest);
                self.out.extend(std::iter::repeat_n(' ', container.indent));
            }
        }
        self.out.push_str(line);
        if line.is_empty() {
            self.out.truncate(at + self.out[at..].trim_end_matches(' ').len());
        }
        self.out.push('\n');
    }
}

fn row(cells: &[String], columns: usize) -> String {
    let mut line = "|".to_owned();
    for cell in cells {
        line.push(' ');
        line.push_str(cell);
        line.push_str(" |");
    }
    line.push_str(&"  |".repeat(columns.saturating_sub(cells.len())));
    line
}

/// A line of a paragraph, with a backslash where it would be something else.
fn escaped(line: &str) -> String {
    let at = match line.as_bytes() {
        [b'#', ..] => {
            let hashes = line.len() - line.trim_start_matches('#').len();
            (hashes <= 6 && ends_or_space(&line[hashes..])).then_some(0)
        }
        [b'>', ..] => Some(0),
        [b'-' | b'+' | b'*'] | [b'-' | b'+' | b'*', b' ' | b'\t', ..] => Some(0),
        [b'<', next, ..] if next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?') => Some(0),
        [b'[', ..] if line.contains("]:") => Some(0),
        [b'`', b'`', b'`', ..] | [b'~', b'~', b'~', ..] => Some(0),
        [b'0'..=b'9', ..] => {
            let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let rest = &line[digits..];
            (digits <= 9 && rest.starts_with(['.', ')']) && ends_or_space(&rest[1..])).then_some(digits)
        }
        [b'-' | b'=' | b'_' | b'*' | b'|' | b':', ..] => {
            let ruler = |set: &[char]| line.trim_start_matches(set).is_empty();
            let ruler = ruler(&['=', ' ']) || ruler(&['_', ' ']) || ruler(&['*', ' ']) || ruler(&['-', '|', ':', ' ']);
            ruler.then_some(0)
        }
        _ => None,
    };
    match at {
        Some(at) => format!("{}\\{}", &line[..at], &line[at..]),
        None => line.to_owned(),
    }
}

fn ends_or_space(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t'])
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Where inline text will stand, which decides what it must not look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// In a paragraph.
    #[default]
    Paragraph,
    /// In a heading, whose text without markup is the name of a section.
    Heading,
    /// In a cell of a table.
    Cell,
}

/// Writes the inside of a block: white space collapses as in HTML.
#[derive(Default)]
pub struct Inline {
    out: String,
    place: Place,
    space: bool,
    linked: bool,
    stressed: bool,
}

impl Inline {
    /// Nothing yet.
    pub fn new(place: Place) -> Self {
        Self { place, ..Self::default() }
    }

    /// What was written.
    pub fn finish(self) -> String {
        self.out
    }

    /// Takes what was written, and begins anew.
    pub fn take(&mut self) -> String {
        self.space = false;
        std::mem::take(&mut self.out)
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}' => self.space(),
                // Invisible: hints for hyphenation and marks of byte order.
                '\u{ad}' | '\u{feff}' | '\u{200b}' => {}
                '\0' => self.push(char::REPLACEMENT_CHARACTER, None),
                c => self.push(c, chars.peek().copied()),
            }
        }
    }

    /// White space, unless it would stand at the beginning of a line.
    pub fn space(&mut self) {
        self.space = !self.out.is_empty() && !self.out.ends_with(['\n', ' ']);
    }

    /// A new line of the same paragraph.
    pub fn line_break(&mut self) {
        self.space = false;
        if self.place != Place::Paragraph {
            self.space();
        } else if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    /// Code.
    pub fn code(&mut self, code: &str) {
        let words: Vec<&str> = code.split_whitespace().collect();
        let code = words.join(" ").replace('\0', "\u{FFFD}");
        if code.is_empty() {
            return;
        }
        if code.len() > MAX_CODE {
            return self.text(&code);
        }
        let ticks = "`".repeat(longest_run(&code) + 1);
        let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        let code = if self.place == Place::Cell { code.replace('|', "\\|") } else { code };
        self.flush();
        self.out.push_str(&format!("{ticks}{pad}{code}{pad}{ticks}"));
    }

    /// Markup as it is.
    pub fn raw(&mut self, markup: &str) {
        self.flush();
        self.out.push_str(markup);
    }

    /// What `write` writes, as a link.
    pub fn link(&mut self, url: Option<&str>, write: impl FnOnce(&mut Self)) {
        let Some(url) = url.filter(|_| !self.linked && self.place != Place::Heading) else {
            return write(self);
        };
        self.flush();
        let at = self.out.len();
        self.linked = true;
        write(self);
        self.linked = false;
        // A break at the beginning of a label was not part of it.
        if !self.out[at..].trim().is_empty() {
            self.out.insert(at, '[');
            self.out.push_str("](");
            self.out.push_str(&target(url));
            self.out.push(')');
        }
    }

    /// An image.
    pub fn image(&mut self, alt: &str, url: Option<&str>) {
        if alt.trim().is_empty() {
            return;
        }
        match url.filter(|_| !self.linked && self.place != Place::Heading) {
            None => self.text(alt),
            Some(url) => {
                self.raw("![");
                self.linked = true;
                self.text(alt.trim());
                self.linked = false;
                self.space = false;
                self.out.push_str(&format!("]({})", target(url)));
            }
        }
    }

    /// What `write` writes, between marks of emphasis where these can be told from text.
    pub fn stress(&mut self, mark: &str, write: impl FnOnce(&mut Self)) {
        if self.stressed || self.place == Place::Heading {
            return write(self);
        }
        self.flush();
        let at = self.out.len();
        self.stressed = true;
        write(self);
        self.stressed = false;
        let inner = &self.out[at..];
        if inner.starts_with(char::is_alphanumeric) && inner.ends_with(char::is_alphanumeric) && !inner.contains('\n') {
            self.out.insert_str(at, mark);
            self.out.push_str(mark);
        }
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.space) {
            self.out.push(' ');
        }
    }

    fn push(&mut self, c: char, next: Option<char>) {
        self.flush();
        let before = self.out.chars().next_back();
        let special = match self.place {
            Place::Paragraph => false,
            Place::Heading => is_special(before, c, next),
            Place::Cell => c == '|',
        };
        if special || (self.linked && matches!(c, '[' | ']')) {
            self.out.push('\\');
        }
        self.out.push(c);
    }
}

/// Whether a character between two others would be markup in a heading.
fn is_special(before: Option<char>, c: char, next: Option<char>) -> bool {
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    match c {
        '*' => !(space(before) && space(next)),
        '_' => !((word(before) && word(next)) || (space(before) && space(next))),
        '<' => next.is_some_and(|n| n.is_ascii_alphabetic() || matches!(n, '/' | '!' | '?')),
        ']' => matches!(next, Some('(' | '[')),
        '&' => next.is_some_and(|n| n.is_ascii_alphanumeric() || n == '#'),
        '~' => before == Some('~') || next == Some('~'),
        '\\' => next.is_some_and(|n| n.is_ascii_punctuation()),
        '`' => true,
        _ => false,
    }
}

/// The target of a link, without what would end it.
fn target(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            '(' | ')' | '<' | '>' | '|' | '\\' | '`' => out.push_str(&format!("%{:02X}", u32::from(c))),
            c if c.is_whitespace() || c.is_control() => out.push_str("%20"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::BlockKind;
    use crate::parse::markdown::structure;

    #[test]
    fn blocks_are_separated_and_indented() {
        let mut c = Composer::default();
        c.heading(2, "A  b");
        c.paragraph(" one\ntwo ");
        for (n, item) in ["x", "y"].iter().enumerate() {
            c.open_item(None, n == 0);
            c.paragraph(item);
            c.open_item(Some(9), true);
            c.paragraph("z");
            c.code("rs", "a\n\nb\n");
            c.close();
            c.close();
        }
        c.open_quote();
        c.paragraph("q");
        c.paragraph("r");
        c.close();
        let expected = "## A b\n\none\ntwo\n\n- x\n\n  9. z\n\n     ```rs\n     a\n\n     b\n     ```\n- y\n\n  9. z\n\n     ```rs\n     a\n\n     b\n     ```\n\n> q\n>\n> r\n";
        assert_eq!(c.finish(), expected);
    }

    #[test]
    fn a_paragraph_stays_a_paragraph() {
        for text in [
            "# a",
            "#",
            "> a",
            "- a",
            "+",
            "* a",
            "1. a",
            "12) a",
            "```",
            "~~~ x",
            "---",
            "===",
            "***",
            "_ _ _",
            "<div>",
            "<!-- a",
            "[a]: b",
            "[^a]: b",
            "|---|",
            ":--",
            "--- | ---",
            "#a",
            "1.a",
            "-a",
            "1234567890. a",
            "a < b",
            "*a*",
        ] {
            let mut c = Composer::default();
            c.paragraph(&format!("before | x\n{text}\nafter"));
            c.paragraph(text);
            let markdown = c.finish();
            let structure = structure(&markdown, 0..markdown.len());
            let kinds: Vec<BlockKind> = structure.blocks.iter().map(|b| b.kind).collect();
            assert_eq!(kinds, [BlockKind::Text; 2], "{markdown:?}");
        }
    }

    #[test]
    fn a_heading_reads_as_it_was_written() {
        for text in [
            "a #",
            "a ##",
            "C#",
            "a {#b}",
            "{x}",
            "int *p, *q",
            "__init__",
            "The <div> element",
            "[x](y)",
            "`a",
            "&amp; &lt;",
            "a\\*b",
            "snake_case_name & a_",
            "a * b, [c] < d",
            "AT&T",
            "_a_ b_c",
            "C:\\dir",
            "[a][b]",
            "x ~ y",
            "1. x",
            "~~no~~",
        ] {
            let mut inline = Inline::new(Place::Heading);
            inline.text(text);
            let mut c = Composer::default();
            c.heading(1, &inline.finish());
            let markdown = c.finish();
            assert_eq!(structure(&markdown, 0..markdown.len()).headings[0].text, text, "{markdown:?}");
        }
    }

    #[test]
    fn inline_markup_is_written_where_it_can_be_read() {
        let mut i = Inline::default();
        i.text(" a\u{a0} b ");
        i.link(Some("x (y)"), |i| i.text("l[1] "));
        i.text("c ");
        i.stress("**", |i| i.stress("*", |i| i.text("bold ")));
        i.stress("*", |i| i.text("(no)"));
        i.code("a`b");
        i.link(Some("z"), |i| i.text(" "));
        i.image("alt", Some("i.png"));
        assert_eq!(i.finish(), "a b [l\\[1\\]](x%20%28y%29) c **bold** (no)``a`b`` ![alt](i.png)");
    }

    #[test]
    fn tables_have_a_header_of_full_width() {
        let mut c = Composer::default();
        let cell = |text: &str| text.to_owned();
        c.table(&[vec![cell("a")], vec![cell("b"), cell("c")]]);
        let markdown = c.finish();
        assert_eq!(markdown, "| a |  |\n| --- | --- |\n| b | c |\n");
        assert_eq!(structure(&markdown, 0..markdown.len()).blocks[0].kind, BlockKind::Table);
    }
}
