// SPDX-License-Identifier: PostgreSQL

//! Markdown (CommonMark with GitHub's tables, footnotes, strikethrough, task lists and `{#anchor}` of headings).
//!
//! pulldown-cmark parses; this module only keeps block-level spans and the text of headings. Its own metadata blocks
//! are off, because it finds them anywhere and not only at the start: a text between two thematic breaks would
//! vanish. [`super::metadata`] takes front matter off before.

use super::html::encoding;
use super::{Block, BlockKind, Heading, Parsed, Structure, metadata};
use crate::format::Format;
use crate::text;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use rag_core::error::{Error, Kind, Result};
use std::ops::Range;

/// Blocks nested deeper than this are text of the block around them; bounds every recursion over the tree.
const MAX_DEPTH: usize = 24;

/// Longest text of a heading in characters: it is repeated in every chunk of its section. The heading itself stays whole
/// in the content.
const MAX_HEADING: usize = 500;

/// Parses Markdown that was served with a content type, or came without one. A page of HTML in its place is refused.
pub fn served(bytes: &[u8], content_type: Option<&str>) -> Result<Parsed> {
    let text = encoding::utf8(bytes, content_type);
    let is_html = content_type.is_some_and(|served| served.to_ascii_lowercase().starts_with("text/html"));
    if is_html && Format::looks_like_html(&String::from_utf8_lossy(&text[..text.len().min(1024)])) {
        return Err(Error::new(Kind::BadContent, "content is a page of HTML and no Markdown")
            .with_hint("Add it as a source of kind \"article\" or \"html\", or give the URL of the Markdown itself."));
    }
    Ok(parse(&text))
}

/// Parses a Markdown file with its front matter.
pub fn parse(bytes: &[u8]) -> Parsed {
    let repaired = text::repair(bytes);
    let mut parsed = Parsed {
        text: repaired.text,
        repaired_bytes: repaired.repaired_bytes,
        media_type: "text/markdown".to_owned(),
        ..Parsed::default()
    };
    let (front, body) = metadata::front_matter(&parsed.text);
    parsed.structure = structure(&parsed.text, body);
    metadata::describe(&mut parsed, front);
    if parsed.title.is_none() {
        parsed.title = parsed.structure.title();
    }
    parsed
}

/// The structure of `text[body]`.
pub fn structure(text: &str, body: Range<usize>) -> Structure {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut tree = Tree::default();
    for (event, range) in Parser::new_ext(&text[body.clone()], options).into_offset_iter() {
        tree.event(event, range.start + body.start..range.end + body.start);
    }
    Structure { body, blocks: tree.blocks, headings: tree.headings, ..Structure::default() }
}

#[derive(Default)]
struct Tree {
    blocks: Vec<Block>,
    headings: Vec<Heading>,
    open: Vec<Block>,
    /// Open blocks beyond the depth limit.
    ignored: usize,
    /// Text of the open heading.
    heading: Option<String>,
}

impl Tree {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                self.heading = Some(String::new());
                let nested = !self.open.is_empty();
                let index = self.headings.len();
                self.headings.push(Heading { level: level as u8, text: String::new(), start: range.start, nested });
                self.start(BlockKind::Heading(index), range);
            }
            Event::Start(tag) => {
                if let Some(kind) = kind_of(&tag) {
                    self.start(kind, range);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                if let (Some(text), Some(heading)) = (self.heading.take(), self.headings.last_mut()) {
                    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    heading.text = words.chars().take(MAX_HEADING).collect();
                }
                self.end();
            }
            Event::End(end) if ends_block(&end) => self.end(),
            Event::Rule => self.attach(Block { kind: BlockKind::Text, range, children: Vec::new() }),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut self.heading {
                    heading.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut self.heading {
                    heading.push(' ');
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, kind: BlockKind, range: Range<usize>) {
        if self.open.len() < MAX_DEPTH && self.ignored == 0 {
            self.open.push(Block { kind, range, children: Vec::new() });
        } else {
            self.ignored += 1;
        }
    }

    fn end(&mut self) {
        if self.ignored > 0 {
            self.ignored -= 1;
        } else if let Some(block) = self.open.pop() {
            self.attach(block);
        }
    }

    fn attach(&mut self, block: Block) {
        match self.open.last_mut() {
            Some(_) if self.ignored > 0 => {}
            Some(parent) => parent.children.push(block),
            None => self.blocks.push(block),
        }
    }
}

fn kind_of(tag: &Tag<'_>) -> Option<BlockKind> {
    Some(match tag {
        Tag::Paragraph | Tag::TableHead | Tag::TableRow => BlockKind::Text,
        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => BlockKind::Fence,
        Tag::CodeBlock(CodeBlockKind::Indented) | Tag::HtmlBlock => BlockKind::Lines,
        Tag::Table(_) => BlockKind::Table,
        Tag::BlockQuote(_) | Tag::List(_) | Tag::Item | Tag::FootnoteDefinition(_) => BlockKind::Container,
        _ => return None,
    })
}

fn ends_block(end: &TagEnd) -> bool {
    matches!(
        end,
        TagEnd::Paragraph
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::Table
            | TagEnd::BlockQuote(_)
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::FootnoteDefinition
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<(u8, String, bool)> {
        let structure = structure(text, 0..text.len());
        structure.headings.into_iter().map(|h| (h.level, h.text, h.nested)).collect()
    }

    #[test]
    fn headings_lose_their_markup() {
        let text = "# A *b* `c_d` [e](f) ##\n\nTwo\nlines\n---\n\n### x {#anchor}\n\n> ## q\n\n- # l\n\n#no\n\n#\n";
        let expected = [
            (1, "A b c_d e", false),
            (2, "Two lines", false),
            (3, "x", false),
            (2, "q", true),
            (1, "l", true),
            (1, "", false),
        ];
        let expected: Vec<_> = expected.iter().map(|(l, t, n)| (*l, (*t).to_owned(), *n)).collect();
        assert_eq!(headings(text), expected);
    }

    #[test]
    fn a_fence_hides_headings_even_when_unclosed() {
        assert_eq!(headings("```\n# no\n"), []);
        assert_eq!(headings("    # no\n"), []);
    }

    #[test]
    fn thematic_breaks_hide_nothing() {
        let text = "a\n\n---\n\n# b\n\n---\n\nc\n";
        assert_eq!(headings(text).len(), 1);
        assert_eq!(structure(text, 0..text.len()).blocks.len(), 5);
    }

    #[test]
    fn spans_refer_to_the_whole_text() {
        let text = "skipped\n# H\n";
        assert_eq!(structure(text, 8..text.len()).headings[0].start, 8);
    }

    #[test]
    fn depth_is_bounded() {
        let text = format!("{}x\n", "> ".repeat(10_000));
        fn depth(blocks: &[Block]) -> usize {
            blocks.iter().map(|b| 1 + depth(&b.children)).max().unwrap_or(0)
        }
        assert_eq!(depth(&structure(&text, 0..text.len()).blocks), MAX_DEPTH);
    }
}
