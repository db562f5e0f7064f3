//! What each proxy's lines say, field by field.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::testing::{Collected, read};
use super::{FORMATS, Format, Grade, LogContext, ProxyLines};
use crate::model::options::ReadOptions;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{AccessRecord, LogEventKind, Record, When};

fn format(name: &str) -> &'static Format {
    FORMATS.iter().find(|f| f.name == name).unwrap()
}

fn run(name: &str, text: &str) -> Collected {
    read(format(name), text.as_bytes(), &ReadOptions::default())
}

fn one(name: &str, line: &str) -> AccessRecord {
    let out = run(name, line);
    assert!(out.faults().is_empty(), "{:?}", out.faults());
    let accesses = out.accesses();
    assert_eq!(accesses.len(), 1, "{line}");
    accesses[0].clone()
}

fn at(when: Option<When>) -> String {
    when.map_or("unknown".into(), |w| w.at.to_string())
}

const SID: &str = "518eef8e6c5c4168b8d52e59b7870bf8";

#[test]
fn nginx_stamps_the_end() {
    let line = "127.0.0.1 - - [29/Nov/2026:14:38:38 -0500] \"POST /mcp HTTP/1.1\" 200 362 \"-\" \"agent/1\"";
    let r = one("nginx-combined", line);
    assert_eq!((at(r.start), at(r.end)), ("unknown".into(), "2026-11-29T19:38:38Z".into()));
    // The logged second is the floor of the truth.
    let end = r.end.unwrap();
    assert!((end.at.ns() - end.error_ns) <= 1_795_981_118_000_000_000);
    assert!((end.at.ns() + end.error_ns) >= 1_795_981_119_000_000_000);
    assert_eq!((r.method.as_deref(), r.target.as_deref(), r.status), (Some("POST"), Some("/mcp"), Some(200)));
    assert_eq!((r.bytes, r.bytes_are_body, r.repeat), (Some(362), true, 1));
    assert_eq!((r.vantage, r.place), (Some(Vantage::Proxy), Some(Place::line(0, 1))));
    assert_eq!((r.user_agent.as_deref(), r.session), (Some("agent/1"), None));

    let r = one("nginx-combined", &format!("{line} rt=2.707 urt=\"0.700, 2.000\" sid=\"{SID}\" ssid=\"-\""));
    assert_eq!((r.duration_ns, r.upstream_ns), (Some(2_707_000_000), Some(2_700_000_000)));
    assert_eq!((r.session.as_deref(), r.session_given), (Some(SID), None));
    assert_eq!(r.end.unwrap().at.since(r.start.unwrap().at), 2_707_000_000);
    assert_eq!(one("nginx-combined", &format!("{line} 2.707")).duration_ns, Some(2_707_000_000));
    assert_eq!(one("nginx-combined", &format!("{line} \"203.0.113.9\"")).duration_ns, None);
}

