//! Sentences over the whole report: how much could be read, and what came out.

use super::clean::{clean, clean_short};
use super::table::{counted, grouped};
use super::tables::{confidence_name, severity_name};
use super::view::View;
use crate::model::problem::ProblemKind;
use crate::model::report::{Finding, InputInfo, NO_REQUESTS, Report, Severity};

/// How much could be read: `12 calls in 1 session; 0 of 3 TLS connections readable: no keys`.
pub fn coverage_line(report: &Report) -> String {
    let s = &report.summary;
    let mut out = format!("{} in {}", counted(s.calls, "call"), counted(s.sessions, "session"));
    let no_keys = without_keys(report);
    let connections = s.tls_connections.max(no_keys);
    if connections > 0 {
        let of = counted(connections, "TLS connection");
        out.push_str(&format!("; {} of {of} readable", grouped(s.tls_readable)));
        if s.tls_readable < connections && no_keys > 0 {
            out.push_str(": no keys");
        }
    }
    let problems: u64 = report.inputs.iter().map(|i| problems_beside_keys(i, connections > 0)).sum();
    let whole = report.inputs.iter().filter(|i| i.problems.is_empty()).count();
    let inputs = report.inputs.len() as u64;
    if problems > 0 {
        out.push_str(&format!("; {} of {} read without problems", whole, counted(inputs, "input")));
        out.push_str(&format!(", {} counted", counted(problems, "problem")));
    } else if connections == 0 || whole as u64 == inputs {
        out.push_str(&format!("; {} read in full", counted(inputs, "input")));
    }
    if !report.troubles.is_empty() {
        out.push_str(&format!("; {} not read", counted(report.troubles.len() as u64, "input")));
    }
    out
}

/// TLS connections that could not be read for want of keys.
fn without_keys(report: &Report) -> u64 {
    report.inputs.iter().map(|i| i.problems.count(ProblemKind::NoKeys)).sum()
}

/// Problems of an input, without the missing keys that the TLS part of the line already says.
fn problems_beside_keys(input: &InputInfo, keys_said: bool) -> u64 {
    input.problems.iter().filter(|p| !(keys_said && p.kind == ProblemKind::NoKeys)).map(|p| p.count).sum()
}

/// Every problem of every input as one line: `backend.pcap: truncated-record ×1 at frame 97: …`.
pub fn problem_lines(view: &View<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for (n, input) in view.report.inputs.iter().enumerate() {
        for p in input.problems.iter() {
            let mut line = format!("{}: {} ×{}", clean(view.input(n as u32)), p.kind.name(), grouped(p.count));
            if let Some(place) = &p.place {
                line.push_str(&format!(", {} {}", if p.count > 1 { "first at" } else { "at" }, clean(place)));
            }
            if let Some(text) = &p.text {
                line.push_str(&format!(": {}", clean_short(text, 300)));
            }
            out.push(line);
        }
    }
    out
}

/// What came out, in one sentence; always says what was looked at.
pub fn verdict(report: &Report) -> String {
    let s = &report.summary;
    let calls = format!("{} over {}", counted(s.calls, "call"), counted(s.sessions, "session"));
    let known = match s.known {
        0 => String::new(),
        n => format!(" {} left out as already known.", counted(n, "finding")),
    };
    let unseen = match s.unobserved {
        0 => String::new(),
        1 => " The end of 1 call is not in the inputs: nothing is claimed about it.".to_string(),
        n => format!(" The ends of {} are not in the inputs: nothing is claimed about them.", counted(n, "call")),
    };
    if report.findings.is_empty() {
        if s.calls == 0 {
            return format!("Nothing found, and no call to follow: {calls}.{known}{unseen}{}", instead(report));
        }
        return format!("Nothing found: {calls} followed.{known}{unseen}");
    }
    let parts: Vec<String> = [Severity::High, Severity::Medium, Severity::Low]
        .into_iter()
        .map(|severity| (severity, report.findings.iter().filter(|f| f.severity == severity).count()))
        .filter(|(_, n)| *n > 0)
        .map(|(severity, n)| format!("{} {}", grouped(n as u64), severity_name(severity)))
        .collect();
    let found = counted(report.findings.len() as u64, "finding");
    format!("{found} ({}) in {calls} followed.{known}{unseen}", parts.join(", "))
}

/// What inputs without requests hold, so that nothing found is not taken for nothing there.
fn instead(report: &Report) -> String {
    let told = report.inputs.iter().filter(|i| i.shows.starts_with(NO_REQUESTS));
    told.map(|i| format!(" {} holds {}.", clean(&i.name), clean(&i.shows))).collect()
}

/// `certain, high, fault: server, cleared: proxy`.
pub fn standing(f: &Finding) -> String {
    let names = |hops: &[crate::model::place::Hop]| hops.iter().map(|h| h.name()).collect::<Vec<_>>().join(", ");
    let mut out = format!("{}, {}", confidence_name(f.confidence), severity_name(f.severity));
    match f.fault.as_slice() {
        [] => out.push_str("; no fault proved"),
        hops => out.push_str(&format!("; fault: {}", names(hops))),
    }
    if !f.cleared.is_empty() {
        out.push_str(&format!("; cleared: {}", names(&f.cleared)));
    }
    out
}

/// Share of what the inputs hold that could be followed, percent: the lower of TLS connections
/// that could be read and calls whose end the inputs show. Nothing to follow is 0.
pub fn coverage_percent(report: &Report) -> f64 {
    let s = &report.summary;
    if s.calls == 0 {
        return 0.0;
    }
    let calls = s.calls.saturating_sub(s.unobserved) as f64 * 100.0 / s.calls as f64;
    match s.tls_connections.max(without_keys(report)) {
        0 => calls,
        n => calls.min(s.tls_readable as f64 * 100.0 / n as f64),
    }
}
