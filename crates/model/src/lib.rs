//! rag_model
