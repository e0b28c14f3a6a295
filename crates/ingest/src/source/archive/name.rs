// SPDX-License-Identifier: PostgreSQL

//! Names of members: from the bytes in an archive to a path, or to the reason why it is none.
//!
//! Owns two rules. *Decoding*: a name is UTF-8 when it says so or is valid as such; else its encoding is guessed from the
//! name alone, so that a member keeps its name whatever lies beside it. Bytes of a name that claims to be UTF-8 and is not are
//! written as `%XX`, like those of a file's name. *Safety*: nothing is ever written to a path of an archive, but it becomes the
//! identity of a document, so a path that points out of its archive is refused and not mended. Must not know what a member is.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, WINDOWS_1252};
use rag_core::error::{Error, Kind};

/// Longest path of a member in bytes: that of a file system.
const MAX_PATH: usize = 4096;

/// What a name with a byte of C1 is made of when it is Western: the upper half of the code page of DOS.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}";

/// How an archive writes names.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// The name says that it is UTF-8.
    pub utf8: bool,
    /// A backslash separates folders, as archives made on Windows have it against the specification.
    pub backslash: bool,
}

/// The path of a member, with `/` between its parts and neither empty parts nor `.`; or what to call it, and why it has none: what is to be said of it.
pub fn path(raw: &[u8], style: Style) -> Result<String, (String, Error)> {
    let mut name = decode(&raw[..raw.len().min(MAX_PATH)], style.utf8);
    if style.backslash {
        name = name.replace('\\', "/");
    }
    let shown = name.replace('\0', "\u{FFFD}");
    let refuse = |kind: Kind, why: &str| Err((shown.clone(), Error::new(kind, why)));
    if raw.len() > MAX_PATH {
        let (kind, length) = (Kind::LimitExceeded, raw.len());
        let start: String = shown.chars().take(100).collect();
        let message = format!("has a name of {length} bytes, longer than {MAX_PATH}");
        return Err((format!("{start}…"), Error::new(kind, message)));
    }
    let drive = matches!(name.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    if name.contains('\0') {
        return refuse(Kind::BadContent, "has a NUL in its name");
    }
    if name.starts_with('/') || (style.backslash && drive) {
        return refuse(Kind::Forbidden, "has an absolute path");
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return refuse(Kind::Forbidden, "leads out of its folder by \"..\"");
    }
    match parts.is_empty() {
        true => refuse(Kind::BadContent, "has no name"),
        false => Ok(parts.join("/")),
    }
}

fn decode(raw: &[u8], utf8: bool) -> String {
    if let Ok(name) = std::str::from_utf8(raw) {
        return name.to_owned();
    }
    if utf8 {
        return escape(raw);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(raw, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    match decode_as(guess, raw) {
        Some(name) => name,
        None => escape(raw),
    }
}

/// Where Windows has rare quotes and dashes, DOS has the letters of Western Europe; no detector knows DOS.
fn decode_as(guess: &'static Encoding, raw: &[u8]) -> Option<String> {
    if guess == WINDOWS_1252 && raw.iter().any(|b| (0x80..0xA0).contains(b)) {
        let upper: Vec<char> = CP437.chars().collect();
        let letter = |b: &u8| match b {
            0..0x80 => Some(char::from(*b)),
            upper_half => upper.get(usize::from(upper_half - 0x80)).copied(),
        };
        return raw.iter().map(letter).collect();
    }
    let (name, wrong) = guess.decode_without_bom_handling(raw);
    (!wrong).then(|| name.into_owned())
}

fn escape(raw: &[u8]) -> String {
    let mut name = String::with_capacity(raw.len());
    for part in raw.utf8_chunks() {
        name.push_str(part.valid());
        part.invalid().iter().for_each(|byte| name.push_str(&format!("%{byte:02X}")));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX: Style = Style { utf8: false, backslash: false };
    const WINDOWS: Style = Style { utf8: false, backslash: true };

    #[test]
    fn encodings_are_guessed_from_the_name_alone() {
        // The bytes are Python's: "…".encode("shift_jis"), "cp437", "latin-1", "koi8-r", "gbk".
        for (raw, name) in [
            (&b"caf\xE9.md"[..], "café.md"),
            (b"caf\x82.md", "café.md"),
            (b"Gr\x94\xE1e.txt", "Größe.txt"),
            (b"\x93\xFA\x96\x7B\x8C\xEA.md", "日本語.md"),
            (b"\xC4\xCF\xCB\xD5\xCD\xC5\xCE\xD4.txt", "документ.txt"),
            ("日本語.md".as_bytes(), "日本語.md"),
            (b"plain.md", "plain.md"),
        ] {
            assert_eq!(path(raw, UNIX).expect("a path"), name);
        }
        assert_eq!(path(b"bad\xFF\xFE.md", Style { utf8: true, ..UNIX }).expect("a path"), "bad%FF%FE.md");
        assert_eq!(CP437.chars().count(), 128);
    }

    #[test]
    fn paths_are_plain() {
        assert_eq!(path(b"./a//b/./c.md", UNIX).expect("a path"), "a/b/c.md");
        assert_eq!(path(b"a\\b.md", UNIX).expect("a path"), "a\\b.md");
        assert_eq!(path(b"a\\b.md", WINDOWS).expect("a path"), "a/b.md");
        assert_eq!(path(b"a:/b.md", UNIX).expect("a path"), "a:/b.md");
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        for (raw, style, shown, message) in [
            (&b"../a.md"[..], UNIX, "../a.md", "leads out of its folder by \"..\""),
            (b"a/../b.md", UNIX, "a/../b.md", "leads out of its folder by \"..\""),
            (b"..\\a.md", WINDOWS, "../a.md", "leads out of its folder by \"..\""),
            (b"/etc/x", UNIX, "/etc/x", "has an absolute path"),
            (b"\\x", WINDOWS, "/x", "has an absolute path"),
            (b"C:\\x", WINDOWS, "C:/x", "has an absolute path"),
            (b"a\0b", UNIX, "a\u{FFFD}b", "has a NUL in its name"),
            (b"./", UNIX, "./", "has no name"),
            (b"", UNIX, "", "has no name"),
        ] {
            let (name, error) = path(raw, style).expect_err(message);
            assert_eq!((name.as_str(), error.message.as_str()), (shown, message));
        }
        let (shown, error) = path(&[b'x'; 5000], UNIX).expect_err("long");
        assert_eq!((shown.chars().count(), error.kind), (101, Kind::LimitExceeded));
    }
}
