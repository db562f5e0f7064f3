//! `crosswire scan` as a user meets it: whole archives, broken ones, interrupted ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archives;
mod equal;
mod kit;
mod resume;
mod select;
mod shares;
mod steps;
