// SPDX-License-Identifier: PostgreSQL

//! Fonts: from the codes of a shown string to text and widths.
//!
//! hayro-font knows encodings, glyph names, embedded programs, `ToUnicode` and the predefined CMaps. This module adds what
//! text needs besides: the Unicode of an embedded CJK font without `ToUnicode` (its predefined CMap and the one from
//! CIDs to Unicode), the letters of a ligature, and bounds on every stream before it is decoded. Must not draw.

use super::bounds::Budget;
use hayro_cmap::{BfString, CMap, CMapName, CharacterCollection, CidFamily, load_embedded};
use hayro_font::{CMapResolverFn, Font, FontCache, FontGlyph, FontQuery, FontResolverFn, StandardFont};
use hayro_syntax::object::{Array, Dict, Name, Number, Object, Stream, String as PdfString};
use rag_core::error::Result;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

/// What a glyph without a text of its own is mapped to.
const EMPTY: char = '\u{FFFF}';

/// The fonts of a document, each loaded once.
pub struct Fonts<'a> {
    cache: FontCache<'a>,
    faces: HashMap<usize, Option<Rc<Face<'a>>>>,
    fonts: FontResolverFn,
    cmaps: CMapResolverFn,
}

/// A font.
pub struct Face<'a> {
    font: Font<'a>,
    /// Its own map to Unicode, for what hayro-font does not take from it.
    unicode: Option<CMap>,
    /// Codes to CIDs, and CIDs to Unicode.
    cjk: Option<(CMap, CMap)>,
    /// Whether a code is one byte.
    simple: bool,
    /// Height of the glyphs of a font whose units are its own, for a size of one.
    height: Option<f32>,
}

impl<'a> Fonts<'a> {
    /// No fonts yet.
    pub fn new() -> Self {
        let fonts: FontResolverFn = Arc::new(|query| {
            Some(match query {
                FontQuery::Standard(font) => font.get_font_data(),
                FontQuery::Fallback(query) => query.pick_standard_font().get_font_data(),
            })
        });
        Self { cache: FontCache::new(), faces: HashMap::new(), fonts, cmaps: Arc::new(load_embedded) }
    }

    /// The font of a dictionary.
    pub fn face(&mut self, dict: &Dict<'a>, budget: &mut Budget) -> Result<Option<Rc<Face<'a>>>> {
        // The bytes of a dictionary stay where they are as long as the file is open.
        let key = dict.data().as_ptr() as usize;
        if let Some(face) = self.faces.get(&key) {
            return Ok(face.clone());
        }
        check(dict, budget)?;
        let face = self.load(dict).map(Rc::new);
        self.faces.insert(key, face.clone());
        Ok(face)
    }

    /// The font for text that names none, as other readers take it.
    pub fn fallback(&self) -> Option<Rc<Face<'a>>> {
        let font = self.cache.standard_font(StandardFont::Helvetica, &self.fonts)?;
        Some(Rc::new(Face { font, unicode: None, cjk: None, simple: true, height: None }))
    }

    fn load(&self, dict: &Dict<'a>) -> Option<Face<'a>> {
        let font = self.cache.font(dict, &self.fonts, &self.cmaps)?;
        let subtype = dict.get::<Name<'_>>("Subtype");
        let is = |name: &[u8]| subtype.as_ref().is_some_and(|s| s.as_ref() == name);
        let height = is(b"Type3").then(|| height(dict)).flatten();
        let cjk = if is(b"Type0") { cjk(dict) } else { None };
        Some(Face { font, unicode: unicode(dict), cjk, simple: !is(b"Type0") && !is(b"Type3"), height })
    }
}

impl Face<'_> {
    /// The next code of a string and its length in bytes.
    pub fn code(&self, bytes: &[u8], at: usize) -> (u32, usize) {
        let (code, length) = self.font.read_code(bytes, at);
        (code, length.max(1))
    }

    /// Advance in thousandths of the size: across, and down in a font that is written so.
    pub fn advance(&self, code: u32) -> (f64, f64) {
        let advance = self.font.code_advance(code);
        (advance.x, advance.y)
    }

    /// Whether lines run across the page.
    pub fn is_horizontal(&self) -> bool {
        self.font.is_horizontal()
    }

    /// How high letters are, as a part of the size.
    pub fn height(&self) -> f32 {
        self.height.unwrap_or(1.0)
    }

