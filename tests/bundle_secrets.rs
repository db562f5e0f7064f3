//! Secrets of every kind, planted wherever inputs can hold them, and looked for in the bundle.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/bundle.rs"]
mod unpack;

use std::io::Write;
use std::path::Path;
use std::process::Command;

const CLIENT: ([u8; 4], u16) = ([93, 184, 216, 34], 40_321);
const SERVER: ([u8; 4], u16) = ([52, 94, 236, 248], 8080);
const SESSION: &str = "5e55104a9d35aa01ff0022ee9d35aa01";

/// Everything that must not be found in a bundle.
const SECRETS: &[&str] = &[
    "sk-live-51HqPlantedKey77",
    "dXNlcjpwbGFudGVkLXBhc3N3b3Jk",
    "planted-password",
    "PlantedCookieValue99",
    "alice.planted@corp-planted.example",
    "corp-planted",
    "db7.internal-planted.example",
    "93.184.216.34",
    "52.94.236.248",
    "2606:2800:220:1:248:1893:25c8:1946",
    SESSION,
    "Quarterly planted forecast",
    "plantedJsonKey",
    "KeyWithSecret_hunter2planted",
    "4111-1111-2222-3333",
    "+1 (555) 867-5309",
    "1979-03-14",
    "8675309",
    "geheimnisvoll-ü-planted",
    "plantedpath",
    "PLANTEDQUERY",
    "acmeplanted",
];

/// What stands in nothing but names of files and folders and on the command line.
const NAMES: &[&str] =
    &["nomplanted", "zanzibarplanted", "folderplanted", "keyringplanted", "patternplanted", "fieldplanted"];

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let n = part.iter().fold(0u32, |n, b| (n << 8) | u32::from(*b)) << (8 * (3 - part.len()));
        for i in 0..=part.len() {
            out.push(char::from(ALPHABET[(n >> (18 - 6 * i)) as usize & 63]));
        }
    }
    out
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

fn every_percent(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02x}")).collect()
}

