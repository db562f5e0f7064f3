//! HTTP/1 as servers and clients speak it, one thing a test.

use super::{Heard, Talk, json, post, read, sse};
use crate::model::exchange::BodyKind;
use crate::model::exchange::Peer::{Client, Server};
use crate::model::problem::ProblemKind;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// A conversation: requests and answers in turn, then the client closes.
fn heard(turns: &[(&[u8], &[u8])]) -> Heard {
    let mut talk = Talk::open(40_000, [1, 2]);
    for (request, response) in turns {
        if !request.is_empty() {
            talk.say(Client, request, 1448);
        }
        if !response.is_empty() {
            talk.say(Server, response, 1448);
        }
    }
    read(&talk.close(Client).sent)
}

fn lines(turns: &[(&[u8], &[u8])]) -> Vec<String> {
    heard(turns).by_exchange()
}

const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

#[test]
fn answers_without_a_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(lines(&[(b"HEAD / HTTP/1.1\r\n\r\n", head), (GET, &json("1"))]).len(), 2);
    let none = b"HTTP/1.1 204 No Content\r\n\r\n";
    let not_modified = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n";
    let want = ["GET / | 200 | < 1 | end Complete", "GET / | 204 | end Complete", "GET / | 304 | end Complete"];
    assert_eq!(lines(&[(GET, none), (GET, not_modified), (GET, &json("1"))]), want);
}

#[test]
fn interim_answers_are_passed_over() {
    let expect = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let turns: [(&[u8], &[u8]); 2] = [(expect, b"HTTP/1.1 100 Continue\r\n\r\n"), (b"{}", &json("1"))];
    assert_eq!(lines(&turns), ["POST / | > {} | 200 | < 1 | end Complete"]);
    let early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec();
    assert_eq!(lines(&[(GET, &[early, json("1")].concat())]), ["GET / | 200 | < 1 | end Complete"]);
}

#[test]
fn a_refused_expectation_needs_no_body() {
    let expect = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 200\r\n\r\n";
    let refused = b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n";
    let want = ["417 | POST / | end Complete", "POST /mcp | > 1 | 200 | < 2 | end Complete"];
    assert_eq!(lines(&[(expect, refused), (&post("1"), &json("2"))]), want);
}

#[test]
fn a_timeout_that_crosses_a_request_answers_nothing() {
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.send(Server, crate::wire::flags::ACK, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    // The client had sent its request before the 408 reached it.
    let mut crossing = talk.sent.pop().unwrap();
    talk.say(Client, &post("1"), 1448);
    crossing.at_ms = 10;
    talk.sent.push(crossing);
    talk.close(Server);
    let want = ["408 | end Complete", "POST /mcp | > 1 | end ServerClosed"];
    assert_eq!(read(&talk.sent).by_exchange(), want);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let requests = [post("1"), post("2"), post("3")].concat();
    let responses = [json("\"a\""), sse(&["\"b\""]), json("\"c\"")].concat();
    let want = ["1 | 200 | < \"a\"", "2 | 200 | < \"b\"", "3 | 200 | < \"c\""]
        .map(|s| format!("POST /mcp | > {s} | end Complete"));
    assert_eq!(lines(&[(&requests, &responses)]), want);
}

#[test]
fn an_answer_before_the_request_is_whole() {
    let (head, body) = (b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n", b"null");
    let refused = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(lines(&[(head, refused), (body, b"")]), ["413 | POST / | end Complete"]);
}

#[test]
fn bodies_up_to_the_close() {
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, GET, 1448).say(Server, b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":", 1448);
    talk.say(Server, b"1}", 1448);
    let mut reset = talk.clone();
    assert_eq!(read(&talk.close(Server).sent).by_exchange(), ["GET / | 200 | < {\"a\":1} | end Complete"]);
    reset.send(Server, crate::wire::flags::RST, b"");
    assert_eq!(read(&reset.sent).by_exchange(), ["GET / | 200 | end Reset"]);
}

#[test]
fn streams_that_are_cut() {
    let whole = sse(&["1", "2"]);
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, &post("0"), 1448).say(Server, &whole[..whole.len() - 10], 1448);
    let mut open = talk.clone();
    let want = "POST /mcp | > 0 | 200 | < 1 | end ";
    assert_eq!(read(&talk.close(Server).sent).by_exchange(), [format!("{want}ServerClosed")]);
    assert_eq!(read(&open.sent).by_exchange(), [format!("{want}InputEnded")]);
    let closed = format!("{}client closed | end ClientClosed", want.trim_end_matches("end "));
    assert_eq!(read(&open.close(Client).sent).by_exchange(), [closed]);
}

/// Where a stream of stated length is cut into segments says nothing: behind a hole, a segment that begins with
/// `data:` may be in the middle of an event.
#[test]
fn segments_of_a_stream_of_stated_length_begin_no_events() {
    let (first, middle, last) = ("data: 1\n\ndata: ", "2\n", "data: 3\n\ndata: 4\n\n");
    let length = first.len() + middle.len() + last.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {length}\r\n\r\n{first}");
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, &post("0"), 1448).say(Server, head.as_bytes(), 1448);
    talk.say(Server, middle.as_bytes(), 1448);
    let lost = talk.sent.iter().position(|sent| sent.payload == middle.as_bytes()).unwrap();
    // In two segments, so that the first is not the end of the body.
    let (begins, ends) = last.split_at(8);
    talk.say(Server, begins.as_bytes(), 1448).say(Server, ends.as_bytes(), 1448);
    talk.sent.remove(lost);
    let heard = read(&talk.close(Client).sent).by_exchange();
    assert_eq!(heard, ["POST /mcp | > 0 | 200 | < 1 | response gap | < 4 | end Complete"]);
}