#[test]
fn requests_that_are_none_and_odd_addresses_are_kept_apart() {
    let line =
        |peer: &str, request: &str| format!("{peer} - - [29/Nov/2026:19:38:38 +0000] \"{request}\" 400 0 \"-\" \"-\"");
    for request in ["-", "", "\\x16\\x03\\x01", "HELP", "get / HTTP/1.1", "POST"] {
        let r = one("nginx-combined", &line("192.0.2.1", request));
        assert_eq!((r.method, r.target, r.status), (None, None, Some(400)), "{request}");
    }
    for (request, target) in [
        ("GET /a b?x=\\x22y\\x22 HTTP/1.1", "/a b?x=\"y\""),
        ("POST http://mcp.example:80/mcp?token=s3cr3t HTTP/1.1", "/mcp?token=s3cr3t"),
        ("GET https://mcp.example HTTP/2.0", "/"),
        ("OPTIONS * HTTP/1.1", "*"),
        ("GET /old", "/old"),
    ] {
        assert_eq!(one("nginx-combined", &line("192.0.2.1", request)).target.as_deref(), Some(target));
    }
    for (peer, addr, port) in [
        ("2001:db8::7", Some("2001:db8::7"), None),
        ("[2001:db8::7]:443", Some("2001:db8::7"), Some(443)),
        ("192.0.2.1:65535", Some("192.0.2.1"), Some(65535)),
        ("client.example.net", None, None),
        ("mcp.example:443 192.0.2.1", Some("192.0.2.1"), None),
    ] {
        let r = one("nginx-combined", &line(peer, "GET / HTTP/1.1"));
        assert_eq!((r.client_addr.map(|a| a.to_string()).as_deref(), r.client_port), (addr, port), "{peer}");
    }
    let out = read(
        format("nginx-combined"),
        b"192.0.2.1 - - [29/Nov/2026:19:38:38 +0000] \"GET /\xff\xfe HTTP/1.1\" 404 0 \"-\" \"\xc3\x28\"",
        &ReadOptions::default(),
    );
    assert_eq!(out.accesses()[0].target.as_deref(), Some("/\u{fffd}\u{fffd}"));
}

#[test]
fn apache_is_told_from_nginx_by_its_marks() {
    let line = |second: u32, status: u16, bytes: &str| {
        format!(
            "192.0.2.1 - - [29/Nov/2026:19:38:{second:02} +0000] \"POST /mcp HTTP/1.1\" {status} {bytes} \"-\" \"-\"\n"
        )
    };
    let graded = |text: &str| {
        let best = FORMATS.iter().max_by_key(|f| {
            ((f.grade)(text.as_bytes()), std::cmp::Reverse(FORMATS.iter().position(|g| g.name == f.name)))
        });
        best.unwrap().name
    };
    assert_eq!(graded(&(line(1, 200, "362") + &line(2, 202, "0"))), "nginx-combined");
    assert_eq!(graded(&(line(1, 200, "608") + &line(2, 202, "180"))), "apache-combined");
    assert_eq!(graded(&(line(1, 200, "608") + &line(2, 202, "-"))), "apache-combined");
    // In order of completion, times of the start go back.
    assert_eq!(graded(&(line(30, 200, "608") + &line(2, 200, "300"))), "apache-combined");
    // Several workers that buffer their lines do the same.
    assert_eq!(graded(&(line(30, 200, "608") + &line(2, 202, "0"))), "nginx-combined");

    let out = run("apache-combined", &(line(1, 200, "608") + &line(2, 202, "-") + &line(3, 200, "20")));
    let bytes: Vec<_> = out.accesses().iter().map(|r| (r.bytes, r.bytes_are_body)).collect();
    assert_eq!(bytes, [(Some(608), false), (Some(0), true), (Some(20), true)]);
    let r = out.accesses()[0];
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:38:01Z".into(), "unknown".into()));
}

#[test]
fn caddy_shows_both_sessions_and_what_its_upstream_did() {
    let sample = format("caddy").samples[0];
    let out = run("caddy", sample);
    let r = out.accesses()[0];
    assert_eq!(
        (at(r.start), at(r.end)),
        ("2026-11-29T19:50:36.4357737Z".into(), "2026-11-29T19:50:36.4404132Z".into())
    );
    assert_eq!(r.session.as_deref(), Some("a474f0912285469cbe1c0fc601888e31"));
    assert_eq!(r.session_given, r.session);
    assert_eq!((r.client_port, r.bytes, r.bytes_are_body), (Some(34258), Some(350), true));
    assert_eq!(out.events()[0].kind, LogEventKind::UpstreamRefused);
    // Start-up lines of the same file name no logger.
    let startup =
        "{\"level\":\"info\",\"ts\":1761019822.3,\"msg\":\"using config from file\",\"file\":\"/etc/caddy/Caddyfile\"}";
    assert_eq!(run("caddy", startup).events()[0].kind, LogEventKind::Other);
    let aborted = "{\"level\":\"error\",\"ts\":1795981838.1,\"logger\":\"http.handlers.reverse_proxy\",\"msg\":\"aborting with incomplete response\",\"error\":\"read: connection reset by peer\"}";
    assert_eq!(run("caddy", aborted).events()[0].kind, LogEventKind::UpstreamReset);
}

