// SPDX-License-Identifier: PostgreSQL

//! Compiles what may be found to a condition over `rag.chunk c`, `rag.document d` and `rag.source s`: a checked filter, or
//! passages that were found beforehand.
//!
//! The text consists of the clauses below and of parameter numbers; no value ever becomes text.

use super::phrase::Passages;
use crate::spi;
use pgrx::JsonB;
use pgrx::datum::DatumWithOid;
use rag_core::Result;
use rag_core::query::filter::{Bound, Clause, Field, Filter, Scalar, glob_to_regex};

/// Which passages may be found.
#[derive(Debug)]
pub enum Eligible<'a> {
    /// Those that pass a filter.
    Filter(&'a Filter),
    /// These, each of which passes the filter and has the phrases of the query.
    Only(Passages),
}

impl Eligible<'_> {
    /// Whether all may be found.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::Filter(filter) if filter.is_empty())
    }

    /// Compiles it; its parameters are appended to `args`.
    pub fn compile(&self, args: &mut Vec<DatumWithOid<'_>>) -> Result<Condition> {
        match self {
            Self::Filter(filter) => compile(filter, args),
            Self::Only(passages) => {
                let sql = format!("c.id = ANY({})", bind(args, passages.ids()));
                Ok(Condition { sql, joins: visibility_joins()? })
            }
        }
    }
}

/// A condition and its parameters.
#[derive(Debug)]
pub struct Condition {
    /// `true`, or clauses joined by AND.
    pub sql: String,
    /// Joins that the clauses need; empty when they need none.
    pub joins: &'static str,
}

const JOINS: &str = " JOIN rag.document d ON d.id = c.document_id JOIN rag.source s ON s.id = c.source_id";

/// The joins a leg needs even without a filter: with a policy of the administrator's own on documents or sources, a chunk
/// is only visible with them, and a leg that finds the others would come back with too few rows. The extension's own
/// policies ask for the label, which a chunk has itself.
pub fn visibility_joins() -> Result<&'static str> {
    let sql = format!("SELECT {}", foreign_policies("'rag.document'::regclass, 'rag.source'::regclass"));
    let active = spi::select_one(&sql, &[], |row| row.get(1))?.unwrap_or(false);
    Ok(if active { JOINS } else { "" })
}

/// SQL that says whether anything but labels decides what the caller sees of some tables: policies of the administrator's
/// own, or one of the extension's that was changed.
pub fn foreign_policies(tables: &'static str) -> String {
    format!(
        "EXISTS (SELECT FROM pg_catalog.pg_policy p
                  WHERE p.polrelid IN ({tables}) AND pg_catalog.row_security_active(p.polrelid)
                    AND NOT (p.polname = 'labelled' AND p.polpermissive AND p.polcmd = '*' AND p.polroles = '{{0}}'
                             AND pg_catalog.regexp_replace(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '\\s|rag\\.', '', 'g')
                                 = '((aclISNULL)OR(acl=ANY(ARRAY(SELECTa.labelFROMacla))))'))"
    )
}

/// Compiles a filter; its parameters are appended to `args`.
pub fn compile(filter: &Filter, args: &mut Vec<DatumWithOid<'_>>) -> Result<Condition> {
    let joins = if filter.is_empty() { visibility_joins()? } else { JOINS };
    Ok(Condition { sql: all(&filter.clauses, args), joins })
}

/// All of some clauses.
fn all(clauses: &[Clause], args: &mut Vec<DatumWithOid<'_>>) -> String {
    let compiled: Vec<String> = clauses.iter().map(|clause| clause_sql(clause, args)).collect();
    if compiled.is_empty() { "true".to_owned() } else { compiled.join(" AND ") }
}

