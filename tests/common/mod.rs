//! Hand-made reports in the shape of real incidents, for tests of what renders them.
#![allow(dead_code, clippy::unwrap_used)]

use crosswire::model::exchange::End;
use crosswire::model::id::RpcId;
use crosswire::model::place::{Hop, Side, Vantage};
use crosswire::model::problem::{ProblemKind, Problems};
use crosswire::model::report::*;
use crosswire::model::time::Time;

pub const SESSION: &str = "880af36cca1744e8b1b2a196bbdd815c";

/// `19:38:MM.mmm` on the day of the incident, given in ms after 19:38:40.
pub fn at(ms: i64) -> Time {
    Time::from_us((1_795_981_120_000 + ms) * 1000)
}

pub fn input(name: &str, vantage: Vantage, side: Option<Side>, records: u64) -> InputInfo {
    InputInfo {
        name: name.into(),
        format: Some(if vantage == Vantage::Wire { "pcap" } else { "nginx-json" }.into()),
        vantage: Some(vantage),
        side,
        records,
        first: Some(at(0)),
        last: Some(at(20_000)),
        clock: Clock { offset_ms: Some(0.0), error_ms: Some(0.0), ..Clock::default() },
        problems: Problems::default(),
        joined: 0,
        ambiguous: 0,
        parts: vec![],
        shows: String::new(),
    }
}

pub fn session(id: &str, calls: u64) -> Session {
    Session {
        session: Some(id.into()),
        revision: Some("2025-06-18".into()),
        client: Some("connector/2.1".into()),
        server: Some("trailhead/3.2.0".into()),
        started: Some(at(0)),
        ended: Some(at(18_000)),
        end: Some(SessionEnd::Open),
        calls,
        conversations: Some(2),
        peers: vec!["127.0.0.21".into(), "127.0.0.22".into()],
        endpoint: Some("127.0.0.1:9311/mcp".into()),
    }
}

/// A tool call that the first input saw, sent at `sent` ms and answered after `took` ms.
pub fn call(key: u32, tool: &str, id: i64, frame: u64, sent: i64, took: Option<i64>) -> Call {
    let replied = took.map(|t| at(sent + t));
    Call {
        key: CallKey(key),
        session: Some(SESSION.into()),
        id: Some(RpcId::Int(id)),
        method: Some("tools/call".into()),
        tool: Some(tool.into()),
        from: None,
        issued: None,
        sent: Some(at(sent)),
        replied,
        outcome: if took.is_some() { Outcome::Result } else { Outcome::NoReply },
        delivered: if took.is_some() { Delivered::Own } else { Delivered::None },
        client_saw: None,
        sightings: vec![Sighting {
            input: 0,
            vantage: Some(Vantage::Wire),
            frame: Some(frame),
            at: Some(at(sent)),
            at_error_ms: Some(0.0),
            peer: Some("127.0.0.1:36160".into()),
            status: Some(200),
            channel: Some(if took.is_some() { Channel::PostSse } else { Channel::None }),
            reply_frame: took.map(|_| frame + 4),
            reply_id: took.map(|_| RpcId::Int(id)),
            bytes: Some(if took.is_some() { 188 } else { 0 }),
            head_at: Some(at(sent + 3)),
            reply_at: replied,
            end: Some(if took.is_some() { End::Complete } else { End::ClientClosed }),
            ended_at: Some(at(sent + took.unwrap_or(6000))),
            stream: Some(u64::from(key)),
            ..Sighting::default()
        }],
        bodies: None,
    }
}

pub fn evidence(frame: u64, text: &str) -> Evidence {
    Evidence {
        input: Some(0),
        frame: Some(frame),
        line: None,
        offset: None,
        cursor: None,
        text: Some(text.into()),
        filter: Some(format!("frame.number == {frame}")),
    }
}

