//! What the content of requests and replies gives away about who belongs to whom:
//! argument values that a reply may echo, and order-free fingerprints of arguments.

use super::scan::{self, Cursor};
use crate::model::limits::ARGUMENT_VALUES;
use memchr::memmem;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Shortest argument value that can be distinctive, bytes (the contract's "at least 6 characters").
const DISTINCTIVE_BYTES: usize = 6;

/// The values of a call's arguments that could be recognised in a reply: for each string or number
/// of at least 6 characters, its longest run that every JSON encoder writes alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentValues(pub Vec<Box<[u8]>>);

impl ArgumentValues {
    /// Collects the values of `arguments` (exact JSON text), at most
    /// [`ARGUMENT_VALUES`]; keys are no values.
    pub fn of(arguments: &[u8]) -> ArgumentValues {
        let mut out = vec![];
        collect(arguments, &mut out);
        out.sort_unstable();
        out.dedup();
        ArgumentValues(out)
    }

    /// Does this hold `value`, or one that contains it or is contained in it?
    pub fn overlaps(&self, value: &[u8]) -> bool {
        overlap(&self.0, value)
    }
}

/// Do the values hold `value`, or one that contains it or is contained in it?
pub(super) fn overlap(values: &[Box<[u8]>], value: &[u8]) -> bool {
    values.iter().any(|v| occurs(v, value) || occurs(value, v))
}

fn collect(value: &[u8], out: &mut Vec<Box<[u8]>>) {
    if out.len() >= ARGUMENT_VALUES {
        return;
    }
    match value.first() {
        Some(b'{') => drop(scan::members(value, |_, v| collect(v, out))),
        Some(b'[') => drop(scan::elements(value, |v| collect(v, out))),
        Some(b'"') => {
            if let Some(text) = scan::text(value)
                && let Some(run) = plain_run(text.as_bytes())
            {
                out.push(run.into());
            }
        }
        Some(b'-' | b'0'..=b'9') if value.len() >= DISTINCTIVE_BYTES => out.push(value.into()),
        _ => {}
    }
}

/// The longest run of characters that JSON encoders leave as they are, if it is long enough.
fn plain_run(text: &[u8]) -> Option<&[u8]> {
    let plain = |b: &u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\' | b'<' | b'>' | b'&' | b'\'' | b'+');
    text.split(|b| !plain(b))
        .map(<[u8]>::trim_ascii)
        .max_by_key(|run| run.len())
        .filter(|run| run.len() >= DISTINCTIVE_BYTES)
}

/// Does `needle` stand in `body` as a word of its own (not inside a longer word or number)?
pub fn occurs(body: &[u8], needle: &[u8]) -> bool {
    match needle.len().cmp(&body.len()) {
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => needle == body,
        std::cmp::Ordering::Less => match Once::new(needle, body) {
            Some(once) => once.occurs(body),
            None => Needle::new(needle).occurs(body),
        },
    }
}

/// A value that is looked for in one body: a finder that is made ready in no time.
#[cfg(target_arch = "x86_64")]
struct Once<'a>(memchr::arch::x86_64::avx2::packedpair::Finder, &'a [u8]);

#[cfg(target_arch = "x86_64")]
impl<'a> Once<'a> {
    /// None where the processor cannot, or the body is too short for it.
    fn new(needle: &'a [u8], body: &[u8]) -> Option<Once<'a>> {
        let finder = memchr::arch::x86_64::avx2::packedpair::Finder::new(needle)?;
        (body.len() >= finder.min_haystack_len()).then_some(Once(finder, needle))
    }

    fn occurs(&self, body: &[u8]) -> bool {
        let Once(finder, needle) = self;
        is_found(body, needle, |rest| match rest.len() >= finder.min_haystack_len() {
            true => finder.find(rest, needle),
            // Too little is left for it.
            false => rest.windows(needle.len()).position(|w| w == *needle),
        })
    }
}

#[cfg(not(target_arch = "x86_64"))]
enum Once {}

#[cfg(not(target_arch = "x86_64"))]
impl Once {
    fn new(_: &[u8], _: &[u8]) -> Option<Once> {
        None
    }

    fn occurs(&self, _: &[u8]) -> bool {
        match *self {}
    }
}

/// Is the value, of which `find` gives the next place, somewhere in `body` a word of its own?
fn is_found(body: &[u8], needle: &[u8], find: impl Fn(&[u8]) -> Option<usize>) -> bool {
    let mut from = 0;
    while let Some(at) = body.get(from..).and_then(&find).map(|at| from + at) {
        if is_word(body, needle, at) {
            return true;
        }
        from = at + 1;
    }
    false
}

/// Does what stands at `at` in `body` stand there as a word of its own?
fn is_word(body: &[u8], needle: &[u8], at: usize) -> bool {
    let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    let (first, last) = (needle.first(), needle.last());
    let before = at.checked_sub(1).and_then(|j| body.get(j));
    let after = body.get(at + needle.len());
    // The letter of an escape such as `\n` is no part of the word.
    let escaped = at.checked_sub(2).and_then(|j| body.get(j)) == Some(&b'\\');
    let glued = word(first) && word(before) && !escaped || word(last) && word(after);
    !glued
}

/// A value that is looked for in several bodies.
pub struct Needle<'a>(memmem::Finder<'a>);

