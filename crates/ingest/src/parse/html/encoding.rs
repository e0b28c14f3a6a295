// SPDX-License-Identifier: PostgreSQL

//! From the bytes of a page to its text.
//!
//! A byte-order mark decides; then bytes that are valid UTF-8 and more than ASCII are UTF-8 whatever is declared, since
//! no other encoding looks like it by chance; then what the page declares, what its server declared, and UTF-8.

use crate::text::{Repaired, repair};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::borrow::Cow;

/// Bytes at the beginning that are searched for a declaration.
const LOOK: usize = 8 << 10;

/// The text of a page.
pub fn decode(bytes: &[u8], content_type: Option<&str>) -> Repaired {
    let Some(encoding) = other(bytes, content_type) else {
        return repair(bytes);
    };
    let (text, broken) = encoding.decode_without_bom_handling(bytes);
    let lost = if broken { text.matches(char::REPLACEMENT_CHARACTER).count() as u64 } else { 0 };
    let repaired = repair(text.as_bytes());
    Repaired { repaired_bytes: repaired.repaired_bytes + lost, ..repaired }
}

/// The encoding of a page that is not in UTF-8 and has no byte-order mark.
fn other(bytes: &[u8], content_type: Option<&str>) -> Option<&'static Encoding> {
    let marked = matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0xEF, 0xBB, 0xBF, ..]);
    if marked || (!bytes.is_ascii() && std::str::from_utf8(bytes).is_ok()) {
        return None;
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOK)]).to_ascii_lowercase();
    let declared = declared(&head).or_else(|| charset(&content_type?.to_ascii_lowercase()));
    declared.filter(|encoding| *encoding != UTF_8)
}

/// The bytes of a text that was served with a content type: turned into UTF-8 if that names another encoding, else as they
/// are.
pub fn utf8<'b>(bytes: &'b [u8], content_type: Option<&str>) -> Cow<'b, [u8]> {
    match content_type.and_then(|_| other(bytes, content_type)) {
        Some(_) => decode(bytes, content_type).text.into_bytes().into(),
        None => bytes.into(),
    }
}

/// What a page declares. It was read as ASCII so far, so it cannot be UTF-16.
fn declared(head: &str) -> Option<&'static Encoding> {
    let metas = head.split("<meta").skip(1).map(|rest| rest.split('>').next().unwrap_or_default());
    let xml = head.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")).map(|(declaration, _)| declaration);
    let found =
        xml.and_then(|xml| label(xml.split_once("encoding")?.1)).or_else(|| metas.into_iter().find_map(charset));
    found.map(|encoding| if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// The encoding after `charset=`, in lower case.
fn charset(text: &str) -> Option<&'static Encoding> {
    text.split("charset").skip(1).find_map(label)
}

/// The encoding named after an equals sign.
fn label(text: &str) -> Option<&'static Encoding> {
    let value = text.trim_start().strip_prefix('=')?.trim_start();
    let end = |c: char| c.is_ascii_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '>');
    let value = value.trim_start_matches(['"', '\'']).split(end).next()?;
    Encoding::for_label(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], content_type: Option<&str>) -> String {
        decode(bytes, content_type).text
    }

    #[test]
    fn the_best_witness_of_the_encoding_is_believed() {
        assert_eq!(text(b"\xEF\xBB\xBFa\xC3\xA4", Some("text/html; charset=latin1")), "aä");
        assert_eq!(text(b"<meta charset=latin1>\xC3\xA4", None), "<meta charset=latin1>ä");
        assert_eq!(text(b"<meta charset=latin1>\xE4", Some("text/html; charset=utf-8")), "<meta charset=latin1>ä");
        assert_eq!(text(b"\xE4", Some("text/html; Charset=\"ISO-8859-1\"")), "ä");
        assert_eq!(text(b"\xA4\xB3", Some("text/html; charset=euc-jp")), "こ");
        assert_eq!(text(b"<?xml version='1.0' encoding='windows-1251'?>\xCF", None).chars().last(), Some('П'));
        let meta = b"<META http-equiv=Content-Type content='text/html; charset=Shift_JIS'>\x82\xB1";
        assert_eq!(text(meta, None).chars().last(), Some('こ'));
        assert_eq!(text(b"<meta charset=utf-16>a", None), "<meta charset=utf-16>a");
        assert_eq!(text(b"<meta charset=nonsense>\xE4", None), "<meta charset=nonsense>\u{FFFD}");
        assert_eq!(text(b"<meta charset=nonsense>\xE4", Some("text/html; charset=latin1")).chars().last(), Some('ä'));
    }

    #[test]
    fn a_text_is_turned_only_when_its_server_says_so() {
        assert_eq!(&*utf8(b"\xE4", Some("text/plain; charset=iso-8859-1")), "ä".as_bytes());
        assert_eq!(&*utf8(b"\xE4", Some("text/plain")), b"\xE4");
        assert_eq!(&*utf8(b"\xE4", None), b"\xE4");
        assert_eq!(&*utf8("ä".as_bytes(), Some("text/plain; charset=iso-8859-1")), "ä".as_bytes());
    }

    #[test]
    fn what_cannot_be_decoded_is_counted() {
        let decoded = decode(b"<meta charset=shift_jis>\x82\r\n\0", None);
        assert_eq!((decoded.text.as_str(), decoded.repaired_bytes), ("<meta charset=shift_jis>\u{FFFD}\n\u{FFFD}", 2));
    }
}
