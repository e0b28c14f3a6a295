// SPDX-License-Identifier: PostgreSQL

//! Which part of a page is its content.
//!
//! Two readings. [`whole`] takes the main element or the body and leaves out only what is never read: programs, styles,
//! navigation, what is hidden. [`article`] also leaves out what surrounds an article, and looks for the element that holds
//! it, as Mozilla's Readability does: each paragraph speaks for the elements around it, the more so the longer it is, and
//! links speak against them. The kept crates for this could not be taken: those that are good build on CSS engines whose
//! licence is not permissive, and none bounds depth or time. Here each step is one pass over the nodes.

use super::tags;
use super::tree::{NONE, Tree};

/// What is rendered of a page.
pub struct Content {
    /// Elements to render, in order.
    pub roots: Vec<u32>,
    /// What is left out of them, node by node.
    pub removed: Vec<bool>,
}

/// Characters from which a paragraph speaks for what is around it.
const SPEAKS: u32 = 20;

/// Characters from which a paragraph is one of prose.
const PROSE: u32 = 70;

/// Characters of links, on the average, from which they are titles of other pages and not names of things.
const TITLE: u32 = 12;

/// Words in classes and ids of what surrounds an article.
const AROUND: &[&str] = &[
    "ad",
    "ads",
    "advert",
    "advertisement",
    "adv",
    "sponsor",
    "sponsored",
    "promo",
    "promotion",
    "banner",
    "cookie",
    "cookies",
    "consent",
    "gdpr",
    "nav",
    "navbar",
    "navigation",
    "menu",
    "submenu",
    "sidebar",
    "rail",
    "footer",
    "masthead",
    "breadcrumb",
    "breadcrumbs",
    "pagination",
    "pager",
    "share",
    "sharing",
    "sharebar",
    "social",
    "related",
    "recommended",
    "recommendation",
    "recommendations",
    "newsletter",
    "subscribe",
    "subscription",
    "signup",
    "login",
    "popup",
    "modal",
    "overlay",
    "paywall",
    "toolbar",
    "widget",
    "widgets",
    "outbrain",
    "taboola",
    "trending",
    "popular",
    "skip",
    "tagcloud",
    "noprint",
    "editsection",
    "toc",
    "readmore",
    "upnext",
];

/// Words of lines that say who wrote it and when, which its metadata says.
const BYLINES: &[&str] =
    &["byline", "dateline", "postmeta", "entrymeta", "articlemeta", "pagemeta", "authorinfo", "postinfo"];

/// Words of what readers wrote beneath it.
const COMMENTS: &[&str] =
    &["comment", "comments", "disqus", "respond", "discussion", "replies", "livefyre", "giscus", "utterances"];

/// Words of what is likely the article.
const LIKELY: &[&str] =
    &["article", "body", "content", "entry", "main", "page", "post", "text", "blog", "story", "prose", "markdown"];

/// The main element, or all of the page, without what is never read.
pub fn whole(tree: &Tree) -> Content {
    let removed = never_read(tree);
    let sums = Sums::of(tree, &removed);
    let main = tree.elements().find(|at| is_main(tree, *at) && !removed[*at as usize] && sums.chars[*at as usize] > 0);
    Content { roots: vec![main.unwrap_or(0)], removed }
}

/// All of a piece of HTML that is no page, without what is never read.
pub fn everything(tree: &Tree) -> Content {
    Content { roots: vec![0], removed: never_read(tree) }
}

/// All of a page whose content is navigation.
pub fn navigation(tree: &Tree) -> Content {
    let mut removed = never_read(tree);
    for node in tree.elements().filter(|node| tree.name(*node) == "nav") {
        removed[node as usize] = tree.attribute(node, "hidden").is_some();
    }
    Content { roots: vec![0], removed }
}

/// The article of a page; where there is none, what is left of the page without its surroundings.
pub fn article(tree: &Tree) -> Content {
    let mut removed = never_read(tree);
    let sums = Sums::of(tree, &removed);
    let total = sums.prose[0];
    for node in tree.elements() {
        let held = u64::from(sums.prose[node as usize]) * 100;
        let share = |percent: u64| total > 0 && held >= u64::from(total) * percent;
        match surrounds(tree, node) {
            Some(limit) if !share(limit) => removed[node as usize] = true,
            _ => {}
        }
    }
    let sums = Sums::of(tree, &removed);
    let roots =
        marked(tree, &removed, &sums).map(|at| vec![at]).or_else(|| best(tree, &removed, &sums)).unwrap_or(vec![0]);
    clean(tree, &sums, &mut removed);
    Content { roots, removed }
}

fn is_main(tree: &Tree, node: u32) -> bool {
    tree.name(node) == "main" || tree.attribute(node, "role") == Some("main")
}

