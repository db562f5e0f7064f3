//! One call in full, for `show`: what every vantage point saw, when, and where it stands.

use super::RenderOptions;
use super::clean::{clean, clean_block, clean_short};
use super::headline::standing;
use super::json::{Indented, write};
use super::paper::{Paper, Style};
use super::reindent::reindent;
use super::table::Tone;
use super::tables::{delivered_name, end_name, outcome_name, vantage_name};
use super::view::{View, clock, size, span};
use crate::model::report::{Call, Detail, Sighting};
use crate::model::time::Time;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::Arc;

/// Characters shown of one message.
const MESSAGE_CHARS: usize = 200_000;
/// Terminal columns of the waterfall, where there is room.
const WATERFALL: usize = 40;
/// Terminal columns beside a bar and its input's name: spaces, and what is said behind.
const BESIDE: usize = 35;

/// What `show` needs to know.
pub struct Shown<'a> {
    /// The report that holds the call.
    pub view: &'a View<'a>,
    /// Width and colours.
    pub options: &'a RenderOptions,
    /// Messages exactly as sent.
    pub raw: bool,
}

/// Calls as JSON: `{"schema": "crosswire.calls/1", "calls": […]}` with all that is known.
///
/// # Errors
/// Those of writing.
pub fn json(calls: &[&Call], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        crosswire: &'static str,
        calls: &'a [&'a Call],
    }
    let document = Document { schema: "crosswire.calls/1", crosswire: env!("CARGO_PKG_VERSION"), calls };
    write(&document, out, Indented::default())?;
    out.write_all(b"\n")
}

/// One call as text.
///
/// # Errors
/// Those of writing.
pub fn text(shown: &Shown<'_>, call: &Call, out: &mut dyn Write) -> io::Result<()> {
    draw(shown, call, &mut Paper::new(out, shown.options))
}

/// As [`text`], on any page.
///
/// # Errors
/// Those of writing.
pub fn draw(shown: &Shown<'_>, call: &Call, paper: &mut Paper<'_>) -> io::Result<()> {
    let view = shown.view;
    paper.line(&clean(&view.key_label(call.key)), Style::Bold)?;
    let session = call.session.as_deref().unwrap_or("none");
    fact("session", &clean_short(session, 200), paper)?;
    fact("method", &clean_short(call.method.as_deref().unwrap_or("not known"), 200), paper)?;
    fact("outcome", &format!("{}, delivered: {}", outcome_name(call.outcome), delivered_name(call.delivered)), paper)?;
    let times = [("issued", call.issued), ("sent", call.sent), ("replied", call.replied)];
    for (name, at) in times.iter().filter_map(|(name, at)| Some((name, (*at)?))) {
        fact(name, &at.to_string(), paper)?;
    }
    if let Some(ns) = view.latency_ns(call) {
        fact("took", &span(ns), paper)?;
    }
    if let Some(saw) = &call.client_saw {
        fact("client saw", &clean_short(&saw.to_string(), 400), paper)?;
    }
    findings(view, call, paper)?;
    waterfall(view, call, paper)?;
    for s in &call.sightings {
        sighting(shown, s, paper)?;
    }
    // Without details the report knows the messages once, not per vantage point.
    if let Some(bodies) = call.bodies.as_ref().filter(|_| call.sightings.iter().all(|s| s.detail.is_none())) {
        message("Request", bodies.request.as_deref(), shown.raw, paper)?;
        message("Reply", bodies.reply.as_deref(), shown.raw, paper)?;
    }
    paper.end()
}

fn fact(name: &str, value: &str, paper: &mut Paper<'_>) -> io::Result<()> {
    paper.put(&format!("  {name:<11} "), Style::Tone(Tone::Dim))?;
    paper.flow(value, 14, Style::Plain)
}

fn findings(view: &View<'_>, call: &Call, paper: &mut Paper<'_>) -> io::Result<()> {
    for (n, f) in view.report.findings.iter().enumerate() {
        if f.calls.contains(&call.key) || f.victim == Some(call.key) || f.owner == Some(call.key) {
            fact(
                &format!("finding {}", n + 1),
                &format!("{} ({}): {}", f.rule, standing(f), clean_short(&f.summary, 600)),
                paper,
            )?;
        }
    }
    Ok(())
}

/// One bar a vantage point, all on one scale: request to head (`─`), head to the reply's last byte (`━`).
fn waterfall(view: &View<'_>, call: &Call, paper: &mut Paper<'_>) -> io::Result<()> {
    let last = |s: &Sighting| s.reply_at.or(s.ended_at).or(s.head_at).or(s.at);
    let begin = call.sightings.iter().filter_map(|s| s.at).chain(call.issued).min();
    let end = call.sightings.iter().filter_map(last).chain(call.replied).max();
    let Some((begin, end)) = begin.zip(end).filter(|(b, e)| b < e) else { return Ok(()) };
    let whole = end.since(begin);
    let widest = call.sightings.iter().map(|s| view.input(s.input).chars().count()).max().unwrap_or(0).min(24);
    let bars = paper.width.saturating_sub(widest + BESIDE).clamp(10, WATERFALL);
    let column = |t: Time| (t.since(begin).clamp(0, whole) as i128 * bars as i128 / i128::from(whole)) as usize;
    paper.end()?;
    paper.line(&format!("  Timing, {} from {} UTC", span(whole), clock(begin)), Style::Bold)?;
    for s in &call.sightings {
        let (Some(from), Some(to)) = (s.at, last(s)) else { continue };
        let head = s.head_at.filter(|h| *h >= from && *h <= to).unwrap_or(to);
        let (a, h, b) = (column(from), column(head), column(to));
        let bar = format!("{}{}{}", " ".repeat(a), "─".repeat(h - a), "━".repeat((b - h).max(usize::from(h == a))));
        let name = clean_short(view.input(s.input), 24);
        let head_text = s.head_at.map_or(String::new(), |h| format!(", head after {}", span(h.since(from))));
        paper.put(&format!("  {name:<widest$}  {bar:<width$}  ", width = bars + 1), Style::Plain)?;
        paper.line(&format!("{}{head_text}", span(to.since(from))), Style::Tone(Tone::Dim))?;
    }
    Ok(())
}

