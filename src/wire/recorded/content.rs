//! Undoes the content coding of a body that a recorder kept as it was sent.

use crate::model::limits;
use std::io::Read;

/// The body without its codings (RFC 9110 §8.4), the last applied undone first. None for a coding
/// that is not known, data that is not of it, or more than is kept of one body.
pub(super) fn decode(codings: &str, body: &[u8]) -> Option<Vec<u8>> {
    let mut body = body.to_vec();
    for coding in codings.rsplit(',').map(str::trim).filter(|c| !c.is_empty()) {
        body = match coding.to_ascii_lowercase().as_str() {
            "identity" => body,
            "gzip" | "x-gzip" => all(flate2::read::MultiGzDecoder::new(&*body))?,
            // "deflate" is zlib (RFC 9110 §8.4.1.2); some send it bare.
            "deflate" => all(flate2::read::ZlibDecoder::new(&*body))
                .or_else(|| all(flate2::read::DeflateDecoder::new(&*body)))?,
            "br" => all(brotli::Decompressor::new(&*body, 4096))?,
            "zstd" => all(zstd::Decoder::new(&*body).ok()?)?,
            _ => return None,
        };
    }
    Some(body)
}

fn all(decoder: impl Read) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let read = decoder.take(limits::MESSAGE_BYTES as u64 + 1).read_to_end(&mut out).ok()?;
    (read <= limits::MESSAGE_BYTES).then_some(out)
}
