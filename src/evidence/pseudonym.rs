//! Keyed pseudonyms: one word to another of the same length and kind.
//!
//! A word is a run of letters and digits. Letters become letters (keeping case), digits become
//! digits, hexadecimal words stay hexadecimal. For one key the mapping is one to one within a
//! kind, so what is equal stays equal and what differs keeps differing; without the key it
//! cannot be undone. The order of the words of a kind comes from an alternating Feistel network
//! over the characters, as NIST SP 800-38G's FF1 is, with HMAC-SHA256 (RFC 2104) as its round
//! function; a word becomes the one that follows it in that order. All words of a kind are so on
//! one ring, and none stays itself, as one in a few hundred short words would under the network
//! alone.

use hmac::{Hmac, Mac};
use rustc_hash::{FxHashMap, FxHashSet};
use sha2::Sha256;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Rounds of the Feistel network; FF1 has ten.
const ROUNDS: u8 = 10;
/// Hexadecimal words of at least this length are a kind of their own, characters.
const HEX_CHARS: usize = 8;
/// Steps along the ring before a word is taken as it is.
const WALK: usize = 256;

/// The secret that decides which pseudonym a word gets, 32 bytes. It never enters a bundle.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    /// Never shows the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// A new one from the system's random numbers.
    ///
    /// # Errors
    /// If the system gives none.
    pub fn random() -> std::io::Result<Key> {
        let mut bytes = [0; 32];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
        Ok(Key(bytes))
    }

    /// As [`Key::to_hex`] wrote it; white space around it is allowed.
    pub fn from_hex(text: &str) -> Option<Key> {
        let text = text.trim();
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(i * 2..i * 2 + 2)?, 16).ok()?;
        }
        Some(Key(bytes))
    }

    /// 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        super::hex(&self.0)
    }

    fn prf(&self, parts: &[&[u8]], want: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(want + 32);
        let mut counter = 0u32;
        while out.len() < want {
            // A key of any length is taken, so this cannot fail.
            let Ok(mut mac) = <Hmac<Sha256> as Mac>::new_from_slice(&self.0) else { break };
            mac.update(&counter.to_be_bytes());
            for part in parts {
                mac.update(&(part.len() as u64).to_be_bytes());
                mac.update(part);
            }
            out.extend_from_slice(&mac.finalize().into_bytes());
            counter += 1;
        }
        out
    }
}

/// Gives words and addresses their pseudonyms.
#[derive(Debug)]
pub struct Pseudonyms {
    key: Key,
    words: FxHashMap<String, String>,
    taken: FxHashSet<String>,
    addresses: FxHashMap<IpAddr, IpAddr>,
    given: FxHashSet<IpAddr>,
}

impl Pseudonyms {
    /// Under this key.
    pub fn new(key: Key) -> Pseudonyms {
        Pseudonyms {
            key,
            words: FxHashMap::default(),
            taken: FxHashSet::default(),
            addresses: FxHashMap::default(),
            given: FxHashSet::default(),
        }
    }

    /// The pseudonym of a word. It is never one that `is_kept`, so that no kept word is confused
    /// with a replaced one.
    pub fn word(&mut self, word: &str, is_kept: &dyn Fn(&str) -> bool) -> String {
        if let Some(known) = self.words.get(word) {
            return known.clone();
        }
        let new = if word.is_ascii() { ascii(&self.key, word, is_kept) } else { self.other(word, is_kept) };
        self.words.insert(word.to_owned(), new.clone());
        new
    }

    /// Words with characters outside ASCII: letters of the same number of UTF-8 bytes.
    fn other(&mut self, word: &str, is_kept: &dyn Fn(&str) -> bool) -> String {
        let mut new = String::new();
        for attempt in 0..64u32 {
            let count = word.chars().count();
            let stream = self.key.prf(&[b"other", word.as_bytes(), &attempt.to_be_bytes()], count * 4);
            new = word.chars().zip(stream.chunks_exact(4)).map(|(c, s)| like(c, number(s))).collect();
            if new != word && !is_kept(&new) && self.taken.insert(new.clone()) {
                break;
            }
        }
        new
    }

