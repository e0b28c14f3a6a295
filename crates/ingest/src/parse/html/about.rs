// SPDX-License-Identifier: PostgreSQL

//! What a page says about itself: title, author, time of publication, language, where it really is.
//!
//! Several vocabularies say the same (JSON-LD, Open Graph, Dublin Core, microdata, the elements of HTML); the one that is
//! written for machines and most precise is believed first. Nothing here reads the content.

use super::tags;
use super::tree::Tree;
use crate::parse::metadata::rfc3339;
use crate::parse::role::DOCUMENTATION;
use serde_json::{Map, Value};
use url::Url;

/// Most bytes of JSON-LD that are read.
const MAX_DATA: usize = 1 << 20;

/// Longest value of a field of the metadata, in characters.
const MAX_FIELD: usize = 1000;

/// What a page says about itself.
#[derive(Debug, Default)]
pub struct About {
    /// Title.
    pub title: Option<String>,
    /// The text of its title element, which often names the site too.
    pub window_title: Option<String>,
    /// Language.
    pub language: Option<String>,
    /// Time of publication, RFC 3339.
    pub published_at: Option<String>,
    /// Where it is said to be.
    pub canonical: Option<Url>,
    /// What its links are relative to.
    pub base: Option<Url>,
    /// Program that made it.
    pub generator: Option<String>,
    /// Author, description, site, times.
    pub fields: Map<String, Value>,
}

/// Reads the head of a page, and what stands like it elsewhere; `url` is where it was found.
pub fn read(tree: &Tree, url: Option<&Url>) -> About {
    let mut said: Vec<(String, String)> = Vec::new();
    let mut about = About::default();
    let mut data = Data::default();
    let mut base = None;
    let text = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(words.join(" ")).filter(|text| !text.is_empty())
    };
    for node in tree.elements() {
        let attribute = |name| tree.attribute(node, name);
        match tree.name(node) {
            "html" => about.language = attribute("lang").or(attribute("xml:lang")).and_then(language),
            "title" if about.window_title.is_none() => about.window_title = text(&tree.words(node)),
            "base" if base.is_none() => base = attribute("href").map(str::to_owned),
            "link" if attribute("rel").is_some_and(|rel| rel.eq_ignore_ascii_case("canonical")) => {
                said.extend(attribute("href").map(|href| ("canonical".to_owned(), href.to_owned())));
            }
            "meta" => {
                let key =
                    attribute("property").or(attribute("name")).or(attribute("itemprop")).or(attribute("http-equiv"));
                if let (Some(key), Some(value)) = (key, attribute("content").and_then(text)) {
                    said.push((key.trim().to_ascii_lowercase(), value));
                }
            }
            "script" => tree.children(node).filter_map(|child| tree.text(child)).for_each(|json| data.read(json)),
            "time" if attribute("itemprop").is_some_and(|p| p.eq_ignore_ascii_case("datePublished")) => {
                said.extend(attribute("datetime").map(|time| ("datepublished".to_owned(), time.to_owned())));
            }
            _ => {}
        }
    }
    let find = |keys: &[&str]| {
        let named = |key: &&str| said.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
        keys.iter().find_map(named)
    };
    let time = |keys: &[&str]| find(keys).and_then(|time| rfc3339(&time));
    let absolute = |href: String| match url {
        Some(url) => url.join(href.trim()).ok(),
        None => Url::parse(href.trim()).ok(),
    };
    about.canonical =
        find(&["canonical", "og:url"]).and_then(absolute).filter(|u| matches!(u.scheme(), "http" | "https"));
    let found = url.cloned().or_else(|| about.canonical.clone());
    about.base = match (base, found) {
        (Some(base), Some(found)) => found.join(base.trim()).ok().or(Some(found)),
        (Some(base), None) => Url::parse(base.trim()).ok(),
        (None, found) => found,
    };
    about.title =
        data.title.or_else(|| find(&["og:title", "citation_title", "dc.title", "dcterms.title", "twitter:title"]));
    about.language =
        about.language.or_else(|| find(&["content-language", "language", "dc.language"]).and_then(|l| language(&l)));
    about.published_at = data.published.as_deref().and_then(rfc3339).or_else(|| {
        time(&[
            "article:published_time",
            "og:published_time",
            "datepublished",
            "citation_publication_date",
            "dc.date.issued",
            "dcterms.issued",
            "dcterms.created",
            "dc.date",
            "dcterms.date",
            "pubdate",
            "publish-date",
            "date",
            "parsely-pub-date",
        ])
    });
    about.generator = find(&["generator"]);
    let authors = [
        data.author,
        find(&["author", "citation_author", "dc.creator", "dcterms.creator", "article:author", "parsely-author"]),
    ];
    // Some sites give the address of the author's page.
    let author = authors.into_iter().flatten().find(|author| !author.contains("://"));
    let described = find(&["description", "og:description", "dc.description", "twitter:description"]);
    let modified =
        data.modified.as_deref().and_then(rfc3339).or_else(|| time(&["article:modified_time", "og:updated_time"]));
    for (key, value) in [
        ("canonical_url", about.canonical.as_ref().map(Url::to_string)),
        ("author", author),
        ("site_name", find(&["og:site_name", "application-name"])),
        ("description", described),
        ("modified_at", modified),
    ] {
        if let Some(value) = value {
            about.fields.insert(key.to_owned(), Value::String(value.chars().take(MAX_FIELD).collect()));
        }
    }
    about
}

