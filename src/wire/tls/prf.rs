//! Key derivation: HKDF of TLS 1.3 and the PRF of TLS 1.0 to 1.2.

use super::suite::Hash;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha384};

/// HKDF-Expand-Label with an empty context (RFC 8446 §7.1); none if `secret` is shorter than the hash.
pub(super) fn expand_label(hash: Hash, secret: &[u8], label: &str, bytes: usize) -> Option<Vec<u8>> {
    let mut info = Vec::with_capacity(16 + label.len());
    info.extend_from_slice(&u16::try_from(bytes).ok()?.to_be_bytes());
    info.push(u8::try_from(6 + label.len()).ok()?);
    info.extend_from_slice(b"tls13 ");
    info.extend_from_slice(label.as_bytes());
    info.push(0);
    let mut out = vec![0; bytes];
    match hash {
        Hash::Sha384 => Hkdf::<Sha384>::from_prk(secret).ok()?.expand(&info, &mut out).ok()?,
        _ => Hkdf::<Sha256>::from_prk(secret).ok()?.expand(&info, &mut out).ok()?,
    }
    Some(out)
}

/// The pseudorandom function of TLS 1.2 (RFC 5246 §5) with the suite's `hash`, or of TLS 1.0 and
/// 1.1 (RFC 4346 §5), which uses MD5 and SHA-1 whatever the suite.
pub(super) fn prf(version: u16, hash: Hash, secret: &[u8], label: &str, seeds: &[&[u8]], bytes: usize) -> Vec<u8> {
    let mut seed = label.as_bytes().to_vec();
    seeds.iter().for_each(|part| seed.extend_from_slice(part));
    if version >= 0x0303 {
        return p_hash(hash, secret, &seed, bytes);
    }
    let half = secret.len().div_ceil(2);
    let (first, second) =
        (secret.get(..half).unwrap_or_default(), secret.get(secret.len() - half..).unwrap_or_default());
    let mut out = p_hash(Hash::Md5, first, &seed, bytes);
    out.iter_mut().zip(p_hash(Hash::Sha1, second, &seed, bytes)).for_each(|(byte, other)| *byte ^= other);
    out
}

/// P_hash (RFC 5246 §5).
fn p_hash(hash: Hash, secret: &[u8], seed: &[u8], bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 48);
    let mut a = hmac(hash, secret, &[seed]);
    while out.len() < bytes {
        out.extend_from_slice(&hmac(hash, secret, &[&a, seed]));
        a = hmac(hash, secret, &[&a]);
    }
    out.truncate(bytes);
    out
}

/// HMAC over the concatenation of `parts`.
pub(super) fn hmac(hash: Hash, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    fn run<M: Mac + hmac::digest::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        // An HMAC takes keys of any length.
        let Ok(mut mac) = <M as Mac>::new_from_slice(key) else { return Vec::new() };
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        Hash::Md5 => run::<Hmac<Md5>>(key, parts),
        Hash::Sha1 => run::<Hmac<Sha1>>(key, parts),
        Hash::Sha256 => run::<Hmac<Sha256>>(key, parts),
        Hash::Sha384 => run::<Hmac<Sha384>>(key, parts),
    }
}
