// SPDX-License-Identifier: PostgreSQL

//! Word documents (.docx): to Markdown, and what their properties say.
//!
//! The kept crates for the format are writers, or read into models without what decides structure here (outline levels of
//! styles, numberings, tracked changes), so its XML is read as it is. What is stored is the Markdown.

mod body;
mod styles;

use super::package::{Package, relative, xml};
use super::{Parsed, markdown, metadata};
use body::{Around, Writer};
use rag_core::error::{Error, Kind, Result};
use serde_json::Map;
use std::collections::HashMap;
use styles::{Numberings, Styles};

const MEDIA_TYPE: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Parses a Word document.
pub fn parse(bytes: &[u8]) -> Result<Parsed> {
    let mut package = Package::open(bytes, "docx")?;
    let main = main_member(&mut package)?;
    let relations = Relations::of(&mut package, &main)?;
    let document = package.need(&main)?;
    let mut part = |kind: &str, usual: &str| {
        let name = relations.parts.get(kind).cloned().unwrap_or_else(|| relative(&main, usual));
        package.xml(&name)
    };
    let styles = part("styles", "styles.xml")?.map(|tree| Styles::read(&tree)).unwrap_or_default();
    let numberings = part("numbering", "numbering.xml")?.map(|tree| Numberings::read(&tree)).unwrap_or_default();
    let (footnotes, endnotes) = (part("footnotes", "footnotes.xml")?, part("endnotes", "endnotes.xml")?);
    let around =
        Around { styles: &styles, links: &relations.links, footnotes: footnotes.as_ref(), endnotes: endnotes.as_ref() };
    let mut writer = Writer::new(&around, numberings);
    document.all("body").take(1).for_each(|body| writer.blocks(body));
    let title = writer.title.take();
    let text = writer.finish();
    if text.is_empty() {
        return Err(Error::new(Kind::BadContent, "docx has no text")
            .with_detail("It may hold pictures only, and nothing here reads text in pictures."));
    }
    let mut parsed = Parsed {
        structure: markdown::structure(&text, 0..text.len()),
        text,
        media_type: MEDIA_TYPE.to_owned(),
        ..Parsed::default()
    };
    let mut known = properties(&mut package)?;
    if !known.contains_key("title")
        && let Some(title) = title.or_else(|| parsed.structure.title())
    {
        known.insert("title".to_owned(), title.into());
    }
    if !known.contains_key("language")
        && let Some(language) = styles.language
    {
        known.insert("language".to_owned(), language.into());
    }
    metadata::describe(&mut parsed, known);
    Ok(parsed)
}

/// The member that holds the text.
fn main_member(package: &mut Package<'_>) -> Result<String> {
    let Some(tree) = package.xml("_rels/.rels")? else { return Ok("word/document.xml".to_owned()) };
    let mut relations = tree.all("Relationship");
    let main = relations.find(|r| r.attribute("Type").is_some_and(|kind| kind.ends_with("/officeDocument")));
    let target = main.and_then(|main| main.attribute("Target"));
    Ok(target.map_or_else(|| "word/document.xml".to_owned(), |target| relative("", target)))
}

/// What a member refers to.
#[derive(Default)]
struct Relations {
    /// Other members by what they are.
    parts: HashMap<String, String>,
    /// Addresses by their id.
    links: HashMap<String, String>,
}

impl Relations {
    fn of(package: &mut Package<'_>, member: &str) -> Result<Self> {
        let (folder, name) = member.rsplit_once('/').unwrap_or(("", member));
        let slash = if folder.is_empty() { "" } else { "/" };
        let mut relations = Self::default();
        let Some(tree) = package.xml(&format!("{folder}{slash}_rels/{name}.rels"))? else { return Ok(relations) };
        for relation in tree.all("Relationship") {
            let (Some(id), Some(kind), Some(target)) =
                (relation.attribute("Id"), relation.attribute("Type"), relation.attribute("Target"))
            else {
                continue;
            };
            let kind = kind.rsplit('/').next().unwrap_or_default();
            if relation.attribute("TargetMode") != Some("External") {
                relations.parts.insert(kind.to_owned(), relative(member, target));
            } else if kind == "hyperlink" && is_address(target) {
                relations.links.insert(id.to_owned(), target.to_owned());
            }
        }
        Ok(relations)
    }
}

fn is_address(target: &str) -> bool {
    ["http:", "https:", "mailto:", "ftp:"].iter().any(|scheme| target.starts_with(scheme)) && target.len() <= 2000
}

/// Title, author, language and times.
fn properties(package: &mut Package<'_>) -> Result<Map<String, serde_json::Value>> {
    let mut known = Map::new();
    let Some(tree) = package.xml("docProps/core.xml")? else { return Ok(known) };
    for (name, key) in [
        ("title", "title"),
        ("creator", "author"),
        ("language", "language"),
        ("subject", "subject"),
        ("keywords", "keywords"),
        ("description", "description"),
        ("created", "created_at"),
        ("modified", "modified_at"),
    ] {
        let Some(text) = tree.all(name).next().and_then(xml::Element::words) else { continue };
        let value =
            if key.ends_with("_at") { metadata::rfc3339(&text) } else { Some(text.chars().take(1000).collect()) };
        known.extend(value.map(|value| (key.to_owned(), value.into())));
    }
    Ok(known)
}
