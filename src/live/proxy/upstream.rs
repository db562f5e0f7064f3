//! Connections to the server: each client connection has its own, and nobody else uses them. A pool
//! over all clients would hide which request went where.

use super::body::Passing;
use super::target::Upstream;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time to wait for a connection to be made.
const CONNECT: Duration = Duration::from_secs(30);
/// Bytes of an HTTP/1.1 head that is taken.
pub(super) const HEAD_BYTES: usize = crate::model::limits::HEAD_BYTES;

/// How to reach the server.
pub(super) struct Route {
    pub(super) upstream: Upstream,
    /// Set where it is reached over TLS.
    pub(super) tls: Option<TlsConnector>,
    /// HTTP/2 without TLS.
    pub(super) is_h2_clear: bool,
    /// The address used last.
    last: Mutex<Option<SocketAddr>>,
}

#[derive(Clone)]
enum Sender {
    H1(Arc<tokio::sync::Mutex<http1::SendRequest<Passing>>>),
    H2(http2::SendRequest<Passing>),
}

impl Sender {
    fn is_closed(&self) -> bool {
        match self {
            Sender::H1(sender) => sender.try_lock().is_ok_and(|s| s.is_closed()),
            Sender::H2(sender) => sender.is_closed(),
        }
    }
}

/// One connection to the server.
#[derive(Clone)]
pub(super) struct Conn {
    sender: Sender,
    pub(super) address: SocketAddr,
    /// It has served before, so that it may have been closed meanwhile.
    pub(super) is_used: bool,
}

/// The connections of one client connection.
pub(super) struct Upstreams {
    route: Arc<Route>,
    /// HTTP/1.1 connections with nothing to do.
    idle: Mutex<Vec<Conn>>,
    shared: tokio::sync::Mutex<Option<Conn>>,
}

/// An HTTP/1.1 connection in use.
pub(super) struct Lease {
    conn: Conn,
    of: Arc<Upstreams>,
}

impl Lease {
    /// The response has ended, and the connection can be used again.
    pub(super) fn give_back(self) {
        let Lease { mut conn, of } = self;
        conn.is_used = true;
        of.idle().push(conn);
    }
}

impl Route {
    pub(super) fn new(upstream: Upstream, tls: Option<TlsConnector>, is_h2_clear: bool) -> Route {
        Route { upstream, tls, is_h2_clear, last: Mutex::new(None) }
    }

    /// The address that the server was reached at, else where it would be.
    pub(super) async fn address(&self) -> SocketAddr {
        let known = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known {
            return known;
        }
        let (host, port) = (self.upstream.target.host.as_str(), self.upstream.target.port);
        let found = tokio::net::lookup_host((host, port)).await.ok().and_then(|mut all| all.next());
        found.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], port)))
    }

    async fn connect(&self) -> io::Result<Conn> {
        let target = &self.upstream.target;
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let stream = tokio::time::timeout(CONNECT, TcpStream::connect((target.host.as_str(), target.port)))
            .await
            .map_err(late)??;
        stream.set_nodelay(true)?;
        let address = stream.peer_addr()?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        let Some(tls) = &self.tls else {
            return handshake(stream, address, self.is_h2_clear).await;
        };
        let name = ServerName::try_from(target.host.clone()).map_err(io::Error::other)?;
        let stream = tokio::time::timeout(CONNECT, tls.connect(name, stream)).await.map_err(late)??;
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        handshake(stream, address, is_h2).await
    }
}

async fn handshake<S>(stream: S, address: SocketAddr, is_h2: bool) -> io::Result<Conn>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    let sender = if is_h2 {
        let (sender, conn) = http2::Builder::new(TokioExecutor::new()).handshake(io).await.map_err(io::Error::other)?;
        tokio::spawn(conn);
        Sender::H2(sender)
    } else {
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).max_headers(crate::model::limits::HEADER_FIELDS).max_buf_size(HEAD_BYTES);
        let (sender, conn) = builder.handshake(io).await.map_err(io::Error::other)?;
        tokio::spawn(conn);
        Sender::H1(Arc::new(tokio::sync::Mutex::new(sender)))
    };
    Ok(Conn { sender, address, is_used: false })
}

impl Upstreams {
    pub(super) fn new(route: Arc<Route>) -> Upstreams {
        Upstreams { route, idle: Mutex::default(), shared: tokio::sync::Mutex::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is free, else a new one.
    pub(super) async fn conn(&self) -> io::Result<Conn> {
        {
            let mut idle = self.idle();
            idle.retain(|c| !c.sender.is_closed());
            if let Some(conn) = idle.pop() {
                return Ok(conn);
            }
        }
        let mut shared = self.shared.lock().await;
        if let Some(conn) = shared.as_ref().filter(|c| !c.sender.is_closed()) {
            return Ok(conn.clone());
        }
        *shared = None;
        // Streams of one HTTP/2 client that go to an HTTP/1.1 server need a connection each, and not
        // one after the other.
        if self.route.tls.is_none() && !self.route.is_h2_clear {
            drop(shared);
            return self.route.connect().await;
        }
        let conn = self.route.connect().await?;
        if matches!(conn.sender, Sender::H2(_)) {
            let mut used = conn.clone();
            used.is_used = true;
            *shared = Some(used);
        }
        Ok(conn)
    }
}

impl Conn {
    pub(super) fn is_h2(&self) -> bool {
        matches!(self.sender, Sender::H2(_))
    }

    /// Sends a request. Where the connection was closed before any of it was sent, the request
    /// comes back.
    pub(super) async fn send(
        self,
        of: &Arc<Upstreams>,
        request: Request<Passing>,
    ) -> Result<(Response<Incoming>, Option<Lease>), (hyper::Error, Option<Request<Passing>>)> {
        let unsent = |mut e: hyper::client::conn::TrySendError<Request<Passing>>| {
            let request = e.take_message();
            (e.into_error(), request)
        };
        match self.sender.clone() {
            Sender::H1(sender) => {
                let mut sender = sender.lock().await;
                if let Err(e) = sender.ready().await {
                    return Err((e, Some(request)));
                }
                let response = sender.try_send_request(request).await.map_err(unsent)?;
                drop(sender);
                Ok((response, Some(Lease { conn: self, of: of.clone() })))
            }
            Sender::H2(mut sender) => {
                if let Err(e) = sender.ready().await {
                    return Err((e, Some(request)));
                }
                Ok((sender.try_send_request(request).await.map_err(unsent)?, None))
            }
        }
    }
}
