//! A report with what renderers look up in it: names, short forms, labels.

use crate::model::id::RpcId;
use crate::model::place::InputId;
use crate::model::report::{Call, CallKey, Evidence, Finding, Report};
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// Fewest characters to which a session id is shortened.
const SESSION_CHARS: usize = 8;

/// A report and its look-up tables.
pub struct View<'a> {
    /// The report.
    pub report: &'a Report,
    calls: FxHashMap<CallKey, usize>,
    names: Vec<&'a str>,
    session_chars: usize,
}

impl<'a> View<'a> {
    /// Builds the look-up tables.
    pub fn new(report: &'a Report) -> View<'a> {
        View {
            report,
            calls: report.calls.iter().enumerate().map(|(i, c)| (c.key, i)).collect(),
            names: short_names(report.inputs.iter().map(|i| i.name.as_str()).collect()),
            session_chars: session_chars(report),
        }
    }

    /// The call with this key.
    pub fn call(&self, key: CallKey) -> Option<&'a Call> {
        self.calls.get(&key).and_then(|i| self.report.calls.get(*i))
    }

    /// An input's name without its folders, where that is unique; else as given.
    pub fn input(&self, input: InputId) -> &'a str {
        self.names.get(input as usize).copied().unwrap_or("?")
    }

    /// An input's name as given.
    pub fn input_full(&self, input: InputId) -> &'a str {
        self.report.inputs.get(input as usize).map_or("?", |i| &i.name)
    }

    /// A session id cut to what tells it from every other one of the report.
    pub fn session(&self, id: &str) -> String {
        match id.char_indices().nth(self.session_chars) {
            Some((cut, _)) if id.chars().count() > self.session_chars + 1 => format!("{}…", &id[..cut]),
            _ => id.to_string(),
        }
    }

    /// `entity_update id 3`: the tool, else the method, and the id.
    pub fn call_label(&self, call: &Call) -> String {
        label(call.tool.as_deref().or(call.method.as_deref()), call.id.as_ref())
    }

    /// `entity_update id 3 (c9)`.
    pub fn key_label(&self, key: CallKey) -> String {
        match self.call(key) {
            Some(call) => format!("{} ({key})", self.call_label(call)),
            None => key.to_string(),
        }
    }

    /// `backend.pcap:57`: file and frame, line or byte offset.
    pub fn evidence(&self, e: &Evidence) -> String {
        self.evidence_in(e, |i| self.input(i))
    }

    /// As [`View::evidence`] with the name as given on the command line.
    pub fn evidence_full(&self, e: &Evidence) -> String {
        self.evidence_in(e, |i| self.input_full(i))
    }

    fn evidence_in(&self, e: &Evidence, name: impl Fn(InputId) -> &'a str) -> String {
        let file = e.input.map_or("", name);
        match (e.frame.or(e.line), e.offset) {
            (Some(n), _) => format!("{file}:{n}"),
            (None, Some(o)) => format!("{file}@{o}"),
            (None, None) => file.to_string(),
        }
    }

    /// All places a finding cites, each once, in order.
    pub fn places(&self, finding: &Finding, full: bool) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for e in &finding.evidence {
            let place = if full { self.evidence_full(e) } else { self.evidence(e) };
            if !place.is_empty() && seen.insert(place.clone()) {
                out.push(place);
            }
        }
        out
    }

    /// How long a call took from being sent to its reply, ns.
    pub fn latency_ns(&self, call: &Call) -> Option<i64> {
        Some(call.replied?.since(call.sent?))
    }
}

/// `entity_update id 3`; a call without either name is `call`.
pub fn label(name: Option<&str>, id: Option<&RpcId>) -> String {
    let name = name.unwrap_or("call");
    id.map_or_else(|| name.to_string(), |id| format!("{name} id {id}"))
}

/// `2026-11-29 19:38:46.448`: a time for people, in UTC, to milliseconds at most.
pub fn moment(t: Time) -> String {
    let text = t.coarsened(3).to_string();
    text.trim_end_matches('Z').replacen('T', " ", 1)
}

/// `19:38:46.448`: the time of day in UTC, to milliseconds at most.
pub fn clock(t: Time) -> String {
    let text = moment(t);
    text.split_once(' ').map_or(text.clone(), |(_, clock)| clock.to_string())
}

/// A length of time as people say it: `387 ms`, `6.02 s`, `11 min 20 s`, `2 h 5 min`.
pub fn span(ns: i64) -> String {
    if ns < 0 {
        return format!("−{}", span(ns.saturating_neg()));
    }
    let ms = ns as f64 / 1e6;
    match ns {
        0..10_000_000 => format!("{ms:.1} ms"),
        10_000_000..999_500_000 => format!("{ms:.0} ms"),
        999_500_000..99_995_000_000 => format!("{:.2} s", ms / 1e3),
        _ => {
            let s = (ns + 500_000_000) / 1_000_000_000;
            match s {
                0..3600 => format!("{} min {} s", s / 60, s % 60),
                3600..172_800 => format!("{} h {} min", s / 3600, s % 3600 / 60),
                _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
            }
        }
    }
}

/// A size as people say it: `188 B`, `1.4 KiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: &[&str] = &["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = "B";
    for u in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = u;
    }
    format!("{value:.1} {unit}")
}

fn short_names(names: Vec<&str>) -> Vec<&str> {
    let base = |n: &'_ str| n.rfind('/').map_or(0, |i| i + 1);
    let mut times: FxHashMap<&str, usize> = FxHashMap::default();
    for n in &names {
        *times.entry(&n[base(n)..]).or_default() += 1;
    }
    names
        .iter()
        .map(|n| {
            let short = &n[base(n)..];
            if short.is_empty() || times.get(short).is_some_and(|t| *t > 1) { n } else { short }
        })
        .collect()
}

/// The number of characters that tells all session ids apart, at least [`SESSION_CHARS`].
fn session_chars(report: &Report) -> usize {
    let mut ids: Vec<&str> = report.sessions.iter().filter_map(|s| s.session.as_deref()).collect();
    ids.sort_unstable();
    ids.dedup();
    let common = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let longest = ids.iter().zip(ids.iter().skip(1)).map(|(a, b)| common(a, b) + 1).max().unwrap_or(0);
    longest.max(SESSION_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes_read_well() {
        for (ns, text) in [
            (1_234_567, "1.2 ms"),
            (387_400_000, "387 ms"),
            (6_016_000_000, "6.02 s"),
            (680_000_000_000, "11 min 20 s"),
            (7_500_000_000_000, "2 h 5 min"),
            (-5_000_000, "−5.0 ms"),
        ] {
            assert_eq!(span(ns), text);
        }
        assert_eq!((size(188).as_str(), size(1434).as_str()), ("188 B", "1.4 KiB"));
    }

    #[test]
    fn equal_base_names_keep_their_folders() {
        assert_eq!(short_names(vec!["a/x.pcap", "b/x.pcap", "c/y.log", "-"]), ["a/x.pcap", "b/x.pcap", "y.log", "-"]);
    }
}
