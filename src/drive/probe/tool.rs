//! Tools that can be told apart: which of a server's tools give back what they were given, which
//! can be told to take their time, and with what arguments.

use crate::drive::client::Client;
use crate::drive::message::{self, Reply};
use crate::drive::session::Session;
use crate::drive::tags::Tags;
use crate::model::id::RpcId;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Tools that are tried.
const TRIED: usize = 24;
/// Depth to which an argument schema is followed.
const DEPTH: usize = 4;

/// Stands for the call's tag in arguments.
pub const TAG: &str = "{tag}";
/// Stands alone for the delay in seconds.
pub const SECONDS: &str = "{seconds}";
/// Stands alone for the delay in milliseconds.
pub const MILLISECONDS: &str = "{milliseconds}";

/// A tool that probing calls.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Arguments with [`TAG`], [`SECONDS`] and [`MILLISECONDS`] in place of values.
    pub arguments: Value,
    /// Its reply holds the tag.
    pub echoes: bool,
    /// It can be told to take its time.
    pub delays: bool,
    /// How long it took alone, ms.
    pub lone_ms: f64,
    /// It answered with an error (which may echo as well).
    pub is_error: bool,
}

impl Tool {
    /// `params` of a call.
    pub fn params(&self, tag: &str, delay: Duration) -> Value {
        json!({"name": self.name, "arguments": fill(&self.arguments, tag, delay)})
    }
}

fn fill(template: &Value, tag: &str, delay: Duration) -> Value {
    match template {
        Value::String(s) if s == SECONDS => json!(delay.as_secs_f64()),
        Value::String(s) if s == MILLISECONDS => json!(delay.as_millis() as u64),
        Value::String(s) => Value::String(s.replace(TAG, tag)),
        Value::Array(all) => all.iter().map(|v| fill(v, tag, delay)).collect(),
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), fill(v, tag, delay))).collect(),
        other => other.clone(),
    }
}

/// What the user said about tools.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Tools to call; empty: those that are found.
    pub tools: Vec<String>,
    /// Their arguments, in the same order; missing ones are made up.
    pub arguments: Vec<Value>,
    /// Names or patterns of tools that may be called though the server does not mark them read-only.
    pub allow: Vec<String>,
}

/// The tools to probe with, and what was found on the way.
#[derive(Clone, Debug, Default)]
pub struct Kit {
    /// In order of preference.
    pub tools: Vec<Tool>,
    /// Indices of tools whose reply holds the tag.
    pub echo: Vec<usize>,
    /// Indices of others.
    pub plain: Vec<usize>,
    /// A tool that echoes and can be told to take its time.
    pub slow: Option<usize>,
    /// Tools that the server does not mark read-only and that were left alone.
    pub left_alone: Vec<String>,
    /// Tools that were chosen and that the server does not list.
    pub missing: Vec<String>,
    /// Tools that were tried and are of no use, with the reason.
    pub useless: Vec<(String, String)>,
}

impl Kit {
    /// The tool at `index`.
    pub fn tool(&self, index: usize) -> Option<&Tool> {
        self.tools.get(index)
    }
}

/// May the tool be called: because the server marks it read-only, or because the user allows it?
pub fn may_call(tool: &Value, name: &str, allow: &[String]) -> bool {
    let is_read_only = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool) == Some(true);
    is_read_only || allow.iter().any(|a| crate::model::glob::glob(a, name))
}

/// How tools are tried.
pub struct Trial<'a> {
    /// The client.
    pub client: &'a Client,
    /// Its session.
    pub session: &'a Session,
    /// Where tags come from.
    pub tags: &'a Tags,
    /// How long to wait.
    pub patience: Duration,
    /// How long a slow call is to take.
    pub delay: Duration,
}

