//! Evidence bundles from inputs to what a stranger does with them: verify, analyze, look for secrets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/bundle.rs"]
mod unpack;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn crosswire(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crosswire"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("SSLKEYLOGFILE")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs and wants this exit status.
fn run(args: &[&str], status: i32) -> String {
    let o = crosswire(args);
    assert_eq!(o.status.code(), Some(status), "{args:?}\n{}{}", text(&o.stdout), text(&o.stderr));
    text(&o.stdout)
}

/// What must be equal of the findings.
fn findings(inputs: &[&str]) -> Vec<String> {
    let o = crosswire(&[&["analyze", "--format", "json"], inputs].concat());
    let report: Value = serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e} {}", text(&o.stderr)));
    let call = |key: &Value| {
        let c = report["calls"].as_array().unwrap().iter().find(|c| c["key"] == *key).unwrap();
        format!("{} {} {}", c["method"], c["tool"], c["id"])
    };
    let mut all: Vec<String> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| {
            let calls: Vec<String> = f["calls"].as_array().unwrap().iter().map(call).collect();
            format!(
                "{} {} {} {} {} {} {} {calls:?}",
                f["rule"], f["severity"], f["confidence"], f["fault"], f["cleared"], f["at"], f["batch"]
            )
        })
        .collect();
    for w in report["windows"].as_array().unwrap() {
        let lost: Vec<String> = w["lost"].as_array().unwrap().iter().map(call).collect();
        let times = ["opened", "initialize", "recovered", "next_call", "silence_s", "cause"].map(|name| &w[name]);
        all.push(format!("{times:?} {lost:?}"));
    }
    all.sort();
    all
}

/// Files of a fixture that are inputs.
fn inputs(case: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(case);
    let is_input =
        |name: &str| ["backend.pcap", "front.pcap", "access.json.log", "client.jsonl", "journal.json"].contains(&name);
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|n| is_input(n));
    names.sort();
    names.iter().map(|n| format!("fixtures/{case}/{n}")).collect()
}

fn bundle(dir: &Path, args: &[&str]) -> String {
    bundle_as(dir, "evidence.zip", args)
}

fn bundle_as(dir: &Path, name: &str, args: &[&str]) -> String {
    let file = dir.join(name).to_str().unwrap().to_owned();
    run(&[&["bundle", "-o", &file, "--quiet"], args].concat(), 0);
    file
}

#[test]
fn a_bundle_is_whole_and_gives_the_same_findings() {
    for case in [
        "01-clean",
        "02-crossed-id-collision",
        "04-stale-404-window",
        "06b-orphan-server-killed",
        "09-legacy-sse-clean",
        "10a-raw-body-swap",
        "11-resumability",
        "19-jsonrpc-batch-sse",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let inputs = inputs(case);
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let file = bundle(dir.path(), &inputs);
        assert!(run(&["verify", &file], 0).contains("whole"), "{case}");
        assert_eq!(findings(&[&file]), findings(&inputs), "{case}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing but the bundle is left");
    }
}

/// What a window's table shows rests on more than the requests that its finding cites.
#[test]
fn windows_are_the_same_whatever_shows_them() {
    let case = "fixtures/04-stale-404-window";
    for inputs in [&["backend.pcap"][..], &["access.json.log", "journal.json"]] {
        let dir = tempfile::tempdir().unwrap();
        let inputs: Vec<String> = inputs.iter().map(|i| format!("{case}/{i}")).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let wanted = findings(&inputs);
        assert!(wanted.iter().any(|w| w.contains("2026-11-29T19:42:12")), "{wanted:?}");
        assert_eq!(findings(&[&bundle(dir.path(), &inputs)]), wanted, "{inputs:?}");
    }
}

