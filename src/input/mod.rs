//! Finding inputs, opening them, and telling what they are.

pub mod archive;
pub mod bundle;
pub mod capture;
pub mod client;
pub mod container;
pub mod log;
pub mod objects;
pub mod packed;
pub mod quoted;
pub mod recorded;
pub mod rotation;
pub mod tar_zst;
pub mod zip;

mod ahead;
mod decompress;
mod detect;
mod open;
mod peeked;

pub use detect::{Detected, detect, formats, named, same_file, without_mark};
pub use open::{InputError, OpenInput, Source, expand};