    /// Appends the text of a code; false when nobody can know it.
    pub fn text(&self, code: u32, into: &mut String) -> bool {
        let said = match self.font.glyph(self.font.map_code(code), code) {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        let ascii = || {
            let printable = self.simple && (0x20..0x7F).contains(&code);
            char::from_u32(code).filter(|_| printable).map(BfString::Char)
        };
        let said = said.filter(|text| !is_nothing(text)).or_else(|| self.by_map(code));
        match said.or_else(|| self.by_cid(code)).or_else(ascii) {
            Some(BfString::Char(EMPTY)) => {}
            Some(BfString::Char(c)) => push(c, into),
            Some(BfString::String(text)) => text.chars().for_each(|c| push(c, into)),
            None => return false,
        }
        true
    }

    /// Some writers put CIDs into the map, which then are characters.
    fn by_map(&self, code: u32) -> Option<BfString> {
        let map = self.unicode.as_ref()?;
        let cid = || (1..=4).find_map(|length| map.lookup_cid_code(code, length)).and_then(char::from_u32);
        map.lookup_bf_string(code).filter(|text| *text != BfString::Char('\0')).or_else(|| cid().map(BfString::Char))
    }

    fn by_cid(&self, code: u32) -> Option<BfString> {
        let (codes, unicode) = self.cjk.as_ref()?;
        let cid = (1..=4).find_map(|length| codes.lookup_cid_code(code, length))?;
        unicode.lookup_bf_string(cid)
    }
}

/// Characters that stand for no character.
fn is_nothing(text: &BfString) -> bool {
    matches!(text, BfString::Char('\0' | '\u{FFFD}' | '\u{FFFF}'))
        || matches!(text, BfString::String(s) if s.is_empty())
}

/// A text that stands for glyphs, as the glyphs themselves would be read.
pub fn readable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push(c, &mut out));
    out
}

/// Appends a character; a ligature or a presentation form as the letters it stands for.
fn push(c: char, into: &mut String) {
    match c {
        '\u{FB00}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' => into.extend(std::iter::once(c).nfkc()),
        // Radicals, which some fonts name instead of the ideograph.
        '\u{2E80}'..='\u{2FDF}' => into.extend(std::iter::once(c).nfkc()),
        '\u{A0}' | '\t' | '\r' | '\n' => into.push(' '),
        '\u{AD}' => into.push('\u{AD}'),
        c if c.is_control() || c == '\u{FEFF}' || c == '\u{200B}' => {}
        c => into.push(c),
    }
}

/// Height of the glyphs of a font with a matrix of its own.
fn height(dict: &Dict<'_>) -> Option<f32> {
    let matrix = dict.get::<[f64; 6]>("FontMatrix")?;
    let bbox = dict.get::<[f64; 4]>("FontBBox")?;
    let height = ((bbox[3] - bbox[1]) * matrix[3]).abs() as f32;
    (height.is_finite() && height > 0.0).then_some(height)
}

/// The map to Unicode of a font. Glyphs whose text another glyph carries are mapped to nothing, which the parser takes for
/// damage.
fn unicode(dict: &Dict<'_>) -> Option<CMap> {
    let map = dict.get::<Stream<'_>>("ToUnicode")?.decoded_data().ok()?;
    let mut mended = Vec::with_capacity(map.len());
    for byte in map.iter() {
        if *byte == b'>' && mended.ends_with(b"<") {
            mended.extend(b"FFFF");
        }
        mended.push(*byte);
    }
    CMap::parse(&mended, load_embedded)
}

/// The maps of a font with a predefined CMap and without `ToUnicode`.
fn cjk(dict: &Dict<'_>) -> Option<(CMap, CMap)> {
    if dict.contains_key("ToUnicode") {
        return None;
    }
    let codes = match dict.get::<Object<'_>>("Encoding")? {
        Object::Name(name) => match CMapName::from_bytes(name.as_ref()) {
            CMapName::IdentityH => CMap::identity_h(),
            CMapName::IdentityV => CMap::identity_v(),
            name => CMap::parse(load_embedded(name)?, load_embedded)?,
        },
        Object::Stream(stream) => CMap::parse(&stream.decoded_data().ok()?, load_embedded)?,
        _ => return None,
    };
    let said = codes.metadata().character_collection.clone().filter(|c| c.family != CidFamily::AdobeIdentity);
    let collection = said.or_else(|| {
        let descendant = dict.get::<Array<'_>>("DescendantFonts")?.iter::<Dict<'_>>().next()?;
        let info = descendant.get::<Dict<'_>>("CIDSystemInfo")?;
        let part = |key: &str| info.get::<PdfString<'_>>(key);
        let family = CidFamily::from_registry_ordering(part("Registry")?.as_ref(), part("Ordering")?.as_ref());
        let supplement = info.get::<Number>("Supplement").map_or(0, |n| n.as_i64() as i32);
        Some(CharacterCollection { family, supplement })
    })?;
    let unicode = CMap::parse(load_embedded(collection.family.ucs2_cmap()?)?, load_embedded)?;
    Some((codes, unicode))
}

/// Measures every stream that loading a font decodes.
fn check(dict: &Dict<'_>, budget: &mut Budget) -> Result<()> {
    let descendant = dict.get::<Array<'_>>("DescendantFonts").and_then(|fonts| fonts.iter::<Dict<'_>>().next());
    for font in std::iter::once(dict).chain(&descendant) {
        for key in ["ToUnicode", "Encoding", "CIDToGIDMap"] {
            if let Some(stream) = font.get::<Stream<'_>>(key) {
                budget.check(&stream)?;
            }
        }
        let Some(descriptor) = font.get::<Dict<'_>>("FontDescriptor") else { continue };
        for key in ["FontFile", "FontFile2", "FontFile3"] {
            if let Some(stream) = descriptor.get::<Stream<'_>>(key) {
                budget.check(&stream)?;
            }
        }
    }
    Ok(())
}
