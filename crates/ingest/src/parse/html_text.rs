// SPDX-License-Identifier: PostgreSQL

//! HTML of posts as Markdown: the few elements that people write in forums.
//!
//! A stream of tokens becomes text in one pass, so neither nesting nor tag soup can hurt; it knows no page, no table and
//! no style. Whatever it does not know is dropped and its text kept.

use html5gum::{Token, Tokenizer};

/// Whether a text is HTML: it begins with an element that forums write.
pub fn is_html(text: &str) -> bool {
    let Some(rest) = text.trim_start().strip_prefix('<') else {
        return false;
    };
    let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    let known =
        ["p", "pre", "div", "ul", "ol", "h1", "h2", "h3", "h4", "blockquote", "a", "code", "strong", "em", "img"];
    known.contains(&name.to_ascii_lowercase().as_str()) && rest[name.len()..].starts_with(['>', ' ', '/', '\n'])
}

/// The text of some HTML.
pub fn markdown(html: &str) -> String {
    let mut out = Writer::default();
    for token in Tokenizer::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => out.start(&String::from_utf8_lossy(&tag.name)),
            Token::EndTag(tag) => out.end(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => out.text(&String::from_utf8_lossy(&text)),
            _ => {}
        }
    }
    out.text.trim_end().to_owned()
}

#[derive(Default)]
struct Writer {
    text: String,
    /// Open `pre` elements.
    verbatim: usize,
    /// Open elements whose text nobody sees.
    hidden: usize,
}

impl Writer {
    fn start(&mut self, name: &str) {
        match name {
            "pre" => {
                self.verbatim += 1;
                if self.verbatim == 1 {
                    self.paragraph();
                    self.text.push_str("```\n");
                }
            }
            "code" if self.verbatim == 0 => self.text.push('`'),
            "script" | "style" => self.hidden += 1,
            "br" => self.line(),
            "li" => {
                self.line();
                self.text.push_str("- ");
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.paragraph();
                let level = name[1..].parse().unwrap_or(1);
                self.text.push_str(&"#".repeat(level));
                self.text.push(' ');
            }
            "tr" => self.line(),
            "td" | "th" => self.text.push(' '),
            _ if is_block(name) => self.paragraph(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "pre" if self.verbatim > 0 => {
                self.verbatim -= 1;
                if self.verbatim == 0 {
                    if !self.text.ends_with('\n') {
                        self.text.push('\n');
                    }
                    self.text.push_str("```");
                    self.paragraph();
                }
            }
            "code" if self.verbatim == 0 => self.text.push('`'),
            "script" | "style" => self.hidden = self.hidden.saturating_sub(1),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.paragraph(),
            _ if is_block(name) => self.paragraph(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.hidden > 0 {
            return;
        }
        if self.verbatim > 0 {
            return self.text.push_str(text);
        }
        for (index, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            if index > 0 && !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
                self.text.push(' ');
            }
            self.text.push_str(word);
        }
    }

    fn line(&mut self) {
        if self.verbatim > 0 || (!self.text.is_empty() && !self.text.ends_with('\n')) {
            self.text.truncate(self.text.trim_end_matches(' ').len());
            self.text.push('\n');
        }
    }

    fn paragraph(&mut self) {
        if self.verbatim > 0 || self.text.is_empty() {
            return;
        }
        self.text.truncate(self.text.trim_end_matches([' ', '\n']).len());
        // A list item that begins with a paragraph goes on on its line.
        self.text.push_str(if self.text.ends_with("\n-") || self.text == "-" { " " } else { "\n\n" });
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div" | "ul" | "ol" | "blockquote" | "table" | "hr" | "aside" | "section" | "figure" | "dl" | "dd" | "dt"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forums_write() {
        let html = "<p>a <b>b</b>\n c &amp; <code>d&lt;e</code></p>\n<pre><code>x\n  &lt;y&gt;\n</code></pre>\n<ul>\n<li><p>one</p></li>\n<li>two</li>\n</ul><h2>H</h2><p>z<br>w</p><script>s</script>";
        let expected = "a b c & `d<e`\n\n```\nx\n  <y>\n```\n\n- one\n\n- two\n\n## H\n\nz\nw";
        assert_eq!(markdown(html), expected);
    }

    #[test]
    fn html_is_told_from_text() {
        for (text, html) in
            [("<p>x", true), (" <pre class='x'>", true), ("<- x", false), ("a <p>", false), ("<T> x", false)]
        {
            assert_eq!(is_html(text), html, "{text}");
        }
    }

    #[test]
    fn soup_ends_well() {
        for part in ["<div>", "<pre>", "</pre>", "<li>", "<", "<a b=\"", "</h1>", "<!--", "&#x110000;"] {
            markdown(&part.repeat(50_000));
        }
    }
}
