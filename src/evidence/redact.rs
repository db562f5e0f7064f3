//! Replaces what could tell secrets, word by word, the same everywhere: in messages, headers, log
//! lines and file names.
//!
//! A word is kept if it is known to everybody ([`vocabulary`](super::vocabulary)), if [`learn`](super::learn)
//! found that rules need it (tool names, names and enums of schemas, ids, numbers), or if it is no
//! longer than [`SHORT_CHARS`]. Every other word gets its pseudonym, whatever it is and however it is
//! written: so base64, percent-encoding and pieces of a secret go with it.

use super::cells::{self, Cell};
use super::pseudonym::{Key, Pseudonyms};
use super::ranges::{self, Range, What};
use super::vocabulary;
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::net::IpAddr;

/// Words up to this length are kept, characters.
pub const SHORT_CHARS: usize = 2;
/// Numbers up to this length are kept where nothing says that they are part of a secret, digits.
pub const SHORT_DIGITS: usize = 3;
/// Pieces of a session id that a log wraps over lines are known from this length, characters.
const PIECE_CHARS: usize = 6;

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A message, header or request target.
    Wire,
    /// A log.
    Log,
}

/// What kind of thing was replaced, for the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Letters, or letters and digits.
    Word,
    /// Digits alone.
    Number,
    /// Hexadecimal: session ids, hashes, cursors.
    Hex,
    /// Public addresses.
    Address,
    /// Dates outside the time of the inputs.
    Date,
    /// SHA-256 of a message, which became that of the redacted message.
    Hash,
}

impl Kind {
    /// As the summary spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Word => "words",
            Kind::Number => "numbers",
            Kind::Hex => "hexadecimal",
            Kind::Address => "addresses",
            Kind::Date => "dates",
            Kind::Hash => "hashes",
        }
    }
}

/// What is known of the inputs, and what the user wants.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Words that rules need, in lower case.
    pub kept: FxHashSet<String>,
    /// Numbers that stood as such in messages, and ports.
    pub numbers: FxHashSet<String>,
    /// Numbers that stood in strings of messages, in credentials, or in queries.
    pub secret_numbers: FxHashSet<String>,
    /// Words of credentials, which are never kept back to save a finding.
    pub secrets: FxHashSet<String>,
    /// Words that `--redact` matched, in lower case: replaced wherever they stand.
    pub forced: FxHashSet<String>,
    /// Addresses that `--redact` matched.
    pub forced_addresses: FxHashSet<IpAddr>,
    /// Words of session ids, which logs wrap over lines.
    pub sessions: FxHashSet<String>,
    /// Words kept back because a finding needs them, in lower case.
    pub kept_back: FxHashSet<String>,
    /// Dates from the first to the second are kept.
    pub days: Option<(Time, Time)>,
    /// `--no-redact`.
    pub is_off: bool,
}

impl Known {
    /// Did `--redact` match a word of this?
    pub fn forces(&self, text: &[u8]) -> bool {
        !self.forced.is_empty() && words(text).iter().any(|w| self.forced.contains(&w.to_lowercase()))
    }

    /// Is this word kept wherever it stands?
    pub fn keeps(&self, word: &str) -> bool {
        let lower = word.to_lowercase();
        if self.forced.contains(&lower) {
            return false;
        }
        if self.kept_back.contains(&lower) {
            return true;
        }
        if word.bytes().all(|b| b.is_ascii_digit()) {
            let is_free = self.numbers.contains(word) || !self.secret_numbers.contains(word);
            return word.len() <= SHORT_DIGITS || is_free;
        }
        word.chars().count() <= SHORT_CHARS
            || vocabulary::is_known(&lower)
            || is_quantity(&lower)
            || self.kept.contains(&lower)
            || self.numbers.contains(word)
    }
}

/// `120ms`, `3s`: a short number with its unit.
fn is_quantity(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = word.len() - unit.len();
    (1..=7).contains(&digits)
        && matches!(unit, "ms" | "us" | "ns" | "s" | "m" | "h" | "d" | "b" | "kb" | "mb" | "gb" | "ki" | "mi")
}

/// The words of a text.
pub fn words(text: &[u8]) -> Vec<String> {
    let (mut all, mut word, mut at) = (vec![], String::new(), 0);
    while at < text.len() {
        let cell = cells::first(text.get(at..).unwrap_or_default());
        match cell.letter {
            Some(c) => word.push(c),
            None if !word.is_empty() => all.push(std::mem::take(&mut word)),
            None => {}
        }
        at += cell.bytes.max(1);
    }
    if !word.is_empty() {
        all.push(word);
    }
    all
}

