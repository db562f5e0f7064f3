//! The recording proxy between a client and a server that the tests hold in their hands.

use crate::run::{Running, report};
use crate::server::{Server, Talk, post, reply};
use serde_json::json;
use std::path::PathBuf;

struct Proxied {
    server: Server,
    proxy: Running,
    address: String,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

fn proxied(options: &[&str]) -> Proxied {
    let server = Server::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("proxy.pcapng");
    let upstream = format!("http://{}/mcp", server.address());
    let mut args = vec!["proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream, "-w", file.to_str().unwrap()];
    args.extend(options);
    let mut proxy = Running::start(&args);
    let address = proxy.line_with("proxy for").trim().rsplit("://").next().unwrap().to_owned();
    Proxied { server, proxy, address, file, _folder: folder }
}

impl Proxied {
    fn client(&self) -> Talk {
        Talk::to(&self.address)
    }

    /// Stops it; gives the exchanges of the recording.
    fn stop(self) -> serde_json::Value {
        self.stop_with_bytes().0
    }

    /// Stops it; gives the exchanges of the recording, and its bytes.
    fn stop_with_bytes(self) -> (serde_json::Value, Vec<u8>) {
        let (status, said) = self.proxy.stop();
        assert_eq!(status, 0, "{said}");
        (report("timeline", &self.file), std::fs::read(&self.file).unwrap())
    }
}

fn lines(head: &str) -> Vec<&str> {
    head.split("\r\n").collect()
}

#[test]
fn heads_and_bodies_pass_as_they_are() {
    let p = proxied(&[]);
    let mut client = p.client();
    let body = "{\"jsonrpc\":\"2.0\", \"id\":1,\"method\":\"ping\"}";
    client.say(&format!(
        "POST /mcp?x=%20&token=abc HTTP/1.1\r\nUser-Agent: t\r\nHost: 127.0.0.1:1\r\nX-ODD-case: a  b\r\nx-twice: 1\r\nX-Twice: 2\r\nAuthorization: Bearer SECRET\r\nContent-Length: {}\r\nLast-Event-ID: 7\r\n\r\n{body}",
        body.len()
    ));
    let mut server = p.server.accept();
    let (head, got) = server.message();
    let host = format!("Host: {}", p.server.address());
    assert_eq!(got, body);
    assert_eq!(
        lines(&head)[..9],
        [
            "POST /mcp?x=%20&token=abc HTTP/1.1",
            "User-Agent: t",
            &host,
            "X-ODD-case: a  b",
            "x-twice: 1",
            "X-Twice: 2",
            "Authorization: Bearer SECRET",
            &format!("Content-Length: {}", body.len()),
            "Last-Event-ID: 7",
        ]
    );
    let answer = "HTTP/1.1 200 OK\r\nServer: odd\r\nMCP-Session-Id: s\r\nContent-Type: application/json\r\nContent-Length: 36\r\nSet-Cookie: a=SECRET\r\nX-z: \r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    server.say(answer);
    let (head, got) = client.message();
    assert_eq!(format!("{head}{got}"), answer);

    let (timeline, bytes) = p.stop_with_bytes();
    let holds = |text: &str| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
    assert!(!holds("SECRET") && !holds("abc") && holds("stripped-by-crosswire") && holds(body));
    assert_eq!(timeline["inputs"][0]["problems"], json!([]));
    assert_eq!(timeline["exchanges"][0]["end"], "complete");
    assert_eq!(timeline["exchanges"][0]["target"], "/mcp?x=%20&token=stripped-by-crosswire");
}

#[test]
fn credentials_are_recorded_if_asked() {
    let p = proxied(&["--keep-credentials"]);
    let mut client = p.client();
    client.say("GET /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer SECRET\r\n\r\n");
    let mut server = p.server.accept();
    server.message();
    server.say("HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
    client.message();
    assert!(memchr::memmem::find(&p.stop_with_bytes().1, b"Bearer SECRET").is_some());
}

#[test]
fn bodies_of_forms_are_not_recorded() {
    let p = proxied(&[]);
    let mut client = p.client();
    let form = "grant_type=refresh_token&refresh_token=SECRET";
    client.say(&format!(
        "POST /token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    let mut server = p.server.accept();
    assert_eq!(server.message().1, form);
    server.say(&reply("{\"access_token\":\"SECRET\"}"));
    assert_eq!(client.message().1, "{\"access_token\":\"SECRET\"}");
    let (timeline, bytes) = p.stop_with_bytes();
    assert!(memchr::memmem::find(&bytes, b"SECRET").is_none());
    assert_eq!(timeline["exchanges"][0]["end"], "complete");
    assert_eq!(timeline["inputs"][0]["problems"], json!([]));
}

#[test]
fn events_pass_one_by_one() {
    let p = proxied(&[]);
    let mut client = p.client();
    client.say(&post("s", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#));
    let mut server = p.server.accept();
    server.message();
    server.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(client.hear("\r\n\r\n").contains("Transfer-Encoding: chunked"));
    // Each is there before the next is sent.
    for event in ["id: 1\ndata: \n\n", ": ping\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"] {
        server.say(&format!("{:x}\r\n{event}\r\n", event.len()));
        client.hear(event);
    }
    server.say("0\r\n\r\n");
    client.hear("0\r\n\r\n");
    // The same connection goes on, on both sides.
    client.say(&post("s", r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#));
    server.message();
    server.say(&reply(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#));
    client.message();
    let timeline = p.stop();
    let exchanges = timeline["exchanges"].as_array().unwrap();
    assert_eq!(exchanges.len(), 2);
    assert!(exchanges.iter().all(|x| x["end"] == "complete" && x["replies"].as_array().unwrap().len() == 1));
    assert_eq!(exchanges[0]["stream"], exchanges[1]["stream"]);
}

#[test]
fn a_client_that_leaves_is_gone_for_the_server_too() {
    let p = proxied(&[]);
    // Before the response, and in the midst of it.
    for begun in [false, true] {
        let mut client = p.client();
        client.say(&post("s", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#));
        let mut server = p.server.accept();
        server.message();
        if begun {
            server.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
            client.hear("data: 1\n\n");
        }
        drop(client);
        assert_eq!(server.rest(), "");
    }
    let timeline = p.stop();
    let ends: Vec<_> = timeline["exchanges"].as_array().unwrap().iter().map(|x| x["end"].clone()).collect();
    assert_eq!(ends, ["client-closed", "client-closed"]);
}

#[test]
fn a_server_that_leaves_is_gone_for_the_client_too() {
    let p = proxied(&[]);
    for begun in [false, true] {
        let mut client = p.client();
        client.say(&post("s", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#));
        let mut server = p.server.accept();
        server.message();
        if begun {
            server.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
            client.hear("\r\n\r\n");
        }
        drop(server);
        // No 502, and no end of chunks, which would be an end of the stream that the server did not make.
        assert_eq!(client.rest(), "");
    }
    let timeline = p.stop();
    let ends: Vec<_> = timeline["exchanges"].as_array().unwrap().iter().map(|x| x["end"].clone()).collect();
    assert_eq!(ends, ["server-closed", "server-closed"]);
}

#[test]
fn a_server_that_cannot_be_reached_is_not_spoken_for() {
    let mut p = proxied(&[]);
    p.server = Server::new();
    let mut client = p.client();
    client.say(&post("s", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
    assert_eq!(client.rest(), "");
    p.proxy.line_with("cannot be reached");
    let timeline = p.stop();
    assert_eq!(timeline["exchanges"][0]["end"], "server-closed");
    assert_eq!(timeline["exchanges"][0]["status"], json!(null));
}

#[test]
fn a_connection_that_the_server_closed_while_idle_is_made_anew() {
    let p = proxied(&[]);
    let mut client = p.client();
    for id in 1..4 {
        client.say(&post("s", &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)));
        let mut server = p.server.accept();
        server.message();
        server.say(&reply(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)));
        client.message();
    }
    assert_eq!(p.stop()["exchanges"].as_array().unwrap().len(), 3);
}

#[test]
fn the_guard_keeps_an_id_from_being_used_twice_at_once() {
    let p = proxied(&["--guard"]);
    let call = |id: &str, tool: &str| {
        post("s", &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#))
    };
    let (mut a, mut b) = (p.client(), p.client());
    a.say(&call("7", "one"));
    let mut server = p.server.accept();
    server.message();
    b.say(&call("7", "two"));
    let (head, body) = b.message();
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(head.starts_with("HTTP/1.1 409 Conflict"), "{head}");
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!(7), &json!(-32600)));
    assert!(body["error"]["message"].as_str().unwrap().contains("already in flight"));
    // Another id and another session are nobody's business.
    b.say(&call("8", "two"));
    let mut second = p.server.accept();
    second.message();
    second.say(&reply(r#"{"jsonrpc":"2.0","id":8,"result":{}}"#));
    b.message();
    // After the reply on its stream the id is free, though the stream goes on.
    server.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n");
    a.hear("}\n\n");
    b.say(&call("7", "three"));
    second.message();
    second.say(&reply(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
    assert!(b.message().0.starts_with("HTTP/1.1 200"));
    let (status, said) = p.proxy.stop();
    assert_eq!(status, 0);
    assert!(said.contains("1 refused by the guard"), "{said}");
}

#[test]
fn without_the_guard_an_id_in_flight_passes() {
    let p = proxied(&[]);
    let call = post("s", r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}"#);
    let (mut a, mut b) = (p.client(), p.client());
    a.say(&call);
    p.server.accept().message();
    b.say(&call);
    p.server.accept().message();
    p.stop();
}

#[test]
fn a_disk_that_is_full_from_the_start_is_told_at_once() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    // The beginning of the file must be there; a device that is full from the start is told at once.
    let server = Server::new();
    let upstream = format!("http://{}", server.address());
    let output = crate::run::command(&["proxy", "--upstream", &upstream, "-w", "/dev/full"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/full: cannot be written"));
}

#[test]
fn a_crossing_is_told_while_the_proxy_runs() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("findings");
    let p = proxied(&["--detect", "--settle", "500ms", "--findings-log", log.to_str().unwrap()]);
    let call = |text: &str| {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        post("s", &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string())
    };
    let event = |text: &str| {
        let result = json!({"content": [{"type": "text", "text": text}]});
        format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 7, "result": result}))
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let (mut a, mut b) = (p.client(), p.client());
    a.say(&call("the heron of the first caller"));
    let mut first = p.server.accept();
    first.message();
    first.say(head);
    b.say(&call("the marmot of the second caller"));
    let mut second = p.server.accept();
    second.message();
    second.say(&format!("{head}{}", event("the heron of the first caller")));
    drop(second);
    b.hear("heron of the first caller");
    // The other caller waits, and gives up.
    drop(a);
    let began = std::time::Instant::now();
    let told = || std::fs::read_to_string(&log).unwrap_or_default();
    while !told().contains("crossed/id-collision") {
        assert!(began.elapsed().as_secs() < 60, "{}", told());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    p.stop();
}
