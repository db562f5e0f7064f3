//! Calls without a reply, and replies without a call.

pub mod accepted_only;
pub mod cut_off;
pub mod late_reply;
pub mod lost_at_proxy;
pub mod no_reply;
pub mod stray_reply;
mod unanswered;
