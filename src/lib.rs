//! pg_rag: the PostgreSQL edge.

pgrx::pg_module_magic!();
