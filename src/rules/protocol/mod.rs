//! Replies and streams that break the protocol without a crossing.

pub mod get_stream;
pub mod id_retyped;
pub mod schema_mismatch;