fn unicode(text: &str) -> String {
    text.encode_utf16().map(|u| format!("\\u{u:04x}")).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A pcap of one connection: (from the client?, bytes), cut into segments of 700 bytes, so that
/// secrets are split.
fn pcap(turns: &[(bool, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    let (mut seq, mut us) = ([1u32, 1], 1_795_981_315_000_000u64);
    let mut packet = |client: bool, syn: bool, seq: &mut [u32; 2], data: &[u8]| {
        let (from, to) = if client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let (own, other) = if client { (0, 1) } else { (1, 0) };
        let mut builder = etherparse::PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, seq[own], 65_535);
        if syn {
            builder = builder.syn();
        }
        if !(syn && client) {
            builder = builder.ack(seq[other]);
        }
        let mut bytes = vec![];
        builder.write(&mut bytes, data).unwrap();
        us += 1000;
        for field in [(us / 1_000_000) as u32, (us % 1_000_000) as u32, bytes.len() as u32, bytes.len() as u32] {
            file.extend(field.to_le_bytes());
        }
        file.extend(bytes);
        seq[own] += data.len() as u32 + u32::from(syn);
    };
    packet(true, true, &mut seq, b"");
    packet(false, true, &mut seq, b"");
    for (client, data) in turns {
        // An odd size cuts words.
        for part in data.chunks(37) {
            packet(*client, false, &mut seq, part);
        }
    }
    file
}

fn http(line: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{line}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// All secrets in all forms as JSON members.
fn planted() -> String {
    let mut members = vec![];
    for (i, secret) in SECRETS.iter().enumerate() {
        members.push(format!(r#""plain{i}":"said {secret}, so""#));
        members.push(format!(r#""coded{i}":"{}""#, base64(secret.as_bytes())));
        members.push(format!(r#""url{i}":"https://x.example/?q={}&r={}""#, percent(secret), every_percent(secret)));
        members.push(format!(r#""escaped{i}":"{}""#, unicode(secret)));
        members.push(format!(r#""nested{i}":"{{\"{secret}\":\"{secret}\\n{secret}\"}}""#));
        members.push(format!(r#""{secret}":{i}"#));
    }
    members.join(",")
}

fn write_inputs(dir: &Path) -> Vec<String> {
    let dir = dir.join("folderplanted");
    std::fs::create_dir(&dir).unwrap();
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"search_notes","arguments":{{{}}}}}}}"#,
        planted()
    );
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"x"}}],"structuredContent":{{{}}}}}}}"#,
        planted()
    );
    let headers = format!(
        "host: db7.internal-planted.example:8080\r\nauthorization: Bearer sk-live-51HqPlantedKey77\r\nproxy-authorization: \
         Basic dXNlcjpwbGFudGVkLXBhc3N3b3Jk\r\ncookie: sid=PlantedCookieValue99; u=8675309\r\nx-acmeplanted: acmeplanted 8675309\r\n\
         x-forwarded-for: 93.184.216.34, 2606:2800:220:1:248:1893:25c8:1946\r\nmcp-session-id: {SESSION}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
    );
    let target = format!(
        "POST /mcp/plantedpath?api_key=PLANTEDQUERY8675309&u={} HTTP/1.1",
        percent("alice.planted@corp-planted.example")
    );
    let stream = format!("event: message\nid: {SESSION}/1\ndata: {reply}\n\n");
    let turns = [
        (true, http(&target, &headers, request.as_bytes())),
        (
            false,
            http(
                "HTTP/1.1 200 OK",
                &format!(
                    "set-cookie: sid=PlantedCookieValue99\r\ncontent-encoding: gzip\r\ncontent-type: text/event-stream\r\nmcp-session-id: {SESSION}\r\n"
                ),
                &gzip(stream.as_bytes()),
            ),
        ),
        (true, http(&target, &headers, request.replace(":7,", ":8,").as_bytes())),
        (false, http("HTTP/1.1 403 Forbidden", "content-type: text/html\r\n", SECRETS.join("<br>").as_bytes())),
    ];
    let mut names = vec![];
    let mut write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        names.push(path.to_str().unwrap().to_owned());
    };
    write("nomplanted-acmeplanted-alice.planted@corp-planted.example.pcap", &pcap(&turns));
    let time = "29/Nov/2026:19:41:55 +0000";
    let mut access = String::new();
    for secret in SECRETS {
        let coded = percent(secret);
        access.push_str(&format!(
            "93.184.216.34 - alice.planted [{time}] \"POST /mcp/plantedpath?token={coded}&q={secret} HTTP/1.1\" 200 512 \"https://db7.internal-planted.example/{coded}\" \"agent/{}\"\n",
            base64(secret.as_bytes())
        ));
    }
    write("zanzibarplanted_access.log", access.as_bytes());
    let mut app = String::new();
    let mut journal = String::new();
    for (i, secret) in SECRETS.iter().enumerate() {
        app.push_str(&format!(
            "2026-11-29 19:41:5{},123 - acmeplanted.server - INFO - call of {secret} (password={secret}) {}\n",
            i % 10,
            base64(secret.as_bytes())
        ));
        let array: Vec<String> = format!("\u{1b}[1mgot {secret}").bytes().map(|b| b.to_string()).collect();
        journal.push_str(&format!("{{\"__REALTIME_TIMESTAMP\":\"17959813{:02}604364\",\"_HOSTNAME\":\"db7.internal-planted.example\",\"MESSAGE\":[{}],\"_CMDLINE\":\"run --key {secret}\"}}\n", 20 + i, array.join(",")));
    }
    write("server.log", app.as_bytes());
    write("journal.json", journal.as_bytes());
    let call = serde_json::json!({
        "at": "2026-11-29T19:41:55.562Z", "conversation": SECRETS[5], "server": "acmeplanted", "tool": "search_notes",
        "arguments": {"q": SECRETS}, "id": 7, "session": SESSION, "outcome": "ok", "result": SECRETS, "text": SECRETS.join(" "),
    });
    write("client.jsonl", format!("{call}\n").as_bytes());
    names
}

#[test]
fn no_planted_secret_is_in_the_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = write_inputs(dir.path());
    for kind in ["zip", "tar.zst"] {
        nothing_is_found(dir.path(), &inputs, kind);
    }
}

