// SPDX-License-Identifier: PostgreSQL

//! Repositories of a server on this machine: what is cloned, how little of it, what is refused, and how long that takes.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod git_server;

use git_server::{Server, commit, git};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::{Item, SourceSpec, Workspace};
use rag_ingest::Cloned;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn clone(spec: &SourceSpec) -> Result<(TempDir, Cloned)> {
    let folder = tempfile::tempdir().expect("folder");
    let cloned = rag_ingest::clone_remote(spec, folder.path(), None, &[])?;
    Ok((folder, cloned))
}

fn list(spec: &SourceSpec, folder: &Path, cloned: &Cloned) -> (Workspace, Vec<Item>) {
    let folder = folder.to_str().expect("UTF-8").to_owned();
    let workspace = Workspace { folder, commit: cloned.commit.clone(), reference: cloned.reference.clone() };
    let mut items = Vec::new();
    rag_ingest::list_clone(spec, &workspace, &mut |more, failures| {
        assert!(failures.is_empty(), "{failures:?}");
        items.extend(more);
        Ok(())
    })
    .expect("lists");
    (workspace, items)
}

fn refused(spec: &SourceSpec) -> Error {
    clone(spec).map(|(_, cloned)| cloned).expect_err(&spec.location)
}

/// Commits that the clone has.
fn history(folder: &Path, commit: &str) -> String {
    git(folder, &["rev-list", "--count", commit]).expect("count")
}

/// A repository of three commits on `main`, the first of which is tagged `v1`, the second `v2`, and one more on `next`; its
/// commits.
fn repository(parent: &Path) -> Option<[String; 4]> {
    let at = parent.join("wells.git");
    git(parent, &["init", "-q", "wells.git"])?;
    let one = commit(&at, "README.md", "# Well\n\nFirst water.\n")?;
    git(&at, &["tag", "-a", "-m", "A tag.", "v1"])?;
    let two = commit(&at, "docs/rope.md", "# Rope\n\nOf hemp.\n")?;
    git(&at, &["tag", "v2"])?;
    let three = commit(&at, "README.md", "# Well\n\nThird water.\n")?;
    git(&at, &["checkout", "-qb", "next"])?;
    let four = commit(&at, "README.md", "# Well\n\nNext water.\n")?;
    git(&at, &["checkout", "-q", "main"])?;
    Some([one, two, three, four])
}

#[test]
fn a_branch_a_tag_a_commit_and_head_are_cloned_without_history() {
    let parent = tempfile::tempdir().expect("folder");
    let Some([one, two, three, four]) = repository(parent.path()) else { return };
    let server = Server::start(parent.path());
    for (path, reference, at, name, commits) in [
        ("wells.git", None, &three, Some("main"), "1"),
        ("wells.git/", Some("main"), &three, Some("main"), "1"),
        ("wells.git", Some("next"), &four, Some("next"), "1"),
        ("wells.git", Some("v1"), &one, Some("v1"), "1"),
        ("wells.git", Some("v2"), &two, Some("v2"), "1"),
        ("wells.git", Some("refs/heads/next"), &four, Some("refs/heads/next"), "1"),
        ("wells.git", Some(four.as_str()), &four, None, "1"),
        ("wells.git", Some(&four[..9]), &four, None, "1"),
        ("wells.git", Some(one.as_str()), &one, None, "1"),
        ("moved/wells.git", None, &three, Some("main"), "1"),
    ] {
        let options = reference.map_or_else(|| json!({}), |reference| json!({"ref": reference}));
        let source = server.source(path, &options);
        let (folder, cloned) = clone(&source).unwrap_or_else(|e| panic!("{path} {reference:?}: {e:?}"));
        let expected = Cloned { commit: at.clone(), reference: name.map(str::to_owned), known: false };
        assert_eq!(cloned, expected, "{path} {reference:?}");
        assert_eq!(history(folder.path(), at), commits, "{path} {reference:?}");
        let (workspace, items) = list(&source, folder.path(), &cloned);
        assert_eq!(
            items.last().map(|item| item.uri.as_str()),
            Some(if *at == one { "README.md" } else { "docs/rope.md" })
        );
        let content = rag_ingest::fetch_clone(&source, &workspace, &items[0]).expect("reads");
        let version = content.origin.version;
        assert_eq!(version.repository.as_deref(), Some(source.location.as_str()));
        assert_eq!((version.commit.as_ref(), version.reference.as_deref()), (Some(at), name));
        assert!(content.origin.metadata.contains_key("blob"));
        let shown = git(&parent.path().join("wells.git"), &["show", &format!("{at}:README.md")]).expect("shown");
        assert_eq!(String::from_utf8_lossy(&content.bytes).trim(), shown);
    }
}