    /// A public address becomes one that is set aside for benchmarks (RFC 2544: 198.18.0.0/15) or
    /// documentation (RFC 3849: 2001:db8::/32); all others stay.
    pub fn address(&mut self, address: IpAddr) -> IpAddr {
        if is_public(address) { self.any_address(address) } else { address }
    }

    /// As [`Pseudonyms::address`], for addresses that say nothing to strangers too.
    pub fn any_address(&mut self, address: IpAddr) -> IpAddr {
        if let Some(known) = self.addresses.get(&address) {
            return *known;
        }
        let text = address.to_string();
        let mut new = address;
        for attempt in 0..1024u32 {
            let stream = self.key.prf(&[b"address", text.as_bytes(), &attempt.to_be_bytes()], 16);
            new = match (address, &stream[..]) {
                (IpAddr::V4(_), [a, b, c, ..]) => Ipv4Addr::new(198, 18 + (a & 1), *b, *c).into(),
                (IpAddr::V6(_), [a, b, c, d, e, f, ..]) => {
                    let pair = |hi: &u8, lo: &u8| u16::from_be_bytes([*hi, *lo]);
                    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, pair(a, b), pair(c, d), pair(e, f)).into()
                }
                _ => address,
            };
            if self.given.insert(new) {
                break;
            }
        }
        self.addresses.insert(address, new);
        new
    }
}

/// Is it an address that says who someone is? Loopback, private, link-local, documentation and
/// benchmark addresses do not.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            let [x, y, ..] = a.octets();
            let shared = (x == 100 && (64..128).contains(&y)) || (x == 198 && (y == 18 || y == 19));
            !(a.is_loopback()
                || a.is_private()
                || a.is_link_local()
                || a.is_unspecified()
                || a.is_broadcast()
                || a.is_multicast()
                || a.is_documentation()
                || shared)
        }
        IpAddr::V6(a) => match a.to_ipv4_mapped() {
            Some(inner) => is_public(inner.into()),
            None => {
                let [first, second, ..] = a.segments();
                let documentation = first == 0x2001 && second == 0xdb8;
                !(a.is_loopback()
                    || a.is_unspecified()
                    || a.is_multicast()
                    || first & 0xfe00 == 0xfc00
                    || first & 0xffc0 == 0xfe80
                    || documentation)
            }
        },
    }
}

