//! Connections between `openssl s_client` and `openssl s_server` over loopback, recorded by a relay and read
//! with the client's key log. Skipped, and said so, where there is no `openssl`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use crosswire::model::exchange::Peer;
use crosswire::wire::tls::{KeyStore, TlsSetup};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Read, Recording, Step, decrypt, decrypt_with};

/// Is there an `openssl` to test against?
fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: no `openssl` program");
    }
    found
}

/// A child process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `s_server` that sends back each line reversed.
struct Server {
    _process: Process,
    port: u16,
}

fn server(key: &str, options: &[&str]) -> Server {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let path = |end: &str| format!("{}/fixtures/tls/{key}.{end}", env!("CARGO_MANIFEST_DIR"));
    for _ in 0..5 {
        let port = free();
        let mut child = Command::new("openssl")
            .args(["s_server", "-rev", "-accept", &format!("127.0.0.1:{port}")])
            .args(["-cert", &path("crt"), "-key", &path("key")])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let process = Process(child);
        let mut lines = BufReader::new(output);
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            if line.contains("ACCEPT") {
                std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
                return Server { _process: process, port };
            }
            line.clear();
        }
    }
    panic!("s_server does not start with {options:?}");
}

/// Passes one connection on to `port` and records it; gives its own port.
fn relay(port: u16) -> (u16, std::thread::JoinHandle<Recording>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let handle = std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let recording = Arc::new(Mutex::new(Recording::default()));
        let pass = |mut from: TcpStream, mut to: TcpStream, peer: Peer| {
            let recording = recording.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = from.read(&mut buffer) {
                    recording.lock().unwrap().push(peer, &buffer[..read]);
                    if to.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Write);
            })
        };
        let up = pass(client.try_clone().unwrap(), server.try_clone().unwrap(), Peer::Client);
        let down = pass(server, client, Peer::Server);
        up.join().unwrap();
        down.join().unwrap();
        recording.lock().map(|recording| recording.clone()).unwrap()
    });
    (own, handle)
}

/// Lines that the client sends; those of one letter are commands to `s_client`.
const LINES: &[&str] = &["first line, to be reversed", "0123456789 and then some more of it", "third and last"];

/// Runs `s_client` against `server` and records what it does. Gives what the server must have sent.
fn client(server: &Server, options: &[&str], lines: &[&str]) -> (Recording, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let keylog = folder.path().join("keys");
    let (port, relay) = relay(server.port);
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-keylogfile", keylog.to_str().unwrap()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let process = Process(child);
    let (mut sent, mut answered) = (String::new(), String::new());
    for line in lines {
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        if line.len() == 1 {
            // The command must have been carried out before the next line is read.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        sent += &format!("{line}\n");
        let reversed: String = line.chars().rev().collect();
        answered += &format!("{reversed}\n");
        let mut read = String::new();
        while !read.contains(&reversed) {
            read.clear();
            assert!(output.read_line(&mut read).unwrap() > 0, "s_client ended early with {options:?}");
        }
    }
    drop(input);
    std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    let mut recording = relay.join().unwrap();
    drop(process);
    recording.keylog = std::fs::read(&keylog).unwrap_or_default();
    (recording, sent, answered)
}

fn assert_read(read: &Read, sent: &str, answered: &str, what: &str) {
    assert_eq!(String::from_utf8_lossy(&read.seen.text(Peer::Client)), sent, "{what}");
    assert_eq!(String::from_utf8_lossy(&read.seen.text(Peer::Server)), answered, "{what}");
    assert!(!read.seen.has_gap(Peer::Client) && !read.seen.has_gap(Peer::Server), "{what}");
    assert!(read.problems.is_empty(), "{what}: {:?}", read.problems);
    assert_eq!((read.count.connections, read.count.readable), (1, 1), "{what}");
}

fn check(key: &str, server_options: &[&str], client_options: &[&str], lines: &[&str]) -> Read {
    let server = server(key, server_options);
    let (recording, sent, answered) = client(&server, client_options, lines);
    let read = decrypt(&recording);
    let what = format!("{server_options:?} {client_options:?}");
    assert_read(&read, &sent, &answered, &what);
    assert_read(&decrypt(&recording.split(7)), &sent, &answered, &what);
    read
}

#[test]
fn every_suite_of_tls_13() {
    if !has_openssl() {
        return;
    }
    for suite in [
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    ] {
        check("ec", &["-ciphersuites", suite], &["-tls1_3", "-ciphersuites", suite], LINES);
    }
}

#[test]
fn suites_of_tls_12() {
    if !has_openssl() {
        return;
    }
    for (key, suites) in [
        ("ec", &["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-CCM8", "ECDHE-ECDSA-AES128-CCM"][..]),
        (
            "rsa",
            &[
                "ECDHE-RSA-AES256-GCM-SHA384",
                "ECDHE-RSA-CHACHA20-POLY1305",
                "ECDHE-RSA-AES128-SHA",
                "ECDHE-RSA-AES256-SHA384",
                "ECDHE-RSA-AES128-SHA256",
                "DHE-RSA-AES128-GCM-SHA256",
                "DHE-RSA-CHACHA20-POLY1305",
                "DHE-RSA-AES256-SHA256",
                "DHE-RSA-AES256-SHA",
                "AES128-GCM-SHA256",
                "AES256-GCM-SHA384",
                "AES128-SHA256",
                "AES256-SHA",
                "AES256-CCM",
                "AES128-CCM8",
            ],
        ),
    ] {
        for suite in suites {
            check(key, &["-tls1_2", "-cipher", suite], &["-tls1_2", "-cipher", suite], LINES);
        }
    }
}

#[test]
fn cbc_without_encrypt_then_mac() {
    if !has_openssl() {
        return;
    }
    for suite in ["ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384", "AES128-SHA256"] {
        check("rsa", &["-tls1_2", "-cipher", suite], &["-tls1_2", "-no_etm", "-cipher", suite], LINES);
    }
}

#[test]
fn older_versions() {
    if !has_openssl() {
        return;
    }
    for version in ["-tls1", "-tls1_1"] {
        for suite in ["ECDHE-RSA-AES128-SHA:@SECLEVEL=0", "AES256-SHA:@SECLEVEL=0"] {
            for etm in [&[version, "-cipher", suite][..], &[version, "-no_etm", "-cipher", suite]] {
                check("rsa", &[version, "-cipher", suite], etm, LINES);
            }
        }
    }
}

#[test]
fn key_updates_padding_and_a_retried_hello() {
    if !has_openssl() {
        return;
    }
    let lines = [LINES[0], "k", LINES[1], "K", LINES[2], "K", LINES[1]];
    for suite in ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_CCM_8_SHA256"] {
        check("ec", &["-ciphersuites", suite], &["-tls1_3", "-ciphersuites", suite], &lines);
    }
    check("ec", &["-record_padding", "64"], &["-tls1_3", "-record_padding", "100"], LINES);
    check("ec", &["-groups", "P-384"], &["-tls1_3", "-groups", "X25519:P-384"], LINES);
}

