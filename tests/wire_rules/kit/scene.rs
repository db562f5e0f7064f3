//! Calls as a table that faults can be put into: who asked what when, and what came back on whose stream.

use super::scenes::*;
use super::traffic::{Session, Traffic, result_of};
use crosswire::model::report::Report;
use std::fmt::Write;

/// A call and what its stream carries.
#[derive(Clone)]
pub struct Call {
    /// ms
    pub asked: i64,
    pub replied: i64,
    pub id: String,
    pub tool: String,
    pub request: String,
    /// The `result` that it should get.
    pub result: String,
    /// The messages on its stream.
    pub carries: Vec<String>,
    /// Does its stream stay open without an end?
    pub hangs: bool,
}

impl Call {
    pub fn name(&self) -> String {
        format!("{}#{}", self.tool, self.id)
    }

    pub fn reply(&self) -> String {
        result_of(&self.id, &self.result)
    }

    pub fn overlaps(&self, other: &Call) -> bool {
        self.asked < other.replied && other.asked < self.replied
    }
}

/// Calls of one session.
#[derive(Clone)]
pub struct Scene {
    pub calls: Vec<Call>,
    pub json: bool,
}

impl Scene {
    /// Four batches of four calls in flight together; two of each batch are of one tool.
    pub fn made(json: bool) -> Scene {
        let mut calls = vec![];
        for batch in 0..4i64 {
            for n in 0..4i64 {
                let id = (batch * 4 + n + 1).to_string();
                let (tool, key) = [("journal_append", "entry"), ("entity_update", "entity"), ("measure", "path")]
                    [((batch + n) % 3) as usize];
                let value = format!("{key}-{batch}{n}77");
                let document = match tool {
                    "journal_append" => append_result(&value),
                    "entity_update" => update_result(&value),
                    _ => super::traffic::document(&format!(r#"{{"path":"{value}","metres":[{batch},{n}]}}"#)),
                };
                let mut request = String::new();
                let params = format!(r#"{{"name":"{tool}","arguments":{{"{key}":"{value}"}}}}"#);
                write!(request, "{}", super::traffic::request(&id, "tools/call", &params)).unwrap();
                let asked = 10_000 + batch * 5_000 + n * 40;
                let call = Call {
                    asked,
                    // The order of replies differs from that of requests.
                    replied: 10_000 + batch * 5_000 + 400 + (n * 3 + batch) % 4 * 60,
                    id,
                    tool: tool.into(),
                    request,
                    result: document,
                    carries: vec![],
                    hangs: false,
                };
                calls.push(call);
            }
        }
        Scene { calls, json }.whole()
    }

    /// The tool calls of a report made with `bodies`.
    pub fn of(report: &Report) -> Scene {
        let start = report.calls.iter().filter_map(|c| c.sent).min().unwrap();
        let ms = |t: crosswire::model::time::Time| t.since(start) / 1_000_000 + 10_000;
        let mut calls = vec![];
        for c in report.calls.iter().filter(|c| c.tool.is_some() || c.method.as_deref() == Some("tools/list")) {
            let bodies = c.bodies.as_ref().unwrap();
            let (request, reply) = (bodies.request.clone().unwrap(), bodies.reply.clone().unwrap());
            let reply: serde_json::Value = serde_json::from_str(&reply).unwrap();
            calls.push(Call {
                asked: ms(c.sent.unwrap()),
                replied: ms(c.replied.unwrap()).max(ms(c.sent.unwrap()) + 1),
                id: c.id.as_ref().unwrap().to_string(),
                tool: c.tool.as_deref().unwrap_or("tools/list").into(),
                request,
                result: reply["result"].to_string(),
                carries: vec![],
                hangs: false,
            });
        }
        Scene { calls, json: false }.whole()
    }

    /// Everything as it should be.
    fn whole(mut self) -> Scene {
        for c in &mut self.calls {
            c.carries = vec![c.reply()];
        }
        self
    }

    /// Pairs of calls in flight together, the one asked first in front.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let all = (0..self.calls.len()).flat_map(|i| (i + 1..self.calls.len()).map(move |j| (i, j)));
        let tool = |i: usize| self.calls[i].tool != "tools/list";
        all.filter(|(i, j)| tool(*i) && tool(*j) && self.calls[*i].overlaps(&self.calls[*j])).collect()
    }

    pub fn traffic(&self) -> Traffic {
        let mut t = Traffic::new();
        t.json = self.json;
        let s = t.session("s-1111");
        if self.calls.iter().all(|c| c.tool != "tools/list") {
            warm(&mut t, &s);
        }
        for c in &self.calls {
            play(&mut t, &s, c);
        }
        t.until(120_000);
        t
    }
}

fn play(t: &mut Traffic, s: &Session, c: &Call) {
    let x = t.at(c.asked).post(s, &c.request);
    if c.hangs {
        if !t.json {
            t.wait(1).open(x);
        }
        t.at(c.asked + 60_000).close(x);
        return;
    }
    t.at(c.replied);
    match &c.carries[..] {
        [one] => t.reply(x, one),
        [] if t.json => t.status(x, 200, ""),
        several => {
            t.open(x);
            several.iter().for_each(|m| t.event(x, m));
            t.end(x);
        }
    }
}
