// SPDX-License-Identifier: PostgreSQL

//! Work items: a description, comments, attachments.
//!
//! A document is an issue; its parts are the description, each comment and the text of each attachment that has one.
//! State, labels, links and names of attachments are metadata of the document. The schema is ours, with the names that
//! GitHub (REST, `gh issue list --json`) and GitLab use; what Jira nests under `fields` is looked for there. Notes that a
//! tracker writes itself (`"system": true`) are no comments.

use super::post::{self, CREATED, IDS, KEYS, Object, Post, TITLES, URLS, list, note, text_of};
use super::{Parsed, metadata, record, role};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::SourceOptions;
use serde_json::{Value, json};

/// What an export says about itself and nobody asks for.
const DROPPED: &[&str] = &["node_id", "reactions", "performed_via_github_app", "_links", "expand", "self"];

/// The document of an issue.
pub fn parse(bytes: &[u8], options: &SourceOptions) -> Result<Parsed> {
    let (mut issue, repaired_bytes) = post::object(bytes, "issue")?;
    let external_id = record::key_only(bytes, &options.fields)?;
    if let Some(Value::Object(fields)) = issue.get_mut("fields").map(Value::take) {
        issue.shift_remove("fields");
        fields.into_iter().for_each(|(name, value)| {
            issue.entry(name).or_insert(value);
        });
    }
    let title = text_of(&issue, TITLES);
    let mut description = post::text_in(&issue)?;
    if description.trim().is_empty() {
        description = title.clone().unwrap_or_default();
    }
    if description.trim().is_empty() {
        let have = issue.keys().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(Error::new(Kind::BadContent, "issue has neither a title nor a text")
            .with_detail(format!("It has: {have}."))
            .with_hint("An issue is {\"id\", \"title\", \"text\", \"author\", \"state\", \"labels\", \"comments\": [{\"text\", \"author\"}]}."));
    }
    let comments = take_comments(&mut issue);
    let attachments = take_attachments(&mut issue);
    let mut posts = vec![written("description", description, &issue)];
    for comment in &comments {
        let object = comment.as_object().cloned().unwrap_or_default();
        if object.get("system") != Some(&Value::Bool(true)) {
            posts.push(written("comment", post::body_of(comment)?, &object));
            posts.extend(list(&object, "attachments").iter().filter_map(attached));
        }
    }
    posts.extend(attachments.iter().filter_map(attached));
    let mut parsed = Parsed { repaired_bytes, external_id, role: Some(role::EVIDENCE.to_owned()), ..Parsed::default() };
    parsed.published_at = post::time_of(&issue, CREATED);
    post::assemble(posts, &mut parsed)?;
    let mut said = about(issue);
    if !attachments.is_empty() {
        said.insert("attachments".to_owned(), attachments.iter().map(named).collect());
    }
    if !comments.is_empty() {
        said.insert("comments".to_owned(), comments.len().into());
    }
    metadata::describe(&mut parsed, said);
    parsed.title = title.as_deref().map(metadata::short);
    Ok(parsed)
}

/// Takes the comments out of an issue, however its tracker keeps them; a number of comments is none.
fn take_comments(issue: &mut Object) -> Vec<Value> {
    let mut comments = Vec::new();
    for name in ["comments", "notes", "comment", "discussions"] {
        let inside = match issue.get_mut(name) {
            Some(Value::Object(wrapped)) => wrapped.get_mut("comments").map(Value::take),
            Some(value @ Value::Array(_)) => Some(value.take()),
            _ => None,
        };
        let Some(Value::Array(found)) = inside else { continue };
        issue.shift_remove(name);
        for mut comment in found {
            match comment.get_mut("notes").map(Value::take) {
                Some(Value::Array(notes)) => comments.extend(notes),
                _ => comments.push(comment),
            }
        }
    }
    comments
}

