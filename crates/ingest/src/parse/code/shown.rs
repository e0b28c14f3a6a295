// SPDX-License-Identifier: PostgreSQL

//! What of a text the parser is shown, so that its stack stays shallow.
//!
//! tree-sitter goes through its whole stack wherever two readings of a text meet, once for each token: a run of operators
//! without operands, or of brackets that never close, takes the square of the time, and recursion as deep as the run. It
//! tells nobody how deep its stack is. So this module estimates it before, from the tokens alone: what stands open between
//! brackets, and how much since the last mark that ends something. What goes beyond is shown as spaces, in the same place;
//! the text itself stays as it is and so does every offset, and whoever asks is told. Code that a person wrote does not come
//! near: brackets in a string or in a remark, which need not close, are not counted where both are easily told. That makes it an
//! estimate that a hostile file can keep low; the bound of the parser's work and the document's time are behind it.

use std::borrow::Cow;

/// Brackets open at once that are shown.
const MAX_OPEN: usize = 400;

/// Tokens waiting for their end at once that are shown.
const MAX_WAITING: usize = 1000;

/// Bytes of a string on one line whose marks are not counted.
const LONGEST_STRING: usize = 500;

/// Words that want something after them; a line that ends with one goes on.
const WANTING: &[&str] = &[
    "and",
    "async",
    "await",
    "begin",
    "case",
    "catch",
    "class",
    "const",
    "def",
    "delete",
    "do",
    "elif",
    "else",
    "elsif",
    "except",
    "extends",
    "finally",
    "fn",
    "for",
    "func",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "is",
    "lambda",
    "let",
    "mod",
    "module",
    "namespace",
    "new",
    "not",
    "or",
    "ref",
    "return",
    "sizeof",
    "static",
    "then",
    "throw",
    "try",
    "typeof",
    "unless",
    "until",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Words after whose brackets a statement is still to come.
const CONTROL: &[&str] = &[
    "catch",
    "elif",
    "else",
    "elseif",
    "fixed",
    "for",
    "foreach",
    "if",
    "lock",
    "switch",
    "synchronized",
    "unless",
    "until",
    "using",
    "while",
    "with",
];

/// A text as the parser sees it.
pub struct Shown<'t> {
    /// As many bytes as the text has.
    pub bytes: Cow<'t, [u8]>,
    /// Words and marks that are shown.
    pub tokens: usize,
}

/// What is shown of a text.
pub fn shown(text: &str) -> Shown<'_> {
    let bytes = text.as_bytes();
    let mut out = Shown { bytes: Cow::Borrowed(bytes), tokens: 0 };
    let mut waiting = Waiting { levels: Vec::new(), here: 0, around: 0 };
    let mut line = Line::default();
    // Where the string or remark ends that is being read.
    let mut said = Said::default();
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        let start = at;
        let word = is_word(byte);
        at += if word { bytes[at..].iter().take_while(|b| is_word(**b)).count() } else { 1 };
        let token = &bytes[start..at];
        if byte == b'\n' {
            if line.ends() {
                waiting.here = 0;
            }
            line = Line::default();
            continue;
        }
        if byte.is_ascii_whitespace() {
            continue;
        }
        let goes_on = start < said.end;
        if !goes_on {
            said = Said::of(&bytes[start..], start);
        }
        if !said.is_remark {
            line.token(token);
        }
        if !goes_on && !said.is_remark {
            waiting.token(byte);
        }
        // What closes a string or comment is shown in any case: else it would go on over what follows.
        let closes = matches!(byte, b'"' | b'\'' | b'`') || token == b"/" && start > 0 && bytes[start - 1] == b'*';
        let star = token == b"*" && bytes.get(at) == Some(&b'/');
        if waiting.is_deep() && !closes && !star {
            out.bytes.to_mut()[start..at].fill(b' ');
        } else {
            out.tokens += 1;
        }
    }
    out
}

/// A string or a remark that ends on its line.
#[derive(Default)]
struct Said {
    /// Where it ends; 0 for none.
    end: usize,
    is_remark: bool,
}

impl Said {
    /// What `text` begins with, which stands at `start`.
    fn of(text: &[u8], start: usize) -> Self {
        match text {
            [b'/', b'/', ..] | [b'#', b' ' | b'\t' | b'#', ..] => {
                let length = text.iter().position(|b| *b == b'\n').unwrap_or(text.len());
                Self { end: start + length, is_remark: true }
            }
            [quote @ (b'"' | b'\'' | b'`'), rest @ ..] => {
                Self { end: length_of_string(*quote, rest).map_or(0, |length| start + 1 + length), is_remark: false }
            }
            _ => Self::default(),
        }
    }
}

