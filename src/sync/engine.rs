// SPDX-License-Identifier: PostgreSQL

//! What a sync asks of the engine, with patience.
//!
//! A search asks twice and then says that the engine is in trouble; a sync has time and must not fail because the engine was
//! killed a few times. What was answered before the connection broke is kept, and the rest is asked for again. A batch of texts
//! is halved each time the engine dies over it, so that a text which kills it stands alone in the end and costs its own
//! document. Only a broken connection is met so: an engine that does not start, or refuses, is an error at once.

use crate::engine_client;
use crate::guc::Waits;
use crate::inference::{self, Embedded};
use crate::spi;
use crate::store::model::Model;
use rag_core::document::Document;
use rag_core::protocol::{Input, Priority, Reply, Request};
use rag_core::source::{Failure, Item, SourceSpec};
use rag_core::{Error, Kind, Result};
use std::time::Duration;

/// Times the engine may die in a row without anything getting done.
const PATIENCE: u32 = 8;
/// Pause before asking again.
const PAUSE: Duration = Duration::from_millis(250);

/// Counts deaths of the engine between two steps forward.
#[derive(Debug, Default)]
struct Deaths(u32);

impl Deaths {
    /// Waits a little if the engine may be asked again; hands the error back if not.
    fn wait(&mut self, error: Error) -> Result<()> {
        if error.kind != Kind::Connection || self.0 >= PATIENCE {
            return Err(error);
        }
        self.0 += 1;
        engine_client::pause(PAUSE);
        Ok(())
    }
}

/// Vectors of texts in their order. A text over which the engine dies again and again has an error in its place.
pub fn vectors(model: &Model, texts: Vec<String>, waits: Waits) -> Result<Vec<Result<Embedded>>> {
    let mut done = Vec::with_capacity(texts.len());
    let mut size = texts.len();
    let mut deaths = Deaths::default();
    while done.len() < texts.len() {
        let part = &texts[done.len()..texts.len().min(done.len() + size)];
        match inference::embed(&model.spec, part.to_vec(), Input::Passage, Priority::Bulk, waits) {
            Ok(vectors) => {
                done.extend(vectors.into_iter().map(Ok));
                deaths = Deaths::default();
                size = texts.len();
            }
            Err(error) if part.len() > 1 && error.kind == Kind::Connection => {
                size = part.len() / 2;
                engine_client::pause(PAUSE);
            }
            Err(error) => match deaths.wait(error) {
                Ok(()) => {}
                Err(error) if error.kind == Kind::Connection => {
                    done.push(Err(error));
                    deaths = Deaths::default();
                }
                Err(error) => return Err(error),
            },
        }
    }
    Ok(done)
}

/// A document, or why there is none.
pub type Read = std::result::Result<Box<Document>, Failure>;

/// Reads, parses and chunks items; one outcome for each, in order.
pub fn read(source: &SourceSpec, items: &[Item], model: &Model, waits: Waits) -> Result<Vec<Read>> {
    let mut read: Vec<Read> = Vec::with_capacity(items.len());
    let mut deaths = Deaths::default();
    while read.len() < items.len() {
        let before = read.len();
        let request =
            Request::Read { source: source.clone(), items: items[before..].to_vec(), model: model.spec.clone() };
        let asked = engine_client::stream(&request, waits, &mut |reply| match reply {
            Reply::Document(document) if read.len() < items.len() => {
                read.push(document);
                Ok(())
            }
            _ => Err(engine_client::unexpected()),
        });
        match asked {
            Ok(()) if read.len() == items.len() => {}
            Ok(()) => return Err(Error::internal(format!("{} items gave {} documents", items.len(), read.len()))),
            Err(error) => {
                if read.len() > before {
                    deaths = Deaths::default();
                }
                deaths.wait(error)?;
            }
        }
    }
    Ok(read)
}

/// Lists a source and hands its pages to `page`; returns how many entries were looked at. When the engine dies in between, what `page` wrote is undone and the
/// listing begins again; `restart` is called before each begin.
pub fn list(
    source: &SourceSpec,
    waits: Waits,
    restart: &mut dyn FnMut(),
    page: &mut dyn FnMut(Vec<Item>, Vec<Failure>) -> Result<()>,
) -> Result<u64> {
    let request = Request::List { source: source.clone() };
    let mut deaths = Deaths::default();
    loop {
        restart();
        let mut all = 0;
        let listed = spi::subtransaction(|| {
            engine_client::stream(&request, waits, &mut |reply| match reply {
                Reply::Items { items, failures } => page(items, failures),
                Reply::Listed { seen } => {
                    all = seen;
                    Ok(())
                }
                _ => Err(engine_client::unexpected()),
            })
        });
        match listed {
            Ok(()) => return Ok(all),
            Err(error) => deaths.wait(error)?,
        }
    }
}
