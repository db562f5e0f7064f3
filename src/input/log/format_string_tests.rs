//! Format strings of every kind, compiled and read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::LogContext;
use super::format_string::{compile, reader};
use super::testing::{Collected, read_lines};
use crate::model::options::ReadOptions;
use crate::model::problem::ProblemKind;
use crate::model::record::{AccessRecord, When};
use proptest::prelude::*;

fn run(format: &str, text: &str) -> Collected {
    let options = ReadOptions::default();
    let context = LogContext { input: 0, name: "test", options: &options, modified_ns: None };
    let mut out = Collected::default();
    read_lines(reader(compile(format).unwrap(), &context), text.as_bytes(), &mut out);
    out
}

fn one(format: &str, line: &str) -> AccessRecord {
    let out = run(format, line);
    assert!(out.faults().is_empty(), "{:?}", out.faults());
    assert_eq!(out.accesses().len(), 1, "{format}\n{line}");
    out.accesses()[0].clone()
}

fn at(when: Option<When>) -> String {
    when.map_or("unknown".into(), |w| w.at.to_string())
}

const SID: &str = "518eef8e6c5c4168b8d52e59b7870bf8";
const TEXT: &str = "$time_iso8601 $remote_addr:$remote_port \"$request\" $status $body_bytes_sent \
    sid=$http_mcp_session_id rid=$request_id ut=$upstream_response_time $request_time";

#[test]
fn nginx_lists_of_upstreams_are_split_from_what_follows() {
    for (list, sum) in [
        ("0.006", Some(6_000_000)),
        ("-", None),
        ("0.001, 0.002", Some(3_000_000)),
        ("0.001, - : 0.500", Some(501_000_000)),
        ("", None),
    ] {
        let r = one(
            TEXT,
            &format!(
                "2026-11-29T19:38:38+00:00 ::1:54550 \"POST /mcp HTTP/1.1\" 200 362 sid={SID} rid=ab ut={list} 4.307"
            ),
        );
        assert_eq!((r.upstream_ns, r.duration_ns), (sum, Some(4_307_000_000)), "{list}");
        assert_eq!((r.client_addr.unwrap().to_string(), r.client_port), ("::1".into(), Some(54550)));
        assert_eq!((r.session.as_deref(), r.request_id.as_deref()), (Some(SID), Some("ab")));
    }
}

