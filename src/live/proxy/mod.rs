//! A recording reverse proxy: HTTP/1.1 and HTTP/2, TLS on either side, for traffic that nobody can
//! capture in the clear.
//!
//! It passes heads and bodies on as they come and changes only what a proxy must. It never answers
//! for the server: where the server closes, resets or cannot be reached, the client's connection or
//! stream is closed without an answer, and where a client leaves, the server's is. The one answer of
//! its own is that of the guard, where the user asked for it.

mod body;
mod fields;
mod front;
mod guard;
mod listen;
mod ports;
mod strip;
mod target;
mod tls;
mod transcript;
mod upstream;
mod watcher;

pub use target::Upstream;

use crate::drive::Stop;
use crate::drive::record::Recorder;
use guard::Guard;
use ports::Ports;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use transcript::Manner;
use upstream::Route;

/// How the server is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speak {
    /// Over TLS what the server chooses, else HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without TLS too.
    Http2,
}

/// What the user asked for.
pub struct Settings {
    /// Where to listen, `host:port`.
    pub listen: String,
    /// The server.
    pub upstream: Upstream,
    /// How it is spoken to.
    pub speak: Speak,
    /// The certificate chain and key (PEM) with which clients are served over TLS.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Certificates (PEM) that the server's is checked against, beside the system's.
    pub trusted: Vec<PathBuf>,
    /// Pass the client's `Host` on.
    pub keep_host: bool,
    /// Record credentials.
    pub keep_credentials: bool,
    /// Refuse ids in flight; one that is never answered is free again after this time.
    pub guard: Option<Duration>,
    /// Where to record.
    pub recorder: Option<Recorder>,
    /// What is told while it runs.
    pub say: Box<dyn Fn(&str) + Send + Sync>,
}

/// Why a proxy cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The address.
    #[error("{address}: cannot be listened on: {source}")]
    Listen {
        /// As given.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// A certificate or key.
    #[error("{path}: {why}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The runtime.
    #[error("threads cannot be started: {0}")]
    Runtime(#[from] io::Error),
}

/// What happened while it ran.
#[derive(Debug, Default)]
pub struct Counts {
    /// Client connections.
    pub connections: AtomicU64,
    /// Client connections that are open.
    pub open: AtomicU64,
    /// Requests.
    pub exchanges: AtomicU64,
    /// Requests that the guard refused.
    pub guarded: AtomicU64,
    /// Requests without an answer: the server could not be reached, or closed.
    pub lost: AtomicU64,
    /// TLS handshakes of clients that failed.
    pub bad_handshakes: AtomicU64,
}

/// What all connections share.
struct Proxy {
    route: Arc<Route>,
    ports: Ports,
    recorder: Option<Recorder>,
    manner: Manner,
    keep_host: bool,
    guard: Option<Arc<Guard>>,
    counts: Arc<Counts>,
    say: Box<dyn Fn(&str) + Send + Sync>,
}

impl Proxy {
    fn say(&self, text: &str) {
        (self.say)(text);
    }
}

/// Runs the proxy until `stop` is set. `ready` gets the address once clients can connect.
///
/// # Errors
/// If it cannot be started.
pub fn run(
    settings: Settings,
    counts: Arc<Counts>,
    stop: &Stop,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ProxyError> {
    let acceptor = settings.identity.as_ref().map(|(chain, key)| tls::acceptor(chain, key)).transpose()?;
    let connector = settings.upstream.is_tls.then(|| tls::connector(&settings.trusted, settings.speak)).transpose()?;
    let manner = Manner { keep_credentials: settings.keep_credentials, ..Manner::default() };
    let stopping = manner.stopping.clone();
    let is_h2_clear = settings.speak == Speak::Http2 && !settings.upstream.is_tls;
    let proxy = Arc::new(Proxy {
        route: Arc::new(Route::new(settings.upstream, connector, is_h2_clear)),
        ports: Ports::default(),
        recorder: settings.recorder,
        manner,
        keep_host: settings.keep_host,
        guard: settings.guard.map(|hold| Arc::new(Guard::new(hold))),
        counts,
        say: settings.say,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("proxy").build()?;
    let result = runtime.block_on(listen::serve(proxy, &settings.listen, acceptor, stop, ready));
    stopping.store(true, Ordering::SeqCst);
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Did the other end reset?
fn is_reset(e: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(e);
    while let Some(e) = cause {
        if e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::ConnectionReset) {
            return true;
        }
        cause = e.source();
    }
    false
}