/// Bytes of a string behind its opening quote, if it ends on its line and is not long.
fn length_of_string(quote: u8, rest: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (length, byte) in rest.iter().take(LONGEST_STRING).enumerate() {
        match byte {
            b'\n' => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            byte if *byte == quote => return Some(length + 1),
            _ => {}
        }
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Tokens that wait for their end.
struct Waiting {
    /// Those of each bracket around.
    levels: Vec<usize>,
    /// Those since the innermost bracket, or since something ended in it.
    here: usize,
    /// The sum of those around.
    around: usize,
}

impl Waiting {
    fn token(&mut self, byte: u8) {
        match byte {
            b'(' | b'[' | b'{' => {
                self.levels.push(self.here + 1);
                self.around += self.here + 1;
                self.here = 0;
            }
            b')' | b']' | b'}' => {
                self.here = self.levels.pop().unwrap_or_default();
                self.around -= self.here;
                if byte == b'}' {
                    self.here = 0;
                }
            }
            b';' | b',' => self.here = 0,
            _ => self.here += 1,
        }
    }

    fn is_deep(&self) -> bool {
        self.levels.len() > MAX_OPEN || self.around + self.here > MAX_WAITING
    }
}

/// A line as far as it was read.
#[derive(Default)]
struct Line<'t> {
    first: &'t [u8],
    last: &'t [u8],
}

impl<'t> Line<'t> {
    fn token(&mut self, token: &'t [u8]) {
        if self.first.is_empty() {
            self.first = token;
        }
        self.last = token;
    }

    /// Whether a statement may end with it.
    fn ends(&self) -> bool {
        let is_one_of = |token: &[u8], words: &[&str]| words.iter().any(|word| word.as_bytes() == token);
        match self.last {
            b")" => !is_one_of(self.first, CONTROL),
            [b']' | b'}' | b'"' | b'\'' | b'`'] => true,
            [byte, ..] if is_word(*byte) => !is_one_of(self.last, WANTING),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> String {
        let shown = shown(text);
        assert_eq!(shown.bytes.len(), text.len());
        String::from_utf8_lossy(&shown.bytes).into_owned()
    }

    #[test]
    fn code_is_shown() {
        let function = "function f(a) {\n  if (a) {\n    return [a, -a]\n  }\n}\n";
        for text in [
            "",
            "é",
            &function.repeat(1000),
            &"x = y\n".repeat(5000),
            &"int x; ".repeat(5000),
            &format!("x = [{}]", "1, ".repeat(50_000)),
            &format!("{}x{}", "(".repeat(300), ")".repeat(300)),
            &format!("x = \"\"\"\n{}\"\"\"\n", "word\n".repeat(5000)),
            &format!("/*\n{}*/\n", " * a line of a long remark\n".repeat(5000)),
        ] {
            assert!(matches!(shown(text).bytes, Cow::Borrowed(_)), "{}", &text[..text.len().min(40)]);
        }
    }

    #[test]
    fn what_strings_and_remarks_say_is_not_counted() {
        for line in [
            "    \"RED_{}\": \"\\x1b[31m\",\n",
            "push('if (' + x + ' {')\n",
            "# and then ((\n",
            "// see [1\n",
            "assert strip(\"a\") == '\\'(['\n",
        ] {
            assert!(matches!(shown(&line.repeat(3000)).bytes, Cow::Borrowed(_)), "{line}");
        }
        // One that does not end on its line is none, nor is one that goes on for long.
        for unit in ["'(\n", "\"((((\n"] {
            assert!(matches!(shown(&unit.repeat(3000)).bytes, Cow::Owned(_)), "{unit}");
        }
        assert!(matches!(shown(&format!("\"{}\"", "(".repeat(5000))).bytes, Cow::Owned(_)));
    }

    #[test]
    fn what_is_too_deep_is_not() {
        let waits = |text: &str| seen(text).split_whitespace().count();
        for unit in ["- ", "-\n", "not ", "not\n", "if (a)\n", "a ? ", "a = ", "else ", "a . ", "( ", "- { ", "a => "] {
            assert!(waits(&unit.repeat(20_000)) <= MAX_WAITING + 2, "{unit}");
        }
        // What follows is shown again.
        for end in [";", "\nx = 1\n", "}", ","] {
            let text = format!("{{ {} {end} after", "- ".repeat(5000));
            assert!(seen(&text).ends_with("after"), "{end}");
        }
        assert!(seen(&format!("\"{}\" ; é", "- ".repeat(5000))).ends_with("\" ; é"));
        assert!(seen(&format!("/* {} */ é", "- ".repeat(5000))).ends_with("*/   "));
    }
}
