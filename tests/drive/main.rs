//! Driving servers and clients, against small servers that behave well or badly on purpose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;
mod kit;
mod probe;
mod raw;
mod replay;
mod serve;