impl Trial<'_> {
    /// Calls each tool alone and sees what comes back.
    pub fn find(&self, listed: &[Value], choice: &Choice) -> Kit {
        let mut kit = Kit::default();
        let mut id = 1000;
        let has = |name: &String| listed.iter().any(|t| t.get("name").and_then(Value::as_str) == Some(name));
        kit.missing = choice.tools.iter().filter(|t| !has(t)).cloned().collect();
        for tool in listed {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let chosen = choice.tools.iter().position(|t| t == name);
            if (!choice.tools.is_empty() && chosen.is_none()) || self.client.stop.is_set() {
                continue;
            }
            if !may_call(tool, name, &choice.allow) {
                kit.left_alone.push(name.to_owned());
                continue;
            }
            if kit.tools.len() + kit.useless.len() >= TRIED {
                kit.useless.push((name.to_owned(), format!("not tried: {TRIED} tools were")));
                continue;
            }
            match chosen.and_then(|c| choice.arguments.get(c)) {
                Some(arguments) => {
                    let tried = self.call(name, arguments.clone(), &mut id);
                    kit.keep(name, tried);
                }
                None => {
                    let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
                    let mut tried = self.call(name, arguments(schema, false), &mut id);
                    // An optional string may be what it gives back.
                    if tried.as_ref().map_or(true, |t| !t.echoes) {
                        let more = arguments(schema, true);
                        if more != arguments(schema, false) {
                            tried = self.call(name, more, &mut id).or(tried);
                        }
                    }
                    kit.keep(name, tried);
                }
            }
        }
        kit.sort();
        kit
    }

    fn call(&self, name: &str, arguments: Value, id: &mut i64) -> Result<Tool, String> {
        let mut tool =
            Tool { name: name.to_owned(), arguments, echoes: false, delays: false, lone_ms: 0.0, is_error: false };
        let (reply, tag, took) = self.once(&tool, Duration::ZERO, id)?;
        tool.lone_ms = took;
        tool.is_error = reply.is_error;
        tool.echoes = self.tags.find(&reply.raw).contains(&tag) && !reply.is_rpc_error;
        if reply.is_rpc_error {
            let error = reply.error().unwrap_or_default();
            return Err(error.get("message").and_then(Value::as_str).unwrap_or("an error").to_owned());
        }
        let text = tool.arguments.to_string();
        if tool.echoes && (text.contains(SECONDS) || text.contains(MILLISECONDS)) {
            let (_, _, slow) = self.once(&tool, self.delay, id)?;
            let is_behind = |quick: f64| slow >= quick + self.delay.as_secs_f64() * 700.0;
            tool.delays = is_behind(took);
            // The first call of a server may be slow for reasons of its own.
            if !tool.delays {
                let (_, _, again) = self.once(&tool, Duration::ZERO, id)?;
                tool.delays = is_behind(again);
                tool.lone_ms = took.min(again);
            }
        }
        Ok(tool)
    }

    fn once(&self, tool: &Tool, delay: Duration, id: &mut i64) -> Result<(Reply, u32, f64), String> {
        *id += 1;
        let tag = self.tags.take();
        let params = tool.params(&self.tags.text(tag), delay);
        let ask = self.session.ask(&RpcId::Int(*id), "tools/call", &params);
        let start = Instant::now();
        let heard = self.client.once(&ask, self.patience + delay).map_err(|e| e.to_string())?;
        let took = start.elapsed().as_secs_f64() * 1000.0;
        let reply = message::replies(&heard).into_iter().next();
        let reply =
            reply.ok_or_else(|| heard.status.map_or("no answer".into(), |s| format!("no reply, status {s}")))?;
        Ok((reply, tag, took))
    }
}

impl Kit {
    fn keep(&mut self, name: &str, tried: Result<Tool, String>) {
        match tried {
            Ok(tool) => self.tools.push(tool),
            Err(why) => self.useless.push((name.to_owned(), why)),
        }
    }

    /// Echoing tools first, those without errors before others, fast before slow.
    fn sort(&mut self) {
        self.tools.sort_by(|a, b| {
            let key = |t: &Tool| (!t.echoes, t.is_error);
            key(a).cmp(&key(b)).then(a.lone_ms.total_cmp(&b.lone_ms))
        });
        let all = self.tools.iter().enumerate();
        let which = |wanted: bool| all.clone().filter(move |(_, t)| t.echoes == wanted).map(|(i, _)| i);
        let (echo, plain) = (which(true).take(4).collect(), which(false).take(2).collect());
        (self.echo, self.plain) = (echo, plain);
        self.slow = self.tools.iter().position(|t| t.delays);
    }
}

/// Arguments that satisfy a schema, with the tag in every string that may hold it. `all`: optional
/// ones as well.
fn arguments(schema: &Value, all: bool) -> Value {
    let made = object(schema, all, DEPTH);
    if made.is_object() { made } else { json!({}) }
}

fn object(schema: &Value, all: bool, depth: usize) -> Value {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut out = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(unit) = delay_unit(name, property) {
            out.insert(name.clone(), unit.into());
        } else if required.contains(&name.as_str()) || (all && is_plain_string(property)) {
            out.insert(name.clone(), value(property, all, depth));
        }
    }
    Value::Object(out)
}