#[test]
fn haproxy_stamps_the_start_and_names_the_end() {
    let hung = format!(
        "127.0.0.1:50552 [29/Nov/2026:19:50:42.640] mcp b/s1 1/2/3/4/8010 200 175 - - sD-- 1/1/0/0/0 0/0 {{{SID}}} {{}} \"POST /mcp HTTP/1.1\""
    );
    for (prefix, zone) in [
        ("", 0),
        ("<134>Nov 29 19:50:50 edge-1 haproxy[18879]: ", 0),
        ("Nov 29 19:50:50 edge-1 haproxy[18879]: ", 0),
        ("2026-11-29T19:50:50.1-04:00 edge-1 haproxy[18879]: ", 4),
        ("<134>1 2026-11-29T19:50:50.1+01:00 edge-1 haproxy 18879 - - ", -1),
    ] {
        let out = run("haproxy", &format!("{prefix}{hung}"));
        assert!(out.faults().is_empty());
        let r = out.accesses()[0];
        assert_eq!(at(r.start), format!("2026-11-29T{:02}:50:42.640Z", 19 + zone), "{prefix}");
        assert_eq!(at(r.end), format!("2026-11-29T{:02}:50:50.650Z", 19 + zone));
        assert_eq!((r.duration_ns, r.upstream_ns), (Some(8_010_000_000), Some(8_007_000_000)));
        assert_eq!((r.termination.as_deref(), r.upstream.as_deref()), (Some("sD--"), Some("b/s1")));
        assert_eq!((r.session.as_deref(), r.session_given.as_deref()), (Some(SID), None));
        assert!(!r.bytes_are_body);
    }
    let given = one("haproxy", &hung.replace(&format!("{{{SID}}} {{}}"), &format!("{{}} {{x|{SID}}}")));
    assert_eq!((given.session, given.session_given.as_deref()), (None, Some(SID)));
    let streaming = one("haproxy", &hung.replace("1/2/3/4/8010", "1/2/3/4/+5"));
    assert_eq!((streaming.duration_ns, streaming.end), (None, None));
    let refused = one(
        "haproxy",
        "127.0.0.1:5 [29/Nov/2026:19:50:42.640] mcp b/<NOSRV> 0/-1/-1/-1/0 503 217 - - SC-- 1/1/0/0/0 0/0 \"POST /mcp HTTP/1.1\"",
    );
    assert_eq!((refused.upstream, refused.upstream_ns, refused.status), (None, None, Some(503)));
    let down = "<133>Nov 29 19:50:50 edge-1 haproxy[7]: Server b/s1 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\"";
    assert_eq!(run("haproxy", down).events()[0].kind, LogEventKind::UpstreamRefused);
    let handshake = run("haproxy", "95.216.197.33:56224 [29/Nov/2026:19:50:42.640] mcp/1: SSL handshake failure");
    assert!(handshake.faults().is_empty() && handshake.records.is_empty() && handshake.entries[0].is_some());
}

