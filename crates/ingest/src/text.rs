// SPDX-License-Identifier: PostgreSQL

//! Repair: from acquired bytes to the stored text.
//!
//! Owns the one rule by which bytes become text, so that every offset of every chunk refers to the same thing: a
//! byte-order mark is removed, CRLF and lone CR become LF, each maximal run of invalid UTF-8 and each NUL becomes
//! U+FFFD. NUL is replaced and not removed, as CommonMark does: removing it would join the words on its two sides. Text that opens
//! with a UTF-16 byte-order mark is decoded as UTF-16, since it would be unreadable otherwise. Must not look at what
//! the text says.

use serde_json::{Map, Value};

/// Text with the number of acquired bytes that had to be replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Valid UTF-8 without NUL, byte-order mark at its start, or CR.
    pub text: String,
    /// Bytes that were not valid or were NUL; byte-order mark and CR do not count.
    pub repaired_bytes: u64,
}

/// The stored text of `bytes`.
pub fn repair(bytes: &[u8]) -> Repaired {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Repaired {
    let mut out = Writer::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        out.push(part.valid());
        if !part.invalid().is_empty() {
            out.replace(part.invalid().len());
        }
    }
    out.finish()
}

fn utf16(bytes: &[u8], decode: fn([u8; 2]) -> u16) -> Repaired {
    let mut out = Writer::with_capacity(bytes.len());
    let (pairs, odd) = bytes.as_chunks::<2>();
    for unit in char::decode_utf16(pairs.iter().map(|pair| decode(*pair))) {
        match unit {
            Ok(c) => out.push(c.encode_utf8(&mut [0; 4])),
            Err(_) => out.replace(2),
        }
    }
    if !odd.is_empty() {
        out.replace(1);
    }
    out.finish()
}

/// Copies text while it mends line ends and NUL, which may stand on either side of a repaired run.
struct Writer {
    out: Repaired,
    after_cr: bool,
}

impl Writer {
    fn with_capacity(bytes: usize) -> Self {
        Self { out: Repaired { text: String::with_capacity(bytes), repaired_bytes: 0 }, after_cr: false }
    }

    fn push(&mut self, mut part: &str) {
        while !part.is_empty() {
            let plain = part.find(['\r', '\n', '\0']).unwrap_or(part.len());
            if plain > 0 {
                self.out.text.push_str(&part[..plain]);
                self.after_cr = false;
            }
            match part.as_bytes().get(plain) {
                Some(b'\0') => self.replace(1),
                Some(b'\r') => {
                    self.out.text.push('\n');
                    self.after_cr = true;
                }
                Some(_) => {
                    if !self.after_cr {
                        self.out.text.push('\n');
                    }
                    self.after_cr = false;
                }
                None => return,
            }
            part = &part[plain + 1..];
        }
    }

    fn replace(&mut self, bytes: usize) {
        self.out.text.push(char::REPLACEMENT_CHARACTER);
        self.out.repaired_bytes += bytes as u64;
        self.after_cr = false;
    }

    fn finish(self) -> Repaired {
        self.out
    }
}

/// Replaces NUL in one short string (a title, a key), which PostgreSQL cannot store.
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

/// Digits before and after the point of a number that `numeric` of PostgreSQL holds, and with it `jsonb`.
const BEFORE_POINT: i64 = 131_072;
const AFTER_POINT: i64 = 16_383;

/// Whether PostgreSQL holds a number of JSON as such.
fn is_numeric(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let Ok(exponent) = exponent.parse::<i64>() else { return false };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (before, after) = (whole.trim_start_matches('-').len() as i64, fraction.len() as i64);
    // An exponent of 64 bits may be as large as it gets.
    before.saturating_add(exponent) <= BEFORE_POINT && after.saturating_sub(exponent) <= AFTER_POINT
}

/// Replaces what the database cannot keep in a JSON value: NUL in strings and keys, and by their text numbers that are too large
/// or too small.
pub fn storable_value(value: Value) -> Value {
    match value {
        Value::Number(number) if !is_numeric(number.as_str()) => Value::String(number.to_string()),
        Value::String(s) if s.contains('\0') => Value::String(without_nul(&s)),
        Value::Array(many) => Value::Array(many.into_iter().map(storable_value).collect()),
        Value::Object(object) => Value::Object(storable_map(object)),
        other => other,
    }
}

/// The same in a JSON object.
pub fn storable_map(object: Map<String, Value>) -> Map<String, Value> {
    object.into_iter().map(|(k, v)| (without_nul(&k), storable_value(v))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], text: &str, repaired: u64) {
        assert_eq!(repair(bytes), Repaired { text: text.to_owned(), repaired_bytes: repaired }, "{bytes:?}");
    }

    #[test]
    fn line_ends_become_lf_and_are_no_repair() {
        check(b"a\r\nb\rc\n\r\n\r\r\nd\r", "a\nb\nc\n\n\n\nd\n", 0);
    }

    #[test]
    fn only_the_first_mark_is_removed() {
        check(b"\xEF\xBB\xBFa\xEF\xBB\xBF", "a\u{FEFF}", 0);
        check(b"\xEF\xBB\xBF", "", 0);
        check(b"", "", 0);
    }

    #[test]
    fn broken_bytes_and_nul_are_replaced_and_counted() {
        check(b"a\0b\xFF\xE2\x82c", "a\u{FFFD}b\u{FFFD}\u{FFFD}c", 4);
        check(b"\r\xFF\n", "\n\u{FFFD}\n", 1);
        check(b"\r\0\n", "\n\u{FFFD}\n", 1);
        check(b"caf\xE9 au lait", "caf\u{FFFD} au lait", 1);
    }

    #[test]
    fn utf16_with_a_mark_is_read() {
        check(b"\xFF\xFEh\0i\0\r\0\n\0", "hi\n", 0);
        check(b"\xFE\xFF\0h\0i\xD8\0\0!", "hi\u{FFFD}!", 2);
        check(b"\xFF\xFEh\0i", "h\u{FFFD}", 1);
    }

    #[test]
    fn json_strings_lose_nul() {
        let value = serde_json::json!({"a\0": ["b\0", {"c": "\0"}]});
        assert_eq!(storable_value(value), serde_json::json!({"a\u{FFFD}": ["b\u{FFFD}", {"c": "\u{FFFD}"}]}));
    }

    #[test]
    fn numbers_that_no_database_holds_become_text() {
        for (number, kept) in [
            ("1e131071", true),
            ("1e131072", false),
            ("-12.5E131070", true),
            ("1e-16383", true),
            ("1e-16384", false),
            ("0.5e-16383", false),
            ("1e99999999999999999999", false),
            ("1234567890123456789012", true),
        ] {
            let value: Value = serde_json::from_str(&format!("[{number}]")).expect("JSON");
            assert_eq!(storable_value(value)[0].is_number(), kept, "{number}");
        }
    }
}
