//! What a handshake settles, and the keys that follow from it.

use super::cipher::{Cipher, KeyBlock};
use super::hello::{ClientHello, ServerHello};
use super::keys::{KeyStore, Random, Secret, Secrets};
use super::prf;
use super::suite::{self, Hash, Suite};
use crate::model::limits;
use sha2::Digest;
use std::sync::Arc;

/// Key logs with more connections than this are not tried out one by one.
const TRIED_CONNECTIONS: usize = 4096;

/// Which keys protect a direction. The order is that in which they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// TLS 1.3 early data.
    Early,
    /// TLS 1.3 handshake.
    Handshake,
    /// TLS 1.3 application data after so many key updates.
    Application(u32),
    /// TLS 1.0 to 1.2 after this many ChangeCipherSpec messages.
    Changed(u32),
}

/// The protection of one direction from one change of keys to the next.
pub(super) struct Protection {
    pub(super) stage: Stage,
    pub(super) suite: Suite,
    pub(super) cipher: Cipher,
    /// Number of the next record.
    pub(super) sequence: u64,
    /// The traffic secret, from which that of the next key update follows.
    secret: Option<Secret>,
}

impl Protection {
    fn tls13(stage: Stage, suite: Suite, secret: &Secret) -> Option<Protection> {
        let cipher = Cipher::tls13(suite, secret)?;
        Some(Protection { stage, suite, cipher, sequence: 0, secret: Some(Arc::clone(secret)) })
    }

    /// The protection after a key update (RFC 8446 §7.2).
    pub(super) fn updated(&self) -> Option<Protection> {
        let Stage::Application(updates) = self.stage else { return None };
        let secret = prf::expand_label(self.suite.hash, self.secret.as_ref()?, "traffic upd", self.suite.hash.len())?;
        Protection::tls13(Stage::Application(updates.saturating_add(1)), self.suite, &secret.into())
    }
}

/// The handshake of one connection.
pub(super) struct Session {
    keys: Arc<KeyStore>,
    pub(super) client: Option<ClientHello>,
    pub(super) server: Option<ServerHello>,
    /// The application protocol that the server chose.
    pub(super) alpn: Option<String>,
    secrets: Option<Secrets>,
    /// Generation of the key store when it was last asked; none: the hello is new.
    asked: Option<u64>,
    /// The suite, where only a successful trial tells it.
    pub(super) proven_suite: Option<Suite>,
    /// The encrypted premaster secret, where the key exchange is RSA.
    pub(super) encrypted_premaster: Option<Vec<u8>>,
    /// The master secret of the session that this one resumes.
    pub(super) resumed: Option<Secret>,
    /// Handshake messages up to ClientKeyExchange, for the extended master secret.
    pub(super) transcript: Vec<u8>,
    /// ClientKeyExchange was seen: the transcript is complete.
    pub(super) key_exchange_seen: bool,
}

impl Session {
    pub(super) fn new(keys: Arc<KeyStore>) -> Session {
        Session {
            keys,
            client: None,
            server: None,
            alpn: None,
            secrets: None,
            asked: None,
            proven_suite: None,
            encrypted_premaster: None,
            resumed: None,
            transcript: Vec::new(),
            key_exchange_seen: false,
        }
    }

    /// A new ClientHello: a first one, one after HelloRetryRequest, or (true) a renegotiation.
    pub(super) fn begin(&mut self, hello: ClientHello) -> bool {
        let retry = self.server.as_ref().is_some_and(|server| server.retry);
        let again = self.client.is_some() && !retry;
        if !retry {
            self.server = None;
            self.transcript.clear();
            self.key_exchange_seen = false;
        }
        self.client = Some(hello);
        self.asked = None;
        self.encrypted_premaster = None;
        again
    }

    /// The version in force, where known.
    pub(super) fn version(&self) -> Option<u16> {
        self.server.as_ref().map(|server| server.version)
    }

    /// Is it TLS 1.3, or may it be?
    pub(super) fn may_be_13(&self) -> bool {
        self.version().is_none_or(|version| version >= 0x0304)
    }

    /// The suite in force, if it is known and can be read.
    pub(super) fn suite(&self) -> Option<Suite> {
        self.server.as_ref().map_or(self.proven_suite, |server| suite::find(server.suite))
    }

    /// Can any secret be of use here?
    pub(super) fn has_secrets(&mut self) -> bool {
        self.refresh();
        match self.client {
            // Without its random, any secret may be this connection's.
            None => !self.keys.is_empty(),
            Some(_) => self.secrets.is_some() || self.resumed.is_some() || self.premaster().is_some(),
        }
    }

    /// Are there secrets for the application data of the direction `side`?
    pub(super) fn may_open(&mut self, side: usize) -> bool {
        self.refresh();
        match self.version() {
            Some(..0x0304) => self.master().is_some(),
            _ => {
                self.secrets.as_ref().is_some_and(|secrets| secrets.application.get(side).is_some_and(Option::is_some))
            }
        }
    }

    fn refresh(&mut self) {
        let generation = self.keys.generation();
        if self.asked != Some(generation) {
            self.asked = Some(generation);
            self.secrets = self.client.as_ref().and_then(|client| self.keys.of(&client.random));
        }
    }

    fn premaster(&self) -> Option<Secret> {
        self.encrypted_premaster.as_ref().and_then(|encrypted| self.keys.premaster(encrypted))
    }

