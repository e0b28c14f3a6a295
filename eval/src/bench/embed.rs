// SPDX-License-Identifier: PostgreSQL

//! What SQL adds to the embedding of a query.
//!
//! The floors are, from below: a round trip to PostgreSQL that does nothing, a round trip to the engine that does
//! nothing, and the same embedding asked of the engine directly. The engine's socket lies in the data folder, mode
//! 0700: where this program may not open it (another user, another machine), those two rows are left out and the
//! report says so.

use super::figure::Figure;
use super::judged::Judged;
use super::turns::{Connect, Contender, Work, interleave, table};
use super::{Bench, processes};
use crate::db;
use postgres::Client;
use rag_core::error::Kind;
use rag_core::protocol::{Answer, Input, ModelSpec, PROTOCOL_VERSION, Priority, Reply, Request};
use rag_core::protocol::{decode, encode, frame_length};
use rag_core::{Error, Result};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Where the socket is within the data folder.
const SOCKET: &str = "pgsql_tmp_pg_rag/engine.sock";

/// A connection to the engine, past PostgreSQL.
#[derive(Debug)]
struct Engine {
    stream: UnixStream,
}

impl Engine {
    fn connect(path: &Path) -> Result<Self> {
        let io = |e: io::Error| Error::io(&path.display().to_string(), &e);
        let stream = UnixStream::connect(path).map_err(io)?;
        // A hung engine must not hang the benchmark.
        stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(io)?;
        let mut engine = Self { stream };
        match engine.ask(&Request::Hello { version: PROTOCOL_VERSION.to_owned() })? {
            Reply::Hello { version, .. } if version == PROTOCOL_VERSION => Ok(engine),
            Reply::Hello { version, .. } => Err(Error::new(
                Kind::Connection,
                format!("the engine speaks version {version}, this program {PROTOCOL_VERSION}"),
            )),
            _ => Err(unexpected()),
        }
    }

    /// One request, one frame of an answer.
    fn ask(&mut self, request: &Request) -> Result<Reply> {
        let io = |e: io::Error| Error::io("the engine's socket", &e);
        self.stream.write_all(&encode(request)?).map_err(io)?;
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).map_err(io)?;
        let mut body = vec![0; frame_length(head)?];
        self.stream.read_exact(&mut body).map_err(io)?;
        match decode::<Answer>(&body)? {
            Answer { reply: Reply::Error(error), .. } => Err(error),
            Answer { reply, last: true } => Ok(reply),
            Answer { .. } => Err(unexpected()),
        }
    }

    fn describe(&mut self, name: &str, path: &str) -> Result<ModelSpec> {
        match self.ask(&Request::DescribeModel { name: name.to_owned(), path: path.to_owned() })? {
            Reply::Model(spec) => Ok(spec),
            _ => Err(unexpected()),
        }
    }
}

fn unexpected() -> Error {
    Error::new(Kind::Connection, "the engine answered something else than it was asked")
}

/// Measures it.
pub fn measure(connect: Connect<'_>, request: &Bench, judged: &Judged) -> Result<Figure> {
    let Judged { texts, model, model_path, .. } = judged;
    let mut setup = connect()?;
    let nothing = statement(connect, "SELECT $1::text")?;
    let embed = statement(connect, "SELECT rag.embed_query($1, $2)")?;
    let socket = match &request.engine_socket {
        Some(path) => path.clone(),
        None => processes::data_folder(&mut setup)?.join(SOCKET),
    };
    // The engine starts at first use.
    setup.execute("SELECT rag.embed_query('warm up', $1)", &[model]).map_err(|e| db::sql("could not embed", &e))?;
    let direct = Engine::connect(&socket).and_then(|mut engine| {
        let spec = engine.describe(model, model_path)?;
        Ok((RefCell::new(engine), spec))
    });

    let mut contenders = vec![
        Contender { name: "PostgreSQL, nothing".to_owned(), work: nothing_work(nothing, texts) },
        Contender { name: "rag.embed_query".to_owned(), work: embed_work(embed, texts, model) },
    ];
    if let Ok((engine, spec)) = &direct {
        contenders.insert(1, Contender { name: "engine, nothing".to_owned(), work: echo_work(engine) });
        contenders.insert(2, Contender { name: "engine, embed".to_owned(), work: direct_work(engine, spec, texts) });
    }
    let times = interleave(&mut contenders, texts.len(), request.rounds)?;
    let rows = contenders.iter().zip(times).map(|(c, t)| (c.name.clone(), t, Vec::new())).collect();
    let base = if direct.is_ok() { "engine, embed" } else { "rag.embed_query" };
    let mut figure = Figure::new(
        "What SQL adds to the embedding of a query",
        format!(
            "{} questions of {}, {} rounds, query by query in turns; milliseconds seen from a client on the same machine.",
            texts.len(),
            judged.set.name(),
            request.rounds
        ),
    );
    figure.tables.push(table("", rows, base, &[]));
    if let Err(error) = &direct {
        figure.notes.push(format!("The engine was not asked directly: {error}."));
    }
    Ok(figure)
}

type Prepared = (Client, postgres::Statement);

fn statement(connect: Connect<'_>, sql: &str) -> Result<Prepared> {
    let mut client = connect()?;
    let statement = client.prepare(sql).map_err(|e| db::sql("could not prepare", &e))?;
    Ok((client, statement))
}

fn nothing_work((mut client, statement): Prepared, texts: &[String]) -> Work<'_> {
    Box::new(move |at| {
        client.execute(&statement, &[&texts[at]]).map_err(|e| db::sql("could not select", &e))?;
        Ok(())
    })
}

fn embed_work<'a>((mut client, statement): Prepared, texts: &'a [String], model: &'a str) -> Work<'a> {
    Box::new(move |at| {
        client.execute(&statement, &[&texts[at], &model]).map_err(|e| db::sql("could not embed", &e))?;
        Ok(())
    })
}

fn echo_work(engine: &RefCell<Engine>) -> Work<'_> {
    Box::new(move |_| engine.borrow_mut().ask(&Request::Echo { payload: Vec::new() }).map(|_| ()))
}

fn direct_work<'a>(engine: &'a RefCell<Engine>, spec: &'a ModelSpec, texts: &'a [String]) -> Work<'a> {
    Box::new(move |at| {
        let request = Request::Embed {
            model: spec.clone(),
            texts: vec![texts[at].clone()],
            input: Input::Query,
            priority: Priority::Interactive,
        };
        match engine.borrow_mut().ask(&request)? {
            Reply::Embeddings(_) => Ok(()),
            _ => Err(unexpected()),
        }
    })
}
