//! Watching files that grow, are rotated and are cut.

use crate::run::Running;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const CASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/02-crossed-id-collision/");
/// What analyze says of the case, by rule and frame of the first evidence.
const EXPECTED: [(&str, u64); 5] = [
    ("crossed/id-collision", 49),
    ("orphaned/no-reply", 43),
    ("orphaned/no-reply", 66),
    ("session/id-reused-in-flight", 66),
    ("session/shared", 19),
];

struct Watch {
    folder: tempfile::TempDir,
    running: Option<Running>,
}

impl Watch {
    /// Watches these files of a new folder, which are empty but for what is given.
    fn start(files: &[(&str, &[u8])], more: &[&str]) -> Watch {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
        for ((_, bytes), path) in files.iter().zip(&paths) {
            fs::write(path, bytes).unwrap();
        }
        let log = folder.path().join("findings");
        let mut args = vec!["watch", "--settle", "1s", "--findings-log", log.to_str().unwrap()];
        args.extend(paths.iter().map(|p| p.to_str().unwrap()));
        args.extend(more);
        let mut running = Running::start(&args);
        running.line_with("watching");
        Watch { folder, running: Some(running) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Findings told so far.
    fn told(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("findings")).unwrap_or_default();
        text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
    }

    /// Waits until so many were told.
    fn wait_for(&self, count: usize) -> Vec<Value> {
        let began = Instant::now();
        while self.told().len() < count && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.told()
    }

    /// Stops it; gives all that was told.
    fn stop(mut self) -> Vec<Value> {
        let (status, said) = self.running.take().unwrap().stop();
        assert_eq!(status, 0, "{said}");
        self.told()
    }
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn rules(told: &[Value]) -> Vec<(String, u64)> {
    let rule = |f: &Value| (f["rule"].as_str().unwrap().to_owned(), f["evidence"][0]["frame"].as_u64().unwrap_or(0));
    let mut rules: Vec<_> = told.iter().map(rule).collect();
    rules.sort();
    rules
}

fn expected() -> Vec<(String, u64)> {
    EXPECTED.map(|(rule, frame)| (rule.to_owned(), frame)).to_vec()
}

#[test]
fn a_capture_that_grows_gives_each_finding_once() {
    let capture = fs::read(format!("{CASE}backend.pcap")).unwrap();
    let watch = Watch::start(&[("b.pcap", &capture[..1000])], &[]);
    for piece in capture[1000..].chunks(777) {
        append(&watch.path("b.pcap"), piece);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(rules(&watch.wait_for(EXPECTED.len())), expected());
    // Nothing is told twice, whatever comes after.
    assert_eq!(rules(&watch.stop()), expected());
}

/// A capture cut into two files, the second in the place of the first, in the midst of a connection.
#[test]
fn connections_go_on_over_the_rotation_of_a_capture() {
    let capture = fs::read(format!("{CASE}backend.pcap")).unwrap();
    // Between two packets: the header of the file comes again in the second.
    let mut at = 24;
    while at < capture.len() / 2 {
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    let watch = Watch::start(&[("b.pcap", &capture[..at])], &[]);
    let path = watch.path("b.pcap");
    std::thread::sleep(Duration::from_millis(300));
    fs::rename(&path, watch.path("b.pcap.1")).unwrap();
    fs::write(&path, [&capture[..24], &capture[at..]].concat()).unwrap();
    let told = watch.wait_for(EXPECTED.len());
    assert_eq!(rules(&told), expected());
    // Frames of the second file have its numbers.
    let places: Vec<&str> =
        told.iter().flat_map(|f| f["places"].as_array().unwrap()).filter_map(Value::as_str).collect();
    assert!(
        places.iter().any(|p| p.contains("b.pcap+1:")) && places.iter().any(|p| p.ends_with("b.pcap:19")),
        "{places:?}"
    );
    assert_eq!(watch.stop().len(), EXPECTED.len());
}

/// Sessions that were forgotten, as the access log tells of them.
fn stale_lines() -> Vec<String> {
    let line = |at: &str, session: &str, sent: &str, status: u16, method: &str| {
        format!(
            "{{\"ts\":\"2026-11-29T19:50:{at}+00:00\",\"msec\":\"1795981{at}.000\",\"remote_addr\":\"192.0.2.9\",\"remote_port\":\"4{at}\",\
             \"host\":\"h\",\"method\":\"{method}\",\"uri\":\"/mcp\",\"protocol\":\"HTTP/1.1\",\"status\":\"{status}\",\
             \"bytes_sent\":\"300\",\"body_bytes_sent\":\"100\",\"request_time\":\"0.010\",\"upstream_addr\":\"127.0.0.1:9311\",\
             \"upstream_status\":\"{status}\",\"mcp_session_id\":\"{session}\",\"sent_mcp_session_id\":\"{sent}\",\"user_agent\":\"t/1\"}}\n"
        )
    };
    let (old, new) = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
    let mut lines = vec![line("10", "", old, 200, "POST"), line("11", old, "", 202, "POST")];
    lines.extend((12..30).map(|n| line(&n.to_string(), old, "", 200, "POST")));
    lines.push(line("40", old, "", 404, "POST"));
    lines.push(line("41", "", new, 200, "POST"));
    lines.push(line("42", new, "", 202, "POST"));
    lines.extend((43..50).map(|n| line(&n.to_string(), new, "", 200, "POST")));
    lines
}

fn told_of(lines: &[String], rotate: impl Fn(&Watch, &Path)) -> Vec<Value> {
    let watch = Watch::start(&[("access.log", lines[0].as_bytes())], &["--endpoint", "/mcp"]);
    let path = watch.path("access.log");
    for (n, line) in lines.iter().enumerate().skip(1) {
        append(&path, line.as_bytes());
        if n == 15 {
            // What was written is read before it is cut.
            std::thread::sleep(Duration::from_millis(400));
            rotate(&watch, &path);
        }
    }
    watch.wait_for(1);
    watch.stop()
}

#[test]
fn a_log_is_followed_through_rotation_by_renaming_and_by_cutting() {
    let lines = stale_lines();
    let plain = told_of(&lines, |_, _| {});
    let rule = |told: &[Value]| told.iter().map(|f| f["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(rule(&plain), ["stale/404-window"]);
    let create = told_of(&lines, |watch, path| {
        fs::rename(path, watch.path("access.log.1")).unwrap();
        File::create(path).unwrap();
    });
    assert_eq!(rule(&create), rule(&plain));
    assert!(create[0]["places"].to_string().contains("access.log+1:"), "{}", create[0]["places"]);
    let copytruncate = told_of(&lines, |watch, path| {
        fs::copy(path, watch.path("access.log.1")).unwrap();
        OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
    });
    assert_eq!(rule(&copytruncate), rule(&plain));
}

#[test]
fn findings_go_to_a_command_and_to_metrics() {
    let capture = fs::read(format!("{CASE}backend.pcap")).unwrap();
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("rules");
    let command = format!("echo $CROSSWIRE_RULE $(wc -l) >> {}", file.display());
    let watch = Watch::start(&[("b.pcap", &capture)], &["--exec", &command, "--rule", "crossed/*"]);
    watch.wait_for(1);
    assert_eq!(rules(&watch.stop()), [("crossed/id-collision".to_owned(), 49)]);
    assert_eq!(fs::read_to_string(file).unwrap(), "crossed/id-collision 1\n");
}

#[test]
fn a_window_that_is_full_lets_go_and_stays_bounded() {
    // Each line is one of a session of its own; the size is far less than all of them.
    let line = |n: u32| {
        format!(
            "192.0.2.7 - - [29/Nov/2026:19:{:02}:{:02} +0000] \"POST /mcp HTTP/1.1\" 200 512 \"-\" \"t/1\"\n",
            n / 60 % 60,
            n % 60
        )
    };
    let watch =
        Watch::start(&[("access.log", line(0).as_bytes())], &["--window-size", "64KiB", "--metrics", "127.0.0.1:0"]);
    for n in 0..40 {
        let lines: String = (n * 100..(n + 1) * 100).map(line).collect();
        append(&watch.path("access.log"), lines.as_bytes());
    }
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(watch.stop(), [Value::Null; 0]);
}