/// Replaces words.
pub struct Redactor {
    known: Known,
    pseudonyms: Pseudonyms,
    pieces: FxHashMap<String, (String, usize)>,
    /// The session id of which a line ended with a piece, and how far that reached.
    open_piece: Option<(String, usize)>,
    hashes: FxHashMap<String, String>,
    replaced: FxHashMap<Kind, FxHashMap<String, u64>>,
}

impl Redactor {
    /// Knows what to keep, and the key.
    pub fn new(known: Known, key: Key) -> Redactor {
        let mut pieces = FxHashMap::default();
        for id in known.sessions.iter().filter(|id| id.is_ascii()) {
            for at in 0..=id.len().saturating_sub(PIECE_CHARS) {
                if let Some(piece) = id.get(at..at + PIECE_CHARS) {
                    pieces.entry(piece.to_owned()).or_insert_with(|| (id.clone(), at));
                }
            }
        }
        Redactor {
            known,
            pseudonyms: Pseudonyms::new(key),
            pieces,
            open_piece: None,
            hashes: FxHashMap::default(),
            replaced: FxHashMap::default(),
        }
    }

    /// A message whose SHA-256 was `old` now has `new` (lower-case hex): logs that name it follow.
    pub fn hash(&mut self, old: String, new: String) {
        self.hashes.insert(old, new);
    }

    /// Everything that was replaced, with how often.
    pub fn replaced(&self) -> &FxHashMap<Kind, FxHashMap<String, u64>> {
        &self.replaced
    }

    /// What it knows.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// An address as it is to be shown.
    pub fn address(&mut self, address: IpAddr) -> IpAddr {
        if self.known.is_off {
            return address;
        }
        let new = match self.known.forced_addresses.contains(&address) {
            true => self.pseudonyms.any_address(address),
            false => self.pseudonyms.address(address),
        };
        if new != address {
            self.count(Kind::Address, address.to_string());
        }
        new
    }

    /// Text without what could tell secrets. Of the same length but for addresses.
    pub fn text(&mut self, text: &[u8], from: From) -> Vec<u8> {
        if self.known.is_off {
            return text.to_vec();
        }
        let ranges = ranges::find(text, from == From::Log);
        let mut out = Vec::with_capacity(text.len());
        let mut word = Word::default();
        let mut next = ranges.iter().peekable();
        let mut digits_until = 0;
        let mut at = 0;
        while at < text.len() {
            while let Some(passed) = next.next_if(|r| r.from < at) {
                if passed.what == What::Secret {
                    digits_until = digits_until.max(passed.to);
                }
            }
            if let Some(range) = next.peek().filter(|r| r.from == at) {
                if range.what == What::Secret {
                    digits_until = digits_until.max(range.to);
                    next.next();
                    continue;
                }
                self.flush(&mut word, at <= digits_until, &mut out);
                self.whole(text, range, from, &mut out);
                at = range.to;
                continue;
            }
            let cell = cells::first(text.get(at..).unwrap_or_default());
            match cell.letter {
                Some(c) => word.push(c, cell),
                None => {
                    self.flush(&mut word, at <= digits_until, &mut out);
                    out.extend_from_slice(text.get(at..at + cell.bytes).unwrap_or_default());
                }
            }
            at += cell.bytes.max(1);
        }
        self.flush(&mut word, at <= digits_until, &mut out);
        out
    }

    /// Words alone, whatever they make together.
    fn plain(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let (mut word, mut at) = (Word::default(), 0);
        while at < text.len() {
            let cell = cells::first(text.get(at..).unwrap_or_default());
            match cell.letter {
                Some(c) => word.push(c, cell),
                None => {
                    self.flush(&mut word, false, out);
                    out.extend_from_slice(text.get(at..at + cell.bytes).unwrap_or_default());
                }
            }
            at += cell.bytes.max(1);
        }
        self.flush(&mut word, false, out);
    }

    /// Text that is UTF-8.
    pub fn string(&mut self, text: &str, from: From) -> String {
        String::from_utf8_lossy(&self.text(text.as_bytes(), from)).into_owned()
    }

