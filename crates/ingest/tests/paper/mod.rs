// SPDX-License-Identifier: PostgreSQL

//! A PDF of any number of pages, written here because of its size; what stands on it is known without reading it.
// Each test program uses a part.
#![allow(dead_code)]

/// Lines of a page, as many as a book has.
pub const LINES: usize = 45;

const WORDS: &[&str] = &[
    "anchor", "barrel", "candle", "dredger", "eel", "ferry", "gull", "harbour", "iron", "jetty", "keel", "lantern",
    "mast", "net", "oar", "pilot", "quay", "rope", "sail", "tide", "under", "varnish", "wharf", "yard", "zinc",
    "before", "carries", "draws", "every", "finds",
];

/// The words of a line; both numbers from 1. No two lines have the same, so that none is taken for a running header.
pub fn line(page: usize, line: usize) -> String {
    let mut seed = (page * 100 + line) as u64;
    let mut word = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        WORDS[(seed >> 33) as usize % WORDS.len()]
    };
    let words: Vec<&str> = (0..9).map(|_| word()).collect();
    format!("{} page {page} line {line}", words.join(" "))
}

/// A file of `count` pages with `lines` lines each.
pub fn pdf(count: usize, lines: usize) -> Vec<u8> {
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        format!(
            "<</Type/Pages/MediaBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>>>/Count {count}/Kids[{}]>>",
            (0..count).map(|n| format!("{} 0 R ", 4 + 2 * n)).collect::<String>()
        ),
        "<</Type/Font/Subtype/Type1/BaseFont/Courier>>".to_owned(),
    ];
    for page in 1..=count {
        let shown = |n: usize| format!("BT /F 10 Tf 50 {} Td ({}) Tj ET\n", 754 - 14 * n, line(page, n));
        let content: String = (1..=lines).map(shown).collect();
        objects.push(format!("<</Type/Page/Parent 2 0 R/Contents {} 0 R>>", 3 + 2 * page));
        objects.push(format!("<</Length {}>>stream\n{content}endstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = String::new();
    for (number, object) in objects.iter().enumerate() {
        places.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let (size, at) = (objects.len() + 1, file.len());
    file.push_str(&format!(
        "xref\n0 {size}\n0000000000 65535 f \n{places}trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{at}\n%%EOF\n"
    ));
    file.into_bytes()
}
