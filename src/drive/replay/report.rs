//! How a replay came out (`crosswire.replay/1`).

use crate::model::id::RpcId;
use crate::report::clean::clean;
use serde::Serialize;
use std::io::{self, Write};

/// What became of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// The same content as recorded.
    Same,
    /// Other content than recorded, and nothing that says it is another call's.
    Differs {
        /// Path of the first difference (RFC 6901).
        path: String,
        /// How many.
        differences: usize,
    },
    /// The reply is another call's, by its id or by values of that call's arguments.
    Crossed {
        /// That call, by number; none if only the id is wrong.
        owner: Option<usize>,
        /// The id that came.
        reply_id: Option<RpcId>,
    },
    /// No reply came.
    Orphaned {
        /// None came when it was recorded either.
        as_recorded: bool,
    },
    /// Its caller left early, as recorded.
    Left,
    /// The server refused it.
    Refused {
        /// What it said.
        why: String,
    },
    /// It was not sent.
    NotSent {
        /// Why.
        why: String,
    },
}

/// One call.
#[derive(Clone, Debug, Serialize)]
pub struct Played {
    /// Round, from 1.
    pub round: u64,
    /// Number in the schedule, from 1.
    pub number: usize,
    /// Session at the server.
    pub session: Option<String>,
    /// Method.
    pub method: String,
    /// Tool.
    pub tool: Option<String>,
    /// Id as sent.
    pub id: RpcId,
    /// What became of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Time to the reply, ms.
    pub took_ms: Option<f64>,
    /// The same when it was recorded, ms.
    pub recorded_ms: Option<f64>,
    /// It took more than twice as long as recorded, and 100 ms more.
    pub slower: bool,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `crosswire.replay/1`
    pub schema: &'static str,
    /// Where the calls went.
    pub target: String,
    /// Calls in order of sending.
    pub calls: Vec<Played>,
    /// It was stopped before it was complete.
    pub stopped: bool,
    /// What kept it from being a full replay. Any entry makes the exit status 2.
    pub troubles: Vec<String>,
}

impl Report {
    fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.calls.iter().filter(|c| is(&c.verdict)).count()
    }

    /// Were replies crossed or lost?
    pub fn has_findings(&self) -> bool {
        self.count(|v| matches!(v, Verdict::Crossed { .. } | Verdict::Orphaned { .. })) > 0
    }

    /// The first line: what came out.
    pub fn headline(&self) -> String {
        let slower = self.calls.iter().filter(|c| c.slower).count();
        format!(
            "{} calls: {} same, {} differ, {} crossed, {} orphaned, {} refused, {} not sent, {} left early; {slower} slower",
            self.calls.len(),
            self.count(|v| *v == Verdict::Same),
            self.count(|v| matches!(v, Verdict::Differs { .. })),
            self.count(|v| matches!(v, Verdict::Crossed { .. })),
            self.count(|v| matches!(v, Verdict::Orphaned { .. })),
            self.count(|v| matches!(v, Verdict::Refused { .. })),
            self.count(|v| matches!(v, Verdict::NotSent { .. })),
            self.count(|v| *v == Verdict::Left),
        )
    }

    /// Writes it as text.
    ///
    /// # Errors
    /// Those of writing.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.headline())?;
        for c in self.calls.iter().filter(|c| c.verdict != Verdict::Same || c.slower) {
            let name = c.tool.as_deref().unwrap_or(&c.method);
            let round = if c.round > 1 { format!(" (round {})", c.round) } else { String::new() };
            let times = match (c.slower, c.took_ms, c.recorded_ms) {
                (true, Some(took), Some(recorded)) => format!("; slower: {took:.0} ms, recorded {recorded:.0} ms"),
                _ => String::new(),
            };
            writeln!(
                out,
                "{:>5}  {}",
                c.number,
                clean(&format!("{name} id {}{round}: {}{times}", c.id, c.verdict.text()))
            )?;
        }
        for trouble in &self.troubles {
            writeln!(out, "Trouble: {}.", clean(trouble))?;
        }
        Ok(())
    }
}

impl Verdict {
    /// As people read it.
    pub fn text(&self) -> String {
        match self {
            Verdict::Same => "same".into(),
            Verdict::Differs { path, differences } => {
                let at = if path.is_empty() { String::new() } else { format!(" at {path}") };
                format!("differs{at} ({differences} difference{})", if *differences == 1 { "" } else { "s" })
            }
            Verdict::Crossed { owner: Some(owner), .. } => format!("CROSSED: it received the reply of call {owner}"),
            Verdict::Crossed { reply_id: Some(id), .. } => format!("CROSSED: the reply has id {id}"),
            Verdict::Crossed { .. } => "CROSSED: the reply has no id".into(),
            Verdict::Orphaned { as_recorded: true } => "ORPHANED, as recorded".into(),
            Verdict::Orphaned { .. } => "ORPHANED".into(),
            Verdict::Left => "its caller left, as recorded".into(),
            Verdict::Refused { why } => format!("refused: {why}"),
            Verdict::NotSent { why } => format!("not sent: {why}"),
        }
    }
}
