//! Session ids that the server no longer knows, and what the client makes of it.

pub mod pairing;
pub mod pattern;
pub mod reinit_storm;
pub mod replicas;
pub mod sequence;
pub mod sessions;
pub mod stranded;
pub mod told;
pub mod window_404;
pub mod windows;
pub mod wrong_status;