    /// Something that is treated as one.
    fn whole(&mut self, text: &[u8], range: &Range, from: From, out: &mut Vec<u8>) {
        let part = text.get(range.from..range.to).unwrap_or_default();
        let as_text = String::from_utf8_lossy(part).into_owned();
        match range.what {
            What::Phrase if self.known.forces(part) => self.plain(part, out),
            What::Phrase | What::Secret => out.extend_from_slice(part),
            What::Address(address) => {
                let new = self.address(address);
                out.extend_from_slice(if new == address { as_text } else { new.to_string() }.as_bytes());
            }
            What::Date(day) => {
                let is_near = self.known.days.is_some_and(|(from, to)| from <= day && day <= to);
                if is_near {
                    out.extend_from_slice(part);
                } else {
                    out.extend_from_slice(self.date(&as_text).as_bytes());
                }
            }
            What::Bytes => out.extend_from_slice(&self.byte_array(part, from)),
        }
    }

    /// `2026-11-29…` as another valid date; the time of day stays.
    fn date(&mut self, text: &str) -> String {
        let day = text.get(..10).unwrap_or(text);
        self.count(Kind::Date, day.to_owned());
        let digits = self.pseudonyms.word(&format!("day{}", day.replace('-', "")), &|_| false);
        let n = |from: usize| digits.get(from..from + 2).and_then(|d| d.parse::<u32>().ok()).unwrap_or(0);
        format!("19{:02}-{:02}-{:02}{}", n(3), n(5) % 12 + 1, n(7) % 28 + 1, text.get(10..).unwrap_or(""))
    }

    /// `[83,116,…]`, as journals write messages with control characters.
    fn byte_array(&mut self, part: &[u8], from: From) -> Vec<u8> {
        let inside = String::from_utf8_lossy(part);
        let bytes: Vec<u8> = inside.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        let new = self.text(&bytes, from);
        let list: Vec<String> = new.iter().map(u8::to_string).collect();
        format!("[{}]", list.join(",")).into_bytes()
    }

    fn flush(&mut self, word: &mut Word, with_digits: bool, out: &mut Vec<u8>) {
        if word.cells.is_empty() {
            return;
        }
        let new = self.word(&word.text, with_digits);
        for (c, cell) in new.chars().zip(&word.cells) {
            cells::write(c, cell.form, out);
        }
        word.text.clear();
        word.cells.clear();
    }

    fn word(&mut self, word: &str, with_digits: bool) -> String {
        if let Some(new) = self.hashes.get(word) {
            let new = new.clone();
            self.count(Kind::Hash, word.to_owned());
            return new;
        }
        let is_number = word.bytes().all(|b| b.is_ascii_digit());
        if let Some((new, whole)) = self.piece(word) {
            self.count(Kind::Hex, whole);
            return new;
        }
        let is_exposed = with_digits && is_number && !self.known.kept_back.contains(word);
        if self.known.keeps(word) && !is_exposed {
            return word.to_owned();
        }
        let is_hex = word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
        self.count(
            if is_number {
                Kind::Number
            } else if is_hex {
                Kind::Hex
            } else {
                Kind::Word
            },
            word.to_owned(),
        );
        let known = &self.known;
        self.pseudonyms.word(word, &|w| !w.bytes().all(|b| b.is_ascii_digit()) && known.keeps(w))
    }

    /// A piece of a session id that a log wrapped: the same piece of its pseudonym.
    fn piece(&mut self, word: &str) -> Option<(String, String)> {
        let open = self.open_piece.take();
        let continued = open.filter(|(id, at)| id.get(*at..).is_some_and(|rest| rest.starts_with(word)));
        let found = || {
            self.pieces
                .get(word.get(..PIECE_CHARS)?)
                .filter(|(id, at)| id.get(*at..).is_some_and(|r| r.starts_with(word)))
                .cloned()
        };
        let (id, at) = continued.or_else(found)?;
        if self.known.kept_back.contains(&id.to_lowercase()) {
            return None;
        }
        let known = &self.known;
        let whole = self.pseudonyms.word(&id, &|w| known.keeps(w));
        let end = at + word.len();
        let new = whole.get(at..end)?.to_owned();
        if end < id.len() {
            self.open_piece = Some((id.clone(), end));
        }
        Some((new, id))
    }

    fn count(&mut self, kind: Kind, what: String) {
        *self.replaced.entry(kind).or_default().entry(what).or_default() += 1;
    }
}

#[derive(Default)]
struct Word {
    text: String,
    cells: Vec<Cell>,
}

impl Word {
    fn push(&mut self, c: char, cell: Cell) {
        self.text.push(c);
        self.cells.push(cell);
    }
}
