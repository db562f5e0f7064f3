//! Replies that reached the wrong call.

pub mod at_client;
pub mod duplicate_reply;
pub mod foreign_body;
pub mod id_collision;
pub mod other_session;
mod told;
pub mod unplaced;
pub mod wrong_id;
pub mod wrong_stream;
