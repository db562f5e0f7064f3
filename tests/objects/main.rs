//! Inputs in object stores and on web servers: what is read there is what is read from files, and what cannot be read
//! is said, without a secret in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../scan/kit.rs"]
#[allow(dead_code)]
mod kit;
mod server;

use kit::{DAY, Printed, gz, log, pieces, put, tar, zip, zst};
use serde_json::Value;
use server::{Fault, SIGNATURE, Server};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, UNIX_EPOCH};

const SECRET: &str = "d2hhdCBub2JvZHkgbWF5IHNlZQ";

/// What is needed to reach the store, and nothing of this machine's own.
fn command(server: &Server, args: &[&str]) -> Command {
    let mut command = kit::command(args);
    for (name, _) in std::env::vars() {
        if ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|p| name.starts_with(p)) || name.to_lowercase().ends_with("_proxy")
        {
            command.env_remove(name);
        }
    }
    command.envs([
        ("AWS_ENDPOINT_URL", &*format!("http://{}", server.address)),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "eu-central-1"),
    ]);
    command
}

fn run(server: &Server, args: &[&str]) -> Output {
    let o = command(server, args).output().unwrap();
    for text in [&o.stdout, &o.stderr] {
        no_secret(&String::from_utf8_lossy(text));
    }
    o
}

fn no_secret(text: &str) {
    for secret in [SECRET, "AKIAEXAMPLE", SIGNATURE, "Signature="] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

fn scan(server: &Server, args: &[&str]) -> Printed {
    Printed::of(&run(server, &[&["scan", "--format", "ndjson"], args].concat()))
}

/// A folder of everything that is read otherwise: a rotated set with a torn line, captures, members of three archives.
fn archive(folder: &Path) {
    let lines = log(1, DAY, 3000, 12);
    let parts = pieces(&lines, 4);
    put(folder, "edge/access.log.3.gz", gz(parts[0].as_bytes()));
    put(folder, "edge/access.log.2.zst", zst(parts[1].as_bytes()));
    put(folder, "edge/access.log.1", &parts[2]);
    put(folder, "edge/access.log", &parts[3]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/02-crossed-id-collision");
    let read = |name: &str| fs::read(root.join(name)).unwrap();
    put(folder, "case/front.pcap.gz", gz(&read("front.pcap")));
    put(
        folder,
        "case/server.tar",
        tar(&[("backend.pcap", &read("backend.pcap")), ("journal.json", &read("journal.json"))]),
    );
    let other = |seed: u64| log(seed, DAY + seed as i64 * 9000, 900, 6).concat();
    put(folder, "two/logs.zip", zip(&[("a/access.log", other(2).as_bytes()), ("b/access.log", other(3).as_bytes())]));
    put(folder, "three/logs.tar.gz", gz(&tar(&[("access.log", other(4).as_bytes())])));
    put(folder, "three/empty.log", "");
    put(folder, "three/with space + plus%.log", other(5));
    settle(folder);
}

/// Stores keep whole seconds.
fn settle(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            settle(&entry);
        } else {
            let time = UNIX_EPOCH + Duration::from_secs(DAY as u64 + 90_000);
            fs::File::options().write(true).open(entry).unwrap().set_modified(time).unwrap();
        }
    }
}

fn served() -> (tempfile::TempDir, String, Server) {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    archive(&input);
    let server = Server::start(&input);
    (dir, input.to_str().unwrap().to_owned(), server)
}

/// All that a scan says, in the words of one over files: the names of lots come of the names of files.
fn said(o: &Printed, place: &str) -> (i32, Vec<Value>) {
    let lots = regex::Regex::new(r"(c\d+)-[0-9a-f]{12}").unwrap();
    let text = lots.replace_all(&o.text.replace(place, "IN"), "$1").into_owned();
    let strip = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().remove("lot");
        value
    };
    (o.status, text.lines().map(strip).collect())
}

