//! HTTP/1.0 and HTTP/1.1 (RFC 9112) on one connection: requests, responses, and which belongs
//! to which.
//!
//! Responses come in the order of requests (§9.3.2). Where bytes are missing, that order alone
//! proves nothing; then the numbers of TCP do: a client that does not pipeline sends a request
//! only when it has the whole response before it, so the byte that its request acknowledges is
//! the first of the response to come ([`pairing`]).

mod chunked;
mod closing;
mod head;
mod loss;
mod open;
mod pairing;
mod parser;

pub(super) use head::{Fields, Head, Start, grade};
pub(super) use open::Open;
pub use parser::Http1;
