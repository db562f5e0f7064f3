//! The bodies of a finding's calls side by side: what they share is marked, and where a reply has
//! not the keys that its tool's other replies have, that is said.

use super::super::clean::{clean, clean_block};
use super::super::ladder::svg::escape;
use super::super::reindent::reindent;
use super::super::view::View;
use crate::model::report::{Bodies, Call, CallKey, Delivered, Finding};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Characters shown of one body.
const CHARS: usize = 20_000;
/// Fewest characters of a value that is worth marking.
const DISTINCT: usize = 6;
/// Values marked at most in one body.
const MARKS: usize = 64;

/// Writes the bodies, where the report holds any.
pub(super) fn side_by_side(view: &View<'_>, f: &Finding, out: &mut dyn Write) -> io::Result<()> {
    const CALLS: usize = 4;
    if !["crossed/", "orphaned/", "protocol/"].iter().any(|family| f.rule.starts_with(family)) {
        return Ok(());
    }
    let keys: Vec<CallKey> = super::super::finding_calls(f);
    let mut calls: Vec<(&Call, &Bodies)> = Vec::new();
    for call in keys.iter().filter_map(|k| view.call(*k)) {
        if let Some(bodies) = call.bodies.as_ref().filter(|_| !calls.iter().any(|(c, _)| c.key == call.key)) {
            calls.push((call, bodies));
        }
    }
    calls.truncate(CALLS);
    if calls.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h3>Bodies</h3>\n<div class=\"pair\">")?;
    for (call, bodies) in &calls {
        writeln!(out, "<section><h3>{}</h3>", escape(&clean(&view.key_label(call.key))))?;
        body("Request", bodies.request.as_deref(), &[], out)?;
        let asked: Vec<String> = calls.iter().flat_map(|(_, b)| values(b.request.as_deref())).take(MARKS).collect();
        body("Reply on its stream", bodies.reply.as_deref(), &asked, out)?;
        if let Some(text) = shape_note(view, call, bodies) {
            writeln!(out, "<p class=\"warn\">{}</p>", escape(&clean(&text)))?;
        }
        writeln!(out, "</section>")?;
    }
    writeln!(out, "</div>")
}

fn body(title: &str, text: Option<&str>, marked: &[String], out: &mut dyn Write) -> io::Result<()> {
    let Some(text) = text else {
        return writeln!(out, "<p class=\"dim\">{title}: none in the inputs.</p>");
    };
    // Cut before the indentation, so that a huge body costs no more than it shows.
    let cut = text.char_indices().nth(CHARS).map_or(text.len(), |(i, _)| i);
    let (head, tail) = text.split_at(cut);
    let shown = clean_block(&reindent(head), 2 * CHARS);
    write!(out, "<p>{title}</p><pre tabindex=\"0\">{}", highlight(&shown, marked))?;
    if !tail.is_empty() {
        write!(out, "… ({} more bytes)", tail.len())?;
    }
    writeln!(out, "</pre>")
}

/// Escapes `text` and marks every place where one of the values stands.
fn highlight(text: &str, values: &[String]) -> String {
    let mut spans: Vec<(usize, usize)> = values
        .iter()
        .filter(|v| !v.is_empty())
        .flat_map(|v| text.match_indices(v.as_str()).map(|(i, m)| (i, i + m.len())))
        .collect();
    spans.sort_unstable();
    let mut out = String::with_capacity(text.len() + 16);
    let mut done = 0;
    for (from, to) in spans {
        if from < done {
            continue;
        }
        out.push_str(&escape(text.get(done..from).unwrap_or("")));
        out.push_str("<mark>");
        out.push_str(&escape(text.get(from..to).unwrap_or("")));
        out.push_str("</mark>");
        done = to;
    }
    out.push_str(&escape(text.get(done..).unwrap_or("")));
    out
}

/// The distinctive argument values of a request, as they read in JSON.
fn values(request: Option<&str>) -> Vec<String> {
    let Some(Ok(message)) = request.filter(|r| r.len() < 1 << 20).map(serde_json::from_str::<Value>) else {
        return Vec::new();
    };
    let mut out = BTreeSet::new();
    collect(&message["params"]["arguments"], &mut out);
    out.into_iter().collect()
}

fn collect(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|v| collect(v, out)),
        Value::Object(fields) => fields.values().for_each(|v| collect(v, out)),
        Value::String(_) | Value::Number(_) => {
            let text = value.to_string();
            let text = text.trim_matches('"');
            if text.chars().count() >= DISTINCT {
                out.insert(text.to_string());
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Says where the keys of this reply differ from those of another reply to the same tool that
/// was its caller's own.
fn shape_note(view: &View<'_>, call: &Call, bodies: &Bodies) -> Option<String> {
    let tool = call.tool.as_deref()?;
    if call.delivered != Delivered::Foreign {
        return None;
    }
    let sibling =
        view.report.calls.iter().find(|c| {
            c.key != call.key && c.tool == call.tool && c.delivered == Delivered::Own && c.bodies.is_some()
        })?;
    let got = keys(bodies.reply.as_deref())?;
    let usual = keys(sibling.bodies.as_ref()?.reply.as_deref())?;
    let list = |set: &BTreeSet<String>| set.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
    (got != usual).then(|| {
        format!("Keys of this result: {}. {tool}'s own replies ({}) have: {}.", list(&got), sibling.key, list(&usual))
    })
}

/// The keys of a reply's structured content, else of the JSON in its first text, else of its result.
fn keys(reply: Option<&str>) -> Option<BTreeSet<String>> {
    let message: Value = serde_json::from_str(reply.filter(|r| r.len() < 1 << 20)?).ok()?;
    let result = &message["result"];
    let text = result["content"][0]["text"].as_str().and_then(|t| serde_json::from_str::<Value>(t).ok());
    let fields = result["structuredContent"].as_object().or_else(|| text.as_ref()?.as_object()).or(result.as_object());
    Some(fields?.keys().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_values_and_escapes_the_rest() {
        let values = ["projects/alpha".to_string()];
        assert_eq!(highlight("<a> projects/alpha </a>", &values), "&lt;a&gt; <mark>projects/alpha</mark> &lt;/a&gt;");
    }

    #[test]
    fn takes_distinctive_arguments() {
        let request = r#"{"params":{"name":"x","arguments":{"key":"projects/alpha","n":1,"deep":[{"id":1234567}]}}}"#;
        assert_eq!(values(Some(request)), ["1234567", "projects/alpha"]);
        assert!(values(Some("not json")).is_empty());
    }
}
