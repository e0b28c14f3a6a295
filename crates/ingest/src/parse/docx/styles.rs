// SPDX-License-Identifier: PostgreSQL

//! What the styles and numberings of a Word document mean: headings, code, lists.
//!
//! Names of styles are translated in a document, their outline levels are not; so a style is a heading by its level,
//! its own or that of the style it is based on, and by its name only where it has none.

use crate::parse::package::xml::{Element, Tree};
use std::collections::HashMap;

/// The deepest level of a list; Word has nine. Each level is indented beneath the one above.
const MAX_LEVEL: usize = 8;

/// Longest chain of styles that are based on one another.
const MAX_CHAIN: usize = 20;

/// What a style says of its paragraphs.
#[derive(Debug, Clone, Default)]
struct Style {
    based_on: Option<String>,
    /// Lower case; the names of built-in styles are English in every language.
    name: String,
    outline: Option<u8>,
    numbering: Option<(Option<String>, usize)>,
}

/// The styles of a document.
#[derive(Debug, Default)]
pub struct Styles {
    styles: HashMap<String, Style>,
    /// Language of text whose language is not said.
    pub language: Option<String>,
}

/// What a paragraph is by its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A heading of a level from 1.
    Heading(u8),
    /// The title of the document.
    Title,
    /// A line of code.
    Code,
    /// A line of a table of contents.
    Contents,
}

/// An attribute `val` of an element inside.
pub fn value<'t>(element: Element<'t>, name: &str) -> Option<&'t str> {
    element.child(name)?.attribute("val")
}

/// The outline level of a paragraph's properties; level 9 is body text.
pub fn outline(properties: Element<'_>) -> Option<u8> {
    value(properties, "outlineLvl")?.parse().ok().filter(|level| *level <= 9)
}

/// The numbering of a paragraph's properties: its list, if it names one, and level.
pub fn numbering(properties: Element<'_>) -> Option<(Option<String>, usize)> {
    let numbering = properties.child("numPr")?;
    let level = value(numbering, "ilvl").and_then(|level| level.parse::<usize>().ok()).unwrap_or(0);
    Some((value(numbering, "numId").map(str::to_owned), level.min(MAX_LEVEL)))
}

impl Styles {
    /// Reads the member with styles.
    pub fn read(tree: &Tree) -> Self {
        let mut styles = Self::default();
        for element in tree.all("style") {
            let Some(id) = element.attribute("styleId") else { continue };
            let properties = element.child("pPr");
            let style = Style {
                based_on: value(element, "basedOn").map(str::to_owned),
                name: value(element, "name").unwrap_or_default().to_lowercase(),
                outline: properties.and_then(outline),
                numbering: properties.and_then(numbering),
            };
            styles.styles.insert(id.to_owned(), style);
        }
        let defaults = tree.all("rPrDefault").next().and_then(|defaults| defaults.child("rPr"));
        styles.language = defaults.and_then(|run| value(run, "lang")).map(str::to_owned);
        styles
    }

    /// A style and those it is based on.
    fn chain<'s>(&'s self, id: &'s str) -> impl Iterator<Item = &'s Style> {
        let first = self.styles.get(id);
        std::iter::successors(first, |style| self.styles.get(style.based_on.as_deref()?)).take(MAX_CHAIN)
    }

    /// What the style `id` makes of a paragraph.
    pub fn role(&self, id: &str) -> Option<Role> {
        let outline = self.chain(id).find_map(|style| style.outline);
        match outline {
            Some(level @ 0..=8) => return Some(Role::Heading(level + 1)),
            Some(_) => return None,
            None => {}
        }
        // A document without the definition of a style still names it.
        let own = id.to_lowercase();
        let named = self.chain(id).map(|style| style.name.as_str());
        named.chain(std::iter::once(own.as_str())).find_map(|name| {
            if name == "title" {
                return Some(Role::Title);
            }
            if name.starts_with("toc ") || name == "toc heading" {
                return Some(Role::Contents);
            }
            if ["code", "preformatted", "source", "listing", "verbatim"].iter().any(|word| name.contains(word)) {
                return Some(Role::Code);
            }
            let level = name.strip_prefix("heading")?.trim().parse().ok()?;
            (1..=9).contains(&level).then_some(Role::Heading(level))
        })
    }

    /// The numbering that the style `id` gives to a paragraph.
    pub fn numbering(&self, id: &str) -> Option<(Option<String>, usize)> {
        self.chain(id).find_map(|style| style.numbering.clone())
    }
}

/// The numberings of a document.
#[derive(Debug, Default)]
pub struct Numberings {
    /// For each list and level whether it is numbered, and from where.
    levels: HashMap<(String, usize), (bool, u32)>,
    /// The number that the next item of a list and level has.
    next: HashMap<(String, usize), u32>,
}

impl Numberings {
    /// Reads the member with numberings.
    pub fn read(tree: &Tree) -> Self {
        let mut numberings = Self::default();
        let mut kinds: HashMap<&str, Vec<(usize, bool, u32)>> = HashMap::new();
        for kind in tree.all("abstractNum") {
            let levels = kind.children().filter(|child| child.name() == "lvl").filter_map(level).collect();
            kinds.insert(kind.attribute("abstractNumId").unwrap_or_default(), levels);
        }
        for list in tree.all("num") {
            let (Some(id), Some(kind)) = (list.attribute("numId"), value(list, "abstractNumId")) else { continue };
            for (level, numbered, start) in kinds.get(kind).into_iter().flatten().take(9) {
                numberings.levels.insert((id.to_owned(), *level), (*numbered, *start));
            }
            for change in list.children().filter(|child| child.name() == "lvlOverride").take(9) {
                let Some(at) = change.attribute("ilvl").and_then(|at| at.parse::<usize>().ok()) else { continue };
                if let Some((_, numbered, start)) = change.child("lvl").and_then(level) {
                    numberings.levels.insert((id.to_owned(), at), (numbered, start));
                }
                let start = value(change, "startOverride").and_then(|start| start.parse().ok());
                if let (Some(start), Some(level)) = (start, numberings.levels.get_mut(&(id.to_owned(), at))) {
                    level.1 = start;
                }
            }
        }
        numberings
    }

    /// The number of the next item of a list at a level; `None` when it has a bullet.
    pub fn next(&mut self, list: &str, level: usize) -> Option<u32> {
        let key = (list.to_owned(), level);
        let (numbered, start) = self.levels.get(&key).copied().unwrap_or((false, 1));
        for deeper in level + 1..=MAX_LEVEL {
            self.next.remove(&(list.to_owned(), deeper));
        }
        let next = self.next.entry(key).or_insert(start);
        let number = *next;
        *next = next.saturating_add(1);
        numbered.then_some(number)
    }
}

/// The number of a level, whether its items are numbered, and from where.
fn level(element: Element<'_>) -> Option<(usize, bool, u32)> {
    let at = element.attribute("ilvl")?.parse().ok()?;
    let numbered = !matches!(value(element, "numFmt"), Some("bullet" | "none") | None);
    Some((at, numbered, value(element, "start").and_then(|start| start.parse().ok()).unwrap_or(1)))
}