fn same(far: &Printed, place: &str, near: &Printed, folder: &str) {
    let (a, b) = (said(far, place), said(near, folder));
    assert_eq!(a.0, b.0, "{}", far.error);
    for (a, b) in a.1.iter().zip(&b.1) {
        assert_eq!(a, b);
    }
    assert_eq!(a.1.len(), b.1.len());
}

#[test]
fn a_prefix_is_as_the_folder() {
    let (_dir, folder, server) = served();
    let near = scan(&server, &[&folder]);
    assert!(near.claims().len() > 20 && near.summary()["broken"] == serde_json::json!([]), "{}", near.text);
    for place in ["s3://logs", "s3://logs/"] {
        same(&scan(&server, &[place]), "s3://logs", &near, &folder);
    }
    let near = scan(&server, &[&format!("{folder}/edge")]);
    for place in ["s3://logs/edge", "s3://logs/edge/", "s3a://logs/edge/"] {
        let base = place.split("/edge").next().unwrap();
        same(&scan(&server, &[place]), base, &near, &folder);
    }
    let listed: Vec<_> =
        server.state.lock().unwrap().asked.iter().filter(|a| a.1.contains("list-type")).cloned().collect();
    assert!(listed.iter().any(|a| a.1.contains("continuation-token")), "{listed:?}");
}

#[test]
fn patterns_and_single_objects() {
    let (_dir, folder, server) = served();
    for pattern in ["edge/access.log*", "**/*.gz", "*/logs.*", "t*/**", "edge/access.log.?", "case"] {
        let near = scan(&server, &[&format!("{folder}/{pattern}")]);
        same(&scan(&server, &[&format!("s3://logs/{pattern}")]), "s3://logs", &near, &folder);
    }
    let files = ["edge/access.log.1", "case/front.pcap.gz", "case/server.tar", "two/logs.zip", "three/logs.tar.gz"];
    for file in files.into_iter().chain(["three/with space + plus%.log"]) {
        let near = scan(&server, &[&format!("{folder}/{file}")]);
        same(&scan(&server, &[&format!("s3://logs/{file}")]), "s3://logs", &near, &folder);
        let (web, encoded) = (format!("http://{}/web", server.address), file.replace('%', "%25").replace(' ', "%20"));
        let far = scan(&server, &[&format!("{web}/{encoded}")]);
        let decoded = Printed { text: far.text.replace("%20", " ").replace("%25", "%"), ..far };
        same(&decoded, &web, &near, &folder);
    }
    let none = scan(&server, &["s3://logs/edge/*.none"]);
    assert_eq!(none.status, 2);
    assert!(none.error.contains("s3://logs/edge/*.none: no object fits this pattern"), "{}", none.error);
}

#[test]
fn web_servers_that_list_and_those_that_do_not() {
    let (_dir, folder, server) = served();
    let near = scan(&server, &[&format!("{folder}/edge/*")]);
    let dav = format!("http://{}/dav", server.address);
    same(&scan(&server, &[&format!("{dav}/edge/*")]), &dav, &near, &folder);
    let web = scan(&server, &[&format!("http://{}/web/edge/", server.address)]);
    assert_eq!(web.status, 2);
    assert!(web.error.contains("405") && web.error.contains("the URL of each file"), "{}", web.error);
    // Without a time a file is not left out for it, and without a tag it is read all the same.
    server.fault("edge/access.log", Fault::Bare);
    let bare = scan(&server, &[&format!("http://{}/web/edge/access.log", server.address), "--since", "2026-10-05"]);
    assert_eq!(bare.claims(), scan(&server, &[&format!("{folder}/edge/access.log")]).claims());
    // Members of a zip archive are read where they are.
    server.fault("two/logs.zip", Fault::NoRange);
    let zip = scan(&server, &[&format!("http://{}/web/two/logs.zip", server.address)]);
    assert_eq!(zip.status, 2);
    assert!(zip.summary()["broken"].to_string().contains("does not serve parts of files"), "{}", zip.text);
}

