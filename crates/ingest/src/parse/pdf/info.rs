// SPDX-License-Identifier: PostgreSQL

//! What a PDF says about itself: title, author, dates, and the strings all of this is written in.
//!
//! The information dictionary is asked first and the XMP packet where it is silent, because writers keep the first in
//! order more often. An empty title, or one that is the name of the file it was made from, is none.

use super::bounds::Budget;
use crate::parse::metadata::rfc3339;
use hayro_syntax::Pdf;
use hayro_syntax::object::{DateTime, Dict, Stream};
use rag_core::error::Result;
use serde_json::{Map, Value};

/// Characters of a string that is kept.
const MAX_STRING: usize = 1000;

/// PDFDocEncoding where it differs from Latin-1 (ISO 32000-1, D.2): 0x18 to 0x1F and 0x80 to 0xA0.
const LOW: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
const HIGH: [char; 33] = [
    '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ', 'ﬂ', 'Ł', 'Œ',
    'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{FFFD}', '€',
];

/// Endings of the names of files that titles are made from.
const FILES: &[&str] =
    &[".doc", ".docx", ".dvi", ".tex", ".ps", ".indd", ".qxd", ".odt", ".rtf", ".ppt", ".pptx", ".pdf"];

/// What is known about a document.
#[derive(Debug, Default)]
pub struct Info {
    /// Title.
    pub title: Option<String>,
    /// When it was made, in RFC 3339.
    pub created: Option<String>,
    /// Everything else.
    pub metadata: Map<String, Value>,
}

/// Reads what a document says about itself.
pub fn read(pdf: &Pdf, catalog: Option<&Dict<'_>>, budget: &mut Budget) -> Result<Info> {
    let said = pdf.metadata();
    let packet = match catalog.and_then(|catalog| catalog.get::<Stream<'_>>("Metadata")) {
        Some(stream) => budget.decode(&stream)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        None => None,
    };
    let xmp = |name: &str| packet.as_deref().and_then(|packet| element(packet, name));
    let xmp_time = |name: &str| xmp(name).as_deref().and_then(rfc3339);
    let text = |bytes: &Option<Box<[u8]>>| bytes.as_deref().map(string).and_then(tidy);
    let title = text(&said.title).filter(|t| is_title(t)).or_else(|| xmp("dc:title").filter(|t| is_title(t)));
    let created = said.creation_date.as_ref().and_then(time).or_else(|| xmp_time("xmp:CreateDate"));
    let modified = said.modification_date.as_ref().and_then(time).or_else(|| xmp_time("xmp:ModifyDate"));
    let mut metadata = Map::new();
    for (key, value) in [
        ("author", text(&said.author).or_else(|| xmp("dc:creator"))),
        ("subject", text(&said.subject)),
        ("keywords", text(&said.keywords)),
        ("creator", text(&said.creator)),
        ("producer", text(&said.producer)),
        ("created", created.clone()),
        ("modified", modified),
    ] {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), Value::String(value));
        }
    }
    Ok(Info { title, created, metadata })
}

/// The text of a string that is no part of a page.
pub fn string(bytes: &[u8]) -> String {
    match bytes {
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| document_encoding(*byte)).collect(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16_lossy(&units)
}

fn document_encoding(byte: u8) -> char {
    match byte {
        0x18..=0x1F => LOW[usize::from(byte - 0x18)],
        0x80..=0xA0 => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// The words of a text; none when there are none.
pub fn tidy(text: String) -> Option<String> {
    let visible = |c: char| (c.is_whitespace() || !c.is_control()) && c != '\u{FEFF}';
    let text: String = text.chars().filter(|c| visible(*c)).take(MAX_STRING).collect();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then_some(words)
}

fn is_title(title: &str) -> bool {
    let lower = title.to_lowercase();
    let file = !lower.contains(' ') && FILES.iter().any(|ending| lower.ends_with(ending));
    !file && !lower.starts_with("microsoft word - ") && !lower.starts_with("untitled") && lower != "title"
}

/// A date in RFC 3339, if there is such a date.
fn time(date: &DateTime) -> Option<String> {
    let said = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{:+03}:{:02}",
        date.year,
        date.month,
        date.day,
        date.hour,
        date.minute,
        date.second,
        date.utc_offset_hour,
        date.utc_offset_minute
    );
    rfc3339(&said)
}

/// The text of an element of an XMP packet, or of the first item of the list in it.
fn element(packet: &str, name: &str) -> Option<String> {
    let from = packet.find(&format!("<{name}"))?;
    let inside = &packet[from..];
    let inside = &inside[inside.find('>')? + 1..];
    let inside = &inside[..inside.find(&format!("</{name}>"))?];
    let item = match inside.find("<rdf:li") {
        Some(item) => {
            let item = &inside[item..];
            let item = &item[item.find('>')? + 1..];
            &item[..item.find('<')?]
        }
        None => inside,
    };
    if item.contains('<') {
        return None;
    }
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    tidy(plain.iter().fold(item.to_owned(), |text, (from, to)| text.replace(from, to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_all_encodings() {
        assert_eq!(string(b"\xFE\xFF\x00A\x20\xAC"), "A€");
        assert_eq!(string(b"\xFF\xFEA\x00\xAC\x20"), "A€");
        assert_eq!(string("\u{FEFF}ä".as_bytes()), "ä");
        assert_eq!(string(b"\x93fi \xA0 \xE4 \x18"), "ﬁfi € ä ˘");
    }

    #[test]
    fn a_title_is_found_in_a_packet() {
        let packet = "<dc:title><rdf:Alt><rdf:li xml:lang='x-default'>A &amp; B</rdf:li></rdf:Alt></dc:title>";
        assert_eq!(element(packet, "dc:title").as_deref(), Some("A & B"));
        assert_eq!(
            element("<xmp:CreateDate>2020-01-01</xmp:CreateDate>", "xmp:CreateDate").as_deref(),
            Some("2020-01-01")
        );
        assert_eq!(element("<dc:title>", "dc:title"), None);
    }

    #[test]
    fn the_name_of_a_file_is_no_title() {
        assert!(!is_title("Microsoft Word - thesis.doc"));
        assert!(!is_title("paper.dvi"));
        assert!(is_title("How to write a paper.doc and why"));
    }
}
