// SPDX-License-Identifier: PostgreSQL

//! What a session says when the thing behind the socket is no engine of its version, or breaks its word.

use rag_core::protocol::{Answer, Embeddings, PROTOCOL_VERSION, Reply, Request, decode, encode, frame_length};
use rag_server_tests::{Cluster, Failure, TestResult, with_cluster};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

/// Bytes to answer a request with; nothing closes the connection.
type Script = fn(&Request) -> Option<Vec<u8>>;

fn frame(reply: Reply) -> Option<Vec<u8>> {
    encode(&Answer { reply, last: true }).ok()
}

/// Greets as the engine does.
fn hello() -> Option<Vec<u8>> {
    frame(Reply::Hello { version: PROTOCOL_VERSION.to_owned(), pid: std::process::id() })
}

fn embeddings(dimensions: u32, rows: &[Vec<f32>]) -> Option<Vec<u8>> {
    frame(Reply::Embeddings(Embeddings::pack(dimensions, rows, vec![3; rows.len()], vec![false; rows.len()])))
}

/// Answers by `script` on the socket of an engine, for as long as the test runs.
fn pretend(cluster: &Cluster, script: Script) -> TestResult {
    let folder = cluster.data().join("pgsql_tmp_pg_rag");
    fs::create_dir_all(&folder)?;
    // The server must get through to the socket, whoever made it.
    fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
    // A socket keeps working under another name, and its first one must be short.
    let short = cluster.socket().join("engine.sock");
    let listener = UnixListener::bind(&short)?;
    fs::set_permissions(&short, Permissions::from_mode(0o666))?;
    fs::rename(&short, folder.join("engine.sock"))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || converse(stream, script));
        }
    });
    Ok(())
}

fn converse(mut stream: UnixStream, script: Script) -> Option<()> {
    loop {
        let mut head = [0; 4];
        stream.read_exact(&mut head).ok()?;
        let mut body = vec![0; frame_length(head).ok()?];
        stream.read_exact(&mut body).ok()?;
        stream.write_all(&script(&decode(&body).ok()?)?).ok()?;
    }
}

/// Has a session ask such an engine; it must fail as said, with a hint, and go on as if nothing had been.
fn fails(code: &str, message: &str, script: Script) -> TestResult {
    with_cluster(&[], |cluster| {
        pretend(cluster, script)?;
        let mut client = cluster.connect()?;
        for sql in ["SELECT rag.embed_query('planets')", "SELECT * FROM rag.search('planets')"] {
            let error = client.query(sql, &[]).err().ok_or_else(|| Failure::new(format!("no error: {sql}")))?;
            let e = error.as_db_error().ok_or_else(|| Failure::new(format!("{error:?}")))?;
            assert_eq!(e.code().code(), code, "{sql}: {e:?}");
            assert!(e.message().contains(message), "{sql}: {e:?}");
            assert!(e.hint().is_some(), "{sql}: {e:?}");
        }
        assert_eq!(client.query_one("SELECT 1", &[])?.get::<_, i32>(0), 1);
        Ok(())
    })
}

#[test]
fn an_engine_of_another_version_is_refused() -> TestResult {
    let version = "the engine speaks version \"0.0.1+1\" and this library \"";
    fails("55000", version, |_| frame(Reply::Hello { version: "0.0.1+1".to_owned(), pid: 1 }))
}

#[test]
fn an_engine_that_hangs_up_is_a_lost_connection() -> TestResult {
    fails("08006", "closed the connection", |_| None)
}

#[test]
fn an_engine_that_hangs_up_after_its_greeting_is_a_lost_connection() -> TestResult {
    fails("08006", "closed the connection", |request| match request {
        Request::Hello { .. } => hello(),
        _ => None,
    })
}

#[test]
fn a_frame_that_is_too_long_is_not_read() -> TestResult {
    fails("08006", "frame", |_| Some(vec![0xFF; 4]))
}

#[test]
fn a_message_that_is_none_is_not_understood() -> TestResult {
    fails("08006", "message", |_| Some(vec![1, 0, 0, 0, 0xC1]))
}

#[test]
fn another_answer_than_was_asked_for_is_not_taken() -> TestResult {
    fails("08006", "answered something else", |request| match request {
        Request::Hello { .. } => hello(),
        _ => frame(Reply::Echo(vec![1, 2, 3])),
    })
}

#[test]
fn vectors_of_another_length_are_not_taken() -> TestResult {
    fails("08006", "answered something else", |request| match request {
        Request::Hello { .. } => hello(),
        _ => embeddings(3, &[vec![1.0, 0.0, 0.0]]),
    })
}

#[test]
fn another_number_of_vectors_is_not_taken() -> TestResult {
    fails("08006", "answered something else", |request| match request {
        Request::Hello { .. } => hello(),
        _ => embeddings(384, &[vec![0.5; 384], vec![0.5; 384]]),
    })
}
