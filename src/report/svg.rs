//! `timeline --format svg`: the ladders as one picture.

use super::view::View;
use super::{Calls, RenderOptions, Renderer, ladder};
use std::io::{self, Write};

/// Messages a ladder of a picture shows; viewers get slow with more.
const MESSAGES: usize = 2000;

/// `--format svg`
pub static RENDERER: Renderer = Renderer {
    name: "svg",
    doc: "Timelines as a picture (only for timeline); long ones are cut, see --since, --until, --session and --around.",
    calls: |_| Calls::All,
    report: None,
    timeline: Some(timeline),
};

fn timeline(view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    ladder::svg::document(&super::ladders(view, options, MESSAGES), out)
}
