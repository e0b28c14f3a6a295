// SPDX-License-Identifier: PostgreSQL

//! Getting one URL: HTTP with limits.
//!
//! Owns redirects (each is vetted like the first URL), conditions (`If-None-Match`, `If-Modified-Since`), and the limits of
//! size, time and hops. A body is counted as it is unpacked, so that a small one cannot become a large one. Proxies of the
//! environment are not used, since whoever set them did not vet what they reach. Must not look into the body.

use super::guard::Guard;
use rag_core::error::{Error, Kind, Result};
use rag_core::source::{Limits, Seen};
use std::fmt;
use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::http::{Response, StatusCode, Uri, header};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use url::Url;

/// Redirects that are followed.
pub const MAX_HOPS: usize = 10;

/// Bytes of one answer's head.
const MAX_HEAD: usize = 64 << 10;

/// Longest that is waited for what can be done without.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked for as a page; a site may have it in Markdown.
pub const PAGE: &str = "text/html, text/markdown, text/plain, */*;q=0.5";

/// What a server answered.
#[derive(Debug)]
pub enum Answer {
    /// It is as it was seen.
    Unchanged,
    /// It is this.
    Page(Page),
}

/// A page.
#[derive(Debug)]
pub struct Page {
    /// The body, unpacked.
    pub bytes: Vec<u8>,
    /// Where it was in the end.
    pub url: Url,
    /// Content type as served.
    pub content_type: Option<String>,
    /// ETag.
    pub etag: Option<String>,
    /// Time of the last change as served.
    pub last_modified: Option<String>,
}

/// Finds the addresses of a host.
pub type Lookup = fn(&str, u16) -> std::io::Result<Vec<SocketAddr>>;

/// Asks the system.
pub fn system_lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    Ok((host.trim_matches(['[', ']']), port).to_socket_addrs()?.collect())
}

/// Who may be asked, and how much of an answer is taken; the time counts from when it was made, over all it is asked for.
#[derive(Debug)]
pub struct Client<'a> {
    guard: &'a Guard,
    lookup: Lookup,
    limits: &'a Limits,
    until: Instant,
}

impl<'a> Client<'a> {
    /// With all the time that a document may take.
    pub fn new(guard: &'a Guard, lookup: Lookup, limits: &'a Limits) -> Self {
        let until = Instant::now() + Duration::from_secs(u64::from(limits.max_seconds));
        Self { guard, lookup, limits, until }
    }

    /// For what can be done without: with half of the time that is left, and not more than [`PATIENCE`].
    pub fn hurried(&self) -> Self {
        let now = Instant::now();
        let until = now + (self.until.saturating_duration_since(now) / 2).min(PATIENCE);
        Self { guard: self.guard, lookup: self.lookup, limits: self.limits, until }
    }

    /// Gets `url`, following redirects; says [`Answer::Unchanged`] when it is as it was `seen`.
    pub fn get(&self, url: &Url, accept: &str, seen: Option<&Seen>) -> Result<Answer> {
        let mut url = url.clone();
        for _ in 0..=MAX_HOPS {
            self.guard.check(&url)?;
            let mut response = self.ask(&url, accept, seen)?;
            let status = response.status();
            if status == StatusCode::NOT_MODIFIED && seen.is_some() {
                return Ok(Answer::Unchanged);
            }
            if status.is_redirection() {
                url = target(&url, &response)?;
                continue;
            }
            if !status.is_success() {
                return Err(refused(&url, status));
            }
            let text = |name| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
            let (content_type, etag, last_modified) =
                (text(header::CONTENT_TYPE), text(header::ETAG), text(header::LAST_MODIFIED));
            let bytes = body(&url, &mut response, self.limits)?;
            return Ok(Answer::Page(Page { bytes, url, content_type, etag, last_modified }));
        }
        Err(Error::new(Kind::LimitExceeded, format!("\"{url}\" is reached by more than {MAX_HOPS} redirects")))
    }

    /// Gets `url` without condition.
    pub fn page(&self, url: &Url, accept: &str) -> Result<Page> {
        match self.get(url, accept, None)? {
            Answer::Page(page) => Ok(page),
            Answer::Unchanged => Err(Error::internal("a page is unchanged that was asked for without condition")),
        }
    }

