//! rag_ingest
