//! Makes small archives of access logs with faults in them, and reads what a scan says.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// 2026-10-05T00:00:00Z.
pub const DAY: i64 = 1_791_158_400;

/// Runs the program.
pub fn crosswire(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosswire"));
    command.args(args).env_remove("SSLKEYLOGFILE").env_remove("NO_COLOR");
    command
}

/// What a run printed as NDJSON, by type.
pub struct Printed {
    pub status: i32,
    pub error: String,
    pub text: String,
    pub by_type: BTreeMap<String, Vec<Value>>,
}

impl Printed {
    pub fn of(o: &Output) -> Printed {
        let text = String::from_utf8(o.stdout.clone()).unwrap();
        let mut by_type: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            by_type.entry(value["type"].as_str().unwrap().to_owned()).or_default().push(value);
        }
        Printed { status: o.status.code().unwrap(), error: String::from_utf8(o.stderr.clone()).unwrap(), text, by_type }
    }

    pub fn all(&self, kind: &str) -> &[Value] {
        self.by_type.get(kind).map_or(&[], |v| v)
    }

    pub fn summary(&self) -> &Value {
        self.all("summary").last().unwrap_or_else(|| panic!("no summary: {}", self.error))
    }

    /// What each finding says, wherever its evidence stands: rule, time, session, sureness, fault.
    pub fn claims(&self) -> Vec<String> {
        let claim = |f: &Value| {
            let part = |name: &str| f[name].to_string();
            ["rule", "at", "until", "session", "severity", "confidence", "fault", "cleared"].map(part).join(" ")
        };
        let mut all: Vec<String> = self.all("finding").iter().map(claim).collect();
        all.sort();
        all
    }

    /// As [`Printed::claims`], each with the file and place of its evidence.
    pub fn proofs(&self, name_of: &dyn Fn(&str) -> String) -> Vec<String> {
        let names: BTreeMap<u64, &str> = (0u64..)
            .zip(self.all("input"))
            .map(|(n, i)| (i["input"].as_u64().unwrap_or(n), i["name"].as_str().unwrap()))
            .collect();
        let proof = |f: &Value| {
            let places = f["evidence"].as_array().unwrap().iter().map(|e| {
                let name = e["input"].as_u64().map_or(String::new(), |n| name_of(names[&n]));
                format!("{name}:{}:{}", e["frame"], e["line"])
            });
            let mut places: Vec<String> = places.collect();
            places.sort();
            format!("{} {} {}", f["rule"], f["at"], places.join(" "))
        };
        let mut all: Vec<String> = self.all("finding").iter().map(proof).collect();
        all.sort();
        all
    }
}

/// Scans and reads NDJSON.
pub fn scan(args: &[&str]) -> Printed {
    Printed::of(&crosswire(&[&["scan", "--format", "ndjson"], args].concat()))
}

/// Analyses and reads NDJSON.
pub fn analyze(args: &[&str]) -> Printed {
    Printed::of(&crosswire(&[&["analyze", "--format", "ndjson"], args].concat()))
}

/// A gateway's access log in JSON lines: `clients` each with a session and a call every few seconds,
/// a bad answer now and then, and one in three a window in which its session is refused.
pub fn log(seed: u64, start: i64, seconds: i64, clients: u64) -> Vec<String> {
    let mut lines: Vec<(i64, String)> = vec![];
    for client in 0..clients {
        let mut random = Random(seed * 1000 + client * 7 + 1);
        let mut session = random.session();
        let peer = format!("10.{seed}.0.{}", client + 1);
        let mut at = start * 1000 + (random.next() % 5000) as i64;
        let end = (start + seconds) * 1000;
        let refused_from = (client % 3 == 0).then(|| (start + seconds / 2) * 1000);
        let mut is_new = true;
        let mut is_over = false;
        while at < end {
            let (given, asked, status) = match (is_new, refused_from) {
                (true, _) => (session.clone(), String::new(), 200),
                (false, Some(from)) if at > from && !is_over => {
                    is_over = true;
                    (String::new(), session.clone(), 404)
                }
                _ if random.next().is_multiple_of(40) => (String::new(), session.clone(), 502),
                _ => (String::new(), session.clone(), 200),
            };
            lines.push((at, line(at, &peer, status, &asked, &given, &mut random)));
            at += 1000 + (random.next() % 9000) as i64;
            if status == 404 {
                session = random.session();
                is_new = true;
                continue;
            }
            if is_new {
                is_new = false;
                lines.push((at, line(at, &peer, 202, &session, "", &mut random)));
                at += 500;
            }
        }
    }
    lines.sort();
    lines.into_iter().map(|(_, l)| l).collect()
}

