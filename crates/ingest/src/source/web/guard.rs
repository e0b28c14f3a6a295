// SPDX-License-Identifier: PostgreSQL

//! Which hosts may be talked to, and at which addresses.
//!
//! A server in a data centre reaches what its users do not: neighbours, metadata services, itself. So a URL is fetched only
//! when the superuser named its host, and only from an address that everybody on the internet could reach as well. A
//! name is resolved once and the connection is made to the address that was looked at, so what a name server says a
//! moment later does not matter. Redirects are looked at like the first URL. A private address is reached only when the
//! superuser named that address, with its port.

use rag_core::error::{Error, Kind, Result};
use rag_core::source::allow_host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use url::{Host, Url};

/// The allowed hosts.
#[derive(Debug, Clone)]
pub struct Guard {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    host: Name,
    /// `None` for the usual ports.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    /// This host.
    Exact(String),
    /// Every host beneath it.
    Beneath(String),
    /// This address.
    Address(IpAddr),
}

impl Guard {
    /// Reads a list of `host`, `*.host`, `address`, each with `:port` or without.
    pub fn new(allowed: &[String]) -> Result<Self> {
        let rule = |entry: &String| {
            let bad = || {
                Error::invalid(format!("\"{entry}\" in pg_rag.allowed_hosts is no host"))
                    .with_hint("Write example.org, *.example.org, example.org:8443 or 10.0.0.5:8080.")
            };
            let (beneath, rest) = entry.strip_prefix("*.").map_or((false, entry.as_str()), |rest| (true, rest));
            let url = Url::parse(&format!("http://{rest}/")).map_err(|_| bad())?;
            let port = rest.rsplit_once(':').filter(|(host, _)| !host.ends_with(':') && !rest.ends_with(']'));
            let port = port.map(|(_, port)| port.parse().map_err(|_| bad())).transpose()?;
            let host = match url.host() {
                Some(Host::Domain(name)) if beneath => Name::Beneath(name.to_owned()),
                Some(Host::Domain(name)) => Name::Exact(name.to_owned()),
                Some(Host::Ipv4(ip)) if !beneath => Name::Address(ip.into()),
                Some(Host::Ipv6(ip)) if !beneath => Name::Address(ip.into()),
                _ => return Err(bad()),
            };
            Ok(Rule { host, port })
        };
        Ok(Self { rules: allowed.iter().map(rule).collect::<Result<_>>()? })
    }

    /// Whether a URL may be fetched at all, as far as it says by itself.
    pub fn check(&self, url: &Url) -> Result<()> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::new(Kind::Forbidden, format!("scheme \"{}\" is not fetched", url.scheme()))
                .with_hint("Only http and https are."));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::new(Kind::Forbidden, "a URL with a user or a password is not fetched"));
        }
        let port = url.port_or_known_default().unwrap_or_default();
        let allowed = match url.host() {
            Some(Host::Domain(name)) => self.rules.iter().any(|rule| {
                rule.has(port, url)
                    && match &rule.host {
                        Name::Exact(host) => host == name,
                        Name::Beneath(host) => name.strip_suffix(host.as_str()).is_some_and(|sub| sub.ends_with('.')),
                        Name::Address(_) => false,
                    }
            }),
            Some(Host::Ipv4(ip)) => self.names(ip.into(), port, url),
            Some(Host::Ipv6(ip)) => self.names(ip.into(), port, url),
            None => false,
        };
        if allowed {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        // Without a port an entry is for the usual ones.
        let entry = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Err(Error::new(Kind::Forbidden, format!("host \"{host}\" is not allowed at port {port}"))
            .with_hint(allow_host(&entry)))
    }

    fn names(&self, ip: IpAddr, port: u16, url: &Url) -> bool {
        self.rules.iter().any(|rule| rule.has(port, url) && rule.host == Name::Address(ip))
    }

    /// Of the addresses of a host those that may be reached; an error when there is none.
    pub fn vet(&self, host: &str, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>> {
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let named = |address: &SocketAddr| {
            literal == Some(address.ip())
                && self.rules.iter().any(|r| r.host == Name::Address(address.ip()) && r.port == Some(address.port()))
        };
        let vetted: Vec<SocketAddr> =
            addresses.iter().copied().filter(|address| is_public(address.ip()) || named(address)).collect();
        match addresses.first() {
            _ if !vetted.is_empty() => Ok(vetted),
            Some(first) => Err(Error::new(
                Kind::Forbidden,
                format!("\"{host}\" has the address {}, which is not public", first.ip()),
            )
            .with_hint(format!("A superuser can allow it by its address: add {first} to pg_rag.allowed_hosts."))),
            None => Err(Error::new(Kind::Io, format!("host \"{host}\" has no address"))),
        }
    }
}

