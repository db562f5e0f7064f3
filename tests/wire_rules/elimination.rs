//! Fault by elimination over every combination of vantage points that are present: captures in front of and behind
//! a proxy, the proxy's access log, the server's journal and the client's record of one story each, in which it is
//! known who did it.

use crate::kit::packets::write;
use crate::kit::*;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::place::Hop;
use crosswire::model::report::Report;

/// 2026-11-29T20:00:00Z, s.
const START_S: f64 = 1_795_982_400.0;
const SESSION: &str = "5e551011aaaabbbb5e551011aaaabbbb";

/// What goes wrong with the calls `journal_append` 500 and `entity_update` 501, which are in flight together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Story {
    Nothing,
    ServerCrosses,
    ProxyCrosses,
    ClientCrosses,
    ServerIsSilent,
    ProxyLosesReply,
    ProxyLosesRequest,
    ClientSendsNothing,
    ServerCuts,
    ProxyCuts,
    ClientCuts,
    GatewayOfDeadServer,
    ProxyDropsStreams,
}

use Story::*;

/// Story, who did it, and what all vantage points together say.
const STORIES: &[(Story, &[Hop], &[&str])] = &[
    (Nothing, &[], &[]),
    (
        ServerCrosses,
        &[Hop::Server],
        &[
            "crossed/foreign-body entity_update#501 <- journal_append#500 by server, high",
            "crossed/foreign-body journal_append#500 <- entity_update#501 by server, high",
        ],
    ),
    (
        ProxyCrosses,
        &[Hop::Proxy],
        &[
            "crossed/foreign-body entity_update#501 <- journal_append#500 by proxy, high",
            "crossed/foreign-body journal_append#500 <- entity_update#501 by proxy, high",
        ],
    ),
    (
        ClientCrosses,
        &[Hop::Client],
        &[
            "crossed/at-client entity_update#501 <- journal_append#500 by client, high",
            "crossed/at-client journal_append#500 <- entity_update#501 by client, high",
        ],
    ),
    (ServerIsSilent, &[Hop::Server], &["orphaned/no-reply journal_append#500 by server, high"]),
    (ProxyLosesReply, &[Hop::Proxy], &["orphaned/lost-at-proxy journal_append#500 by proxy, high"]),
    (ProxyLosesRequest, &[Hop::Proxy], &["orphaned/lost-at-proxy journal_append#500 by proxy, high"]),
    (ClientSendsNothing, &[Hop::Client], &["orphaned/never-sent journal_append#500 by client, high"]),
    (ServerCuts, &[Hop::Server], &["orphaned/cut-off journal_append#500 by server, medium"]),
    (ProxyCuts, &[Hop::Proxy], &["orphaned/cut-off journal_append#500 by proxy, medium"]),
    (ClientCuts, &[Hop::Client], &["orphaned/cut-off journal_append#500 by client, medium"]),
    (GatewayOfDeadServer, &[Hop::Server], &["orphaned/cut-off journal_append#500 by server, medium"]),
    (ProxyDropsStreams, &[Hop::Proxy], &["protocol/get-stream by proxy, low"]),
];

/// The vantage points of a story, as the files that they leave.
struct Seen {
    front: Traffic,
    back: Traffic,
    record: Vec<(i64, String)>,
    access: Vec<(i64, String)>,
    journal: Vec<(i64, String)>,
}

fn stamp(ms: i64) -> String {
    let at = chrono::DateTime::from_timestamp_micros((START_S * 1e6) as i64 + ms * 1000).unwrap();
    at.format("%Y-%m-%dT%H:%M:%S%.6f").to_string()
}

impl Seen {
    fn begin() -> (Seen, Session) {
        let traffic = |behind: bool| {
            let mut t = Traffic::new();
            t.forwarded = behind;
            if behind {
                t.server.set_port(9000);
            } else {
                t.server.set_ip([10, 0, 0, 1].into());
            }
            t
        };
        let mut seen =
            Seen { front: traffic(false), back: traffic(true), record: vec![], access: vec![], journal: vec![] };
        let mut s = client("2025-06-18");
        seen.front.at(0);
        s = seen.front.handshake(&s, Some(SESSION));
        seen.back.at(1);
        seen.back.handshake(&client("2025-06-18"), Some(SESSION));
        seen.told(0, 7, "initialize", "", "", "0", 200, 300);
        seen.line(8, 10, 202, 0);
        seen.served(9, 202);
        (seen, s)
    }

