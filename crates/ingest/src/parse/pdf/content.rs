// SPDX-License-Identifier: PostgreSQL

//! Content streams: from the operators of a page to glyphs with places.
//!
//! Follows what moves text (matrices, spacing, fonts, forms within the page) and nothing that paints. What the file marks
//! says more than what it shows: the text that a marked passage stands for (`ActualText`) replaces its glyphs, and a
//! passage marked as pagination (a running header) is left out. Recursion over forms has a fixed depth. Must not know
//! lines or words.

use super::bounds::Budget;
use super::font::{Face, Fonts, readable};
use super::info;
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::{Array, Dict, Name, Number, Object, Stream, String as PdfString};
use hayro_syntax::page::{Page, Resources};
use rag_core::error::Result;
use std::ops::Range;
use std::rc::Rc;

/// Forms within forms; deeper ones are left out.
const MAX_DEPTH: usize = 12;

/// Saved states; deeper ones are not kept.
const MAX_STATES: usize = 512;

/// How far outside of the page a glyph may begin, in points; what is further out nobody sees.
const MARGIN: f32 = 2.0;

/// A glyph on a page whose upright corner at the top left is zero; y grows downwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Glyph {
    /// Where it begins on its base line.
    pub from: (f32, f32),
    /// Where the next one would begin.
    pub to: (f32, f32),
    /// Size of the font.
    pub size: f32,
    /// Its text in [`PageText::text`].
    pub text: Range<usize>,
}

/// The glyphs of a page in the order they are shown in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageText {
    /// Glyphs.
    pub glyphs: Vec<Glyph>,
    /// Their text, one after the other.
    pub text: String,
    /// Width of the page.
    pub width: f32,
    /// Height of the page.
    pub height: f32,
    /// Glyphs of which nobody can know the text.
    pub unknown: usize,
}

/// A transformation, as in the specification: a row vector times a matrix.
#[derive(Debug, Clone, Copy)]
struct Matrix([f64; 6]);

impl Matrix {
    const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    fn of(numbers: [&Number; 6]) -> Self {
        Self(numbers.map(Number::as_f64))
    }

    fn moved(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// First `self`, then `next`.
    fn then(self, next: Self) -> Self {
        let (a, b) = (self.0, next.0);
        Self([
            a[0] * b[0] + a[1] * b[2],
            a[0] * b[1] + a[1] * b[3],
            a[2] * b[0] + a[3] * b[2],
            a[2] * b[1] + a[3] * b[3],
            a[4] * b[0] + a[5] * b[2] + b[4],
            a[4] * b[1] + a[5] * b[3] + b[5],
        ])
    }

    fn point(self, x: f64, y: f64) -> (f32, f32) {
        let m = self.0;
        ((m[0] * x + m[2] * y + m[4]) as f32, (m[1] * x + m[3] * y + m[5]) as f32)
    }
}

#[derive(Clone)]
struct State<'a> {
    ctm: Matrix,
    face: Option<Rc<Face<'a>>>,
    size: f64,
    spacing: f64,
    word_spacing: f64,
    scale: f64,
    leading: f64,
    rise: f64,
}

/// What a marked passage does to its glyphs.
#[derive(Clone, Copy, PartialEq)]
enum Marked {
    Nothing,
    /// Its text was said: the glyphs have none.
    Said,
    /// It is no part of what the page says.
    Hidden,
}

/// Reads pages.
pub struct Interpreter<'a, 'b> {
    fonts: &'b mut Fonts<'a>,
    budget: &'b mut Budget,
    page: PageText,
    state: State<'a>,
    states: Vec<State<'a>>,
    matrix: Matrix,
    line: Matrix,
    marked: Vec<Marked>,
    /// Text that the next glyph stands for.
    said: Option<String>,
}

/// The glyphs of a page.
pub fn page<'a>(page: &Page<'a>, fonts: &mut Fonts<'a>, budget: &mut Budget) -> Result<PageText> {
    let (width, height) = page.render_dimensions();
    let state = State {
        ctm: Matrix(page.initial_transform(true).as_coeffs()),
        face: None,
        size: 1.0,
        spacing: 0.0,
        word_spacing: 0.0,
        scale: 1.0,
        leading: 0.0,
        rise: 0.0,
    };
    let mut interpreter = Interpreter {
        fonts,
        budget,
        page: PageText { width, height, ..PageText::default() },
        state,
        states: Vec::new(),
        matrix: Matrix::IDENTITY,
        line: Matrix::IDENTITY,
        marked: Vec::new(),
        said: None,
    };
    let content = interpreter.content(page)?;
    interpreter.run(&content, page.resources(), 0)?;
    Ok(interpreter.page)
}

