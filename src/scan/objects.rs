//! Objects in stores (S3, Google Cloud Storage, Azure, HTTP) as files of a scan.

use super::walk::Listing;

/// Adds what an address stands for.
pub fn list(address: &str, out: &mut Listing) {
    out.troubles.push(format!("{address}: this build reads no object stores; build it with `--features objects`"));
}