fn take_attachments(issue: &mut Object) -> Vec<Value> {
    for name in ["attachments", "attachment"] {
        if let Some(Value::Array(found)) = issue.get_mut(name).map(Value::take) {
            issue.shift_remove(name);
            return found;
        }
    }
    Vec::new()
}

/// The names under which an attachment is known.
const NAMES: &[&str] = &["name", "filename", "file_name", "title"];

/// What an attachment is, without its text.
fn named(attachment: &Value) -> Value {
    let Value::Object(object) = attachment else {
        return attachment.clone();
    };
    let mut known = Object::new();
    note(&mut known, "name", text_of(object, NAMES));
    note(&mut known, "url", text_of(object, URLS));
    note(&mut known, "media_type", text_of(object, &["media_type", "mimeType", "content_type"]));
    Value::Object(known)
}

/// The part of an attachment that has text.
fn attached(attachment: &Value) -> Option<Post> {
    let object = attachment.as_object()?;
    // Jira has an address where others have the content.
    let text = object.get("text").or_else(|| object.get("content"))?.as_str()?;
    let address = !text.contains(char::is_whitespace) && (text.starts_with("http://") || text.starts_with("https://"));
    let mut post = written("attachment", text.to_owned(), object);
    let name = text_of(object, NAMES).as_deref().map(metadata::short);
    post.path = name.iter().cloned().collect();
    note(&mut post.metadata, "name", name);
    (!address).then_some(post)
}

/// A post with what is known about it.
fn written(what: &str, text: String, object: &Object) -> Post {
    let mut known = Object::new();
    known.insert("post".to_owned(), what.into());
    if what != "description" {
        note(&mut known, "post_id", post::first(object, IDS).filter(|id| id.is_string() || id.is_number()).cloned());
        note(&mut known, "url", text_of(object, URLS));
    }
    note(&mut known, "created", post::time_of(object, CREATED));
    Post { text, speaker: post::author_of(object), context: None, path: Vec::new(), metadata: known }
}

/// The metadata of an issue: what is left, people and labels by their names.
fn about(issue: Object) -> Object {
    let mut said = Object::new();
    let taken = |name: &str| {
        [KEYS, TITLES, post::AUTHORS, CREATED].iter().any(|names| names.contains(&name))
            || matches!(
                name,
                "text" | "body" | "description" | "body_markdown" | "markdown" | "raw" | "content" | "body_html"
            )
    };
    for (name, value) in issue {
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        let address = name.ends_with("_url") && !URLS.contains(&name.as_str());
        if empty
            || address
            || DROPPED.contains(&name.as_str())
            || taken(&name) && !matches!(name.as_str(), "number" | "key" | "iid")
        {
            continue;
        }
        let name = if matches!(name.as_str(), "html_url" | "web_url") { "url".to_owned() } else { name };
        let value = match name.as_str() {
            "state" | "status" => text_or_name(&value),
            "labels" | "assignees" => {
                value.as_array().map_or(value.clone(), |all| all.iter().map(text_or_name).collect())
            }
            "milestone" | "assignee" | "priority" | "issuetype" | "resolution" | "project" => text_or_name(&value),
            "links" | "issuelinks" | "linked_issues" => {
                said.insert("links".to_owned(), value);
                continue;
            }
            _ => value,
        };
        // What comes first under one name stays.
        said.entry(if name == "status" { "state".to_owned() } else { name }).or_insert(value);
    }
    said
}

