// SPDX-License-Identifier: PostgreSQL

//! Sources that have versions: a repository, on disk and on a server, and a page, by SQL.

#[path = "../../../crates/ingest/tests/git_server/mod.rs"]
#[allow(clippy::expect_used, clippy::panic)]
mod git_server;

use postgres::Client;
use rag_server_tests::site::{Given, Page, Site};
use rag_server_tests::{Cluster, Failure, TestResult, with_cluster};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn sync(client: &mut Client, name: &str) -> TestResult<[i64; 5]> {
    client.execute("CALL rag.sync($1)", &[&name])?;
    let sql = "SELECT new::int8, modified::int8, unchanged::int8, deleted::int8, failed::int8 FROM rag.status WHERE source = $1";
    let row = client.query_one(sql, &[&name])?;
    Ok([0, 1, 2, 3, 4].map(|at| row.get(at)))
}

fn git(folder: &Path, arguments: &[&str]) -> TestResult<String> {
    git_server::git(folder, arguments).ok_or_else(|| Failure::new("git is not installed"))
}

/// Changes a file of the repository; the commit.
fn commit(cluster: &Cluster, name: &str, text: &str) -> TestResult<String> {
    cluster.write(&format!("repo/{name}"), text)?;
    let folder = cluster.files().join("repo");
    git(&folder, &["add", "-A"])?;
    git(&folder, &["commit", "-qm", "change"])?;
    git(&folder, &["rev-parse", "HEAD"])
}

/// A cluster with a repository of two files, the folder of that and its commit; skipped where git is not installed.
fn with_repository(settings: &[&str], test: impl FnOnce(&Cluster, &Path, String) -> TestResult) -> TestResult {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: git is not installed");
        return Ok(());
    }
    with_cluster(settings, |cluster| {
        cluster.write("repo/docs/well.md", "# Well\n\nDraw water from the well.\n")?;
        let folder = cluster.files().join("repo");
        git(&folder, &["init", "-q"])?;
        let first = commit(cluster, "docs/rope.md", "# Rope\n\nA rope of hemp.\n")?;
        test(cluster, &folder, first)
    })
}

/// The message of a statement that fails, with its SQLSTATE.
fn refused(client: &mut Client, statement: &str) -> TestResult<(String, String)> {
    let error = client.execute(statement, &[]).err().ok_or_else(|| Failure::new("no error"))?;
    let error = error.as_db_error().ok_or_else(|| Failure::new(format!("{error:?}")))?;
    Ok((error.code().code().to_owned(), error.message().to_owned()))
}

#[test]
fn a_repository_is_read_at_its_commit_and_again_when_it_moves() -> TestResult {
    with_repository(&[], |cluster, folder, first| {
        let mut client = cluster.connect()?;
        let place = folder.display().to_string();
        client.execute("SELECT rag.add_source('repo', 'git', $1)", &[&place])?;
        assert_eq!(sync(&mut client, "repo")?, [2, 0, 0, 0, 0]);
        let row = client.query_one("SELECT uri, path, commit, citation FROM rag.search('hemp', 1)", &[])?;
        assert_eq!(row.get::<_, String>(0), "docs/rope.md");
        assert_eq!(row.get::<_, Option<String>>(1).as_deref(), Some("docs/rope.md"));
        assert_eq!(row.get::<_, Option<String>>(2), Some(first.clone()));
        let sql = "SELECT repository, ref, metadata ->> 'blob' FROM rag.documents WHERE uri = 'docs/rope.md'";
        let row = client.query_one(sql, &[])?;
        assert_eq!(row.get::<_, Option<String>>(0), Some(place.clone()));
        assert_eq!(row.get::<_, Option<String>>(1).as_deref(), Some("main"));
        assert_eq!(row.get::<_, Option<String>>(2), Some(git(folder, &["rev-parse", "HEAD:docs/rope.md"])?));

        let second = commit(cluster, "docs/rope.md", "# Rope\n\nA rope of wire.\n")?;
        assert_eq!(sync(&mut client, "repo")?, [0, 1, 1, 0, 0]);
        let row = client.query_one("SELECT commit FROM rag.search('wire', 1)", &[])?;
        assert_eq!(row.get::<_, Option<String>>(0), Some(second.clone()));
        // What did not change was seen there, too.
        assert_eq!(seen_at(&mut client, "docs/well.md")?, (second.clone(), Some("main".to_owned())));
        // An older commit on purpose.
        client.execute("SELECT rag.alter_source('repo', options => $1)", &[&json!({"ref": first[..12]})])?;
        sync(&mut client, "repo")?;
        let row = client.query_one("SELECT uri, commit FROM rag.search('hemp', 1, mode => 'bm25')", &[])?;
        assert_eq!(row.get::<_, Option<String>>(1), Some(first.clone()));
        client.execute("SELECT rag.alter_source('repo', options => $1)", &[&json!({"expect_commit": first})])?;
        let (_, message) = refused(&mut client, "CALL rag.sync('repo')")?;
        assert_eq!(message, format!("\"HEAD\" is at commit {second} and not at \"{first}\""));
        Ok(())
    })
}

