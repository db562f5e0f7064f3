//! Entry for fuzzing.

use super::Http2;
use crate::wire::tls::drive;

/// Reads `bytes` as an HTTP/2 connection in steps: see [`drive`].
pub fn fuzz(bytes: &[u8]) {
    drive(Http2::default(), bytes);
}