#[test]
fn a_renegotiation_is_followed_and_counted() {
    if !has_openssl() {
        return;
    }
    for suite in ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"] {
        let lines = [LINES[0], "R", LINES[1], "R", LINES[2]];
        let options = ["-tls1_2", "-cipher", suite];
        let read = check("rsa", &[&options[..], &["-client_renegotiation"]].concat(), &options, &lines);
        assert_eq!(read.count.renegotiations, 2);
    }
}

#[test]
fn resumed_sessions_by_ticket_and_by_id() {
    if !has_openssl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, version, tickets) in [("ticket", "-tls1_2", true), ("id", "-tls1_2", false), ("psk", "-tls1_3", true)] {
        let file = folder.path().join(name);
        let file = file.to_str().unwrap();
        let options = if tickets { vec![version] } else { vec![version, "-no_ticket"] };
        let server = server("rsa", &options);
        let (first, sent, answered) = client(&server, &[version, "-sess_out", file], LINES);
        assert_read(&decrypt(&first), &sent, &answered, name);
        let (second, sent, answered) = client(&server, &[version, "-sess_in", file], LINES);
        assert!(second.bytes(Peer::Server) < first.bytes(Peer::Server), "{name} is resumed");
        assert_read(&decrypt(&second), &sent, &answered, name);
        if version == "-tls1_2" {
            // The secret of the first, and nothing logged of the second.
            let keys = Arc::new(KeyStore::new());
            keys.read(&first.keylog);
            let setup = Arc::new(TlsSetup::new(keys));
            decrypt_with(&first, &setup);
            let read = decrypt_with(&second, &setup);
            assert_eq!(String::from_utf8_lossy(&read.seen.text(Peer::Server)), answered, "{name}");
        }
    }
}

/// The premaster secret is all that a server with an RSA key needs: `RSA` lines of old key logs.
#[test]
fn a_premaster_secret_is_enough() {
    if !has_openssl() {
        return;
    }
    let server = server("rsa", &["-tls1_2", "-cipher", "AES128-GCM-SHA256:AES256-GCM-SHA384"]);
    for suite in ["AES128-GCM-SHA256", "AES256-GCM-SHA384"] {
        let (mut recording, sent, answered) = client(&server, &["-tls1_2", "-cipher", suite], LINES);
        let encrypted = encrypted_premaster(&recording);
        let premaster = openssl_decrypt(&encrypted);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let random = String::from_utf8(recording.keylog.clone()).unwrap();
        let random = random.lines().find(|line| line.starts_with("CLIENT_RANDOM")).unwrap();
        let random = random.split(' ').nth(1).unwrap();
        for keylog in [
            format!("RSA {} {}\n", hex(&encrypted[..8]), hex(&premaster)),
            format!("PMS_CLIENT_RANDOM {random} {}\n", hex(&premaster)),
        ] {
            recording.keylog = keylog.into_bytes();
            assert_read(&decrypt(&recording), &sent, &answered, suite);
        }
    }
}

/// The encrypted premaster secret in the ClientKeyExchange of a recording.
fn encrypted_premaster(recording: &Recording) -> Vec<u8> {
    let client: Vec<u8> = recording
        .steps
        .iter()
        .flat_map(|step| if let Step::Data(Peer::Client, bytes) = step { bytes.clone() } else { Vec::new() })
        .collect();
    let mut rest = client.as_slice();
    while let [kind, _, _, high, low, after @ ..] = rest {
        let (record, next) = after.split_at(usize::from(*high) << 8 | usize::from(*low));
        if *kind == 22 && record[0] == 16 {
            return record[6..].to_vec();
        }
        rest = next;
    }
    panic!("no ClientKeyExchange");
}

fn openssl_decrypt(encrypted: &[u8]) -> Vec<u8> {
    let key = format!("{}/fixtures/tls/rsa.key", env!("CARGO_MANIFEST_DIR"));
    let mut child = Command::new("openssl")
        .args(["pkeyutl", "-decrypt", "-inkey", &key])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(encrypted).unwrap();
    child.wait_with_output().unwrap().stdout
}
