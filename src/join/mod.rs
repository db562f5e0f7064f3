//! One call over several vantage points.
//!
//! `answers` gives every reply at one hop to the call that its stream and id name; `content` says
//! whose it is by what is in it; `chain` finds the same exchange at several hops; `calls` puts the
//! calls together.

pub mod answers;
pub mod calls;
pub mod chain;
pub mod content;
pub mod conversations;
pub mod fate;
pub mod groups;
pub mod schema;

pub use answers::{Answer, HopCall, Oddity, ReplyRef};
pub use calls::{JointCall, World};