fn nothing_is_found(dir: &Path, inputs: &[String], kind: &str) {
    let file = dir.join(format!("out.{kind}")).to_str().unwrap().to_owned();
    let key = dir.join("keyringplanted").to_str().unwrap().to_owned();
    let crosswire = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_crosswire")).args(args).output().unwrap();
    let options =
        ["bundle", "-o", &file, "--key-file", &key, "--redact", "patternplanted|argument", "--keep=fieldplanted"];
    let arguments: Vec<&str> = options.into_iter().chain(inputs.iter().map(String::as_str)).collect();
    let made = crosswire(&arguments);
    let said = [&made.stdout[..], &made.stderr[..]].concat();
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&said));
    let members = unpack::unpacked(&file);
    assert!(members.iter().filter(|(name, _)| name.starts_with("evidence/")).count() == inputs.len());
    let mut found = vec![];
    for secret in SECRETS.iter().chain(NAMES) {
        let array: Vec<String> = secret.bytes().map(|b| b.to_string()).collect();
        let plain = (*secret).to_owned();
        for form in [
            plain.to_owned(),
            base64(secret.as_bytes()).trim_end_matches('=').to_owned(),
            percent(secret),
            every_percent(secret),
            unicode(secret),
            array.join(","),
        ] {
            if let Some(member) = unpack::holds(&members, &form) {
                found.push(format!("{secret} as {form} in {member}"));
            }
            if unpack::holds(&[("output".to_owned(), said.clone())], &form).is_some()
                && !inputs.iter().any(|i| i.contains(&form))
            {
                found.push(format!("{secret} as {form} in what the command prints"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    // The names are there, under other words.
    let manifest = members.iter().find(|(name, _)| name == "manifest.json").unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest.1).unwrap();
    let command: Vec<&str> = manifest["command"].as_array().unwrap().iter().filter_map(|a| a.as_str()).collect();
    assert_eq!((&command[..3], command.len()), (&["crosswire", "bundle", "-o"][..], arguments.len() + 1));
    assert!(command.windows(2).any(|w| w == ["--redact", "PATTERN"]), "{command:?}");
    let names: Vec<&str> = manifest["inputs"].as_array().unwrap().iter().filter_map(|i| i["name"].as_str()).collect();
    assert!(
        names.len() == inputs.len() && names[0].ends_with(".pcap") && names[1].ends_with("_access.log"),
        "{names:?}"
    );
    // All of it was read: the tool, the calls, the lines are there, under other words.
    let again = crosswire(&["analyze", &file, "--format", "json", "--calls", "all"]);
    let report: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(report["inputs"].as_array().unwrap().len(), inputs.len());
    assert!(report["calls"].as_array().unwrap().iter().any(|c| c["tool"] == "search_notes" && c["id"] == 7));
}

#[test]
fn what_is_asked_for_is_kept_or_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = write_inputs(dir.path());
    let file = dir.path().join("out.zip").to_str().unwrap().to_owned();
    let members = |more: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_crosswire"))
            .args(["bundle", &inputs[0], "-o", &file])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        unpack::unpacked(&file)
    };
    let plain = members(&[]);
    assert!(unpack::contains(&plain, "search_notes") && !unpack::contains(&plain, "Quarterly planted"));
    let kept = members(&["--keep", "plain11"]);
    assert!(unpack::contains(&kept, "Quarterly planted forecast") && !unpack::contains(&kept, "PlantedCookieValue99"));
    assert!(!unpack::contains(&members(&["--redact", "search_[a-z]*"]), "search_notes"));
    assert!(unpack::contains(&members(&["--no-redact"]), "PlantedCookieValue99"));
}