/// Commit and branch of a document.
fn seen_at(client: &mut Client, uri: &str) -> TestResult<(String, Option<String>)> {
    let row = client.query_one("SELECT commit, ref FROM rag.documents WHERE uri = $1", &[&uri])?;
    Ok((row.get(0), row.get(1)))
}

#[test]
fn a_repository_on_a_server_is_cloned_and_again_when_it_moves() -> TestResult {
    with_repository(&["pg_rag.clone_disk_limit = '2GB'"], |cluster, folder, first| {
        let server = git_server::Server::start(&cluster.files());
        let url = server.url("open/repo");
        let mut client = cluster.connect()?;
        client.execute("SELECT rag.add_source('repo', 'git', $1)", &[&url])?;
        assert_eq!(refused(&mut client, "CALL rag.sync('repo')")?.0, "42501");
        client.batch_execute(&format!("SET pg_rag.allowed_hosts = '{}'", server.address))?;
        assert_eq!(sync(&mut client, "repo")?, [2, 0, 0, 0, 0]);
        let row = client.query_one("SELECT uri, path, commit FROM rag.search('hemp', 1)", &[])?;
        assert_eq!((row.get(0), row.get(1)), ("docs/rope.md".to_owned(), Some("docs/rope.md".to_owned())));
        assert_eq!(row.get::<_, Option<String>>(2), Some(first.clone()));
        let sql = "SELECT repository, ref, metadata ->> 'blob' FROM rag.documents WHERE uri = 'docs/rope.md'";
        let row = client.query_one(sql, &[])?;
        assert_eq!((row.get(0), row.get(1)), (Some(url), Some("main".to_owned())));
        assert_eq!(row.get::<_, Option<String>>(2), Some(git(folder, &["rev-parse", "HEAD:docs/rope.md"])?));
        let vectors = "SELECT count(*), max(e.xmin::text::bigint) FROM rag.chunk_embedding e
                         JOIN rag.chunk c ON c.id = e.chunk_id JOIN rag.document d ON d.id = c.document_id
                        WHERE d.uri = 'docs/well.md'";
        let before: (i64, i64) = client.query_one(vectors, &[]).map(|row| (row.get(0), row.get(1)))?;

        // Nothing moved, so nothing is downloaded.
        let downloads = server.downloads();
        assert_eq!(sync(&mut client, "repo")?, [0, 0, 2, 0, 0]);
        assert_eq!(server.downloads(), downloads);

        let second = commit(cluster, "docs/rope.md", "# Rope\n\nA rope of wire.\n")?;
        assert_eq!(sync(&mut client, "repo")?, [0, 1, 1, 0, 0]);
        for uri in ["docs/rope.md", "docs/well.md"] {
            assert_eq!(seen_at(&mut client, uri)?, (second.clone(), Some("main".to_owned())), "{uri}");
        }
        let after: (i64, i64) = client.query_one(vectors, &[]).map(|row| (row.get(0), row.get(1)))?;
        assert_eq!(before, after, "only the document's row is written");
        client.execute("SELECT rag.alter_source('repo', options => $1)", &[&json!({"ref": first})])?;
        sync(&mut client, "repo")?;
        assert_eq!(seen_at(&mut client, "docs/well.md")?, (first, None));
        // More than the operator leaves to clones, less their index.
        let limits = json!({"limits": {"max_download_bytes": 1800 << 20}});
        client.execute("SELECT rag.alter_source('repo', options => $1)", &[&limits])?;
        let message = "max_download_bytes 1887436800 is above the 1610612736 that pg_rag.clone_disk_limit leaves";
        assert_eq!(refused(&mut client, "CALL rag.sync('repo')")?, ("54000".to_owned(), message.to_owned()));
        Ok(())
    })
}

/// A feed that drops its oldest post when it gets a new one, of a version that the test raises; its pages are not there.
/// Beneath `/guarded` is another, whose pages are kept from us until the test opens them.
fn feed(path: &str, version: usize, open: bool) -> Option<Page> {
    let pages = if path == "/guarded" { "/doors" } else { "/posts" };
    let post = |n: usize, word: &str| {
        format!(
            "<item><title>Post {n}</title><link>{pages}/{n}</link><guid>g{n}</guid><description>All about {word}.</description></item>"
        )
    };
    let posts = match version {
        0 => post(1, "anchors") + &post(2, "beacons"),
        _ => post(2, "beacons") + &post(3, "capstans"),
    };
    let body = match path.starts_with("/doors/") {
        true => "<article><p>All that is behind the door.</p></article>".to_owned(),
        false => format!("<rss version=\"2.0\"><channel><title>Harbour</title>{posts}</channel></rss>"),
    };
    let page = Page { etag: format!("f{version}"), forbidden: path.starts_with("/doors/") && !open, body };
    (!path.starts_with("/posts/")).then_some(page)
}

