//! One call over several vantage points.
//!
//! `answers` gives every reply at one hop to the call that its stream and id name; `content` says
//! whose it is by what is in it; `chain` finds the same exchange at several hops; `calls` puts the
//! calls together.

pub mod answers;
pub mod apart;
pub mod attach;
pub mod calls;
pub mod chain;
pub mod clients;
pub mod clock;
pub mod content;
pub mod conversations;
pub mod coverage;
pub mod drift;
pub mod fate;
pub mod groups;
pub mod handlers;
pub mod hints;
mod islands;
mod kept;
pub mod lines;
pub mod logs;
mod near;
mod ordered;
pub mod part;
pub mod past;
#[cfg(test)]
mod pattern_tests;
pub mod patterns;
mod quiet;
mod refusals;
pub mod retire;
pub mod schema;
pub mod seen;
pub mod sightings;
pub mod sources;
pub mod told;
pub mod two_logs;
pub mod unlogged;

pub use answers::{Answer, HopCall, Oddity, ReplyRef};
pub use calls::{JointCall, World};
