//! HTTP/2 (RFC 9113) on one connection, read from outside: from its preface, or midstream.
//!
//! `frame` cuts each direction into frames, `block` puts header blocks together and decodes them
//! (`hpack`), `parser` leads everything to the stream that it belongs to. A reply belongs to the stream that
//! carried it.

mod block;
mod frame;
mod fuzz;
mod loss;
mod parser;
mod stream;

pub use fuzz::fuzz;
pub use parser::Http2;

use super::probe::Grade;
use crate::model::exchange::Peer;

/// How sure is it that these first bytes of an end are HTTP/2? A client begins with the preface, a server with
/// SETTINGS (RFC 9113 §3.4); where the beginning is missing, two frames in a row are proof.
pub(super) fn grade(from: Peer, bytes: &[u8]) -> Grade {
    let preface = frame::PREFACE;
    let same = bytes.iter().zip(preface).take_while(|(a, b)| a == b).count();
    if from == Peer::Client && same == bytes.len().min(preface.len()) {
        // No other protocol begins like this.
        return if same >= b"PRI * HTTP/2".len() { Grade::Certain } else { Grade::Unsure };
    }
    let Some(first) = frame::Header::parse(bytes) else {
        let may_be = bytes.first() == Some(&0) && bytes.get(3).is_none_or(|kind| *kind <= frame::kind::CONTINUATION);
        return if may_be { Grade::Unsure } else { Grade::No };
    };
    let is_settings =
        first.kind == frame::kind::SETTINGS && first.is_legal() && first.length <= 6 * 32 && first.flags <= 1;
    if from == Peer::Server && is_settings || frame::begins_with_frames(bytes) { Grade::Certain } else { Grade::No }
}
