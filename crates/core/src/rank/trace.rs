//! Trace.
