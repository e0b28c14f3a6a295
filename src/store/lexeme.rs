// SPDX-License-Identifier: PostgreSQL

//! Text search configurations of the server, as what [`rag_core::lexical::tokens`] reads texts by.
//!
//! Whatever the number of texts, they are lexed in one statement.

use crate::spi;
use rag_core::lexical::tokens::Lexer;
use rag_core::lexical::tsvector::{self, Lexeme};
use rag_core::{Error, Result};

/// A text search configuration that exists.
#[derive(Debug, Clone, Copy)]
pub struct Configuration<'a>(
    /// Its qualified name.
    pub &'a str,
);

impl Lexer for Configuration<'_> {
    fn lexemes(&self, texts: &[&str]) -> Result<Vec<Vec<Lexeme>>> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let sql =
            "SELECT t.ordinal, pg_catalog.tsvectorsend(pg_catalog.to_tsvector($1::text::pg_catalog.regconfig, t.text))
                     FROM pg_catalog.unnest($2::text[]) WITH ORDINALITY AS t (text, ordinal)";
        let mut lexemes = vec![Vec::new(); texts.len()];
        let args = [self.0.into(), texts.iter().map(|t| (*t).to_owned()).collect::<Vec<String>>().into()];
        spi::each(sql, &args, |row| {
            let place = usize::try_from(row.get::<i64>(1)? - 1).ok().and_then(|place| lexemes.get_mut(place));
            *place.ok_or_else(|| Error::internal("there is no such text"))? = tsvector::read(&row.get::<Vec<u8>>(2)?)?;
            Ok(())
        })?;
        Ok(lexemes)
    }
}
