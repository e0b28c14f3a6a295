//! Tests that need a server of their own.
