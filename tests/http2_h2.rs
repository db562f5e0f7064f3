//! HTTP/2 between the client and the server of the `h2` crate, recorded in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use bytes::Bytes;
use crosswire::model::exchange::{End, Peer};
use crosswire::wire::http2::Http2;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use std::sync::{Arc, Mutex};
use support::{Recording, exchanges, text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};

/// Streams of one connection.
const CALLS: usize = 40;

async fn pass(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
    peer: Peer,
    log: Arc<Mutex<Recording>>,
) {
    let mut buffer = vec![0; 3000];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        log.lock().unwrap().push(peer, &buffer[..read]);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Both ends of a recorded connection.
fn link() -> (DuplexStream, DuplexStream, Arc<Mutex<Recording>>) {
    let ((client, near), (far, server)) = (duplex(4096), duplex(4096));
    let log = Arc::new(Mutex::new(Recording::default()));
    let ((near_read, near_write), (far_read, far_write)) = (split(near), split(far));
    tokio::spawn(pass(near_read, far_write, Peer::Client, log.clone()));
    tokio::spawn(pass(far_read, near_write, Peer::Server, log.clone()));
    (client, server, log)
}

/// Call `n` asks for `{"id":n,…}`, and its answer repeats that.
fn call(n: usize) -> String {
    let filler: String = text(n * 700, n as u32).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    format!("{{\"id\":{n},\"filler\":\"{filler}\"}}")
}

async fn answer(request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>) {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    let mut whole = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        whole.extend_from_slice(&piece);
    }
    let n: usize = path.rsplit('/').next().unwrap().parse().unwrap();
    if n % 10 == 7 {
        return respond.send_reset(h2::Reason::REFUSED_STREAM);
    }
    if n % 10 == 3 {
        let pushed = Request::builder().uri(format!("https://host/pushed/{n}")).body(()).unwrap();
        let mut push = respond.push_request(pushed).unwrap();
        let head = Response::builder().header("content-type", "application/json").body(()).unwrap();
        push.send_response(head, false).unwrap().send_data(Bytes::from(format!("{{\"pushed\":{n}}}")), true).unwrap();
    }
    let events = n.is_multiple_of(2);
    let head = Response::builder()
        .header("content-type", if events { "text/event-stream" } else { "application/json" })
        .header("mcp-session-id", format!("session-{}", n % 4))
        // Large enough for CONTINUATION now and then.
        .header("x-large", "v".repeat(if n % 8 == 1 { 20_000 } else { 20 }));
    let mut send = respond.send_response(head.body(()).unwrap(), false).unwrap();
    let whole = String::from_utf8(whole).unwrap();
    let reply = if events { format!("event: message\ndata: {whole}\n\n") } else { whole };
    for piece in reply.as_bytes().chunks(5000) {
        send.send_data(Bytes::copy_from_slice(piece), false).unwrap();
        tokio::task::yield_now().await;
    }
    if n.is_multiple_of(3) {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checksum", HeaderValue::from_static("1"));
        send.send_trailers(trailers).unwrap();
    } else {
        send.send_data(Bytes::new(), true).unwrap();
    }
}

async fn serve(io: DuplexStream) {
    let mut connection = h2::server::Builder::new().max_concurrent_streams(100).handshake(io).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond));
    }
}

async fn ask(client: h2::client::SendRequest<Bytes>, n: usize) {
    let mut client = client.ready().await.unwrap();
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("https://host/mcp/{n}"))
        .header("content-type", "application/json")
        .header("mcp-session-id", format!("session-{}", n % 4))
        .body(())
        .unwrap();
    let (response, mut send) = client.send_request(request, false).unwrap();
    send.send_data(Bytes::from(call(n)), true).unwrap();
    let Ok(response) = response.await else { return };
    let mut body = response.into_body();
    while let Some(Ok(piece)) = body.data().await {
        body.flow_control().release_capacity(piece.len()).unwrap();
    }
}

fn record() -> Recording {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (near, far, log) = link();
        tokio::spawn(serve(far));
        let (client, connection) = h2::client::Builder::new()
            .header_table_size(1000)
            .enable_push(true)
            .handshake::<_, Bytes>(near)
            .await
            .unwrap();
        let driver = tokio::spawn(async move { drop(connection.await) });
        let calls: Vec<_> = (0..CALLS).map(|n| tokio::spawn(ask(client.clone(), n))).collect();
        for call in calls {
            call.await.unwrap();
        }
        drop(client);
        let _ = driver.await;
        log.lock().map(|log| log.clone()).unwrap()
    })
}