impl<'a> Interpreter<'a, '_> {
    /// The streams of a page, one after the other.
    fn content(&mut self, page: &Page<'a>) -> Result<Vec<u8>> {
        let one = page.raw().get::<Stream<'_>>("Contents");
        let many = page.raw().get::<Array<'_>>("Contents");
        let mut content = Vec::new();
        for stream in one.into_iter().chain(many.iter().flat_map(|array| array.iter::<Stream<'_>>())) {
            content.extend(self.budget.decode(&stream)?.unwrap_or_default());
            content.push(b' ');
        }
        Ok(content)
    }

    fn run(&mut self, content: &[u8], resources: &Resources<'a>, depth: usize) -> Result<()> {
        let states = self.states.len();
        let marked = self.marked.len();
        let mut instructions = TypedIter::new(content);
        while let Some(instruction) = instructions.next() {
            self.budget.operator()?;
            match instruction {
                TypedInstruction::SaveState(_) if self.states.len() < MAX_STATES => {
                    self.states.push(self.state.clone());
                }
                TypedInstruction::RestoreState(_) if self.states.len() > states => {
                    if let Some(state) = self.states.pop() {
                        self.state = state;
                    }
                }
                TypedInstruction::Transform(t) => {
                    let matrix = Matrix::of([&t.0, &t.1, &t.2, &t.3, &t.4, &t.5]);
                    self.state.ctm = matrix.then(self.state.ctm);
                }
                TypedInstruction::XObject(x) if depth < MAX_DEPTH => {
                    if let Some(form) = resources.get_x_object(x.0) {
                        self.form(&form, resources, depth)?;
                    }
                }
                TypedInstruction::BeginMarkedContent(_) => self.marked.push(Marked::Nothing),
                TypedInstruction::BeginMarkedContentWithProperties(m) => self.mark(m.0, m.1, resources),
                TypedInstruction::EndMarkedContent(_) if self.marked.len() > marked => {
                    self.marked.pop();
                    self.said = None;
                }
                other => self.text(other, resources)?,
            }
        }
        self.marked.truncate(marked);
        if self.states.len() > states {
            self.state = self.states.swap_remove(states);
            self.states.truncate(states);
        }
        Ok(())
    }

    fn form(&mut self, form: &Stream<'a>, resources: &Resources<'a>, depth: usize) -> Result<()> {
        let dict = form.dict();
        if dict.get::<Name<'_>>("Subtype").is_none_or(|subtype| subtype.as_ref() != b"Form") {
            return Ok(());
        }
        let Some(content) = self.budget.decode(form)? else {
            return Ok(());
        };
        let own = dict.get::<Dict<'a>>("Resources").map(Resources::new);
        let outer = (self.state.clone(), self.matrix, self.line);
        if let Some(matrix) = dict.get::<[f64; 6]>("Matrix") {
            self.state.ctm = Matrix(matrix).then(self.state.ctm);
        }
        self.run(&content, own.as_ref().unwrap_or(resources), depth + 1)?;
        (self.state, self.matrix, self.line) = outer;
        Ok(())
    }

    fn mark(&mut self, tag: &Name<'_>, properties: &Object<'_>, resources: &Resources<'a>) {
        let is_pagination = |dict: &Dict<'_>| {
            tag.as_ref() == b"Artifact" && dict.get::<Name<'_>>("Type").is_some_and(|t| t.as_ref() == b"Pagination")
        };
        let text =
            |dict: &Dict<'_>| dict.get::<PdfString<'_>>("ActualText").map(|s| readable(&info::string(s.as_bytes())));
        let (pagination, said) = match properties {
            Object::Dict(dict) => (is_pagination(dict), text(dict)),
            Object::Name(name) => match resources.properties.get::<Dict<'_>>(name) {
                Some(dict) => (is_pagination(&dict), text(&dict)),
                None => (false, None),
            },
            _ => (false, None),
        };
        let marked = if pagination {
            Marked::Hidden
        } else if said.is_some() {
            Marked::Said
        } else {
            Marked::Nothing
        };
        self.said = said.or(self.said.take());
        self.marked.push(marked);
    }

    fn text(&mut self, instruction: TypedInstruction<'_, '_>, resources: &Resources<'a>) -> Result<()> {
        let state = &mut self.state;
        match instruction {
            TypedInstruction::BeginText(_) => (self.matrix, self.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            TypedInstruction::SetTextMatrix(m) => {
                self.matrix = Matrix::of([&m.0, &m.1, &m.2, &m.3, &m.4, &m.5]);
                self.line = self.matrix;
            }
            TypedInstruction::TextFont(font) => {
                state.size = font.1.as_f64();
                state.face = match resources.get_font(font.0) {
                    Some(dict) => self.fonts.face(&dict, self.budget)?,
                    None => self.fonts.fallback(),
                };
            }
            TypedInstruction::HorizontalScaling(h) => state.scale = h.0.as_f64() / 100.0,
            TypedInstruction::TextLeading(l) => state.leading = l.0.as_f64(),
            TypedInstruction::CharacterSpacing(c) => state.spacing = c.0.as_f64(),
            TypedInstruction::WordSpacing(w) => state.word_spacing = w.0.as_f64(),
            TypedInstruction::TextRise(r) => state.rise = r.0.as_f64(),
            TypedInstruction::NextLine(n) => self.next_line(n.0.as_f64(), n.1.as_f64()),
            TypedInstruction::NextLineAndSetLeading(n) => {
                state.leading = -n.1.as_f64();
                self.next_line(n.0.as_f64(), n.1.as_f64());
            }
            TypedInstruction::NextLineUsingLeading(_) => self.next_line(0.0, -self.state.leading),
            TypedInstruction::ShowText(s) => self.show(s.0)?,
            TypedInstruction::NextLineAndShowText(s) => {
                self.next_line(0.0, -self.state.leading);
                self.show(s.0)?;
            }
            TypedInstruction::ShowTextWithParameters(s) => {
                (state.word_spacing, state.spacing) = (s.0.as_f64(), s.1.as_f64());
                self.next_line(0.0, -self.state.leading);
                self.show(s.2)?;
            }
            TypedInstruction::ShowTexts(s) => {
                for item in s.0.iter::<Object<'_>>() {
                    match item {
                        Object::Number(by) => self.adjust(by.as_f64()),
                        Object::String(text) => self.show(&text)?,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line = Matrix::moved(x, y).then(self.line);
        self.matrix = self.line;
    }

    fn adjust(&mut self, by: f64) {
        let by = -by / 1000.0 * self.state.size;
        let across = self.state.face.as_ref().is_none_or(|face| face.is_horizontal());
        let moved = if across { Matrix::moved(by * self.state.scale, 0.0) } else { Matrix::moved(0.0, by) };
        self.matrix = moved.then(self.matrix);
    }

    fn show(&mut self, text: &PdfString<'_>) -> Result<()> {
        let face = match &self.state.face {
            Some(face) => face.clone(),
            None => match self.fonts.fallback() {
                Some(face) => face,
                None => return Ok(()),
            },
        };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let (code, length) = face.code(bytes, at);
            at += length;
            self.budget.glyph(self.page.glyphs.len())?;
            let spacing = self.state.spacing + if code == 32 && length == 1 { self.state.word_spacing } else { 0.0 };
            let (across, down) = face.advance(code);
            let em = self.state.size / 1000.0;
            let (advance, step) = if face.is_horizontal() {
                ((across * em * self.state.scale, 0.0), ((across * em + spacing) * self.state.scale, 0.0))
            } else {
                ((0.0, down * em), (0.0, down * em + spacing))
            };
            self.glyph(&face, code, advance);
            self.matrix = Matrix::moved(step.0, step.1).then(self.matrix);
        }
        Ok(())
    }

    fn glyph(&mut self, face: &Face<'a>, code: u32, advance: (f64, f64)) {
        if self.marked.contains(&Marked::Hidden) {
            return;
        }
        let place = self.matrix.then(self.state.ctm);
        // A vertical line is laid out along its middle, where its glyphs are placed.
        let rise = self.state.rise;
        let from = place.point(0.0, rise);
        let to = place.point(advance.0, rise + advance.1);
        let above = place.point(0.0, rise + self.state.size * f64::from(face.height()));
        let size = (above.0 - from.0).hypot(above.1 - from.1);
        let seen = |at: f32, end: f32| (-MARGIN..=end + MARGIN).contains(&at);
        let finite = size.is_finite() && to.0.is_finite() && to.1.is_finite();
        if !finite || size < 0.1 || !seen(from.0, self.page.width) || !seen(from.1, self.page.height) {
            return;
        }
        let start = self.page.text.len();
        if let Some(said) = self.said.take() {
            self.page.text.push_str(&said);
        } else if !self.marked.contains(&Marked::Said) && !face.text(code, &mut self.page.text) {
            self.page.unknown += 1;
            return;
        }
        let text = start..self.page.text.len();
        self.page.glyphs.push(Glyph { from, to, size, text });
    }
}