#[test]
fn analyze_reads_objects_too() {
    let (_dir, folder, server) = served();
    let analyze = |base: &str| {
        let files = ["edge/access.log.1", "case/front.pcap.gz"].map(|f| format!("{base}/{f}"));
        Printed::of(&run(&server, &["analyze", "--format", "ndjson", &files[0], &files[1]]))
    };
    same(&analyze("s3://logs"), "s3://logs", &analyze(&folder), &folder);
    let missing = run(&server, &["analyze", "s3://logs/none.log"]);
    assert_eq!(missing.status.code(), Some(2));
    let error = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(error.contains("s3://logs/none.log: there is no such object"), "{error}");
}

#[test]
fn what_cannot_be_had_is_said() {
    let (_dir, _, server) = served();
    server.fault("edge/access.log.1", Fault::Status(403, usize::MAX));
    let denied = scan(&server, &["s3://logs/edge/access.log.1"]);
    assert_eq!(denied.status, 2);
    let told = "s3://logs/edge/access.log.1: the store denies access (403 Forbidden";
    assert!(denied.error.contains(told) && denied.error.contains("AWS_SKIP_SIGNATURE"), "{}", denied.error);
    // Found by listing, and then not to be read: broken, and named.
    let denied = scan(&server, &["s3://logs/edge"]);
    let broken = denied.summary()["broken"].to_string();
    assert!(denied.status == 2 && broken.contains("s3://logs/edge/access.log.1") && broken.contains("403"), "{broken}");
    let missing = scan(&server, &["s3://logs/edge/none", "s3://logs/case"]);
    assert!(
        missing.status == 2 && missing.error.contains("s3://logs/edge/none: there is no such object"),
        "{}",
        missing.error
    );
    assert!(!missing.claims().is_empty(), "the rest is read");
    let unknown = scan(&server, &["ftp://h/x"]);
    assert!(
        unknown.status == 2 && unknown.error.contains("ftp://h/x: ftp:// is not read; expected s3://"),
        "{}",
        unknown.error
    );
    let mut plain = command(&server, &["scan", "--format", "ndjson", "s3://logs/edge"]);
    let plain = plain.env_remove("AWS_ALLOW_HTTP").output().unwrap();
    let error = String::from_utf8_lossy(&plain.stderr).into_owned();
    assert!(plain.status.code() == Some(2) && error.contains("AWS_ALLOW_HTTP=true"), "{error}");
    let mut wrong = command(&server, &["scan", "--format", "ndjson", "s3://logs/edge"]);
    let wrong = wrong.env("AWS_ACCESS_KEY_ID", "AKIAOTHER").output().unwrap();
    let error = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && error.contains("denies access (403 Forbidden"), "{error}");
    assert!(!error.contains("AKIA"), "{error}");
}

#[test]
fn a_damaged_object_is_named_and_the_rest_is_read() {
    let (_dir, folder, server) = served();
    let path = format!("{folder}/edge/access.log.3.gz");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    settle(Path::new(&folder));
    let near = scan(&server, &[&folder]);
    assert!(near.status == 2 && near.summary()["broken"].to_string().contains("access.log.3.gz"));
    same(&scan(&server, &["s3://logs"]), "s3://logs", &near, &folder);
}

#[test]
fn cut_connections_are_gone_on_with() {
    let (_dir, folder, server) = served();
    let near = scan(&server, &[&folder]);
    for key in ["edge/access.log.1", "edge/access.log.3.gz", "case/server.tar", "two/logs.zip", "three/logs.tar.gz"] {
        server.fault(key, Fault::Cut(5000, 3));
    }
    server.fault("edge/access.log", Fault::Status(503, 2));
    same(&scan(&server, &["s3://logs"]), "s3://logs", &near, &folder);
    let asked = server.state.lock().unwrap().asked.clone();
    assert!(
        asked.iter().any(|(_, p, range)| p.contains("access.log.1")
            && range.as_deref().is_some_and(|r| r.starts_with("bytes=5000-")))
    );
}