/// Marks what no reading holds.
fn never_read(tree: &Tree) -> Vec<bool> {
    let mut removed = vec![false; tree.nodes.len()];
    for node in tree.elements() {
        let name = tree.name(node);
        // A page may hide all of itself until its program runs.
        let whole = matches!(name, "html" | "body" | "main" | "article");
        let hidden = || {
            let style = tree.attribute(node, "style").unwrap_or_default().to_ascii_lowercase();
            let unseen = style.split(';').any(|rule| {
                rule.split_once(':')
                    .is_some_and(|(key, value)| key.trim() == "display" && value.trim().starts_with("none"))
            });
            unseen || tree.attribute(node, "hidden").is_some_and(|h| !h.eq_ignore_ascii_case("until-found"))
        };
        let aria = tree.attribute(node, "aria-hidden") == Some("true");
        let navigation = matches!(tree.attribute(node, "role"), Some("navigation" | "menu" | "menubar" | "search"));
        removed[node as usize] = !whole && (tags::is_machinery(name) || navigation || aria || hidden());
    }
    removed
}

/// Whether an element is around an article by what it is called, and how many hundredths of all prose it may then hold.
fn surrounds(tree: &Tree, node: u32) -> Option<u64> {
    let name = tree.name(node);
    let text =
        matches!(name, "html" | "body" | "main" | "article" | "pre" | "code" | "table" | "tr" | "td" | "th" | "tbody");
    if text || tags::is_heading(name) {
        return None;
    }
    let role = matches!(
        tree.attribute(node, "role"),
        Some("banner" | "contentinfo" | "complementary" | "dialog" | "alertdialog" | "alert" | "toolbar" | "tooltip")
    );
    if role || matches!(name, "footer" | "aside" | "form" | "dialog" | "search" | "menu") {
        return Some(30);
    }
    if name == "header" {
        let inside = tree.above(node).any(|at| tree.name(at) == "article" || is_main(tree, at));
        return (!inside).then_some(30);
    }
    let mut limit = None;
    for key in ["class", "id"] {
        for word in words(tree.attribute(node, key).unwrap_or_default()) {
            if BYLINES.contains(&word.as_str()) || (name != "p" && AROUND.contains(&word.as_str())) {
                limit = limit.or(Some(30));
            } else if COMMENTS.contains(&word.as_str()) {
                limit = Some(80);
            }
        }
    }
    limit
}

/// The words of a class or id, and each two that stand together: `siteNav2` is `site`, `nav` and `sitenav`.
fn words(names: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower = false;
    for c in names.chars().take(500) {
        if !c.is_ascii_alphabetic() || (c.is_ascii_uppercase() && lower) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        }
        lower = c.is_ascii_lowercase();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    let pairs: Vec<String> = words.windows(2).map(<[String]>::concat).collect();
    words.extend(pairs);
    words
}

/// What is inside each element that is not left out.
struct Sums {
    /// Characters without white space.
    chars: Vec<u32>,
    /// Those in links.
    linked: Vec<u32>,
    /// Links.
    anchors: Vec<u32>,
    /// Those in paragraphs of prose.
    prose: Vec<u32>,
    /// Commas of any script.
    commas: Vec<u32>,
}

impl Sums {
    fn of(tree: &Tree, removed: &[bool]) -> Self {
        let zero = || vec![0_u32; tree.nodes.len()];
        let mut sums = Self { chars: zero(), linked: zero(), anchors: zero(), prose: zero(), commas: zero() };
        for at in (0..tree.nodes.len()).rev() {
            let node = at as u32;
            if removed[at] {
                for sum in [&mut sums.chars, &mut sums.linked, &mut sums.anchors, &mut sums.prose, &mut sums.commas] {
                    sum[at] = 0;
                }
                continue;
            }
            if let Some(text) = tree.text(node) {
                for c in text.chars().filter(|c| !c.is_whitespace()) {
                    sums.chars[at] += 1;
                    sums.commas[at] += u32::from(matches!(c, ',' | '،' | '，' | '、' | '﹐' | '︐'));
                }
            } else if tree.name(node) == "a" {
                sums.linked[at] = sums.chars[at];
                sums.anchors[at] = 1;
            } else if is_paragraph(tree, node) && sums.chars[at] >= PROSE && sums.linked[at] * 2 < sums.chars[at] {
                sums.prose[at] = sums.chars[at];
            }
            let parent = tree.nodes[at].parent;
            if parent != NONE {
                let parent = parent as usize;
                sums.chars[parent] += sums.chars[at];
                sums.linked[parent] += sums.linked[at];
                sums.anchors[parent] += sums.anchors[at];
                sums.prose[parent] += sums.prose[at];
                sums.commas[parent] += sums.commas[at];
            }
        }
        sums
    }

    /// The share of an element's text that is in links.
    fn links(&self, node: u32) -> f32 {
        let chars = self.chars[node as usize];
        if chars == 0 { 0.0 } else { self.linked[node as usize] as f32 / chars as f32 }
    }
}

/// A paragraph, or an element that is one because it holds no other.
fn is_paragraph(tree: &Tree, node: u32) -> bool {
    let name = tree.name(node);
    let leaf = || !tree.nodes[node as usize].holds_block;
    matches!(name, "p" | "pre")
        || (matches!(name, "div" | "section" | "article" | "li" | "blockquote" | "td" | "dd") && leaf())
}

