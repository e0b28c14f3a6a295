// SPDX-License-Identifier: PostgreSQL

//! The passages that have the phrases of a query.
//!
//! Found before the legs run, because both are held to them: every result has every phrase. What a phrase is, and why that
//! is decided on the text, is [`rag_core::lexical::phrase`]'s. The text is a passage's content, which is what a search
//! returns; title and headings are not part of it.
//!
//! A passage is read only if its lexemes make it possible: for one of the collection's configurations it has what that
//! makes of the single words, which the GIN index on `tsv` finds. A word counts only if the configuration sees it in the phrase
//! as well, so `a@b.example` asks for none of its parts; and without digits, because numbers run into what is around them.
//! Where nothing is left, because all words are stop words, every passage that passes the filter is read. What this misses is
//! a word that the configuration takes for part of an address or a tag in the passage, and not in the phrase.

use super::filter;
use crate::spi;
use crate::store::collection::Collection;
use crate::store::lexeme::Configuration;
use rag_core::Result;
use rag_core::lexical::phrase::Words;
use rag_core::lexical::tokens::{self, Analysis};
use rag_core::lexical::tsquery;
use rag_core::query::Request;
use std::collections::BTreeSet;

/// Some passages, each with its entry in the index.
#[derive(Debug, Default)]
pub struct Passages(Vec<(i64, i64)>);

impl Passages {
    /// Their ids.
    pub fn ids(&self) -> Vec<i64> {
        self.0.iter().map(|(id, _)| *id).collect()
    }

    /// Their entries, in ascending order.
    pub fn entries(&self) -> Vec<i64> {
        let mut entries: Vec<i64> = self.0.iter().map(|(_, entry)| *entry).collect();
        entries.sort_unstable();
        entries
    }
}

/// The passages that pass the filter and have every phrase.
pub fn find(collection: &Collection, request: &Request, configs: &[String]) -> Result<Passages> {
    let phrases: Vec<Words> = request.query.phrases.iter().map(|phrase| Words::of(phrase)).collect();
    let mut args = vec![collection.id.into()];
    let condition = filter::compile(&request.filter, &mut args)?;
    let possible = match terms(&request.query.phrases, configs)? {
        Some(query) => format!("c.tsv @@ {}::tsquery", filter::bind(&mut args, query)),
        None => "true".to_owned(),
    };
    let sql = format!(
        "SELECT c.id, c.entry, c.content FROM rag.chunk c{}
          WHERE c.collection_id = $1 AND c.current AND {possible} AND {}",
        condition.joins, condition.sql
    );
    let mut found = Passages::default();
    let read = |row: &spi::Row| {
        let words = Words::of(&row.get::<String>(3)?);
        if phrases.iter().all(|phrase| words.have(phrase)) {
            found.0.push((row.get(1)?, row.get(2)?));
        }
        Ok(())
    };
    spi::by_values(|| spi::each(&sql, &args, read))?;
    Ok(found)
}

/// A query for the words of all phrases by any configuration; `None` when nothing can be told by terms.
fn terms(phrases: &[String], configs: &[String]) -> Result<Option<String>> {
    let words: Vec<Words> = phrases.iter().map(|phrase| Words::of(phrase)).collect();
    let words: BTreeSet<&str> = words.iter().flat_map(Words::iter).collect();
    let texts: Vec<&str> = words.into_iter().chain(phrases.iter().map(String::as_str)).collect();
    let mut groups = Vec::with_capacity(configs.len());
    for config in configs {
        let mut of_words = tokens::analyse_all(&texts, &Configuration(config))?;
        let of_phrases = of_words.split_off(texts.len() - phrases.len());
        let names = |analyses: Vec<Analysis>| -> BTreeSet<String> {
            analyses.into_iter().flat_map(|analysis| analysis.terms).map(|(term, _)| term).collect()
        };
        let (of_words, of_phrases) = (names(of_words), names(of_phrases));
        let both = of_words.intersection(&of_phrases).filter(|term| !term.contains(char::is_numeric));
        groups.push(both.cloned().collect());
    }
    Ok(tsquery::any_of_all(&groups))
}
