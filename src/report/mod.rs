//! Renderings of a [`Report`]. Rendering never invents: every word about
//! the traffic comes from the report.

use crate::model::report::{self, CallKey, Finding, Report};
use rustc_hash::FxHashSet;
use std::io::{self, Write};

pub mod baseline;
pub mod call;
pub mod clean;
pub mod csv;
pub mod filter;
pub mod headline;
mod html;
pub mod json;
pub mod ladder;
pub mod layout;
mod markdown;
mod ndjson;
pub mod paper;
pub mod reindent;
pub mod schema;
mod svg;
pub mod table;
pub mod tables;
mod text;
pub mod view;

use table::Table;
use view::View;

/// Which calls a rendering lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Every call.
    All,
    /// Those that findings and windows cite.
    Cited,
    /// None.
    None,
}

/// How to render.
#[derive(Clone)]
pub struct RenderOptions {
    /// Terminal columns that lines should not exceed.
    pub width: usize,
    /// Use ANSI colours.
    pub color: bool,
    /// Use ASCII alone for lines and signs.
    pub ascii: bool,
    /// `--calls`; none: the format's own default.
    pub calls: Option<Calls>,
    /// `--table`, for CSV; none: findings.
    pub table: Option<&'static Table>,
    /// Add Mermaid diagrams to Markdown.
    pub mermaid: bool,
    /// `-v`: list sessions and calls too.
    pub verbose: bool,
    /// Number (from 1) of the finding to which a timeline is to be cut.
    pub around: Option<usize>,
}

impl Default for RenderOptions {
    fn default() -> RenderOptions {
        RenderOptions {
            width: 120,
            color: false,
            ascii: false,
            calls: None,
            table: None,
            mermaid: false,
            verbose: false,
            around: None,
        }
    }
}

/// Writes a report in one format.
pub type Render = fn(&View<'_>, &RenderOptions, &mut dyn Write) -> io::Result<()>;

/// One output format.
pub struct Renderer {
    /// Its name for `--format`.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Which calls its reports list or draw.
    pub calls: fn(&RenderOptions) -> Calls,
    /// Writes a report; none: the format has no reports.
    pub report: Option<Render>,
    /// Writes a timeline; none: the format has no timelines.
    pub timeline: Option<Render>,
}

/// Every output format.
pub static RENDERERS: &[&Renderer] = &[
    &text::RENDERER,
    &markdown::RENDERER,
    &csv::RENDERER,
    &json::RENDERER,
    &ndjson::RENDERER,
    &html::RENDERER,
    &svg::RENDERER,
];

/// The output format of this name.
pub fn find(name: &str) -> Option<&'static Renderer> {
    RENDERERS.iter().copied().find(|r| r.name == name)
}

/// Messages around each of a finding's own that its ladder shows.
const CONTEXT: usize = 3;

/// The ladders that a timeline is to show, each of at most `max_rows` messages.
fn ladders(view: &View<'_>, options: &RenderOptions, max_rows: usize) -> Vec<ladder::Ladder> {
    let timeline = ladder::Timeline::new(view);
    let finding = options.around.and_then(|n| Some((n, view.report.findings.get(n.checked_sub(1)?)?)));
    match finding {
        Some((n, f)) => timeline.around(n, &finding_calls(f), CONTEXT),
        None => timeline.ladders(max_rows).collect(),
    }
}

/// The calls that a finding names.
fn finding_calls(f: &Finding) -> Vec<CallKey> {
    report::finding_calls(f).collect()
}

/// The calls that a report's findings and windows cite.
pub fn cited(report: &Report) -> FxHashSet<CallKey> {
    report::cited(&report.findings, &report.windows)
}

#[cfg(test)]
mod tests {
    use super::RENDERERS;

    #[test]
    fn names_are_unique_and_documented() {
        let mut names: Vec<_> = RENDERERS.iter().map(|r| r.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RENDERERS.len());
        assert!(RENDERERS.iter().all(|r| !r.doc.is_empty()));
        assert!(RENDERERS.iter().all(|r| r.report.is_some() || r.timeline.is_some()));
    }
}
