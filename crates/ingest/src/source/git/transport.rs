// SPDX-License-Identifier: PostgreSQL

//! Git's smart protocol over HTTP, for libgit2.
//!
//! Owns how a repository's bytes come here: every connection is made by the client that fetches pages, to an address that the
//! guard has vetted, and everything received is counted and timed, unpacked or not. libgit2 is built without HTTPS and
//! without SSH; its own HTTP would know no guard. It is given an address of a scheme that nobody but this module serves,
//! so that it cannot fall back to it, or to reading files.
//!
//! As with git, a redirect of the first request moves the repository, and of no other is followed. Must not look into what is
//! sent.

use super::super::web::fetch::{self, MAX_HOPS, system_lookup};
use super::super::web::guard::Guard;
use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream, Transport};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::Limits;
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};
use ureq::http::{Response, StatusCode, header};
use ureq::{Body, BodyReader};
use url::Url;

/// What libgit2 takes for the repository's address.
pub const ADDRESS: &str = "pg-rag://repository";

const SCHEME: &str = "pg-rag";

/// What a server of repositories appends to a repository's URL when it is asked for the refs.
const REFS: &str = "/info/refs";

/// Bytes of an answer that says which refs there are; each has at least 50.
const MAX_REFS: u64 = 64 << 20;

/// A repository on a server, as far as talking to it is concerned.
#[derive(Clone)]
pub struct Server(Arc<Mutex<State>>);

struct State {
    /// Where the repository is; changed by a redirect.
    base: Url,
    guard: Guard,
    until: Instant,
    seconds: u32,
    left: u64,
    bytes: u64,
    /// What went wrong; libgit2 passes on no more than its words.
    failure: Option<Error>,
    /// Whether that was the status of an answer to a request for objects.
    declined: bool,
}

thread_local! {
    /// The server that libgit2 talks to in this thread. What makes its transports is called without an argument of ours.
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

impl Server {
    /// The server of the repository at `base`.
    pub fn new(base: Url, guard: Guard, limits: &Limits) -> Self {
        let until = Instant::now() + Duration::from_secs(u64::from(limits.max_download_seconds));
        let (bytes, seconds) = (limits.max_download_bytes, limits.max_download_seconds);
        Self(Arc::new(Mutex::new(State {
            base,
            guard,
            until,
            seconds,
            left: bytes,
            bytes,
            failure: None,
            declined: false,
        })))
    }

    /// Does something during which [`ADDRESS`] is the repository.
    pub fn serve<T>(&self, what: impl FnOnce() -> T) -> T {
        register();
        SERVER.set(Some(self.clone()));
        let done = what();
        SERVER.set(None);
        done
    }

    /// Why the last exchange ended, if this side ended it.
    pub fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Takes back what went wrong, if all that happened is that the server declined to give out what it was asked for.
    pub fn pardon(&self) -> Option<Error> {
        let mut state = self.lock();
        if std::mem::take(&mut state.declined) { state.failure.take() } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells libgit2 who serves the scheme.
#[allow(unsafe_code)]
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let transport = |remote: &git2::Remote<'_>| match SERVER.with_borrow(Clone::clone) {
            Some(server) => Transport::smart(remote, true, server),
            None => Err(git2::Error::from_str("there is no server")),
        };
        // SAFETY: nothing makes a transport in the meantime, since all who do have come by here first. Should it fail, no
        // transport is found for the scheme.
        let _ = unsafe { git2::transport::register(SCHEME, transport) };
    });
}

impl SmartSubtransport for Server {
    fn action(&self, _: &str, service: Service) -> std::result::Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let request = match service {
            Service::UploadPackLs => None,
            Service::UploadPack => Some(Vec::new()),
            Service::ReceivePackLs | Service::ReceivePack => return Err(git2::Error::from_str("nothing is sent")),
        };
        let left = if request.is_none() { MAX_REFS } else { u64::MAX };
        Ok(Box::new(Exchange { server: self.clone(), request, left, answer: None }))
    }

    fn close(&self) -> std::result::Result<(), git2::Error> {
        Ok(())
    }
}

/// One request and its answer.
struct Exchange {
    server: Server,
    /// `None` to ask for the refs.
    request: Option<Vec<u8>>,
    /// Bytes that the answer may still have.
    left: u64,
    answer: Option<BodyReader<'static>>,
}

impl Write for Exchange {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.request {
            Some(request) => request.write(bytes),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Exchange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.server.lock();
        let answer = match &mut self.answer {
            Some(answer) => answer,
            None => {
                let asked = state.ask(self.request.take());
                self.answer.insert(asked.map_err(|error| state.fail(error))?)
            }
        };
        let received = answer.read(buffer).map_err(|e| state.broken(e.into())).and_then(|n| state.count(n));
        let counted = received.and_then(|n| match self.left.checked_sub(n as u64) {
            Some(left) => {
                self.left = left;
                Ok(n)
            }
            None => Err(state.too_many_refs()),
        });
        counted.map_err(|error| state.fail(error))
    }
}

