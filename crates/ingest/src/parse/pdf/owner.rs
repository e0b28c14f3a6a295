// SPDX-License-Identifier: PostgreSQL

//! The owner's password: from it to the user's, which opens the document.
//!
//! hayro-syntax opens a document that is encrypted in the old ways (revisions 2 to 4) with the user's password only. The
//! file holds that password, encrypted with the owner's (ISO 32000-1, 7.6.3.4, algorithms 3 and 7), and whoever
//! knows the second may know the first. Decrypts nothing else.

use hayro_syntax::object::{Dict, FromBytes, Name, Number, ObjRef, String as PdfString};
use md5::{Digest, Md5};

/// What fills a password up to 32 bytes.
const PADDING: [u8; 32] = [
    0x28, 0xBF, 0x4E, 0x5E, 0x4E, 0x75, 0x8A, 0x41, 0x64, 0x00, 0x4E, 0x56, 0xFF, 0xFA, 0x01, 0x08, 0x2E, 0x2E, 0x00,
    0xB6, 0xD0, 0x68, 0x3E, 0x80, 0x2F, 0x0C, 0xA9, 0xFE, 0x64, 0x53, 0x69, 0x7A,
];

/// The user's password of a file, if `owner` is that of the owner; something useless if it is not.
pub fn user_password(file: &[u8], owner: &str) -> Option<String> {
    let dict = encryption(file)?;
    dict.get::<Name<'_>>("Filter").filter(|filter| filter.as_ref() == b"Standard")?;
    let number = |key: &str| dict.get::<Number>(key).map(|n| n.as_i64());
    let revision = number("R").filter(|revision| (2..=4).contains(revision))?;
    let length = if revision == 2 { 5 } else { usize::try_from(number("Length").unwrap_or(128) / 8).ok()? };
    let secret = dict.get::<PdfString<'_>>("O")?;
    let mut hash = Md5::digest(padded(owner.as_bytes()));
    if revision > 2 {
        for _ in 0..50 {
            hash = Md5::digest(hash);
        }
    }
    let key = hash.get(..length).filter(|key| !key.is_empty())?;
    let mut password = secret.as_bytes().to_vec();
    for round in (0..if revision == 2 { 1 } else { 20_u8 }).rev() {
        let key: Vec<u8> = key.iter().map(|byte| byte ^ round).collect();
        password = rc4(&key, &password);
    }
    let start = (0..=password.len()).find(|start| PADDING.starts_with(&password[*start..]))?;
    String::from_utf8(password[..start].to_vec()).ok()
}

/// The dictionary that says how a file is encrypted: it is never itself encrypted or compressed.
fn encryption(file: &[u8]) -> Option<Dict<'_>> {
    let name = b"/Encrypt";
    let at = file.windows(name.len()).rposition(|window| window == name)?;
    let after = file[at + name.len()..].trim_ascii_start();
    if after.starts_with(b"<<") {
        return Dict::from_bytes(after);
    }
    let to = ObjRef::from_bytes(after)?;
    let head = format!("{} {} obj", to.obj_number, to.gen_number);
    let begins = |at: usize| at == 0 || file[at - 1].is_ascii_whitespace();
    let mut places = file.windows(head.len()).enumerate().filter(|(_, window)| *window == head.as_bytes());
    let (at, _) = places.find(|(at, _)| begins(*at))?;
    Dict::from_bytes(file[at + head.len()..].trim_ascii_start())
}

fn padded(password: &[u8]) -> Vec<u8> {
    password.iter().chain(&PADDING).take(32).copied().collect()
}

fn rc4(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut state: [u8; 256] = std::array::from_fn(|i| i as u8);
    let mut j = 0_u8;
    for i in 0..256 {
        j = j.wrapping_add(state[i]).wrapping_add(key[i % key.len()]);
        state.swap(i, usize::from(j));
    }
    let (mut i, mut j) = (0_u8, 0_u8);
    let next = |byte: &u8| {
        i = i.wrapping_add(1);
        j = j.wrapping_add(state[usize::from(i)]);
        state.swap(usize::from(i), usize::from(j));
        byte ^ state[usize::from(state[usize::from(i)].wrapping_add(state[usize::from(j)]))]
    };
    data.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rc4_is_the_cipher() {
        // Test vectors that are known from the first description of it.
        assert_eq!(rc4(b"Key", b"Plaintext"), [0xBB, 0xF3, 0x16, 0xE8, 0xD9, 0x40, 0xAF, 0x0A, 0xD3]);
        assert_eq!(rc4(b"Wiki", b"pedia"), [0x10, 0x21, 0xBF, 0x04, 0x20]);
    }
}
