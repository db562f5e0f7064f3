//! What is made to exhaust a reader ends soon, within a bound of memory, and with a counted
//! problem. Sizes are small by default; `CROSSWIRE_FULL=1 cargo test --release --test resources`
//! takes 1 GiB and a million of each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "wire_rules/kit/packets.rs"]
mod packets;

use packets::{ACK, PSH, Packet, SYN, Segment};
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// A run longer than this is stuck, not slow; the machine may be busy.
const SLOWEST: Duration = Duration::from_secs(240);

fn is_full() -> bool {
    std::env::var_os("CROSSWIRE_FULL").is_some()
}

/// Analyses a file in at most so much memory, and gives the report.
fn analyze(file: &Path, more: &[&str], most_mib: usize) -> Value {
    let began = Instant::now();
    let script = format!("ulimit -v {}; exec timeout -k 1 {} \"$@\"", most_mib * 1024, SLOWEST.as_secs());
    let o = Command::new("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_crosswire"), "analyze", "--format", "json", "--calls", "none"])
        .args(more)
        .arg(file)
        .env_remove("SSLKEYLOGFILE")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&o.stderr);
    let what = format!("{} {more:?}: {} after {:?}\n{said}", file.display(), o.status, began.elapsed());
    assert!(matches!(o.status.code(), Some(0..=2)), "{what}");
    assert!(!said.contains("internal error"), "{what}");
    serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{what}{e}"))
}

/// Kinds of problem counted.
fn problems(report: &Value) -> Vec<&str> {
    let inputs = report["inputs"].as_array().unwrap();
    inputs.iter().flat_map(|i| i["problems"].as_array().unwrap()).map(|p| p["kind"].as_str().unwrap()).collect()
}

/// Is it said that the input was not read, or what of it was not?
fn is_said(report: &Value) -> bool {
    report["troubles"].as_array().is_some_and(|t| !t.is_empty()) || !problems(report).is_empty()
}

fn repeated(folder: &Path, name: &str, unit: &[u8]) -> PathBuf {
    // Just over the longest line; lines by the million take long where nothing is optimised.
    let size = if is_full() {
        1024 * MIB
    } else if unit == b"\n" {
        3 * MIB
    } else {
        18 * MIB
    };
    let path = folder.join(name);
    let block = unit.repeat(MIB / unit.len());
    let mut out = File::create(&path).unwrap();
    (0..size / block.len()).for_each(|_| out.write_all(&block).unwrap());
    path
}

#[test]
fn one_thing_over_and_over() {
    let folder = tempfile::tempdir().unwrap();
    // What is asked for by name is read by that reader, whatever it is.
    let formats = [
        "nginx-combined",
        "json-access",
        "crosswire-client",
        "journal-json",
        "journal-export",
        "application",
        "sequence",
    ];
    for (name, unit) in
        [("zeros", &b"\0"[..]), ("one-line", b"a"), ("brackets", b"["), ("objects", b"{\"a\":"), ("newlines", b"\n")]
    {
        let file = repeated(folder.path(), name, unit);
        assert!(is_said(&analyze(&file, &[], 512)), "{name}");
        for format in formats {
            let report = analyze(&file, &["--input-format", format], 768);
            assert!(is_said(&report), "{name} as {format}");
        }
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn much_out_of_little() {
    let folder = tempfile::tempdir().unwrap();
    let size = if is_full() { 10 * 1024 * MIB } else { 256 * MIB };
    let path = folder.path().join("bomb.gz");
    let mut out = flate2::write::GzEncoder::new(File::create(&path).unwrap(), flate2::Compression::fast());
    let block = vec![b'a'; MIB];
    (0..size / MIB).for_each(|_| out.write_all(&block).unwrap());
    out.finish().unwrap();
    assert!(is_said(&analyze(&path, &[], 512)));
    assert!(problems(&analyze(&path, &["--input-format", "nginx-combined"], 512)).contains(&"long-line"));
}

#[test]
fn archives_that_swell() {
    use crosswire::input::zip::{Member, directory};
    let folder = tempfile::tempdir().unwrap();
    let archive = |name: &str, members: &mut [Member], body: &[u8]| {
        let mut file = Vec::new();
        for m in members.iter_mut() {
            m.offset = file.len() as u32;
            file.extend(m.local_header());
            file.extend(body);
        }
        let at = file.len() as u32;
        file.extend(directory(members, at));
        let path = folder.path().join(name);
        std::fs::write(&path, file).unwrap();
        path
    };
    let member = |name: String, packed: usize, bytes: u32| Member {
        name,
        method: 8,
        crc: 0,
        packed: packed as u32,
        bytes,
        offset: 0,
    };
    let mut bomb = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..256).for_each(|_| bomb.write_all(&vec![b'{'; MIB]).unwrap());
    let bomb = bomb.finish().unwrap();
    let mut many: Vec<Member> = (0..65_000).map(|n| member(format!("evidence/{n}.pcap"), 0, 0)).collect();
    let mut nested = [member("manifest.json".into(), bomb.len(), 256 << 20)];
    let mut liar = [member("manifest.json".into(), bomb.len(), 40)];
    for path in [
        archive("many.zip", &mut many, b""),
        archive("bomb.zip", &mut nested, &bomb),
        archive("liar.zip", &mut liar, &bomb),
    ] {
        assert!(is_said(&analyze(&path, &[], 512)), "{}", path.display());
    }
}

// ---- captures

struct Capture {
    out: BufWriter<File>,
    path: PathBuf,
    us: i64,
}

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9311);

/// The client of connection `n`.
fn client(n: u32) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(0x0a00_0000 + n / 50_000), 1024 + (n % 50_000) as u16)
}

