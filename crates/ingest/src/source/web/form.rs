// SPDX-License-Identifier: PostgreSQL

//! Where a site keeps its own Markdown of a page.
//!
//! Owns three ways, the first that fits: a page names it (`<link rel="alternate" type="text/markdown">`); a blog of Hashnode
//! serves it beneath the page's address with `.md`; a community of Forem (dev.to) has it as `body_markdown` of its API. What a
//! page is made with, it says in its head, of which no more than the beginning is looked at, as tags and no further: this is
//! where the network is, and whoever reads a page in earnest has none. The address is vetted like any other, and is one of the
//! page's own host: a page must not make another source's host speak in its name. What was got is handed on as it is; whether it can be read for the page is decided where pages are read.

use super::fetch::{Client, Page};
use html5gum::{DefaultEmitter, Token, Tokenizer};
use rag_core::source::Rendition;
use url::Url;

/// Bytes of a page in which its head is looked for.
const LOOK: usize = 512 << 10;

/// Links of a head that are looked at.
const MAX_LINKS: usize = 1000;

/// Media types of feeds.
const FEEDS: &[&str] = &["application/rss+xml", "application/atom+xml", "application/feed+json"];

const MARKDOWN: &str = "text/markdown, text/x-markdown, text/plain;q=0.9";

/// What the head of a page says about other forms of it.
#[derive(Debug, Default)]
struct Head {
    /// Type, language and address of what is the same as the page.
    alternates: Vec<(String, bool, String)>,
    hashnode: bool,
    forem: bool,
}

impl Head {
    fn read(bytes: &[u8]) -> Self {
        let mut head = Self::default();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOK)]);
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(&*text, emitter) {
            let Ok(Token::StartTag(tag)) = token else { continue };
            let value = |name: &[u8]| tag.attributes.get(name).map(|value| String::from_utf8_lossy(value.as_slice()));
            match tag.name.as_slice() {
                b"body" => break,
                b"link" if head.alternates.len() < MAX_LINKS => {
                    let rel = value(b"rel").unwrap_or_default().to_ascii_lowercase();
                    let kind = value(b"type").unwrap_or_default().trim().to_ascii_lowercase();
                    let href = value(b"href").unwrap_or_default();
                    head.hashnode |= href.contains("://cdn.hashnode.com/");
                    if rel.split_ascii_whitespace().any(|word| word == "alternate") && !href.trim().is_empty() {
                        head.alternates.push((kind, value(b"hreflang").is_some(), href.trim().to_owned()));
                    }
                }
                b"meta" => {
                    let key = value(b"name").or_else(|| value(b"property")).unwrap_or_default();
                    head.forem |= key.starts_with("forem:");
                    head.hashnode |= value(b"content").is_some_and(|content| content.contains("://cdn.hashnode.com/"));
                }
                _ => {}
            }
        }
        head
    }

    /// The first alternate of one of these types, one for all languages before others.
    fn alternate(&self, url: &Url, kinds: &[&str]) -> Option<Url> {
        let fits = |kind: &str| kinds.contains(&kind.split(';').next().unwrap_or_default().trim());
        let all = self.alternates.iter().filter(|(kind, _, _)| fits(kind));
        let best = all.clone().find(|(_, of_language, _)| !of_language).or_else(|| all.clone().next());
        best.and_then(|(_, _, href)| url.join(href).ok())
    }

    /// Where the page's own Markdown is, and what to ask for there.
    fn markdown(&self, url: &Url) -> Option<(Url, &'static str)> {
        if let Some(named) = self.alternate(url, &["text/markdown", "text/x-markdown"]) {
            return Some((named, MARKDOWN));
        }
        let path = url.path().trim_end_matches('/');
        if self.hashnode && path.len() > 1 && !path.ends_with(".md") {
            return Some((beneath(url, &format!("{path}.md")), MARKDOWN));
        }
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match segments.as_slice() {
            [user, slug] if self.forem || url.host_str() == Some("dev.to") => {
                Some((beneath(url, &format!("/api/articles/{user}/{slug}")), "application/json"))
            }
            _ => None,
        }
    }
}