    fn ask(&self, url: &Url, accept: &str, seen: Option<&Seen>) -> Result<Response<ureq::Body>> {
        let agent = agent(self.guard, self.lookup, self.until);
        let mut request = agent.get(url.as_str()).header(header::ACCEPT, accept);
        if let Some(seen) = seen {
            let known = [(header::IF_NONE_MATCH, &seen.etag), (header::IF_MODIFIED_SINCE, &seen.last_modified)];
            for (name, value) in known {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
        }
        request.call().map_err(|error| failed(url, error))
    }
}

/// An agent that connects to vetted addresses only, follows no redirect, and gives up at a time. One for each request: nothing is
/// kept open between them, least of all to an address vetted long ago.
pub fn agent(guard: &Guard, lookup: Lookup, until: Instant) -> Agent {
    let left = until.saturating_duration_since(Instant::now());
    let config = Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .max_response_header_size(MAX_HEAD)
        .timeout_global(Some(left.max(Duration::from_millis(1))))
        .user_agent(concat!("pg_rag/", env!("CARGO_PKG_VERSION")))
        .build();
    Agent::with_parts(config, DefaultConnector::new(), Vetted { guard: guard.clone(), lookup })
}

/// Where a redirect leads.
pub fn target(url: &Url, response: &Response<ureq::Body>) -> Result<Url> {
    let place = response.headers().get(header::LOCATION).and_then(|v| v.to_str().ok());
    let bad = |why: String| Error::new(Kind::BadContent, format!("\"{url}\" redirects {why}"));
    let place = place.ok_or_else(|| bad("to nowhere".to_owned()))?;
    url.join(place).map_err(|_| bad(format!("to \"{place}\", which is no URL")))
}

fn body(url: &Url, response: &mut Response<ureq::Body>, limits: &Limits) -> Result<Vec<u8>> {
    let max = limits.max_document_bytes;
    let too_large = || {
        Error::new(Kind::LimitExceeded, format!("\"{url}\" is larger than max_document_bytes {max}"))
            .with_hint("Raise it in the source's options: {\"limits\": {\"max_document_bytes\": ...}}.")
    };
    // What is announced as too large is not begun.
    if response.body().content_length().is_some_and(|length| length > max) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let read = response.body_mut().as_reader().take(max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| match ureq::Error::from(error) {
        ureq::Error::Timeout(_) => too_slow(url),
        error => failed(url, error),
    })?;
    if bytes.len() as u64 > max { Err(too_large()) } else { Ok(bytes) }
}

/// The error for an answer that is no success.
pub fn refused(url: &Url, status: StatusCode) -> Error {
    let kind = match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Kind::FileMissing,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Kind::Forbidden,
        _ => Kind::Io,
    };
    Error::new(kind, format!("\"{url}\" was answered by status {}", status.as_u16()))
}

fn too_slow(url: &Url) -> Error {
    Error::new(Kind::LimitExceeded, format!("\"{url}\" took longer than max_seconds"))
        .with_hint("Raise it in the source's options: {\"limits\": {\"max_seconds\": ...}}.")
}

/// The error for a request that got no answer.
pub fn failed(url: &Url, error: ureq::Error) -> Error {
    match error {
        ureq::Error::Timeout(_) => too_slow(url),
        ureq::Error::Other(other) => match other.downcast::<Refused>() {
            Ok(refused) => refused.0,
            Err(other) => Error::new(Kind::Io, format!("could not fetch \"{url}\": {other}")),
        },
        other => Error::new(Kind::Io, format!("could not fetch \"{url}\": {other}")),
    }
}

/// Resolves a host to vetted addresses. Blocks as long as the system's resolver does: a thread for its sake is not to be
/// had where this runs.
#[derive(Debug)]
struct Vetted {
    guard: Guard,
    lookup: Lookup,
}

