// SPDX-License-Identifier: PostgreSQL

//! The BM25 leg against an oracle that knows nothing of an index.
//!
//! For the server tests and for the load of [`bench`](crate::bench). Owns the formula written once more over the rows that a session sees, the comparison, and random passages written by
//! plain SQL, so that neither an engine nor a parser is needed.

use crate::chance::Chance;
use crate::db;
use postgres::{Client, GenericClient};
use rag_core::{Error, Result};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

fn failed(error: postgres::Error) -> Error {
    db::sql("could not ask the server", &error)
}

/// Words of random passages.
pub const WORDS: u64 = 14;

/// A passage as a session sees it.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Key of the chunk.
    pub id: i64,
    /// Key of its document.
    pub document: i64,
    /// Its length in lexemes.
    pub dl: i32,
    /// Its lexemes with how often each stands in it.
    pub tfs: HashMap<String, u32>,
}

/// The passages of a collection that the session sees now, with the rights it has.
pub fn passages(client: &mut impl GenericClient, collection: &str) -> Result<Vec<Passage>> {
    let sql = "SELECT k.id, k.document_id, k.dl, k.tsv::text FROM rag.chunk k
                WHERE k.current AND k.collection_id = (SELECT c.id FROM rag.collection c WHERE c.name = $1)";
    let row = |row: &postgres::Row| Passage {
        id: row.get(0),
        document: row.get(1),
        dl: row.get(2),
        tfs: lexemes(row.get::<_, &str>(3)),
    };
    Ok(client.query(sql, &[&collection]).map_err(failed)?.iter().map(row).collect())
}

/// `'a':1,3 'b'` as {a: 2, b: 1}; lexemes here have neither spaces nor quotes.
fn lexemes(tsv: &str) -> HashMap<String, u32> {
    let one = |item: &str| {
        let (word, positions) = item.split_once(':').unwrap_or((item, ""));
        (word.trim_matches('\'').to_owned(), positions.split(',').count() as u32)
    };
    tsv.split_whitespace().map(one).collect()
}

/// A passage with a score, and what that was made of.
#[derive(Debug, Clone)]
pub struct Scored {
    /// Key of the chunk.
    pub id: i64,
    /// What the formula gives.
    pub score: f64,
    evidence: (i32, Vec<Option<u32>>),
}

/// The scores of all that match, best first: all passages count, and only those among `eligible` are ranked.
pub fn scored(all: &[Passage], eligible: impl Fn(&Passage) -> bool, query: &[String]) -> Vec<Scored> {
    // A word that the query has twice counts twice.
    let mut terms = query.to_vec();
    terms.sort();
    let n = all.len() as f64;
    let average = all.iter().map(|p| f64::from(p.dl)).sum::<f64>() / n;
    let idf = |term: &String| {
        let df = all.iter().filter(|p| p.tfs.contains_key(term)).count() as f64;
        (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
    };
    let idfs: Vec<f64> = terms.iter().map(idf).collect();
    let part = |p: &Passage, tf: &Option<u32>, idf: &f64| {
        tf.map_or(0.0, |tf| {
            let tf = f64::from(tf);
            idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * f64::from(p.dl) / average))
        })
    };
    let one = |p: &Passage| {
        let tfs: Vec<Option<u32>> = terms.iter().map(|term| p.tfs.get(term).copied()).collect();
        let score = tfs.iter().zip(&idfs).map(|(tf, idf)| part(p, tf, idf)).sum();
        let matches = tfs.iter().any(Option::is_some);
        matches.then_some(Scored { id: p.id, score, evidence: (p.dl, tfs) })
    };
    let mut scored: Vec<Scored> = all.iter().filter(|p| eligible(p)).filter_map(one).collect();
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    scored
}