impl State {
    fn ask(&mut self, request: Option<Vec<u8>>) -> Result<BodyReader<'static>> {
        let (response, expected) = match request {
            None => (self.refs()?, "application/x-git-upload-pack-advertisement"),
            Some(request) => (self.pack(&request)?, "application/x-git-upload-pack-result"),
        };
        let found = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        if found != expected {
            let message = format!("\"{}\" is not a git repository served over HTTP", self.base);
            return Err(Error::new(Kind::BadContent, message)
                .with_detail(format!("Its answer is of the type \"{found}\" and not \"{expected}\"."))
                .with_hint("Give the URL that `git clone` takes."));
        }
        Ok(response.into_body().into_reader())
    }

    /// Asks for the refs, and learns where the repository is.
    fn refs(&mut self) -> Result<Response<Body>> {
        let mut url = below(&self.base, REFS);
        url.set_query(Some("service=git-upload-pack"));
        for _ in 0..=MAX_HOPS {
            self.guard.check(&url)?;
            let response = self.agent().get(url.as_str()).call().map_err(|e| self.broken(e))?;
            if response.status().is_redirection() {
                url = fetch::target(&url, &response)?;
                continue;
            }
            let path = url.path().strip_suffix(REFS).map(str::to_owned);
            let Some(path) = path.filter(|_| response.status().is_success()) else {
                return Err(refused(&url, response.status()));
            };
            self.base = url;
            self.base.set_path(&path);
            self.base.set_query(None);
            return Ok(response);
        }
        Err(Error::new(Kind::LimitExceeded, format!("\"{}\" is reached by more than {MAX_HOPS} redirects", self.base)))
    }

    fn pack(&mut self, request: &[u8]) -> Result<Response<Body>> {
        let url = below(&self.base, "/git-upload-pack");
        self.guard.check(&url)?;
        let response = self
            .agent()
            .post(url.as_str())
            .header(header::CONTENT_TYPE, "application/x-git-upload-pack-request")
            .header(header::ACCEPT, "application/x-git-upload-pack-result")
            .send(request)
            .map_err(|e| self.broken(e))?;
        self.declined = response.status().is_client_error() || response.status().is_server_error();
        if response.status().is_success() { Ok(response) } else { Err(refused(&url, response.status())) }
    }

    fn agent(&self) -> ureq::Agent {
        fetch::agent(&self.guard, system_lookup, self.until)
    }

    /// Counts what was received.
    fn count(&mut self, received: usize) -> Result<usize> {
        match self.left.checked_sub(received as u64) {
            Some(left) if Instant::now() < self.until => {
                self.left = left;
                Ok(received)
            }
            Some(_) => Err(self.too_slow()),
            None => {
                let (url, bytes) = (&self.base, self.bytes);
                Err(Error::new(Kind::LimitExceeded, format!("\"{url}\" sent more than max_download_bytes {bytes}"))
                    .with_hint("Raise it in the source's options: {\"limits\": {\"max_download_bytes\": ...}}."))
            }
        }
    }

    fn too_many_refs(&self) -> Error {
        let message = format!("\"{}\" has more than {} MB of branches, tags and other refs", self.base, MAX_REFS >> 20);
        Error::new(Kind::LimitExceeded, message)
            .with_hint("Clone what is wanted of it to the server's disk, and name that folder.")
    }

    fn too_slow(&self) -> Error {
        let (url, seconds) = (&self.base, self.seconds);
        Error::new(Kind::LimitExceeded, format!("\"{url}\" took longer than max_download_seconds {seconds}"))
            .with_hint("Raise it in the source's options: {\"limits\": {\"max_download_seconds\": ...}}.")
    }

    fn broken(&self, error: ureq::Error) -> Error {
        match error {
            ureq::Error::Timeout(_) => self.too_slow(),
            other => fetch::failed(&self.base, other),
        }
    }

    /// Keeps an error, and makes one of it for libgit2.
    fn fail(&mut self, error: Error) -> io::Error {
        let words = io::Error::other(error.message.replace('\0', " "));
        self.failure = Some(error);
        words
    }
}

/// A URL with more at the end of its path.
fn below(base: &Url, more: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{more}", base.path().trim_end_matches('/')));
    url
}

fn refused(url: &Url, status: StatusCode) -> Error {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Error::new(Kind::Forbidden, format!("\"{url}\" is not open to everybody: status {}", status.as_u16()))
                .with_hint(
                    "Repositories are cloned without a password; clone it to the server's disk, and name that folder.",
                )
        }
        status if status.is_success() => {
            Error::new(Kind::BadContent, format!("\"{url}\" was redirected to and is no git repository"))
        }
        status if status.is_redirection() => {
            Error::new(Kind::BadContent, format!("\"{url}\" redirects, which only the first request may"))
        }
        status => fetch::refused(url, status),
    }
}