/// As a `.tar.zst` the same: whole, the same findings, the same members.
#[test]
fn a_tar_zst_is_as_good_as_a_zip() {
    for case in ["01-clean", "02-crossed-id-collision", "10a-raw-body-swap"] {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key").to_str().unwrap().to_owned();
        let inputs = inputs(case);
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let args = [&inputs[..], &["--key-file", &key]].concat();
        let (zip, tar) = (bundle(dir.path(), &args), bundle_as(dir.path(), "evidence.tar.zst", &args));
        assert!(run(&["verify", &tar], 0).contains("whole"), "{case}");
        assert_eq!(findings(&[&tar]), findings(&inputs), "{case}");
        let evidence = |file: &str| -> Vec<(String, Vec<u8>)> {
            unpack::unpacked(file).into_iter().filter(|(name, _)| name.starts_with("evidence/")).collect()
        };
        assert_eq!(evidence(&zip), evidence(&tar), "{case}");
        // Other programs read it, and what they pack anew is compared by content.
        let folder = dir.path().join("out");
        std::fs::create_dir(&folder).unwrap();
        let tar_of = |args: &[&str]| Command::new("tar").args(args).current_dir(&folder).status();
        if Command::new("zstd").arg("-V").output().is_err() {
            eprintln!("skipped: zstd is not here");
            continue;
        }
        assert!(tar_of(&["--zstd", "-xf", &tar]).unwrap().success());
        assert!(folder.join("report.html").exists() && folder.join("manifest.json").exists());
        assert!(
            tar_of(&[
                "--zstd",
                "-cf",
                "../anew.tar.zst",
                "manifest.json",
                "README.txt",
                "report.html",
                "report.md",
                "report.json",
                "evidence",
                "manifest.sha256"
            ])
            .unwrap()
            .success()
        );
        let anew = dir.path().join("anew.tar.zst").to_str().unwrap().to_owned();
        let said = run(&["verify", &anew], 1);
        assert!(said.contains("contents were compared") && said.lines().count() == 1, "{said}");
        assert_eq!(findings(&[&anew]), findings(&inputs), "{case}");
        std::fs::write(folder.join("report.md"), "another").unwrap();
        assert!(
            tar_of(&[
                "--zstd",
                "-cf",
                "../anew.tar.zst",
                "manifest.json",
                "report.md",
                "report.html",
                "report.json",
                "evidence",
                "manifest.sha256"
            ])
            .unwrap()
            .success()
        );
        let said = run(&["verify", &anew], 1);
        assert!(said.contains("report.md: its SHA-256 differs") && said.contains("README.txt: is missing"), "{said}");
    }
}

/// The same members give the same archive, whatever the day.
#[test]
fn archives_follow_from_their_members() {
    use crosswire::evidence::archive::{Archive, Kind, pack};
    for kind in [Kind::Zip, Kind::TarZst] {
        let make = || {
            let mut archive = Archive::new(kind);
            for (name, data) in [("a.txt", &b"one"[..]), ("b/c.txt", &[7; 5000])] {
                archive.add(pack(kind, name, data, true).unwrap()).unwrap();
            }
            archive.finish().unwrap()
        };
        assert_eq!(make(), make());
    }
}