/// A path of the same site.
fn beneath(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// The Markdown that the site of a page has of it, got with one request; nothing when there is none or it cannot be had.
pub fn of(page: &Page, client: &Client<'_>) -> Option<Rendition> {
    let (url, accept) = Head::read(&page.bytes).markdown(&page.url)?;
    let at_home =
        |url: &Url| url.host() == page.url.host() && url.port_or_known_default() == page.url.port_or_known_default();
    if url == page.url || !at_home(&url) {
        return None;
    }
    // Nor may a redirect lead elsewhere.
    let got = client.hurried().page(&url, accept).ok().filter(|got| at_home(&got.url))?;
    let kind = got.content_type.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let wanted = ["text/markdown", "text/x-markdown", "text/plain", "application/json"];
    wanted.iter().any(|wanted| kind.eq_ignore_ascii_case(wanted)).then(|| Rendition {
        bytes: got.bytes,
        url: got.url.into(),
        content_type: got.content_type,
    })
}

/// The feed that a page names as its own.
pub fn feed(bytes: &[u8], url: &Url) -> Option<Url> {
    Head::read(bytes).alternate(url, FEEDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(url: &str, html: &str) -> Option<(String, &'static str)> {
        let url = Url::parse(url).expect("a URL");
        Head::read(html.as_bytes()).markdown(&url).map(|(url, accept)| (url.into(), accept))
    }

    #[test]
    fn each_site_has_its_way() {
        let named = "<link rel=stylesheet href=a.css><LINK REL='alternate nofollow' TYPE='text/markdown; charset=utf-8' HREF='post.md?x=1'>";
        let german = "<link rel=alternate type=text/markdown hreflang=de href=de.md>";
        let hashnode = "<meta property='og:image' content='https://cdn.hashnode.com/x.png'>";
        let forem = "<meta name='forem:name' content='A community'>";
        for (url, html, expected) in [
            ("https://a.example/b/post", named, Some("https://a.example/b/post.md?x=1")),
            ("https://a.example/b/", german, Some("https://a.example/b/de.md")),
            ("https://a.example/b/", &format!("{german}{named}"), Some("https://a.example/b/post.md?x=1")),
            ("https://a.example/b/", "<script>'<link rel=alternate type=text/markdown href=x>'</script>", None),
            ("https://a.example/b/", "<!-- <link rel=alternate type=text/markdown href=x> -->", None),
            ("https://a.example/b/", &format!("<body>{named}"), None),
            ("https://a.example/b/", "<link rel=alternate type=application/rss+xml href=x>", None),
            ("https://a.example/b/", "<link rel=alternate type=text/markdown href=''>", None),
            ("https://blog.example/post/?s=1#c", hashnode, Some("https://blog.example/post.md")),
            ("https://blog.example/", hashnode, None),
            ("https://c.example/ann/a-post-1", forem, Some("https://c.example/api/articles/ann/a-post-1")),
            ("https://dev.to/ann/a-post-1", "", Some("https://dev.to/api/articles/ann/a-post-1")),
            ("https://dev.to/ann", "", None),
            ("https://dev.to/ann/a/b", "", None),
            ("https://a.example/b", "", None),
        ] {
            assert_eq!(markdown(url, html).map(|(url, _)| url).as_deref(), expected, "{url} {html}");
        }
        assert_eq!(markdown("https://dev.to/a/b", "").map(|(_, accept)| accept), Some("application/json"));
    }

    #[test]
    fn a_page_names_its_feed() {
        let url = Url::parse("https://a.example/blog/").expect("a URL");
        let html = b"<link rel=alternate type=text/html href=/x><link rel=alternate type='application/atom+xml' href=feed.xml>";
        assert_eq!(feed(html, &url).map(String::from).as_deref(), Some("https://a.example/blog/feed.xml"));
        assert_eq!(feed(b"<p>x", &url), None);
    }

    #[test]
    fn a_head_of_soup_ends() {
        for part in
            ["<link rel=alternate href=a>", "<meta name=a ", "<link a=b ", "<", "<!--", "<script>", "\u{0}\u{FF}"]
        {
            Head::read(part.repeat(100_000).as_bytes());
        }
    }
}
