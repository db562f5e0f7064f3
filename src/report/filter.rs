//! `--since`, `--until`, `--session`, `--tool`, `--rule`, `--min-confidence`: what of a report is
//! wanted. What is left is a whole report: its counts fit its lists, and every key names a call.

use super::cited;
use crate::model::glob::glob;
use crate::model::report::{Call, CallKey, Confidence, Finding, Outcome, Report, Window};
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What is wanted; empty lists and `None` want everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// From this time on.
    pub since: Option<TimeBound>,
    /// Up to this time.
    pub until: Option<TimeBound>,
    /// Session ids or their beginnings.
    pub sessions: Vec<String>,
    /// Globs over tool (or method) names.
    pub tools: Vec<String>,
    /// Globs over rule names.
    pub rules: Vec<String>,
    /// Least confidence of findings.
    pub min_confidence: Option<Confidence>,
}

/// A bound as given on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBound {
    /// An instant.
    At(Time),
    /// A time of day in UTC, ns since midnight: on the day on which the inputs begin (for the end
    /// of a range, the first such time not before its beginning).
    Clock(i64),
}

/// Session and tool (or method) of every call.
type About = FxHashMap<CallKey, (Option<Arc<str>>, Option<Arc<str>>)>;

const DAY_NS: i64 = 86_400_000_000_000;

impl Filter {
    /// Takes out of `report` what is not wanted.
    pub fn apply(&self, report: &mut Report) {
        let range = self.range(report);
        let about: About = report.calls.iter().map(|c| (c.key, (c.session.clone(), named(c)))).collect();
        let Report { findings, windows, .. } = report;
        findings.retain(|f| self.wants_rule(f) && range.meets(f.at, f.until.or(f.at)) && self.concerns(f, &about));
        windows.retain(|w| {
            self.wants_any_rule("stale/404-window")
                && range.meets(w.opened, w.recovered.or(w.opened))
                && self.wants_sessions([&w.stale_session, &w.new_session])
                && self.window_tool(w, &about)
        });
        if self.narrows() {
            self.narrow(report, range);
        }
        report.summary.findings = report.findings.len() as u64;
    }

    /// Does it concern calls, sessions and exchanges, not findings alone?
    pub fn narrows(&self) -> bool {
        self.since.is_some() || self.until.is_some() || !self.sessions.is_empty() || !self.tools.is_empty()
    }

    fn narrow(&self, report: &mut Report, range: Range) {
        let cited = cited(report);
        report.calls.retain(|c| {
            cited.contains(&c.key)
                || (range.meets(c.sent.or(c.issued), c.replied.or(c.sent).or(c.issued))
                    && self.wants_session(c.session.as_deref())
                    && self.wants_tool(named(c).as_deref()))
        });
        let used: FxHashSet<Option<Arc<str>>> = report.calls.iter().map(|c| c.session.clone()).collect();
        report.sessions.retain(|s| {
            used.contains(&s.session)
                || (self.tools.is_empty()
                    && range.meets(s.started, s.ended.or(s.started))
                    && self.wants_session(s.session.as_deref()))
        });
        report.exchanges.retain(|e| {
            range.meets(e.at, e.ended.or(e.at))
                && self.wants_session(e.session.as_deref())
                && (self.tools.is_empty()
                    || e.rpc.iter().any(|r| self.wants_tool(r.tool.as_deref().or(r.method.as_deref()))))
        });
        let is_tool_call = |c: &&Call| c.method.as_deref() == Some("tools/call");
        report.summary.sessions = report.sessions.len() as u64;
        report.summary.calls = report.calls.len() as u64;
        report.summary.unobserved = report.calls.iter().filter(|c| c.outcome == Outcome::Unobserved).count() as u64;
        report.summary.tool_calls = report.calls.iter().filter(is_tool_call).count() as u64;
    }

    fn range(&self, report: &Report) -> Range {
        let begin = report.inputs.iter().filter_map(|i| i.first).min();
        let midnight = begin.map(|t| t.ns().div_euclid(DAY_NS) * DAY_NS);
        let since = self.since.and_then(|b| match b {
            TimeBound::At(t) => Some(t.ns()),
            TimeBound::Clock(ns) => Some(midnight?.saturating_add(ns)),
        });
        let until = self.until.and_then(|b| match b {
            TimeBound::At(t) => Some(last_ns(t)),
            TimeBound::Clock(ns) => {
                let from = since.or(begin.map(Time::ns))?;
                let same_day = from.div_euclid(DAY_NS) * DAY_NS + ns;
                Some(if same_day < from { same_day + DAY_NS } else { same_day })
            }
        });
        Range { since, until }
    }

    fn wants_any_rule(&self, rule: &str) -> bool {
        self.rules.is_empty() || self.rules.iter().any(|g| glob(g, rule))
    }

    fn wants_rule(&self, f: &Finding) -> bool {
        self.wants_any_rule(f.rule) && self.min_confidence.is_none_or(|least| f.confidence >= least)
    }

    fn wants_session(&self, id: Option<&str>) -> bool {
        self.sessions.is_empty()
            || id.is_some_and(|id| self.sessions.iter().any(|s| id.starts_with(s.trim_end_matches('…'))))
    }

    fn wants_sessions(&self, ids: [&Option<Arc<str>>; 2]) -> bool {
        self.sessions.is_empty() || ids.iter().any(|id| id.is_some() && self.wants_session(id.as_deref()))
    }

    fn wants_tool(&self, name: Option<&str>) -> bool {
        self.tools.is_empty() || name.is_some_and(|n| self.tools.iter().any(|g| glob(g, n)))
    }

    /// Does the finding concern a wanted session and a wanted tool?
    fn concerns(&self, f: &Finding, about: &About) -> bool {
        let keys = || f.calls.iter().copied().chain(f.victim).chain(f.owner).filter_map(|k| about.get(&k));
        let session = self.sessions.is_empty()
            || self.wants_session(f.session.as_deref())
            || keys().any(|(session, _)| self.wants_session(session.as_deref()));
        let tool = self.tools.is_empty() || keys().any(|(_, tool)| self.wants_tool(tool.as_deref()));
        session && tool
    }

    fn window_tool(&self, w: &Window, about: &About) -> bool {
        let mut keys = w.lost.iter().copied().chain(w.trigger_call).filter_map(|k| about.get(&k));
        self.tools.is_empty() || keys.any(|(_, tool)| self.wants_tool(tool.as_deref()))
    }
}

fn named(call: &Call) -> Option<Arc<str>> {
    call.tool.clone().or_else(|| call.method.clone())
}

/// The last nanosecond of what a time names: `--until 19:38:46Z` includes that whole second.
pub fn last_ns(t: Time) -> i64 {
    let unit = 10i64.pow(9 - u32::from(t.digits().min(9)));
    t.ns().saturating_add(unit - 1)
}

#[derive(Clone, Copy)]
struct Range {
    since: Option<i64>,
    until: Option<i64>,
}

impl Range {
    /// Do they overlap? What has no time is kept: it cannot be told.
    fn meets(&self, from: Option<Time>, to: Option<Time>) -> bool {
        let after = to.zip(self.since).is_none_or(|(t, since)| t.ns() >= since);
        let before = from.zip(self.until).is_none_or(|(t, until)| t.ns() <= until);
        after && before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_includes_all_that_its_digits_name() {
        assert_eq!(last_ns(Time::from_ns(5_000_000_000, 0)), 5_999_999_999);
        assert_eq!(last_ns(Time::from_ns(5_000_000_000, 9)), 5_000_000_000);
    }
}
