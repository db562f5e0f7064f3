//! HTTP exchanges to JSON-RPC calls: what was asked, what came back, on which stream.
//!
//! [`Tracker`] listens to exchanges and leaves a [`Visit`] for each: one HTTP exchange at one
//! vantage point, with the JSON-RPC messages it carried.

pub mod content;
pub mod jsonrpc;
mod rpc;
pub mod scan;
pub mod shape;
mod skip;
pub mod tracker;
pub mod visit;

pub use tracker::{Tracked, Tracker};
pub use visit::{Reply, Rpc, RpcKind, Visit};
