//! The handshake messages that decide how the rest is read (RFC 8446 §4, RFC 5246 §7.4).

use super::keys::Random;

/// Handshake message types.
pub(super) mod kind {
    pub(in super::super) const HELLO_REQUEST: u8 = 0;
    pub(in super::super) const CLIENT_HELLO: u8 = 1;
    pub(in super::super) const SERVER_HELLO: u8 = 2;
    pub(in super::super) const NEW_SESSION_TICKET: u8 = 4;
    pub(in super::super) const END_OF_EARLY_DATA: u8 = 5;
    pub(in super::super) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(in super::super) const CLIENT_KEY_EXCHANGE: u8 = 16;
    pub(in super::super) const FINISHED: u8 = 20;
    pub(in super::super) const KEY_UPDATE: u8 = 24;
}

/// Extension types.
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const ALPN: u16 = 16;
    pub(super) const ENCRYPT_THEN_MAC: u16 = 22;
    pub(super) const EXTENDED_MASTER_SECRET: u16 = 23;
    pub(super) const SESSION_TICKET: u16 = 35;
    pub(super) const EARLY_DATA: u16 = 42;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
}

/// The random that makes a ServerHello a HelloRetryRequest (RFC 8446 §4.1.3).
const HELLO_RETRY_REQUEST: Random = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// What a ClientHello says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientHello {
    pub(super) random: Random,
    pub(super) session: Vec<u8>,
    pub(super) ticket: Vec<u8>,
    pub(super) server_name: Option<String>,
    pub(super) alpn: Vec<String>,
    pub(super) early_data: bool,
}

/// What a ServerHello says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerHello {
    pub(super) random: Random,
    /// The version in force: 0x0304 is TLS 1.3.
    pub(super) version: u16,
    pub(super) session: Vec<u8>,
    pub(super) suite: u16,
    pub(super) retry: bool,
    pub(super) alpn: Option<String>,
    pub(super) encrypt_then_mac: bool,
    pub(super) extended_master_secret: bool,
}

/// What EncryptedExtensions say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EncryptedExtensions {
    pub(super) alpn: Option<String>,
    pub(super) early_data: bool,
}

/// Reads the body of a ClientHello; extensions that do not parse are passed over.
pub(super) fn client_hello(mut body: &[u8]) -> Option<ClientHello> {
    let body = &mut body;
    let mut hello = ClientHello::default();
    let version = u16(body)?;
    if version >> 8 != 3 {
        return None;
    }
    hello.random = take(body, 32)?.try_into().ok()?;
    hello.session = vector(body, 1)?.to_vec();
    vector(body, 2)?;
    vector(body, 1)?;
    extensions(body, |kind, data| match kind {
        extension::SERVER_NAME => hello.server_name = server_name(data),
        extension::ALPN => hello.alpn = protocols(data),
        extension::SESSION_TICKET => hello.ticket = data.to_vec(),
        extension::EARLY_DATA => hello.early_data = true,
        _ => {}
    });
    Some(hello)
}

/// Reads the body of a ServerHello or HelloRetryRequest.
pub(super) fn server_hello(mut body: &[u8]) -> Option<ServerHello> {
    let body = &mut body;
    let mut hello = ServerHello { version: u16(body)?, ..ServerHello::default() };
    if hello.version >> 8 != 3 {
        return None;
    }
    hello.random = take(body, 32)?.try_into().ok()?;
    hello.retry = hello.random == HELLO_RETRY_REQUEST;
    hello.session = vector(body, 1)?.to_vec();
    hello.suite = u16(body)?;
    take(body, 1)?;
    extensions(body, |kind, data| match kind {
        extension::SUPPORTED_VERSIONS => {
            if let Some(version) = u16(&mut &*data) {
                // The drafts that key logs know of (0x7f00 and up) protect records as the RFC does.
                hello.version = if version >> 8 == 0x7f { 0x0304 } else { version };
            }
        }
        extension::ALPN => hello.alpn = protocols(data).into_iter().next(),
        extension::ENCRYPT_THEN_MAC => hello.encrypt_then_mac = true,
        extension::EXTENDED_MASTER_SECRET => hello.extended_master_secret = true,
        _ => {}
    });
    Some(hello)
}

/// Reads the body of EncryptedExtensions.
pub(super) fn encrypted_extensions(mut body: &[u8]) -> EncryptedExtensions {
    let mut read = EncryptedExtensions::default();
    extensions(&mut body, |kind, data| match kind {
        extension::ALPN => read.alpn = protocols(data).into_iter().next(),
        extension::EARLY_DATA => read.early_data = true,
        _ => {}
    });
    read
}

/// The ticket of a NewSessionTicket of TLS 1.2 (RFC 5077 §3.3).
pub(super) fn session_ticket(mut body: &[u8]) -> Option<&[u8]> {
    take(&mut body, 4)?;
    vector(&mut body, 2)
}

/// The encrypted premaster secret of a ClientKeyExchange, where the key exchange is RSA (RFC 5246 §7.4.7.1).
pub(super) fn encrypted_premaster(mut body: &[u8]) -> Option<&[u8]> {
    vector(&mut body, 2)
}

fn extensions(body: &mut &[u8], mut each: impl FnMut(u16, &[u8])) {
    let Some(mut list) = vector(body, 2) else { return };
    while let (Some(kind), Some(data)) = (u16(&mut list), vector(&mut list, 2)) {
        each(kind, data);
    }
}

/// The host of a server_name extension (RFC 6066 §3).
fn server_name(mut data: &[u8]) -> Option<String> {
    let mut list = vector(&mut data, 2)?;
    take(&mut list, 1)?;
    Some(printable(vector(&mut list, 2)?))
}

/// The protocols of an ALPN extension (RFC 7301 §3.1).
fn protocols(mut data: &[u8]) -> Vec<String> {
    let mut list = vector(&mut data, 2).unwrap_or_default();
    std::iter::from_fn(|| vector(&mut list, 1)).map(printable).collect()
}

/// Text that is safe to show.
fn printable(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn u16(body: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(body, 2)?.try_into().ok()?))
}

/// A vector whose length stands before it in `prefix` bytes.
fn vector<'a>(body: &mut &'a [u8], prefix: usize) -> Option<&'a [u8]> {
    let length = take(body, prefix)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    take(body, length)
}

fn take<'a>(body: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, rest) = body.split_at_checked(bytes)?;
    *body = rest;
    Some(taken)
}
