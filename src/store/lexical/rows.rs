// SPDX-License-Identifier: PostgreSQL

//! Shelves and pages of one segment, by their keys.

use crate::am::{self, Key, Path};
use rag_core::Result;
use rag_core::lexical::shelf::{Rows, Shelf};
use rag_core::lexical::varint::corrupt;
use std::ops::ControlFlow;
use std::rc::Rc;

const SHELVES: Path = Path { table: c"lex_shelf", index: c"lex_shelf_pkey" };
const PAGES: Path = Path { table: c"lex_page", index: c"lex_page_pkey" };

/// A segment whose terms are in the tables.
#[derive(Debug)]
pub struct TableRows(pub i64);

impl TableRows {
    fn first(&self, keys: &[Key<'_>], backward: bool) -> Result<Option<Rc<Shelf>>> {
        let mut found = None;
        am::scan(SHELVES, keys, backward, |row| {
            found = Some(Rc::new(Shelf::new(row.get(2)?, row.get(3)?)));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}

impl Rows for TableRows {
    fn shelf(&self, term: &[u8]) -> Result<Option<Rc<Shelf>>> {
        self.first(&[Key::Int8(1, self.0), Key::AtMost(2, term)], true)
    }

    fn shelf_behind(&self, term: Option<&[u8]>) -> Result<Option<Rc<Shelf>>> {
        match term {
            Some(term) => self.first(&[Key::Int8(1, self.0), Key::Above(2, term)], false),
            None => self.first(&[Key::Int8(1, self.0)], false),
        }
    }

    fn page(&self, number: u32, part: u32) -> Result<Vec<u8>> {
        let narrow = |value: u32| i32::try_from(value).map_err(|_| corrupt("the number of a page is too large"));
        let keys = [Key::Int8(1, self.0), Key::Int4(2, narrow(number)?), Key::Int4(3, narrow(part)?)];
        let mut found = None;
        am::scan(PAGES, &keys, false, |row| {
            found = Some(row.get(4)?);
            Ok(ControlFlow::Break(()))
        })?;
        found.ok_or_else(|| corrupt("a page is missing"))
    }
}
