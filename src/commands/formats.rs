//! `crosswire formats`: what can be read, with each format's manual text.

use super::choices::{self, Suggest};
use super::options::of_the_wire;
use super::{CLEAN, Command, output};
use crate::input::log::Format;
use crate::input::{client, log};
use crate::model::limits;
use crate::model::place::Vantage;
use crate::report::clean::clean;
use anyhow::bail;
use clap::{Args, FromArgMatches};
use std::fmt::Write;

/// `crosswire formats`
pub static COMMAND: Command = Command {
    name: "formats",
    define: Formats::augment_args,
    run: |matches| Formats::from_arg_matches(matches)?.run(),
};

/// List the formats that can be read, or print one format's manual text
#[derive(Debug, clap::Args)]
struct Formats {
    /// The format
    #[arg(value_parser = Suggest(choices::formats), hide_possible_values = true)]
    format: Option<String>,
    /// List the limits of all buffers instead
    #[arg(long, conflicts_with = "format")]
    limits: bool,
}

impl Formats {
    fn run(self) -> anyhow::Result<u8> {
        let text = match &self.format {
            _ if self.limits => limits_list(),
            None => list(),
            Some(name) => manual(name)?,
        };
        output::print(|out| out.write_all(text.as_bytes()))?;
        Ok(CLEAN)
    }
}

/// Every format of logs and client records.
pub(super) fn all() -> impl Iterator<Item = &'static Format> {
    log::FORMATS.iter().chain(client::FORMATS).copied()
}

fn list() -> String {
    let mut out = String::new();
    let widest = all().map(|f| f.name.len()).max().unwrap_or(0);
    let mut line = |name: &str, vantage: &str, doc: &str| {
        let _ = writeln!(out, "{name:<widest$}  {vantage:<6}  {}", first_sentence(doc));
    };
    for (name, doc) in of_the_wire() {
        line(name, "wire", doc);
    }
    for f in all() {
        line(f.name, vantage_name(f.vantage), f.doc);
    }
    out
}

fn first_sentence(doc: &str) -> &str {
    let line = doc.trim().lines().next().unwrap_or("");
    line.split_once(". ").map_or(line, |(first, _)| first).trim_end_matches('.')
}

fn manual(name: &str) -> anyhow::Result<String> {
    if let Some((name, doc)) = of_the_wire().find(|(n, _)| *n == name) {
        return Ok(format!("{name} (wire)\n\n{}", output::paragraphs(doc)));
    }
    let Some(f) = all().find(|f| f.name == name) else {
        bail!("{name}: no such format; `crosswire formats` lists them");
    };
    let mut out = format!("{} ({})\n\n{}", f.name, vantage_name(f.vantage), output::paragraphs(f.doc.trim()));
    for sample in f.samples {
        let _ = writeln!(out, "\nExample:");
        for line in sample.lines() {
            let _ = writeln!(out, "    {}", clean(line));
        }
    }
    Ok(out)
}

/// The vantage point as the report spells it.
pub(super) fn vantage_name(v: Vantage) -> &'static str {
    match v {
        Vantage::Client => "client",
        Vantage::Proxy => "proxy",
        Vantage::Server => "server",
        Vantage::Wire => "wire",
    }
}

fn limits_list() -> String {
    let mut out = String::new();
    for (name, value, doc) in limits::ALL {
        let _ = writeln!(out, "{name:<22} {value:>12}  {doc}");
    }
    out
}