impl<'a> Needle<'a> {
    /// Prepares to look for `value`.
    pub fn new(value: &'a [u8]) -> Needle<'a> {
        Needle(memmem::Finder::new(value))
    }

    /// Does it stand in `body` as a word of its own?
    pub fn occurs(&self, body: &[u8]) -> bool {
        is_found(body, self.0.needle(), |rest| self.0.find(rest))
    }
}

/// A fingerprint of JSON text that does not depend on white space, the order of members, or how
/// strings are escaped: equal for equal values.
pub fn fingerprint(value: &[u8]) -> u64 {
    let mut c = Cursor::new(value);
    c.value().map_or(0, of_value)
}

fn of_value(value: &[u8]) -> u64 {
    let mut h = FxHasher::default();
    match value.first() {
        Some(b'{') => {
            let mut sum = 1u64;
            scan::members(value, |k, v| {
                let mut m = FxHasher::default();
                match memchr::memchr(b'\\', k) {
                    None => String::from_utf8_lossy(k).hash(&mut m),
                    Some(_) => unquoted(k).hash(&mut m),
                }
                of_value(v).hash(&mut m);
                sum = sum.wrapping_add(mix(m.finish()));
            });
            ('{', sum).hash(&mut h);
        }
        Some(b'[') => {
            '['.hash(&mut h);
            scan::elements(value, |v| of_value(v).hash(&mut h));
        }
        Some(b'"') => ('"', scan::text(value)).hash(&mut h),
        // 1 and 1.0 are one number to JavaScript clients and two texts.
        _ => match std::str::from_utf8(value).ok().and_then(|s| s.parse::<f64>().ok()) {
            Some(n) => ('0', n.to_bits()).hash(&mut h),
            None => ('a', value).hash(&mut h),
        },
    }
    mix(h.finish())
}

fn unquoted(key: &[u8]) -> String {
    let mut quoted = Vec::with_capacity(key.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(key);
    quoted.push(b'"');
    scan::text(&quoted).map_or_else(String::new, |t| t.into_owned())
}

/// Spreads a hash over all bits, so that sums of them do not cancel out (splitmix64's finish).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_every_encoder_writes_alike() {
        let got = ArgumentValues::of(
            br#"{"id":"trail-0042","n":5,"m":1234567,"deep":[{"q":"say \"hello there\" now"}],"s":"short"}"#,
        );
        let want: Vec<&[u8]> = vec![b"1234567", b"hello there", b"trail-0042"];
        assert_eq!(got.0.iter().map(|b| &**b).collect::<Vec<_>>(), want);
    }

    #[test]
    fn an_echo_is_a_word_of_its_own() {
        assert!(occurs(br#"{"text":"{\"id\":\"trail-0042\"}"}"#, b"trail-0042"));
        assert!(occurs(br#""a\ntrail-0042\n""#, b"trail-0042"));
        assert!(!occurs(b"trail-00421", b"trail-0042"));
        assert!(!occurs(b"xtrail-0042", b"trail-0042"));
        assert!(occurs(b"12345678 x 1234567.", b"1234567"));
    }

    proptest::proptest! {
        #[test]
        fn both_ways_to_look_find_the_same(body in "[ab1 \\\\n.]{0,120}", at in 0usize..120, len in 1usize..9) {
            let needle: Vec<u8> = body.bytes().cycle().skip(at).take(len).collect();
            let found = Needle::new(&needle).occurs(body.as_bytes());
            if needle.len() < body.len() {
                proptest::prop_assert_eq!(occurs(body.as_bytes(), &needle), found);
            }
        }
    }

    #[test]
    fn fingerprints_ignore_form_only() {
        let f = |s: &str| fingerprint(s.as_bytes());
        assert_eq!(f(r#"{"a":1,"b":[true,"\u0041"]}"#), f(r#" { "b" : [true, "A"], "a": 1.0 } "#));
        assert_ne!(f(r#"{"a":1,"b":2}"#), f(r#"{"a":2,"b":1}"#));
        assert_ne!(f(r#"["x","y"]"#), f(r#"["y","x"]"#));
        assert_ne!(f(r#"{"a":"1"}"#), f(r#"{"a":1}"#));
    }
}
