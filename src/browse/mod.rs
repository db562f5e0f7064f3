//! The terminal browser: sessions, their calls, a call's ladder, its bodies.
//!
//! [`Browser`] is all of it but the terminal: keys go in, lines come out. The lists are the tables of
//! the report, ladders and bodies those of `timeline` and `show`; nothing here looks at the traffic.

pub mod filter;
pub mod keys;
pub mod line;
pub mod list;
pub mod lists;
mod make;
pub mod page;
pub mod prompt;
pub mod terminal;

use crate::model::report::{CallKey, Finding};
use crate::report::ladder::Timeline;
use crate::report::paper::{Style, ascii};
use crate::report::table::{Tone, counted};
use crate::report::view::View;
use crate::report::{RenderOptions, clean::clean};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use keys::Do;
use line::Line;
use page::{Body, Page, Subject};
use prompt::{Prompt, Purpose, Typed};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::PathBuf;

/// Lines that are not the page's: the title and the last one.
const FRAME: usize = 2;
/// Name that is proposed for a bundle.
const BUNDLE: &str = "evidence.zip";

/// What is to be done after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// Go on.
    Go,
    /// Draw every line anew.
    Redraw,
    /// Leave.
    Quit,
    /// Stop for a while.
    Suspend,
    /// Write a bundle of these calls.
    Save(PathBuf, Vec<CallKey>),
}

/// The browser.
pub struct Browser<'a> {
    view: &'a View<'a>,
    timeline: Timeline,
    options: RenderOptions,
    /// Numbers (from 1) of the findings that concern each call.
    findings: FxHashMap<CallKey, Vec<usize>>,
    pages: Vec<Page>,
    marked: FxHashSet<CallKey>,
    /// The number (from 1) of the finding that was gone to last.
    finding: Option<usize>,
    filters: FxHashMap<&'static str, String>,
    search: String,
    is_raw: bool,
    prompt: Option<Prompt>,
    message: Option<String>,
    size: (usize, usize),
}

