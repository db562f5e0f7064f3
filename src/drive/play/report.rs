//! What a client did with a played server (`crosswire.serve/1`).

use super::script::What;
use crate::model::time::Time;
use crate::report::clean::clean;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// How a request was matched to what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matched {
    /// Method, tool and arguments.
    Exact,
    /// Method and tool; the next in order.
    InOrder,
    /// The last of its kind, again.
    Repeated,
    /// Made up: the protocol asks for it and nothing was recorded.
    MadeUp,
    /// Nothing.
    Unmatched,
}

/// One request of the client.
#[derive(Clone, Debug, Serialize)]
pub struct Served {
    /// Number, from 1.
    pub number: usize,
    /// When.
    pub at: Time,
    /// The client's address.
    pub peer: String,
    /// Session that it named.
    pub session: Option<String>,
    /// Method.
    pub method: String,
    /// Tool.
    pub tool: Option<String>,
    /// Arguments.
    #[serde(skip)]
    pub arguments: Value,
    /// Id; null for notifications.
    pub id: Value,
    /// How it was matched.
    pub matched: Option<Matched>,
    /// What was done wrong.
    pub fault: Option<What>,
    /// HTTP status that was sent.
    pub status: Option<u16>,
    /// A reply was sent, after so long, ms.
    pub answered_ms: Option<f64>,
    /// The client closed before the end of the response, after so long, ms.
    pub left_ms: Option<f64>,
    /// The client cancelled it.
    pub cancelled: bool,
    /// The same tool was called with the same arguments again, by request number.
    pub retried_as: Option<usize>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `crosswire.serve/1`
    pub schema: &'static str,
    /// Requests and notifications, in order.
    pub requests: Vec<Served>,
    /// How often the client initialized.
    pub initialized: usize,
    /// Faults that were injected.
    pub injected: usize,
    /// Faulty or unanswered calls that the client tried again.
    pub retried: usize,
    /// Calls that got no reply and were not tried again: lost to the client.
    pub lost: usize,
    /// Calls that were sent a reply that is not theirs.
    pub crossed: usize,
    /// Requests that nothing was recorded for.
    pub unmatched: usize,
}

impl Report {
    /// Draws the conclusions.
    pub fn new(mut requests: Vec<Served>) -> Report {
        for i in 0..requests.len() {
            let Some(this) = requests.get(i) else { continue };
            let is_hurt = this.fault.is_some() || this.left_ms.is_some() || this.status.is_some_and(|s| s >= 400);
            if this.tool.is_none() || !is_hurt {
                continue;
            }
            let again = requests.iter().skip(i + 1).find(|r| r.tool == this.tool && r.arguments == this.arguments);
            let again = again.map(|r| r.number);
            if let Some(this) = requests.get_mut(i) {
                this.retried_as = again;
            }
        }
        let count = |is: &dyn Fn(&Served) -> bool| requests.iter().filter(|r| is(r)).count();
        Report {
            schema: "crosswire.serve/1",
            initialized: count(&|r| r.method == "initialize"),
            injected: count(&|r| r.fault.is_some()),
            retried: count(&|r| r.retried_as.is_some()),
            lost: count(&|r| r.tool.is_some() && r.answered_ms.is_none() && r.retried_as.is_none()),
            crossed: count(&|r| matches!(r.fault, Some(What::Swap | What::WrongId)) && r.answered_ms.is_some()),
            unmatched: count(&|r| r.matched == Some(Matched::Unmatched)),
            requests,
        }
    }

    /// Writes it as text.
    ///
    /// # Errors
    /// Those of writing.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let n = self.requests.len();
        writeln!(
            out,
            "{n} requests; {} faults injected; {} calls lost, {} sent a reply not theirs, {} tried again; {} unmatched; initialized {} times",
            self.injected, self.lost, self.crossed, self.retried, self.unmatched, self.initialized
        )?;
        if n > 0 {
            writeln!(out)?;
        }
        for r in &self.requests {
            let name = r.tool.as_deref().unwrap_or(&r.method);
            writeln!(
                out,
                "{:>4}  {}  {}",
                r.number,
                r.at.clock(),
                clean(&format!("{name}{}: {}", r.id_text(), r.story()))
            )?;
        }
        Ok(())
    }
}

impl Served {
    fn id_text(&self) -> String {
        if self.id.is_null() { String::new() } else { format!(" id {}", self.id) }
    }

    /// What became of it.
    fn story(&self) -> String {
        let mut parts = vec![];
        match self.matched {
            Some(Matched::Exact) | None => {}
            Some(Matched::InOrder) => parts.push("other arguments than recorded".to_owned()),
            Some(Matched::Repeated) => parts.push("recorded reply repeated".to_owned()),
            Some(Matched::MadeUp) => parts.push("made up".to_owned()),
            Some(Matched::Unmatched) => parts.push("nothing recorded for it".to_owned()),
        }
        parts.extend(self.fault.map(|f| format!("fault {}", f.name())));
        match (self.answered_ms, self.status) {
            (Some(ms), _) => parts.push(format!("answered after {ms:.0} ms")),
            (None, Some(status)) if self.id.is_null() || status >= 300 => parts.push(format!("status {status}")),
            (None, _) => parts.push("not answered".into()),
        }
        parts.extend(self.left_ms.map(|ms| format!("the client left after {ms:.0} ms")));
        if self.cancelled {
            parts.push("cancelled by the client".into());
        }
        let is_hurt = self.tool.is_some() && (self.answered_ms.is_none() || self.left_ms.is_some());
        match self.retried_as {
            Some(n) => parts.push(format!("tried again as {n}")),
            None if is_hurt => parts.push("not tried again".into()),
            None => {}
        }
        parts.join(", ")
    }
}
