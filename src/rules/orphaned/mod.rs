//! Calls without a reply, and replies without a call.

pub mod accepted_only;
mod access_shape;
pub mod cut_off;
pub mod empty_success;
mod ended_by;
pub mod false_timeout;
pub mod late_reply;
pub mod lost_at_proxy;
pub mod never_sent;
pub mod no_reply;
mod record_shape;
pub mod stray_reply;
mod two_logs;
mod unanswered;
pub(super) mod unsent;