impl<'a> Browser<'a> {
    /// Begins with the sessions, or with the calls where there is but one session.
    pub fn new(view: &'a View<'a>, options: RenderOptions, size: (usize, usize)) -> Browser<'a> {
        let mut findings: FxHashMap<CallKey, Vec<usize>> = FxHashMap::default();
        for (n, f) in view.report.findings.iter().enumerate() {
            for key in calls_of(f) {
                findings.entry(key).or_default().push(n + 1);
            }
        }
        let mut browser = Browser {
            view,
            timeline: Timeline::new(view),
            options,
            findings,
            pages: vec![],
            marked: FxHashSet::default(),
            finding: None,
            filters: FxHashMap::default(),
            search: String::new(),
            is_raw: false,
            prompt: None,
            message: None,
            size,
        };
        browser.open(Subject::Sessions);
        browser
    }

    /// Says this on the last line until the next key.
    pub fn say(&mut self, text: &str) {
        self.message = Some(clean(text).into_owned());
    }

    /// The terminal has this many columns and rows now.
    pub fn resize(&mut self, size: (usize, usize)) {
        let is_wider = self.size.0 != size.0;
        self.size = size;
        let pages = std::mem::take(&mut self.pages);
        for mut page in pages {
            if is_wider {
                let before = page.body.count().max(1);
                let (subject, at) = (page.subject, page.cursor);
                let is_text = matches!(page.body, Body::Text(_));
                page = Page::new(subject, self.body(subject));
                // Lines of text are broken elsewhere now; all else has as many rows as before.
                let at = if is_text { at * page.body.count() / before } else { at };
                page.cursor = at;
            }
            let (at, room) = (page.cursor, self.room(&page));
            page.to(at, room);
            self.pages.push(page);
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: &KeyEvent) -> Then {
        // Over a slow line Esc and the next key come at once, and look like a key with Alt.
        if key.modifiers.contains(KeyModifiers::ALT) {
            return match self.key(&KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)) {
                Then::Go => self.key(&KeyEvent::new(key.code, key.modifiers - KeyModifiers::ALT)),
                then => then,
            };
        }
        self.message = None;
        if let Some(mut prompt) = self.prompt.take() {
            match prompt.key(key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
                Typed::More => self.prompt = Some(prompt),
                Typed::Left => {}
                Typed::Done(text) => return self.typed(prompt.purpose, text),
            }
            return Then::Go;
        }
        match keys::meaning(key) {
            None => {
                self.say("? explains the keys");
                Then::Go
            }
            Some(wanted) => self.carry_out(wanted),
        }
    }

    fn carry_out(&mut self, wanted: Do) -> Then {
        let height = self.pages.last().map_or(1, |page| self.room(page)).max(1);
        let screen = isize::try_from(height).unwrap_or(1);
        match wanted {
            Do::Up => self.go(-1),
            Do::Down => self.go(1),
            Do::PageUp => self.go(-screen),
            Do::PageDown => self.go(screen),
            Do::First => self.go(isize::MIN),
            Do::Last => self.go(isize::MAX),
            Do::Open => self.enter(),
            Do::Back if self.pages.len() > 1 => drop(self.pages.pop()),
            Do::Back => self.say("q leaves"),
            Do::Bodies => match self.call_at_cursor() {
                Some(key) => self.open(Subject::Bodies(key)),
                None => self.say("no call here"),
            },
            Do::Other => self.other(),
            Do::Sessions => self.root(Subject::Sessions),
            Do::Calls => self.root(Subject::Calls(None)),
            Do::Findings => self.root(Subject::Findings),
            Do::NextFinding => self.jump(1),
            Do::FindingBefore => self.jump(-1),
            Do::Search => self.ask(Purpose::Search, "search: ", ""),
            Do::Next => self.look(true),
            Do::Before => self.look(false),
            Do::Filter => self.ask_for_filter(),
            Do::Raw => {
                self.is_raw = !self.is_raw;
                self.rebuild();
                self.say(if self.is_raw { "bodies as they were sent" } else { "bodies indented" });
            }
            Do::Mark => self.mark(),
            Do::Unmark => {
                self.marked.clear();
                self.say("no call is marked");
            }
            Do::Save => self.ask_for_file(),
            Do::Redraw => return Then::Redraw,
            Do::Help => self.open(Subject::Help),
            Do::Quit => return Then::Quit,
            Do::Suspend => return Then::Suspend,
        }
        Then::Go
    }

    fn typed(&mut self, purpose: Purpose, text: String) -> Then {
        match purpose {
            Purpose::Search => {
                if !text.is_empty() {
                    self.search = text;
                }
                self.look(true);
            }
            Purpose::Filter => self.filter(text),
            Purpose::Save => {
                let calls = self.selected();
                let path = PathBuf::from(text.trim());
                if text.trim().is_empty() || calls.is_empty() {
                    self.say("nothing was saved");
                } else if path.exists() {
                    self.say(&format!("{} is there already; nothing was saved", path.display()));
                } else {
                    return Then::Save(path, calls);
                }
            }
        }
        Then::Go
    }

    fn go(&mut self, by: isize) {
        let Some(mut page) = self.pages.pop() else { return };
        page.go(by, self.room(&page));
        self.pages.push(page);
    }

    fn to(&mut self, at: usize) {
        let Some(mut page) = self.pages.pop() else { return };
        page.to(at, self.room(&page));
        self.pages.push(page);
    }

    fn open(&mut self, subject: Subject) {
        let page = Page::new(subject, self.body(subject));
        self.pages.push(page);
        let wanted = match subject {
            Subject::Ladder(key) => Some(key),
            Subject::Finding(n) => self.finding_of(n).and_then(|f| f.victim.or(f.calls.first().copied())),
            _ => None,
        };
        if let Some(Body::Blocks { calls, .. }) = self.pages.last().map(|p| &p.body) {
            // The last row of a call is where it went wrong, if it did.
            let is_finding = matches!(subject, Subject::Finding(_));
            let at = |c: &Option<CallKey>| c.is_some() && *c == wanted;
            let at = if is_finding { calls.iter().rposition(at) } else { calls.iter().position(at) };
            let Some(mut page) = self.pages.pop() else { return };
            page.into_view(at.unwrap_or(0), self.room(&page));
            self.pages.push(page);
        }
    }

    /// Opens a list that is reached from anywhere.
    fn root(&mut self, subject: Subject) {
        self.pages.clear();
        self.open(subject);
    }

    /// Makes the page at hand anew; the cursor stays where it can.
    fn rebuild(&mut self) {
        let Some(page) = self.pages.pop() else { return };
        let at = page.cursor;
        self.pages.push(Page::new(page.subject, self.body(page.subject)));
        self.to(at);
    }

    fn enter(&mut self) {
        let Some(page) = self.pages.last() else { return };
        let row = match &page.body {
            Body::List(list) => list.numbers.get(page.cursor).copied(),
            _ => None,
        };
        match (page.subject, row) {
            (Subject::Sessions, Some(n)) => self.open(Subject::Calls(Some(n))),
            (Subject::Findings, Some(n)) => {
                self.finding = Some(n + 1);
                self.open(Subject::Finding(n + 1));
            }
            (Subject::Calls(_), Some(_)) => {
                if let Some(key) = self.call_at_cursor() {
                    self.open(Subject::Ladder(key));
                }
            }
            (Subject::Ladder(_) | Subject::Finding(_), _) => match self.call_at_cursor() {
                Some(key) => self.open(Subject::Bodies(key)),
                None => self.say("no call on this line"),
            },
            (Subject::Help, _) => drop(self.pages.pop()),
            _ => {}
        }
    }

    /// To the finding that is so many further on, round at the ends.
    fn jump(&mut self, by: isize) {
        let count = self.view.report.findings.len();
        if count == 0 {
            return self.say("there is no finding");
        }
        let next = match (self.finding, by) {
            (Some(n), 1..) => n % count + 1,
            (Some(n), _) => (n + count - 2) % count + 1,
            (None, 1..) => 1,
            (None, _) => count,
        };
        self.finding = Some(next);
        // Jumping on and on must not pile up pages.
        if matches!(self.pages.last().map(|p| p.subject), Some(Subject::Finding(_))) {
            self.pages.pop();
        }
        self.open(Subject::Finding(next));
    }

    /// From the victim of a finding to the owner of what it got, and back.
    fn other(&mut self) {
        let here = self.call_at_cursor();
        let numbers = here.and_then(|key| self.findings.get(&key)).cloned().unwrap_or_default();
        let preferred = self.finding.filter(|n| numbers.contains(n)).or(numbers.first().copied());
        let Some(f) = preferred.and_then(|n| self.finding_of(n)) else {
            return self.say("no finding is about this call");
        };
        let calls: Vec<CallKey> = calls_of(f).collect();
        let at = calls.iter().position(|key| Some(*key) == here).unwrap_or(0);
        let next = calls.iter().cycle().skip(at + 1).take(calls.len()).find(|key| Some(**key) != here).copied();
        let Some(key) = next else { return self.say("the finding is about this call alone") };
        match self.pages.last().map(|p| p.subject) {
            Some(Subject::Bodies(_)) => {
                self.pages.pop();
                self.open(Subject::Bodies(key));
            }
            _ => self.open(Subject::Ladder(key)),
        }
    }

    fn look(&mut self, is_forward: bool) {
        let wanted = self.search.to_lowercase();
        if wanted.is_empty() {
            return self.say("nothing to look for; / asks what");
        }
        let Some(page) = self.pages.last() else { return };
        let is_calls = matches!(page.subject, Subject::Calls(_));
        let found = page.find(is_forward, |at| {
            page.body.text(at).to_lowercase().contains(&wanted)
                || (is_calls && self.row_call(page, at).is_some_and(|key| self.call_holds(key, &wanted)))
        });
        match found {
            Some(at) => self.to(at),
            None => self.say(&format!("not found: {}", self.search.clone())),
        }
    }

    /// Do a call's messages hold this text?
    fn call_holds(&self, key: CallKey, wanted: &str) -> bool {
        let Some(call) = self.view.call(key) else { return false };
        let details = call.sightings.iter().filter_map(|s| s.detail.as_ref());
        details
            .flat_map(|d| [&d.request, &d.reply, &d.record])
            .flatten()
            .any(|text| text.to_lowercase().contains(wanted))
    }

    fn mark(&mut self) {
        let calls = self.at_cursor();
        if calls.is_empty() {
            return self.say("no call here");
        }
        if calls.iter().all(|key| self.marked.contains(key)) {
            self.marked.retain(|key| !calls.contains(key));
        } else {
            self.marked.extend(calls);
        }
        self.say(&format!("{} marked", counted(self.marked.len() as u64, "call")));
        if matches!(self.pages.last().map(|p| &p.body), Some(Body::List(_))) {
            self.go(1);
        }
    }

    /// The marked calls, else those at the cursor.
    fn selected(&self) -> Vec<CallKey> {
        let mut calls = if self.marked.is_empty() { self.at_cursor() } else { self.marked.iter().copied().collect() };
        calls.sort_unstable();
        calls
    }

    fn ask(&mut self, purpose: Purpose, title: &str, text: &str) {
        self.prompt = Some(Prompt { purpose, title: title.to_owned(), text: text.to_owned() });
    }

    fn ask_for_file(&mut self) {
        let calls = self.selected().len() as u64;
        if calls == 0 {
            return self.say("no call is marked, and none is at the cursor");
        }
        self.ask(Purpose::Save, &format!("bundle of {} to file: ", counted(calls, "call")), BUNDLE);
    }

    fn finding_of(&self, number: usize) -> Option<&'a Finding> {
        self.view.report.findings.get(number.checked_sub(1)?)
    }

    /// The calls that the cursor stands for.
    fn at_cursor(&self) -> Vec<CallKey> {
        let Some(page) = self.pages.last() else { return vec![] };
        let row = match &page.body {
            Body::List(list) => list.numbers.get(page.cursor).copied(),
            _ => None,
        };
        let report = self.view.report;
        match (page.subject, row) {
            (Subject::Sessions, Some(n)) => {
                let id = report.sessions.get(n).map(|s| &s.session);
                report.calls.iter().filter(|c| Some(&c.session) == id).map(|c| c.key).collect()
            }
            (Subject::Findings, Some(n)) => report.findings.get(n).map_or(vec![], |f| calls_of(f).collect()),
            (Subject::Finding(n), _) if self.call_at_cursor().is_none() => {
                self.finding_of(n).map_or(vec![], |f| calls_of(f).collect())
            }
            _ => self.call_at_cursor().into_iter().collect(),
        }
    }

    /// The one call at which the cursor is.
    fn call_at_cursor(&self) -> Option<CallKey> {
        let page = self.pages.last()?;
        match page.subject {
            Subject::Bodies(key) => Some(key),
            Subject::Findings => {
                let Body::List(list) = &page.body else { return None };
                let f = self.view.report.findings.get(*list.numbers.get(page.cursor)?)?;
                f.victim.or(f.calls.first().copied())
            }
            _ => self.row_call(page, page.cursor),
        }
    }

    fn row_call(&self, page: &Page, at: usize) -> Option<CallKey> {
        match (&page.body, page.subject) {
            (Body::List(list), Subject::Calls(_)) => self.view.report.calls.get(*list.numbers.get(at)?).map(|c| c.key),
            (Body::Blocks { calls, .. }, _) => calls.get(at).copied().flatten(),
            _ => None,
        }
    }

    /// Rows that a page has for itself.
    fn room(&self, page: &Page) -> usize {
        self.size.1.saturating_sub(FRAME + page.heading().len()).max(1)
    }

    /// The screen: exactly as many lines as it has rows, none wider than it.
    pub fn draw(&self) -> Vec<Line> {
        let (width, height) = self.size;
        let mut lines = vec![self.title()];
        if let Some(page) = self.pages.last() {
            let sign = |at: usize| match self.row_call(page, at) {
                Some(key) if self.marked.contains(&key) => "* ".to_owned(),
                _ if at == page.cursor => "> ".to_owned(),
                _ => "  ".to_owned(),
            };
            lines.extend(page.heading());
            lines.extend(page.window(self.room(page), &sign));
            if let Body::List(list) = &page.body
                && list.numbers.is_empty()
            {
                let why = if list.all > 0 { "no row fits the filter; f changes it" } else { &list.empty };
                lines.push(Line::of(&format!("  {}", clean(why)), Style::Tone(Tone::Dim)));
            }
        }
        lines.truncate(height.saturating_sub(1));
        lines.resize(height.saturating_sub(1), Line::default());
        lines.push(self.last_line());
        let fitting = |line: Line| {
            let mut line = line.cut(width);
            if self.options.ascii {
                // One column stays one column.
                line.runs.iter_mut().for_each(|(text, _)| *text = ascii(&text.replace('…', "~")).into_owned());
                line = line.cut(width);
                line.runs.iter_mut().for_each(|(text, _)| *text = text.replace('…', "~"));
            }
            line
        };
        lines.into_iter().map(fitting).take(height).collect()
    }
}

/// The calls that a finding is about, the victim first, each once.
fn calls_of(f: &Finding) -> impl Iterator<Item = CallKey> {
    let mut all: Vec<CallKey> = vec![];
    for key in f.victim.into_iter().chain(f.owner).chain(f.calls.iter().copied()) {
        if !all.contains(&key) {
            all.push(key);
        }
    }
    all.into_iter()
}