pub fn finding(rule: &'static str, calls: &[u32], from: i64, until: i64, summary: &str) -> Finding {
    Finding {
        rule,
        severity: Severity::High,
        confidence: Confidence::Certain,
        fault: vec![Hop::Server],
        cleared: vec![],
        session: Some(SESSION.into()),
        at: Some(at(from)),
        until: Some(at(until)),
        calls: calls.iter().map(|k| CallKey(*k)).collect(),
        victim: calls.first().map(|k| CallKey(*k)),
        owner: None,
        batch: None,
        summary: summary.into(),
        evidence: vec![evidence(57, "reply with id 3")],
        shown: String::new(),
        waited_ns: None,
    }
}

/// Counts that fit the lists.
pub fn counted(mut r: Report) -> Report {
    r.summary.sessions = r.sessions.len() as u64;
    r.summary.calls = r.calls.len() as u64;
    r.summary.tool_calls = r.calls.iter().filter(|c| c.method.as_deref() == Some("tools/call")).count() as u64;
    r.summary.findings = r.findings.len() as u64;
    r
}

/// Two conversations share a session; both use id 3 at once: one gets the other's reply.
pub fn collision() -> Report {
    let mut victim = call(9, "entity_update", 3, 49, 6448, Some(387));
    victim.delivered = Delivered::Foreign;
    let crossed = Finding {
        owner: Some(CallKey(8)),
        batch: Some(2),
        shown: "backend.pcap: both requests went in, one reply came out, on the stream of c9".into(),
        evidence: vec![
            evidence(43, "journal_append with id 3"),
            evidence(49, "entity_update with id 3, 217 ms later"),
            evidence(57, "the only reply with id 3: a journal_append receipt"),
        ],
        ..finding(
            "crossed/id-collision",
            &[9, 8],
            6835,
            12_230,
            "entity_update received the reply of journal_append: both were in flight in one session with id 3, and \
             the server wrote the first result to the second stream.",
        )
    };
    let hung = Finding {
        waited_ns: Some(6_000_000_000),
        ..finding(
            "orphaned/no-reply",
            &[8, 9],
            6230,
            12_230,
            "journal_append with id 3 never got a reply: its result went to entity_update.",
        )
    };
    let shared = Finding {
        severity: Severity::Low,
        confidence: Confidence::Probable,
        fault: vec![Hop::Client],
        victim: None,
        ..finding("session/shared", &[], 0, 18_000, "Two conversations used this session id at the same time.")
    };
    counted(Report {
        inputs: vec![input("cases/backend.pcap", Vantage::Wire, None, 96)],
        summary: Summary { exchanges: 13, ..Summary::default() },
        sessions: vec![session(SESSION, 4)],
        calls: vec![
            call(7, "fast_echo", 2, 30, 3000, Some(12)),
            call(8, "journal_append", 3, 43, 6230, None),
            victim,
            call(10, "fast_echo", 4, 70, 15_000, Some(9)),
        ],
        findings: vec![crossed, hung, shared],
        ..Report::default()
    })
}

