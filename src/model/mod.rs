//! Plain data that every stage shares: units and ids as newtypes, places in inputs,
//! exchanges, log records, and the rows of the report.
//!
//! Nothing here reads bytes or decides anything; every other module may import `model`,
//! and `model` imports none of them.

pub mod exchange;
pub mod filter;
pub mod glob;
pub mod id;
pub mod limits;
pub mod options;
pub mod place;
pub mod problem;
pub mod record;
pub mod report;
pub mod time;
pub mod zone;
