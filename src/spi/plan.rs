// SPDX-License-Identifier: PostgreSQL

//! Plans that a session keeps.
//!
//! Owns a small cache by statement text and parameter types; the least recently used plan goes when it is full. Plans
//! stay right without us: PostgreSQL plans them anew when an object they use, the role or the search path changes. Where
//! whether an index or a scan of everything is right depends on the filter, they are planned for their values each time
//! ([`scope::by_values`]).

use super::scope::{self, Planning};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use rag_core::{Error, Result};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::CString;

/// Plans kept; a session that syncs and searches uses about forty.
const KEPT: usize = 64;

struct Plan {
    sql: String,
    types: Vec<pg_sys::Oid>,
    planning: Planning,
    plan: pg_sys::SPIPlanPtr,
    /// Statements that run by it now; triggers and policies nest them.
    busy: u32,
}

/// A plan that is not freed as long as this lives.
pub struct Prepared(pg_sys::SPIPlanPtr);

impl Prepared {
    /// The plan.
    pub fn plan(&self) -> pg_sys::SPIPlanPtr {
        self.0
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        PLANS.with_borrow_mut(|plans| {
            if let Some(plan) = plans.iter_mut().find(|p| p.plan == self.0) {
                plan.busy -= 1;
            }
        });
    }
}

thread_local! {
    /// Most recently used last.
    static PLANS: RefCell<VecDeque<Plan>> = const { RefCell::new(VecDeque::new()) };
}

/// The plan of a statement.
pub fn prepare(sql: &str, args: &[DatumWithOid<'_>]) -> Result<Prepared> {
    let mut types: Vec<pg_sys::Oid> = args.iter().map(DatumWithOid::oid).collect();
    let planning = scope::planning();
    let is_it = |p: &Plan| p.sql == sql && p.types == types && p.planning == planning;
    let known = PLANS.with_borrow_mut(|plans| {
        let mut found = plans.iter().rposition(is_it).and_then(|at| plans.remove(at))?;
        found.busy += 1;
        let plan = found.plan;
        plans.push_back(found);
        Some(plan)
    });
    if let Some(plan) = known {
        return Ok(Prepared(plan));
    }
    let text = CString::new(sql).map_err(|_| Error::internal("a statement has a NUL"))?;
    let count = i32::try_from(types.len()).map_err(|_| Error::internal("a statement has too many parameters"))?;
    let options = match planning {
        Planning::Auto => 0,
        Planning::ByValues => pg_sys::CURSOR_OPT_CUSTOM_PLAN,
        Planning::Once => pg_sys::CURSOR_OPT_GENERIC_PLAN,
    };
    // SAFETY: the caller is inside an SPI connection; text and types live through the call.
    let plan = unsafe {
        let plan = pg_sys::SPI_prepare_cursor(text.as_ptr(), count, types.as_mut_ptr(), options as i32);
        if plan.is_null() || pg_sys::SPI_keepplan(plan) != 0 {
            let code = pg_sys::SPI_result;
            return Err(Error::internal(format!("SPI could not prepare a statement: {code}")));
        }
        plan
    };
    let oldest = PLANS.with_borrow_mut(|plans| {
        plans.push_back(Plan { sql: sql.to_owned(), types, planning, plan, busy: 1 });
        let idle = plans.iter().position(|p| p.busy == 0).filter(|_| plans.len() > KEPT);
        idle.and_then(|at| plans.remove(at))
    });
    if let Some(oldest) = oldest {
        // SAFETY: a kept plan of this session that no statement runs by.
        unsafe { pg_sys::SPI_freeplan(oldest.plan) };
    }
    Ok(Prepared(plan))
}