#[test]
fn a_commit_within_the_history_is_asked_for_by_its_hash_or_looked_up_in_all() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(_) = repository(parent.path()) else { return };
    let at = parent.path().join("wells.git");
    let middle = commit(&at, "a.md", "# A\n").expect("commit");
    commit(&at, "b.md", "# B\n");
    let server = Server::start(parent.path());
    let other = "f".repeat(40);
    let error = refused(&server.source("open/wells.git", &json!({"ref": middle, "expect_commit": other})));
    assert_eq!(error.message, format!("\"{middle}\" is at commit {middle} and not at \"{other}\""));
    let folder = tempfile::tempdir().expect("folder");
    let source = server.source("open/wells.git", &json!({"ref": middle}));
    let known = rag_ingest::clone_remote(&source, folder.path(), None, &[other, middle.clone()]).expect("known");
    assert_eq!(known, Cloned { commit: middle.clone(), reference: None, known: true });
    assert_eq!(server.downloads(), 0);
    for (path, reference, commits) in [
        ("open/wells.git", middle.as_str(), "1"),
        ("wells.git", &middle, "4"),
        ("open/wells.git", &middle[..10], "4"),
        ("fussy/wells.git", &middle, "4"),
    ] {
        let source = server.source(path, &json!({"ref": reference}));
        let (folder, cloned) = clone(&source).unwrap_or_else(|e| panic!("{path} {reference}: {e:?}"));
        assert_eq!(cloned, Cloned { commit: middle.clone(), reference: None, known: false });
        assert_eq!(history(folder.path(), &middle), commits, "{path} {reference}");
    }
    // A clone that is gone is made again at its commit, wherever the branch is by now.
    let source = server.source("open/wells.git", &json!({"ref": "main"}));
    let folder = tempfile::tempdir().expect("folder");
    let again = rag_ingest::clone_remote(&source, folder.path(), Some(&middle), &[]).expect("clones");
    assert_eq!(again.commit, middle);
    let missing = "0123456789012345678901234567890123456789";
    for path in ["open/wells.git", "wells.git", "fussy/wells.git"] {
        let error = refused(&server.source(path, &json!({"ref": missing})));
        assert_eq!(error.message, format!("repository has no branch, tag or commit \"{missing}\""), "{error:?}");
        assert_eq!(error.hint.as_deref(), Some("It has: main, next."));
    }
    let url = server.url("refusing/wells.git/git-upload-pack");
    let error = refused(&server.source("refusing/wells.git", &json!({"ref": middle})));
    assert_eq!(error.message, format!("\"{url}\" was answered by status 500"));
    let detail = format!("The server was asked for commit {middle} alone first: \"{url}\" was answered by status 500.");
    assert_eq!(error.detail, Some(detail));
}