/// What `rag.search` finds, by key.
pub fn search(
    client: &mut impl GenericClient,
    collection: &str,
    query: &[String],
    k: usize,
    filter: &str,
) -> Result<Vec<(i64, f64)>> {
    let sql = "SELECT chunk_id, bm25_score FROM rag.search($1, $2, $3::text::jsonb, collection => $4, mode => 'bm25')
                ORDER BY rank";
    let rows = client.query(sql, &[&query.join(" "), &(k as i32), &filter, &collection]).map_err(failed)?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Fails unless `found` are the best `k` of all that match, with their scores, and equal ones by key.
pub fn same(found: &[(i64, f64)], expected: &[Scored], k: usize) -> Result<()> {
    let places: HashMap<i64, &Scored> = expected.iter().map(|s| (s.id, s)).collect();
    let wrong = |what: &str| {
        let expected: Vec<(i64, f64)> = expected.iter().take(k + 1).map(|s| (s.id, s.score)).collect();
        Err(Error::invalid(format!("{what}\nfound    {found:?}\nexpected {expected:?}")))
    };
    if found.len() != k.min(expected.len()) {
        return wrong("not as many as there are");
    }
    let mut rest = places.clone();
    let mut last: Option<&Scored> = None;
    for (id, score) in found {
        match (rest.remove(id), places.get(id)) {
            (Some(right), _) if (right.score - score).abs() > 1e-9 => return wrong(&format!("the score of {id}")),
            (Some(right), _) if last.is_some_and(|last| !may_precede(last, right)) => {
                return wrong(&format!("{id} is late"));
            }
            (Some(right), _) => last = Some(right),
            (None, Some(_)) => return wrong(&format!("{id} is there twice")),
            (None, None) => return wrong(&format!("{id} does not match")),
        }
    }
    match last.and_then(|last| rest.values().find(|other| !may_precede(last, other))) {
        Some(missing) => wrong(&format!("{} is missing", missing.id)),
        None => Ok(()),
    }
}

/// By score; of equal evidence by key. Other evidence can give the same score but for the last bits, either way round.
fn may_precede(first: &Scored, second: &Scored) -> bool {
    match first.evidence == second.evidence {
        true => first.id < second.id,
        false => first.score > second.score - 1e-11,
    }
}

/// Searches and compares with what the same session sees, passages and whole documents.
pub fn check(client: &mut impl GenericClient, collection: &str, query: &[String], k: usize) -> Result<()> {
    let all = passages(client, collection)?;
    let found = search(client, collection, query, k, "{}")?;
    same(&found, &scored(&all, |_| true, query), k)
        .and_then(|()| same_documents(client, collection, query, k, &all))
        .map_err(|e| Error::invalid(format!("{query:?} in {collection}, {} passages: {e}", all.len())))
}

/// Documents, each the sum of its passages.
fn whole(all: &[Passage]) -> Vec<Passage> {
    let mut documents: BTreeMap<i64, Passage> = BTreeMap::new();
    for passage in all {
        match documents.entry(passage.document) {
            Entry::Vacant(new) => _ = new.insert(Passage { id: passage.document, ..passage.clone() }),
            Entry::Occupied(mut sum) => {
                let sum = sum.get_mut();
                sum.dl += passage.dl;
                passage.tfs.iter().for_each(|(term, tf)| *sum.tfs.entry(term.clone()).or_default() += tf);
            }
        }
    }
    documents.into_values().collect()
}

/// Fails unless the document prior ranks the documents of what it finds as the formula does. The rank of a document is what
/// the fused score has beside the rank of the passage.
fn same_documents(
    client: &mut impl GenericClient,
    collection: &str,
    query: &[String],
    k: usize,
    all: &[Passage],
) -> Result<()> {
    let sql = "SELECT chunk_id, bm25_rank, fused_score FROM rag.search($1, $2, collection => $3, mode => 'bm25',
                                                          settings => '{\"document_weight\": 1, \"rrf_k\": 60}')";
    let documents: HashMap<i64, i64> = all.iter().map(|p| (p.id, p.document)).collect();
    let scores: HashMap<i64, Scored> = scored(&whole(all), |_| true, query).into_iter().map(|s| (s.id, s)).collect();
    let mut ranks: BTreeMap<i64, i64> = BTreeMap::new();
    for row in client.query(sql, &[&query.join(" "), &(k as i32), &collection]).map_err(failed)? {
        let (id, rank, fused): (i64, i32, f64) = (row.get(0), row.get(1), row.get(2));
        let rest = fused - 1.0 / f64::from(60 + rank);
        let rank = 1.0 / rest - 60.0;
        let Some(document) = documents.get(&id).filter(|_| (rank - rank.round()).abs() < 1e-6) else {
            return Err(Error::invalid(format!("chunk {id} has {rest} of its document")));
        };
        if ranks.insert(*document, rank.round() as i64).is_some_and(|other| other != rank.round() as i64) {
            return Err(Error::invalid(format!("document {document} has several ranks")));
        }
    }
    let mut order: Vec<(i64, &Scored)> = Vec::new();
    for (document, rank) in &ranks {
        let score =
            scores.get(document).ok_or_else(|| Error::invalid(format!("document {document} does not match")))?;
        order.push((*rank, score));
    }
    order.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.score.total_cmp(&a.1.score)).then(a.1.id.cmp(&b.1.id)));
    // Documents of one rank are equally good.
    let wrong = |a: &(i64, &Scored), b: &(i64, &Scored)| {
        !may_precede(a.1, b.1) || (a.0 == b.0 && (a.1.score - b.1.score).abs() > 1e-9)
    };
    match order.windows(2).find(|pair| wrong(&pair[0], &pair[1])) {
        Some(pair) => Err(Error::invalid(format!("documents rank as {pair:?}, of {} passages", all.len()))),
        None => Ok(()),
    }
}

