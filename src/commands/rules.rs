//! `crosswire rules`: what can be found, with each rule's manual text.

use super::choices::{self, Suggest};
use super::{CLEAN, Command, output};
use crate::model::glob::glob;
use crate::rules::{RULES, Rule};
use anyhow::bail;
use clap::{Args, FromArgMatches};
use std::fmt::Write;

/// `crosswire rules`
pub static COMMAND: Command =
    Command { name: "rules", define: Rules::augment_args, run: |matches| Rules::from_arg_matches(matches)?.run() };

/// List what can be found, or print one rule's manual text
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example: crosswire rules crossed/id-collision")]
struct Rules {
    /// The rule, or a pattern such as `crossed/*`
    #[arg(value_parser = Suggest(choices::rule_patterns), hide_possible_values = true)]
    rule: Option<String>,
}

impl Rules {
    fn run(self) -> anyhow::Result<u8> {
        let text = match &self.rule {
            None => list(),
            Some(pattern) => manuals(pattern)?,
        };
        output::print(|out| out.write_all(text.as_bytes()))?;
        Ok(CLEAN)
    }
}

fn list() -> String {
    let widest = RULES.iter().map(|r| r.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for r in RULES {
        let _ = writeln!(out, "{:<widest$}  {} [{}]", r.name, r.says, faults(r));
    }
    out
}

fn faults(r: &Rule) -> String {
    if r.faults.is_empty() {
        return "no fault proved".into();
    }
    r.faults.iter().map(|h| h.name()).collect::<Vec<_>>().join(", ")
}

fn manuals(pattern: &str) -> anyhow::Result<String> {
    let mut out = String::new();
    for r in RULES.iter().filter(|r| glob(pattern, r.name)) {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(
            out,
            "{}\n\n{}.\nCan name at fault: {}.\n\n{}",
            r.name,
            r.says,
            faults(r),
            output::paragraphs(r.doc.trim()).trim_end()
        );
    }
    if out.is_empty() {
        bail!("{pattern}: no such rule; `crosswire rules` lists them");
    }
    Ok(out)
}