/// A language tag that looks like one.
fn language(text: &str) -> Option<String> {
    let tag = text.split([',', ';']).next().unwrap_or_default().trim().replace('_', "-");
    let sound = tag.len() <= 35
        && tag.split('-').all(|p| (1..=8).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_alphanumeric()));
    let first = tag.split('-').next().unwrap_or_default();
    (sound && first.len() >= 2 && first.bytes().all(|b| b.is_ascii_alphabetic())).then_some(tag)
}

/// What JSON-LD says.
#[derive(Default)]
struct Data {
    title: Option<String>,
    author: Option<String>,
    published: Option<String>,
    modified: Option<String>,
}

impl Data {
    fn read(&mut self, json: &str) {
        if json.len() > MAX_DATA {
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(json) else { return };
        // The reader of JSON bounds its depth, and with it this.
        let mut open = vec![&value];
        while let Some(value) = open.pop() {
            match value {
                Value::Array(many) => open.extend(many.iter().rev()),
                Value::Object(object) => {
                    if let Some(graph) = object.get("@graph") {
                        open.push(graph);
                    }
                    if is_work(object) {
                        self.work(object);
                    }
                }
                _ => {}
            }
        }
    }

    fn work(&mut self, object: &Map<String, Value>) {
        let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty());
        let set = |slot: &mut Option<String>, value: Option<&str>| {
            if slot.is_none() {
                *slot = value.map(str::to_owned);
            }
        };
        set(&mut self.title, text("headline").or_else(|| text("name")));
        set(&mut self.published, text("datePublished").or_else(|| text("dateCreated")));
        set(&mut self.modified, text("dateModified"));
        let names: Vec<&str> = object.get("author").into_iter().flat_map(names).collect();
        set(&mut self.author, (!names.is_empty()).then(|| names.join(", ")).as_deref());
    }
}

/// Names of a person or several.
fn names(value: &Value) -> Vec<&str> {
    fn one(value: &Value) -> Option<&str> {
        value.as_str().or_else(|| value.get("name")?.as_str()).map(str::trim).filter(|name| !name.is_empty())
    }
    match value {
        Value::Array(many) => many.iter().filter_map(one).take(20).collect(),
        value => one(value).into_iter().collect(),
    }
}

/// Whether it describes something written.
fn is_work(object: &Map<String, Value>) -> bool {
    let written = |kind: &str| {
        kind.ends_with("Article") || kind.ends_with("Posting") || matches!(kind, "Report" | "HowTo" | "Recipe")
    };
    match object.get("@type") {
        Some(Value::String(kind)) => written(kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(written),
        _ => false,
    }
}

/// The role of a page that a program for documentation made.
pub fn role(about: &About) -> Option<String> {
    const MAKERS: &[&str] = &[
        "sphinx",
        "docutils",
        "mkdocs",
        "docusaurus",
        "rustdoc",
        "mdbook",
        "javadoc",
        "doxygen",
        "vitepress",
        "docbook",
        "asciidoctor",
        "antora",
        "gitbook",
        "readme.io",
        "yard",
        "jsdoc",
        "typedoc",
        "starlight",
        "nextra",
        "pkgdown",
    ];
    let generator = about.generator.as_ref()?.to_ascii_lowercase();
    MAKERS.iter().any(|maker| generator.contains(maker)).then(|| DOCUMENTATION.to_owned())
}

/// The title of a page: what it says, else its only main heading, else what its window shows.
pub fn title(about: &About, tree: &Tree) -> Option<String> {
    let heading = || {
        let mut main = tree.elements().filter(|node| tags::heading_level(tree.name(*node)) == Some(1));
        let first = main.next().map(|node| tree.words(node)).filter(|text| !text.is_empty());
        first.filter(|_| main.next().is_none())
    };
    about.title.clone().or_else(heading).or_else(|| about.window_title.clone())
}
