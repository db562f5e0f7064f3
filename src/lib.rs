//! crosswire: capture and forensic replay of MCP traffic.
//!
//! ```text
//! input → wire → mcp → join → rules → report
//! bytes   packets  JSON-RPC  the same call   findings   tables
//!         to HTTP  to calls  over vantages
//! ```
//!
//! A module imports only what lies to its left, and [`model`].
//!
//! [`analyze::run`] does the main job; [`report::RENDERERS`] write what it found.
//!
//! ```no_run
//! use crosswire::model::options::{AnalyzeOptions, ReadOptions};
//!
//! let inputs = ["backend.pcap".to_owned()];
//! let report = crosswire::analyze::run(&inputs, &ReadOptions::default(), &AnalyzeOptions::default())?;
//! for finding in &report.findings {
//!     println!("{}: {}", finding.rule, finding.summary);
//! }
//! # Ok::<(), anyhow::Error>(())
//! ```

pub mod analyze;
pub mod browse;
pub mod commands;
pub mod drive;
pub mod evidence;
pub mod input;
pub mod join;
pub mod live;
pub mod mcp;
pub mod model;
pub mod report;
pub mod rules;
pub mod scan;
pub mod wire;
