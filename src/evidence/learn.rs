//! What of the inputs must stay as it is: tool names, the names and enums of schemas, JSON-RPC ids,
//! numbers, ports, versions. And what must not: numbers in strings and credentials.

use super::gather::Caught;
use super::ranges::{self, What};
use super::redact::{Known, SHORT_DIGITS, words};
use crate::model::exchange::Peer;
use crate::model::id::RpcId;
use crate::model::report::Report;
use crate::model::time::Time;
use regex::bytes::Regex;
use rustc_hash::FxHashSet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Headers whose value is a credential.
const CREDENTIALS: &[&str] =
    &["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token"];
/// Headers whose numbers are no secrets.
const PLAIN: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "age",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "retry-after",
    "server",
    "user-agent",
    "vary",
];
/// Days before the first and after the last record whose dates are kept.
const NEAR_NS: i64 = 86_400_000_000_000;
/// Nesting of JSON that is followed.
const DEPTH: usize = 64;

/// Learns from the report and from the exchanges that go into a bundle.
pub struct Learner<'a> {
    /// What was learnt.
    pub known: Known,
    /// Why words are kept, and how many of each.
    pub reasons: BTreeMap<&'static str, FxHashSet<String>>,
    keep: &'a [String],
    redact: &'a [Regex],
}

