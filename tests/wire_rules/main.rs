//! The rules of the wire against traffic made for them: what must be found, what looks like it and
//! is legal, faults put into clean traffic at every place, and reports that do not depend on how
//! packets were cut, shuffled, doubled or lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod collision;
mod crossed;
mod elimination;
mod http2;
mod kit;
mod mess;
mod orphaned;
mod protocol;
mod revisions;
mod seeded;
mod session;
mod stale;
mod table;