#[test]
fn what_stays_cut_is_counted_and_not_remembered() {
    let (dir, folder, server) = served();
    let out = dir.path().join("out");
    let args = ["s3://logs/edge", "--out", out.to_str().unwrap(), "--incremental"];
    server.fault("edge/access.log.1", Fault::Cut(0, usize::MAX));
    let cut = scan(&server, &args);
    let broken = cut.summary()["broken"].to_string();
    assert!(cut.status == 2 && broken.contains("s3://logs/edge/access.log.1"), "{broken} {}", cut.error);
    server.heal();
    let near = scan(&server, &[&format!("{folder}/edge")]);
    let again = scan(&server, &args);
    assert_eq!((again.status, again.claims()), (near.status, near.claims()));
}

/// A look takes three requests: what is refused then is refused to the analysis.
#[test]
fn what_is_lost_after_the_look_is_broken_too() {
    let (dir, folder, server) = served();
    let out = dir.path().join("out");
    let args = ["s3://logs/edge", "--out", out.to_str().unwrap(), "--incremental"];
    server.fault("edge/access.log.1", Fault::Late(3));
    let late = scan(&server, &args);
    let broken = late.summary()["broken"].to_string();
    assert!(late.status == 2 && broken.contains("s3://logs/edge/access.log.1") && broken.contains("403"), "{broken}");
    server.heal();
    let near = scan(&server, &[&format!("{folder}/edge")]);
    let again = scan(&server, &args);
    assert_eq!((again.status, again.claims()), (near.status, near.claims()));
    assert_ne!(late.claims(), near.claims());
    // A step fails as a whole: whoever runs it tries again.
    server.fault("edge/access.log.1", Fault::Status(403, usize::MAX));
    let list = run(&server, &["map", "s3://logs/edge", "--step", "list"]);
    let file = dir.path().join("list");
    fs::write(&file, &list.stdout).unwrap();
    let look = command(&server, &["map", "--step", "look"]).stdin(fs::File::open(file).unwrap()).output().unwrap();
    let error = String::from_utf8_lossy(&look.stderr).into_owned();
    assert!(
        look.status.code() == Some(2) && error.contains("s3://logs/edge/access.log.1: the store denies"),
        "{error}"
    );
}

#[test]
fn what_has_the_same_tag_is_not_read_again() {
    let (dir, folder, server) = served();
    let out = dir.path().join("out");
    let args = ["s3://logs", "--out", out.to_str().unwrap(), "--incremental", "--step", "1"];
    let first = scan(&server, &args);
    assert!(first.status == 1 && !server.gets().is_empty(), "{}", first.error);
    // Written anew, with what was in it: the time is another one, the tag is not.
    let path = format!("{folder}/edge/access.log.1");
    fs::write(&path, fs::read(&path).unwrap()).unwrap();
    let second = scan(&server, &args);
    assert_eq!(second.claims(), first.claims());
    assert_eq!(server.gets(), Vec::<String>::new());
    let more = log(40, DAY + 200_000, 900, 6).concat();
    put(Path::new(&folder), "three/with space + plus%.log", more);
    let third = scan(&server, &args);
    let gets = server.gets();
    assert!(!gets.is_empty() && gets.iter().all(|p| p.contains("plus")), "{gets:?}");
    let fresh = scan(&server, &["s3://logs"]);
    assert_eq!(third.claims(), fresh.claims());
    for file in fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()) {
        no_secret(&String::from_utf8_lossy(&fs::read(file).unwrap()));
    }
}

