//! Traffic as it happens: a recording proxy, a capture, and findings about both while they run.

pub mod capture;
pub mod proxy;
pub mod spool;
pub mod watch;
