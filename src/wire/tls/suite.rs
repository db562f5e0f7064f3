//! Cipher suites that can be read (IANA TLS Cipher Suites registry).

/// Hash of the key derivation or of a MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Md5,
    Sha1,
    Sha256,
    Sha384,
}

impl Hash {
    /// Length of its output, bytes.
    pub(super) const fn len(self) -> usize {
        match self {
            Hash::Md5 => 16,
            Hash::Sha1 => 20,
            Hash::Sha256 => 32,
            Hash::Sha384 => 48,
        }
    }
}

/// How records are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bulk {
    /// AES-GCM with a key of so many bytes.
    Gcm(usize),
    /// ChaCha20-Poly1305.
    ChaCha,
    /// AES-CCM with a key and a tag of so many bytes.
    Ccm(usize, usize),
    /// AES-CBC with a key of so many bytes and an HMAC.
    Cbc(usize, Hash),
}

/// A cipher suite, as far as the record layer goes: how the key was agreed on does not matter
/// to one who has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suite {
    /// Its number.
    pub(super) id: u16,
    /// How records are protected.
    pub(super) bulk: Bulk,
    /// Hash of HKDF or of the TLS 1.2 PRF.
    pub(super) hash: Hash,
}

/// The suite with this number, if it can be read.
pub(super) fn find(id: u16) -> Option<Suite> {
    let (bulk, hash) = match id {
        0x1301 => (Bulk::Gcm(16), Hash::Sha256),
        0x1302 => (Bulk::Gcm(32), Hash::Sha384),
        0x1303 => (Bulk::ChaCha, Hash::Sha256),
        0x1304 => (Bulk::Ccm(16, 16), Hash::Sha256),
        0x1305 => (Bulk::Ccm(16, 8), Hash::Sha256),
        // AES-GCM (RFC 5288, RFC 5289, RFC 5487): RSA, DHE_RSA, DH_RSA, DHE_DSS, DH_DSS, DH_anon, PSK,
        // DHE_PSK, RSA_PSK, then the elliptic curves.
        0x009c | 0x009e | 0x00a0 | 0x00a2 | 0x00a4 | 0x00a6 | 0x00a8 | 0x00aa | 0x00ac => (Bulk::Gcm(16), Hash::Sha256),
        0x009d | 0x009f | 0x00a1 | 0x00a3 | 0x00a5 | 0x00a7 | 0x00a9 | 0x00ab | 0x00ad => (Bulk::Gcm(32), Hash::Sha384),
        0xc02b | 0xc02d | 0xc02f | 0xc031 | 0xd001 => (Bulk::Gcm(16), Hash::Sha256),
        0xc02c | 0xc02e | 0xc030 | 0xc032 | 0xd002 => (Bulk::Gcm(32), Hash::Sha384),
        // ChaCha20-Poly1305 (RFC 7905).
        0xcca8..=0xccae => (Bulk::ChaCha, Hash::Sha256),
        // AES-CCM (RFC 6655, RFC 7251, RFC 8442).
        0xc09c | 0xc09e | 0xc0a4 | 0xc0a6 | 0xc0ac | 0xd005 => (Bulk::Ccm(16, 16), Hash::Sha256),
        0xc09d | 0xc09f | 0xc0a5 | 0xc0a7 | 0xc0ad => (Bulk::Ccm(32, 16), Hash::Sha256),
        0xc0a0 | 0xc0a2 | 0xc0a8 | 0xc0aa | 0xc0ae | 0xd003 => (Bulk::Ccm(16, 8), Hash::Sha256),
        0xc0a1 | 0xc0a3 | 0xc0a9 | 0xc0ab | 0xc0af => (Bulk::Ccm(32, 8), Hash::Sha256),
        // AES-CBC with SHA-1 (RFC 5246 §A.5, RFC 4279, RFC 8422, RFC 5489).
        0x002f..=0x0034 | 0x008c | 0x0090 | 0x0094 => (Bulk::Cbc(16, Hash::Sha1), Hash::Sha256),
        0x0035..=0x003a | 0x008d | 0x0091 | 0x0095 => (Bulk::Cbc(32, Hash::Sha1), Hash::Sha256),
        0xc004 | 0xc009 | 0xc00e | 0xc013 | 0xc018 | 0xc035 => (Bulk::Cbc(16, Hash::Sha1), Hash::Sha256),
        0xc005 | 0xc00a | 0xc00f | 0xc014 | 0xc019 | 0xc036 => (Bulk::Cbc(32, Hash::Sha1), Hash::Sha256),
        // AES-CBC with SHA-256 and SHA-384 (RFC 5246 §A.5, RFC 5289, RFC 5487, RFC 5489).
        0x003c | 0x003e | 0x003f | 0x0040 | 0x0067 | 0x006c => (Bulk::Cbc(16, Hash::Sha256), Hash::Sha256),
        0x003d | 0x0068 | 0x0069 | 0x006a | 0x006b | 0x006d => (Bulk::Cbc(32, Hash::Sha256), Hash::Sha256),
        0x00ae | 0x00b2 | 0x00b6 => (Bulk::Cbc(16, Hash::Sha256), Hash::Sha256),
        0x00af | 0x00b3 | 0x00b7 => (Bulk::Cbc(32, Hash::Sha384), Hash::Sha384),
        0xc023 | 0xc025 | 0xc027 | 0xc029 | 0xc037 => (Bulk::Cbc(16, Hash::Sha256), Hash::Sha256),
        0xc024 | 0xc026 | 0xc028 | 0xc02a | 0xc038 => (Bulk::Cbc(32, Hash::Sha384), Hash::Sha384),
        _ => return None,
    };
    Some(Suite { id, bulk, hash })
}

/// The suites of TLS 1.3 whose hash has an output of `bytes`, the length of every secret of such
/// a connection (RFC 8446 §B.4).
pub(super) fn with_secret_of(bytes: usize) -> impl Iterator<Item = Suite> {
    (0x1301..=0x1305).filter_map(find).filter(move |suite| suite.hash.len() == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names say what protects a record, whoever agreed on the key.
    #[test]
    fn agrees_with_the_registry() {
        let mut read = 0;
        for id in 0..=u16::MAX {
            let Some(known) = tls_parser::TlsCipherSuite::from_id(id) else { continue };
            let name = known.name;
            let cipher = name.split_once("_WITH_").map_or(name, |(_, cipher)| cipher).trim_start_matches("TLS_");
            let key = if cipher.contains("256_") { 32 } else { 16 };
            let hash = if cipher.ends_with("SHA384") { Hash::Sha384 } else { Hash::Sha256 };
            let mac = if cipher.ends_with("_SHA") { Hash::Sha1 } else { hash };
            let bulk = match cipher {
                c if c.starts_with("AES") && c.contains("_GCM_") => Bulk::Gcm(key),
                c if c.starts_with("AES") && c.contains("_CCM_8") => Bulk::Ccm(key, 8),
                c if c.starts_with("AES") && c.contains("_CCM") => Bulk::Ccm(key, 16),
                c if c.starts_with("AES") && c.contains("_CBC_") => Bulk::Cbc(key, mac),
                c if c.starts_with("CHACHA20") => Bulk::ChaCha,
                _ => continue,
            };
            let Some(found) = find(id) else { continue };
            assert_eq!(found, Suite { id, bulk, hash }, "{name}");
            read += 1;
        }
        assert!(read > 100, "{read}");
    }
}