fn clause_sql(clause: &Clause, args: &mut Vec<DatumWithOid<'_>>) -> String {
    match clause {
        Clause::OneOf(field @ (Field::Path | Field::Uri), globs) => {
            let patterns: Vec<String> = globs.iter().map(|glob| glob_to_regex(glob)).collect();
            format!("{} ~ ANY({})", column(*field), bind(args, patterns))
        }
        Clause::OneOf(field, values) => format!("{} = ANY({})", column(*field), bind(args, values.clone())),
        Clause::Prefix(field, values) => begins(column(*field), values, args),
        Clause::Exists(field, wanted) => exists(column(*field), *wanted),
        Clause::Number(field, bounds) => {
            let bounded = |(bound, value): &(Bound, i64)| {
                format!("{} {} {}", range_column(*field, *bound), operator(*bound), bind(args, *value))
            };
            bounds.iter().map(bounded).collect::<Vec<_>>().join(" AND ")
        }
        Clause::Time(field, bounds) => {
            let bounded = |(bound, value): &(Bound, String)| {
                let value = bind(args, value.clone());
                format!("{} {} {value}::timestamptz", column(*field), operator(*bound))
            };
            bounds.iter().map(bounded).collect::<Vec<_>>().join(" AND ")
        }
        Clause::Metadata(path, values) => {
            let at = metadata(path, args);
            let values = bind(args, values.iter().cloned().map(JsonB).collect::<Vec<_>>());
            // An array contains its members; a scalar contains itself.
            format!("EXISTS (SELECT FROM unnest({values}::jsonb[]) v WHERE {at} @> v)")
        }
        Clause::MetadataPrefix(path, values) => {
            let at = metadata(path, args);
            let text = format!("(CASE pg_catalog.jsonb_typeof({at}) WHEN 'string' THEN {at} #>> '{{}}' END)");
            begins(&text, values, args)
        }
        Clause::MetadataRange(path, bounds) => {
            let at = metadata(path, args);
            let bounded = |(bound, value): &(Bound, Scalar)| {
                let operator = operator(*bound);
                // The type is looked at first, because what is of another cannot be cast.
                match value {
                    Scalar::Number(number) => {
                        let number = bind(args, number.clone());
                        format!(
                            "(CASE pg_catalog.jsonb_typeof({at}) WHEN 'number' THEN ({at})::numeric {operator} {number}::text::numeric END)"
                        )
                    }
                    Scalar::Text(text) => {
                        let text = bind(args, text.clone());
                        format!(
                            "(CASE pg_catalog.jsonb_typeof({at}) WHEN 'string' THEN ({at} #>> '{{}}') COLLATE \"C\" {operator} {text} END)"
                        )
                    }
                }
            };
            bounds.iter().map(bounded).collect::<Vec<_>>().join(" AND ")
        }
        Clause::MetadataExists(path, wanted) => {
            let at = metadata(path, args);
            exists(&format!("nullif({at}, 'null')"), *wanted)
        }
        // What is not known is not so.
        Clause::Not(clauses) => format!("({}) IS NOT TRUE", all(clauses, args)),
    }
}

/// Metadata at a path: what the passage has of its own, or its document.
fn metadata(path: &str, args: &mut Vec<DatumWithOid<'_>>) -> String {
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    let path = bind(args, path);
    format!("coalesce(c.metadata #> {path}, d.metadata #> {path})")
}

fn begins(text: &str, values: &[String], args: &mut Vec<DatumWithOid<'_>>) -> String {
    let values = bind(args, values.to_vec());
    format!("EXISTS (SELECT FROM unnest({values}::text[]) v WHERE pg_catalog.starts_with({text}, v))")
}

fn exists(value: &str, wanted: bool) -> String {
    format!("{value} IS {}NULL", if wanted { "NOT " } else { "" })
}

/// Sources that a filter names and that the caller cannot see.
pub fn unknown_sources(filter: &Filter) -> Result<Vec<String>> {
    let named = filter.clauses.iter().filter_map(|clause| match clause {
        Clause::OneOf(Field::Source, names) => Some(names),
        _ => None,
    });
    let named: Vec<String> = named.flatten().cloned().collect();
    if named.is_empty() {
        return Ok(named);
    }
    let sql = "SELECT n.name FROM unnest($1::text[]) WITH ORDINALITY AS n (name, at)
                WHERE NOT EXISTS (SELECT FROM rag.source s WHERE s.name = n.name) ORDER BY n.at";
    spi::select(sql, &[named.into()], |row| row.get(1))
}

pub(super) fn bind<'a, T: Into<DatumWithOid<'a>>>(args: &mut Vec<DatumWithOid<'a>>, value: T) -> String {
    args.push(value.into());
    format!("${}", args.len())
}

fn column(field: Field) -> &'static str {
    match field {
        Field::Source => "s.name",
        Field::SourceKind => "s.kind",
        Field::Project => "d.project",
        Field::Language => "c.language",
        Field::Repository => "d.repository",
        Field::Path => "d.path",
        Field::Ref => "d.ref",
        Field::Commit => "d.commit",
        Field::Role => "c.role",
        Field::Speaker => "c.speaker",
        Field::Uri => "d.uri",
        Field::SymbolKind => "c.symbol_kind",
        Field::Page => "c.page_start",
        Field::Line => "c.line_start",
        Field::PublishedAt => "d.published_at",
    }
}

/// A chunk lies in a range of pages or lines when it has any of them: its end is compared with the lower bound and its
/// start with the upper.
fn range_column(field: Field, bound: Bound) -> &'static str {
    let lower = matches!(bound, Bound::Gt | Bound::Gte);
    match field {
        Field::Page if lower => "c.page_end",
        Field::Line if lower => "c.line_end",
        other => column(other),
    }
}

fn operator(bound: Bound) -> &'static str {
    match bound {
        Bound::Gt => ">",
        Bound::Gte => ">=",
        Bound::Lt => "<",
        Bound::Lte => "<=",
    }
}
