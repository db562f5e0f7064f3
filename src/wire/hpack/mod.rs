//! HPACK header compression (RFC 7541), read from outside: the decoder may have missed what
//! the encoder's dynamic table was built from.
//!
//! New entries go to the front of the dynamic table and are counted from there, so an entry
//! that was seen keeps its index whatever lies behind it. An index that reaches behind what was
//! seen is an *unknown* field; the decoding goes on.

mod decoder;
mod huffman;
mod statics;
mod table;

pub use decoder::{Decoder, Field, HpackError};

/// Reads `bytes` as header blocks of one connection, for fuzzing: the first byte says how the
/// decoder starts, each block is preceded by its length in one byte.
pub fn fuzz(bytes: &[u8]) {
    let Some((&mode, mut rest)) = bytes.split_first() else { return };
    let mut decoder = if mode & 1 == 0 { Decoder::new() } else { Decoder::midstream() };
    while let Some((&length, after)) = rest.split_first() {
        let (block, next) = after.split_at(usize::from(length).min(after.len()));
        let _ = decoder.decode(block, &mut |_| {});
        rest = next;
    }
}
