//! Secrets from key logs (draft-ietf-tls-keylogfile, the NSS format).

use crate::model::limits;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The random of a ClientHello, which names a connection in a key log.
pub type Random = [u8; 32];

/// One secret.
pub(super) type Secret = Arc<[u8]>;

/// What is known of one connection.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    /// `CLIENT_RANDOM`: the master secret of TLS 1.2 and before.
    pub(super) master: Option<Secret>,
    /// `PMS_CLIENT_RANDOM`: the premaster secret.
    pub(super) premaster: Option<Secret>,
    /// `CLIENT_EARLY_TRAFFIC_SECRET`.
    pub(super) early: Option<Secret>,
    /// `CLIENT_HANDSHAKE_TRAFFIC_SECRET` and `SERVER_…`.
    pub(super) handshake: [Option<Secret>; 2],
    /// `CLIENT_TRAFFIC_SECRET_0` and `SERVER_…`.
    pub(super) application: [Option<Secret>; 2],
}

/// What a key log held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyLog {
    /// Secrets taken from it.
    pub secrets: u64,
    /// Lines that are neither secrets nor comments nor blank.
    pub bad_lines: u64,
    /// Secrets passed over because of [`limits::TLS_SECRETS`].
    pub over_limit: u64,
}

#[derive(Default)]
struct Inner {
    by_random: FxHashMap<Random, Secrets>,
    /// `RSA`: premaster secrets by the first 8 bytes of their encrypted form.
    by_encrypted: FxHashMap<[u8; 8], Secret>,
    /// `RSA Session-ID:… Master-Key:…`, as `openssl s_client` prints them.
    by_session: FxHashMap<Vec<u8>, Secret>,
    premasters: bool,
    count: u64,
}

/// All secrets of a run; shared, and may grow while connections are read (Decryption Secrets Blocks).
#[derive(Default)]
pub struct KeyStore {
    inner: RwLock<Inner>,
    generation: AtomicU64,
}

impl std::fmt::Debug for KeyStore {
    /// Says how many secrets there are, never which.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyStore({} secrets)", self.len())
    }
}

impl KeyStore {
    /// A store without secrets.
    pub fn new() -> KeyStore {
        KeyStore::default()
    }

    /// Number of secrets.
    pub fn len(&self) -> u64 {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the secrets of a key log: a file, or the data of a Decryption Secrets Block of type
    /// `TLSK` (with or without its padding).
    pub fn read(&self, log: &[u8]) -> KeyLog {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let mut read = KeyLog::default();
        for line in log.split(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            if inner.count >= limits::TLS_SECRETS as u64 {
                read.over_limit += 1;
            } else if inner.line(line).is_some() {
                inner.count += 1;
                read.secrets += 1;
            } else {
                read.bad_lines += 1;
            }
        }
        self.generation.fetch_add(1, Ordering::Release);
        read
    }

    /// Changes whenever secrets were added.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The secrets of the connection with this ClientHello random.
    pub(super) fn of(&self, random: &Random) -> Option<Secrets> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_random.get(random).cloned()
    }

    /// Is there a premaster secret?
    pub(super) fn has_premasters(&self) -> bool {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).premasters
    }

    /// The premaster secret whose encrypted form begins with `encrypted`.
    pub(super) fn premaster(&self, encrypted: &[u8]) -> Option<Secret> {
        let start = encrypted.first_chunk::<8>()?;
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_encrypted.get(start).cloned()
    }

    /// The master secret of the session with this id.
    pub(super) fn of_session(&self, id: &[u8]) -> Option<Secret> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_session.get(id).cloned()
    }

    /// Every connection's secrets, for trying them out; none if there are more than `most`.
    pub(super) fn all(&self, most: usize) -> Vec<(Random, Secrets)> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        if inner.by_random.len() > most {
            return Vec::new();
        }
        let mut all: Vec<_> = inner.by_random.iter().map(|(random, secrets)| (*random, secrets.clone())).collect();
        all.sort_unstable_by_key(|(random, _)| *random);
        all
    }
}

impl Inner {
    fn line(&mut self, line: &[u8]) -> Option<()> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (label, name, secret) = (words.next()?, words.next()?, words.next()?);
        if label == b"RSA" {
            return self.rsa(name, secret);
        }
        let secret: Secret = hex(secret).filter(|secret| !secret.is_empty() && secret.len() <= 1024)?.into();
        let random: Random = hex(name)?.try_into().ok()?;
        let slot: fn(&mut Secrets) -> &mut Option<Secret> = match label {
            b"CLIENT_RANDOM" => |of| &mut of.master,
            b"PMS_CLIENT_RANDOM" => |of| &mut of.premaster,
            b"CLIENT_EARLY_TRAFFIC_SECRET" => |of| &mut of.early,
            b"CLIENT_HANDSHAKE_TRAFFIC_SECRET" => |of| &mut of.handshake[0],
            b"SERVER_HANDSHAKE_TRAFFIC_SECRET" => |of| &mut of.handshake[1],
            b"CLIENT_TRAFFIC_SECRET_0" => |of| &mut of.application[0],
            b"SERVER_TRAFFIC_SECRET_0" => |of| &mut of.application[1],
            // Exporter, ECH and QUIC secrets, and labels yet to come: good lines of no use here.
            _ => return Some(()),
        };
        self.premasters |= label.starts_with(b"PMS");
        *slot(self.by_random.entry(random).or_default()) = Some(secret);
        Some(())
    }

    fn rsa(&mut self, name: &[u8], secret: &[u8]) -> Option<()> {
        if let (Some(id), Some(key)) = (name.strip_prefix(b"Session-ID:"), secret.strip_prefix(b"Master-Key:")) {
            self.by_session.insert(hex(id)?, hex(key)?.into());
        } else {
            self.premasters = true;
            self.by_encrypted.insert(hex(name)?.try_into().ok()?, hex(secret)?.into());
        }
        Some(())
    }
}

/// Bytes from hexadecimal digits of either case.
fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_label_and_counts_what_is_none() {
        let random = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
        let log = format!(
            "# a comment\r\n\r\nCLIENT_RANDOM {random} 0102\r\nSERVER_TRAFFIC_SECRET_0 {random} 03\n\
             EXPORTER_SECRET {random} 04\nRSA 0011223344556677 05\nRSA Session-ID:0a Master-Key:0b\n\
             CLIENT_RANDOM 00 01\nCLIENT_RANDOM {random} 0\ngarbage\n\0\0\0"
        );
        let store = KeyStore::new();
        let before = store.generation();
        assert_eq!(store.read(log.as_bytes()), KeyLog { secrets: 5, bad_lines: 3, over_limit: 0 });
        assert_ne!(store.generation(), before);
        let secrets = store.of(&hex(random.as_bytes()).unwrap().try_into().unwrap()).unwrap();
        assert_eq!(secrets.master.as_deref(), Some(&[1, 2][..]));
        assert_eq!(secrets.application[1].as_deref(), Some(&[3][..]));
        assert_eq!(secrets.application[0], None);
        assert_eq!(store.premaster(&hex(b"001122334455667788").unwrap()).as_deref(), Some(&[5][..]));
        assert_eq!(store.of_session(&[10]).as_deref(), Some(&[11][..]));
    }

    #[test]
    fn never_shows_a_secret() {
        let store = KeyStore::new();
        store.read(b"RSA 0011223344556677 abcdef");
        assert_eq!(format!("{store:?}"), "KeyStore(1 secrets)");
    }
}
