//! The joined world as rows of the report.

use super::inputs::{self, ms};
use super::sessions;
use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::calls::JointCall;
use crate::join::past::is_within;
use crate::join::two_logs::both;
use crate::mcp::visit::{Reply, Sha256, Visit};
use crate::mcp::{Rpc, RpcKind};
use crate::model::options::AnalyzeOptions;
use crate::model::place::Vantage;
use crate::model::record::ClientOutcome;
use crate::model::report::{
    Bodies, Call, Channel, Delivered, Detail, ExchangeRow, InputInfo, Near, Outcome, ReplyRow, Report, RpcRow, Session,
    Sighting, Summary, cited,
};
use crate::model::time::Time;
use crate::rules::claim::Checked;
use std::sync::Arc;

/// What a report says that does not depend on what the rules find.
pub struct Seen {
    inputs: Vec<InputInfo>,
    tally: Tally,
    sessions: Vec<Session>,
    near: Vec<Near>,
}

impl Seen {
    /// Of what was joined.
    pub fn of(world: &World, mut inputs: Vec<InputInfo>, core: Option<(i64, i64)>) -> Seen {
        inputs::fill(world, &mut inputs);
        let tally = tally(world, &mut inputs, core);
        Seen { inputs, tally, sessions: sessions::rows(world), near: world.near_findings() }
    }
}

/// Fills in the report.
pub fn report(world: &World, seen: Seen, troubles: Vec<String>, checked: Checked, options: &AnalyzeOptions) -> Report {
    let Seen { inputs, tally, sessions, near } = seen;
    let cited = options.cited_calls_only.then(|| cited(&checked.findings, &checked.windows));
    let wanted = |c: &&JointCall| cited.as_ref().is_none_or(|keys| keys.contains(&c.key));
    let calls: Vec<Call> = world.calls.iter().filter(wanted).map(|c| call(world, c, options)).collect();
    let exchanges = if options.exchanges { exchanges(world) } else { vec![] };
    Report {
        summary: Summary {
            exchanges: counted(world, options.core) + world.past.gone.exchanges,
            sessions: sessions.len() as u64,
            calls: tally.calls + world.past.gone.calls,
            tool_calls: tally.tool_calls + world.past.gone.tool_calls,
            unobserved: tally.unobserved + world.past.gone.unobserved,
            findings: checked.findings.len() as u64,
            ..Summary::default()
        },
        inputs,
        sessions,
        calls,
        windows: checked.windows,
        findings: checked.findings,
        exchanges,
        near,
        passed_over: vec![],
        troubles,
    }
}

/// Counts over all calls, listed or not.
struct Tally {
    calls: u64,
    tool_calls: u64,
    unobserved: u64,
}

/// Counts the calls, and for each input those that another input shows too.
fn tally(world: &World, inputs: &mut [InputInfo], core: Option<(i64, i64)>) -> Tally {
    let mut out = Tally { calls: 0, tool_calls: 0, unobserved: 0 };
    let mut seen: Vec<(u32, bool)> = vec![];
    for joint in &world.calls {
        // What has no time is the first slice's.
        let first = || core.is_none_or(|(from, _)| from == i64::MIN);
        let own = u64::from(began(world, joint).map_or_else(first, |t| is_within(core, t)));
        out.calls += own;
        if joint.ask.is_some() {
            out.unobserved += own * u64::from(joint.ask.as_ref().is_some_and(|a| a.response.is_none()));
            continue;
        }
        out.unobserved += own * u64::from(outcome(world, joint).0 == Outcome::Unobserved);
        let told = joint.hops.first().into_iter().chain(&joint.client).find_map(|c| world.rpc_of(*c)?.method.clone());
        out.tool_calls += own * u64::from(told.as_deref() == Some("tools/call"));
        seen.clear();
        for c in joint.hops.iter().chain(&joint.lines).chain(&joint.client) {
            let Some(visit) = world.hop_call(*c).map(|h| h.visit) else { continue };
            let source = world.visits.get(visit as usize).map_or(0, |v| v.input);
            seen.push((source, world.logs.ambiguous.contains(&visit)));
        }
        if seen.iter().any(|(source, _)| seen.first().is_some_and(|(first, _)| source != first)) {
            inputs::joined(world, inputs, &mut seen);
        }
    }
    out
}

