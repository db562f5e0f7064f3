//! One client connection, and each request on it: to the server and back.

use super::body::{Passing, Source};
use super::guard::Refusal;
use super::transcript::{Transcript, Wire};
use super::upstream::{Conn, Upstreams};
use super::watcher::Watcher;
use super::{Proxy, fields};
use crate::model::exchange::Peer;
use crate::model::limits::GUARDED_BYTES;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::http::request;
use hyper::{Method, Request, Response, StatusCode, Version};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The service of one client connection.
pub(super) struct Front {
    proxy: Arc<Proxy>,
    peer: SocketAddr,
    upstreams: Arc<Upstreams>,
    /// HTTP/1.1: the recorded connection, from the first request on.
    wire: Mutex<Option<Arc<Wire>>>,
}

/// Why a request got no answer: its connection or stream is closed, as the server's was.
pub(super) type Lost = Box<dyn std::error::Error + Send + Sync>;

impl Front {
    pub(super) fn new(proxy: Arc<Proxy>, peer: SocketAddr) -> Front {
        let upstreams = Arc::new(Upstreams::new(proxy.route.clone()));
        Front { proxy, peer, upstreams, wire: Mutex::default() }
    }

    /// The client's connection is over.
    pub(super) fn closed(&self) {
        if let Some(wire) = &*self.wire.lock().unwrap_or_else(PoisonError::into_inner) {
            wire.client_left(&self.proxy.manner, false);
        }
    }

    /// Passes a request on, and gives the response's head as soon as it came.
    pub(super) async fn forward(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Passing>, Lost> {
        self.proxy.counts.exchanges.fetch_add(1, Ordering::Relaxed);
        let (parts, body) = request.into_parts();
        let session = parts.headers.get("mcp-session-id").and_then(|v| v.to_str().ok()).map(str::to_owned);
        let (Some(guard), Some(session)) = (self.proxy.guard.clone(), session) else {
            return self.pass(parts, Source::Stream(body), None).await;
        };
        let is_delete = parts.method == Method::DELETE;
        let watcher = |tickets| Watcher::new(guard.clone(), session.clone(), tickets, is_delete);
        let is_long = body.size_hint().upper().is_some_and(|n| n > GUARDED_BYTES as u64);
        if parts.method != Method::POST || is_long {
            return self.pass(parts, Source::Stream(body), Some(watcher(vec![]))).await;
        }
        let bytes = match collect(body).await? {
            Ok(bytes) => bytes,
            Err(begun) => return self.pass(parts, begun, Some(watcher(vec![]))).await,
        };
        match guard.admit(&session, &bytes) {
            Ok(tickets) => self.pass(parts, Source::Whole(bytes.into()), Some(watcher(tickets))).await,
            Err(refusal) => {
                self.proxy.counts.guarded.fetch_add(1, Ordering::Relaxed);
                Ok(self.refuse(parts, bytes, &refusal).await)
            }
        }
    }

    async fn pass(
        &self,
        mut parts: request::Parts,
        body: Source,
        watcher: Option<Watcher>,
    ) -> Result<Response<Passing>, Lost> {
        let front_version = parts.version;
        let conn = match self.upstreams.conn().await {
            Ok(conn) => conn,
            Err(e) => {
                let address = self.proxy.route.address().await;
                self.unreached(parts, address, &e);
                return Err(e.into());
            }
        };
        let transcript = self.transcript(front_version, conn.address, watcher);
        let upstream = &self.proxy.route.upstream;
        let host = fields::to_server(&mut parts, upstream, conn.is_h2(), self.proxy.keep_host);
        transcript.request(&parts, &host, body.is_empty());
        let body = Passing::new(body, Peer::Client, transcript.clone(), None);
        let sent = self.send(conn, Request::from_parts(parts, body)).await;
        let (response, lease) = sent.inspect_err(|e| {
            transcript.server_left(super::is_reset(&**e));
            self.proxy.counts.lost.fetch_add(1, Ordering::Relaxed);
        })?;
        let (mut parts, body) = response.into_parts();
        transcript.response(&parts, body.is_end_stream());
        fields::to_client(&mut parts, front_version);
        Ok(Response::from_parts(parts, Passing::new(Source::Stream(body), Peer::Server, transcript, lease)))
    }

    /// Sends a request; on a new connection if the one used before was closed meanwhile.
    async fn send(
        &self,
        mut conn: Conn,
        mut request: Request<Passing>,
    ) -> Result<(Response<Incoming>, Option<super::upstream::Lease>), Lost> {
        loop {
            let (was_used, was_h2) = (conn.is_used, conn.is_h2());
            match conn.send(&self.upstreams, request).await {
                Ok(answered) => return Ok(answered),
                Err((_, Some(unsent))) if was_used => {
                    request = unsent;
                    conn = self.upstreams.conn().await?;
                    if conn.is_h2() != was_h2 {
                        return Err("the server speaks another version of HTTP than before".into());
                    }
                }
                Err((e, _)) => return Err(e.into()),
            }
        }
    }

    /// The server cannot be reached: the recording has the request, and that no answer came.
    fn unreached(&self, mut parts: request::Parts, address: SocketAddr, e: &std::io::Error) {
        self.proxy.say(&format!("{}: cannot be reached: {e}", self.proxy.route.upstream));
        self.proxy.counts.lost.fetch_add(1, Ordering::Relaxed);
        let transcript = self.transcript(parts.version, address, None);
        let host = fields::to_server(&mut parts, &self.proxy.route.upstream, false, self.proxy.keep_host);
        transcript.request(&parts, &host, true);
        transcript.server_left(false);
    }

    /// The guard's own answer.
    async fn refuse(&self, mut parts: request::Parts, body: Bytes, refusal: &Refusal) -> Response<Passing> {
        let address = self.proxy.route.address().await;
        let front_version = parts.version;
        let transcript = self.transcript(front_version, address, None);
        let host = fields::to_server(&mut parts, &self.proxy.route.upstream, false, self.proxy.keep_host);
        transcript.request(&parts, &host, body.is_empty());
        transcript.data(Peer::Client, &body);
        transcript.ended(Peer::Client, None);
        let text = Bytes::from(refusal.body());
        let response = Response::builder()
            .status(StatusCode::CONFLICT)
            .header("content-type", "application/json")
            .header("content-length", text.len())
            .header("x-crosswire-guard", "refused");
        let response = response.body(()).unwrap_or_default();
        let (parts, ()) = response.into_parts();
        transcript.response(&parts, false);
        Response::from_parts(parts, Passing::new(Source::Whole(text.into()), Peer::Server, transcript, None))
    }

    /// The record of an exchange on the connection it belongs to.
    fn transcript(&self, version: Version, server: SocketAddr, watcher: Option<Watcher>) -> Arc<Transcript> {
        let new = || {
            let port = self.proxy.ports.take(self.peer);
            let tap = self.proxy.recorder.as_ref().map(|r| r.open(port.end, server));
            Arc::new(Wire::new(tap, port))
        };
        let alone = version == Version::HTTP_2;
        let wire = if alone {
            new()
        } else {
            self.wire.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(new).clone()
        };
        Arc::new(Transcript::new(wire, self.proxy.manner.clone(), alone, watcher))
    }
}

/// The whole body; else its beginning, where it is longer than the guard looks at.
async fn collect(mut body: Incoming) -> Result<Result<Bytes, Source>, hyper::Error> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            all.extend_from_slice(data);
            if all.len() > GUARDED_BYTES {
                return Ok(Err(Source::Begun(Some(all.freeze()), body)));
            }
        }
    }
    Ok(Ok(all.freeze()))
}
