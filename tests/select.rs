//! What is wanted of a report, what is known already, and how much of it could be followed.
#![allow(clippy::unwrap_used)]

mod common;

use crosswire::model::report::{Confidence, Outcome, Report};
use crosswire::report::baseline::Baseline;
use crosswire::report::filter::{Filter, TimeBound};
use crosswire::report::headline::{coverage_line, coverage_percent};
use crosswire::report::view::View;
use crosswire::report::{RenderOptions, cited, find};

fn filtered(mut report: Report, filter: Filter) -> Report {
    filter.apply(&mut report);
    let s = &report.summary;
    assert_eq!(s.findings as usize, report.findings.len());
    assert_eq!(s.calls as usize, report.calls.len());
    assert_eq!(s.sessions as usize, report.sessions.len());
    for key in cited(&report) {
        assert!(report.calls.iter().any(|c| c.key == key), "{key}");
    }
    report
}

fn rules(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|f| f.rule).collect()
}

#[test]
fn by_rule_and_confidence() {
    let by_rule = filtered(common::collision(), Filter { rules: vec!["crossed/*".into()], ..Filter::default() });
    assert_eq!(rules(&by_rule), ["crossed/id-collision"]);
    assert_eq!(by_rule.calls.len(), 4);
    let sure = Filter { min_confidence: Some(Confidence::Certain), ..Filter::default() };
    assert_eq!(rules(&filtered(common::collision(), sure)), ["crossed/id-collision", "orphaned/no-reply"]);
}

#[test]
fn by_session_tool_and_time() {
    let old = Filter { sessions: vec!["84dc".into()], ..Filter::default() };
    let report = filtered(common::stale_window(), old);
    assert_eq!((report.windows.len(), report.findings.len()), (1, 1));
    let other = Filter { sessions: vec!["ffff".into()], ..Filter::default() };
    let report = filtered(common::stale_window(), other);
    assert_eq!((report.windows.len(), report.findings.len(), report.calls.len()), (0, 0, 0));
    let tool = filtered(common::collision(), Filter { tools: vec!["journal_*".into()], ..Filter::default() });
    assert_eq!(rules(&tool), ["crossed/id-collision", "orphaned/no-reply"]);
    assert_eq!(tool.calls.len(), 2);
    let late = Filter { since: Some(TimeBound::At(common::at(14_000))), ..Filter::default() };
    assert_eq!(rules(&filtered(common::collision(), late)), ["session/shared"]);
    // 19:38:41 to 19:38:44 on the day of the inputs.
    let clock = |s: i64| Some(TimeBound::Clock((19 * 3600 + 38 * 60 + s) * 1_000_000_000));
    let early = Filter { since: clock(41), until: clock(44), ..Filter::default() };
    let report = filtered(common::collision(), early);
    assert_eq!((rules(&report), report.calls.len()), (vec!["session/shared"], 1));
}

#[test]
fn known_findings_are_left_out_and_counted() {
    let report = common::collision();
    let mut json = Vec::new();
    find("json").unwrap().report.unwrap()(&View::new(&report), &RenderOptions::default(), &mut json).unwrap();
    let baseline = Baseline::read(&json).unwrap();
    let mut again = common::collision();
    // Keys change with the inputs given; calls are known by what they are.
    for call in &mut again.calls {
        call.key.0 += 100;
    }
    for f in &mut again.findings {
        f.calls.iter_mut().chain(&mut f.victim).chain(&mut f.owner).for_each(|k| k.0 += 100);
    }
    again.findings[1].rule = "orphaned/cut-off";
    baseline.apply(&mut again);
    assert_eq!(rules(&again), ["orphaned/cut-off"]);
    assert_eq!((again.summary.findings, again.summary.known), (1, 2));
    assert!(Baseline::read(b"{}").is_err() && Baseline::read(b"not json").is_err());
}

#[test]
fn coverage() {
    assert_eq!(coverage_line(&common::clean()), "2 calls in 1 session; 0 of 3 TLS connections readable: no keys");
    assert_eq!(coverage_percent(&common::clean()), 0.0);
    let mut report = common::collision();
    assert_eq!(coverage_percent(&report), 100.0);
    report.calls[0].outcome = Outcome::Unobserved;
    report.summary.unobserved = 1;
    assert_eq!(coverage_percent(&report), 75.0);
}
