// SPDX-License-Identifier: PostgreSQL

//! Threads of a forum: a question and its answers.
//!
//! A document is a thread. Its first part is the question; each answer is a part that takes the question (or its first
//! sentences) along as context, so that a chunk is one question–answer pair; each comment takes what it comments on.
//! The schema is ours, and those of Stack Exchange (API and dumps in JSON) and Discourse (a topic) are read as well;
//! [`super::post`] has the names.

use super::post::{self, CREATED, IDS, KEYS, Object, Post, TITLES, URLS, first, list, note, text_of};
use super::{Parsed, metadata, record, role};
use rag_core::error::{Error, Kind, Result};
use rag_core::source::SourceOptions;
use serde_json::Value;

const VOTES: &[&str] = &["votes", "score", "like_count", "points", "upvotes", "vote_count"];
const ACCEPTED: &[&str] = &["accepted", "is_accepted", "accepted_answer"];

/// What a topic of Discourse says about its page and about other topics.
const OF_THE_PAGE: &[&str] = &[
    "accepted_answer",
    "actions_summary",
    "bookmarks",
    "chunk_size",
    "current_post_number",
    "details",
    "draft",
    "draft_key",
    "draft_sequence",
    "highest_post_number",
    "message_bus_last_id",
    "suggested_topics",
    "related_topics",
    "thumbnails",
    "timeline_lookup",
    "topic_timer",
];

/// Comments of comments are as deep as JSON may be; no deeper than this are they told apart.
const MAX_DEPTH: usize = 16;

/// The document of a thread.
pub fn parse(bytes: &[u8], options: &SourceOptions) -> Result<Parsed> {
    let (mut thread, repaired_bytes) = post::object(bytes, "thread")?;
    let external_id = record::key_only(bytes, &options.fields)?;
    let topic = thread.contains_key("post_stream");
    let (question, answers) = question_and_answers(&mut thread);
    let title = text_of(&thread, TITLES).or_else(|| text_of(question.as_object()?, TITLES));
    let mut posts = Vec::new();
    let mut body = post::body_of(&question)?;
    if body.trim().is_empty() {
        // A question that is all in its title is found by it.
        body = title.clone().unwrap_or_default();
    }
    if body.trim().is_empty() && answers.is_empty() {
        let have = thread.keys().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(Error::new(Kind::BadContent, "thread has no question")
            .with_detail(format!("It has: {have}."))
            .with_hint("A thread is {\"id\", \"title\", \"question\": {\"text\", \"author\"}, \"answers\": [{\"text\", \"author\"}]}."));
    }
    let asked = post::context_of(&body);
    let accepted =
        first(&thread, &["accepted_answer_id"]).or_else(|| first(question.as_object()?, &["accepted_answer_id"]));
    let accepted = accepted.and_then(metadata::scalar);
    // Discourse names the answer by its number in the topic, and says so once more on the post itself when it is allowed to.
    let solution = thread.get("accepted_answer").and_then(|answer| metadata::scalar(answer.get("post_number")?));
    let own = question.as_object().cloned().unwrap_or_default();
    let mut first_post = written("question", body, &own, None);
    note(&mut first_post.metadata, "answers", Some(answers.len()));
    let published_at = post::time_of(&own, CREATED).or_else(|| post::time_of(&thread, CREATED));
    if first_post.speaker.is_none() {
        first_post.speaker = post::author_of(&thread);
    }
    let context = first_post.text.clone();
    posts.push(first_post);
    comments(&own, &context, 0, &mut posts)?;
    for answer in &answers {
        let object = answer.as_object().cloned().unwrap_or_default();
        let body = post::body_of(answer)?;
        let mut posted = written("answer", body.clone(), &object, asked.clone());
        let stated = first(&object, ACCEPTED).and_then(Value::as_bool);
        let chosen = accepted.as_ref().map(|id| text_of(&object, IDS).as_ref() == Some(id));
        let solved = solution.as_ref().map(|number| text_of(&object, &["post_number"]).as_ref() == Some(number));
        note(&mut posted.metadata, "accepted", stated.filter(|_| solved != Some(true)).or(solved).or(chosen));
        posts.push(posted);
        comments(&object, &body, 0, &mut posts)?;
    }
    let mut parsed = Parsed { repaired_bytes, external_id, role: Some(role::EVIDENCE.to_owned()), ..Parsed::default() };
    post::assemble(posts, &mut parsed)?;
    let taken = ["accepted_answer_id", "comments", "replies", "body", "cooked", "body_html", "title", "post_stream"];
    let said = thread.into_iter().filter(|(name, value)| {
        let about_the_question = taken.contains(&name.as_str())
            || (topic && OF_THE_PAGE.contains(&name.as_str()))
            || [KEYS, TITLES, post::AUTHORS, CREATED].iter().any(|names| names.contains(&name.as_str()))
            || (own.get(name) == Some(value) && (VOTES.contains(&name.as_str()) || value.is_object()));
        !about_the_question && !is_text(name)
    });
    metadata::describe(&mut parsed, said.collect());
    parsed.title = title.as_deref().map(metadata::short).or(parsed.title);
    parsed.published_at = published_at.or(parsed.published_at);
    Ok(parsed)
}