#[test]
fn every_stream_of_a_busy_connection_is_read() {
    let recording = record();
    for recording in [recording.clone(), recording.split(17)] {
        let (told, problems) = exchanges(&mut Http2::default(), &recording);
        assert!(problems.is_empty(), "{problems:?}");
        let (pushed, told): (Vec<_>, Vec<_>) = told.into_iter().partition(|told| told.stream.unwrap() % 2 == 0);
        assert_eq!((pushed.len(), told.len()), (CALLS / 10, CALLS));
        for told in pushed {
            let (method, target, _) = told.request.unwrap();
            let n = target.strip_prefix("/pushed/").unwrap().to_owned();
            assert_eq!(
                (method.as_str(), told.answered, told.end),
                ("GET", vec![format!("{{\"pushed\":{n}}}")], Some(End::Complete))
            );
        }
        for told in told {
            let (method, target, headers) = told.request.unwrap();
            let n: usize = target.strip_prefix("/mcp/").unwrap().parse().unwrap();
            let session = ("mcp-session-id".to_owned(), format!("session-{}", n % 4));
            assert_eq!((method.as_str(), told.sent), ("POST", vec![call(n)]));
            assert!(headers.contains(&("host".to_owned(), "host".to_owned())) && headers.contains(&session));
            if n % 10 == 7 {
                assert_eq!((told.status, told.end, told.ended_by), (None, Some(End::Reset), Some(Peer::Server)));
                continue;
            }
            assert_eq!((told.status, told.answered, told.end), (Some(200), vec![call(n)], Some(End::Complete)));
            assert!(told.response_headers.contains(&session));
        }
    }
}

/// What is told of one exchange behind a hole is true or says that it is not known.
fn assert_true(told: &support::Told, hole: &str) {
    let is_pushed = told.stream.is_some_and(|id| id % 2 == 0);
    let Some((_, target, headers)) = &told.request else { return };
    let Some(n) = target.strip_prefix("/mcp/").and_then(|n| n.parse::<usize>().ok()).filter(|_| !is_pushed) else {
        assert!(is_pushed || target.contains('?'), "{hole}: no request has the target {target}");
        return;
    };
    let session = format!("session-{}", n % 4);
    for (name, value) in headers.iter().chain(&told.response_headers).filter(|(name, _)| name == "mcp-session-id") {
        assert!(*value == session || value == "?", "{hole}: {name} of call {n} is {value}");
    }
    // 0: a head without a status that is known.
    assert!(matches!(told.status, None | Some(0 | 200)), "{hole}: status {:?} of call {n}", told.status);
    for message in told.sent.iter().chain(&told.answered) {
        assert!(*message == call(n), "{hole}: call {n} has a message that is not its own");
    }
    let is_known = told.status == Some(200) && !told.request_gap;
    let is_whole = is_known && !told.response_gap && told.end == Some(End::Complete);
    assert!(!is_whole || told.answered.len() == 1, "{hole}: call {n} is complete without its reply");
}

#[test]
fn behind_a_hole_nothing_is_told_that_is_not_so() {
    let recording = record();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % n as u64) as usize
    };
    let (mut known, mut unknown) = (0, 0);
    for round in 0..80 {
        let of = if round % 2 == 0 { Peer::Client } else { Peer::Server };
        let all = recording.bytes(of);
        // A third of the holes hit the beginning, where header fields enter the tables.
        let start = if round % 3 == 0 { below(3000) } else { below(all) };
        let end = (start + 1 + below(if round % 5 == 0 { 60_000 } else { 300 })).min(all);
        let told = round % 4 < 2;
        let hole = format!("{of:?} {start}..{end}, {}", if told { "of known length" } else { "of unknown length" });
        let (exchanges, _) = exchanges(&mut Http2::default(), &recording.with_hole(of, start, end, told));
        for told in &exchanges {
            assert_true(told, &hole);
            let is_unknown = |(name, value): &&(String, String)| name.contains('?') || value.contains('?');
            let headers = told.request.iter().flat_map(|(_, _, headers)| headers).chain(&told.response_headers);
            unknown += headers.filter(is_unknown).count();
            known += usize::from(told.answered.len() == 1);
        }
    }
    assert!(known > 1000 && unknown > 50, "{known} replies were read, {unknown} fields are unknown");
}
