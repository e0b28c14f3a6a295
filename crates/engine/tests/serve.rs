// SPDX-License-Identifier: PostgreSQL

//! The engine over its socket: handshake, inference, what happens to peers that leave and to an engine left alone.
// Clippy's leave for tests does not reach the functions that tests share.
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::Kind;
use rag_core::protocol::{Input, ModelSpec, Priority, Reply, Request};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};
use support::{Client, Engine, model};

fn embed(model: &ModelSpec, texts: &[&str], priority: Priority) -> Request {
    let texts = texts.iter().map(|t| (*t).to_owned()).collect();
    Request::Embed { model: model.clone(), texts, input: Input::Passage, priority }
}

fn rows(reply: Reply) -> Vec<Vec<f32>> {
    match reply {
        Reply::Embeddings(embeddings) => embeddings.rows().expect("rows"),
        other => panic!("no embeddings: {other:?}"),
    }
}

fn error(reply: Reply) -> rag_core::Error {
    match reply {
        Reply::Error(error) => error,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn the_handshake_comes_first_and_versions_must_agree() {
    let engine = Engine::start(&[], &[]);
    let mut stranger = Client(engine.raw());
    assert_eq!(error(stranger.ask(&Request::Status)).kind, Kind::Connection);
    let mut old = Client(engine.raw());
    let refused = error(old.ask(&Request::Hello { version: "0.0.1".into() }));
    assert_eq!(refused.kind, Kind::NotReady);
    assert!(refused.hint.is_some_and(|h| h.contains("Restart the server")));
    let mut broken = engine.client();
    broken.0.write_all(&[1, 0, 0, 0, 0xc1]).expect("writes");
    assert_eq!(
        match broken.receive().reply {
            Reply::Error(e) => e.kind,
            other => panic!("{other:?}"),
        },
        Kind::Connection
    );
    let mut client = engine.client();
    assert_eq!(client.ask(&Request::Echo { payload: vec![1, 2] }), Reply::Echo(vec![1, 2]));
}

#[test]
fn a_missing_model_or_runtime_is_explained() {
    let engine = Engine::start(&[], &["--threads", "1"]);
    let mut client = engine.client();
    let reply = error(client.ask(&Request::DescribeModel { name: "x".into(), path: "no-such-model".into() }));
    assert_eq!(reply.kind, Kind::FileMissing);
    assert!(reply.message.contains("no-such-model"), "{reply}");
    // The connection is as good as before.
    assert!(matches!(client.ask(&Request::Status), Reply::Status(s) if s.models.is_empty() && s.memory > 0));
}

#[test]
fn texts_are_embedded_counted_and_described() {
    let Some(spec) = model("all-MiniLM-L6-v2") else { return };
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    let Reply::Model(described) =
        client.ask(&Request::DescribeModel { name: spec.name.clone(), path: spec.path.clone() })
    else {
        panic!("not described")
    };
    assert_eq!(ModelSpec { sha256: None, ..described.clone() }, spec);
    let long = "many words ".repeat(300);
    let request = embed(&described, &["", "a dog", &long, "a dog"], Priority::Interactive);
    let Reply::Embeddings(embeddings) = client.ask(&request) else { panic!("not embedded") };
    assert_eq!((embeddings.dimensions, &embeddings.tokens), (384, &vec![2, 4, 602, 4]));
    assert_eq!(embeddings.truncated, [false, false, true, false]);
    let vectors = embeddings.rows().expect("rows");
    assert_eq!(vectors[1], vectors[3]);
    // The bulk lane is another session, and must give the same numbers.
    assert_eq!(rows(client.ask(&embed(&described, &["a dog"], Priority::Bulk)))[0], vectors[1]);
    assert!(rows(client.ask(&embed(&described, &[], Priority::Bulk))).is_empty());
    let counted = client.ask(&Request::CountTokens { model: described.clone(), texts: vec!["a dog".into(), long] });
    assert_eq!(counted, Reply::Counts(vec![4, 602]));
    let changed = ModelSpec { sha256: Some("00".into()), ..described };
    assert_eq!(error(client.ask(&embed(&changed, &["a"], Priority::Bulk))).kind, Kind::NotReady);
    assert!(matches!(client.ask(&Request::Status), Reply::Status(s) if s.models == ["all-MiniLM-L6-v2"]));
}

#[test]
fn a_query_does_not_wait_for_a_bulk_request_and_a_lost_peer_s_work_is_dropped() {
    let Some(spec) = model("all-MiniLM-L6-v2") else { return };
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    rows(client.ask(&embed(&spec, &["warm"], Priority::Interactive)));
    let long = "a passage of some length about nothing in particular ".repeat(30);
    let texts = vec![long.as_str(); 1500];
    let mut bulk = engine.client();
    bulk.send(&embed(&spec, &texts, Priority::Bulk));
    std::thread::sleep(Duration::from_millis(1500));
    let started = Instant::now();
    rows(client.ask(&embed(&spec, &["a query"], Priority::Interactive)));
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(1), "a query waited {waited:?}");
    drop(bulk);
    // Another peer is served long before 1500 passages could be finished, which takes minutes.
    let started = Instant::now();
    rows(client.ask(&embed(&spec, &["short"], Priority::Bulk)));
    assert!(started.elapsed() < Duration::from_secs(20), "bulk waited {:?}", started.elapsed());
}

#[test]
fn many_connections_get_their_own_answers() {
    let Some(spec) = model("all-MiniLM-L6-v2-int8").or_else(|| model("all-MiniLM-L6-v2")) else { return };
    let engine = Engine::start(&[], &[]);
    let texts: Vec<String> = (0..8).map(|n| format!("text number {n}")).collect();
    let expected: Vec<Vec<f32>> = {
        let mut client = engine.client();
        texts.iter().map(|t| rows(client.ask(&embed(&spec, &[t], Priority::Interactive))).remove(0)).collect()
    };
    std::thread::scope(|scope| {
        for (text, expected) in texts.iter().zip(&expected) {
            let (engine, spec) = (&engine, &spec);
            scope.spawn(move || {
                let mut client = engine.client();
                for _ in 0..10 {
                    assert_eq!(&rows(client.ask(&embed(spec, &[text], Priority::Interactive)))[0], expected);
                }
            });
        }
    });
}

#[test]
fn the_end_of_standard_input_ends_the_engine() {
    let mut engine = Engine::start(&[], &[]);
    engine.client();
    drop(engine.child.stdin.take());
    let status = engine.child.wait().expect("ends");
    assert_eq!(status.signal(), Some(15));
}
