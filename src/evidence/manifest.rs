//! The manifest of a bundle (`crosswire.bundle/1`): what is in it, from what, made how.

use crate::input::bundle::{Evidence, Reading};
use serde::{Deserialize, Serialize};

/// The member that holds the manifest's own SHA-256.
pub const MANIFEST_HASH: &str = "manifest.sha256";

/// The whole manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `crosswire.bundle/1`.
    pub schema: String,
    /// Version of the program that made it.
    pub crosswire: String,
    /// When, RFC 3339.
    pub created: String,
    /// The command line, paths cut to their last part, redacted.
    pub command: Vec<String>,
    /// The original inputs.
    pub inputs: Vec<Input>,
    /// The pieces of evidence among the members.
    pub evidence: Vec<Evidence>,
    /// How these are to be read.
    pub reading: Reading,
    /// How much of the inputs it holds, in words.
    pub scope: String,
    /// Findings of its report.
    pub findings: u64,
    /// What was replaced and what was kept.
    pub redaction: Redaction,
    /// Every member but the manifest and its hash, in order.
    pub members: Vec<Member>,
}

/// An original input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Last part of its name, redacted.
    pub name: String,
    /// Format.
    pub format: Option<String>,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// SHA-256 of the file, lower-case hex.
    pub sha256: String,
    /// Records that were read from it.
    pub records: u64,
}

/// A member of the archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its length, bytes.
    pub bytes: u32,
    /// SHA-256 of it, lower-case hex.
    pub sha256: String,
    /// How it is packed: 0 stored, 8 deflated, 93 a zstd frame with its header.
    pub method: u16,
    /// CRC-32.
    pub crc32: u32,
    /// Its length in the archive, bytes.
    pub packed_bytes: u32,
    /// SHA-256 of what stands in the archive.
    pub packed_sha256: String,
}

/// What redaction did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Redaction {
    /// False with `--no-redact`.
    pub redacted: bool,
    /// What was replaced by pseudonyms.
    pub replaced: Vec<Replaced>,
    /// What was kept, beside words of protocols and log layouts, and why.
    pub kept: Vec<Kept>,
    /// Words that were kept because a finding would have changed without them.
    pub kept_back: Vec<String>,
}

/// A kind of thing that was replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replaced {
    /// Its kind.
    pub kind: String,
    /// Different ones.
    pub different: u64,
    /// How often they stood there.
    pub times: u64,
}

/// A kind of thing that was kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What it is.
    pub what: String,
    /// How many different words.
    pub words: u64,
    /// The words; numbers are not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
}

impl Redaction {
    /// As people read it.
    pub fn text(&self) -> String {
        if !self.redacted {
            return "Nothing was redacted (--no-redact): do not give this bundle to strangers.\n".to_owned();
        }
        let mut out = "Replaced by pseudonyms of the same length and kind:\n".to_owned();
        for r in &self.replaced {
            out.push_str(&format!("  {:<12} {} different, {} times\n", r.kind, r.different, r.times));
        }
        out.push_str(
            "Kept: words of protocols and log layouts, words of one or two characters, numbers of up to three digits, \
             times, private addresses; and\n",
        );
        for k in &self.kept {
            let list = if k.list.is_empty() { String::new() } else { format!(": {}", k.list.join(", ")) };
            out.push_str(&format!("  {} ({}){list}\n", k.what, k.words));
        }
        if !self.kept_back.is_empty() {
            out.push_str(&format!(
                "Kept because findings would have changed without them: {}\n",
                self.kept_back.join(", ")
            ));
        }
        out
    }
}
