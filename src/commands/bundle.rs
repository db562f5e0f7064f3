//! `crosswire bundle`: portable evidence, redacted.

use super::options::ReadArgs;
use super::{CLEAN, Command, TROUBLE, complain, output, values};
use crate::evidence::bundle::{self, Order};
use crate::evidence::pseudonym::Key;
use crate::model::report::CallKey;
use anyhow::{Context, bail};
use clap::{Args, FromArgMatches};
use regex::bytes::Regex;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `crosswire bundle`
pub static COMMAND: Command =
    Command { name: "bundle", define: Bundle::augment_args, run: |matches| Bundle::from_arg_matches(matches)?.run() };

/// Write the evidence for the findings into one file, redacted, with hashes
#[derive(clap::Args)]
#[command(after_long_help = "\
The bundle is a ZIP archive, or where its name ends so a .tar.zst: the report in HTML, Markdown and JSON, a capture of the cited calls with their handshakes \
(decrypted, decoded, original times and frame numbers), the cited log lines with their neighbours, and a manifest with the \
SHA-256 of every member and input. `crosswire analyze` on it gives the same findings, which is checked before it is written.\n\n\
Every word that is no word of a protocol, log layout, tool or schema is replaced by a pseudonym of the same length and kind: \
what is equal stays equal. JSON keys that no schema names are replaced too. TLS secrets never enter a bundle. README.txt in \
it lists what was replaced and what was kept.\n\n\
Examples:\n  \
    crosswire bundle front.pcap backend.pcap access.log journal.json -o evidence.zip\n  \
    crosswire bundle backend.pcap -o evidence.zip --key-file key --keep query --redact 'acme[a-z-]*'\n\n\
Exit status: 0 written, 2 trouble (an input could not be read, or the findings would change).")]
struct Bundle {
    #[command(flatten)]
    read: ReadArgs,
    /// Only this call and the findings about it: its key in the report, such as c9
    #[arg(long, value_name = "KEY", value_parser = values::call_key, help_heading = "Selection")]
    call: Vec<CallKey>,
    /// The bundle; its name ends in .zip or .tar.zst
    #[arg(short, long, value_name = "FILE", required = true, help_heading = "Output")]
    output: PathBuf,
    /// Keep what this JSON key or header holds
    #[arg(long, value_name = "FIELD", help_heading = "Redaction")]
    keep: Vec<String>,
    /// Replace what this regular expression matches, even where it would be kept
    #[arg(long, value_name = "PATTERN", help_heading = "Redaction")]
    redact: Vec<String>,
    /// Replace nothing
    #[arg(long, conflicts_with_all = ["keep", "redact", "key_file"], help_heading = "Redaction")]
    no_redact: bool,
    /// Take the key that decides the pseudonyms from this file, or write a new one to it; bundles made with one key can be matched
    #[arg(long, value_name = "FILE", help_heading = "Redaction")]
    key_file: Option<PathBuf>,
    /// No summary and no warnings
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

impl Bundle {
    fn run(self) -> anyhow::Result<u8> {
        if output::is_one_of(&self.read.inputs, &self.output) {
            bail!("{}: is one of the inputs and would be overwritten; give -o another name", self.output.display());
        }
        let pattern = |p: &String| Regex::new(p).with_context(|| format!("--redact {p}: no regular expression"));
        let redact = self.redact.iter().map(pattern).collect::<anyhow::Result<Vec<_>>>()?;
        let command: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
        let read = self.read.read_options()?;
        self.read.check_paths()?;
        let made = bundle::make(&Order {
            inputs: &self.read.inputs,
            read: &read,
            calls: &self.call,
            output: &self.output,
            keep: &self.keep,
            redact: &redact,
            is_open: self.no_redact,
            key: key(self.key_file.as_deref())?,
            command: &command,
        })?;
        made.troubles.iter().for_each(|trouble| complain(trouble));
        if !self.quiet {
            let m = &made.manifest;
            let name = self.output.display();
            let text = format!(
                "{name}: {} findings, {} members, {} bytes\nIt holds {}.\n{}",
                m.findings,
                m.members.len(),
                made.bytes,
                m.scope,
                m.redaction.text()
            );
            output::print(|out| out.write_all(crate::report::clean::clean_block(&text, 1 << 20).as_bytes()))?;
        }
        Ok(if made.troubles.is_empty() { CLEAN } else { TROUBLE })
    }
}

/// The key in this file, or a new one, which is written to it.
fn key(path: Option<&Path>) -> anyhow::Result<Key> {
    let new = || Key::random().context("the system gives no random numbers");
    let Some(path) = path else { return new() };
    match std::fs::read_to_string(path) {
        Ok(text) => Key::from_hex(&text).with_context(|| {
            format!("{}: no key; expected 64 hexadecimal digits, or a file that does not exist", path.display())
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let key = new()?;
            write_private(path, &format!("{}\n", key.to_hex()))
                .with_context(|| format!("{}: cannot be written", path.display()))?;
            Ok(key)
        }
        Err(e) => Err(e).with_context(|| format!("{}: cannot be read", path.display())),
    }
}

/// A new file that only its owner may read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