#[test]
fn signed_urls_are_read_and_their_signature_is_not_told() {
    let (dir, folder, server) = served();
    let near = scan(&server, &[&format!("{folder}/edge/access.log.1")]);
    let base = format!("http://{}/signed", server.address);
    let url = |signature: &str| format!("{base}/edge/access.log.1?X-Amz-Expires=60&X-Amz-Signature={signature}");
    let out = dir.path().join("out");
    let args = [&url(SIGNATURE), "--out", out.to_str().unwrap(), "--incremental"];
    same(&scan(&server, &args), &base, &near, &folder);
    for file in ["checkpoint.ndjson", "findings.ndjson", "findings.csv"] {
        let text = fs::read_to_string(out.join(file)).unwrap();
        no_secret(&text);
        assert!(text.contains("/signed/edge/access.log.1"), "{file}");
    }
    let expired = scan(&server, &[&url("b3RoZXI")]);
    assert!(
        expired.status == 2 && expired.error.contains("/signed/edge/access.log.1: the store denies access"),
        "{}",
        expired.error
    );
    assert!(!expired.error.contains("b3RoZXI"));
    // Two objects that differ in what is not shown are two.
    let two = scan(&server, &[&url(SIGNATURE), &format!("{}&part=2", url(SIGNATURE))]);
    assert_eq!(two.summary()["copies"].as_array().map(Vec::len), Some(1), "{}", two.text);
    // Steps of a cluster know the name alone.
    let listed = run(&server, &["map", &url(SIGNATURE), "--step", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("not passed on"));
}

#[test]
fn killed_at_any_point_it_comes_to_the_same() {
    let (dir, _, server) = served();
    let run = |out: &Path| {
        let mut c =
            command(&server, &["scan", "s3://logs", "--format", "ndjson", "--jobs", "1", "--step", "1", "--out"]);
        c.arg(out);
        c
    };
    let read = |out: &Path| ["findings.ndjson", "findings.csv"].map(|f| fs::read_to_string(out.join(f)).unwrap());
    let undisturbed = dir.path().join("undisturbed");
    assert_eq!(run(&undisturbed).output().unwrap().status.code(), Some(1));
    let (wanted, whole) = (read(&undisturbed), server.gets().len());
    let out = dir.path().join("killed");
    let checkpoint = out.join("checkpoint.ndjson");
    let lines = || fs::read_to_string(&checkpoint).map_or(0, |t| t.lines().count());
    let mut kills = 0;
    for at in [3, 7, 11, 13] {
        let mut child = run(&out).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while lines() < at && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    server.gets();
    let last = run(&out).output().unwrap();
    assert_eq!(last.status.code(), Some(1), "{}", String::from_utf8_lossy(&last.stderr));
    assert_eq!(read(&out), wanted);
    // What was done before is not asked for again.
    let gets = server.gets();
    assert!(kills > 1 && gets.len() * 2 < whole, "{kills} {whole} {gets:?}");
}

#[test]
fn the_steps_of_a_cluster_read_objects() {
    let (_dir, folder, server) = served();
    let step = |args: &[&str], input: &str| {
        let mut child = command(&server, args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
        let feeding = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let out = child.wait_with_output().unwrap();
        feeding.join().unwrap().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let all = |place: &str| {
        let list = step(&["map", place, "--step", "list", "--split", "60000"], "");
        let looked = step(&["map", "--step", "look", "--split", "60000"], &list);
        let plan = step(&["map", "--step", "plan", "--split", "60000"], &looked);
        let tasks: Vec<&str> = plan.lines().filter(|l| l.starts_with("{\"tasks\"")).collect();
        let mut records: Vec<String> =
            step(&["map", "--split", "60000"], &tasks.join("\n")).lines().map(str::to_owned).collect();
        records.sort_by_key(|l| {
            let mut parts = l.split('\t');
            (parts.next().unwrap().to_owned(), parts.next().unwrap().parse::<i64>().unwrap())
        });
        let folded = step(&["reduce"], &(records.join("\n") + "\n"));
        let findings =
            folded.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()).filter(|v| v["type"] == "finding");
        let mut claims: Vec<String> = findings.map(|f| format!("{} {} {}", f["rule"], f["at"], f["session"])).collect();
        claims.sort();
        claims
    };
    let near = all(&folder);
    assert!(near.len() > 20);
    assert_eq!(all("s3://logs"), near);
    // A line of plain text names an object as it names a file.
    let one = step(&["map"], "s3://logs/edge/access.log");
    assert!(one.lines().count() > 1 && one.lines().all(|l| l.split('\t').count() == 3), "{one}");
}
