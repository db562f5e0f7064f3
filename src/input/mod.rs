//! Finding inputs, opening them, and telling what they are.

pub mod client;
pub mod log;
