//! What the commands that talk to servers and clients have in common.

use super::output::is_one_of;
use crate::drive::record::Recorder;
use crate::drive::{Stop, Target};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Where requests go, and what the user adds to them.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectArgs {
    /// Add this header field to every request, such as `Authorization: Bearer …`
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,

    /// Write what was sent and received, header fields given with -H included, to this pcapng capture
    #[arg(short, long, value_name = "FILE")]
    pub write: Option<PathBuf>,
}

impl ConnectArgs {
    /// The client of a run.
    ///
    /// # Errors
    /// If signals cannot be caught or the recording cannot be written.
    pub fn client(
        &self,
        target: Target,
        what: &str,
        inputs: &[String],
    ) -> anyhow::Result<crate::drive::client::Client> {
        let stop = Stop::on_signals().context("signals cannot be caught")?;
        let recorder = recorder(inputs, self.write.as_ref(), &format!("crosswire {what} {target}"))?;
        Ok(crate::drive::client::Client { target, headers: self.headers.clone(), recorder, stop })
    }
}

/// A recording in `path`, if there is one.
///
/// # Errors
/// If it cannot be written, or is one of `inputs`.
pub fn recorder(inputs: &[String], path: Option<&PathBuf>, comment: &str) -> anyhow::Result<Option<Recorder>> {
    let create = |path: &PathBuf| {
        spare(inputs, path)?;
        Recorder::create(path, comment).with_context(|| format!("{}: cannot be written", path.display()))
    };
    path.map(create).transpose()
}

/// Fails if `path` is one of `inputs`, which writing would destroy.
///
/// # Errors
/// If it is.
pub fn spare(inputs: &[String], path: &Path) -> anyhow::Result<()> {
    if is_one_of(inputs, path) {
        bail!("{}: is one of the inputs and would be overwritten; give another name", path.display());
    }
    Ok(())
}

/// Fails now if the report could not be written later: a run that talked to a server is not made
/// again lightly.
///
/// # Errors
/// If the file cannot be written, or is one of `inputs`.
pub fn writable(inputs: &[String], path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    spare(inputs, path)?;
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).with_context(|| format!("{}: cannot be written", path.display()))
}

/// Fails if the recording is not whole.
///
/// # Errors
/// If writing it failed at some point.
pub fn finish(recorder: Option<&Recorder>, path: Option<&PathBuf>) -> anyhow::Result<()> {
    if let (Some(recorder), Some(path)) = (recorder, path)
        && let (packets, Some(e)) = recorder.finish()
    {
        bail!("{}: the recording ends after {packets} packets: {e}", path.display());
    }
    Ok(())
}

/// Lets the process have as many files open as it may: connections are files, and the usual limit is
/// a thousand.
pub fn more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    // Where it stays as it is, connections beyond it are refused, which is told then.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
}

/// `http://host:port/path`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn target(url: &str) -> Result<Target, String> {
    Target::parse(url).map_err(|e| e.to_string())
}

/// `NAME: VALUE`; a value that breaks the line would be another field.
fn header(text: &str) -> Result<(String, String), String> {
    let expected = "expected a header field such as `Authorization: Bearer …`";
    let (name, value) = text.split_once(':').ok_or(expected)?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) || value.contains(['\r', '\n', '\0']) {
        return Err(expected.into());
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn header_fields() {
        assert_eq!(super::header("A-b:  c: d"), Ok(("A-b".into(), "c: d".into())));
        for bad in ["", "a", ": b", "a b: c", "a: b\r\nc: d"] {
            assert!(super::header(bad).is_err(), "{bad}");
        }
    }
}