/// One to three words, which may be in no passage.
pub fn query(chance: &mut Chance) -> Vec<String> {
    (0..=chance.below(3)).map(|_| format!("w{}", chance.below(WORDS + 1))).collect()
}

/// A `tsvector` of random words, low numbers more often, and a length, as literals: `'w1:1,2'::tsvector, 3`.
pub fn terms(chance: &mut Chance) -> String {
    let (mut parts, mut length) = (Vec::new(), 0);
    for word in 0..WORDS {
        if chance.below(word + 2) > 1 {
            continue;
        }
        let tf = 1 + chance.below(4);
        let positions: Vec<String> = (1..=tf).map(|p| (word * 10 + p).to_string()).collect();
        // Without positions a lexeme counts once.
        parts.push(if chance.below(9) == 0 { format!("w{word}") } else { format!("w{word}:{}", positions.join(",")) });
        length += tf;
    }
    let length = if parts.is_empty() { 0 } else { length + chance.below(3) };
    format!("'{}'::tsvector, {length}", parts.join(" "))
}

/// Documents of a collection beside the one with its own key.
const DOCUMENTS: u64 = 4;

/// Key of document `number` of a collection; 0 is the one with the collection's own.
fn document(collection: i64, number: u64) -> i64 {
    if number == 0 { collection } else { collection * 1_000_000 + number as i64 }
}

/// Makes a collection of a name with a source and documents of its own; returns the key of it, its source and a document.
pub fn collection(client: &mut impl GenericClient, name: &str) -> Result<i64> {
    let sql = "INSERT INTO rag.collection (name, model_id) SELECT $1, min(m.id) FROM rag.model m RETURNING id";
    let id: i64 = client.query_one(sql, &[&name]).map_err(failed)?.get(0);
    let source = format!(
        "INSERT INTO rag.source (id, collection_id, name, kind, location, text_search_config)
              VALUES ({id}, {id}, '{name}', 'inline', '', 'pg_catalog.simple')"
    );
    client.batch_execute(&source).map_err(failed)?;
    for number in 0..=DOCUMENTS {
        let document = format!(
            "INSERT INTO rag.document (id, source_id, uri, media_type, content_sha256, options_sha256, parser_version)
                  VALUES ({}, {id}, '{name} {number}', 'text/plain', sha256('a'), sha256('b'), '1')",
            document(id, number)
        );
        client.batch_execute(&document).map_err(failed)?;
    }
    Ok(id)
}

/// The columns of [`row`].
pub const COLUMNS: &str = "tsv, dl, chunk_key, document_id, collection_id, source_id, ordinal, content, content_sha256, token_count, acl, current";

/// The values of a random passage of a collection. `ordinal` says whose it is.
pub fn row(chance: &mut Chance, collection: i64, ordinal: u64, acl: Option<&str>) -> String {
    let acl = acl.map_or("NULL".to_owned(), |label| format!("'{label}'"));
    let current = chance.below(8) > 0;
    let document = document(collection, chance.below(DOCUMENTS + 1));
    format!(
        "({}, gen_random_uuid(), {document}, {collection}, {collection}, {ordinal}, 'c', sha256('c'), 1, {acl}, {current})",
        terms(chance)
    )
}

/// A statement that inserts so many random passages.
pub fn insert(chance: &mut Chance, collection: i64, ordinal: u64, count: u64, labels: &[Option<&str>]) -> String {
    let rows: Vec<String> = (0..count)
        .map(|_| {
            let acl = *chance.pick(labels);
            row(chance, collection, ordinal, acl)
        })
        .collect();
    format!("INSERT INTO rag.chunk ({COLUMNS}) VALUES {}", rows.join(", "))
}

/// One column of one row of the view `rag.lexical_status`, as text.
pub fn status(client: &mut Client, collection: &str, column: &str) -> Result<String> {
    let sql = format!("SELECT {column}::text FROM rag.lexical_status WHERE collection = $1 AND unit = 'chunk'");
    Ok(client.query_one(&sql, &[&collection]).map_err(failed)?.get(0))
}