fn is_text(name: &str) -> bool {
    matches!(name, "text" | "body_markdown" | "markdown" | "raw" | "content" | "description" | "message")
}

/// Takes the posts out of a thread: what asks, and what answers.
fn question_and_answers(thread: &mut Object) -> (Value, Vec<Value>) {
    let stream = thread.get_mut("post_stream").and_then(Value::as_object_mut);
    let posts = stream.and_then(|stream| stream.remove("posts")).or_else(|| thread.remove("posts"));
    if let Some(Value::Array(mut posts)) = posts
        && !posts.is_empty()
    {
        let question = posts.remove(0);
        return (question, posts);
    }
    let mut answers = Vec::new();
    for name in ["answers", "replies"] {
        if let Some(Value::Array(more)) = thread.get_mut(name).map(Value::take) {
            answers.extend(more);
            thread.shift_remove(name);
        }
    }
    // One answer alone is a set of pairs.
    if let Some(Value::String(answer)) = thread.get("answer").cloned() {
        thread.shift_remove("answer");
        answers.push(Value::String(answer));
    }
    let question = match thread.get("question") {
        Some(Value::Object(_) | Value::String(_)) => thread.shift_remove("question").unwrap_or_default(),
        _ => Value::Object(thread.clone()),
    };
    (question, answers)
}

/// A post with what is known about it.
fn written(what: &str, text: String, object: &Object, context: Option<String>) -> Post {
    let mut known = Object::new();
    known.insert("post".to_owned(), what.into());
    note(&mut known, "post_id", first(object, IDS).filter(|id| id.is_string() || id.is_number()).cloned());
    note(&mut known, "votes", first(object, VOTES).filter(|votes| votes.is_number()).cloned());
    note(&mut known, "created", post::time_of(object, CREATED));
    note(&mut known, "url", text_of(object, URLS));
    Post { text, speaker: post::author_of(object), context, path: Vec::new(), metadata: known }
}

