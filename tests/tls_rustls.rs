//! Connections between rustls client and server, recorded in memory and read with the key log.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use crosswire::model::exchange::Peer;
use crosswire::model::problem::ProblemKind;
use crosswire::wire::tls::{Application, KeyStore, TlsSetup};
use proptest::prelude::*;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, KeyLog, ServerConfig, ServerConnection, SignatureScheme,
    SupportedCipherSuite,
};
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use support::{Recording, assert_true_to, decrypt, decrypt_with, text};

#[derive(Debug, Default)]
struct Log(Mutex<String>);

impl KeyLog for Log {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        *self.0.lock().unwrap() += &format!("{label} {} {}\n", hex(client_random), hex(secret));
    }
}

#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::RSA_PSS_SHA256,
            SignatureScheme::RSA_PSS_SHA384,
            SignatureScheme::RSA_PSS_SHA512,
            SignatureScheme::RSA_PKCS1_SHA256,
        ]
    }
}

/// Configurations of both ends, which keep their sessions.
struct Ends {
    client: ClientConfig,
    server: ServerConfig,
    log: Arc<Log>,
}

fn ends(suite: SupportedCipherSuite, alpn: &[&str]) -> Ends {
    let provider = CryptoProvider { cipher_suites: vec![suite], ..ring::default_provider() };
    let versions = [suite.version()];
    let kind = if format!("{suite:?}").contains("RSA") { "rsa" } else { "ec" };
    let path = |end: &str| format!("{}/fixtures/tls/{kind}.{end}", env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(path("crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(path("key")).unwrap();
    let log = Arc::new(Log::default());
    let mut client = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_protocol_versions(&versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    client.key_log = log.clone();
    client.enable_early_data = true;
    let mut server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    for list in [&mut client.alpn_protocols, &mut server.alpn_protocols] {
        *list = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    }
    Ends { client, server, log }
}

/// A connection under way.
struct Link {
    client: ClientConnection,
    server: ServerConnection,
    recording: Recording,
    log: Arc<Log>,
    received: [Vec<u8>; 2],
}

impl Ends {
    fn connect(&self) -> Link {
        let name = ServerName::try_from("localhost").unwrap();
        Link {
            client: ClientConnection::new(Arc::new(self.client.clone()), name).unwrap(),
            server: ServerConnection::new(Arc::new(self.server.clone())).unwrap(),
            recording: Recording::default(),
            log: self.log.clone(),
            received: Default::default(),
        }
    }
}

impl Link {
    /// Carries bytes over until both ends are quiet.
    fn pump(&mut self) {
        loop {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            while self.client.wants_write() {
                self.client.write_tls(&mut up).unwrap();
            }
            self.recording.push(Peer::Client, &up);
            let mut rest = up.as_slice();
            while !rest.is_empty() {
                self.server.read_tls(&mut rest).unwrap();
                self.server.process_new_packets().unwrap();
                if let Some(mut early) = self.server.early_data() {
                    let _ = early.read_to_end(&mut self.received[0]);
                }
                let _ = self.server.reader().read_to_end(&mut self.received[0]);
            }
            while self.server.wants_write() {
                self.server.write_tls(&mut down).unwrap();
            }
            self.recording.push(Peer::Server, &down);
            let mut rest = down.as_slice();
            while !rest.is_empty() {
                self.client.read_tls(&mut rest).unwrap();
                self.client.process_new_packets().unwrap();
                let _ = self.client.reader().read_to_end(&mut self.received[1]);
            }
            if up.is_empty() && down.is_empty() {
                return;
            }
        }
    }

    fn say(&mut self, from: Peer, text: &[u8]) {
        for piece in text.chunks(20_000) {
            match from {
                Peer::Client => self.client.writer().write_all(piece).unwrap(),
                Peer::Server => self.server.writer().write_all(piece).unwrap(),
            }
            self.pump();
        }
    }

    fn end(mut self) -> (Recording, [Vec<u8>; 2]) {
        self.client.send_close_notify();
        self.server.send_close_notify();
        self.pump();
        self.recording.keylog = self.log.0.lock().unwrap().clone().into_bytes();
        (self.recording, self.received)
    }
}

/// A conversation of some records in both directions, and what was said.
fn conversation(ends: &Ends) -> (Recording, [Vec<u8>; 2]) {
    let mut link = ends.connect();
    link.pump();
    for turn in 0..4 {
        link.say(Peer::Client, &text(300 + 40 * turn as usize, turn));
        link.say(Peer::Server, &text(700 + 9000 * turn as usize, 100 + turn));
    }
    link.end()
}

fn assert_whole(recording: &Recording, said: &[Vec<u8>; 2]) {
    let read = decrypt(recording);
    assert!(read.seen.text(Peer::Client) == said[0], "what the client sent");
    assert!(read.seen.text(Peer::Server) == said[1], "what the server sent");
    assert!(!read.seen.has_gap(Peer::Client) && !read.seen.has_gap(Peer::Server));
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    assert_eq!((read.count.connections, read.count.readable), (1, 1));
}

#[test]
fn every_suite_is_read() {
    for suite in ring::ALL_CIPHER_SUITES {
        let (recording, said) = conversation(&ends(*suite, &["http/1.1"]));
        assert_whole(&recording, &said);
    }
}

#[test]
fn alpn_decides_what_comes_next() {
    for (offered, application) in
        [(&["h2"][..], Application::Http2), (&["http/1.1"], Application::Http1), (&[], Application::Unknown)]
    {
        for suite in
            [ring::cipher_suite::TLS13_AES_128_GCM_SHA256, ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]
        {
            let (recording, _) = conversation(&ends(suite, offered));
            assert_eq!(decrypt(&recording).seen.application, Some(application));
        }
    }
    let (recording, _) = conversation(&ends(ring::cipher_suite::TLS13_AES_128_GCM_SHA256, &["mqtt"]));
    let read = decrypt(&recording);
    assert_eq!(read.seen.application, None);
    assert!(read.problem(ProblemKind::UnreadProtocol).unwrap().contains("`mqtt`"));
}

#[test]
fn key_updates_of_either_end_are_followed() {
    for suite in ring::ALL_CIPHER_SUITES.iter().filter(|suite| suite.tls13().is_some()) {
        let mut link = ends(*suite, &[]).connect();
        link.pump();
        for turn in 0..3 {
            link.say(Peer::Client, &text(100, turn));
            link.client.refresh_traffic_keys().unwrap();
            link.say(Peer::Client, &text(50, turn));
            link.say(Peer::Server, &text(100, turn));
            link.server.refresh_traffic_keys().unwrap();
            link.say(Peer::Server, &text(50, turn));
        }
        let (recording, said) = link.end();
        assert_whole(&recording, &said);
    }
}

#[test]
fn a_retried_hello_is_followed() {
    let mut ends = ends(ring::cipher_suite::TLS13_AES_256_GCM_SHA384, &["h2"]);
    let provider = CryptoProvider {
        kx_groups: vec![ring::kx_group::SECP384R1],
        cipher_suites: vec![ring::cipher_suite::TLS13_AES_256_GCM_SHA384],
        ..ring::default_provider()
    };
    let path = |end: &str| format!("{}/fixtures/tls/ec.{end}", env!("CARGO_MANIFEST_DIR"));
    ends.server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(path("crt")).unwrap()],
            PrivateKeyDer::from_pem_file(path("key")).unwrap(),
        )
        .unwrap();
    let (recording, said) = conversation(&ends);
    assert_whole(&recording, &said);
}

#[test]
fn early_data_counts_once_and_only_if_accepted() {
    for accepted in [true, false] {
        let mut ends = ends(ring::cipher_suite::TLS13_AES_128_GCM_SHA256, &["http/1.1"]);
        ends.server.max_early_data_size = 16_384;
        conversation(&ends);
        let mut link = ends.connect();
        if !accepted {
            // A server that does not know the ticket any more.
            let mut other = self::ends(ring::cipher_suite::TLS13_AES_128_GCM_SHA256, &["http/1.1"]).server;
            other.max_early_data_size = 16_384;
            link.server = ServerConnection::new(Arc::new(other)).unwrap();
        }
        link.client.early_data().expect("a ticket for early data").write_all(b"early request").unwrap();
        link.pump();
        assert_eq!(link.client.is_early_data_accepted(), accepted);
        if !accepted {
            link.say(Peer::Client, b"early request");
        }
        link.say(Peer::Client, b" and more");
        link.say(Peer::Server, b"answer");
        let (recording, said) = link.end();
        assert_eq!(said[0], b"early request and more");
        assert_whole(&recording, &said);
    }
}

#[test]
fn resumed_sessions_are_read() {
    for suite in
        [ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]
    {
        let ends = ends(suite, &[]);
        conversation(&ends);
        let (recording, said) = conversation(&ends);
        assert_whole(&recording, &said);
    }
}

/// TLS 1.2 only: the secrets of a resumed session are those of the one it resumes.
#[test]
fn a_resumed_session_is_read_with_the_secret_of_the_first() {
    let ends = ends(ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, &[]);
    let (first, _) = conversation(&ends);
    let (second, said) = conversation(&ends);
    let keys = Arc::new(KeyStore::new());
    keys.read(&first.keylog);
    let setup = Arc::new(TlsSetup::new(keys));
    decrypt_with(&first, &setup);
    let read = decrypt_with(&second, &setup);
    assert!(read.seen.text(Peer::Client) == said[0] && read.seen.text(Peer::Server) == said[1]);
}

#[test]
fn without_keys_the_connection_is_named_and_counted_once() {
    let (mut recording, _) = conversation(&ends(ring::cipher_suite::TLS13_AES_128_GCM_SHA256, &["h2"]));
    recording.keylog.clear();
    let read = decrypt(&recording);
    assert!(read.seen.client.is_empty() && read.seen.server.is_empty());
    assert_eq!((read.count.connections, read.count.readable, read.count.no_keys), (1, 0, 1));
    assert_eq!(read.problems.count(ProblemKind::NoKeys), 1);
    let text = read.problem(ProblemKind::NoKeys).unwrap();
    for part in ["192.0.2.1:40000 → 192.0.2.2:443", "localhost", "h2", "TLS 1.3", "--keylog", "SSLKEYLOGFILE"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(read.problems.iter().count(), 1);
}

#[test]
fn another_connections_keys_are_no_keys() {
    for suite in
        [ring::cipher_suite::TLS13_AES_128_GCM_SHA256, ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]
    {
        let (mut recording, _) = conversation(&ends(suite, &["h2"]));
        recording.keylog = conversation(&ends(suite, &["h2"])).0.keylog;
        let read = decrypt(&recording);
        assert_eq!((read.count.connections, read.count.readable, read.count.no_keys), (1, 0, 1));
        assert_eq!(read.problems.count(ProblemKind::NoKeys), 1);
    }
}

#[test]
fn a_capture_that_starts_after_the_handshake_says_so() {
    let (recording, _) = conversation(&ends(ring::cipher_suite::TLS13_AES_128_GCM_SHA256, &["h2"]));
    let later = Recording { steps: recording.steps[6..].to_vec(), keylog: recording.keylog };
    let read = decrypt(&later);
    assert!(read.seen.client.is_empty() && read.seen.server.is_empty());
    assert_eq!((read.count.connections, read.count.readable, read.count.no_keys), (1, 0, 1));
    assert!(read.problem(ProblemKind::NoKeys).unwrap().contains("handshake"));
}

#[test]
fn secrets_of_one_direction_read_that_direction() {
    let (mut recording, said) = conversation(&ends(ring::cipher_suite::TLS13_AES_128_GCM_SHA256, &["http/1.1"]));
    let log = String::from_utf8(recording.keylog).unwrap();
    let only = |label: &str| {
        log.lines().filter(|line| line.starts_with(label)).map(|line| format!("{line}\n")).collect::<String>()
    };
    recording.keylog = only("CLIENT_TRAFFIC_SECRET_0").into_bytes();
    let read = decrypt(&recording);
    assert!(read.seen.text(Peer::Client) == said[0]);
    assert_eq!(read.seen.application, Some(Application::Unknown));
    assert!(read.seen.text(Peer::Server).is_empty() && read.seen.has_gap(Peer::Server));
    assert!(read.problem(ProblemKind::NoKeys).unwrap().contains("what the server sent"));
    recording.keylog = (only("CLIENT_TRAFFIC_SECRET_0") + &only("SERVER_TRAFFIC_SECRET_0")).into_bytes();
    assert_whole(&recording, &said);
}

#[test]
fn a_capture_of_one_direction_is_read() {
    for suite in
        [ring::cipher_suite::TLS13_AES_128_GCM_SHA256, ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]
    {
        let (recording, said) = conversation(&ends(suite, &["http/1.1"]));
        for (side, from) in [Peer::Client, Peer::Server].into_iter().enumerate() {
            let mut half = recording.clone();
            half.steps.retain(|step| matches!(step, support::Step::Data(of, _) if *of == from));
            let read = decrypt(&half);
            if from == Peer::Client && suite.tls13().is_none() {
                // The keys of TLS 1.2 need the server's random too.
                assert_eq!(read.count.readable, 0);
                continue;
            }
            assert!(read.seen.text(from) == said[side], "{suite:?} {from:?}");
            assert!(!read.seen.has_gap(from));
        }
    }
}

fn recordings() -> &'static Vec<(Recording, [Vec<u8>; 2])> {
    static RECORDINGS: std::sync::OnceLock<Vec<(Recording, [Vec<u8>; 2])>> = std::sync::OnceLock::new();
    RECORDINGS.get_or_init(|| {
        let suites = [
            ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
            ring::cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ];
        suites.map(|suite| conversation(&ends(suite, &["http/1.1"]))).into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn any_split_gives_the_same(size in 1usize..4000, which in 0usize..2) {
        let (recording, said) = &recordings()[which];
        assert_whole(&recording.split(size), said);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    /// A hole anywhere takes what it hits, and what is read is true; behind it reading goes on.
    #[test]
    fn a_hole_costs_only_what_it_hits(
        start in 0.0f64..1.0, length in 1usize..6000, size in 100usize..3000, told: bool, server: bool, which in 0usize..2,
    ) {
        let (recording, said) = &recordings()[which];
        let (from, side) = if server { (Peer::Server, 1) } else { (Peer::Client, 0) };
        let bytes = recording.bytes(from);
        let start = (start * bytes as f64) as usize;
        let end = (start + length).min(bytes);
        let cut = recording.split(size).with_hole(from, start, end, told);
        let read = decrypt(&cut);
        assert_true_to(&said[side], &read.seen, from);
        let whole = if side == 0 { Peer::Server } else { Peer::Client };
        let handshake_hit = start < 3000;
        if !handshake_hit {
            prop_assert!(read.seen.text(whole) == said[1 - side]);
            // At most the records hit are lost: those of 16 KiB at either end, unless the end itself is.
            let lost = said[side].len() - read.seen.text(from).len();
            prop_assert!(lost <= length + 2 * 16_700, "lost {lost} for {length}");
        }
    }
}

/// Small records, so that what a hole costs can be told.
fn small_records(suite: SupportedCipherSuite) -> (Recording, [Vec<u8>; 2]) {
    let mut link = ends(suite, &["http/1.1"]).connect();
    link.pump();
    for turn in 0..60 {
        link.say(Peer::Client, &text(150, turn));
        link.say(Peer::Server, &text(200, 100 + turn));
    }
    link.end()
}

const TWO: [SupportedCipherSuite; 2] =
    [ring::cipher_suite::TLS13_AES_128_GCM_SHA256, ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256];

#[test]
fn behind_a_hole_the_sequence_number_is_found_again() {
    for suite in TWO {
        let (recording, said) = small_records(suite);
        let bytes = recording.bytes(Peer::Server);
        for (length, told) in
            [(1, true), (1, false), (100, true), (700, true), (700, false), (4000, true), (4000, false)]
        {
            let start = bytes / 2;
            let read = decrypt(&recording.with_hole(Peer::Server, start, start + length, told));
            assert_true_to(&said[1], &read.seen, Peer::Server);
            let lost = said[1].len() - read.seen.text(Peer::Server).len();
            assert!(lost <= length + 450, "lost {lost} for {length}, told: {told}");
            assert!(read.seen.text(Peer::Client) == said[0]);
            assert!(read.problem(ProblemKind::BadTls).is_some());
        }
    }
}

#[test]
fn of_a_cut_record_only_the_missing_bytes_are_lost() {
    for suite in TWO {
        let (recording, said) = small_records(suite);
        // As a snap length does: of every segment the end is missing.
        let steps = recording.steps.iter().enumerate().flat_map(|(number, step)| match step {
            support::Step::Data(from, bytes) if number > 8 && bytes.len() > 100 => {
                let cut = bytes.len() - 60;
                vec![support::Step::Data(*from, bytes[..cut].to_vec()), support::Step::Gap(*from, Some(60))]
            }
            other => vec![other.clone()],
        });
        let read = decrypt(&Recording { steps: steps.collect(), keylog: recording.keylog.clone() });
        for (side, from) in [Peer::Client, Peer::Server].into_iter().enumerate() {
            assert_true_to(&said[side], &read.seen, from);
            let lost = said[side].len() - read.seen.text(from).len();
            assert!(lost <= 62 * 60, "lost {lost}");
        }
        assert!(!read.seen.server.iter().any(|piece| matches!(piece, support::Piece::Gap(None))));
    }
}

#[test]
fn a_hole_in_the_handshake_does_not_cost_what_follows() {
    for suite in TWO {
        let (recording, said) = small_records(suite);
        for told in [true, false] {
            // Behind ServerHello: certificate, signature.
            let read = decrypt(&recording.with_hole(Peer::Server, 300, 600, told));
            assert!(read.seen.text(Peer::Server) == said[1], "{suite:?}, told: {told}");
            assert!(read.seen.text(Peer::Client) == said[0]);
            assert!(!read.seen.has_gap(Peer::Server) && !read.seen.has_gap(Peer::Client));
        }
    }
}

/// A conversation whose handshake, or all that follows it from the server, is missing.
fn holed(handshake: bool) -> (support::Read, [Vec<u8>; 2]) {
    let mut link = ends(ring::cipher_suite::TLS13_AES_128_GCM_SHA256, &["http/1.1"]).connect();
    link.pump();
    let [client, server] = [Peer::Client, Peer::Server].map(|of| link.recording.bytes(of));
    for turn in 0..5 {
        link.say(Peer::Client, &text(300, turn));
        link.say(Peer::Server, &text(300, 10 + turn));
    }
    let (recording, said) = link.end();
    let all = recording.bytes(Peer::Server);
    let holed = if handshake {
        recording.with_hole(Peer::Client, 0, client, false).with_hole(Peer::Server, 0, server, false)
    } else {
        recording.with_hole(Peer::Server, server, all, true)
    };
    (decrypt(&holed), said)
}

#[test]
fn without_its_handshake_a_connection_is_known_by_the_key_that_fits() {
    let (read, said) = holed(true);
    assert!(read.seen.text(Peer::Client) == said[0] && read.seen.text(Peer::Server) == said[1]);
    assert_eq!((read.count.connections, read.count.readable), (1, 1));
}

#[test]
fn that_answers_are_missing_is_told_before_the_end() {
    let (read, said) = holed(false);
    assert!(read.seen.text(Peer::Client) == said[0] && read.seen.text(Peer::Server).is_empty());
    assert!(read.seen.has_gap(Peer::Server));
}
