//! The recording proxy with HTTP/2 and TLS on either side, against the client and server of `hyper`.

use crate::run::{Running, report};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls/ca.crt");
const LEAF: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls/leaf.crt");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls/leaf.key");
/// Calls at once on one connection.
const CALLS: usize = 20;

/// A body whose pieces come when the test sends them.
struct Pieces(mpsc::Receiver<Bytes>, mpsc::Sender<()>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|data| data.map(|d| Ok(Frame::data(d))))
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let _ = self.1.try_send(());
    }
}

/// A server that answers each call with its body as an event, after all calls of the test came; a GET
/// with events that never end.
async fn serve(listener: TcpListener, over_tls: bool, gone: mpsc::Sender<()>) {
    let barrier = Arc::new(tokio::sync::Barrier::new(CALLS));
    let chain = vec![CertificateDer::from_pem_file(LEAF).unwrap()];
    let key = PrivateKeyDer::from_pem_file(KEY).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let answer = move |request: Request<Incoming>| {
        let (barrier, gone) = (barrier.clone(), gone.clone());
        async move {
            let (send, receive) = mpsc::channel(4);
            if request.method() == "GET" {
                tokio::spawn(async move {
                    while send.send(Bytes::from_static(b": ping\n\n")).await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                });
            } else {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                barrier.wait().await;
                let text = String::from_utf8(body.to_vec()).unwrap().replace("\"method\"", "\"result\":{},\"was\"");
                send.send(format!("data: {text}\n\n").into()).await.unwrap();
            }
            let response = Response::builder().header("content-type", "text/event-stream");
            Ok::<_, Infallible>(response.body(Pieces(receive, gone)).unwrap())
        }
    };
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = hyper::service::service_fn(answer.clone());
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        if over_tls {
            let stream = acceptor.accept(stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            tokio::spawn(async move { builder.serve_connection(TokioIo::new(stream), service).await });
        } else {
            tokio::spawn(async move {
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
            });
        }
    }
}

async fn client(address: &str, over_tls: bool) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    if !over_tls {
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        return sender;
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(CA).unwrap()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(address: &str, method: &str, body: String) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(format!("http://{address}/mcp"));
    request
        .header("mcp-session-id", "s")
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

/// Twenty calls at once on one HTTP/2 connection, and a stream that the client resets.
async fn streams(client_tls: bool, server_tls: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (gone, mut left) = mpsc::channel(64);
    tokio::spawn(serve(listener, server_tls, gone));
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("proxy.pcapng");
    let scheme = if server_tls { "https" } else { "http" };
    let upstream = format!("{scheme}://localhost:{port}");
    let mut args = vec!["proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream, "--ca", CA, "-w"];
    args.push(file.to_str().unwrap());
    if client_tls {
        args.extend(["--cert", LEAF, "--key", KEY]);
    }
    let mut proxy = Running::start(&args);
    let address = proxy.line_with("proxy for").trim().rsplit("://").next().unwrap().to_owned();
    let sender = client(&address, client_tls).await;
    let mut calls = tokio::task::JoinSet::new();
    for id in 0..CALLS {
        let (mut sender, address) = (sender.clone(), address.clone());
        calls.spawn(async move {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
            let response = sender.send_request(request(&address, "POST", text)).await.unwrap();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8(body.to_vec()).unwrap();
            assert!(text.contains(&format!("\"id\":{id},")) && text.ends_with("\n\n"), "{text}");
        });
    }
    calls.join_all().await;
    for _ in 0..CALLS {
        left.recv().await.unwrap();
    }
    let mut sender = sender;
    let response = sender.send_request(request(&address, "GET", String::new())).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), ": ping\n\n");
    drop(body);
    // The server's stream ends as well, though the connection goes on.
    left.recv().await.unwrap();
    let (status, said) = proxy.stop();
    assert_eq!(status, 0, "{said}");
    let timeline = report("timeline", &file);
    assert_eq!(timeline["inputs"][0]["problems"], serde_json::json!([]));
    let exchanges = timeline["exchanges"].as_array().unwrap();
    let ended = |end: &str| exchanges.iter().filter(|x| x["end"] == end).count();
    assert_eq!((exchanges.len(), ended("complete"), ended("client-closed")), (CALLS + 1, CALLS, 1), "{exchanges:?}");
    let own = |x: &serde_json::Value| x["rpc"][0]["id"] == x["replies"][0]["id"];
    assert_eq!(exchanges.iter().filter(|x| own(x)).count(), CALLS + 1);
}

fn run(test: impl Future<Output = ()>) {
    let limit = Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(limit, test).await.expect("it hangs") });
}

#[test]
fn http2_over_tls_on_both_sides() {
    run(streams(true, true));
}

#[test]
fn http2_in_the_clear_to_http2_over_tls() {
    run(streams(false, true));
}

#[test]
fn http2_over_tls_to_http1_in_the_clear() {
    run(streams(true, false));
}

#[test]
fn a_server_whose_certificate_is_not_trusted_is_not_spoken_to() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (gone, _left) = mpsc::channel(64);
        tokio::spawn(async move {
            // The handshake fails on this side too.
            let _ = tokio::spawn(serve(listener, true, gone)).await;
        });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("proxy.pcapng");
        let upstream = format!("https://localhost:{port}");
        let other = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tls/rsa.crt");
        let args =
            ["proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream, "--ca", other, "-w", file.to_str().unwrap()];
        let mut proxy = Running::start(&args);
        let address = proxy.line_with("proxy for").trim().rsplit("://").next().unwrap().to_owned();
        let mut sender = client(&address, false).await;
        sender.send_request(request(&address, "POST", "{}".into())).await.unwrap_err();
        assert!(proxy.line_with("cannot be reached").contains("certificate"));
    });
}