#[test]
fn a_commit_is_not_looked_up_in_too_many_branches_and_tags() {
    let parent = tempfile::tempdir().expect("folder");
    let Some([one, ..]) = repository(parent.path()) else { return };
    let at = parent.path().join("wells.git");
    let middle = commit(&at, "a.md", "# A\n").expect("commit");
    let last = commit(&at, "b.md", "# B\n").expect("commit");
    let tags: String = (0..100_000).map(|number| format!("{one} refs/tags/t{number:06}\n")).collect();
    let header = "# pack-refs with: peeled fully-peeled sorted \n";
    std::fs::write(at.join(".git/packed-refs"), format!("{header}{tags}")).expect("file");
    let server = Server::start(parent.path());
    let error = refused(&server.source("wells.git", &json!({"ref": middle[..10]})));
    assert_eq!(error.kind, Kind::LimitExceeded);
    // Four more: main, next, v1 and v2.
    let url = server.url("wells.git");
    let message = format!("commit \"{}\" is not looked up in the 100004 branches and tags of \"{url}\"", &middle[..10]);
    assert_eq!((error.message, server.downloads()), (message, 0));
    for (reference, commit) in [("main", &last), ("t000007", &one)] {
        let (_folder, cloned) = clone(&server.source("wells.git", &json!({"ref": reference}))).expect(reference);
        assert_eq!(&cloned.commit, commit);
    }
}

#[test]
fn nothing_is_downloaded_that_is_not_wanted_or_known() {
    let parent = tempfile::tempdir().expect("folder");
    let Some([one, two, three, _]) = repository(parent.path()) else { return };
    let server = Server::start(parent.path());
    let error = refused(&server.source("wells.git", &json!({"ref": "main", "expect_commit": one[..12]})));
    assert_eq!(error.message, format!("\"main\" is at commit {three} and not at \"{}\"", &one[..12]));
    let error = refused(&server.source("wells.git", &json!({"ref": "nope"})));
    assert_eq!((error.kind, error.hint.as_deref()), (Kind::NotFound, Some("It has: main, next.")));
    let there = [three.clone(), two.clone()];
    for (reference, at, name) in
        [(None, &three, Some("main")), (Some("v2"), &two, Some("v2")), (Some(two.as_str()), &two, None)]
    {
        let source =
            server.source("wells.git", &reference.map_or_else(|| json!({}), |reference| json!({"ref": reference})));
        let folder = tempfile::tempdir().expect("folder");
        let known = rag_ingest::clone_remote(&source, folder.path(), None, &there).expect("known");
        assert_eq!(known, Cloned { commit: at.clone(), reference: name.map(str::to_owned), known: true });
    }
    assert_eq!(server.downloads(), 0);
    clone(&server.source("wells.git", &json!({"expect_commit": three[..7]}))).expect("as expected");
    assert!(server.downloads() > 0);
    git(parent.path(), &["init", "-q", "empty.git"]);
    let error = refused(&server.source("empty.git", &json!({})));
    assert_eq!(error.message, format!("repository \"{}\" has no commit at HEAD", server.url("empty.git")));
}

#[test]
fn nothing_is_checked_out_and_nothing_else_is_fetched() {
    let parent = tempfile::tempdir().expect("folder");
    let at = parent.path().join("odd.git");
    let Some(_) = git(parent.path(), &["init", "-q", "odd.git"]) else { return };
    std::fs::write(at.join("run.md"), "# Run\n").expect("file");
    std::fs::write(at.join(".gitattributes"), "*.md filter=evil\n").expect("file");
    std::os::unix::fs::symlink("/etc/passwd", at.join("out.md")).expect("link");
    let other = Server::start(parent.path());
    std::fs::write(
        at.join(".gitmodules"),
        format!("[submodule \"x\"]\n path = sub\n url = {}\n", other.url("odd.git")),
    )
    .expect("file");
    git(&at, &["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", "1".repeat(40))]);
    commit(&at, "docs/.git-hooks.md", "x");
    let server = Server::start(parent.path());
    let source = server.source("odd.git", &json!({}));
    let (folder, cloned) = clone(&source).expect("clones");
    let (_, items) = list(&source, folder.path(), &cloned);
    assert_eq!(items.iter().map(|item| item.uri.as_str()).collect::<Vec<_>>(), ["run.md"]);
    for name in ["run.md", "out.md", "sub", ".git", "docs"] {
        assert!(folder.path().join(name).symlink_metadata().is_err(), "{name}");
    }
    assert!(other.asked.lock().expect("asked").is_empty());
}

