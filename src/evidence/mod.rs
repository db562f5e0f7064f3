//! Portable evidence: the cited part of the inputs, redacted, with a report and a manifest.
//!
//! ```text
//! gather → cite → learn → redact → slice, lines → archive
//! ```
//! [`gather`] reads the inputs again and keeps their exchanges, [`cite`] chooses those that findings
//! rest on, [`learn`] finds out which words must stay, [`redact`] replaces all others, [`slice`] and
//! [`lines`] write what is left as a capture and as log lines. [`bundle`] drives them, analyses what
//! they wrote, and keeps words back until the findings are those of the inputs. [`verify`] checks a
//! bundle against its manifest.

pub mod archive;
pub mod bundle;
mod cells;
mod cite;
mod content;
pub(crate) mod gather;
mod keep_back;
mod learn;
mod lines;
pub mod manifest;
mod packets;
mod phrases;
pub mod pseudonym;
mod ranges;
mod redact;
pub(crate) mod slice;
pub mod verify;
mod vocabulary;

use sha2::{Digest, Sha256};

/// Lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        for digit in [b >> 4, b & 15] {
            out.extend(char::from_digit(u32::from(digit), 16));
        }
        out
    })
}

/// SHA-256 in lower-case hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
