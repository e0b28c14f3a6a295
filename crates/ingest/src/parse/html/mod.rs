// SPDX-License-Identifier: PostgreSQL

//! HTML: from the bytes of a page to Markdown, its structure, and what the page says about itself.
//!
//! ```text
//!  bytes ── encoding ──▶ text ── tree ──▶ elements ── article (what is read) ── render ──▶ Markdown ── markdown::structure
//! ```
//!
//! What is stored is the Markdown, because it is what a reader and a model can read, and headings, lists, code and tables
//! are then cut as in any other Markdown. Fetches nothing: whoever has fetched a page calls [`page`]. Where the site has
//! Markdown of its own of the page, that is stored ([`own`]), and the page still says what it is.

mod about;
mod article;
pub mod encoding;
mod own;
mod render;
mod table;
mod tags;
mod tree;

use super::{Parsed, markdown, metadata};
use article::Content;
use rag_core::error::{Error, Kind, Result};
use rag_core::source::Rendition;
use render::Renderer;
use serde_json::Map;
use tree::{NONE, Tree};
use url::Url;

/// How much of a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// All of its main element or body but navigation.
    Whole,
    /// Its article, without what surrounds it.
    Article,
}

/// What is known of a page besides its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Served<'a> {
    /// What its server said of it.
    pub content_type: Option<&'a str>,
    /// Where it was found in the end.
    pub url: Option<&'a Url>,
    /// What its site has of it in another form.
    pub rendition: Option<&'a Rendition>,
}

/// Beginnings of files that are no page, whatever their server says, and what they are.
const OTHERS: &[(&[u8], &str)] = &[
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "archive"),
    (b"\x1F\x8B\x08", "archive"),
    (b"\x89PNG", "image"),
    (b"\xFF\xD8\xFF", "image"),
    (b"GIF8", "image"),
];

/// Fails for what is plainly something else than a page.
fn is_page(bytes: &[u8]) -> Result<()> {
    let Some((_, what)) = OTHERS.iter().find(|(begin, _)| bytes.starts_with(begin)) else { return Ok(()) };
    let error = Error::new(Kind::BadContent, format!("content is no page but of kind \"{what}\""));
    Err(match *what {
        "pdf" => error.with_hint("Add it as a source of kind \"pdf\"."),
        _ => error,
    })
}

/// Parses a page.
pub fn page(bytes: &[u8], served: Served<'_>, reading: Reading) -> Result<Parsed> {
    is_page(bytes)?;
    let Served { content_type, url, rendition } = served;
    let decoded = encoding::decode(bytes, content_type);
    let xml = decoded.text.trim_start().starts_with("<?xml");
    let tree = tree::build(&decoded.text, xml)?;
    drop(decoded.text);
    let about = about::read(&tree, url);
    let content = match reading {
        Reading::Whole => article::whole(&tree),
        Reading::Article => article::article(&tree),
    };
    let text = render(&tree, about.base.as_ref(), &content);
    let own = rendition.and_then(|rendition| own::markdown(rendition, text.len()));
    if text.is_empty() && own.is_none() {
        return Err(Error::new(Kind::BadContent, "html has no readable content")
            .with_detail("Nothing is left of it without programs, styles and navigation.")
            .with_hint("A page that a program fills in a browser has to be saved from there."));
    }
    let mut parsed = own.unwrap_or_else(|| Parsed {
        structure: markdown::structure(&text, 0..text.len()),
        text,
        repaired_bytes: decoded.repaired_bytes,
        media_type: "text/html".to_owned(),
        ..Parsed::default()
    });
    parsed.role = about::role(&about);
    let title = about::title(&about, &tree).or_else(|| parsed.title.take()).or_else(|| parsed.structure.title());
    let published = about
        .published_at
        .or_else(|| parsed.published_at.take())
        .or_else(|| (reading == Reading::Article).then(|| first_time(&tree, &content))?);
    let mut known = Map::new();
    known.extend(title.map(|title| ("title".to_owned(), title.into())));
    known.extend(about.language.map(|language| ("language".to_owned(), language.into())));
    known.extend(published.map(|published| ("published_at".to_owned(), published.into())));
    known.extend(about.fields);
    metadata::describe(&mut parsed, known);
    Ok(parsed)
}

/// The Markdown of some HTML that stands in something else: a post of a forum, an entry of a feed. It has no head and no
/// surroundings, so nothing is looked for and nothing but programs, styles and what is hidden left out; links are relative to
/// `base`, if that is known.
pub fn snippet(html: &str, base: Option<&Url>) -> Result<String> {
    let tree = tree::build(html, false)?;
    let mut markdown = render(&tree, base, &article::everything(&tree));
    markdown.truncate(markdown.trim_end().len());
    Ok(markdown)
}

/// The words of some HTML, without any markup.
pub fn words(html: &str) -> Result<String> {
    Ok(tree::build(html, false)?.words(0))
}

/// The Markdown of a page of XML that is a part of something else; `navigation` if that is what it is there for.
pub fn fragment(bytes: &[u8], navigation: bool) -> Result<String> {
    let tree = tree::build(&encoding::decode(bytes, None).text, true)?;
    let content = if navigation { article::navigation(&tree) } else { article::whole(&tree) };
    Ok(render(&tree, None, &content))
}

fn render(tree: &Tree, base: Option<&Url>, content: &Content) -> String {
    let mut renderer = Renderer::new(tree, base, &content.removed);
    content.roots.iter().for_each(|root| renderer.node(*root));
    renderer.finish()
}

/// The first time that an article names in its own markup; most often that of its publication.
fn first_time(tree: &Tree, content: &Content) -> Option<String> {
    let mut inside = vec![false; tree.nodes.len()];
    content.roots.iter().for_each(|root| inside[*root as usize] = true);
    // A child comes after its parent.
    for (at, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.parent != NONE) {
        inside[at] |= inside[node.parent as usize];
    }
    let times = tree.elements().filter(|node| tree.name(*node) == "time");
    times
        .filter(|node| inside[*node as usize])
        .take(100)
        .find_map(|node| metadata::rfc3339(tree.attribute(node, "datetime")?))
}

#[cfg(test)]
mod tests;
