// SPDX-License-Identifier: PostgreSQL

//! What text of a chunk is embedded.
//!
//! A template names fields in braces; a line whose fields are all empty disappears with its newline, so the default
//! works for a bare record and for a deep section alike. The hash of the rendered text is the key under which vectors
//! are reused, so rendering must stay a pure function of the chunk.

use crate::error::{Error, Result, unknown_key};

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Key of a chunk's metadata: true when title, heading path and the like are so long that its content only fits the window
/// without them; whoever renders the chunk then renders [`EmbedFields::without_prefix`].
pub const PREFIX_CUT: &str = "embed_prefix_cut";

/// A checked template.
///
/// ```
/// use rag_core::template::{EmbedFields, EmbedTemplate};
/// let fields = EmbedFields { title: Some("Guide"), heading_path: &[], context: None, content: "Do it.", ..EmbedFields::default() };
/// assert_eq!(EmbedTemplate::default().render(&fields), "Guide\nDo it.");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EmbedTemplate {
    text: String,
    lines: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Field(Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Title,
    HeadingPath,
    Context,
    Content,
    Uri,
    Path,
    Symbol,
    Speaker,
}

const FIELDS: &[(&str, Field)] = &[
    ("title", Field::Title),
    ("heading_path", Field::HeadingPath),
    ("context", Field::Context),
    ("content", Field::Content),
    ("uri", Field::Uri),
    ("path", Field::Path),
    ("symbol", Field::Symbol),
    ("speaker", Field::Speaker),
];

/// The values a template may name.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbedFields<'a> {
    /// Document title.
    pub title: Option<&'a str>,
    /// Headings, outermost first; rendered as `a > b`, without a first heading that repeats the title.
    pub heading_path: &'a [String],
    /// Text of the container.
    pub context: Option<&'a str>,
    /// The chunk's own text.
    pub content: &'a str,
    /// Document URI.
    pub uri: &'a str,
    /// Document path.
    pub path: Option<&'a str>,
    /// Qualified name of the symbol.
    pub symbol: Option<&'a str>,
    /// Who speaks.
    pub speaker: Option<&'a str>,
}

impl Default for EmbedTemplate {
    fn default() -> Self {
        use Field::{Content, Context, HeadingPath, Title};
        Self {
            text: "{title}\n{heading_path}\n{context}\n{content}".to_owned(),
            lines: [Title, HeadingPath, Context, Content].map(|f| vec![Part::Field(f)]).into(),
        }
    }
}

impl FromStr for EmbedTemplate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let lines: Vec<Vec<Part>> = text.split('\n').map(parse_line).collect::<Result<_>>()?;
        if !lines.iter().flatten().any(|p| *p == Part::Field(Field::Content)) {
            return Err(Error::invalid(format!("embed_template \"{text}\" does not contain {{content}}")));
        }
        Ok(Self { text: text.to_owned(), lines })
    }
}

impl TryFrom<String> for EmbedTemplate {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<EmbedTemplate> for String {
    fn from(template: EmbedTemplate) -> Self {
        template.text
    }
}

fn parse_line(line: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            parts.push(Part::Literal(rest[..open].to_owned()));
        }
        let after = &rest[open + 1..];
        let close =
            after.find('}').ok_or_else(|| Error::invalid(format!("unclosed brace in embed_template \"{line}\"")))?;
        let name = &after[..close];
        let field = FIELDS.iter().find(|(n, _)| *n == name).map(|(_, f)| *f).ok_or_else(|| {
            let known: Vec<&str> = FIELDS.iter().map(|(n, _)| *n).collect();
            unknown_key("field of embed_template", name, &known)
        })?;
        parts.push(Part::Field(field));
        rest = &after[close + 1..];
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    Ok(parts)
}

impl EmbedTemplate {
    /// The template as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text to embed.
    pub fn render(&self, fields: &EmbedFields<'_>) -> String {
        let mut lines = Vec::with_capacity(self.lines.len());
        for parts in &self.lines {
            let mut line = String::new();
            let mut named = false;
            let mut filled = false;
            for part in parts {
                match part {
                    Part::Literal(text) => line.push_str(text),
                    Part::Field(field) => {
                        named = true;
                        let before = line.len();
                        fields.push(*field, &mut line);
                        filled |= line.len() > before;
                    }
                }
            }
            if filled || !named {
                lines.push(line);
            }
        }
        lines.join("\n")
    }
}

impl EmbedFields<'_> {
    /// The same without title, heading path, symbol and speaker.
    #[must_use]
    pub fn without_prefix(self) -> Self {
        Self { title: None, heading_path: &[], symbol: None, speaker: None, ..self }
    }

    /// The title, unless the content is the title and nothing else.
    pub fn title_to_add(&self) -> Option<&str> {
        self.title.map(str::trim).filter(|title| *title != self.content.trim())
    }

    fn push(&self, field: Field, out: &mut String) {
        match field {
            Field::Title => out.push_str(self.title_to_add().unwrap_or_default()),
            Field::Context => out.push_str(self.context.unwrap_or_default()),
            Field::Content => out.push_str(self.content),
            Field::Uri => out.push_str(self.uri),
            Field::Path => out.push_str(self.path.unwrap_or_default()),
            Field::Symbol => out.push_str(self.symbol.unwrap_or_default()),
            Field::Speaker => out.push_str(self.speaker.unwrap_or_default()),
            Field::HeadingPath => {
                let title = self.title.unwrap_or_default().trim();
                let skip = usize::from(self.heading_path.first().is_some_and(|h| h.trim() == title));
                out.push_str(&self.heading_path[skip..].join(" > "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_vanish_and_a_repeated_title_is_said_once() {
        let headings = vec!["Guide".to_owned(), "Install".to_owned()];
        let fields =
            EmbedFields { title: Some("Guide"), heading_path: &headings, content: "Run it.", ..Default::default() };
        assert_eq!(EmbedTemplate::default().render(&fields), "Guide\nInstall\nRun it.");
        let only = EmbedFields { title: Some("Guide"), content: "Guide", ..Default::default() };
        assert_eq!(EmbedTemplate::default().render(&only), "Guide");
        let bare = EmbedFields { content: "Run it.", ..Default::default() };
        assert_eq!(EmbedTemplate::default().render(&bare), "Run it.");
    }

    #[test]
    fn literals_stay_with_their_fields() {
        let template: EmbedTemplate = "passage: {title}\n{content}".parse().expect("valid");
        assert_eq!(template.render(&EmbedFields { content: "x", ..Default::default() }), "x");
        let titled = EmbedFields { title: Some("T"), content: "x", ..Default::default() };
        assert_eq!(template.render(&titled), "passage: T\nx");
    }

    #[test]
    fn a_bad_template_is_refused() {
        let message = |t: &str| EmbedTemplate::from_str(t).expect_err("invalid").message;
        assert_eq!(message("{title}"), "embed_template \"{title}\" does not contain {content}");
        assert_eq!(message("{contents}"), "unknown field of embed_template \"contents\"");
        assert_eq!(message("{content"), "unclosed brace in embed_template \"{content\"");
    }

    #[test]
    fn the_default_is_what_its_text_says() {
        let default = EmbedTemplate::default();
        assert_eq!(default.as_str().parse::<EmbedTemplate>().expect("valid"), default);
    }
}