#[test]
fn coded_bodies_and_streams() {
    let gzip = |text: &str| {
        let mut coder = GzEncoder::new(Vec::new(), Compression::default());
        coder.write_all(text.as_bytes()).unwrap();
        coder.finish().unwrap()
    };
    let coded = gzip("{\"r\":1}");
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\n";
    let response = [format!("{head}Content-Length: {}\r\n\r\n", coded.len()).as_bytes(), &coded].concat();
    assert_eq!(lines(&[(GET, &response)]), ["GET / | 200 | < {\"r\":1} | end Complete"]);
    let corrupt = [format!("{head}Content-Length: 4\r\n\r\n").as_bytes(), b"nope"].concat();
    let heard = heard(&[(GET, &corrupt)]);
    assert_eq!(heard.by_exchange(), ["GET / | 200 | response gap | end Complete"]);
    assert_eq!(heard.count(ProblemKind::BadContentCoding), 1);
    // An event stream in gzip, flushed behind each event: the events come as they come.
    let mut coder = GzEncoder::new(Vec::new(), Compression::default());
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, GET, 1448);
    talk.say(Server, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: text/event-stream\r\n\r\n", 1448);
    for n in 1..3 {
        write!(coder, "data: {n}\n\n").unwrap();
        coder.flush().unwrap();
        talk.say(Server, &std::mem::take(coder.get_mut()), 1448);
    }
    assert_eq!(read(&talk.sent).by_exchange(), ["GET / | 200 | < 1 | < 2 | end InputEnded"]);
}

#[test]
fn kinds_and_frames() {
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, &post("{\"id\":1}"), 100);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n [1,2,3] ";
    talk.say(Server, &response[..43], 1448).say(Server, &response[43..], 1448).close(Client);
    let heard = read(&talk.sent);
    assert_eq!(heard.ended[0].response.as_ref().unwrap().kind, BodyKind::Json);
    assert_eq!(heard.frames, [(4, 4), (6, 8)]);
    let request = heard.ended[0].request.as_ref().unwrap();
    assert_eq!((request.first.place.number, request.last.place.number), (4, 4));
}

#[test]
fn other_protocols_behind_http() {
    let upgrade = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello";
    let heard = heard(&[(upgrade, switch), (b"\x81\x85GET /", b"")]);
    assert_eq!(heard.by_exchange(), ["GET / | 101 | end Complete"]);
    assert_eq!(heard.count(ProblemKind::WebSocket), 1);
    let connect = b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n";
    let tunnel = self::heard(&[(connect, b"HTTP/1.1 200 OK\r\n\r\n"), (b"\x16\x03\x01", b"\x16\x03\x03")]);
    assert_eq!(tunnel.by_exchange(), ["CONNECT a:443 | 200 | end Complete"]);
    assert_eq!(tunnel.count(ProblemKind::Tunnel), 1);
}

#[test]
fn bodies_of_impossible_length() {
    let negative = [b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".as_slice(), GET].concat();
    let heard = heard(&[(&negative, b"")]);
    assert_eq!(heard.ended.len(), 2, "the next request follows at once: {:?}", heard.lines);
    assert!(heard.count(ProblemKind::BadHttp) > 0);
}

#[test]
fn connections_that_are_no_http() {
    let ssh = heard(&[(b"SSH-2.0-OpenSSH_9\r\n", b"SSH-2.0-OpenSSH_9\r\n"), (b"\0\0\x05\xdc", b"\0\0\x05\xdc")]);
    assert_eq!((ssh.ended.len(), ssh.count(ProblemKind::NotHttp)), (0, 1));
    let banner = heard(&[(GET, b"SSH-2.0-OpenSSH_9\r\n")]);
    assert_eq!(banner.by_exchange(), ["GET / | response gap | client closed | end Gap"]);
    // A request that makes no sense, and a server that says so.
    let refused = heard(&[(b"\x01\x02\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")]);
    assert_eq!(refused.by_exchange(), ["400 | end Complete"]);
}

#[test]
fn a_thousand_calls_and_one_answer_missing() {
    let mut talk = Talk::open(40_000, [1, 2]);
    for n in 0..1000 {
        talk.say(Client, &post(&format!("{{\"id\":{n}}}")), 1448).say(Server, &json(&format!("{{\"r\":{n}}}")), 1448);
    }
    let lost = talk.sent.iter().position(|sent| sent.payload.ends_with(b"{\"r\":500}")).unwrap();
    talk.sent.remove(lost);
    let heard = read(&talk.sent);
    let answered = heard.ended.iter().filter(|exchange| exchange.response.is_some()).count();
    assert_eq!((heard.ended.len(), answered), (1000, 999));
    for (n, line) in heard.lines.iter().filter(|line| line.contains("\"r\":")).enumerate() {
        let n = if n < 500 { n } else { n + 1 };
        assert_eq!(*line, format!("{n}: < {{\"r\":{n}}}"));
    }
}
