// SPDX-License-Identifier: PostgreSQL

//! Pages: one HTML file that needs nothing else.
//!
//! Owns what every page has in common: the shell with its style, text of users made safe to show, numbers as they are
//! written, tables that scroll in a box of their own, and plots ([`plot`]). It must not know what a page is about.
//!
//! What is decided here, once:
//!
//! * **Nothing is fetched and nothing runs.** Style is inline, plots are inline SVG, there is no script, and the page's own policy
//!   forbids all of it, so a page may be mailed, archived and opened anywhere.
//! * **Escaping is [`maud`]'s,** which escapes whatever is not markup already. Characters that neither HTML nor XML may have are
//!   replaced in the finished page, so none can slip through.
//! * **A page is also well-formed XML:** no attribute without a value and no element left open. A parser can check that, and any XML tool
//!   can read the numbers out again.
//! * **Colour is never the only sign:** lines have dashes, boxes an outline, and values stand beside them as text.

pub mod plot;

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

/// How all pages look.
const STYLE: &str = include_str!("style.css");

/// Written by hand, because maud leaves void elements open and XML does not know them.
const META: &str = "<meta charset=\"utf-8\"/>\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
<meta name=\"color-scheme\" content=\"light dark\"/>\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>";

/// A whole page: its title, and what stands in its body.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (PreEscaped(META))
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string().chars().map(shown).collect()
}

/// A character as a page may have it: control characters as their pictures, what is no character as the sign for that.
fn shown(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f'..='\u{9f}' | '\u{fdd0}'..='\u{fdef}' => char::REPLACEMENT_CHARACTER,
        // The last two of each plane are no characters.
        _ if u32::from(c) & 0xfffe == 0xfffe => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// Text of a user: its direction cannot reach beyond it.
pub fn said(text: &str) -> Markup {
    html! { bdi { (text) } }
}

/// At most so many characters of a text; a longer one ends in an ellipsis.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A number with so many decimals; a dash where there is none.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) => unsigned_zero(format!("{value:.decimals$}")).replacen('-', "−", 1),
    }
}

/// A number with its sign.
pub fn signed(value: f64, decimals: usize) -> String {
    let shown = number(Some(value), decimals);
    if shown.starts_with('−') || !shown.contains(|c: char| ('1'..='9').contains(&c)) {
        shown
    } else {
        format!("+{shown}")
    }
}

/// What rounds to zero has no sign.
fn unsigned_zero(number: String) -> String {
    match number.strip_prefix('-') {
        Some(rest) if !rest.contains(|c: char| c.is_ascii_alphanumeric() && c != '0') => rest.to_owned(),
        _ => number,
    }
}

/// A table in a box of its own, which scrolls when the page is too narrow for it. `label` names it for those who cannot see it.
pub fn table(label: &str, head: &Markup, rows: &Markup) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(label) tabindex="0" {
            table { thead { (head) } (rows) }
        }
    }
}

/// The head of a table: after so many columns of text come numbers.
pub fn head<T: Render>(columns: &[T], text: usize) -> Markup {
    html! {
        tr {
            @for (at, column) in columns.iter().enumerate() {
                th class=[(at >= text).then_some("n")] scope="col" { (column) }
            }
        }
    }
}

/// A section with its heading, which `id` can be linked to.
pub fn section(id: &str, title: &str, body: &Markup) -> Markup {
    html! { section id=(id) aria-labelledby={ (id) "-h" } { h2 id={ (id) "-h" } { (title) } (body) } }
}

/// Something that must not be overlooked.
pub fn notice(body: &Markup) -> Markup {
    html! { div class="notice" role="note" { (body) } }
}

/// Whether a page is one element with nothing left open, each attribute once and with a value, and no character that XML may not
/// have.
#[cfg(test)]
pub fn check(page: &str) -> std::result::Result<(), String> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(page);
    let mut depth = 0_usize;
    loop {
        let at = reader.buffer_position();
        let wrong = |why: String| format!("{why} near {:?}", page.get(at as usize..).map(|rest| cut(rest, 80)));
        match reader.read_event().map_err(|error| wrong(error.to_string()))? {
            Event::Start(element) | Event::Empty(element) if element.name().as_ref() == "script" => {
                return Err(wrong("a script".to_owned()));
            }
            Event::Start(element) => {
                depth += 1;
                for attribute in element.attributes() {
                    attribute.map_err(|error| wrong(error.to_string()))?;
                }
            }
            Event::End(_) => depth = depth.checked_sub(1).ok_or_else(|| wrong("an end too many".to_owned()))?,
            Event::GeneralRef(reference) if !["amp", "lt", "gt", "quot"].contains(&&*reference) => {
                return Err(wrong("a reference that XML does not know".to_owned()));
            }
            Event::Eof if depth == 0 => break,
            Event::Eof => return Err("the end comes too early".to_owned()),
            _ => {}
        }
    }
    let strange = |c: &char| (*c < ' ' && !['\t', '\n', '\r'].contains(c)) || *c == '\u{fffe}' || *c == '\u{ffff}';
    match page.chars().find(strange) {
        Some(c) => Err(format!("{c:?} stands in the page")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "</title><script>alert('x')</script> ]]> &amp; \u{0}\u{1}\u{b}\u{7f}\u{ffff} \u{202e}\"'--><!--";
        let body = html! { p title=(hostile) { (said(hostile)) } };
        let page = page(hostile, &body);
        check(&page).expect("a well-formed page");
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("␁"), "a control character is seen");
        assert!(page.contains("&amp;amp;"), "what looks escaped is escaped as well");
    }

    #[test]
    fn the_check_finds_what_is_wrong() {
        for wrong in
            ["<p><b></p></b>", "<p>", "<p hidden></p>", "<p a=\"1\" a=\"2\"></p>", "<p>&nbsp;</p>", "<p>\u{1}</p>"]
        {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_style_needs_no_escaping_and_fetches_nothing() {
        assert!(!STYLE.contains(['<', '&']) && !STYLE.contains("url(") && !STYLE.contains("@import"));
    }

    #[test]
    fn numbers_are_written_one_way() {
        assert_eq!(
            (number(Some(0.12345), 4), number(None, 4), number(Some(-0.00001), 3)),
            ("0.1235".into(), "–".into(), "0.000".into())
        );
        assert_eq!(
            (signed(0.5, 2), signed(-0.5, 2), signed(-0.0001, 2)),
            ("+0.50".into(), "−0.50".into(), "0.00".into())
        );
        assert_eq!(number(Some(f64::NEG_INFINITY), 1), "−inf");
        assert_eq!((cut("abcdef", 6), cut("abcdef", 4), cut("äöü", 2)), ("abcdef".into(), "abc…".into(), "ä…".into()));
    }
}
