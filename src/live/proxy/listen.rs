//! Taking connections in.

use super::front::Front;
use super::upstream::HEAD_BYTES;
use super::{Proxy, ProxyError};
use crate::drive::Stop;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// How often it is looked whether to stop.
const TICK: Duration = Duration::from_millis(50);
/// Time for a client's TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// How an HTTP/2 connection without TLS begins (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Serves until stopped.
pub(super) async fn serve(
    proxy: Arc<Proxy>,
    address: &str,
    acceptor: Option<TlsAcceptor>,
    stop: &Stop,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ProxyError> {
    let unheard = |source| ProxyError::Listen { address: address.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(unheard)?;
    ready(listener.local_addr().map_err(unheard)?);
    while !stop.is_set() {
        let Ok(accepted) = tokio::time::timeout(TICK, listener.accept()).await else { continue };
        match accepted {
            Ok((stream, peer)) => {
                let (proxy, acceptor) = (proxy.clone(), acceptor.clone());
                tokio::spawn(async move { connection(proxy, stream, peer, acceptor).await });
            }
            // Such as too many open files: there may be room in a moment.
            Err(e) => {
                proxy.say(&format!("a client's connection could not be taken: {e}"));
                tokio::time::sleep(TICK).await;
            }
        }
    }
    Ok(())
}

async fn connection(proxy: Arc<Proxy>, stream: TcpStream, peer: SocketAddr, acceptor: Option<TlsAcceptor>) {
    let counts = proxy.counts.clone();
    counts.connections.fetch_add(1, Ordering::Relaxed);
    counts.open.fetch_add(1, Ordering::Relaxed);
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => {
            let is_h2 = begins_with_preface(&stream).await;
            http(proxy, stream, peer, is_h2).await;
        }
        Some(acceptor) => match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => {
                let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                http(proxy, stream, peer, is_h2).await;
            }
            _ => {
                counts.bad_handshakes.fetch_add(1, Ordering::Relaxed);
            }
        },
    }
    counts.open.fetch_sub(1, Ordering::Relaxed);
}

/// Does the client speak HTTP/2 without TLS? Its first bytes say so.
async fn begins_with_preface(stream: &TcpStream) -> bool {
    let mut first = [0; PREFACE.len()];
    loop {
        let Ok(n) = stream.peek(&mut first).await else { return false };
        let have = first.get(..n).unwrap_or_default();
        if n == PREFACE.len() || n == 0 || !PREFACE.starts_with(have) {
            return have == PREFACE;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn http<S>(proxy: Arc<Proxy>, stream: S, peer: SocketAddr, is_h2: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let front = Arc::new(Front::new(proxy, peer));
    let each = front.clone();
    let service = service_fn(move |request| each.clone().forward(request));
    let io = TokioIo::new(stream);
    // How a connection ended is in the recording; there is nobody to tell.
    if is_h2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.auto_date_header(false).max_concurrent_streams(4096);
        let _ = builder.serve_connection(io, service).await;
    } else {
        let mut builder = http1::Builder::new();
        builder
            .preserve_header_case(true)
            .auto_date_header(false)
            .header_read_timeout(None)
            .max_headers(crate::model::limits::HEADER_FIELDS)
            .max_buf_size(HEAD_BYTES);
        let _ = builder.serve_connection(io, service).await;
    }
    front.closed();
}