impl Capture {
    fn new(folder: &Path, name: &str) -> Capture {
        let path = folder.join(name);
        let mut out = BufWriter::with_capacity(MIB, File::create(&path).unwrap());
        out.write_all(&packets::write(&[])).unwrap();
        Capture { out, path, us: 1_796_000_000_000_000 }
    }

    fn packet(&mut self, from: SocketAddrV4, to: SocketAddrV4, seq: u32, ack: u32, flags: u8, payload: &[u8]) {
        self.us += 10;
        let packet: Packet = Segment { from, to, seq, ack, flags, payload }.packet(self.us);
        self.out.write_all(&packets::write(&[packet])[24..]).unwrap();
    }

    fn open(&mut self, n: u32) {
        self.packet(client(n), SERVER, 0, 0, SYN, b"");
        self.packet(SERVER, client(n), 0, 1, SYN | ACK, b"");
    }

    /// A request and the bytes that answer it, on a connection of their own.
    fn exchange(&mut self, n: u32, request: &[u8], response: &[u8]) {
        self.open(n);
        let mut seq = 1;
        for part in request.chunks(1400) {
            self.packet(client(n), SERVER, seq, 1, ACK | PSH, part);
            seq += part.len() as u32;
        }
        let mut at = 1;
        for part in response.chunks(1400) {
            self.packet(SERVER, client(n), at, seq, ACK | PSH, part);
            at += part.len() as u32;
        }
    }

    fn finish(mut self) -> PathBuf {
        self.out.flush().unwrap();
        self.path
    }
}

fn post(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn call(id: u32, arguments: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","arguments":{arguments}}}}}"#
    );
    post(body.as_bytes())
}

fn json(length: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{more}{length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn many_connections_of_one_packet() {
    let folder = tempfile::tempdir().unwrap();
    let count = if is_full() { 1_000_000 } else { 60_000 };
    for (name, flags, payload) in [("syn.pcap", SYN, &b""[..]), ("data.pcap", ACK | PSH, b"x")] {
        let mut capture = Capture::new(folder.path(), name);
        (0..count).for_each(|n| capture.packet(client(n), SERVER, 7, 7, flags, payload));
        let report = analyze(&capture.finish(), &[], 512 + count as usize * 2 / 1024);
        assert_eq!(report["inputs"][0]["records"], count);
        assert!(flags == SYN || !problems(&report).is_empty(), "{name}");
    }
}

#[test]
fn many_ids_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let count = if is_full() { 1_000_000 } else { 10_000 };
    let mut capture = Capture::new(folder.path(), "ids.pcap");
    (0..count).for_each(|n| capture.exchange(n, &call(n, &format!(r#"{{"q":"value-{n}"}}"#)), b""));
    let report = analyze(&capture.finish(), &[], 512 + count as usize * 12 / 1024);
    assert_eq!(report["summary"]["calls"], count);
    // The capture ends while all are open: that is no orphan.
    assert_eq!(report["summary"]["findings"], 0);
}

#[test]
fn a_batch_of_many() {
    let folder = tempfile::tempdir().unwrap();
    let one = |n: u32| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#);
    let batch = format!("[{}]", (0..100_000).map(one).collect::<Vec<_>>().join(","));
    let mut capture = Capture::new(folder.path(), "batch.pcap");
    capture.exchange(0, &post(batch.as_bytes()), b"");
    assert!(problems(&analyze(&capture.finish(), &[], 1024)).contains(&"limit-hit"));
}

#[test]
fn bodies_that_promise_or_hold_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let size = if is_full() { 1024 * MIB } else { 80 * MIB };
    let reply = |text: &[u8]| [br#"{"jsonrpc":"2.0","id":1,"result":{"x":""#, text, br#""}}"#].concat();
    let gzip = |plain: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(plain).unwrap();
        out.finish().unwrap()
    };
    let deep = format!("{}1{}", "[".repeat(MIB), "]".repeat(MIB));
    let deep_reply = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#);
    let bomb = gzip(&reply(&vec![b'a'; size]));
    let filler = vec![b'x'; 70 * MIB];
    let chunked = "Transfer-Encoding: chunked";
    for (name, request, response, expected) in [
        ("chunk", call(1, "{}"), json(chunked, "", b"ffffffff\r\n{\"jsonrpc\":"), ""),
        ("chunk-filled", call(1, "{}"), json(chunked, "", &[b"ffffffff\r\n", &filler[..]].concat()), "limit-hit"),
        ("chunk-over", call(1, "{}"), json(chunked, "", b"ffffffffffffffffff\r\nx"), "bad-http"),
        ("length", call(1, "{}"), json("Content-Length: 99999999999999", "", b"{"), ""),
        (
            "deep-arguments",
            call(1, &deep),
            json("Content-Length: 36", "", br#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            "bad-json",
        ),
        (
            "deep-reply",
            call(1, "{}"),
            json(&format!("Content-Length: {}", deep_reply.len()), "", deep_reply.as_bytes()),
            "limit-hit",
        ),
        (
            "bomb",
            call(1, "{}"),
            json(&format!("Content-Length: {}", bomb.len()), "Content-Encoding: gzip\r\n", &bomb),
            "limit-hit",
        ),
        ("head", [&b"POST /mcp HTTP/1.1\r\nX: "[..], &filler[..4 * MIB]].concat(), vec![], "limit-hit"),
    ] {
        let mut capture = Capture::new(folder.path(), name);
        capture.exchange(0, &request, &response);
        let report = analyze(&capture.finish(), &[], 768);
        let counted = problems(&report);
        assert!(expected.is_empty() || counted.contains(&expected), "{name}: {counted:?}");
        // Nobody is accused where the reader gave up.
        assert_eq!(report["findings"], Value::Array(vec![]), "{name}");
    }
}
