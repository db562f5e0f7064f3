//! What a probe found out, as data (`crosswire.probe/1`).

use super::plan::Configuration;
use super::selfcheck::Check;
use crate::drive::check::Fault;
use crate::model::id::RpcId;
use crate::model::time::Time;
use serde::Serialize;

/// Findings that are listed one by one; the others are counted.
pub const LISTED: usize = 200;

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `crosswire.probe/1`
    pub schema: &'static str,
    /// Version of the program.
    pub crosswire: &'static str,
    /// Where the calls went.
    pub target: String,
    /// `name/version` of the server.
    pub server: Option<String>,
    /// Protocol revision.
    pub revision: Option<String>,
    /// Does the server give session ids?
    pub sessions: bool,
    /// When it began.
    pub started: Time,
    /// How long it took, s.
    pub took_s: f64,
    /// Tools that were called.
    pub tools: Vec<ToolInfo>,
    /// Tools that the server does not mark read-only, which were left alone.
    pub left_alone: Vec<String>,
    /// The proof that faults are seen.
    pub self_check: Vec<Check>,
    /// Configurations that were to be run.
    pub planned: usize,
    /// Those that were.
    pub configurations: Vec<Row>,
    /// What is wrong, the first [`LISTED`].
    pub findings: Vec<Finding>,
    /// Counts.
    pub summary: Counts,
    /// It was stopped before it was complete.
    pub stopped: bool,
    /// What kept it from being a full probe, each as a sentence. Any entry makes the exit status 2.
    pub troubles: Vec<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A tool that was called.
#[derive(Clone, Debug, Serialize)]
pub struct ToolInfo {
    /// Name.
    pub name: String,
    /// Its reply holds the tag of the call.
    pub echoes: bool,
    /// It can be told to take its time.
    pub delays: bool,
    /// How long it took alone, ms.
    pub lone_ms: f64,
}

/// Counts over calls.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// Calls sent.
    pub calls: u64,
    /// Replies with the right id and the right content, on the right stream.
    pub verified: u64,
    /// Replies with the right id, and no tag to judge their content by.
    pub id_only: u64,
    /// Replies with the id of another call, or of another type.
    pub wrong_ids: u64,
    /// Replies with the content of another call of the session.
    pub wrong_bodies: u64,
    /// Replies with the content of a call of another session.
    pub other_session: u64,
    /// Replies on a stream where none belongs.
    pub wrong_stream: u64,
    /// Replies that came again.
    pub duplicates: u64,
    /// Calls without a reply.
    pub lost: u64,
    /// Calls whose reply took more than half the caller's patience.
    pub late: u64,
    /// Calls that the server refused by status or error, or that could not be sent.
    pub refused: u64,
    /// Calls that their caller gave up on purpose.
    pub abandoned: u64,
}

impl Counts {
    /// Everything that is wrong.
    pub fn wrong(&self) -> u64 {
        self.wrong_ids + self.wrong_bodies + self.other_session + self.wrong_stream + self.duplicates + self.lost
    }

    /// Adds one fault.
    pub fn add(&mut self, fault: Fault) {
        let count = match fault {
            Fault::WrongId | Fault::RetypedId => &mut self.wrong_ids,
            Fault::WrongBody => &mut self.wrong_bodies,
            Fault::OtherSession => &mut self.other_session,
            Fault::WrongStream => &mut self.wrong_stream,
            Fault::Duplicate => &mut self.duplicates,
            Fault::Lost => &mut self.lost,
        };
        *count += 1;
    }

    /// Adds other counts.
    pub fn merge(&mut self, o: &Counts) {
        self.calls += o.calls;
        self.verified += o.verified;
        self.id_only += o.id_only;
        self.wrong_ids += o.wrong_ids;
        self.wrong_bodies += o.wrong_bodies;
        self.other_session += o.other_session;
        self.wrong_stream += o.wrong_stream;
        self.duplicates += o.duplicates;
        self.lost += o.lost;
        self.late += o.late;
        self.refused += o.refused;
        self.abandoned += o.abandoned;
    }
}

/// One configuration and how it came out.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Number, from 1.
    pub number: usize,
    /// What it is.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// Repetitions that were run.
    pub repetitions: u64,
    /// Counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Half of the replies came within this, ms.
    pub median_ms: Option<f64>,
    /// The slowest reply, ms.
    pub max_ms: Option<f64>,
    /// For colliding ids: repetitions in which two calls of the same id really were in flight at once.
    pub collided: Option<u64>,
    /// What the first refusal said.
    pub refusal: Option<String>,
    /// For held GET streams: whether the server opened one.
    pub get_stream: Option<bool>,
}

/// A call as a finding names it.
#[derive(Clone, Debug, Serialize)]
pub struct CallRef {
    /// Tool.
    pub tool: String,
    /// Id.
    pub id: RpcId,
    /// Tag.
    pub tag: String,
    /// Session id.
    pub session: Option<String>,
    /// The caller's port.
    pub port: u16,
    /// When it was sent.
    pub sent: Time,
}

/// One thing that went wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Configuration, from 1.
    pub configuration: usize,
    /// Repetition, from 1.
    pub repetition: u64,
    /// What.
    pub fault: Fault,
    /// The call whose caller was hurt.
    pub victim: Option<CallRef>,
    /// The call that the reply belongs to.
    pub owner: Option<CallRef>,
    /// One sentence.
    pub summary: String,
}

impl Report {
    /// Is anything wrong with the server?
    pub fn has_findings(&self) -> bool {
        self.summary.wrong() > 0
    }
}