#[test]
fn nginx_directives_are_taken_as_they_stand_in_the_configuration() {
    let directive = "log_format mcp escape=json '$remote_addr [$time_local] \"$request\" $status '\n  '\"$request_body\" $msec ${request_time}s';";
    let r = one(
        directive,
        "192.0.2.1 [29/Nov/2026:19:38:38 +0000] \"POST /mcp?a=\\\"b\\\" HTTP/1.1\" 200 \"{\\\"id\\\":7}\" 1795981118.589 0.005s",
    );
    assert_eq!((at(r.end), at(r.start)), ("2026-11-29T19:38:38.589Z".into(), "2026-11-29T19:38:38.584Z".into()));
    assert_eq!(r.request_body.as_deref(), Some(b"{\"id\":7}".as_slice()));
    assert_eq!(r.target.as_deref(), Some("/mcp?a=\"b\""));
    let r = one(
        "$msec \"$request_method $uri $args\" $status \"$request_body\"",
        "1795981118.589 \"POST /mcp a=1\" 200 \"{\\x22id\\x22:\\x22x\\x5C\\x22y\\x22}\"",
    );
    assert_eq!(
        (r.target.as_deref(), r.request_body.as_deref()),
        (Some("/mcp?a=1"), Some(br#"{"id":"x\"y"}"#.as_slice()))
    );
    let r = one("$msec $status $request_body", "1795981118.589 200 {\"id\": \"a b\", \"x\": \"c\\\"d\"}");
    assert_eq!(r.request_body.as_deref(), Some(br#"{"id": "a b", "x": "c\"d"}"#.as_slice()));
    let json = "{\"t\":\"$time_iso8601\",\"r\":\"$request\",\"s\":$status,\"rt\":$request_time}";
    assert_eq!(
        one(json, "{\"t\":\"2026-11-29T19:38:38+00:00\",\"r\":\"GET / HTTP/1.1\",\"s\":409,\"rt\":0.100}").status,
        Some(409)
    );
}

#[test]
fn apache_directives() {
    let usec = "%h %l %u [%{%Y-%m-%d %H:%M:%S}t.%{usec_frac}t] \"%r\" %>s %O %D \"%{Mcp-Session-Id}i\" \"%{Mcp-Session-Id}o\" %{UNIQUE_ID}e %X";
    let r = one(
        usec,
        &format!(
            "127.0.0.1 - - [2026-11-29 19:55:22.503609] \"POST /mcp HTTP/1.1\" 200 608 4354 \"-\" \"{SID}\" awyDKgle_z -"
        ),
    );
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:55:22.503609Z".into(), "2026-11-29T19:55:22.507963Z".into()));
    assert_eq!((r.session, r.session_given.as_deref()), (None, Some(SID)));
    assert_eq!((r.termination.as_deref(), r.bytes_are_body), (Some("-"), false));
    let r = one(
        "combined",
        "192.0.2.1 - - [29/Nov/2026:14:55:22 -0500] \"GET /a\\\"b HTTP/1.1\" 304 - \"-\" \"x \\\"y\\\"\"",
    );
    assert_eq!((at(r.start), r.bytes, r.bytes_are_body), ("2026-11-29T19:55:22Z".into(), Some(0), true));
    assert_eq!((r.target.as_deref(), r.user_agent.as_deref()), (Some("/a\"b"), Some("x \"y\"")));
    let r = one(
        "LogFormat \"%{begin:msec}t %{end:msec}t %a:%{remote}p %m %U%q %s %>s %B %{ms}T\" timed",
        "1795981981147 1795981981155 192.0.2.1:7 POST /mcp?x=1 500 404 12 8",
    );
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:53:01.147Z".into(), "2026-11-29T19:53:01.155Z".into()));
    assert_eq!((r.status, r.client_port, r.bytes), (Some(404), Some(7), Some(12)));
    let r = one("%t %{msec_frac}t \"%r\" %>s %D", "[29/Nov/2026:19:55:22 +0000] 503 \"GET / HTTP/1.1\" 200 1000");
    assert_eq!(at(r.start), "2026-11-29T19:55:22.503Z");
    let r = one(
        "%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t \\\"%r\\\" %s",
        "29/Nov/2026:14:55:22.503 -0500 \"GET / HTTP/1.1\" 200",
    );
    assert_eq!((at(r.start), r.status), ("2026-11-29T19:55:22.503Z".into(), Some(200)));
}

#[test]
fn haproxy_and_envoy_directives() {
    let httplog =
        "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
    let r = one(
        httplog,
        &format!(
            "2001:db8::7:50552 [29/Nov/2026:19:50:42.640] mcp~ t/mcp1 0/0/0/7/7 200 584 - - ---- 1/1/0/0/0 0/0 {{}} {{{SID}}} \"POST /mcp HTTP/1.1\""
        ),
    );
    assert_eq!((at(r.start), at(r.end)), ("2026-11-29T19:50:42.640Z".into(), "2026-11-29T19:50:42.647Z".into()));
    assert_eq!((r.client_addr.unwrap().to_string(), r.client_port), ("2001:db8::7".into(), Some(50552)));
    assert_eq!((r.session, r.session_given.as_deref(), r.upstream.as_deref()), (None, Some(SID), Some("mcp1")));
    let r = one(
        httplog,
        "192.0.2.1:5 [29/Nov/2026:19:50:42.640] mcp t/mcp1 0/0/0/-1/60001 504 584 - - sH-- 1/1/0/0/0 0/0 \"POST /mcp HTTP/1.1\"",
    );
    assert_eq!((r.termination.as_deref(), r.duration_ns), (Some("sH--"), Some(60_001_000_000)));
    let custom = "log-format \"%Ts.%ms %[src]:%[src_port] %HM %HU %ST %Ta %[capture.req.hdr(0)] %[res.hdr(Mcp-Session-Id)] %ID\"";
    let r = one(custom, &format!("1795981842.640 192.0.2.1:9 POST /mcp 200 7 {SID} other-id u-1"));
    assert_eq!(
        (at(r.start), r.session.as_deref(), r.session_given.as_deref()),
        ("2026-11-29T19:50:42.640Z".into(), Some(SID), Some("other-id"))
    );
    let r = one("log-format %ci\\ [%trg]\\ %{+Q}HM\\ %ST", "192.0.2.1 [29/Nov/2026:19:50:42 +0000] \"GET\" 409");
    assert_eq!((r.method.as_deref(), r.status), (Some("GET"), Some(409)));
    let envoy = "[%START_TIME%] %REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %DURATION% %REQ(MCP-SESSION-ID)% %RESP(MCP-SESSION-ID)% %DOWNSTREAM_REMOTE_ADDRESS%\\n";
    let r = one(envoy, &format!("[2026-11-29T19:50:39.518Z] POST /mcp 200 - 5 {SID} - 192.0.2.1:9"));
    assert_eq!((r.session.as_deref(), r.session_given, r.client_port), (Some(SID), None, Some(9)));
}

#[test]
fn json_mappings() {
    let mapping = "json:start=began,duration=took@us,status=http.code,method=verb,target=where,session=ids.mcp";
    let r = one(
        mapping,
        "{\"began\":\"2026-11-29T19:50:39.518Z\",\"took\":4354,\"http\":{\"code\":404},\"verb\":\"POST\",\"where\":\"/mcp\",\"ids\":{\"mcp\":\"abc\"}}",
    );
    assert_eq!((at(r.start), r.duration_ns, r.status), ("2026-11-29T19:50:39.518Z".into(), Some(4_354_000), Some(404)));
    assert_eq!(r.session.as_deref(), Some("abc"));
    for (bad, what) in [
        ("json:", "without any"),
        ("json:when=x", "no field"),
        ("json:start", "FIELD=KEY"),
        ("json:duration=d@weeks", "unit"),
    ] {
        let error = compile(bad).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn what_is_no_format_is_refused_with_its_place() {
    for (bad, what) in [
        ("plain words", "no `$variable`"),
        ("$remote_addr ${status", "character 15"),
        ("$remote_addr $", "without a variable"),
        ("$remote_addr", "nothing here tells"),
        ("%h %", "unfinished"),
        ("%h %J", "no directive"),
        ("%ci:%cp %[x", "unfinished"),
        ("%START_TIME", "closing"),
    ] {
        let error = compile(bad).err().unwrap_or_else(|| panic!("{bad}")).to_string();
        assert!(error.contains(what), "{bad}: {error}");
    }
}

#[test]
fn lines_that_do_not_fit_are_counted() {
    let out = run(
        TEXT,
        "2026-11-29T19:38:38+00:00 127.0.0.1:1 \"POST /mcp HTTP/1.1\" 200 362 sid=- rid=a ut=- 0.1\n\
        2026-11-29T19:38:38+00:00 127.0.0.1:1 \"POST /mcp HTT\n\
        127.0.0.1 - - [29/Nov/2026:19:38:38 +0000] \"POST /mcp HTTP/1.1\" 200 362 \"-\" \"-\"\n",
    );
    assert_eq!((out.entries.len(), out.records.len()), (3, 2));
    assert_eq!(out.faults().len(), 1);
    assert!(matches!(out.faults()[0], (ProblemKind::BadLine, 2, _)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_nginx_would_write_comes_back(
        ms in 1_600_000_000_000i64..1_900_000_000_000,
        port in 1u16..,
        path in "/[ -!#-\\[\\]-~]{0,20}",
        status in 100u16..600,
        bytes in any::<u32>(),
        session in proptest::option::of("[!-~&&[^\"\\\\]]{1,40}"),
        times in proptest::collection::vec(0u32..100_000, 0..4),
        total in 0u32..1_000_000,
    ) {
        prop_assume!(session.as_deref() != Some("-"));
        let seconds = |ms: u32| format!("{}.{:03}", ms / 1000, ms % 1000);
        let list = if times.is_empty() { "-".into() } else { times.iter().map(|t| seconds(*t)).collect::<Vec<_>>().join(", ") };
        let line = format!(
            "{}.{:03} 192.0.2.1:{port} \"POST {path} HTTP/1.1\" {status} {bytes} sid={} ut={list} {}",
            ms / 1000, ms % 1000, session.as_deref().unwrap_or("-"), seconds(total)
        );
        let r = one("$msec $remote_addr:$remote_port \"$request\" $status $body_bytes_sent sid=$http_mcp_session_id ut=$upstream_response_time $request_time", &line);
        prop_assert_eq!(r.end.unwrap().at.ns() / 1_000_000, ms);
        prop_assert_eq!(r.target.as_deref(), Some(path.as_str()));
        prop_assert_eq!((r.status, r.bytes, r.client_port), (Some(status), Some(u64::from(bytes)), Some(port)));
        prop_assert_eq!(r.session.as_deref(), session.as_deref());
        prop_assert_eq!(r.upstream_ns, (!times.is_empty()).then(|| times.iter().map(|t| i64::from(*t) * 1_000_000).sum()));
        prop_assert_eq!(r.duration_ns, Some(i64::from(total) * 1_000_000));
    }

    #[test]
    fn no_format_and_no_line_upset_it(format in "[%${}\\[\\]a-zA-Z:\" ()>+-]{0,40}", line in "\\PC{0,60}") {
        if let Ok(compiled) = compile(&format) {
            let options = ReadOptions::default();
            let context = LogContext { input: 0, name: "test", options: &options, modified_ns: None };
            let mut out = Collected::default();
            read_lines(reader(compiled, &context), line.as_bytes(), &mut out);
        }
    }
}

#[test]
fn a_line_made_to_be_slow_is_given_up() {
    let format = "$http_a $http_b $http_c $http_d $http_e $http_f $status!";
    let began = std::time::Instant::now();
    let out = run(format, &"a ".repeat(20_000));
    assert!(began.elapsed().as_secs() < 5);
    assert_eq!(out.faults().len(), 1);
}

#[test]
fn a_format_is_for_the_logs_that_it_fits() {
    use crate::input::detect::{Detected, detect};
    let text = b"2026-11-29T19:38:38+00:00 127.0.0.1:1 \"POST /mcp HTTP/1.1\" 200 362 sid=- rid=a ut=- 0.1\n";
    let name_of = |name: &str, head: &[u8], options: &ReadOptions| match detect(name, head, options).unwrap() {
        Detected::Log(format, _) => format.name.to_owned(),
        other => format!("{other:?}"),
    };
    let options = ReadOptions { log_format: Some(TEXT.into()), ..ReadOptions::default() };
    assert_eq!(name_of("a", text, &options), "log-format");
    assert_eq!(name_of("a", text, &ReadOptions::default()), "access-line");
    let haproxy = super::FORMATS.iter().find(|f| f.name == "haproxy").unwrap().samples[0];
    assert_eq!(name_of("a", haproxy.as_bytes(), &options), "haproxy");
    let combined = super::FORMATS.iter().find(|f| f.name == "nginx-combined").unwrap().samples[0];
    assert_eq!(name_of("a", combined.as_bytes(), &options), "nginx-combined");
    let bound = ReadOptions {
        log_formats: vec![("mine".into(), TEXT.into())],
        input_formats: vec![("mine".into(), "b".into())],
        ..ReadOptions::default()
    };
    assert_eq!(name_of("b", b"anything at all\n", &bound), "log-format");
    assert_eq!(name_of("a", text, &bound), "access-line");
    let bad = ReadOptions { log_format: Some("$a ${b".into()), ..ReadOptions::default() };
    assert!(detect("a", text, &bad).unwrap_err().to_string().starts_with("--log-format: "));
}