/// Hexadecimal with letters and digits, the letters in one case: session ids, hashes, cursors.
fn is_hex(word: &[u8]) -> bool {
    let has = |f: fn(&u8) -> bool| word.iter().any(f);
    let one_case = !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
    word.len() >= HEX_CHARS
        && one_case
        && word.iter().all(u8::is_ascii_hexdigit)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

fn ascii(key: &Key, word: &str, is_kept: &dyn Fn(&str) -> bool) -> String {
    let lower = word.to_ascii_lowercase().into_bytes();
    let hex = is_hex(word.as_bytes());
    let has_upper = word.bytes().any(|b| b.is_ascii_uppercase());
    let mut now = lower;
    let mut new = String::new();
    // Walking the ring until the kind fits keeps the mapping one to one within the kind.
    for _ in 0..WALK {
        step(key, hex, &mut now);
        let cased: Vec<u8> = if hex {
            now.iter().map(|b| if has_upper { b.to_ascii_uppercase() } else { *b }).collect()
        } else {
            let case = |(new, old): (&u8, u8)| if old.is_ascii_uppercase() { new.to_ascii_uppercase() } else { *new };
            now.iter().zip(word.bytes()).map(case).collect()
        };
        let fits = is_hex(&cased) == hex;
        new = String::from_utf8(cased).unwrap_or_default();
        if fits && new != word && !is_kept(&new) {
            break;
        }
    }
    new
}

/// From a word in lower case to the one that follows it on the ring of its kind.
fn step(key: &Key, hex: bool, word: &mut [u8]) {
    // A word that does not begin with 0 keeps that, so that numbers stay numbers.
    let digits = !hex && word.iter().all(u8::is_ascii_digit);
    let alphabet = |i: usize, b: u8| -> (u32, u32) {
        let value = |base: u8| u32::from(b.wrapping_sub(base));
        match b {
            b'0' if digits && i == 0 => (0, 1),
            b'1'..=b'9' if digits && i == 0 => (value(b'1'), 9),
            b'0'..=b'9' => (value(b'0'), if hex { 16 } else { 10 }),
            _ if hex => (value(b'a') + 10, 16),
            _ => (value(b'a'), 26),
        }
    };
    let (mut symbols, radix): (Vec<u32>, Vec<u32>) = word.iter().enumerate().map(|(i, b)| alphabet(i, *b)).unzip();
    follow(key, &mut symbols, &radix);
    for (i, b) in word.iter_mut().enumerate() {
        let value = symbols.get(i).copied().unwrap_or(0) as u8;
        *b = match (alphabet(i, *b).1, *b) {
            (1, _) => b'0',
            (9, _) => b'1' + value,
            (16, _) if value >= 10 => b'a' + value - 10,
            (26, _) => b'a' + value,
            _ => b'0' + value,
        };
    }
}

fn symbols_bytes(symbols: &[u32]) -> Vec<u8> {
    symbols.iter().map(|s| *s as u8).collect()
}

/// To the word after this one, in the order that the key gives the words of this kind.
fn follow(key: &Key, symbols: &mut [u32], radix: &[u32]) {
    let kind = symbols_bytes(radix);
    // The network turns the only character that can change by an amount that no other character
    // decides, which would give an order that everybody knows.
    let mut free = symbols.iter_mut().zip(radix).filter(|(_, radix)| **radix > 1);
    if let (Some((symbol, radix)), None) = (free.next(), free.next()) {
        let mut order: Vec<(Vec<u8>, u32)> =
            (0..*radix).map(|s| (key.prf(&[b"symbol", &kind, &[s as u8]], 32), s)).collect();
        order.sort_unstable();
        let after = order.iter().cycle().skip_while(|(_, s)| s != &*symbol).nth(1);
        *symbol = after.map_or(*symbol, |(_, s)| *s);
        return;
    }
    permute(key, &kind, symbols, radix, Way::There);
    for (symbol, radix) in symbols.iter_mut().zip(radix).rev() {
        *symbol = (*symbol + 1) % radix;
        if *symbol != 0 {
            break;
        }
    }
    permute(key, &kind, symbols, radix, Way::Back);
}

/// Through the network or back through it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

fn permute(key: &Key, kind: &[u8], symbols: &mut [u32], radix: &[u32], way: Way) {
    let half = symbols.len() / 2;
    let (left_radix, right_radix) = radix.split_at(half);
    let (left, right) = symbols.split_at_mut(half);
    for i in 0..ROUNDS {
        let round = if way == Way::There { i } else { ROUNDS - 1 - i };
        let (changed, by, radix) =
            if round % 2 == 0 { (&mut *right, &*left, right_radix) } else { (&mut *left, &*right, left_radix) };
        let stream = key.prf(&[b"word", kind, &[round], &symbols_bytes(by)], changed.len() * 4);
        for ((symbol, radix), s) in changed.iter_mut().zip(radix).zip(stream.chunks_exact(4)) {
            let turn = number(s) % radix;
            *symbol = (*symbol + if way == Way::There { turn } else { radix - turn }) % radix;
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |n, b| (n << 8) | u32::from(*b))
}

/// A letter or digit with as many UTF-8 bytes as `c`, chosen by `n`.
fn like(c: char, n: u32) -> char {
    let pick = |base: u32, size: u32| char::from_u32(base + n % size).unwrap_or(c);
    match (c, c.len_utf8()) {
        ('0'..='9', _) => pick(0x30, 10),
        ('A'..='Z', _) => pick(0x41, 26),
        (_, 1) => pick(0x61, 26),
        (_, 2) => pick(0x430, 32),
        (_, 3) => pick(0x4e00, 8192),
        _ => pick(0x20000, 8192),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pseudonyms() -> Pseudonyms {
        Pseudonyms::new(Key([7; 32]))
    }

    fn kind(word: &str) -> Vec<(char, usize)> {
        let of = |c: char| match c {
            '0'..='9' => '0',
            'a'..='z' => 'a',
            'A'..='Z' => 'A',
            _ => 'x',
        };
        word.chars().map(|c| (of(c), c.len_utf8())).collect()
    }

    proptest! {
        #[test]
        fn length_and_kind_stay_and_the_word_does_not(word in "[a-zA-Z0-9äß漢]{2,40}") {
            let new = pseudonyms().word(&word, &|_| false);
            prop_assert_eq!(new.len(), word.len());
            if is_hex(word.as_bytes()) {
                prop_assert!(is_hex(new.as_bytes()));
            } else {
                prop_assert_eq!(kind(&new), kind(&word));
            }
            prop_assert_ne!(&new, &word);
            prop_assert_eq!(pseudonyms().word(&word, &|_| false), new);
        }
    }

    #[test]
    fn different_words_get_different_pseudonyms() {
        let mut p = pseudonyms();
        let mut seen = FxHashSet::default();
        for a in b'a'..=b'z' {
            for b in b'a'..=b'z' {
                let word = String::from_utf8(vec![a, b]).unwrap();
                assert!(word == "id" || seen.insert(p.word(&word, &|w| w == "id")));
            }
        }
        assert!(!seen.contains("id"));
        for n in 1000..9999 {
            let new = p.word(&n.to_string(), &|_| false);
            assert!(!new.starts_with('0') && seen.insert(new));
        }
    }

    #[test]
    fn no_short_word_stays_itself_whatever_the_key() {
        for byte in 0..4 {
            let mut p = Pseudonyms::new(Key([byte; 32]));
            let words = ["a", "A", "7", "aa", "07", "12", "a1", "1a", "ß1", "aß"];
            let more = (b'a'..=b'z').flat_map(|a| (b'a'..=b'z').map(move |b| format!("{}{}", a as char, b as char)));
            let numbers = (1..1000).map(|n| n.to_string());
            for word in words.into_iter().map(str::to_owned).chain(more).chain(numbers) {
                let new = p.word(&word, &|w| w == "id");
                assert!(word == "id" || (new != word && new != "id"), "{word} became {new}");
            }
        }
    }

    #[test]
    fn words_of_one_character_go_where_the_key_says() {
        let under = |byte: u8| {
            let mut p = Pseudonyms::new(Key([byte; 32]));
            (b'a'..=b'z').map(|b| p.word(&char::from(b).to_string(), &|_| false)).collect::<Vec<_>>()
        };
        assert_eq!(under(1).iter().collect::<FxHashSet<_>>().len(), 26);
        assert_ne!(under(1), under(2));
    }

    #[test]
    fn another_key_gives_another_pseudonym_and_keys_are_kept_as_text() {
        let key = Key::random().unwrap();
        assert_eq!(Key::from_hex(&format!("{}\n", key.to_hex())), Some(key.clone()));
        assert_eq!(Key::from_hex("00"), None);
        assert_eq!(format!("{key:?}"), "Key(…)");
        let word = "distinctive";
        assert_ne!(Pseudonyms::new(key).word(word, &|_| false), pseudonyms().word(word, &|_| false));
    }

    #[test]
    fn hex_stays_hex_and_case_is_kept() {
        let mut p = pseudonyms();
        let new = p.word("9d35aa01ff0022ee9d35aa01ff0022ee", &|_| false);
        assert!(is_hex(new.as_bytes()), "{new}");
        let lower = p.word("alice", &|_| false);
        assert_eq!(p.word("Alice", &|_| false).to_lowercase(), lower);
    }

    #[test]
    fn public_addresses_go_and_private_ones_stay() {
        let mut p = pseudonyms();
        let mut map = |a: &str| p.address(a.parse().unwrap()).to_string();
        for same in ["127.0.0.1", "10.1.2.3", "192.168.0.9", "::1", "fe80::1", "fd00::7", "192.0.2.1"] {
            assert_eq!(map(same), same);
        }
        assert!(map("8.8.8.8").starts_with("198.1"));
        assert_eq!(map("8.8.8.8"), map("8.8.8.8"));
        assert_ne!(map("8.8.8.8"), map("8.8.4.4"));
        assert!(map("2606:4700::1111").starts_with("2001:db8::"));
        assert_ne!(map("::ffff:8.8.8.8"), "::ffff:8.8.8.8");
    }
}
