// SPDX-License-Identifier: PostgreSQL

//! What the elements of HTML are, as far as reading a page is concerned.
//!
//! Owns the lists of names, and nothing that depends on where an element stands.

/// Attributes that are kept; nothing else about an element is ever asked.
pub const ATTRIBUTES: &[&str] = &[
    "alt",
    "alttext",
    "aria-hidden",
    "class",
    "colspan",
    "content",
    "data-lang",
    "data-language",
    "datetime",
    "epub:type",
    "hidden",
    "href",
    "http-equiv",
    "id",
    "itemprop",
    "lang",
    "name",
    "property",
    "rel",
    "role",
    "rowspan",
    "src",
    "start",
    "style",
    "type",
    "value",
    "xml:lang",
];

/// Elements without content and end tag.
pub fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
            | "param"
            | "basefont"
            | "bgsound"
            | "frame"
            | "keygen"
    )
}

/// Elements that stand on lines of their own.
pub fn is_block(name: &str) -> bool {
    closes_paragraph(name)
        || matches!(
            name,
            "html"
                | "body"
                | "tr"
                | "td"
                | "th"
                | "thead"
                | "tbody"
                | "tfoot"
                | "caption"
                | "li"
                | "dt"
                | "dd"
                | "legend"
        )
}

/// Elements whose beginning ends an open paragraph.
pub fn closes_paragraph(name: &str) -> bool {
    is_heading(name)
        || matches!(
            name,
            "address"
                | "article"
                | "aside"
                | "blockquote"
                | "center"
                | "details"
                | "dialog"
                | "dir"
                | "div"
                | "dl"
                | "fieldset"
                | "figcaption"
                | "figure"
                | "footer"
                | "form"
                | "header"
                | "hgroup"
                | "hr"
                | "main"
                | "menu"
                | "nav"
                | "ol"
                | "p"
                | "pre"
                | "search"
                | "section"
                | "summary"
                | "table"
                | "ul"
                | "listing"
                | "xmp"
                | "plaintext"
        )
}

/// `h1` to `h6`.
pub fn is_heading(name: &str) -> bool {
    heading_level(name).is_some()
}

/// The level of a heading.
pub fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

/// Elements of a table.
pub fn is_of_table(name: &str) -> bool {
    matches!(name, "table" | "caption" | "colgroup" | "col" | "thead" | "tbody" | "tfoot" | "tr" | "td" | "th")
}

/// Elements that belong into the head of a page.
pub fn is_of_head(name: &str) -> bool {
    matches!(name, "title" | "meta" | "link" | "script" | "style" | "base" | "noscript" | "template" | "object")
}

/// Elements that are never read: programs, styles, controls, and what is drawn or played.
pub fn is_machinery(name: &str) -> bool {
    matches!(
        name,
        "head"
            | "script"
            | "style"
            | "noscript"
            | "template"
            | "svg"
            | "iframe"
            | "object"
            | "embed"
            | "canvas"
            | "audio"
            | "video"
            | "map"
            | "button"
            | "select"
            | "input"
            | "textarea"
            | "datalist"
            | "progress"
            | "meter"
            | "nav"
            | "noembed"
            | "noframes"
            | "frameset"
            | "applet"
            | "title"
    )
}

/// Elements whose text is dropped while the tree is built.
pub fn is_raw(name: &str) -> bool {
    matches!(name, "script" | "style" | "noscript" | "iframe" | "noembed" | "noframes" | "textarea")
}

/// Elements that a cell of a table does not hold when it is a cell of data.
pub fn is_layout(name: &str) -> bool {
    is_heading(name)
        || matches!(
            name,
            "table" | "pre" | "blockquote" | "article" | "section" | "figure" | "form" | "main" | "hr" | "xmp"
        )
}
