//! crosswire: capture and forensic replay of MCP traffic.
//!
//! ```text
//! input → wire → mcp → join → rules → report
//! bytes   packets  JSON-RPC  the same call   findings   tables
//!         to HTTP  to calls  over vantages
//! ```
//!
//! A module imports only what lies to its left, and [`model`].

pub mod analyze;
pub mod commands;
pub mod drive;
pub mod input;
pub mod join;
pub mod mcp;
pub mod model;
pub mod report;
pub mod rules;
pub mod wire;
