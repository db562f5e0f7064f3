//! How session ids and JSON-RPC ids are used.

pub mod not_echoed;
pub mod replica_split;
pub mod reused_in_flight;
pub mod shared;