    /// What may protect records of TLS 1.3 in the direction `side` (0: from the client) after `stage`.
    pub(super) fn successors(&mut self, side: usize, stage: Option<Stage>) -> Vec<Protection> {
        self.refresh();
        self.secrets.as_ref().map_or_else(Vec::new, |secrets| self.candidates(secrets, side, stage))
    }

    fn candidates(&self, secrets: &Secrets, side: usize, stage: Option<Stage>) -> Vec<Protection> {
        let early = secrets.early.as_ref().filter(|_| side == 0);
        let stages = [
            (Stage::Early, early),
            (Stage::Handshake, secrets.handshake.get(side).and_then(Option::as_ref)),
            (Stage::Application(0), secrets.application.get(side).and_then(Option::as_ref)),
        ];
        let later = stages.into_iter().filter(|(next, _)| stage.is_none_or(|stage| *next > stage));
        let known = self.suite();
        later
            .filter_map(|(stage, secret)| secret.map(|secret| (stage, secret)))
            .flat_map(|(stage, secret)| {
                let any =
                    suite::with_secret_of(secret.len()).filter(move |suite| known.is_none_or(|known| known == *suite));
                any.filter_map(move |suite| Protection::tls13(stage, suite, secret))
            })
            .collect()
    }

    /// The protection of TLS 1.3 in the direction `side` from `stage` on.
    pub(super) fn at_stage(&mut self, side: usize, stage: Stage) -> Option<Protection> {
        self.successors(side, None).into_iter().find(|next| next.stage == stage)
    }

    /// The protection of TLS 1.0 to 1.2 after ChangeCipherSpec in the direction `side`.
    pub(super) fn changed(&mut self, side: usize, changes: u32) -> Option<Protection> {
        self.refresh();
        let client_random = self.client.as_ref()?.random;
        let master = self.master()?;
        self.with_master(side, changes, &client_random, &master)
    }

    fn with_master(&self, side: usize, changes: u32, client_random: &Random, master: &[u8]) -> Option<Protection> {
        let server = self.server.as_ref()?;
        let suite = suite::find(server.suite)?;
        let cipher = Cipher::tls12(
            &KeyBlock {
                version: server.version,
                suite,
                master,
                client_random,
                server_random: &server.random,
                encrypt_then_mac: server.encrypt_then_mac,
            },
            side == 0,
        )?;
        Some(Protection { stage: Stage::Changed(changes), suite, cipher, sequence: 0, secret: None })
    }

    /// The master secret of TLS 1.0 to 1.2, logged or derived.
    pub(super) fn master(&mut self) -> Option<Secret> {
        self.refresh();
        if let Some(master) = self.secrets.as_ref().and_then(|secrets| secrets.master.clone()) {
            return Some(master);
        }
        let server = self.server.as_ref()?;
        if let Some(master) = self.keys.of_session(&server.session).filter(|_| !server.session.is_empty()) {
            return Some(master);
        }
        let premaster =
            self.secrets.as_ref().and_then(|secrets| secrets.premaster.clone()).or_else(|| self.premaster());
        match premaster {
            Some(premaster) => self.derive_master(&premaster),
            None => self.resumed.clone(),
        }
    }

    fn derive_master(&self, premaster: &[u8]) -> Option<Secret> {
        let (client, server) = (self.client.as_ref()?, self.server.as_ref()?);
        let hash = suite::find(server.suite)?.hash;
        let (version, bytes) = (server.version, 48);
        if !server.extended_master_secret {
            let seeds: [&[u8]; 2] = [&client.random, &server.random];
            return Some(prf::prf(version, hash, premaster, "master secret", &seeds, bytes).into());
        }
        // RFC 7627 §4: the seed is a hash over the handshake so far.
        let log = self.transcript.as_slice();
        let digest = match hash {
            _ if version < 0x0303 => [md5::Md5::digest(log).to_vec(), sha1::Sha1::digest(log).to_vec()].concat(),
            Hash::Sha384 => sha2::Sha384::digest(log).to_vec(),
            _ => sha2::Sha256::digest(log).to_vec(),
        };
        Some(prf::prf(version, hash, premaster, "extended master secret", &[&digest], bytes).into())
    }

    /// Keeps a handshake message for the extended master secret.
    pub(super) fn log(&mut self, message: &[u8]) {
        if self.keys.has_premasters() && self.transcript.len() + message.len() <= limits::TLS_HANDSHAKE_BYTES {
            self.transcript.extend_from_slice(message);
        }
    }

    /// Without a ClientHello: finds the secrets under which a record opens, by trying all; `opens`
    /// returns how many sequence numbers it skipped.
    pub(super) fn identify(
        &mut self,
        side: usize,
        mut opens: impl FnMut(&mut Protection) -> Option<u64>,
    ) -> Option<(Protection, u64)> {
        let legacy = self.version().is_some_and(|version| version < 0x0304);
        for (random, secrets) in self.keys.all(TRIED_CONNECTIONS) {
            let candidates = if legacy {
                let master = secrets.master.as_ref();
                master.and_then(|master| self.with_master(side, 1, &random, master)).into_iter().collect()
            } else {
                self.candidates(&secrets, side, None)
            };
            for mut candidate in candidates {
                if let Some(skipped) = opens(&mut candidate) {
                    self.client = Some(ClientHello { random, ..ClientHello::default() });
                    self.secrets = Some(secrets);
                    self.asked = Some(self.keys.generation());
                    return Some((candidate, skipped));
                }
            }
        }
        None
    }
}