#[test]
fn encrypted_captures_are_bundled_in_the_clear_without_keys() {
    for (case, args) in [
        ("14a-tls13-http1", ["fixtures/14a-tls13-http1/front.pcap", "--keylog", "fixtures/14a-tls13-http1/keylog.txt"]),
        ("14c-tls13-http2", ["fixtures/14c-tls13-http2/front.dsb.pcapng", "--year", "2026"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = bundle(dir.path(), &args);
        assert_eq!(findings(&[&file]), findings(&args), "{case}");
        let keys = std::fs::read_to_string(format!("fixtures/{case}/keylog.txt")).unwrap();
        let holds = unpack::unpacked(&file);
        for secret in keys.lines().filter_map(|l| l.split(' ').nth(2)) {
            assert!(!unpack::contains(&holds, secret), "{case}: a TLS secret");
        }
    }
}

#[test]
fn any_byte_that_is_changed_is_told() {
    any_byte("evidence.zip");
    any_byte("evidence.tar.zst");
}

/// The members of a bundle, each with the bytes of the file that are its.
fn places(file: &[u8]) -> Vec<(String, std::ops::Range<usize>)> {
    use crosswire::input::{tar_zst, zip};
    if !file.starts_with(tar_zst::MAGIC) {
        let zip = zip::Zip::new(file.to_vec()).unwrap();
        let place = |m: &zip::Member| (m.name.clone(), m.offset as usize..zip.packed(m).unwrap().end);
        return zip.members.iter().map(place).collect();
    }
    let place = |p: &tar_zst::Piece| Some((p.name()?.to_owned(), p.place.clone()));
    tar_zst::pieces(file).unwrap().iter().filter_map(place).collect()
}

/// Each change of a byte is told, with the name of the member that it is in.
fn any_byte(name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = bundle_as(dir.path(), name, &["fixtures/10a-raw-body-swap/backend.pcap"]);
    let whole = std::fs::read(&file).unwrap();
    // Through the library: a process for each byte would take minutes.
    let verify = |bytes: Vec<u8>| crosswire::evidence::verify::verify(bytes);
    assert!(verify(whole.clone()).unwrap().differs.is_empty());
    let places = places(&whole);
    assert!(places.len() > 5, "{places:?}");
    let step = (whole.len() / 400).max(1);
    let edges = places.iter().flat_map(|(_, p)| (p.start..p.start + 8).chain(p.end - 8..p.end));
    let edges = edges.chain(0..64).chain(whole.len() - 200..whole.len());
    for at in (0..whole.len()).step_by(step).chain(edges) {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        let told = match verify(changed) {
            Ok(found) => found.differs.join("\n"),
            Err(refused) => refused.to_string(),
        };
        assert!(!told.is_empty(), "byte {at} of {}", whole.len());
        match places.iter().find(|(_, place)| place.contains(&at)) {
            Some((member, _)) => assert!(told.contains(member.as_str()), "byte {at} of {name}, in {member}: {told}"),
            None => {
                let is_placed = told.contains("archive") || told.contains("of the file");
                let is_named = places.iter().any(|(member, _)| told.contains(member.as_str()));
                assert!(is_placed || is_named, "byte {at} of {name}: {told}");
            }
        }
    }
    for length in [whole.len() - 1, whole.len() / 2, 100] {
        assert!(verify(whole[..length].to_vec()).is_ok_and(|v| !v.differs.is_empty()), "cut to {length}");
    }
    assert!(!verify([&whole[..], b"x"].concat()).unwrap().differs.is_empty());
}

/// What is cut off is named, and the rest checked.
#[test]
fn a_damaged_tar_zst_tells_what_can_no_longer_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = bundle_as(dir.path(), "evidence.tar.zst", &["fixtures/10a-raw-body-swap/backend.pcap"]);
    let whole = std::fs::read(&file).unwrap();
    let places = places(&whole);
    let place = |name: &str| places.iter().find(|(n, _)| n == name).unwrap().1.clone();
    let report = place("report.html");
    std::fs::write(&file, &whole[..report.start + report.len() / 2]).unwrap();
    let said = run(&["verify", &file], 1);
    for gone in ["report.html", "report.md", "report.json", "evidence/01-backend.pcapng"] {
        assert!(said.contains(&format!("{gone}: can no longer be read")), "{gone}: {said}");
    }
    assert!(!said.contains("README.txt: "), "{said}");
    assert!(said.contains(&format!("report.html: bytes {} to ", report.start)), "{said}");
    // A hole in the middle.
    let mut holed = whole.clone();
    holed[report.clone()].fill(0);
    std::fs::write(&file, &holed).unwrap();
    let said = run(&["verify", &file], 1);
    assert!(said.contains("report.html: can no longer be read"), "{said}");
    assert!(!said.contains("report.md") && !said.contains("evidence/"), "{said}");
    // Without the manifest nothing can be checked.
    let mut headless = whole.clone();
    headless[place("manifest.json")][8..].fill(0);
    std::fs::write(&file, &headless).unwrap();
    let said = run(&["verify", &file], 1);
    assert!(said.contains("manifest.json: can no longer be read") && said.contains("report.html"), "{said}");
}

#[test]
fn verify_names_the_member_that_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let file = bundle(dir.path(), &["fixtures/10a-raw-body-swap/backend.pcap"]);
    let mut bytes = std::fs::read(&file).unwrap();
    // In the manifest, in the header before its bytes, in the archive's directory.
    let named: Vec<usize> =
        bytes.windows(19).enumerate().filter(|(_, w)| w == b"evidence/01-backend").map(|(i, _)| i).collect();
    let header = named[named.len() - 2];
    bytes[header + 60] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let said = run(&["verify", &file], 1);
    assert!(said.contains("evidence/01-backend.pcapng: "), "{said}");
    assert!(!said.contains("report.html"), "{said}");
    run(&["verify", "fixtures/10a-raw-body-swap/backend.pcap"], 2);
    run(&["verify", "no-such-file.zip"], 2);
    run(&["bundle", "fixtures/10a-raw-body-swap/backend.pcap", "-o", "evidence.tar"], 2);
}