#[test]
fn only_allowed_hosts_are_talked_to_and_only_over_http() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(_) = repository(parent.path()) else { return };
    let server = Server::start(parent.path());
    for (path, message) in [
        ("private/wells.git", "host \"10.0.0.1\" is not allowed at port 80".to_owned()),
        ("other-port/wells.git", "host \"127.0.0.1\" is not allowed at port 1".to_owned()),
        (
            "late/wells.git",
            format!("\"{}/git-upload-pack\" redirects, which only the first request may", server.url("late/wells.git")),
        ),
        ("elsewhere/x", format!("\"{}\" was redirected to and is no git repository", server.url("page"))),
        ("loop/x", format!("\"{}\" is reached by more than 10 redirects", server.url("loop/x"))),
    ] {
        assert_eq!(refused(&server.source(path, &json!({}))).message, message, "{path}");
    }
    let closed = SourceSpec { allowed_hosts: Vec::new(), ..server.source("wells.git", &json!({})) };
    let before = server.asked.lock().expect("asked").len();
    assert_eq!(refused(&closed).kind, Kind::Forbidden);
    assert_eq!(server.asked.lock().expect("asked").len(), before);
    let port = server.address.rsplit_once(':').expect("port").1;
    let named = SourceSpec {
        location: format!("http://localhost:{port}/wells.git"),
        allowed_hosts: vec![format!("localhost:{port}")],
        ..server.source("", &json!({}))
    };
    assert!(refused(&named).message.ends_with(", which is not public"));
    for (location, scheme) in [
        ("ssh://git@example.org/r", "ssh"),
        ("git://example.org/r", "git"),
        ("file:///etc", "file"),
        ("ext::sh -c id", "ext"),
        ("pg-rag://repository", "pg-rag"),
    ] {
        let source = SourceSpec { location: location.into(), ..server.source("", &json!({})) };
        let error = refused(&source);
        assert_eq!(
            (error.kind, error.message),
            (Kind::Forbidden, format!("a repository is not cloned by \"{scheme}\""))
        );
    }
    let user = SourceSpec { location: format!("http://me:secret@{}/wells.git", server.address), ..closed };
    assert!(!refused(&user).to_string().contains("secret"));
}

#[test]
fn what_a_server_gets_wrong_is_an_error() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(_) = repository(parent.path()) else { return };
    let server = Server::start(parent.path());
    for (path, kind) in [
        ("page", Kind::BadContent),
        ("secret/x", Kind::Forbidden),
        ("absent/x", Kind::FileMissing),
        ("junk/x", Kind::BadContent),
        ("junk-pack/wells.git", Kind::BadContent),
    ] {
        let error = refused(&server.source(path, &json!({})));
        assert_eq!(error.kind, kind, "{path}: {error:?}");
    }
}

#[test]
fn limits_of_size_and_time_hold() {
    let parent = tempfile::tempdir().expect("folder");
    let Some(_) = repository(parent.path()) else { return };
    let server = Server::start(parent.path());
    let limits = json!({"limits": {"max_download_bytes": 3_000_000, "max_download_seconds": 3}});
    for (path, message) in [
        ("endless/wells.git", "sent more than max_download_bytes 3000000"),
        ("long-refs/x", "sent more than max_download_bytes 3000000"),
        ("slow/wells.git", "took longer than max_download_seconds 3"),
        ("silent/x", "took longer than max_download_seconds 3"),
    ] {
        let started = Instant::now();
        let error = refused(&server.source(path, &limits));
        assert_eq!(error.kind, Kind::LimitExceeded, "{path}: {error:?}");
        assert_eq!(error.message, format!("\"{}\" {message}", server.url(path)));
        assert!(started.elapsed() < Duration::from_secs(15), "{path} took {:?}", started.elapsed());
    }
    let refs = refused(&server.source("long-refs/x", &json!({})));
    let message = format!("\"{}\" has more than 64 MB of branches, tags and other refs", server.url("long-refs/x"));
    assert_eq!((refs.kind, refs.message), (Kind::LimitExceeded, message));
}
