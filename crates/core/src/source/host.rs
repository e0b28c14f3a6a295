// SPDX-License-Identifier: PostgreSQL

//! The host of a URL and the list of allowed hosts, for whoever is typing.
//!
//! Whether a URL is fetched is decided where it is fetched, by the URL as a parser reads it. Here is said beforehand what that
//! will come to, where a look at the text is enough; what is not plain is not judged.

use crate::error::{Error, Kind};
use std::net::Ipv4Addr;

/// The hint for a host that is not on the list, as the list would name it.
pub fn allow_host(entry: &str) -> String {
    format!(
        "A superuser can add it to the list: ALTER SYSTEM SET pg_rag.allowed_hosts = 'others,{entry}'; SELECT pg_reload_conf();"
    )
}

/// The error for a URL whose host is plainly not on the list of allowed hosts.
pub fn not_at_allowed_host(url: &str, allowed: &[String]) -> Option<Error> {
    let place = Place::of(url);
    let named = match &place {
        _ if allowed.is_empty() => false,
        Some(place) => allowed.iter().any(|entry| place.is_named_by(entry)),
        None => true,
    };
    let entry = place.map_or_else(|| "example.org".to_owned(), |place| place.entry());
    (!named).then(|| {
        Error::new(Kind::Forbidden, format!("location \"{url}\" is not at an allowed host"))
            .with_hint(allow_host(&entry))
    })
}

/// Host and port of a URL.
struct Place {
    host: String,
    port: u16,
    /// Whether it is the port that the scheme has anyway.
    usual: bool,
}

impl Place {
    /// `None` when it takes more than a look to know them.
    fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let usual = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, usual),
        };
        let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        // An address can be written in many ways.
        let is_number = host.rsplit('.').next()?.starts_with(|c: char| c.is_ascii_digit());
        let plain = !host.is_empty() && host.bytes().all(letter) && (!is_number || host.parse::<Ipv4Addr>().is_ok());
        plain.then(|| Self { host: host.to_ascii_lowercase(), port, usual: port == usual })
    }

    fn entry(&self) -> String {
        if self.usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Whether an entry of the list names it, or is not plain.
    fn is_named_by(&self, entry: &str) -> bool {
        let entry = entry.to_ascii_lowercase();
        let (name, port) = entry.split_once(':').map_or((entry.as_str(), None), |(name, port)| (name, Some(port)));
        let host = match name.strip_prefix("*.") {
            Some(above) => self.host.strip_suffix(above).is_some_and(|below| below.ends_with('.')),
            None => name == self.host,
        };
        !entry.is_ascii() || (host && port.map_or(self.usual, |port| port.parse() == Ok(self.port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_plainly_not_listed_is_told() {
        let listed = ["example.org", "*.docs.example.net", "files.example.org:8443", "10.0.0.5:80"].map(str::to_owned);
        for (url, entry) in [
            ("https://example.com/a", "example.com"),
            ("https://www.example.org/", "www.example.org"),
            ("https://docs.example.net/", "docs.example.net"),
            ("https://evildocs.example.net/", "evildocs.example.net"),
            ("http://example.org:8080/x:y", "example.org:8080"),
            ("https://files.example.org?q", "files.example.org"),
            ("http://10.0.0.6/", "10.0.0.6"),
        ] {
            let error = not_at_allowed_host(url, &listed).expect(url);
            assert_eq!(error.message, format!("location \"{url}\" is not at an allowed host"));
            assert!(error.hint.as_deref().is_some_and(|hint| hint.contains(&format!("'others,{entry}'"))), "{error:?}");
        }
        for url in [
            "https://example.org/a",
            "HTTPS://EXAMPLE.ORG:443",
            "http://a.b.docs.example.net/x?y",
            "https://files.example.org:8443/",
            "http://10.0.0.5/",
            // Not for a look to judge.
            "http://168427525/",
            "http://[::1]:80/",
            "https://bücher.example/",
            "https://example.org@evil.example/",
        ] {
            assert_eq!(not_at_allowed_host(url, &listed), None, "{url}");
        }
        let error = not_at_allowed_host("https://a.example/", &[]).expect("nothing is listed");
        assert!(error.hint.is_some_and(|hint| hint.contains("'others,a.example'")));
    }
}
