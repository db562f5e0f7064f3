//! Protection of single records (RFC 8446 §5.2, RFC 5246 §6.2.3).

use super::prf;
use super::record::Header;
use super::suite::{Bulk, Hash, Suite};
use aes::{Aes128, Aes256};
use aes_gcm::aead::AeadInPlace;
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockDecryptMut, KeyInit, KeyIvInit};
use ccm::Ccm;
use ccm::consts::{U8, U12, U16};
use chacha20poly1305::ChaCha20Poly1305;
use std::ops::Range;

const BLOCK: usize = 16;

enum Aead {
    Gcm128(Box<Aes128Gcm>),
    Gcm256(Box<Aes256Gcm>),
    ChaCha(Box<ChaCha20Poly1305>),
    Ccm128(Box<Ccm<Aes128, U16, U12>>),
    Ccm128Short(Box<Ccm<Aes128, U8, U12>>),
    Ccm256(Box<Ccm<Aes256, U16, U12>>),
    Ccm256Short(Box<Ccm<Aes256, U8, U12>>),
}

/// Runs `$run` with `$cipher` bound to whichever AEAD it is.
macro_rules! with_aead {
    ($aead:expr, $cipher:ident => $run:expr) => {
        match $aead {
            Aead::Gcm128($cipher) => $run,
            Aead::Gcm256($cipher) => $run,
            Aead::ChaCha($cipher) => $run,
            Aead::Ccm128($cipher) => $run,
            Aead::Ccm128Short($cipher) => $run,
            Aead::Ccm256($cipher) => $run,
            Aead::Ccm256Short($cipher) => $run,
        }
    };
}

impl Aead {
    fn new(bulk: Bulk, key: &[u8]) -> Option<Aead> {
        fn boxed<C: KeyInit>(key: &[u8]) -> Option<Box<C>> {
            C::new_from_slice(key).ok().map(Box::new)
        }
        Some(match bulk {
            Bulk::Gcm(16) => Aead::Gcm128(boxed(key)?),
            Bulk::Gcm(_) => Aead::Gcm256(boxed(key)?),
            Bulk::ChaCha => Aead::ChaCha(boxed(key)?),
            Bulk::Ccm(16, 16) => Aead::Ccm128(boxed(key)?),
            Bulk::Ccm(16, _) => Aead::Ccm128Short(boxed(key)?),
            Bulk::Ccm(_, 16) => Aead::Ccm256(boxed(key)?),
            Bulk::Ccm(..) => Aead::Ccm256Short(boxed(key)?),
            Bulk::Cbc(..) => return None,
        })
    }

    fn open(&self, nonce: &[u8; 12], aad: &[u8], text: &mut [u8], tag: &[u8]) -> bool {
        with_aead!(self, cipher => cipher.decrypt_in_place_detached(nonce.into(), aad, text, tag.into()).is_ok())
    }

    /// Decrypts without authentication: every AEAD of TLS XORs with a key stream, so encrypting
    /// ciphertext gives the plaintext.
    fn apply_key_stream(&self, nonce: &[u8; 12], text: &mut [u8]) -> bool {
        with_aead!(self, cipher => cipher.encrypt_in_place_detached(nonce.into(), &[], text).is_ok())
    }
}

/// What protects the records of one direction from one change of keys to the next.
pub(super) struct Cipher {
    protection: Protection,
    version: u16,
}

enum Protection {
    Aead { aead: Aead, iv: [u8; 12], explicit: usize, tag: usize },
    Cbc { key: Vec<u8>, mac: Hash, mac_key: Vec<u8>, encrypt_then_mac: bool, chain: Option<[u8; BLOCK]> },
}

/// Key material of TLS 1.0 to 1.2 (RFC 5246 §6.3).
pub(super) struct KeyBlock<'a> {
    pub(super) version: u16,
    pub(super) suite: Suite,
    pub(super) master: &'a [u8],
    pub(super) client_random: &'a [u8; 32],
    pub(super) server_random: &'a [u8; 32],
    pub(super) encrypt_then_mac: bool,
}

impl Cipher {
    /// The protection of TLS 1.3 under a traffic secret (RFC 8446 §7.3).
    pub(super) fn tls13(suite: Suite, secret: &[u8]) -> Option<Cipher> {
        let (key, tag) = match suite.bulk {
            Bulk::Gcm(key) => (key, 16),
            Bulk::ChaCha => (32, 16),
            Bulk::Ccm(key, tag) => (key, tag),
            Bulk::Cbc(..) => return None,
        };
        if secret.len() != suite.hash.len() {
            return None;
        }
        let key = prf::expand_label(suite.hash, secret, "key", key)?;
        let iv = prf::expand_label(suite.hash, secret, "iv", 12)?.try_into().ok()?;
        let protection = Protection::Aead { aead: Aead::new(suite.bulk, &key)?, iv, explicit: 0, tag };
        Some(Cipher { protection, version: 0x0304 })
    }