#[test]
fn traefik_envoy_and_alb_have_their_own_ideas_of_time() {
    let r = one(
        "traefik",
        "192.0.2.9 - - [29/Nov/2026:19:55:22 +0000] \"POST /mcp HTTP/1.1\" 200 414 \"-\" \"a\" 500 \"mcp@docker\" \"http://172.17.0.3:80\" 2042ms",
    );
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:55:22Z".into(), "2026-11-29T19:55:24Z".into()));
    assert_eq!((r.duration_ns, r.upstream.as_deref()), (Some(2_042_000_000), Some("http://172.17.0.3:80")));
    let r = one("traefik-json", format("traefik-json").samples[0]);
    assert_eq!(
        (at(r.start), r.duration_ns, r.upstream_ns),
        ("2026-11-29T19:55:22.503609123Z".into(), Some(42_123_456), Some(41_000_000))
    );
    assert_eq!((r.session.as_deref(), r.client_port), (Some("4eb5feb57f4f432990e2c1260691e398"), Some(50552)));

    let r = one("envoy", format("envoy").samples[1]);
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:50:39.518Z".into(), "2026-11-29T19:50:41.521Z".into()));
    assert_eq!((r.termination.as_deref(), r.status, r.bytes), (Some("UC"), Some(503), Some(95)));
    assert_eq!((r.client_addr.unwrap().to_string(), r.client_port), ("192.0.2.9".into(), Some(51222)));
    let r = one("envoy", format("envoy").samples[0]);
    assert_eq!(
        (r.upstream_ns, r.termination, r.client_addr.unwrap().to_string()),
        (Some(4_000_000), None, "192.0.2.9".into())
    );
    let r = one("envoy-json", format("envoy-json").samples[0]);
    assert_eq!(
        (r.duration_ns, r.upstream_ns, r.termination.as_deref()),
        (Some(5_000_000), Some(4_000_000), Some("DC"))
    );
    let tcp =
        run("envoy", "[2026-11-29T19:50:39.518Z] \"- - -\" 0 - 158 350 5 - \"-\" \"-\" \"-\" \"-\" \"10.0.0.2:9311\"");
    assert!(tcp.faults().is_empty());

    let out = run("aws-alb", format("aws-alb").samples[0]);
    let r = out.accesses()[0];
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:53:44.630000Z".into(), "2026-11-29T19:53:46.679895Z".into()));
    assert_eq!(
        (r.duration_ns, r.upstream_ns, r.target.as_deref()),
        (Some(2_049_000_000), Some(2_048_000_000), Some("/mcp"))
    );
    let r = out.accesses()[1];
    assert_eq!((r.duration_ns, r.upstream.as_deref(), r.user_agent.as_deref()), (None, None, Some("a \"b\"")));
}