    /// What the proxy logs of a request.
    fn line(&mut self, at: i64, until: i64, status: u16, bytes: usize) {
        let took = (until - at) as f64 / 1e3;
        let msec = START_S + until as f64 / 1e3;
        self.access.push((
            until,
            format!(
                r#"{{"msec":"{msec:.3}","remote_addr":"10.0.0.21","method":"POST","uri":"/mcp","status":"{status}","body_bytes_sent":"{bytes}","request_time":"{took:.3}","mcp_session_id":"{SESSION}"}}"#
            ),
        ));
    }

    /// What the server logs of it, as it answers.
    fn served(&mut self, at: i64, status: u16) {
        self.journal.push((
            at,
            format!("{}+0000 trail-1 python[7]: INFO:     10.0.0.21:0 - \"POST /mcp HTTP/1.1\" {status} OK", stamp(at)),
        ));
    }

    /// What the client records.
    #[allow(clippy::too_many_arguments)]
    fn recorded(&mut self, at: i64, until: i64, tool: &str, arguments: &str, id: &str, outcome: &str, result: &str) {
        let call = match tool {
            "initialize" => r#""method":"initialize""#.to_owned(),
            _ => format!(r#""method":"tools/call","tool":"{tool}","arguments":{arguments},"session":"{SESSION}""#),
        };
        let result = if result.is_empty() { String::new() } else { format!(r#","result":{result}"#) };
        self.record.push((
            at,
            format!(
                r#"{{"at":"{}Z","ended":"{}Z",{call},"id":{id},"outcome":"{outcome}"{result}}}"#,
                stamp(at),
                stamp(until)
            ),
        ));
    }

    /// What all logs have of a call that went well.
    #[allow(clippy::too_many_arguments)]
    fn told(&mut self, at: i64, until: i64, tool: &str, args: &str, result: &str, id: &str, status: u16, bytes: usize) {
        self.recorded(at, until, tool, args, id, "ok", result);
        self.line(at, until, status, bytes);
        self.served(until - 2, status);
    }

    /// A call that goes well.
    fn call(&mut self, s: &Session, at: i64, id: u32, tool: &str, args: &str, result: &str) {
        let (id, until) = (id.to_string(), at + 30);
        for (t, lag) in [(&mut self.front, 0), (&mut self.back, 1)] {
            let x = t.at(at + lag).tool(s, &id, tool, args);
            t.at(until - 2 * lag).answer(x, result);
        }
        self.told(at, until, tool, args, result, &id, 200, result.len() + 60);
    }

    /// Calls as those of [`warm`], each alone.
    fn usual(&mut self, s: &Session, from: i64, first: u32) {
        for n in 0..4u32 {
            let (at, id) = (from + i64::from(n) * 410, first + 3 * n);
            let (entry, entity) = (format!("early-{from}-{n:04}"), format!("forest-{from}-{n:04}"));
            self.call(s, at, id, "journal_append", &format!(r#"{{"entry":"{entry}"}}"#), &append_result(&entry));
            self.call(
                s,
                at + 90,
                id + 1,
                "entity_update",
                &format!(r#"{{"entity":"{entity}"}}"#),
                &update_result(&entity),
            );
            self.call(s, at + 230, id + 2, "motd", "{}", &plain("Welcome to the trail."));
        }
    }

    fn of(story: Story) -> Seen {
        let (mut seen, s) = Seen::begin();
        seen.usual(&s, 1000, 100);
        seen.meet(&s, story);
        if story == ProxyDropsStreams {
            (0..4).for_each(|n| seen.stream(&s, 30_000 + n * 3_000));
        }
        // Long enough that what is silent was silent for as long as a caller waits.
        seen.usual(&s, 90_000, 600);
        seen.usual(&s, 400_000, 700);
        seen
    }

    /// The two calls.
    fn meet(&mut self, s: &Session, story: Story) {
        let (a_args, b_args) = (r#"{"entry":"walk-0017"}"#, r#"{"entity":"park-0042"}"#);
        let (a_result, b_result) = (append_result("walk-0017"), update_result("park-0042"));
        let swapped = |wrong: bool| {
            if wrong { (b_result.clone(), a_result.clone()) } else { (a_result.clone(), b_result.clone()) }
        };
        let of_back = swapped(story == ServerCrosses);
        let of_front = swapped(matches!(story, ServerCrosses | ProxyCrosses));
        let of_record = swapped(matches!(story, ServerCrosses | ProxyCrosses | ClientCrosses));
        let b_result = of_record.1.clone();
        // The second is well but for what it carries.
        for (t, lag, of) in [(&mut self.front, 0, &of_front.1), (&mut self.back, 1, &of_back.1)] {
            let x = t.at(20_020 + lag).tool(s, 501, "entity_update", b_args);
            t.at(20_320 - 2 * lag).answer(x, of);
        }
        self.told(20_020, 20_320, "entity_update", b_args, &b_result, "501", 200, b_result.len() + 60);
        let is_sent = story != ClientSendsNothing;
        let is_passed_on = is_sent && story != ProxyLosesRequest;
        let front = is_sent.then(|| self.front.at(20_000).tool(s, 500, "journal_append", a_args));
        let back = is_passed_on.then(|| self.back.at(20_001).tool(s, 500, "journal_append", a_args));
        if is_passed_on && story != GatewayOfDeadServer {
            self.served(20_003, 200);
        }
        // When it ended, what the proxy logs, what the client made of it.
        let (mut end, mut bytes, mut status, mut outcome) = (20_400, a_result.len() + 60, 200, "ok");
        if let Some(x) = back {
            let t = &mut self.back;
            match story {
                ServerIsSilent => {
                    t.open(x);
                    t.at(80_001).end(x);
                }
                ServerCuts | GatewayOfDeadServer => {
                    if story == ServerCuts {
                        t.open(x);
                    }
                    t.at(21_000);
                    t.reset(x, End::Server);
                }
                ProxyCuts => {
                    t.open(x);
                    t.at(80_001).close(x);
                }
                ClientCuts => {
                    t.open(x);
                    t.at(25_002).close(x);
                }
                _ => t.at(20_398).answer(x, &of_back.0),
            }
        }
        if let Some(x) = front {
            let t = &mut self.front;
            match story {
                ServerIsSilent | ProxyLosesRequest => {
                    t.open(x);
                    t.at(80_002).end(x);
                    (end, bytes, outcome) = (80_002, 0, "timeout");
                }
                ProxyLosesReply => {
                    t.open(x);
                    t.at(20_400).end(x);
                    (bytes, outcome) = (0, "lost");
                }
                ServerCuts => {
                    t.open(x);
                    t.at(21_001).server_close(x);
                    (end, bytes, outcome) = (21_001, 0, "lost");
                }
                GatewayOfDeadServer => {
                    t.at(21_001).respond(x, 502, "Content-Type: text/html\r\n", "Bad Gateway");
                    (end, bytes, status, outcome) = (21_001, 11, 502, "error");
                }
                ProxyCuts => {
                    t.open(x);
                    t.at(80_002).server_close(x);
                    (end, bytes, outcome) = (80_002, 0, "lost");
                }
                ClientCuts => {
                    t.open(x);
                    t.at(25_000).close(x);
                    (end, bytes, status, outcome) = (25_001, 0, 499, "timeout");
                }
                _ => t.at(20_400).answer(x, &of_front.0),
            }
            self.line(20_000, end, status, bytes);
        } else {
            outcome = "lost";
        }
        let result = if outcome == "ok" { of_record.0.as_str() } else { "" };
        self.recorded(20_000, end, "journal_append", a_args, "500", outcome, result);
    }

    /// A GET stream that the proxy ends after two seconds.
    fn stream(&mut self, s: &Session, at: i64) {
        let x = self.front.at(at).get(s, None);
        self.front.at(at + 2_000).server_close(x);
        let x = self.back.at(at + 1).get(s, None);
        self.back.at(at + 1_999).close(x);
        self.served(at + 3, 200);
        let (_, line) = self.journal.last_mut().unwrap();
        *line = line.replace("POST", "GET");
        self.line(at, at + 2_000, 200, 0);
        let (_, line) = self.access.last_mut().unwrap();
        *line = line.replace("POST", "GET");
    }

    /// The report on those of the files that a bit is set for.
    fn analyze(&self, present: usize) -> Report {
        let folder = tempfile::tempdir().unwrap();
        let text = |lines: &[(i64, String)]| {
            let mut lines = lines.to_vec();
            lines.sort();
            lines.iter().map(|(_, l)| format!("{l}\n")).collect::<String>().into_bytes()
        };
        let started = format!("{}+0000 trail-1 systemd[1]: Started trail.service - Trail.", stamp(-5_000));
        let journal = [&[(-5_000, started)], &self.journal[..]].concat();
        let files = [
            ("front.pcap", write(&self.front.packets())),
            ("back.pcap", write(&self.back.packets())),
            ("client.jsonl", text(&self.record)),
            ("access.log", text(&self.access)),
            ("journal.txt", text(&journal)),
        ];
        let mut paths = vec![];
        for (n, (name, bytes)) in files.into_iter().enumerate() {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            if present & 1 << n != 0 {
                paths.push(path.display().to_string());
            }
        }
        let report = crosswire::analyze::run(&paths, &ReadOptions::default(), &AnalyzeOptions::default()).unwrap();
        assert!(report.troubles.is_empty(), "{:?}", report.troubles);
        report
    }
}

const NAMES: [&str; 5] = ["front", "back", "client", "access", "journal"];

/// All together say exactly who did it, and no combination says anything that clears who did it, or leaves it out.
pub fn who_did_it_is_among_those_named() {
    for (story, truth, all) in STORIES {
        let seen = Seen::of(*story);
        for present in 1..1 << NAMES.len() {
            let report = seen.analyze(present);
            let names: Vec<&str> = (0..NAMES.len()).filter(|n| present & 1 << n != 0).map(|n| NAMES[n]).collect();
            let said = lines(&report);
            for (f, line) in report.findings.iter().zip(report.findings.iter().map(|f| line(&report, f))) {
                let is_named = f.fault.is_empty() || truth.iter().all(|h| f.fault.contains(h));
                let is_cleared = truth.iter().any(|h| f.cleared.contains(h));
                assert!(
                    !truth.is_empty() && is_named && !is_cleared,
                    "{story:?}, seen from {names:?}: {line}; cleared {:?}: {}",
                    f.cleared,
                    f.summary
                );
            }
            if std::env::var_os("ELIMINATION").is_some() {
                println!("{story:?} {names:?}: {said:?}");
            }
            if names.len() == NAMES.len() {
                assert_eq!(said, *all, "{story:?}");
            }
        }
    }
}

/// The server ends what its caller had given up already, of which the proxy did not tell it.
pub fn who_gave_up_first_ended_it() {
    let mut seen = Seen::of(ClientCuts);
    let (mut late, s) = Seen::begin();
    late.usual(&s, 1000, 100);
    let x = late.back.at(20_001).tool(&s, 500, "journal_append", r#"{"entry":"walk-0017"}"#);
    late.back.open(x);
    late.back.at(25_500).server_close(x);
    let x = late.back.at(20_021).tool(&s, 501, "entity_update", r#"{"entity":"park-0042"}"#);
    late.back.at(20_318).answer(x, &update_result("park-0042"));
    late.usual(&s, 90_000, 600);
    seen.back = late.back;
    let by_client = ["orphaned/cut-off journal_append#500 by client, medium"];
    // With the client's record, or with the front.
    for present in [0b00110, 0b00011] {
        assert_eq!(lines(&seen.analyze(present)), by_client, "{present:b}");
    }
}

crate::table::tests!(who_did_it_is_among_those_named, who_gave_up_first_ended_it);
