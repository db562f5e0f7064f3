//! The ladder as SVG: drawn by hand, no scripts, no fonts to fetch.

use super::text::said;
use super::{Direction, Ladder, Message, Mood, Row, idle_text, left_out_text};
use crate::report::view::clock;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use unicode_width::UnicodeWidthChar;

/// Width of a drawing, px.
const WIDTH: usize = 1040;
/// Height of a message's row and of a row for idle time, px.
const ROW: usize = 30;
const THIN: usize = 22;
/// Height of the column names, px.
const HEAD: usize = 34;
/// Where times end and lanes begin, px.
const TIME: usize = 104;
/// Width of a lane, px; lanes beyond [`LANES`] share the last.
const LANE: usize = 9;
const LANES: usize = 12;
/// Width of a character of the 12 px monospace font, px × 100.
const CHAR_CENTIPX: usize = 725;

/// Style of drawings, for the page or the document that holds them.
pub const STYLE: &str = "\
.ladder{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;--ink:#1c2024;--dim:#5c6670;--rule:#c4cbd2;--bad:#b3161b;--warn:#8a5300;--band:#fff3d6;--paper:#fff;color:var(--ink)}
.ladder text{fill:var(--ink)}.ladder .dim{fill:var(--dim)}.ladder .bad{fill:var(--bad)}.ladder .warn{fill:var(--warn)}
.ladder .head{font-weight:600}.ladder line,.ladder path{fill:none;stroke:var(--ink);stroke-width:1.4}
.ladder .life{stroke:var(--rule);stroke-width:1}.ladder .unseen{stroke-dasharray:2 4}.ladder .sbad{stroke:var(--bad)}.ladder .swarn{stroke:var(--warn)}
.ladder .cross{stroke:var(--bad);stroke-dasharray:6 3}.ladder .bar{stroke-width:4}.ladder .hang{stroke:var(--bad);stroke-dasharray:3 4}
.ladder .b0{stroke:#2a6fb0}.ladder .b1{stroke:#8a4fa3}.ladder .b2{stroke:#2f7d4f}.ladder .b3{stroke:#a0622d}.ladder .b4{stroke:#4f6d7a}
.ladder .band{fill:var(--band);stroke:none}.ladder .tip{fill:var(--ink);stroke:none}.ladder .tip.bad{fill:var(--bad)}.ladder .tip.warn{fill:var(--warn)}
@media(prefers-color-scheme:dark){.ladder{--ink:#e4e8ec;--dim:#9aa5b0;--rule:#4a535c;--bad:#ff8a8a;--warn:#f0b85e;--band:#3a3018;--paper:#15181b}
.ladder .b0{stroke:#6cb0f0}.ladder .b1{stroke:#cf9be6}.ladder .b2{stroke:#74c997}.ladder .b3{stroke:#e0a26c}.ladder .b4{stroke:#9fbccb}}";

/// Writes a document of its own with all ladders below each other.
///
/// # Errors
/// Those of writing.
pub fn document(ladders: &[Ladder], out: &mut dyn Write) -> io::Result<()> {
    const TITLE: usize = 30;
    let height: usize = ladders.iter().map(|l| TITLE + height(l)).sum::<usize>() + 10;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ladder\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">"
    )?;
    writeln!(out, "<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>")?;
    let mut top = 0;
    for ladder in ladders {
        writeln!(out, "<text class=\"head\" x=\"8\" y=\"{}\">{}</text>", top + 20, escape(&ladder.title))?;
        writeln!(out, "<g transform=\"translate(0 {})\">{}</g>", top + TITLE, body(ladder))?;
        top += TITLE + self::height(ladder);
    }
    writeln!(out, "</svg>")
}

/// A drawing to put into a page; the page holds [`STYLE`].
pub fn inline(ladder: &Ladder) -> String {
    let height = height(ladder);
    format!(
        "<svg class=\"ladder\" role=\"img\" aria-label=\"Ladder of {}\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\">{}</svg>",
        escape(&ladder.title),
        body(ladder)
    )
}

fn row_height(row: &Row) -> usize {
    match row {
        Row::Message(..) => ROW,
        Row::Idle(_) | Row::LeftOut(_) => THIN,
    }
}

fn height(ladder: &Ladder) -> usize {
    HEAD + ladder.rows.iter().map(row_height).sum::<usize>() + 12
}

struct Plan {
    /// Middle of each row, px.
    rows: Vec<usize>,
    /// Bottom of the last row, px.
    bottom: usize,
    /// Position of each column, px.
    columns: Vec<usize>,
}

impl Plan {
    fn of(ladder: &Ladder) -> Plan {
        let mut top = HEAD;
        let mut rows = Vec::with_capacity(ladder.rows.len());
        for row in &ladder.rows {
            let height = row_height(row);
            rows.push(top + height * 2 / 3);
            top += height;
        }
        let left = TIME + ladder.lanes.min(LANES) * LANE + 40;
        let parts = ladder.columns.len().saturating_sub(1).max(1);
        let columns = (0..ladder.columns.len()).map(|n| left + (WIDTH - left - 200) * n / parts).collect();
        Plan { rows, bottom: top, columns }
    }

    fn row(&self, n: usize) -> usize {
        self.rows.get(n).copied().unwrap_or(self.bottom)
    }

    fn column(&self, n: usize) -> usize {
        self.columns.get(n).copied().unwrap_or(0)
    }

    fn last_column(&self) -> usize {
        self.columns.last().copied().unwrap_or(0)
    }

    fn lane(&self, n: usize) -> usize {
        TIME + 8 + n.min(LANES - 1) * LANE
    }
}

fn body(ladder: &Ladder) -> String {
    let plan = Plan::of(ladder);
    let mut out = String::new();
    for (from, to) in &ladder.bands {
        let (top, bottom) = (plan.row(*from).saturating_sub(18), plan.row(*to) + 10);
        let _ = write!(
            out,
            "<rect class=\"band\" x=\"0\" y=\"{top}\" width=\"{WIDTH}\" height=\"{}\"/>",
            bottom.saturating_sub(top)
        );
    }
    for (name, x) in ladder.columns.iter().zip(&plan.columns) {
        let _ = write!(out, "<text class=\"head\" x=\"{x}\" y=\"18\" text-anchor=\"middle\">{name}</text>");
        line(&mut out, "life", *x, HEAD - 8, *x, plan.bottom);
    }
    for bar in &ladder.bars {
        let (x, to) = (plan.lane(bar.lane), if bar.is_open { plan.bottom } else { plan.row(bar.to) });
        let class = if bar.hangs { "bar hang".to_string() } else { format!("bar b{}", bar.lane % 5) };
        line(&mut out, &class, x, plan.row(bar.from), x, to.max(plan.row(bar.from) + 2));
    }
    let lanes: FxHashMap<_, _> = ladder.bars.iter().map(|b| (b.call, b.lane)).collect();
    for (n, row) in ladder.rows.iter().enumerate() {
        let y = plan.row(n);
        match row {
            Row::Message(m, _) => {
                message(&mut out, &plan, y, m);
                if let Some(lane) = m.owner.and_then(|owner| lanes.get(&owner)) {
                    crossing(&mut out, &plan, y, *lane);
                }
            }
            Row::Idle(ns) => aside(&mut out, &plan, y, &idle_text(*ns)),
            Row::LeftOut(n) => aside(&mut out, &plan, y, &left_out_text(*n)),
        }
    }
    out
}

fn message(out: &mut String, plan: &Plan, y: usize, m: &Message) {
    let tone = match m.mood {
        Mood::Plain => "",
        Mood::Crossed | Mood::Hanging => "bad",
        Mood::Refused | Mood::Note => "warn",
    };
    if let Some(t) = m.at {
        let _ = write!(out, "<text class=\"dim\" x=\"{TIME}\" y=\"{}\" text-anchor=\"end\">{}</text>", y + 1, clock(t));
    }
    let text = said(m);
    let first = plan.column(0);
    let room = plan.last_column().saturating_sub(first + 16) * 100 / CHAR_CENTIPX;
    match m.direction {
        Direction::At(column) => {
            let x = plan.column(column);
            let _ = write!(out, "<circle class=\"tip {tone}\" cx=\"{x}\" cy=\"{y}\" r=\"3.5\"/>");
            label(out, tone, x + 10, y + 4, &text, room);
        }
        Direction::ToServer | Direction::ToClient => {
            arrows(out, plan, y, m, tone);
            label(out, tone, first + 10, y - 5, &text, room);
        }
    }
    if let Some(place) = m.places.first() {
        let more = if m.places.len() > 1 { format!(" +{}", m.places.len() - 1) } else { String::new() };
        let _ = write!(out, "<g><title>{}</title>", escape(&m.places.join(" ")));
        label(out, "dim", plan.last_column() + 12, y + 1, &format!("{place}{more}"), 25);
        out.push_str("</g>");
    }
}

fn arrows(out: &mut String, plan: &Plan, y: usize, m: &Message, tone: &str) {
    let parts = plan.columns.len().saturating_sub(1);
    let is_right = m.direction == Direction::ToServer;
    for part in 0..parts {
        let is_seen = m.seen & (1 << part) != 0;
        let is_dark = m.dark & (1 << part) != 0;
        let is_passed = is_dark || if is_right { m.seen >> (part + 1) != 0 } else { m.seen & ((1 << part) - 1) != 0 };
        let (a, b) = (plan.column(part), plan.column(part + 1));
        if is_seen || is_passed {
            let class = format!("s{tone}{}", if is_seen { "" } else { " unseen" });
            line(out, &class, a + 2, y, b - 2, y);
            let (tip, back) = if is_right { (b - 2, b - 10) } else { (a + 2, a + 10) };
            let _ = write!(out, "<path class=\"tip {tone}\" d=\"M{tip} {y}L{back} {}L{back} {}z\"/>", y - 4, y + 4);
        } else if m.seen == 0 && part == 0 && is_right {
            let x = a + 60;
            line(out, "sbad unseen", a + 2, y, x, y);
            let _ = write!(out, "<path class=\"sbad\" d=\"M{x} {}l8 8m0 -8l-8 8\"/>", y - 4);
        }
    }
}

/// From where the reply landed to the call that still waits for it.
fn crossing(out: &mut String, plan: &Plan, y: usize, lane: usize) {
    let (from, to) = (plan.column(0) - 3, plan.lane(lane));
    let _ = write!(
        out,
        "<path class=\"cross\" d=\"M{from} {y}C{} {} {} {} {to} {}\"><title>this reply belongs to the call whose bar the dashes lead to</title></path>",
        from - 12,
        y + 14,
        to + 14,
        y + 14,
        y + 10
    );
}

fn aside(out: &mut String, plan: &Plan, y: usize, text: &str) {
    let x = (plan.column(0) + plan.last_column()) / 2;
    let _ = write!(out, "<text class=\"dim\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">⋯ {} ⋯</text>", escape(text));
}

fn line(out: &mut String, class: &str, x1: usize, y1: usize, x2: usize, y2: usize) {
    let _ = write!(out, "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
}

/// Text cut to `room` characters; the whole of it as a tooltip.
fn label(out: &mut String, class: &str, x: usize, y: usize, text: &str, room: usize) {
    let _ = write!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">");
    match cut(text, room.max(8)) {
        Some(at) => {
            let _ = write!(out, "{}…<title>{}</title>", escape(text.get(..at).unwrap_or("")), escape(text));
        }
        None => out.push_str(&escape(text)),
    }
    out.push_str("</text>");
}

/// Where to cut text that is wider than `room` characters.
fn cut(text: &str, room: usize) -> Option<usize> {
    let mut used = 0;
    let mut at = 0;
    for (i, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room {
            return Some(at);
        }
        if used < room {
            at = i + c.len_utf8();
        }
    }
    None
}

/// Text for XML and HTML content and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
