//! What the tests of the rules are written with: traffic step by step, and findings in one line each.
#![allow(dead_code, clippy::new_without_default)]

pub mod packets;
pub mod scene;
pub mod scenes;
pub mod told;
pub mod traffic;

pub use scenes::*;
pub use told::*;
pub use traffic::*;