#[test]
fn json_keys_mean_what_their_names_say() {
    let r = one("json-access", format("json-access").samples[0]);
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:38:38.584Z".into(), "2026-11-29T19:38:38.589Z".into()));
    assert_eq!((r.bytes, r.bytes_are_body), (Some(362), true));
    assert_eq!((r.session, r.session_given.as_deref()), (None, Some("28731ae8108048b2b7529375ef255631")));
    let r = one("json-access", format("json-access").samples[1]);
    assert_eq!((r.target.as_deref(), r.status, r.duration_ns), (Some("/mcp"), Some(404), Some(5_000_000)));
    let pino = format!(
        "{{\"level\":30,\"time\":1795981118589,\"req\":{{\"method\":\"POST\",\"url\":\"/mcp\",\"headers\":{{\"mcp-session-id\":\"{SID}\"}}}},\"res\":{{\"statusCode\":404}},\"responseTime\":5,\"msg\":\"request completed\"}}"
    );
    let r = one("json-access", &pino);
    assert_eq!((r.vantage, r.session.as_deref(), r.duration_ns), (Some(Vantage::Server), Some(SID), Some(5_000_000)));
    let body = "{\"time\":\"2026-11-29T19:38:38Z\",\"request\":\"POST /mcp HTTP/1.1\",\"status\":200,\"request_body\":\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":7,\\\"x\\\":\\\"\\\\u00e9\\\"}\"}";
    let r = one("json-access", body);
    assert_eq!(r.request_body.as_deref(), Some(r#"{"jsonrpc":"2.0","id":7,"x":"\u00e9"}"#.as_bytes()));
    // No access line at all: an application's.
    assert_eq!(
        (format("json-access").grade)(b"{\"level\":30,\"time\":1795981118589,\"msg\":\"listening\"}\n"),
        Grade::No
    );
}

#[test]
fn error_logs_give_events() {
    let out = run(
        "nginx-error",
        "2026/11/29 20:03:25 [error] 7#7: *2 connect() failed (111: Connection refused) while connecting to upstream, client: 127.0.0.1\n\
        2026/11/29 20:03:26 [error] 7#7: *3 upstream prematurely closed connection while reading response header from upstream, client: 127.0.0.1\n\
        2026/11/29 20:03:27 [error] 7#7: *3 open() \"/x\" failed (2: No such file or directory), client: 127.0.0.1\n",
    );
    let kinds: Vec<_> = out.events().iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [LogEventKind::UpstreamRefused, LogEventKind::UpstreamReset, LogEventKind::Error]);
    assert_eq!((out.events()[0].pid, at(out.events()[0].when)), (Some(7), "2026-11-29T20:03:25Z".into()));
    assert!(out.problems.iter().any(|(kind, ..)| *kind == ProblemKind::InferredTime));
    let options = ReadOptions { tz: "America/New_York".parse().ok(), ..ReadOptions::default() };
    let out = read(format("nginx-error"), b"2026/11/29 20:03:25 [notice] 7#7: exiting", &options);
    assert_eq!(at(out.events()[0].when), "2026-11-30T01:03:25Z");
    assert!(out.problems.is_empty());
    let out = run("apache-error", format("apache-error").samples[0]);
    assert_eq!(out.events()[1].kind, LogEventKind::UpstreamReset);
}

#[test]
fn lines_of_other_layouts_in_a_file_are_read_too() {
    let mixed = format!(
        "127.0.0.1 - - [29/Nov/2026:19:38:38 +0000] \"POST /mcp HTTP/1.1\" 200 362 \"-\" \"-\"\n\
         {}\
         2026/11/29 20:03:25 [error] 7#7: *2 upstream timed out (110: Connection timed out) while reading upstream\n\
         what is this?\n\
         <190>Nov 29 19:50:42 edge-1 nginx: 192.0.2.1 - - [29/Nov/2026:19:38:39 +0000] \"POST /mcp HTTP/1.1\" 404 0 \"-\" \"-\"\n\
         127.0.0.1 - - [29/Nov/2026:19:38:38 +0000] \"POST /mcp HT\n",
        format("caddy").samples[0].lines().next().unwrap().to_owned() + "\n"
    );
    let out = run("nginx-combined", &mixed);
    assert_eq!((out.entries.len(), out.accesses().len(), out.events().len()), (6, 3, 1));
    let faults: Vec<_> = out.faults().iter().map(|(kind, line, _)| (*kind, *line)).collect();
    assert_eq!(faults, [(ProblemKind::UnknownLine, 4), (ProblemKind::BadLine, 6)]);
}

#[test]
fn proxy_lines_are_found_in_another_log() {
    let options = ReadOptions::default();
    let context = LogContext { input: 3, name: "journal", options: &options, modified_ns: None };
    let mut lines = ProxyLines::new(&context);
    let mut out = Collected::default();
    let message = "192.0.2.1 - - [29/Nov/2026:19:38:39 +0000] \"POST /mcp HTTP/1.1\" 404 0 \"-\" \"-\"";
    assert!(matches!(lines.read(message.as_bytes(), Place::line(3, 9), &mut out), Some(Record::Access(_))));
    assert!(lines.read(b"Started Session 1 of user root.", Place::line(3, 10), &mut out).is_none());
}

#[test]
fn the_user_decides_the_vantage() {
    let options = ReadOptions { vantages: vec![(Vantage::Server, "test".into())], ..ReadOptions::default() };
    let out = read(format("nginx-combined"), format("nginx-combined").samples[0].as_bytes(), &options);
    assert_eq!(out.accesses()[0].vantage, Some(Vantage::Server));
}
