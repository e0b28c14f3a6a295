// SPDX-License-Identifier: PostgreSQL

//! Names of members: from the bytes in an archive to a path, or to the reason why it is none.
//!
//! Owns two rules. *Decoding*: a name is UTF-8 when it says so or is valid as such; else its encoding is guessed from the
//! name alone, so that a member keeps its name whatever lies beside it (unless that has the same). Bytes of a name that claims to be UTF-8 and is not are
//! written as `%XX`, like those of a file's name. *Safety*: nothing is ever written to a path of an archive, but it becomes the
//! identity of a document, so a path that points out of its archive is refused and not mended. Must not know what a member is.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, SHIFT_JIS, WINDOWS_1252};
use rag_core::error::{Error, Kind};

/// Longest path of a member in bytes: that of a file system.
const MAX_PATH: usize = 4096;

/// Most parts of a path. Each member is compared with every folder above it, so that they must be few.
const MAX_PARTS: usize = 128;

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

/// The name of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Its path, with `/` between its parts and neither empty parts nor `.`.
    pub path: String,
    /// Where the path was guessed: the same with its bytes as `%XX`, for when another member has that path.
    pub literal: Option<String>,
}

/// The name of a member; or what to call it, and why it has none: what is to be said of it.
pub fn read(raw: &[u8], style: Style) -> Result<Name, (String, Error)> {
    if raw.len() > MAX_PATH {
        let length = raw.len();
        let (start, _) = decode(&raw[..100], style.utf8);
        let message = format!("has a name of {length} bytes, longer than {MAX_PATH}");
        return Err((format!("{}…", start.replace('\0', "\u{FFFD}")), Error::new(Kind::LimitExceeded, message)));
    }
    let (name, guessed) = decode(raw, style.utf8);
    let path = plain(&name, style.backslash)?;
    // A backslash may be half of a letter.
    let literal = guessed.then(|| plain(&escape(raw), false).ok()).flatten();
    Ok(Name { path, literal })
}

fn plain(name: &str, backslash: bool) -> Result<String, (String, Error)> {
    let name = if backslash { name.replace('\\', "/") } else { name.to_owned() };
    let refuse = |kind: Kind, why: &str| Err((name.replace('\0', "\u{FFFD}"), Error::new(kind, why)));
    let drive = matches!(name.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    if name.contains('\0') {
        return refuse(Kind::BadContent, "has a NUL in its name");
    }
    if name.starts_with('/') || (backslash && drive) {
        return refuse(Kind::Forbidden, "has an absolute path");
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return refuse(Kind::Forbidden, "leads out of its folder by \"..\"");
    }
    match parts.len() {
        0 => refuse(Kind::BadContent, "has no name"),
        1..=MAX_PARTS => Ok(parts.join("/")),
        _ => refuse(Kind::LimitExceeded, "lies beneath more than 127 folders"),
    }
}

/// The text of a name, and whether its encoding was guessed.
fn decode(raw: &[u8], utf8: bool) -> (String, bool) {
    match std::str::from_utf8(raw) {
        Ok(name) => return (name.to_owned(), false),
        Err(_) if utf8 => return (escape(raw), false),
        Err(_) => {}
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(raw, true);
    match decode_as(detector.guess(None, Utf8Detection::Deny), raw) {
        Some(name) => (name, true),
        None => (escape(raw), false),
    }
}

/// The name in an encoding, or in one that is likelier; `None` when it cannot be.
///
/// Where the encodings of Windows have rare quotes and dashes, Shift-JIS has the first byte of its letters and DOS the letters
/// of Western Europe. The detector needs more text than a name to see the one and does not know the other.
fn decode_as(guess: &'static Encoding, raw: &[u8]) -> Option<String> {
    let rare = raw.iter().filter(|b| (0x80..0xA0).contains(*b)).count();
    if guess.name().starts_with("windows-") && rare > 1 {
        let japanese = |c: char| c.is_ascii() || matches!(c, '\u{3040}'..='\u{30FF}' | '\u{4E00}'..='\u{9FFF}');
        let name = SHIFT_JIS.decode_without_bom_handling_and_without_replacement(raw);
        if let Some(name) = name.filter(|name| name.chars().all(japanese)) {
            return Some(name.into_owned());
        }
    }
    if guess == WINDOWS_1252 && rare > 0 {
        let upper: Vec<char> = CP437.chars().collect();
        let letter = |b: &u8| match b {
            0..0x80 => Some(char::from(*b)),
            upper_half => upper.get(usize::from(upper_half - 0x80)).copied(),
        };
        return raw.iter().map(letter).collect();
    }
    guess.decode_without_bom_handling_and_without_replacement(raw).map(std::borrow::Cow::into_owned)
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
        // The bytes are Python's: "…".encode("shift_jis"), "cp437", "latin-1", "cp1251", "cp866", "gbk".
        for (raw, name) in [
            (&b"caf\xE9.md"[..], "café.md"),
            (b"caf\x82.md", "café.md"),
            (b"Gr\x94\xE1e.txt", "Größe.txt"),
            (b"\x93\xFA\x96\x7B\x8C\xEA.md", "日本語.md"),
            (b"\x89\xEF\x8Bc\x83\x81\x83\x82.txt", "会議メモ.txt"),
            (b"\xCE\xF2\xF7\xB8\xF2 \xE7\xE0 \xE3\xEE\xE4.md", "Отчёт за год.md"),
            (b"\x8E\xE2\xE7\xF1\xE2.md", "Отчёт.md"),
            (b"r\x82sum\x82.md", "résumé.md"),
            (b"\xCB\xB5\xC3\xF7.txt", "说明.txt"),
            ("日本語.md".as_bytes(), "日本語.md"),
            (b"plain.md", "plain.md"),
        ] {
            assert_eq!(read(raw, UNIX).expect("a path").path, name);
        }
        assert_eq!(read(b"bad\xFF\xFE.md", Style { utf8: true, ..UNIX }).expect("a path").path, "bad%FF%FE.md");
        assert_eq!(read(b"caf\xE9.md", UNIX).expect("a path").literal.as_deref(), Some("caf%E9.md"));
        assert_eq!(read(b"plain.md", UNIX).expect("a path").literal, None);
        assert_eq!(CP437.chars().count(), 128);
    }

    #[test]
    fn paths_are_plain() {
        assert_eq!(read(b"./a//b/./c.md", UNIX).expect("a path").path, "a/b/c.md");
        assert_eq!(read(b"a\\b.md", UNIX).expect("a path").path, "a\\b.md");
        assert_eq!(read(b"a\\b.md", WINDOWS).expect("a path").path, "a/b.md");
        assert_eq!(read(b"a:/b.md", UNIX).expect("a path").path, "a:/b.md");
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
            let (name, error) = read(raw, style).expect_err(message);
            assert_eq!((name.as_str(), error.message.as_str()), (shown, message));
        }
        assert!(read("a/".repeat(127).as_bytes(), UNIX).is_ok());
        let deep = read(format!("{}a", "a/".repeat(128)).as_bytes(), UNIX).expect_err("deep");
        assert_eq!(deep.1.message, "lies beneath more than 127 folders");
        let (shown, error) = read(&[b'x'; 5000], UNIX).expect_err("long");
        assert_eq!((shown.chars().count(), error.kind), (101, Kind::LimitExceeded));
    }
}
