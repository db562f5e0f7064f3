//! Replies that reached the wrong call.

pub mod duplicate_reply;
pub mod foreign_body;
pub mod id_collision;
pub mod other_session;
mod told;
pub mod wrong_id;
pub mod wrong_stream;