#[test]
fn a_feed_keeps_the_posts_that_it_shows_no_more() -> TestResult {
    with_cluster(&[], |cluster| {
        let (version, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (served, opened) = (version.clone(), open.clone());
        let site = Site::start(move |path| feed(path, served.load(Ordering::SeqCst), opened.load(Ordering::SeqCst)))?;
        let url = site.url("/feed");
        let mut client = cluster.connect()?;
        client.batch_execute(&format!("SET pg_rag.allowed_hosts = '{}'", site.address))?;
        client.execute("SELECT rag.add_source('harbour', 'blog', $1)", &[&url])?;
        assert_eq!(sync(&mut client, "harbour")?, [2, 0, 0, 0, 0]);
        assert_eq!(sync(&mut client, "harbour")?, [0, 0, 2, 0, 0], "as it was seen");
        // A page that was refused is asked for by each sync, and its post is the same as long as it is refused.
        let guarded = site.url("/guarded");
        client.execute("SELECT rag.add_source('guarded', 'blog', $1)", &[&guarded])?;
        assert_eq!(sync(&mut client, "guarded")?, [2, 0, 0, 0, 0]);
        assert_eq!(sync(&mut client, "guarded")?, [0, 0, 2, 0, 0]);
        open.store(true, Ordering::SeqCst);
        assert_eq!(sync(&mut client, "guarded")?, [0, 2, 0, 0, 0]);
        let sql = "SELECT count(*) FROM rag.chunks WHERE source = 'guarded' AND content LIKE '%behind the door%'";
        assert_eq!(client.query_one(sql, &[])?.get::<_, i64>(0), 2);
        assert_eq!(sync(&mut client, "guarded")?, [0, 0, 2, 0, 0]);
        client.execute("SELECT rag.drop_source('guarded')", &[])?;
        // As it was seen, and yet its posts are to be read with other options.
        client.execute("SELECT rag.alter_source('harbour', options => $1)", &[&json!({"chunk_tokens": 100})])?;
        assert_eq!(sync(&mut client, "harbour")?, [0, 2, 0, 0, 0]);
        version.store(1, Ordering::SeqCst);
        assert_eq!(sync(&mut client, "harbour")?, [1, 0, 1, 0, 0]);
        let sql = "SELECT external_id, metadata ->> 'summary' FROM rag.documents WHERE source = 'harbour' ORDER BY 1";
        let posts: Vec<(String, String)> = client.query(sql, &[])?.iter().map(|r| (r.get(0), r.get(1))).collect();
        assert_eq!(posts.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["g1", "g2", "g3"]);
        assert!(posts.iter().all(|(_, why)| why.ends_with(" was answered by status 404")), "{posts:?}");
        let row = client.query_one("SELECT uri, title FROM rag.search('anchors', 1, mode => 'bm25')", &[])?;
        assert_eq!(row.get::<_, String>(0), site.url("/posts/1#g1"));
        assert_eq!(row.get::<_, Option<String>>(1).as_deref(), Some("Post 1"));
        // Another feed takes its place, and its posts go.
        let other = site.url("/other");
        client.execute("SELECT rag.alter_source('harbour', $1)", &[&other])?;
        assert_eq!(sync(&mut client, "harbour")?, [0, 2, 0, 1, 0]);
        Ok(())
    })
}

#[test]
fn a_page_is_fetched_only_from_an_allowed_host_and_only_when_it_changed() -> TestResult {
    with_cluster(&[], |cluster| {
        let body = "# Harbour\n\nShips lie at anchor.\n";
        let site = Site::start(|_| Some(Page { etag: "one".to_owned(), body: body.to_owned(), forbidden: false }))?;
        let url = site.url("/harbour.md");
        let mut client = cluster.connect()?;
        client.execute("SELECT rag.add_source('page', 'markdown', $1)", &[&url])?;
        assert_eq!(refused(&mut client, "CALL rag.sync('page')")?.0, "42501");
        assert_eq!(site.given(), []);

        client.batch_execute(&format!("SET pg_rag.allowed_hosts = '{}'", site.address))?;
        assert_eq!(sync(&mut client, "page")?, [1, 0, 0, 0, 0]);
        let row = client.query_one("SELECT uri, title, path FROM rag.search('ships at anchor', 1)", &[])?;
        assert_eq!((row.get::<_, String>(0), row.get::<_, Option<String>>(1)), (url, Some("Harbour".to_owned())));
        assert_eq!(row.get::<_, Option<String>>(2), None);
        let etag: Option<String> = client.query_one("SELECT etag FROM rag.documents", &[])?.get(0);
        assert_eq!(etag.as_deref(), Some("\"one\""));

        let before = site.given().len();
        assert_eq!(sync(&mut client, "page")?, [0, 0, 1, 0, 0]);
        assert_eq!(site.given()[before..], [Given { path: "/harbour.md".to_owned(), status: 304 }]);
        // Who is no superuser may not allow a host.
        client.batch_execute("CREATE ROLE guest; SET ROLE guest")?;
        assert!(client.batch_execute("SET pg_rag.allowed_hosts = 'example.org'").is_err());
        Ok(())
    })
}