/// When a call was sent, or, where only its client's record shows it, issued.
fn began(world: &World, joint: &JointCall) -> Option<Time> {
    if let Some(ask) = &joint.ask {
        return Some(world.visits.get(ask.visit as usize)?.asks.get(ask.ask as usize)?.last.at);
    }
    let sent = joint.hops.first().and_then(|c| world.visit_of(*c)).map(|v| v.at.at);
    sent.or_else(|| joint.client.and_then(|c| world.visit_of(c)).map(|v| v.asked))
}

/// Exchanges read: those of captures; a log's lines tell of the same ones, and count where there is nothing else.
fn counted(world: &World, core: Option<(i64, i64)>) -> u64 {
    let is_wire = world.visits.iter().any(|v| v.vantage == Vantage::Wire);
    let is_counted = |v: &&Visit| if is_wire { v.vantage == Vantage::Wire } else { v.vantage != Vantage::Client };
    world.visits.iter().filter(is_counted).filter(|v| is_within(core, v.at.at)).count() as u64
}

/// A hash that is known; a log that shows no body has none.
fn hash(hash: &Sha256) -> Option<String> {
    (*hash != [0; 32]).then(|| hex(hash))
}

/// A hash as the report writes it.
pub fn hex(hash: &Sha256) -> String {
    use std::fmt::Write;
    hash.iter().fold(String::with_capacity(64), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

fn call(world: &World, joint: &JointCall, options: &AnalyzeOptions) -> Call {
    if let Some(ask) = &joint.ask {
        return server_call(world, joint, ask);
    }
    let front = joint.hops.first().copied();
    let client = joint.client;
    let told = client.and_then(|c| world.rpc_of(c));
    let rpc = front.and_then(|c| world.rpc_of(c));
    let known = |part: fn(&Rpc) -> Option<Arc<str>>| rpc.and_then(part).or_else(|| told.and_then(part));
    let (outcome, delivered) = outcome(world, joint);
    let text = |b: &Option<Arc<[u8]>>| b.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
    let reply =
        front.or(client).and_then(|c| world.hop_call(c)?.answer).and_then(|a| world.reply(a.at)).map(|(_, r)| r);
    let seen = joint.hops.iter().chain(&joint.lines).chain(&client);
    Call {
        key: joint.key,
        session: front
            .and_then(|c| world.session_of(c))
            .or_else(|| client.and_then(|c| world.visit_of(c)?.session.clone())),
        id: rpc.and_then(|r| r.id.clone()).or_else(|| told.and_then(|r| r.id.clone())),
        method: known(|r| r.method.clone()),
        tool: known(|r| r.tool.clone()),
        from: None,
        issued: client.and_then(|c| world.visit_of(c)).map(|v| v.asked),
        sent: front.and_then(|c| world.visit_of(c)).map(|v| v.at.at),
        replied: front.and_then(|c| world.replied(c)).map(|m| m.at),
        outcome,
        delivered,
        client_saw: client.and_then(|c| world.visit_of(c)).map(client_saw),
        sightings: seen.filter_map(|c| sighting(world, *c, options)).collect(),
        bodies: options.bodies.then(|| Bodies {
            request: rpc.or(told).and_then(|r| text(&r.body)),
            reply: reply.and_then(|r| text(&r.body)),
        }),
    }
}

/// What came back, as the best placed vantage shows it: packets, else the client's own record.
fn outcome(world: &World, joint: &JointCall) -> (Outcome, Delivered) {
    let (outcome, delivered) =
        if joint.hops.is_empty() { (Outcome::Unobserved, Delivered::Unknown) } else { world.outcome(joint) };
    let Some((client, visit)) = joint.client.and_then(|c| Some((c, world.visit_of(c)?))) else {
        return (outcome, delivered);
    };
    if joint.hops.is_empty()
        && joint.lines.is_empty()
        && world.coverage(client).is_some()
        && visit.client_outcome != Some(ClientOutcome::Aborted)
    {
        return (Outcome::NotSent, Delivered::None);
    }
    if outcome != Outcome::Unobserved {
        return (outcome, delivered);
    }
    let whose = if world.contents.foreign.contains_key(&client) { Delivered::Foreign } else { Delivered::Unknown };
    match visit.client_outcome {
        Some(ClientOutcome::Ok) => (Outcome::Result, whose),
        Some(ClientOutcome::Error) => (Outcome::RpcError, whose),
        _ if both(world, joint).is_some_and(|b| b.is_unanswered()) => (Outcome::NoReply, Delivered::None),
        _ => (outcome, delivered),
    }
}

fn client_saw(v: &Visit) -> serde_json::Value {
    serde_json::json!({ "outcome": v.client_outcome, "ended": v.ended.map(|e| e.at), "text": v.comment })
}

fn sighting(world: &World, c: HopCallId, options: &AnalyzeOptions) -> Option<Sighting> {
    let (hop, visit) = (world.hop_call(c)?, world.visit_of(c)?);
    let rpc: &Rpc = world.rpc_of(c)?;
    let own = hop.answer.map(|a| (a.at, a.channel)).or_else(|| hop.foreign.first().map(|r| (*r, Channel::PostSse)));
    let reply = own.and_then(|(at, _)| world.reply(at)).map(|(_, r)| r);
    Some(Sighting {
        channel: own
            .map(|(_, channel)| channel)
            .or(visit.status.filter(|_| visit.place.is_frame).map(|_| Channel::None)),
        reply_frame: reply.and_then(|r| r.last.place.as_frame()),
        reply_id: reply.and_then(|r| r.id.clone()),
        reply_sha256: reply.and_then(|r| hash(&r.sha256())),
        reply_at: reply.map(|r| r.last.at),
        request_sha256: hash(&rpc.sha256()),
        ambiguous: world.logs.ambiguous.contains(&hop.visit),
        detail: options.details.then(|| Box::new(detail(visit, rpc, reply))),
        ..visited(visit)
    })
}

/// Everything that a visit shows of a call.
fn detail(visit: &Visit, rpc: &Rpc, reply: Option<&Reply>) -> Detail {
    let text = |b: &Option<Arc<[u8]>>| b.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
    let heads = visit.heads.as_deref();
    let line = |method: &Arc<str>| format!("{method} {}", visit.target.as_deref().unwrap_or(""));
    Detail {
        request_line: visit.method.as_ref().map(line),
        request_headers: heads.map(|h| h.request.clone()).unwrap_or_default(),
        request: text(&rpc.body),
        status_line: visit.status.map(|s| format!("status {s}")),
        response_headers: heads.map(|h| h.response.clone()).unwrap_or_default(),
        reply: reply.and_then(|r| text(&r.body)).or_else(|| visit.error_text.as_deref().map(str::to_string)),
        record: visit.comment.as_deref().map(str::to_string),
    }
}

/// What a visit alone says.
fn visited(visit: &Visit) -> Sighting {
    Sighting {
        input: visit.place.input,
        vantage: Some(visit.vantage),
        frame: visit.place.as_frame(),
        line: visit.place.as_line(),
        at: Some(visit.at.at).filter(|_| visit.at.is_known()),
        at_error_ms: Some(ms(visit.at.error_ns)).filter(|_| visit.at.is_known()),
        peer: peer(visit),
        status: visit.status,
        bytes: visit.bytes,
        end: visit.end,
        ended_at: visit.ended.map(|m| m.at),
        head_at: visit.head.map(|m| m.at),
        stream: visit.stream,
        ..Sighting::default()
    }
}

fn peer(visit: &Visit) -> Option<String> {
    let ip = visit.peer?;
    Some(match visit.port {
        Some(port) => std::net::SocketAddr::new(ip, port).to_string(),
        None => ip.to_string(),
    })
}

fn server_call(world: &World, joint: &JointCall, ask: &crate::join::calls::ServerCall) -> Call {
    let visit = world.visits.get(ask.visit as usize);
    let request = visit.and_then(|v| v.asks.get(ask.ask as usize));
    let response = ask.response.and_then(|(v, i)| {
        let visit = world.visits.get(v as usize)?;
        Some((visit, visit.rpc.get(i as usize)?))
    });
    let sightings = visit.zip(request).map(|(v, r)| Sighting {
        frame: r.last.place.as_frame(),
        line: r.last.place.as_line(),
        at: Some(r.last.at),
        channel: Some(if v.is_get() { Channel::GetSse } else { Channel::PostSse }),
        request_sha256: Some(hex(&r.sha256)),
        reply_frame: response.and_then(|(v, _)| v.place.as_frame()),
        reply_id: response.and_then(|(_, r)| r.id.clone()),
        reply_sha256: response.map(|(_, r)| hex(&r.sha256())),
        reply_at: response.map(|(v, _)| v.asked),
        ..visited(v)
    });
    Call {
        key: joint.key,
        session: visit.and_then(|v| v.belongs_to().cloned()),
        id: request.map(|r| r.id.clone()),
        method: request.map(|r| r.method.clone()),
        tool: None,
        from: Some("server"),
        issued: None,
        sent: request.map(|r| r.last.at),
        replied: response.map(|(v, _)| v.asked),
        // A client may take its time (a person answers an elicitation): silence is no orphan.
        outcome: if response.is_some() { Outcome::Result } else { Outcome::Unobserved },
        delivered: if response.is_some() { Delivered::Own } else { Delivered::Unknown },
        client_saw: None,
        sightings: sightings.into_iter().collect(),
        bodies: None,
    }
}

fn exchanges(world: &World) -> Vec<ExchangeRow> {
    let mut rows: Vec<(u64, ExchangeRow)> =
        world.visits.iter().filter(|v| v.vantage != Vantage::Client).map(|v| (v.exchange, exchange(v))).collect();
    rows.sort_by_key(|(n, r)| (r.at.map_or(i64::MAX, |t| t.ns()), *n));
    rows.into_iter().map(|(_, r)| r).collect()
}

fn exchange(v: &Visit) -> ExchangeRow {
    let initialize = v.carries("initialize");
    ExchangeRow {
        input: v.place.input,
        stream: v.stream,
        request_frame: if v.has_request { v.place.as_frame() } else { None },
        response_frame: v.head.and_then(|m| m.place.as_frame()),
        at: Some(v.at.at),
        method: v.method.clone(),
        target: v.target.clone(),
        status: v.status,
        session: if initialize { v.session.clone().or_else(|| v.belongs_to().cloned()) } else { v.session.clone() },
        rpc: v
            .rpc
            .iter()
            .filter(|r| r.kind != RpcKind::Response)
            .map(|r| RpcRow { id: r.id.clone(), method: r.method.clone(), tool: r.tool.clone() })
            .collect(),
        replies: v
            .replies
            .iter()
            .map(|r| ReplyRow {
                frame: r.last.place.as_frame(),
                at: Some(r.last.at),
                id: r.id.clone(),
                kind: Some(if r.error.is_some() { "error" } else { "result" }),
                sha256: Some(hex(&r.sha256())),
            })
            .collect(),
        end: v.end,
        ended: v.ended.map(|m| m.at),
        peer: peer(v),
        bytes: v.bytes,
    }
}
