// SPDX-License-Identifier: PostgreSQL

//! What pages become.

use super::*;
use crate::parse::BlockKind;

fn read(html: &str, reading: Reading) -> Parsed {
    page(html.as_bytes(), Served::default(), reading).expect("a page")
}

fn whole(html: &str) -> String {
    read(html, Reading::Whole).text
}

#[test]
fn elements_become_markdown() {
    for (html, markdown) in [
        ("<h1>a</h1>b<p>c<h2>d", "# a\n\nb\n\nc\n\n## d\n"),
        ("a<br>b<div>c</div>d", "a\nb\n\nc\n\nd\n"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c\n"),
        ("<ol start=3><li>a<li><p>b<p>c</ol>", "3. a\n4. b\n\n   c\n"),
        ("<ul><li>a</li><ul><li>b</ul></ul>", "- a\n- - b\n"),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b\n"),
        ("<pre class='brush: js; x'>\n a\n\n b</pre>", "```js\n a\n\n b\n```\n"),
        ("<pre><code class=language-rust>a``` `</code></pre>", "````rust\na``` `\n````\n"),
        ("<p>a <code>b`c</code> <kbd>d</kbd>", "a ``b`c`` `d`\n"),
        ("<a href=/x>a <b>b</b></a> <a href='#y'>c</a> <a href='javascript:z'>d</a>", "[a **b**](/x) c d\n"),
        ("<img src=a.png alt=' a  b '><img src=b.png alt=''>", "![a b](a.png)\n"),
        ("<p>x&nbsp;y&shy;z &lt;b&gt; &#x1F600; &copy;", "x yz <b> 😀 ©\n"),
        ("<p># a\n<p>- b<p>1. c<p>&lt;div>", "\\# a\n\n\\- b\n\n1\\. c\n\n\\<div>\n"),
        ("<table><tr><th>a<th>b<tr><td>c|d<td><p>e<p>f</table>", "| a | b |\n| --- | --- |\n| c\\|d | e f |\n"),
        ("<table><tr><td>a<td>b</table>", "a\n\nb\n"),
        (
            "<table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td colspan=2>d</table>",
            "| a | b |\n| --- | --- |\n|  | c |\n| d |  |\n",
        ),
        ("<table><tr><th>a<td>b<tr><th>c<td>d</table>", "|  |  |\n| --- | --- |\n| a | b |\n| c | d |\n"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n\n- b\n\nc\n\n- d\n"),
        ("<h2>a <a href='#a'>#</a></h2><h2> </h2>", "## a\n"),
        ("<details><summary>a</summary>b</details><hr>c", "a\n\nb\n\n---\n\nc\n"),
        (
            "<p>a<script>b</script><style>c</style><noscript>d</noscript><template>e</template><svg><text>f</text></svg>g",
            "ag\n",
        ),
        ("<math alttext='x^2'><mi>x</mi></math>", "x^2\n"),
        ("<p>a <b>(b)</b> <i> c </i>d", "a (b) *c* d\n"),
        ("<x-y>a <x-z>b</x-z></x-y>", "a b\n"),
        ("<p>a<sup><a href=#n1>1</a></sup> b<sup>2</sup>", "a[1] b2\n"),
    ] {
        assert_eq!(whole(html), markdown, "{html}");
    }
}

#[test]
fn what_is_hidden_or_leads_elsewhere_is_not_content() {
    let html =
        "<nav>n</nav><p hidden>h</p><p style='Display : none'>s</p><p aria-hidden=true>a</p><p>c</p><footer>f</footer>";
    assert_eq!(whole(html), "c\n\nf\n");
    assert_eq!(whole("<header>h</header><main>m</main>"), "m\n");
    assert_eq!(whole("<body hidden><article style='display:none'>a</article>"), "a\n");
}

#[test]
fn nothing_to_read_is_an_error() {
    for html in
        ["", " ", "<p>", "<script>x</script>", "<nav>n</nav>", "<!-- c -->", "<img src=x>", "<table><tr><td></table>"]
    {
        for reading in [Reading::Whole, Reading::Article] {
            let error = page(html.as_bytes(), Served::default(), reading).expect_err(html);
            assert_eq!((error.kind, error.message.as_str()), (Kind::BadContent, "html has no readable content"));
        }
    }
}

#[test]
fn what_is_no_page_is_said_to_be_something_else() {
    for (bytes, what) in [(&b"%PDF-1.7 ..."[..], "pdf"), (b"PK\x03\x04...", "archive"), (b"\x89PNG\r\n", "image")] {
        let error = page(bytes, Served { content_type: Some("text/html"), ..Served::default() }, Reading::Whole);
        let error = error.expect_err(what);
        assert_eq!(error.kind, Kind::BadContent);
        assert_eq!(error.message, format!("content is no page but of kind \"{what}\""));
        assert_eq!(error.hint.is_some(), what == "pdf");
    }
}

#[test]
fn links_are_relative_to_where_the_page_is() {
    let found = Url::parse("https://a.example/x/y").expect("a URL");
    let text = |html: &str, url| {
        page(html.as_bytes(), Served { url, ..Served::default() }, Reading::Whole).expect("a page").text
    };
    assert_eq!(text("<a href=../b?c=(d)>e</a>", Some(&found)), "[e](https://a.example/b?c=%28d%29)\n");
    assert_eq!(text("<base href=/z/><a href=b>e</a>", Some(&found)), "[e](https://a.example/z/b)\n");
    assert_eq!(
        text("<link rel=canonical href=http://b.example/q/><a href=b>e</a>", None),
        "[e](http://b.example/q/b)\n"
    );
    assert_eq!(text("<a href=b>e</a>", None), "[e](b)\n");
    assert_eq!(text("<a href='data:text/html,x'>e</a><a href='https://['>f</a>", Some(&found)), "ef\n");
}

#[test]
fn a_page_says_what_it_is() {
    let html =
        "<html lang=de_AT><title>T | S</title><meta property=og:title content='T'><meta name=author content='A B'>
        <meta property=article:published_time content=2024-02-03><meta name=generator content='Sphinx 7'>
        <link rel=canonical href=https://a.example/t><h1>H</h1>";
    let page = read(html, Reading::Whole);
    assert_eq!((page.title.as_deref(), page.language.as_deref()), (Some("T"), Some("de-AT")));
    assert_eq!(page.published_at.as_deref(), Some("2024-02-03T00:00:00Z"));
    assert_eq!(page.role.as_deref(), Some("documentation"));
    assert_eq!(page.media_type, "text/html");
    let metadata = serde_json::json!({"canonical_url": "https://a.example/t", "author": "A B"});
    assert_eq!(serde_json::Value::Object(page.metadata), metadata);
    assert_eq!(read("<title>T | S</title><h1>H</h1>", Reading::Whole).title.as_deref(), Some("H"));
    assert_eq!(read("<title>T | S</title><h2>H</h2>", Reading::Whole).title.as_deref(), Some("T | S"));
    let time = "<article><time datetime='2024-02-03'>x</time><p>text</article>";
    assert_eq!(read(time, Reading::Whole).published_at, None);
    assert_eq!(read(time, Reading::Article).published_at.as_deref(), Some("2024-02-03T00:00:00Z"));
}

#[test]
fn the_structure_is_that_of_the_markdown() {
    let page = read(
        "<h1>The &lt;div&gt; *element*</h1><p>a<pre>b</pre><table><tr><th>c<tr><td>d</table><ul><li>e</ul>",
        Reading::Whole,
    );
    assert_eq!(page.structure.headings[0].text, "The <div> *element*");
    let kinds: Vec<BlockKind> = page.structure.blocks.iter().map(|b| b.kind).collect();
    let expected = [BlockKind::Heading(0), BlockKind::Text, BlockKind::Fence, BlockKind::Table, BlockKind::Container];
    assert_eq!(kinds, expected);
}

#[test]
fn an_article_is_found_by_its_paragraphs() {
    let prose = "Here is a sentence that is long enough, with commas, to be taken for prose by anybody who reads it. "
        .repeat(3);
    let page = format!(
        "<div class=top><a href=/>Home</a> <a href=/x>More</a></div><div id=w><div><p>{prose}<p>Short.</div>
         <div class='side box'><ul><li><a href=/1>One thing to read</a><li><a href=/2>Another thing to read</a></ul></div>
         <div><p>{prose}</div></div><div class=cookieBanner>We like cookies</div><div>© 2020</div>"
    );
    let text = read(&page, Reading::Article).text;
    assert_eq!(text.matches("Here is").count(), 6, "{text}");
    assert!(text.contains("Short."));
    for word in ["Home", "One thing", "cookies", "2020"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}
