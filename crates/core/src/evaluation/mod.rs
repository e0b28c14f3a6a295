// SPDX-License-Identifier: PostgreSQL

//! Evaluation: is retrieval better or worse, by how much, and is the difference more than chance?
//!
//! ```text
//!  question set ─ import ─▶ questions with gold spans ─ resolve ─▶ judged: items with grades
//!                                                                     │
//!  search (its trace) ─▶ ranked lists of each stage ─ break ties ─▶ measure ─▶ values of each question ─▶ compare
//! ```
//!
//! Owns what a question and its gold are, how gold becomes items of a ranking, the rule for ties, what is measured at which
//! stage, and everything that is computed from the values: significance, complementarity, forensics, tuning, diagnosis and
//! the report. The formulas of one ranking are [`crate::metrics`]'s. It must not search and not know tables: the extension
//! hands it lists and stores what comes back. So every number of an evaluation can be tested against an oracle in
//! milliseconds.
//!
//! What is decided here, once:
//!
//! * **All questions count.** A question without results scores 0 at every metric. An unanswerable question has no gold, so it
//!   can score nothing: it is counted apart, by the score of its best result.
//! * **Gold is text, not an id.** It names a document and a span in it; chunks are found anew for each run
//!   ([`resolve`]), so another way of cutting, or a new version of the document, does not make it stale in silence. Gold that
//!   does not resolve is an error that names the question.
//! * **Items.** Gold that names whole documents is measured on documents, at the place of their best passage; gold that
//!   names spans on passages. One question does not mix them, because a list of both has no meaning.
//! * **Ties** ([`order`]): equal scores are ordered by a hash of the question and the passage's permanent key. A search orders
//!   them by chunk id, which is the order of ingestion: a corpus in which gold comes first would fake a win. The hash knows
//!   neither ids nor gold, so no numbering can change a metric, and a repeat gives the same order.
//! * **Pairs.** Runs are compared question by question, never by their means; questions about one thing (a cluster) are
//!   drawn together, because they are won and lost together.

pub mod complementarity;
pub mod diagnosis;
pub mod forensics;
pub mod measure;
#[cfg(test)]
mod oracle;
pub mod order;
pub mod question;
pub mod report;
pub mod resolve;
pub mod significance;
pub mod tune;
