// SPDX-License-Identifier: PostgreSQL

//! A small server of pages over HTTP.
//!
//! Owns the exchange: a page that has not changed since it was seen is answered as such, and what was asked for is kept. What
//! there is to say at a path is the test's business.

use crate::TestResult;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

/// What there is at a path.
#[derive(Debug, Clone)]
pub struct Page {
    /// Its version.
    pub etag: String,
    /// Its content.
    pub body: String,
    /// Whether it is kept from whoever asks.
    pub forbidden: bool,
}

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The path that was asked for.
    pub path: String,
    /// Status of the answer.
    pub status: u16,
}

/// A running server; its thread ends with the test.
#[derive(Debug)]
pub struct Site {
    /// Host and port.
    pub address: String,
    given: Arc<Mutex<Vec<Given>>>,
}

impl Site {
    /// Serves what `at` says is at a path, one request after the other; where it says nothing there is nothing.
    pub fn start(at: impl Fn(&str) -> Option<Page> + Send + 'static) -> TestResult<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let site = Self { address: listener.local_addr()?.to_string(), given: Arc::default() };
        let given = site.given.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = vec![0; 8192];
                let read = stream.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
                let seen = |etag: &str| request.to_lowercase().contains(&format!("if-none-match: \"{etag}\""));
                let (status, more) = match at(&path) {
                    None => ("404 Not Found", "Content-Length: 0\r\n\r\n".to_owned()),
                    Some(page) if page.forbidden => ("403 Forbidden", "Content-Length: 0\r\n\r\n".to_owned()),
                    Some(page) if seen(&page.etag) => ("304 Not Modified", "\r\n".to_owned()),
                    Some(Page { etag, body, .. }) => {
                        ("200 OK", format!("ETag: \"{etag}\"\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
                    }
                };
                let number = status.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
                given.lock().unwrap_or_else(PoisonError::into_inner).push(Given { path, status: number });
                // Who asked may have gone.
                let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nConnection: close\r\n{more}").as_bytes());
            }
        });
        Ok(site)
    }

    /// The URL of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The answers so far.
    pub fn given(&self) -> Vec<Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