/// The element that a page marks as its article, if there is one and it holds what there is to read.
fn marked(tree: &Tree, removed: &[bool], sums: &Sums) -> Option<u32> {
    // What is inside something left out has no share in the root; its own sums do not tell.
    let shown = |node: u32| !removed[node as usize] && tree.above(node).all(|at| !removed[at as usize]);
    let total = sums.prose[0];
    let holds = |node: u32| {
        let prose = sums.prose[node as usize];
        prose > 0 && u64::from(prose) * 2 >= u64::from(total)
    };
    let is_body = |node: &u32| tree.attribute(*node, "itemprop").is_some_and(|p| p.eq_ignore_ascii_case("articleBody"));
    let is_article = |node: &u32| tree.name(*node) == "article" || tree.attribute(*node, "role") == Some("article");
    let is_main = |node: &u32| is_main(tree, *node);
    let find = |is: &dyn Fn(&u32) -> bool| tree.elements().filter(is).find(|node| holds(*node) && shown(*node));
    let article = find(&is_article);
    // The body of an article lacks its heading, so the article itself is better.
    article.or_else(|| find(&is_body)).or_else(|| find(&is_main))
}

/// The element for which its paragraphs speak most, with what stands beside it and belongs to it.
fn best(tree: &Tree, removed: &[bool], sums: &Sums) -> Option<Vec<u32>> {
    let mut scores = vec![0.0_f32; tree.nodes.len()];
    let mut shown = vec![false; tree.nodes.len()];
    for at in 0..tree.nodes.len() {
        let parent = tree.nodes[at].parent;
        shown[at] = !removed[at] && (parent == NONE || shown[parent as usize]);
    }
    for node in tree.elements().filter(|node| shown[*node as usize] && is_paragraph(tree, *node)) {
        let chars = sums.chars[node as usize];
        if chars < SPEAKS {
            continue;
        }
        let points = 1.0 + sums.commas[node as usize] as f32 + (chars as f32 / 80.0).min(3.0);
        for (level, above) in tree.above(node).take(4).enumerate() {
            let divisor = [1.0, 2.0, 6.0, 9.0][level];
            scores[above as usize] += points / divisor;
        }
    }
    let mut top: Option<(u32, f32)> = None;
    for node in tree.elements() {
        if scores[node as usize] <= 0.0 {
            continue;
        }
        let score = (scores[node as usize] + bonus(tree, node)) * (1.0 - sums.links(node));
        scores[node as usize] = score;
        if top.is_none_or(|(_, best)| score > best) {
            top = Some((node, score));
        }
    }
    let (mut top, score) = top?;
    // Sections of one article speak for what holds them all.
    for above in tree.above(top) {
        let (extra, linked) = (
            sums.chars[above as usize] - sums.chars[top as usize],
            sums.linked[above as usize] - sums.linked[top as usize],
        );
        if extra > 0 && (scores[above as usize] < score * 0.4 || linked * 4 > extra) {
            break;
        }
        top = above;
    }
    let parent = tree.nodes[top as usize].parent;
    if parent == NONE {
        return Some(vec![top]);
    }
    let belongs = |node: u32| {
        let (chars, links) = (sums.chars[node as usize], sums.links(node));
        let prose = tree.name(node) == "p" && chars >= PROSE && links < 0.25;
        node == top || (shown[node as usize] && (scores[node as usize] >= (score * 0.2).max(10.0) || prose))
    };
    Some(tree.children(parent).filter(|node| belongs(*node)).collect())
}

/// What speaks for an element besides its paragraphs.
fn bonus(tree: &Tree, node: u32) -> f32 {
    let of_name = match tree.name(node) {
        "article" | "main" => 15.0,
        "div" | "section" => 5.0,
        "pre" | "td" | "blockquote" => 3.0,
        "ol" | "ul" | "dl" | "dd" | "dt" | "li" | "form" | "address" => -3.0,
        name if tags::is_heading(name) || name == "th" => -5.0,
        _ => 0.0,
    };
    let likely = ["class", "id"].iter().any(|key| {
        words(tree.attribute(node, key).unwrap_or_default()).iter().any(|word| LIKELY.contains(&word.as_str()))
    });
    of_name + if likely { 25.0 } else { 0.0 }
}

/// Leaves out boxes that are little but links, and lists of links before and after the prose. In the midst of it a list is
/// a part of it.
fn clean(tree: &Tree, sums: &Sums, removed: &mut [bool]) {
    let prose = |node: &u32| sums.prose[*node as usize] > 0 && is_paragraph(tree, *node);
    let Some(first) = tree.elements().find(prose) else { return };
    let last = tree.elements().filter(prose).last().unwrap_or(first);
    for node in tree.elements() {
        let limit = match tree.name(node) {
            "ul" | "ol" if node < first || node > last => 0.8,
            "div" | "section" => 0.6,
            _ => continue,
        };
        let at = node as usize;
        let titles = sums.anchors[at] > 0 && sums.linked[at] / sums.anchors[at] >= TITLE;
        removed[at] |= titles && sums.prose[at] == 0 && sums.links(node) > limit;
    }
}
