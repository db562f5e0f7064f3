//! Handlers' own lines for a tool call, in the words most people choose:
//! `tool=get_park start`, `tool=get_park done ms=501`, `tools/call id=3 tool=x start`,
//! `[tools] fast_echo tag=1`, `session=… id=7 tools/call name=x failed: …`.

use super::fields;
use super::phrase::{Anchor, Meaning, Phrase, Said};
use crate::model::record::LogEventKind as K;

/// The phrases.
pub(super) static PHRASES: &[Phrase] = &[
    Phrase::start("tool=", K::Processing, tool_step),
    Phrase::start("tool_name=", K::Processing, tool_step),
    Phrase::start("tools/call ", K::Processing, rpc_step),
    Phrase::start("[tools] ", K::Processing, tagged),
    Phrase::start("[tool] ", K::Processing, tagged),
    Phrase::start("Calling tool: ", K::Processing, named),
    Phrase::start("Calling tool ", K::Processing, named),
    Phrase::start("Tool called: ", K::Processing, named),
    Phrase::start("Executing tool: ", K::Processing, named),
    Phrase::start("Executing tool ", K::Processing, named),
    Phrase::start("Tool call: ", K::Processing, named),
    Phrase { text: "Error executing tool ", anchor: Anchor::Anywhere, meaning: Meaning::Event(K::Error, named) },
    Phrase { text: "Error calling tool ", anchor: Anchor::Anywhere, meaning: Meaning::Event(K::Error, named) },
];

/// What a word says of a call's progress.
fn step(word: &str) -> Option<K> {
    let letters = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    Some(match word.get(..letters)?.to_ascii_lowercase().as_str() {
        "start" | "started" | "starting" | "begin" | "began" | "called" | "calling" | "invoked" | "received" => {
            K::Processing
        }
        "done" | "end" | "ended" | "finished" | "finish" | "completed" | "complete" | "success" | "succeeded"
        | "ok" | "returned" => K::Finished,
        "cancelled" | "canceled" => K::Cancelled,
        "failed" | "failure" | "error" | "errored" | "exception" | "crashed" | "timeout" => {
            if word.contains("Cancel") || word.contains("cancel") { K::Cancelled } else { K::Error }
        }
        _ => return None,
    })
}

/// The first word of the rest that says how far the call is.
fn first_step(rest: &str) -> Option<K> {
    rest.split_ascii_whitespace().take(6).find_map(|word| match word.split_once('=') {
        None => step(word),
        Some(("status" | "event" | "phase" | "state" | "outcome", v)) => step(v),
        Some(_) => None,
    })
}

fn said<'t>(before: &'t str, rest: &'t str, tool: &'t str) -> Said<'t> {
    Said {
        method: Some("tools/call"),
        tool: Some(tool),
        session: fields::value(before, &["session", "session_id", "sid"]).and_then(fields::session),
        rpc_id: fields::value(before, &["id", "request_id", "rpc_id"]).and_then(fields::rpc_id),
        duration_ns: fields::stated_duration(rest),
        ..Said::default()
    }
}

/// `tool=NAME step …`: without a step word it says too little.
fn tool_step(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    let tool = fields::name(text.get(end..)?)?;
    let rest = text.get(end + tool.len()..).unwrap_or_default();
    Some(Said { kind: Some(first_step(rest)?), ..said(text.get(..start)?, rest, tool) })
}

/// `tools/call id=3 tool=NAME step`.
fn rpc_step(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    let rest = text.get(end..)?;
    let tool = fields::value(rest, &["tool", "name", "tool_name"]).and_then(fields::name)?;
    let kind = first_step(rest).unwrap_or(K::Processing);
    let mut out = Said { kind: Some(kind), ..said(text.get(..start)?, rest, tool) };
    let own = rest.split_once("tool=").or_else(|| rest.split_once("name=")).map_or("", |(own, _)| own);
    out.rpc_id = out.rpc_id.or_else(|| fields::value(own, &["id"]).and_then(fields::rpc_id));
    Some(out)
}

/// `[tools] NAME key=value`.
fn tagged(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    let rest = text.get(end..)?;
    let tool = fields::name(rest)?;
    let after = rest.get(tool.len()..)?;
    let plausible = after.is_empty() || after.starts_with([' ', ':', '(']);
    let kind = first_step(after).unwrap_or(K::Processing);
    plausible.then(|| Said { kind: Some(kind), ..said(text.get(..start).unwrap_or_default(), after, tool) })
}

fn named(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    let rest = text.get(end..)?;
    let tool = fields::name(rest)?;
    Some(said(text.get(..start)?, rest, tool))
}
