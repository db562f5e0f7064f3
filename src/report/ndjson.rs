//! `--format ndjson`: one object a line, for streams and `jq`.

use super::json::{Indented, Listed, write};
use super::view::View;
use super::{Calls, RenderOptions, Renderer};
use crate::model::report::Summary;
use serde::Serialize;
use std::io::{self, Write};

/// `--format ndjson`
pub static RENDERER: Renderer = Renderer {
    name: "ndjson",
    doc: "One object a line with a \"type\": input, session, call, window, finding (timeline: exchange too; with -v: near), summary last.",
    calls: |options| options.calls.unwrap_or(Calls::Cited),
    report: Some(|view, options, out| lines(view, false, options, out)),
    timeline: Some(|view, options, out| lines(view, true, options, out)),
};

#[derive(Serialize)]
struct Line<'a, T> {
    r#type: &'static str,
    #[serde(flatten)]
    of: &'a T,
}

#[derive(Serialize)]
struct Last<'a> {
    schema: &'static str,
    crosswire: &'static str,
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    troubles: &'a [String],
}

fn lines(view: &View<'_>, is_timeline: bool, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let r = view.report;
    let out = &mut io::BufWriter::with_capacity(1 << 16, out);
    r.inputs.iter().try_for_each(|i| line("input", i, out))?;
    r.sessions.iter().try_for_each(|s| line("session", s, out))?;
    Listed::new(r, options.calls.unwrap_or(Calls::Cited)).iter().try_for_each(|c| line("call", c, out))?;
    if is_timeline {
        r.exchanges.iter().try_for_each(|e| line("exchange", e, out))?;
    }
    r.windows.iter().try_for_each(|w| line("window", w, out))?;
    r.findings.iter().try_for_each(|f| line("finding", f, out))?;
    if options.verbose {
        r.near.iter().try_for_each(|n| line("near", n, out))?;
    }
    let schema = if is_timeline { "crosswire.timeline/1" } else { "crosswire.report/1" };
    let last = Last { schema, crosswire: env!("CARGO_PKG_VERSION"), summary: &r.summary, troubles: &r.troubles };
    line("summary", &last, out)?;
    out.flush()
}

fn line<T: Serialize>(r#type: &'static str, of: &T, out: &mut dyn Write) -> io::Result<()> {
    write(&Line { r#type, of }, out, Indented::flat())?;
    out.write_all(b"\n")
}
