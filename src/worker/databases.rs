// SPDX-License-Identifier: PostgreSQL

//! A look at all databases: each gets a mark, so that a job worker goes and sees whether there is work.
//!
//! Marks are lost with the folder they lie in: a base backup has none, so a promoted standby must look for itself. This is a
//! worker and not the launcher's own doing, because reading `pg_database` can fail, and an error must cost nothing but this
//! process. It is connected to no database; only shared catalogs can be read, by scanning them.

use super::marks;
use super::{Message, tell_launcher};
use pgrx::{pg_guard, pg_sys};

/// Name of the entry point.
pub const FUNCTION: &str = "pg_rag_databases_main";

/// Entry point of the background worker.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_rag_databases_main(_arg: pg_sys::Datum) {
    // SAFETY: what every worker does first, in this order; without a name only shared catalogs are there.
    unsafe {
        pg_sys::BackgroundWorkerUnblockSignals();
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
    }
    for database in databases() {
        if let Err(error) = marks::set(database, 0) {
            pgrx::log!("pg_rag: could not mark database {database}: {error}");
        }
    }
    tell_launcher(Message::Work);
}

/// Keys of the databases that take connections and are no templates.
fn databases() -> Vec<u32> {
    let mut found = Vec::new();
    // SAFETY: a scan as autovacuum's launcher does it: in a transaction of its own, with a lock on the catalog; each
    // tuple is read before the next is fetched.
    unsafe {
        pg_sys::StartTransactionCommand();
        let catalog = pg_sys::table_open(pg_sys::DatabaseRelationId, pg_sys::AccessShareLock as i32);
        let scan = pg_sys::table_beginscan_catalog(catalog, 0, std::ptr::null_mut());
        loop {
            let tuple = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tuple.is_null() {
                break;
            }
            let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
            if (*row).datallowconn && !(*row).datistemplate {
                found.push((*row).oid.to_u32());
            }
        }
        pg_sys::heap_endscan(scan);
        pg_sys::table_close(catalog, pg_sys::AccessShareLock as i32);
        pg_sys::CommitTransactionCommand();
    }
    found
}