impl<'a> Learner<'a> {
    /// Knows nothing yet. `keep` are fields (JSON keys, headers) whose words are kept, `redact`
    /// what is always replaced.
    pub fn new(keep: &'a [String], redact: &'a [Regex]) -> Learner<'a> {
        Learner { known: Known::default(), reasons: BTreeMap::new(), keep, redact }
    }

    fn keep(&mut self, why: &'static str, text: &str) {
        self.reasons.entry(why).or_default().insert(text.to_owned());
        for word in words(text.as_bytes()) {
            if word.bytes().all(|b| b.is_ascii_digit()) {
                self.known.numbers.insert(word.clone());
            } else {
                self.known.kept.insert(word.to_lowercase());
            }
        }
    }

    /// Names and ids that the report shows.
    pub fn report(&mut self, report: &Report) {
        for call in &report.calls {
            call.tool.iter().for_each(|tool| self.keep("tool names", tool));
            call.method.iter().for_each(|method| self.keep("methods", method));
            let ids = call.sightings.iter().filter_map(|s| s.reply_id.as_ref()).chain(&call.id);
            for id in ids {
                match id {
                    RpcId::Str(text) | RpcId::Other(text) => self.keep("JSON-RPC ids", text),
                    RpcId::Int(n) => self.keep("JSON-RPC ids", &n.to_string()),
                    RpcId::Null => {}
                }
            }
        }
        for session in &report.sessions {
            session.revision.iter().for_each(|name| self.keep("protocol revisions", name));
            session.session.iter().for_each(|id| self.session(id));
        }
        let times = report.inputs.iter().flat_map(|i| i.first.into_iter().chain(i.last));
        let (first, last) = (times.clone().min(), times.max());
        self.known.days = first.zip(last).map(|(a, b)| (a.plus_ns(-NEAR_NS), b.plus_ns(NEAR_NS)));
    }

    fn session(&mut self, id: &str) {
        self.known.sessions.extend(words(id.as_bytes()).into_iter().filter(|w| w.len() >= 8));
    }

    /// The headers and messages of an exchange.
    pub fn exchange(&mut self, caught: &Caught) {
        let x = &caught.exchange;
        self.port(x.client);
        self.port(x.server);
        let request = x.request.iter().flat_map(|r| &r.headers);
        for (name, value) in request.chain(x.response.iter().flat_map(|r| &r.headers)) {
            self.header(name, value);
        }
        if let Some((_, query)) = x.request.as_ref().and_then(|r| r.target.split_once('?')) {
            self.secret_numbers(query.as_bytes());
            self.forced(query.as_bytes());
        }
        for message in &caught.messages {
            self.message(&message.data, message.from);
        }
    }

    fn port(&mut self, address: SocketAddr) {
        self.known.numbers.insert(address.port().to_string());
    }

    fn header(&mut self, name: &str, value: &str) {
        self.forced(value.as_bytes());
        if self.keep.iter().any(|k| k.eq_ignore_ascii_case(name)) {
            self.keep("--keep", value);
        }
        if name == "mcp-session-id" {
            self.session(value);
        }
        if CREDENTIALS.contains(&name) {
            self.secret_numbers(value.as_bytes());
            self.known.secrets.extend(words(value.as_bytes()));
        } else if !PLAIN.contains(&name) {
            self.secret_numbers(value.as_bytes());
        }
    }

    fn message(&mut self, data: &[u8], _from: Peer) {
        self.forced(data);
        let Ok(json) = serde_json::from_slice::<Value>(data) else {
            return self.secret_numbers(data);
        };
        self.numbers(data);
        self.value(&json, 0);
    }

    /// Numbers that stand as such are kept, those in strings are not.
    fn numbers(&mut self, json: &[u8]) {
        let (mut at, mut start, mut in_string) = (0, 0, false);
        while let Some(b) = json.get(at) {
            match b {
                b'\\' if in_string => at += 1,
                b'"' => {
                    let part = json.get(start..at).unwrap_or_default();
                    if in_string {
                        self.secret_numbers(part);
                    } else {
                        let found = words(part);
                        self.reasons.entry("numbers").or_default().extend(found.iter().cloned());
                        self.known.numbers.extend(found);
                    }
                    in_string = !in_string;
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        self.known.numbers.extend(words(json.get(start..).unwrap_or_default()));
    }

    fn secret_numbers(&mut self, text: &[u8]) {
        let mut text = text.to_vec();
        let near = |day: Time| self.known.days.is_some_and(|(from, to)| from <= day && day <= to);
        for range in ranges::find(&text.clone(), false) {
            if matches!(range.what, What::Date(day) if near(day)) {
                text.get_mut(range.from..range.to).unwrap_or_default().fill(b' ');
            }
        }
        let years = self.known.days.map(|(a, b)| [a, b].map(|t| t.to_string().get(..4).unwrap_or("").to_owned()));
        let is_year = |w: &String| years.as_ref().is_some_and(|y| y.contains(w));
        let numbers =
            words(&text).into_iter().filter(|w| w.len() > SHORT_DIGITS && w.bytes().all(|b| b.is_ascii_digit()));
        self.known.secret_numbers.extend(numbers.filter(|w| !is_year(w)));
    }

    /// What `--redact` names.
    pub fn forced(&mut self, text: &[u8]) {
        for found in self.redact.iter().flat_map(|pattern| pattern.find_iter(text)) {
            let text = String::from_utf8_lossy(found.as_bytes());
            if let Ok(address) = text.parse() {
                self.known.forced_addresses.insert(address);
                continue;
            }
            // A short number alone would take times and counts with it.
            let is_short = |w: &String| w.len() <= SHORT_DIGITS && w.bytes().all(|b| b.is_ascii_digit());
            let all = words(found.as_bytes()).into_iter().filter(|w| !is_short(w));
            self.known.forced.extend(all.map(|w| w.to_lowercase()));
        }
    }

    fn value(&mut self, json: &Value, depth: usize) {
        if depth > DEPTH {
            return;
        }
        match json {
            Value::Array(items) => items.iter().for_each(|item| self.value(item, depth + 1)),
            Value::Object(members) => {
                for (key, value) in members {
                    match key.as_str() {
                        "inputSchema" | "outputSchema" | "requestedSchema" => self.schema(value, depth + 1),
                        "protocolVersion" => self.all("protocol revisions", value, depth + 1),
                        "tools" | "prompts" => self.names(value),
                        _ => {}
                    }
                    if self.keep.iter().any(|k| k == key) {
                        self.all("--keep", value, depth + 1);
                    }
                    self.value(value, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Every word of a value.
    fn all(&mut self, why: &'static str, json: &Value, depth: usize) {
        match json {
            Value::String(text) => self.keep(why, text),
            Value::Array(items) if depth < DEPTH => items.iter().for_each(|i| self.all(why, i, depth + 1)),
            Value::Object(members) if depth < DEPTH => members.values().for_each(|v| self.all(why, v, depth + 1)),
            _ => {}
        }
    }

    fn names(&mut self, list: &Value) {
        for name in list.as_array().into_iter().flatten().filter_map(|item| item.get("name")?.as_str()) {
            self.keep("tool names", name);
        }
    }

    /// The names and enums of a JSON Schema; its texts are replaced as all others.
    fn schema(&mut self, schema: &Value, depth: usize) {
        const WHY: &str = "names, enums and formats of schemas";
        let (Value::Object(members), true) = (schema, depth < DEPTH) else {
            if let (Value::Array(items), true) = (schema, depth < DEPTH) {
                items.iter().for_each(|item| self.schema(item, depth + 1));
            }
            return;
        };
        for (key, value) in members {
            match key.as_str() {
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    for (name, inner) in value.as_object().into_iter().flatten() {
                        self.keep(WHY, name);
                        self.schema(inner, depth + 1);
                    }
                }
                "enum" | "const" | "format" | "pattern" | "required" | "$ref" | "type" | "dependentRequired" => {
                    self.all(WHY, value, depth + 1);
                }
                _ => self.schema(value, depth + 1),
            }
        }
    }
}