impl Rule {
    fn has(&self, port: u16, url: &Url) -> bool {
        match self.port {
            Some(own) => own == port,
            None => url.port().is_none(),
        }
    }
}

/// Whether an address is one that the whole internet can reach, by the registries of special addresses of RFC 6890 and its
/// updates.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || ip.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match s {
        // An address of version 4 inside: mapped, translated (RFC 6052), 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            v4(high, low)
        }
        // Protocol assignments, Teredo among them, and documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xDB8 => false,
        [0x3FFF, second, ..] if second < 0x1000 => false,
        // Only this block is given out for the internet.
        [first, ..] => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(hosts: &[&str]) -> Guard {
        Guard::new(&hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>()).expect("hosts")
    }

    fn allows(hosts: &[&str], url: &str) -> bool {
        guard(hosts).check(&Url::parse(url).expect("URL")).is_ok()
    }

    #[test]
    fn a_host_must_be_named_with_its_port() {
        let hosts =
            ["example.org", "*.docs.example.net", "files.example.org:8443", "93.184.216.34", "[2606:2800::1]:80"];
        for url in [
            "https://example.org/a",
            "http://EXAMPLE.org/",
            "https://example.org:443/",
            "https://a.b.docs.example.net/x?y",
            "https://files.example.org:8443/",
            "http://93.184.216.34/",
            "http://1572395042/",
            "http://[2606:2800::1]/",
        ] {
            assert!(allows(&hosts, url), "{url}");
        }
        for url in [
            "https://example.org:8443/",
            "https://www.example.org/",
            "https://docs.example.net/",
            "https://evildocs.example.net/",
            "https://example.org.evil.net/",
            "https://files.example.org/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "https://user:secret@example.org/",
            "http://93.184.216.35/",
        ] {
            assert!(!allows(&hosts, url), "{url}");
        }
        assert!(!allows(&[], "https://example.org/"));
        let hint = |url: &str| guard(&[]).check(&Url::parse(url).expect("URL")).expect_err(url).hint.expect(url);
        assert!(hint("https://example.org/a").contains("= 'others,example.org';"));
        assert!(hint("https://example.org:8443/a").contains("= 'others,example.org:8443';"));
        let bad = Guard::new(&["http://x/".to_owned()]).expect_err("no host");
        assert_eq!(bad.message, "\"http://x/\" in pg_rag.allowed_hosts is no host");
    }

    #[test]
    fn special_addresses_are_not_public() {
        for special in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(special.parse().expect("address")), "{special}");
        }
        for public in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(public.parse().expect("address")), "{public}");
        }
    }

    #[test]
    fn only_vetted_addresses_are_connected_to() {
        let all: Vec<SocketAddr> = ["10.0.0.1:443", "93.184.216.34:443", "127.0.0.1:443"]
            .iter()
            .map(|a| a.parse().expect("address"))
            .collect();
        let guarded = guard(&["example.org", "127.0.0.1:443"]);
        assert_eq!(guarded.vet("example.org", &all).expect("one"), [all[1]]);
        let error = guarded.vet("example.org", &all[..1]).expect_err("private");
        assert_eq!(error.message, "\"example.org\" has the address 10.0.0.1, which is not public");
        // Named by its address it may be reached, but a name that leads there may not.
        assert_eq!(guarded.vet("127.0.0.1", &all[2..]).expect("named"), [all[2]]);
        assert!(guarded.vet("example.org", &all[2..]).is_err());
        assert!(guard(&["127.0.0.1"]).vet("127.0.0.1", &all[2..]).is_err(), "without its port");
    }
}