/// The name of something that is an object in some exports and a name in others.
fn text_or_name(value: &Value) -> Value {
    let Value::Object(object) = value else {
        return value.clone();
    };
    text_of(object, &["name", "title", "login", "displayName", "username", "value"])
        .map_or(value.clone(), |name| json!(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::source::SourceKind;

    fn read(issue: Value) -> Parsed {
        parse(issue.to_string().as_bytes(), &SourceOptions::defaults(SourceKind::Issues)).expect("an issue")
    }

    fn said(parsed: &Parsed) -> Vec<(Option<&str>, &str, &str)> {
        let parts = parsed.structure.parts.iter();
        parts
            .map(|p| {
                let what = p.metadata["post"].as_str().unwrap_or_default();
                (p.facts.speaker.as_deref(), what, &parsed.text[p.range.clone()])
            })
            .collect()
    }

    #[test]
    fn our_own_schema() {
        let parsed = read(json!({
            "id": "P-1", "title": "T", "text": "It fails.", "author": "ann", "state": "open", "labels": ["bug"],
            "created": "2024-01-02", "links": [{"type": "fixes", "to": "P-2"}],
            "comments": [{"id": 1, "text": "Why?", "author": "bob", "created": "2024-01-03"}],
            "attachments": [{"name": "log.txt", "text": "line"}, {"name": "shot.png", "url": "u"}]
        }));
        let expected =
            [(Some("ann"), "description", "It fails."), (Some("bob"), "comment", "Why?"), (None, "attachment", "line")];
        assert_eq!(said(&parsed), expected);
        assert_eq!(parsed.structure.parts[2].path, ["log.txt"]);
        assert_eq!(parsed.external_id.as_deref(), Some("P-1"));
        assert_eq!(parsed.published_at.as_deref(), Some("2024-01-02T00:00:00Z"));
        let expected = json!({
            "state": "open", "labels": ["bug"], "links": [{"type": "fixes", "to": "P-2"}],
            "attachments": [{"name": "log.txt"}, {"name": "shot.png", "url": "u"}], "comments": 1
        });
        assert_eq!(Value::Object(parsed.metadata), expected);
    }

    #[test]
    fn github_and_gitlab() {
        let parsed = read(json!({
            "number": 4, "id": 99, "node_id": "x", "title": "T", "body": "b", "user": {"login": "ann", "id": 1}, "comments": 3,
            "state": "closed", "labels": [{"name": "bug", "color": "f"}], "html_url": "h", "events_url": "e",
            "created_at": "2024-01-02T00:00:00Z", "closed_at": "2024-01-05T00:00:00Z", "assignees": [], "milestone": {"title": "m"}
        }));
        assert_eq!(said(&parsed), [(Some("ann"), "description", "b")]);
        assert_eq!(parsed.external_id.as_deref(), Some("4"));
        let expected = json!({
            "number": 4, "comments": 3, "state": "closed", "labels": ["bug"], "url": "h", "closed_at": "2024-01-05T00:00:00Z",
            "milestone": "m"
        });
        assert_eq!(Value::Object(parsed.metadata), expected);
        let parsed = read(json!({
            "iid": 5, "title": "T", "description": "d", "author": {"username": "ann"},
            "notes": [{"body": "changed the title", "system": true}, {"id": 8, "body": "n", "author": {"username": "b"}}]
        }));
        assert_eq!(said(&parsed), [(Some("ann"), "description", "d"), (Some("b"), "comment", "n")]);
    }

    #[test]
    fn jira_and_nothing() {
        let parsed = read(json!({"key": "P-3", "fields": {
            "summary": "S", "description": null, "status": {"name": "Done"}, "reporter": {"displayName": "Ann"},
            "comment": {"comments": [{"body": "c", "author": {"displayName": "Bob"}}]},
            "attachment": [{"filename": "f", "content": "https://x/f"}]
        }}));
        assert_eq!(said(&parsed), [(Some("Ann"), "description", "S"), (Some("Bob"), "comment", "c")]);
        assert_eq!(parsed.metadata["state"], json!("Done"));
        assert_eq!(parsed.metadata["attachments"], json!([{"name": "f"}]));
        let refused = parse(b"{\"id\": 1}", &SourceOptions::defaults(SourceKind::Issues)).expect_err("nothing");
        assert_eq!(refused.message, "issue has neither a title nor a text");
    }
}