/// Appends the comments on a post.
fn comments(on: &Object, text: &str, depth: usize, posts: &mut Vec<Post>) -> Result<()> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let context = post::context_of(text);
    // What answers a thread is no comment on its first post.
    let replies: &[Value] = if depth == 0 && on.contains_key("title") { &[] } else { list(on, "replies") };
    for comment in list(on, "comments").iter().chain(replies) {
        let object = comment.as_object().cloned().unwrap_or_default();
        let body = post::body_of(comment)?;
        posts.push(written("comment", body.clone(), &object, context.clone()));
        comments(&object, &body, depth + 1, posts)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::source::SourceKind;
    use serde_json::json;

    fn read(thread: Value) -> Parsed {
        parse(thread.to_string().as_bytes(), &SourceOptions::defaults(SourceKind::Forum)).expect("a thread")
    }

    /// Who, what, and what it answers.
    fn said(parsed: &Parsed) -> Vec<(Option<&str>, &str, Option<&str>)> {
        let parts = parsed.structure.parts.iter();
        parts.map(|p| (p.facts.speaker.as_deref(), &parsed.text[p.range.clone()], p.context.as_deref())).collect()
    }

    #[test]
    fn our_own_schema() {
        let parsed = read(json!({
            "id": "t1", "title": "Why?", "tags": ["a"], "url": "u",
            "question": {"text": "Why is it?", "author": "ann", "votes": 3, "created": "2024-01-02"},
            "answers": [
                {"id": 7, "text": "Because.", "author": "bob", "votes": 5, "accepted": true,
                 "comments": [{"text": "Sure?", "author": "cy"}]},
                {"text": "No idea.", "author": null}
            ]
        }));
        let expected = [
            (Some("ann"), "Why is it?", None),
            (Some("bob"), "Because.", Some("Why is it?")),
            (Some("cy"), "Sure?", Some("Because.")),
            (None, "No idea.", Some("Why is it?")),
        ];
        assert_eq!(said(&parsed), expected);
        assert_eq!((parsed.external_id.as_deref(), parsed.title.as_deref()), (Some("t1"), Some("Why?")));
        assert_eq!(parsed.published_at.as_deref(), Some("2024-01-02T00:00:00Z"));
        assert_eq!(Value::Object(parsed.metadata), json!({"tags": ["a"], "url": "u"}));
        let known: Vec<_> = parsed.structure.parts.into_iter().map(|p| Value::Object(p.metadata)).collect();
        assert_eq!(known[0], json!({"post": "question", "votes": 3, "created": "2024-01-02T00:00:00Z", "answers": 2}));
        assert_eq!(known[1], json!({"post": "answer", "post_id": 7, "votes": 5, "accepted": true}));
        assert_eq!(known[2], json!({"post": "comment"}));
    }

    #[test]
    fn stack_exchange() {
        let parsed = read(json!({
            "question_id": 11, "title": "T", "body": "<p>How &amp; <code>x</code>?</p>", "score": 2, "tags": ["sql"],
            "creation_date": 1_704_153_600, "owner": {"display_name": "Ann", "user_id": 1}, "accepted_answer_id": 13,
            "answers": [
                {"answer_id": 12, "body": "<p>a</p>", "score": 0, "owner": {"display_name": "B"}},
                {"answer_id": 13, "body_markdown": "b < c", "score": 9, "owner": {"display_name": "C"}}
            ]
        }));
        let expected = [
            (Some("Ann"), "How & `x`?", None),
            (Some("B"), "a", Some("How & `x`?")),
            (Some("C"), "b < c", Some("How & `x`?")),
        ];
        assert_eq!(said(&parsed), expected);
        assert_eq!(parsed.external_id.as_deref(), Some("11"));
        assert_eq!(parsed.published_at.as_deref(), Some("2024-01-02T00:00:00Z"));
        let accepted: Vec<_> = parsed.structure.parts.iter().map(|p| p.metadata.get("accepted").cloned()).collect();
        assert_eq!(accepted, [None, Some(json!(false)), Some(json!(true))]);
        assert_eq!(parsed.metadata.get("tags"), Some(&json!(["sql"])));
    }

    #[test]
    fn discourse() {
        let parsed = read(json!({
            "id": 5, "title": "T", "views": 9, "post_stream": {"posts": [
                {"id": 50, "username": "ann", "cooked": "<p>q</p>", "created_at": "2024-01-02T03:04:05.000Z"},
                {"id": 51, "username": "bob", "cooked": "<p>a</p>", "accepted_answer": true}
            ]}
        }));
        assert_eq!(said(&parsed), [(Some("ann"), "q", None), (Some("bob"), "a", Some("q"))]);
        assert_eq!(parsed.structure.parts[1].metadata["accepted"], json!(true));
        assert_eq!(Value::Object(parsed.metadata), json!({"views": 9}));
    }

    #[test]
    fn the_solution_of_a_topic_of_discourse() {
        let accepted = |answer: Value, first: Value, second: Value| {
            let parsed = read(json!({
                "id": 5, "title": "T", "category_id": 3, "accepted_answer": answer, "has_accepted_answer": true,
                "suggested_topics": [{"id": 6, "title": "Another"}], "details": {"participants": [{"username": "ann"}]},
                "timeline_lookup": [[1, 2]], "post_stream": {"stream": [50, 51, 52], "posts": [
                    {"id": 50, "post_number": 1, "username": "ann", "cooked": "<p>q</p>", "topic_accepted_answer": true},
                    {"id": 51, "post_number": 2, "username": "bob", "cooked": "<p>a</p>", "accepted_answer": first},
                    {"id": 60, "post_number": 3, "post_type": 3, "action_code": "closed.enabled", "cooked": ""},
                    {"id": 52, "post_number": 4, "username": "cy", "cooked": "<p>b</p>", "accepted_answer": second}
                ]}
            }));
            assert_eq!(Value::Object(parsed.metadata), json!({"category_id": 3, "has_accepted_answer": true}));
            let parts = parsed.structure.parts.iter();
            parts.map(|p| p.metadata.get("accepted").and_then(Value::as_bool)).collect::<Vec<_>>()
        };
        let solution = json!({"post_number": 4, "username": "cy", "excerpt": "b", "accepter_username": "ann"});
        assert_eq!(accepted(solution.clone(), Value::Null, Value::Null), [None, Some(false), Some(true)]);
        assert_eq!(accepted(solution.clone(), json!(false), json!(true)), [None, Some(false), Some(true)]);
        // A post from before the answer was chosen.
        assert_eq!(accepted(solution, json!(false), json!(false)), [None, Some(false), Some(true)]);
        assert_eq!(accepted(Value::Null, json!(false), json!(true)), [None, Some(false), Some(true)]);
        assert_eq!(accepted(Value::Null, Value::Null, Value::Null), [None, None, None]);
    }

    #[test]
    fn pairs_titles_and_nothing() {
        assert_eq!(said(&read(json!({"question": "q", "answer": "a"}))), [(None, "q", None), (None, "a", Some("q"))]);
        assert_eq!(said(&read(json!({"title": "only"}))), [(None, "only", None)]);
        let refuse =
            |bytes: &[u8]| parse(bytes, &SourceOptions::defaults(SourceKind::Forum)).expect_err("refused").message;
        assert_eq!(refuse(b"{\"id\": 1}"), "thread has no question");
        assert_eq!(refuse(b"[1]"), "thread is not a JSON object: \"[1]\"");
        assert_eq!(refuse(b"{"), "thread is not valid JSON: \"{\"");
    }

    #[test]
    fn a_long_question_goes_along_by_its_first_sentences() {
        let long = "One sentence of a question. ".repeat(40);
        let parsed = read(json!({"question": long, "answer": "a"}));
        let context = parsed.structure.parts[1].context.clone().unwrap_or_default();
        assert!(context.len() < 490 && context.ends_with("question. …"), "{context}");
    }
}