fn value(schema: &Value, all: bool, depth: usize) -> Value {
    if depth == 0 {
        return Value::Null;
    }
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("enum")?.as_array()?.first()) {
        return fixed.clone();
    }
    let union = ["anyOf", "oneOf", "allOf"].iter().find_map(|k| schema.get(*k)?.as_array()?.first());
    match (kind(schema), union) {
        (Some("string"), _) if is_plain_string(schema) => TAG.into(),
        (Some("string"), _) => example(schema),
        (Some("integer" | "number"), _) => schema.get("default").or(schema.get("minimum")).cloned().unwrap_or(json!(1)),
        (Some("boolean"), _) => schema.get("default").cloned().unwrap_or(json!(false)),
        (Some("array"), _) => match schema.get("items") {
            Some(items) => json!([value(items, all, depth - 1)]),
            None => json!([]),
        },
        (Some("object"), _) => object(schema, all, depth - 1),
        (_, Some(first)) => value(first, all, depth - 1),
        // No type: anything may come.
        (None, None) => TAG.into(),
        _ => Value::Null,
    }
}

fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(s) => Some(s),
        Value::Array(all) => all.iter().filter_map(Value::as_str).find(|t| *t != "null"),
        _ => None,
    }
}

/// A string that may be any word.
fn is_plain_string(schema: &Value) -> bool {
    let has = |key: &str| schema.get(key).is_some();
    let is_short = schema.get("maxLength").and_then(Value::as_u64).is_some_and(|n| n < 16);
    kind(schema) == Some("string") && !has("enum") && !has("const") && !has("format") && !has("pattern") && !is_short
}

fn example(schema: &Value) -> Value {
    if let Some(given) = schema.get("default").or_else(|| schema.get("examples")?.as_array()?.first()) {
        return given.clone();
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-01".into(),
        Some("date-time") => "2026-01-01T00:00:00Z".into(),
        Some("uri" | "url") => format!("http://127.0.0.1/{TAG}").into(),
        Some("email") => format!("{TAG}@example.org").into(),
        Some("uuid") => "00000000-0000-4000-8000-000000000000".into(),
        _ => "a".into(),
    }
}

/// A number that tells the tool how long to take, by its name.
fn delay_unit(name: &str, schema: &Value) -> Option<&'static str> {
    if !matches!(kind(schema), Some("integer" | "number")) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let is_delay = ["delay", "sleep", "wait", "duration", "pause", "latency"].iter().any(|w| name.contains(w));
    // `items` ends with "ms" too.
    let is_ms = name == "ms"
        || name.ends_with("_ms")
        || name.ends_with("Ms")
        || name.contains("milli")
        || name.contains("msec");
    let is_seconds = matches!(name.as_str(), "seconds" | "secs" | "sec");
    match (is_delay, is_ms, is_seconds) {
        (_, true, _) if is_delay || name.len() <= 12 => Some(MILLISECONDS),
        // Whole seconds are too long to be told.
        (true, false, _) | (_, _, true) if kind(schema) == Some("number") => Some(SECONDS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_satisfy_the_schema() {
        let schema = json!({"type": "object", "required": ["text", "kind", "n", "list", "when"], "properties": {
            "text": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "n": {"type": "integer", "minimum": 3},
            "list": {"type": "array", "items": {"type": ["null", "string"]}},
            "when": {"type": "string", "format": "date"}, "note": {"type": "string"},
            "delay": {"type": "number", "default": 0}, "delay_ms": {"type": "integer"}, "items": {"type": "integer"},
        }});
        let made = arguments(&schema, false);
        assert_eq!(
            made,
            json!({"text": TAG, "kind": "a", "n": 3, "list": [TAG], "when": "2026-01-01", "delay": SECONDS, "delay_ms": MILLISECONDS})
        );
        assert_eq!(arguments(&schema, true)["note"], TAG);
        let filled = fill(&made, "x1", Duration::from_millis(250));
        assert_eq!((&filled["text"], &filled["delay"], &filled["delay_ms"]), (&json!("x1"), &json!(0.25), &json!(250)));
        assert_eq!(arguments(&Value::Null, true), json!({}));
    }

    #[test]
    fn only_what_is_read_only_or_allowed() {
        let marked = json!({"annotations": {"readOnlyHint": true}});
        assert!(may_call(&marked, "a", &[]));
        assert!(!may_call(&json!({}), "a", &[]));
        assert!(!may_call(&json!({"annotations": {"readOnlyHint": "true"}}), "a", &[]));
        assert!(may_call(&json!({}), "abc", &["a*".into()]));
    }
}
