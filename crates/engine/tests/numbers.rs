// SPDX-License-Identifier: PostgreSQL

//! How fast the engine is on this machine. Not a test of anything; run it alone and in release:
//! `cargo test --release -p rag_engine --test numbers -- --ignored --nocapture`
#![allow(clippy::expect_used, clippy::panic)]

mod support;

use rag_core::protocol::{Input, ModelSpec, Priority, Reply, Request};
use std::time::{Duration, Instant};
use support::{Client, Engine, model};

fn embed(client: &mut Client, model: &ModelSpec, texts: Vec<String>, priority: Priority) {
    let reply = client.ask(&Request::Embed { model: model.clone(), texts, input: Input::Query, priority });
    assert!(matches!(reply, Reply::Embeddings(_)), "{reply:?}");
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("p50 {:?}, p99 {:?}", at(0.5), at(0.99))
}

fn timed(count: usize, mut what: impl FnMut(usize)) -> String {
    let time = |n| {
        let started = Instant::now();
        what(n);
        started.elapsed()
    };
    percentiles((0..count).map(time).collect())
}

fn status(client: &mut Client) -> String {
    match client.ask(&Request::Status) {
        Reply::Status(s) => format!("{} MB resident, models {:?}", s.memory >> 20, s.models),
        other => panic!("{other:?}"),
    }
}

/// Seconds of processor time that the engine has used; unlike elapsed time, they do not depend on what else runs.
fn processor(engine: &Engine) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", engine.child.id())).expect("stat");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: f64 = fields[11..13].iter().map(|f| f.parse::<f64>().expect("ticks")).sum();
    ticks / 100.0
}

#[test]
#[ignore = "measures"]
fn numbers() {
    let (Some(full), Some(int8)) = (model("all-MiniLM-L6-v2"), model("all-MiniLM-L6-v2-int8")) else { return };
    let started = Instant::now();
    let engine = Engine::start(&[], &[]);
    let mut client = engine.client();
    println!("process start to handshake: {:?}", started.elapsed());
    println!("echo: {}", timed(5000, |_| drop(client.ask(&Request::Echo { payload: Vec::new() }))));
    for model in [&full, &int8] {
        let name = &model.name;
        let query = |n: usize| vec![format!("how does query number {n} work")];
        let started = Instant::now();
        embed(&mut client, model, query(0), Priority::Interactive);
        println!("{name}: first embedding {:?}; {}", started.elapsed(), status(&mut client));
        println!("{name}: query {}", timed(300, |n| embed(&mut client, model, query(n), Priority::Interactive)));
        let passage = |n: usize| format!("passage {n} {}", "and another word of it ".repeat(50));
        embed(&mut client, model, vec![passage(0)], Priority::Bulk);
        let texts: Vec<String> = (0..96).map(passage).collect();
        let (started, used) = (Instant::now(), processor(&engine));
        embed(&mut client, model, texts, Priority::Bulk);
        let (elapsed, used) = (started.elapsed().as_secs_f64(), processor(&engine) - used);
        println!("{name}: passages of 256 tokens: {:.1}/s, {:.1} per processor second", 96.0 / elapsed, 96.0 / used);
        println!("{name}: {}", status(&mut client));
        std::thread::sleep(Duration::from_secs(2));
        println!("{name}: after a pause {}", status(&mut client));
        let mut bulk = engine.client();
        let texts: Vec<String> = (0..400).map(passage).collect();
        bulk.send(&Request::Embed { model: model.clone(), texts, input: Input::Passage, priority: Priority::Bulk });
        std::thread::sleep(Duration::from_millis(300));
        println!(
            "{name}: query beside bulk {}",
            timed(100, |n| embed(&mut client, model, query(n), Priority::Interactive))
        );
    }
    println!("{}", status(&mut client));
}
