//! `crosswire verify`: is a bundle as it was written?

use super::{CLEAN, Command, FOUND, output};
use crate::evidence::verify::verify;
use crate::model::limits::BUNDLE_MEMBER_BYTES;
use crate::report::clean::clean;
use anyhow::Context;
use clap::{Args, FromArgMatches};
use std::io::Read;
use std::path::PathBuf;

/// `crosswire verify`
pub static COMMAND: Command =
    Command { name: "verify", define: Verify::augment_args, run: |matches| Verify::from_arg_matches(matches)?.run() };

/// Check every byte of an evidence bundle against its manifest
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The hashes show damage and changes by those who did not make the manifest anew; they are no signature.\n\n\
Exit status: 0 whole, 1 something differs (each on a line), 2 trouble: no bundle, or one that is made to harm (paths that lead \
out, names that occur twice, members that swell).")]
struct Verify {
    /// The bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Say nothing, only the exit status
    #[arg(long)]
    quiet: bool,
}

impl Verify {
    fn run(self) -> anyhow::Result<u8> {
        let name = clean(&self.file.display().to_string()).into_owned();
        let mut bytes = vec![];
        let file = std::fs::File::open(&self.file).with_context(|| format!("{name}: cannot be read"))?;
        let limit = 2 * BUNDLE_MEMBER_BYTES as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).with_context(|| format!("{name}: cannot be read"))?;
        let found = verify(bytes).with_context(|| name.clone())?;
        let mut text = String::new();
        for line in &found.differs {
            text.push_str(&format!("{name}: {}\n", clean(line)));
        }
        if let Some(m) = found.manifest.as_ref().filter(|_| found.differs.is_empty()) {
            text = format!("{name}: whole: {} members, {} findings, made {}\n", found.whole, m.findings, m.created);
        }
        if !self.quiet {
            output::print(|out| out.write_all(text.as_bytes()))?;
        }
        Ok(if found.differs.is_empty() { CLEAN } else { FOUND })
    }
}