    /// The protection of TLS 1.0 to 1.2 in one direction.
    pub(super) fn tls12(block: &KeyBlock<'_>, from_client: bool) -> Option<Cipher> {
        let (mac, key, iv) = match block.suite.bulk {
            Bulk::Gcm(key) | Bulk::Ccm(key, _) => (0, key, 4),
            Bulk::ChaCha => (0, 32, 12),
            Bulk::Cbc(key, mac) => (mac.len(), key, if block.version < 0x0302 { BLOCK } else { 0 }),
        };
        let seeds: [&[u8]; 2] = [block.server_random, block.client_random];
        let bytes = 2 * (mac + key + iv);
        let keys = prf::prf(block.version, block.suite.hash, block.master, "key expansion", &seeds, bytes);
        let mut rest = keys.as_slice();
        // Each kind stands there for the client and then for the server.
        let mut next = |bytes: usize| {
            let (pair, after) = rest.split_at_checked(2 * bytes)?;
            rest = after;
            let (client, server) = pair.split_at(bytes);
            Some(if from_client { client } else { server })
        };
        let (mac_key, key, iv) = (next(mac)?, next(key)?, next(iv)?);
        let protection = match block.suite.bulk {
            Bulk::Cbc(_, mac) => Protection::Cbc {
                key: key.to_vec(),
                mac,
                mac_key: mac_key.to_vec(),
                encrypt_then_mac: block.encrypt_then_mac,
                chain: iv.try_into().ok(),
            },
            bulk => {
                let mut full = [0; 12];
                full.get_mut(..iv.len())?.copy_from_slice(iv);
                let tag = if let Bulk::Ccm(_, tag) = bulk { tag } else { 16 };
                Protection::Aead { aead: Aead::new(bulk, key)?, iv: full, explicit: (12 - iv.len()), tag }
            }
        };
        Some(Cipher { protection, version: block.version })
    }

    /// Decrypts and authenticates a record as number `sequence` into `out`.
    pub(super) fn open(&self, sequence: u64, header: Header, body: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        match &self.protection {
            Protection::Aead { aead, iv, explicit, tag } => {
                let Some((start, text, sealed)) = split(body, *explicit, *tag) else { return false };
                out.extend_from_slice(text);
                let nonce = nonce(iv, start, sequence);
                if self.version >= 0x0304 {
                    return aead.open(&nonce, &header.bytes(), out, sealed);
                }
                aead.open(&nonce, &pseudo_header(sequence, header, text.len()), out, sealed)
            }
            Protection::Cbc { .. } => self.open_cbc(sequence, header, body, out).is_some(),
        }
    }

    fn open_cbc(&self, sequence: u64, header: Header, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let Protection::Cbc { mac, mac_key, encrypt_then_mac, .. } = &self.protection else { return None };
        let mut body = body;
        if *encrypt_then_mac {
            let (sealed, tag) = body.split_at_checked(body.len().checked_sub(mac.len())?)?;
            let pseudo = pseudo_header(sequence, header, sealed.len());
            if prf::hmac(*mac, mac_key, &[&pseudo, sealed]) != tag {
                return None;
            }
            body = sealed;
        }
        self.decrypt_cbc(body, out)?;
        let padding = usize::from(*out.last()?) + 1;
        let text = out.len().checked_sub(padding)?;
        if out.get(text..)?.iter().any(|byte| usize::from(*byte) + 1 != padding) {
            return None;
        }
        out.truncate(text);
        if !*encrypt_then_mac {
            let text = text.checked_sub(mac.len())?;
            let (plain, tag) = out.split_at_checked(text)?;
            let pseudo = pseudo_header(sequence, header, text);
            if prf::hmac(*mac, mac_key, &[&pseudo, plain]) != tag {
                return None;
            }
            out.truncate(text);
        }
        Some(())
    }

    /// Decrypts whole blocks, the first of which is the IV from TLS 1.1 on.
    fn decrypt_cbc(&self, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let Protection::Cbc { key, chain, .. } = &self.protection else { return None };
        let (iv, text) = match chain {
            Some(iv) => (*iv, body),
            None if self.version < 0x0302 => return None,
            None => body.split_first_chunk::<BLOCK>().map(|(iv, text)| (*iv, text))?,
        };
        out.extend_from_slice(text);
        match key.len() {
            16 => {
                cbc::Decryptor::<Aes128>::new_from_slices(key, &iv).ok()?.decrypt_padded_mut::<NoPadding>(out).ok()?
            }
            _ => cbc::Decryptor::<Aes256>::new_from_slices(key, &iv).ok()?.decrypt_padded_mut::<NoPadding>(out).ok()?,
        };
        Some(())
    }