/// The server restarts; the client's old session is refused, and two calls are lost on the way.
pub fn stale_window() -> Report {
    const OLD: &str = "84dc3f27ddc54955b223301a8e5bd5d7";
    const NEW: &str = "8e87b22820a647d2ba24785ad6715d9d";
    let lost = |key, id, ms| Call {
        session: Some(NEW.into()),
        issued: Some(at(ms)),
        sent: None,
        outcome: Outcome::NotSent,
        client_saw: Some(serde_json::json!({"outcome": "empty"})),
        sightings: vec![Sighting {
            input: 1,
            vantage: Some(Vantage::Client),
            line: Some(u64::from(key)),
            at: Some(at(ms)),
            ..Sighting::default()
        }],
        ..call(key, "memory_read", id, 0, ms, None)
    };
    let refused = Call {
        session: Some(OLD.into()),
        method: Some("tools/list".into()),
        tool: None,
        outcome: Outcome::HttpError,
        ..call(5, "", 41, 30, 2764, Some(4))
    };
    let step = |ms, what: &str, status, note: &str, place: &str| SequenceLine {
        at: Some(at(ms)),
        what: what.into(),
        status,
        note: note.into(),
        evidence: place.into(),
    };
    let mut client = input("client.jsonl", Vantage::Client, None, 12);
    client.format = Some("crosswire-client".into());
    let mut wire = input("front.pcap", Vantage::Wire, Some(Side::Front), 113);
    wire.problems.add(
        ProblemKind::TruncatedRecord,
        || "frame 97",
        || "the file ends inside a record; the rest was read",
    );
    counted(Report {
        inputs: vec![wire, client],
        summary: Summary { exchanges: 18, ..Summary::default() },
        sessions: vec![
            Session { end: Some(SessionEnd::Stale), ..session(OLD, 2) },
            Session { conversations: None, ..session(NEW, 3) },
        ],
        calls: vec![
            Call { session: Some(OLD.into()), ..call(4, "memory_read", 4, 20, 0, Some(9)) },
            refused,
            lost(6, 46, 4786),
            lost(7, 47, 6787),
            Call { session: Some(NEW.into()), ..call(8, "memory_read", 48, 70, 19_926, Some(11)) },
        ],
        windows: vec![Window {
            stale_session: Some(OLD.into()),
            new_session: Some(NEW.into()),
            opened: Some(at(2764)),
            initialize: Some(at(3165)),
            recovered: Some(at(4185)),
            next_call: Some(at(19_926)),
            silence_s: Some(15.5),
            cause: Some(Cause::Restart),
            trigger_call: Some(CallKey(5)),
            lost: vec![CallKey(6), CallKey(7)],
            shows_lost: true,
            sequence: vec![
                step(2700, "server started", None, "systemd: Started trailhead.service", "journal.json:12"),
                step(2764, "POST /mcp", Some(404), "stale session id", "front.pcap:31"),
                step(3165, "POST /mcp", Some(200), "initialize: new session 8e87b228…", "front.pcap:36"),
                step(3180, "POST /mcp", Some(202), "notifications/initialized", "front.pcap:41"),
                step(4185, "POST /mcp", Some(200), "tools/list", "front.pcap:52"),
                step(4786, "memory_read", None, "issued by the client, seen nowhere else", "client.jsonl:6"),
            ],
        }],
        findings: vec![Finding {
            session: Some(OLD.into()),
            fault: vec![Hop::Client],
            cleared: vec![Hop::Server, Hop::Proxy],
            victim: None,
            ..finding(
                "stale/404-window",
                &[6, 7],
                2764,
                4185,
                "After the restart the old session was refused; the client re-initialised in 1.4 s and lost 2 calls.",
            )
        }],
        ..Report::default()
    })
}

/// A clean capture of which a part was encrypted.
pub fn clean() -> Report {
    let mut wire = input("front.pcap", Vantage::Wire, None, 240);
    wire.problems.add_many(ProblemKind::NoKeys, 3, || "frame 4", || "TLS without keys; give --keylog FILE");
    counted(Report {
        inputs: vec![wire],
        summary: Summary { exchanges: 2, tls_connections: 3, ..Summary::default() },
        sessions: vec![session(SESSION, 2)],
        calls: vec![call(1, "fast_echo", 1, 10, 0, Some(12)), call(2, "fast_echo", 2, 20, 100, Some(12))],
        ..Report::default()
    })
}

/// Names, ids and texts that try to act on whatever shows them.
pub fn hostile() -> Report {
    let evil = "</script><img src=x onerror=alert(1)>|`\u{1b}[31m\u{202e}\r\n=cmd()";
    let long = "A".repeat(1 << 20);
    let mut r = collision();
    r.inputs[0].name = format!("dir/{evil}");
    r.inputs[0].problems.add(ProblemKind::Garbage, || evil, || long.clone());
    r.sessions[0].session = Some(evil.into());
    r.sessions[0].client = Some(evil.into());
    for c in &mut r.calls {
        c.session = Some(evil.into());
        c.tool = Some(format!("={evil}").into());
        c.id = Some(RpcId::Str(evil.into()));
        c.bodies = Some(Bodies { request: Some(evil.into()), reply: Some(format!("{evil}{long}")) });
        c.sightings[0].peer = Some(evil.into());
    }
    for f in &mut r.findings {
        f.session = Some(evil.into());
        f.summary = format!("{evil} {long}");
        f.shown = evil.into();
        f.evidence[0].text = Some(evil.into());
        f.evidence[0].filter = Some(evil.into());
    }
    r
}
