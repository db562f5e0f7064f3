//! Driving a server or a client with raw control of the wire: one connection a handle; ids,
//! headers, session and timing as told. No SDK and no pool of connections stands between, as those
//! hide what is looked for.
//!
//! [`client`] and [`server`] speak HTTP/1.1 through the same parser that reads captures, and write
//! what they said and heard as a capture of their own ([`record`]), so that it can be analysed as
//! any other. `replay`, `serve` and `probe` share them.

pub mod check;
pub mod client;
pub mod message;
pub mod play;
pub mod probe;
pub mod record;
pub mod replay;
pub mod server;
pub mod session;
mod stop;
pub mod tags;
pub mod tape;
mod target;
mod wire;

pub use stop::Stop;
pub use target::{Target, TargetError};
pub(crate) use wire::Ears;
pub use wire::{Heard, HeardMessage};
