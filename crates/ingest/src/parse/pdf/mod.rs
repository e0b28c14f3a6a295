// SPDX-License-Identifier: PostgreSQL

//! PDF.
//!
//! ```text
//!  bytes ── bounds ── hayro-syntax (objects, encryption, repair) ── content (operators; font) ──▶ glyphs with places
//!  glyphs ── words, layout (columns: order of reading) ──▶ lines ── furniture ── outline, roles ── flow ──▶ text
//! ```
//!
//! hayro-syntax reads the objects because it opens what writers get wrong, decrypts, and forbids nesting beyond a bound;
//! hayro-font because it knows every kind of font. Neither has a layout: words, columns, paragraphs are ours.
//! What is found by looking (columns, furniture, roles) is left as it is where the look is not plain.
//! A document of pages without a letter is refused, because nobody could find it and nobody would know.

mod bounds;
mod columns;
mod content;
mod flow;
mod font;
mod furniture;
mod info;
mod layout;
mod outline;
mod owner;
mod parts;
mod roles;
mod words;

use super::{Page, Parsed};
use bounds::Budget;
use hayro_syntax::object::{Dict, ObjectIdentifier, String as PdfString};
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::{Secret, SourceOptions};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use words::Line;

/// Parses a PDF.
pub fn parse(bytes: &[u8], options: &SourceOptions) -> Result<Parsed> {
    // The libraries are young; what one of them did not expect is a bad document and not a dead worker.
    catch_unwind(AssertUnwindSafe(|| read(bytes, options)))
        .unwrap_or_else(|_| Err(bad("PDF could not be read: its objects are not what they claim to be")))
}

fn bad(message: &str) -> Error {
    Error::new(Kind::BadContent, message)
}

fn open(bytes: &[u8], password: Option<&str>) -> Result<Pdf> {
    let password_needed = || match password {
        None => bad("PDF is encrypted and needs a password")
            .with_hint("Give it in the source's options: {\"password\": \"...\"}."),
        Some(_) => bad("PDF is encrypted and option \"password\" is not its password")
            .with_hint("Correct it in the source's options: {\"password\": \"...\"}."),
    };
    let opened = Pdf::new(bytes.to_vec());
    let opened = match (opened, password) {
        (Err(LoadPdfError::Decryption(DecryptionError::PasswordProtected)), Some(password)) => {
            let opened = Pdf::new_with_password(bytes.to_vec(), password);
            match (&opened, owner::user_password(bytes, password)) {
                (Err(LoadPdfError::Decryption(_)), Some(user)) => Pdf::new_with_password(bytes.to_vec(), &user),
                _ => opened,
            }
        }
        (opened, _) => opened,
    };
    opened.map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => password_needed(),
        LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm) => {
            Error::unsupported("PDF is encrypted in a way that is not supported")
        }
        LoadPdfError::Decryption(_) => bad("PDF is encrypted and what it says about that is damaged"),
        LoadPdfError::Invalid => bad("document is not a PDF that can be read")
            .with_detail("Neither its table of objects nor a search for objects led to pages."),
    })
}

fn read(bytes: &[u8], options: &SourceOptions) -> Result<Parsed> {
    let mut budget = Budget::default();
    budget.open(bytes)?;
    let pdf = open(bytes, options.password.as_ref().map(Secret::reveal))?;
    let max_pages = options.limits.max_pages;
    if pdf.pages().len() as u64 > max_pages {
        return Err(bounds::limit(format!("{} pages are more than max_pages {max_pages}", pdf.pages().len()))
            .with_hint("Raise it in the source's options: {\"limits\": {\"max_pages\": ...}}."));
    }
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let said = info::read(&pdf, catalog.as_ref(), &mut budget)?;
    let (mut pages, heights) = lines(&pdf, &mut budget)?;
    let numbers: HashMap<ObjectIdentifier, usize> =
        pdf.pages().iter().enumerate().filter_map(|(at, page)| Some((page.raw().obj_id()?, at))).collect();
    let entries = catalog.as_ref().map(|catalog| outline::entries(pdf.xref(), catalog, &numbers)).unwrap_or_default();
    furniture::remove(&mut pages, &heights, &entries);
    let first = entries.first().map(|entry| entry.title.clone());
    let sections = outline::sections(entries, &pages);
    let roles = roles::mark(&pages, &sections);
    let marks = parts::marks(&sections, &roles);
    let flow = flow::flow(&pages, &marks);
    let mut structure = parts::structure(&flow, &sections, &marks);
    structure.pages = page_starts(&flow);
    let language = catalog.as_ref().and_then(|catalog| catalog.get::<PdfString<'_>>("Lang"));
    Ok(Parsed {
        text: flow.text,
        structure,
        media_type: "application/pdf".to_owned(),
        title: said.title.or(first),
        language: language.and_then(|language| info::tidy(info::string(language.as_bytes()))),
        published_at: said.created,
        metadata: said.metadata,
        ..Parsed::default()
    })
}

/// The lines of all pages, and the heights of these.
fn lines(pdf: &Pdf, budget: &mut Budget) -> Result<(Vec<Vec<Line>>, Vec<f32>)> {
    let mut fonts = font::Fonts::new();
    let (mut pages, mut heights) = (Vec::new(), Vec::new());
    let (mut known, mut unknown) = (0, 0);
    for page in pdf.pages().iter() {
        let page = content::page(page, &mut fonts, budget)?;
        known += page.glyphs.iter().filter(|glyph| !page.text[glyph.text.clone()].trim().is_empty()).count();
        unknown += page.unknown;
        heights.push(page.height);
        pages.push(layout::lines(&page));
    }
    if known > 0 || pages.is_empty() {
        return Ok((pages, heights));
    }
    let error = bad(&format!("PDF has no text layer: 0 of {} pages have text", pages.len()));
    Err(match unknown {
        0 => error.with_detail("Its pages hold images or nothing."),
        _ => error.with_detail(format!("Its fonts do not say what the {unknown} glyph(s) shown mean.")),
    }
    .with_hint("Run optical character recognition over it, and add the result."))
}

/// Where pages begin.
fn page_starts(flow: &flow::Flow) -> Vec<Page> {
    let mut pages = Vec::with_capacity(flow.lines.len());
    // A page without text begins where the next one does.
    let mut start = flow.text.len();
    for (index, lines) in flow.lines.iter().enumerate().rev() {
        start = lines.first().map_or(start, |line| line.start);
        pages.push(Page { start, number: u32::try_from(index + 1).unwrap_or(u32::MAX) });
    }
    pages.reverse();
    pages
}