fn sighting(shown: &Shown<'_>, s: &Sighting, paper: &mut Paper<'_>) -> io::Result<()> {
    let view = shown.view;
    let side = view.report.inputs.get(s.input as usize).and_then(|i| i.side);
    let vantage = s.vantage.map_or("unknown vantage", |v| vantage_name(v, side));
    paper.end()?;
    paper.line(&format!("  {} ({vantage})", clean_short(view.input_full(s.input), 200)), Style::Bold)?;
    let place = |frame: Option<u64>, line: Option<u64>| match (frame, line) {
        (Some(n), _) => format!("frame {n}"),
        (None, Some(n)) => format!("line {n}"),
        (None, None) => "no place".into(),
    };
    let unsure = if s.ambiguous { "; may be another call's" } else { "" };
    let error = s.at_error_ms.filter(|e| *e > 0.0).map_or(String::new(), |e| format!(" ± {e} ms"));
    let at = s.at.map_or("time not known".into(), |t| format!("{t}{error}"));
    fact("request", &format!("{}, {at}{unsure}", place(s.frame, s.line)), paper)?;
    if let Some(t) = s.head_at {
        fact("head", &t.to_string(), paper)?;
    }
    if s.reply_frame.is_some() || s.reply_at.is_some() {
        let at = s.reply_at.map_or(String::new(), |t| format!(", {t}"));
        let id = s.reply_id.as_ref().map_or(String::new(), |id| clean_short(&format!(", id {id}"), 80).into_owned());
        fact("reply", &format!("{}{at}{id}", place(s.reply_frame, None)), paper)?;
    }
    let mut answer = Vec::new();
    answer.extend(s.status.map(|n| format!("status {n}")));
    answer.extend(s.bytes.map(size));
    answer.extend(s.end.map(|e| end_name(e).to_string()));
    answer.extend(s.ended_at.map(|t| format!("ended {}", clock(t))));
    if !answer.is_empty() {
        fact("answer", &answer.join(", "), paper)?;
    }
    let peer = s.peer.as_ref().map(|p| clean_short(p, 80).into_owned());
    let stream = s.stream.map(|n| format!("TCP stream {n}"));
    let connection: Vec<String> = peer.into_iter().chain(stream).collect();
    if !connection.is_empty() {
        fact("connection", &connection.join(", "), paper)?;
    }
    for (name, hash) in [("request is", &s.request_sha256), ("reply is", &s.reply_sha256)] {
        if let Some(hash) = hash {
            fact(name, &format!("sha256 {hash}"), paper)?;
        }
    }
    s.detail.as_ref().map_or(Ok(()), |d| detail(d, shown.raw, paper))
}

fn detail(d: &Detail, raw: bool, paper: &mut Paper<'_>) -> io::Result<()> {
    head(d.request_line.as_deref(), &d.request_headers, paper)?;
    message("Request", d.request.as_deref(), raw, paper)?;
    head(d.status_line.as_deref(), &d.response_headers, paper)?;
    message("Reply", d.reply.as_deref(), raw, paper)?;
    message("Record", d.record.as_deref(), true, paper)
}

fn head(first: Option<&str>, fields: &[(Arc<str>, Arc<str>)], paper: &mut Paper<'_>) -> io::Result<()> {
    if let Some(line) = first {
        paper.end()?;
        paper.line(&format!("    {}", clean_short(line, 2000)), Style::Bold)?;
    }
    for (name, value) in fields {
        paper.put(&format!("    {}: ", clean_short(name, 200)), Style::Tone(Tone::Dim))?;
        paper.line(&clean_short(value, 4000), Style::Plain)?;
    }
    Ok(())
}

fn message(title: &str, text: Option<&str>, raw: bool, paper: &mut Paper<'_>) -> io::Result<()> {
    let Some(text) = text else { return Ok(()) };
    paper.end()?;
    paper.line(&format!("    {title}"), Style::Bold)?;
    let cut = text.char_indices().nth(MESSAGE_CHARS).map_or(text.len(), |(i, _)| i);
    let head = text.get(..cut).unwrap_or(text);
    let body = if raw { clean_block(head, MESSAGE_CHARS) } else { clean_block(&reindent(head), 4 * MESSAGE_CHARS) };
    for line in body.lines() {
        paper.line(&format!("    {line}"), Style::Plain)?;
    }
    if cut < text.len() {
        paper.line(
            &format!("    … ({} more bytes; --format json has them)", text.len() - cut),
            Style::Tone(Tone::Warn),
        )?;
    }
    Ok(())
}