    /// A record has passed; TLS 1.0 chains the next one to its last block.
    pub(super) fn passed(&mut self, body: &[u8], lost_end: bool) {
        if self.version >= 0x0302 {
            return;
        }
        if let Protection::Cbc { chain, encrypt_then_mac, mac, .. } = &mut self.protection {
            let tag = if *encrypt_then_mac { mac.len() } else { 0 };
            let text = body.get(..body.len().saturating_sub(tag)).unwrap_or_default();
            *chain = text.last_chunk::<BLOCK>().copied().filter(|_| !lost_end);
        }
    }

    /// Bytes that protection adds to the plaintext; none with CBC, where that varies.
    pub(super) fn overhead(&self) -> Option<usize> {
        match &self.protection {
            Protection::Aead { explicit, tag, .. } => Some(explicit + tag),
            Protection::Cbc { .. } => None,
        }
    }

    /// Bytes of MAC within what CBC encrypts.
    pub(super) fn inner_mac_bytes(&self) -> usize {
        match &self.protection {
            Protection::Cbc { mac, encrypt_then_mac: false, .. } => mac.len(),
            _ => 0,
        }
    }

    /// Decrypts what is left of a record with `holes` (zeros in `body`, in order) without
    /// authenticating it. `out` gets the plaintext with anything at all in the holes, which come back in
    /// terms of `out`; with CBC what follows behind the last plaintext byte may be padding and MAC.
    pub(super) fn peek(
        &self,
        sequence: u64,
        body: &[u8],
        holes: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Option<Vec<Range<usize>>> {
        out.clear();
        let moved =
            |by: usize| holes.iter().map(move |hole| hole.start.saturating_sub(by)..hole.end.saturating_sub(by));
        match &self.protection {
            Protection::Aead { aead, iv, explicit, tag } => {
                let (start, text, _) = split(body, *explicit, *tag)?;
                if holes.first()?.start < start.len() {
                    return None;
                }
                out.extend_from_slice(text);
                let length = out.len();
                aead.apply_key_stream(&nonce(iv, start, sequence), out)
                    .then(|| moved(start.len()).map(|hole| hole.start.min(length)..hole.end.min(length)).collect())
            }
            Protection::Cbc { chain, mac, encrypt_then_mac, .. } => {
                let iv = if chain.is_some() { 0 } else { BLOCK };
                let sealed = if *encrypt_then_mac { body.len().checked_sub(mac.len())? } else { body.len() };
                self.decrypt_cbc(body.get(..sealed)?, out)?;
                let length = out.len();
                // A lost block takes the one behind it along.
                let widen = |hole: Range<usize>| {
                    (hole.start / BLOCK * BLOCK).min(length)..((hole.end.div_ceil(BLOCK) + 1) * BLOCK).min(length)
                };
                Some(moved(iv).map(widen).collect())
            }
        }
    }
}

/// Explicit nonce, ciphertext and tag of a record; only 8 bytes of nonce are ever sent (RFC 5288 §3).
fn split(body: &[u8], explicit: usize, tag: usize) -> Option<(&[u8], &[u8], &[u8])> {
    let (start, rest) = body.split_at_checked(if explicit == 8 { 8 } else { 0 })?;
    let (text, tag) = rest.split_at_checked(rest.len().checked_sub(tag)?)?;
    Some((start, text, tag))
}

/// The nonce: the explicit part behind the fixed one, or the sequence number XORed in (RFC 8446 §5.3).
fn nonce(iv: &[u8; 12], explicit: &[u8], sequence: u64) -> [u8; 12] {
    let mut nonce = *iv;
    let tail = nonce.iter_mut().skip(4);
    if explicit.is_empty() {
        tail.zip(sequence.to_be_bytes()).for_each(|(byte, other)| *byte ^= other);
    } else {
        tail.zip(explicit).for_each(|(byte, other)| *byte = *other);
    }
    nonce
}

/// What TLS 1.2 authenticates beside the text: sequence number, type, version, length.
fn pseudo_header(sequence: u64, header: Header, length: usize) -> [u8; 13] {
    let mut out = [0; 13];
    let length = (length as u16).to_be_bytes();
    let parts =
        sequence.to_be_bytes().into_iter().chain([header.kind]).chain(header.version.to_be_bytes()).chain(length);
    out.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
    out
}