impl Resolver for Vetted {
    fn resolve(
        &self,
        uri: &Uri,
        _: &ureq::config::Config,
        _: NextTimeout,
    ) -> std::result::Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().ok_or(ureq::Error::HostNotFound)?;
        let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let found = (self.lookup)(host, uri.port_u16().unwrap_or(usual)).map_err(|_| ureq::Error::HostNotFound)?;
        let vetted = self.guard.vet(host, &found).map_err(|e| ureq::Error::Other(Box::new(Refused(e))))?;
        let mut addresses = self.empty();
        // There is room for sixteen.
        vetted.into_iter().take(16).for_each(|address| addresses.push(address));
        Ok(addresses)
    }
}

/// An error of ours on its way through the client.
#[derive(Debug)]
struct Refused(Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Write;
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    thread_local! {
        /// Times a name was asked for, and the port of the server on this machine.
        static LOOKUPS: Cell<usize> = const { Cell::new(0) };
        static PORT: Cell<u16> = const { Cell::new(0) };
    }

    /// Of a block that nobody was given: public, and led nowhere.
    const NOWHERE: &str = "[2fff::1]";

    /// A name server that says something public first and this machine ever after.
    fn rebinding(_: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let before = LOOKUPS.replace(LOOKUPS.get() + 1);
        let address = if before == 0 { format!("{NOWHERE}:{port}") } else { format!("127.0.0.1:{}", PORT.get()) };
        Ok(vec![address.parse().map_err(std::io::Error::other)?])
    }

    /// One that says both at once.
    fn both(_: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        LOOKUPS.set(LOOKUPS.get() + 1);
        let addresses = [format!("127.0.0.1:{}", PORT.get()), format!("{NOWHERE}:{port}")];
        addresses.iter().map(|address| address.parse().map_err(std::io::Error::other)).collect()
    }

    /// A server on this machine that counts who comes.
    fn trap() -> &'static AtomicUsize {
        let counter: &'static AtomicUsize = Box::leak(Box::default());
        LOOKUPS.set(0);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        PORT.set(listener.local_addr().expect("an address").port());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret");
            }
        });
        counter
    }

    fn get(lookup: Lookup) -> Error {
        let guard = Guard::new(&[format!("rebind.example:{}", PORT.get())]).expect("hosts");
        let limits = Limits { max_seconds: 1, ..Limits::default() };
        let url = Url::parse(&format!("http://rebind.example:{}/", PORT.get())).expect("a URL");
        Client::new(&guard, lookup, &limits).page(&url, PAGE).map(|page| page.bytes).expect_err("nobody answers")
    }

    #[test]
    fn a_name_that_changes_its_mind_leads_nowhere() {
        let trap = trap();
        // Public when it was looked at: it is connected to that address, and asked for no other.
        let first = get(rebinding);
        assert!(matches!(first.kind, Kind::Io | Kind::LimitExceeded), "{first:?}");
        assert_eq!(LOOKUPS.get(), 1);
        // Private when it is asked again: it is not connected to at all.
        let second = get(rebinding);
        assert_eq!(second.kind, Kind::Forbidden, "{second:?}");
        assert_eq!(second.message, "\"rebind.example\" has the address 127.0.0.1, which is not public");
        assert_eq!((LOOKUPS.get(), trap.load(Ordering::SeqCst)), (2, 0));
    }

    #[test]
    fn of_several_addresses_only_the_public_are_tried() {
        let trap = trap();
        let error = get(both);
        assert!(matches!(error.kind, Kind::Io | Kind::LimitExceeded), "{error:?}");
        assert_eq!((LOOKUPS.get(), trap.load(Ordering::SeqCst)), (1, 0));
    }

    #[test]
    fn the_same_name_is_reached_where_its_address_is_allowed() {
        // The trap is one: it would have been seen.
        let trap = trap();
        let port = PORT.get();
        let guard = Guard::new(&[format!("127.0.0.1:{port}")]).expect("hosts");
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).expect("a URL");
        let limits = Limits::default();
        let page = Client::new(&guard, system_lookup, &limits).page(&url, PAGE).expect("a page");
        assert_eq!((page.bytes.as_slice(), trap.load(Ordering::SeqCst)), (&b"secret"[..], 1));
    }
}
