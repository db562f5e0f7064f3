//! The programs that run while traffic goes on: the proxy, the capture, and watching.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod drops;
mod filter;
mod proxy;
mod proxy_h2;
mod run;
mod server;
mod watch;
