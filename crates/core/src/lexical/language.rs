// SPDX-License-Identifier: PostgreSQL

//! Which of PostgreSQL's text search configurations reads a language.
//!
//! Owns the names: those of the configurations that PostgreSQL brings, and the codes by which documents name languages. It
//! must not know which of them a server has; the caller looks.

/// The `text_search_config` of a source whose documents are read each by the configuration of its language.
pub const AUTO: &str = "auto";

/// What reads a text of no language, or of one that no configuration is for.
pub const NONE: &str = "simple";

/// Configurations with the codes of their languages: ISO 639-1, then 639-2 and 639-3.
const CONFIGURATIONS: &[(&str, &[&str])] = &[
    ("arabic", &["ar", "ara", "arb"]),
    ("armenian", &["hy", "hye", "arm"]),
    ("basque", &["eu", "eus", "baq"]),
    ("catalan", &["ca", "cat"]),
    ("danish", &["da", "dan"]),
    ("dutch", &["nl", "nld", "dut"]),
    ("english", &["en", "eng"]),
    ("estonian", &["et", "est", "ekk"]),
    ("finnish", &["fi", "fin"]),
    ("french", &["fr", "fra", "fre"]),
    ("german", &["de", "deu", "ger"]),
    ("greek", &["el", "ell", "gre"]),
    ("hindi", &["hi", "hin"]),
    ("hungarian", &["hu", "hun"]),
    ("indonesian", &["id", "ind"]),
    ("irish", &["ga", "gle"]),
    ("italian", &["it", "ita"]),
    ("lithuanian", &["lt", "lit"]),
    ("nepali", &["ne", "nep", "npi"]),
    ("norwegian", &["no", "nor", "nb", "nob", "nn", "nno"]),
    ("portuguese", &["pt", "por"]),
    ("romanian", &["ro", "ron", "rum"]),
    ("russian", &["ru", "rus"]),
    ("serbian", &["sr", "srp"]),
    ("spanish", &["es", "spa"]),
    ("swedish", &["sv", "swe"]),
    ("tamil", &["ta", "tam"]),
    ("turkish", &["tr", "tur"]),
    ("yiddish", &["yi", "yid", "ydd"]),
];

/// The name of the configuration for a language, which is a BCP 47 tag (`de`, `de-AT`, `deu`) or its English name.
pub fn configuration(language: &str) -> Option<&'static str> {
    let primary = language.trim().split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let found = CONFIGURATIONS.iter().find(|(name, codes)| *name == primary || codes.contains(&primary.as_str()));
    found.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn languages_are_known_by_code_and_by_name() {
        for (language, right) in [
            ("de", Some("german")),
            ("de-AT", Some("german")),
            ("en_US.UTF-8", Some("english")),
            ("fra", Some("french")),
            ("German", Some("german")),
            ("nb", Some("norwegian")),
            ("ja", None),
            ("rust", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(configuration(language), right, "{language}");
        }
    }

    #[test]
    fn a_code_means_one_language() {
        let codes: Vec<&str> = CONFIGURATIONS.iter().flat_map(|(_, codes)| codes.iter().copied()).collect();
        assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len());
        assert!(CONFIGURATIONS.is_sorted());
    }
}
