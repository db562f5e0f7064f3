//! Clients' own logs: one file a format, one line in [`FORMATS`].

use super::log::Format;

/// Every format of a client's or bridge's record. Order decides ties.
pub static FORMATS: &[&Format] = &[];