#[test]
fn one_key_gives_one_pseudonym_and_never_enters_the_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let key: PathBuf = dir.path().join("key");
    let key = key.to_str().unwrap();
    let input = "fixtures/02-crossed-id-collision/backend.pcap";
    let mut sessions = vec![];
    for _ in 0..2 {
        let file = bundle(dir.path(), &[input, "--key-file", key]);
        let o = crosswire(&["analyze", &file, "--format", "json"]);
        let report: Value = serde_json::from_slice(&o.stdout).unwrap();
        sessions.push(report["sessions"][0]["session"].as_str().unwrap().to_owned());
        let secret = std::fs::read_to_string(key).unwrap();
        assert!(!unpack::contains(&unpack::unpacked(&file), secret.trim()));
    }
    assert_eq!(sessions[0], sessions[1]);
    let file = bundle(dir.path(), &[input]);
    let o = crosswire(&["analyze", &file, "--format", "json"]);
    let report: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_ne!(report["sessions"][0]["session"].as_str().unwrap(), sessions[0]);
    std::fs::write(key, "no key").unwrap();
    let o = crosswire(&["bundle", input, "-o", &file, "--key-file", key]);
    assert_eq!(o.status.code(), Some(2));
    assert!(text(&o.stderr).contains("64 hexadecimal digits"));
}

/// The flags of a capture's packets are those of real connections: nothing is malformed for another
/// reader, and every exchange is there.
#[test]
fn a_slice_holds_the_same_exchanges() {
    let dir = tempfile::tempdir().unwrap();
    let input = "fixtures/11-resumability/backend.pcap";
    let file = bundle(dir.path(), &[input]);
    let exchanges = |name: &str| {
        let o = crosswire(&["timeline", name, "--format", "json"]);
        let report: Value = serde_json::from_slice(&o.stdout).unwrap();
        report["exchanges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|x| {
                format!(
                    "{} {} {} {} {}",
                    x["at"],
                    x["method"],
                    x["status"],
                    x["end"],
                    x["replies"].as_array().map_or(0, Vec::len)
                )
            })
            .collect::<Vec<_>>()
    };
    let (original, slice) = (exchanges(input), exchanges(&file));
    assert!(!slice.is_empty());
    for exchange in &slice {
        assert!(original.contains(exchange), "{exchange}\n{original:#?}");
    }
}

/// A little-endian pcap of which each frame keeps at most so many bytes, as a snap length does.
fn snapped(pcap: &[u8], most: usize) -> Vec<u8> {
    let (head, mut rest) = pcap.split_at(24);
    let mut out = head.to_vec();
    while rest.len() >= 16 {
        let captured = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let kept = captured.min(most);
        out.extend(&rest[..8]);
        out.extend((kept as u32).to_le_bytes());
        out.extend(&rest[12..16 + kept]);
        rest = &rest[16 + captured..];
    }
    out
}

/// Requests cut by a snap length are cut frames of the slice too: a reader that waits for whole
/// messages (Wireshark) would show none of them if their rest were a hole.
#[test]
fn a_slice_of_cut_frames_has_cut_frames() {
    let dir = tempfile::tempdir().unwrap();
    let pcap = std::fs::read("fixtures/01-clean/backend.pcap").unwrap();
    let input = dir.path().join("cut.pcap");
    std::fs::write(&input, snapped(&pcap, 96)).unwrap();
    let file = bundle(dir.path(), &[input.to_str().unwrap()]);
    let asked = crosswire(&["timeline", input.to_str().unwrap(), "--format", "json"]);
    let asked: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let requests = asked["exchanges"].as_array().unwrap().len();
    assert!(requests > 5, "{requests}");

    let members = unpack::unpacked(&file);
    let (_, slice) = members.iter().find(|(name, _)| name.ends_with(".pcapng")).unwrap();
    let (mut at, mut cut) = (0, 0);
    while at + 32 <= slice.len() {
        let word = |n: usize| u32::from_le_bytes(slice[at + n..at + n + 4].try_into().unwrap()) as usize;
        if word(0) == 6 && word(20) < word(24) {
            // Behind the headers of IPv4 and TCP.
            let data = &slice[at + 28 + 40..];
            cut += usize::from([&b"POST "[..], b"GET ", b"DELETE "].iter().any(|method| data.starts_with(method)));
        }
        at += word(4);
    }
    assert_eq!(cut, requests);
}
