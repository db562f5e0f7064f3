//! What pages hold: lists from the tables, ladders from the timeline, bodies from `show`; the title
//! and the last line.

use super::filter::Filter;
use super::keys::KEYS;
use super::line::Line;
use super::list::{Kind, Lookup};
use super::lists::{CALLS_LIST, FINDINGS_LIST, SESSIONS_LIST};
use super::page::{Body, Subject};
use super::prompt::Purpose;
use super::{Browser, calls_of};
use crate::model::report::CallKey;
use crate::report::RenderOptions;
use crate::report::call::{self, Shown};
use crate::report::clean::{clean, clean_short};
use crate::report::headline::standing;
use crate::report::ladder::{Ladder, Row, text};
use crate::report::layout::wrap;
use crate::report::paper::{Paper, Style};
use crate::report::table::{Tone, counted};

/// Messages before and after a call that its ladder shows.
const AROUND: usize = 500;
/// Messages before and after those of a finding.
const CONTEXT: usize = 8;
/// Lines that the summary of a finding may take.
const SUMMARY_LINES: usize = 4;

impl Browser<'_> {
    /// What a page holds.
    pub(super) fn body(&self, subject: Subject) -> Body {
        match subject {
            Subject::Sessions | Subject::Calls(_) | Subject::Findings => self.list(subject),
            Subject::Ladder(key) => {
                let ladders = self.timeline.of_call(key, AROUND).into_iter().collect();
                self.ladder(vec![], ladders)
            }
            Subject::Finding(n) => {
                let calls: Vec<CallKey> = self.finding_of(n).map_or(vec![], |f| calls_of(f).collect());
                self.ladder(self.summary(n), self.timeline.around(n, &calls, CONTEXT))
            }
            Subject::Bodies(key) => Body::Text(self.bodies(key)),
            Subject::Help => Body::Text(help(self.size.0)),
        }
    }

    /// A page has a least width; what is beyond a narrower terminal is cut off or broken.
    fn paper(&self) -> RenderOptions {
        RenderOptions { width: self.size.0, ..self.options.clone() }
    }

    fn kind(subject: Subject) -> Option<&'static Kind> {
        match subject {
            Subject::Sessions => Some(&SESSIONS_LIST),
            Subject::Calls(_) => Some(&CALLS_LIST),
            Subject::Findings => Some(&FINDINGS_LIST),
            _ => None,
        }
    }

    fn list(&self, subject: Subject) -> Body {
        let report = self.view.report;
        let Some(kind) = Self::kind(subject) else { return Body::Text(vec![]) };
        let text = self.filters.get(kind.table.name).map_or("", String::as_str);
        // It was parsed before it was kept.
        let filter = Filter::parse(text, kind.columns()).unwrap_or_default();
        let session = |n: usize| report.sessions.get(n).map(|s| &s.session);
        let of_session = |n: usize| {
            let numbers = report.findings.iter().enumerate();
            numbers.filter(|(_, f)| session(n) == Some(&f.session)).map(|(n, _)| n + 1).collect()
        };
        let of_call =
            |n: usize| report.calls.get(n).and_then(|c| self.findings.get(&c.key)).cloned().unwrap_or_default();
        let findings: &dyn Fn(usize) -> Vec<usize> = if subject == Subject::Sessions { &of_session } else { &of_call };
        let wants = |n: usize| match subject {
            Subject::Calls(Some(s)) => report.calls.get(n).map(|c| &c.session) == session(s),
            _ => true,
        };
        let mut list = kind.fill(&Lookup { view: self.view, findings }, &wants, &filter);
        list.fit(self.size.0);
        Body::List(list)
    }

    fn ladder(&self, mut heading: Vec<Line>, ladders: Vec<Ladder>) -> Body {
        let options = self.paper();
        let (mut lines, mut begins, mut calls) = (vec![], vec![], vec![]);
        let is_only = ladders.len() == 1;
        for ladder in ladders {
            let mut paper = Paper::kept(&options);
            // Pages that keep their lines take all that is written.
            let rows = text::draw(&ladder, &mut paper).unwrap_or_default();
            let mut drawn: Vec<Line> = paper.into_lines().into_iter().map(Line::from_runs).collect();
            let title = Line::of(&clean(&ladder.title), Style::Bold);
            // The drawing's own heading stays above, where there is but one.
            let skipped = rows.first().copied().filter(|n| is_only && *n <= drawn.len()).unwrap_or(0);
            if is_only {
                heading.push(title);
                heading.extend(drawn.drain(..skipped));
            } else {
                begins.push(lines.len());
                calls.push(None);
                lines.push(title);
            }
            let shift = lines.len();
            begins.extend(rows.iter().map(|at| shift + at.saturating_sub(skipped)));
            calls.extend(ladder.rows.iter().map(|row| match row {
                Row::Message(m, _) => m.call,
                Row::Idle(_) | Row::LeftOut(_) => None,
            }));
            lines.extend(drawn);
        }
        Body::Blocks { heading, lines, begins, calls }
    }

    /// A finding in a few lines.
    fn summary(&self, number: usize) -> Vec<Line> {
        let Some(f) = self.finding_of(number) else { return vec![] };
        let count = self.view.report.findings.len();
        let head = format!("Finding {number} of {count}: {} ({})", f.rule, standing(f));
        let mut lines: Vec<Line> = wrap(&head, self.size.0).iter().map(|l| Line::of(l, Style::Bold)).collect();
        let said = wrap(&clean_short(&f.summary, 600), self.size.0);
        lines.extend(said.iter().map(|l| Line::of(l, Style::Tone(Tone::Bad))));
        lines.truncate(SUMMARY_LINES);
        lines
    }

    fn bodies(&self, key: CallKey) -> Vec<Line> {
        let Some(call) = self.view.call(key) else { return vec![] };
        let options = self.paper();
        let mut paper = Paper::kept(&options);
        let shown = Shown { view: self.view, options: &options, raw: self.is_raw };
        // As above.
        let _ = call::draw(&shown, call, &mut paper);
        paper.into_lines().into_iter().flat_map(|runs| Line::from_runs(runs).broken(self.size.0)).collect()
    }

    pub(super) fn ask_for_filter(&mut self) {
        let Some(kind) = self.pages.last().and_then(|p| Self::kind(p.subject)) else {
            return self.say("only lists can be filtered");
        };
        let text = self.filters.get(kind.table.name).cloned().unwrap_or_default();
        self.ask(Purpose::Filter, "show only (words, column=pattern): ", &text);
    }

    pub(super) fn filter(&mut self, text: String) {
        let Some(kind) = self.pages.last().and_then(|p| Self::kind(p.subject)) else { return };
        match Filter::parse(&text, kind.columns()) {
            Err(why) => self.say(&why),
            Ok(_) => {
                self.filters.insert(kind.table.name, text);
                self.rebuild();
            }
        }
    }

    /// Where one is, and what was found in all.
    pub(super) fn title(&self) -> Line {
        let mut parts: Vec<String> = vec![];
        for page in &self.pages {
            parts.push(match page.subject {
                Subject::Sessions => "sessions".to_owned(),
                Subject::Calls(None) => "calls".to_owned(),
                Subject::Calls(Some(n)) => {
                    let id = self.view.report.sessions.get(n).and_then(|s| s.session.as_deref());
                    id.map_or("calls without a session".to_owned(), |id| clean_short(&self.view.session(id), 40).into())
                }
                Subject::Findings => "findings".to_owned(),
                Subject::Ladder(key) => format!("ladder {key}"),
                Subject::Finding(n) => format!("finding {n}"),
                Subject::Bodies(key) => key.to_string(),
                Subject::Help => "keys".to_owned(),
            });
        }
        let mut right = counted(self.view.report.findings.len() as u64, "finding");
        if !self.marked.is_empty() {
            right = format!("{} marked, {right}", self.marked.len());
        }
        let left = Line::of(&format!("crosswire: {}", parts.join(" → ")), Style::Bold);
        let room = self.size.0.saturating_sub(right.len() + 1);
        let mut line = left.cut(room);
        let pad = room.saturating_sub(line.width()) + 1;
        line.push(&format!("{}{right}", " ".repeat(pad)), Style::Bold);
        line.is_current = true;
        line
    }

    /// What is typed, what was said, or what can be done here.
    pub(super) fn last_line(&self) -> Line {
        if let Some(prompt) = &self.prompt {
            let mut line = Line::of(&prompt.title, Style::Bold);
            // The end of what is typed is what one looks at.
            let room = self.size.0.saturating_sub(line.width() + 2);
            let over = prompt.text.chars().count().saturating_sub(room);
            line.push(&prompt.text.chars().skip(over).collect::<String>(), Style::Plain);
            line.push("_", Style::Bold);
            return line;
        }
        if let Some(message) = &self.message {
            return Line::of(message, Style::Tone(Tone::Warn));
        }
        let Some(page) = self.pages.last() else { return Line::default() };
        let hint = match page.subject {
            Subject::Sessions => "Enter calls  2 all calls  3 findings  f filter  ? keys  q leave",
            Subject::Calls(_) => "Enter ladder  b bodies  / search  f filter  Space mark  s save  ? keys  q leave",
            Subject::Findings => "Enter ladder  b bodies  Space mark  s save as bundle  ? keys  q leave",
            Subject::Ladder(_) | Subject::Finding(_) => {
                "Enter bodies  [ ] findings  o other call  Space mark  s save  Esc back"
            }
            Subject::Bodies(_) => "/ search  r raw  o other call  [ ] findings  s save  Esc back  ? keys",
            Subject::Help => "Esc back",
        };
        let mut line = Line::default();
        let filter = Self::kind(page.subject).and_then(|k| self.filters.get(k.table.name)).filter(|f| !f.is_empty());
        if let (Some(filter), Body::List(list)) = (filter, &page.body) {
            let said = format!("{} of {} fit {}  ", list.numbers.len(), list.all, clean_short(filter, 30));
            line.push(&said, Style::Tone(Tone::Warn));
        }
        line.push(hint, Style::Tone(Tone::Dim));
        line
    }
}

fn help(width: usize) -> Vec<Line> {
    let mut lines = vec![Line::of("Keys", Style::Bold)];
    for key in KEYS.iter().filter(|k| !k.name.is_empty()) {
        for (n, text) in wrap(key.text, width.saturating_sub(12).max(10)).iter().enumerate() {
            let name = if n == 0 { key.name } else { "" };
            let pad = " ".repeat(10usize.saturating_sub(name.chars().count()));
            let mut line = Line::of(&format!("  {name}{pad}"), Style::Bold);
            line.push(text, Style::Plain);
            lines.push(line);
        }
    }
    lines
}