fn line(ms: i64, peer: &str, status: u16, asked: &str, given: &str, random: &mut Random) -> String {
    let time = chrono::DateTime::from_timestamp_millis(ms).unwrap().format("%Y-%m-%dT%H:%M:%S+00:00");
    let (id, took) = (random.session().replace('-', ""), 5 + random.next() % 90);
    format!(
        "{{\"time_iso8601\":\"{time}\",\"msec\":{}.{:03},\"remote_addr\":\"{peer}\",\"remote_port\":\"40000\",\"request_id\":\"{id}\",\
         \"request_method\":\"POST\",\"request_uri\":\"/mcp\",\"server_protocol\":\"HTTP/1.1\",\"status\":{status},\"body_bytes_sent\":300,\
         \"request_time\":0.{took:03},\"upstream_addr\":\"10.0.1.2:8080\",\"upstream_status\":\"{status}\",\"http_mcp_session_id\":\"{asked}\",\
         \"sent_http_mcp_session_id\":\"{given}\",\"http_user_agent\":\"node\"}}\n",
        ms / 1000,
        ms % 1000
    )
}

/// xorshift64*: repeatable and enough for this.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    fn session(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        let n = (u128::from(a) << 64 | u128::from(b)).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let h = format!("{n:032x}");
        format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
    }
}

/// Writes a file, its folders too.
pub fn put(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut w = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

pub fn zst(bytes: &[u8]) -> Vec<u8> {
    let mut w = zstd::stream::Encoder::new(vec![], 1).unwrap();
    w.include_checksum(true).unwrap();
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut w = liblzma::write::XzEncoder::new(vec![], 1);
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

pub fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut w = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::fast());
    w.write_all(bytes).unwrap();
    w.finish().unwrap()
}

/// A tar archive.
pub fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = vec![];
    for (name, bytes) in members {
        let mut b = vec![0; 512];
        b[..name.len()].copy_from_slice(name.as_bytes());
        b[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        b[136..147].copy_from_slice(format!("{:011o}", DAY + 86_400).as_bytes());
        b[148..156].fill(b' ');
        b[156] = b'0';
        b[257..263].copy_from_slice(b"ustar\0");
        let sum: u32 = b.iter().map(|b| u32::from(*b)).sum();
        b[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend(b);
        out.extend(*bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

/// A zip archive with deflated members.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut central) = (vec![], vec![]);
    for (name, bytes) in members {
        let mut w = flate2::write::DeflateEncoder::new(vec![], flate2::Compression::fast());
        w.write_all(bytes).unwrap();
        let packed = w.finish().unwrap();
        let at = out.len() as u32;
        let mut common: Vec<u8> = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend((bytes.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend([0, 0]);
        out.extend(name.as_bytes());
        out.extend(packed);
        central.extend(b"PK\x01\x02\x14\0");
        central.extend(&common);
        central.extend([0; 12]);
        central.extend(at.to_le_bytes());
        central.extend(name.as_bytes());
    }
    let (at, bytes) = (out.len() as u32, central.len() as u32);
    out.extend(central);
    out.extend(b"PK\x05\x06");
    out.extend([0; 8]);
    out.extend(bytes.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// Lines cut into pieces of about `n` lines, one of them within a line.
pub fn pieces(lines: &[String], n: usize) -> Vec<String> {
    let mut out: Vec<String> = lines.chunks(lines.len().div_ceil(n)).map(|c| c.concat()).collect();
    if let Some(first) = out.first_mut() {
        let cut = first.len() - 100;
        let torn = first.split_off(cut);
        out[1].insert_str(0, &torn);
    }
    out
}
