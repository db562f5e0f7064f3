//! Numbers and texts as few bytes: what stands near each other is alike, so times and lines are told by their
//! distance, and a text that came before by its number.

use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Longer texts are not looked for among those that came before.
const KEPT_BYTES: usize = 256;

/// Bytes being written.
#[derive(Default)]
pub struct Writer {
    /// What was written.
    pub bytes: Vec<u8>,
    texts: FxHashMap<Arc<str>, u64>,
    /// The last place and time.
    pub last: Last,
}

/// Bytes being read. What does not fit ends the reading: every getter gives none then.
pub struct Reader<'a> {
    bytes: &'a [u8],
    texts: Vec<Arc<str>>,
    /// The last place and time.
    pub last: Last,
}

/// What the next place and time are told from.
#[derive(Clone, Copy, Default)]
pub struct Last {
    /// Line.
    pub number: u64,
    /// Time, ns.
    pub ns: i64,
    /// Number of the input that is read; it is not written.
    pub input: u32,
}

impl Writer {
    /// A number without a sign.
    pub fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    /// A length and as many bytes.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

impl<'a> Reader<'a> {
    /// Begins to read; places get this number of the input.
    pub fn new(bytes: &'a [u8], input: u32) -> Reader<'a> {
        Reader { bytes, texts: vec![], last: Last { input, ..Last::default() } }
    }

    /// Was all of it read?
    pub fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// A number without a sign.
    pub fn number(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            n |= u64::from(b & 0x7f).checked_shl(shift)?;
            if b < 0x80 {
                return Some(n);
            }
        }
        None
    }

    /// As many bytes as the length before them says.
    pub fn blob(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (blob, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(blob)
    }
}

/// What can be written and read back.
pub trait Pack: Sized {
    /// Writes it.
    fn put(&self, w: &mut Writer);
    /// Reads it back; none: the bytes are not one.
    fn get(r: &mut Reader<'_>) -> Option<Self>;
}

impl Pack for bool {
    fn put(&self, w: &mut Writer) {
        w.bytes.push(u8::from(*self));
    }
    fn get(r: &mut Reader<'_>) -> Option<bool> {
        Some(r.byte()? != 0)
    }
}

impl Pack for u64 {
    fn put(&self, w: &mut Writer) {
        w.number(*self);
    }
    fn get(r: &mut Reader<'_>) -> Option<u64> {
        r.number()
    }
}

impl Pack for u32 {
    fn put(&self, w: &mut Writer) {
        w.number(u64::from(*self));
    }
    fn get(r: &mut Reader<'_>) -> Option<u32> {
        r.number()?.try_into().ok()
    }
}

impl Pack for u16 {
    fn put(&self, w: &mut Writer) {
        w.number(u64::from(*self));
    }
    fn get(r: &mut Reader<'_>) -> Option<u16> {
        r.number()?.try_into().ok()
    }
}

impl Pack for i64 {
    fn put(&self, w: &mut Writer) {
        w.number(((self << 1) ^ (self >> 63)).cast_unsigned());
    }
    fn get(r: &mut Reader<'_>) -> Option<i64> {
        let n = r.number()?;
        Some((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
    }
}

impl<T: Pack> Pack for Option<T> {
    fn put(&self, w: &mut Writer) {
        self.is_some().put(w);
        if let Some(value) = self {
            value.put(w);
        }
    }
    fn get(r: &mut Reader<'_>) -> Option<Option<T>> {
        Some(if bool::get(r)? { Some(T::get(r)?) } else { None })
    }
}

impl Pack for Arc<str> {
    fn put(&self, w: &mut Writer) {
        if let Some(n) = w.texts.get(self) {
            return w.number(n + 1);
        }
        w.number(0);
        w.blob(self.as_bytes());
        if self.len() <= KEPT_BYTES {
            let next = w.texts.len() as u64;
            w.texts.insert(self.clone(), next);
        }
    }
    fn get(r: &mut Reader<'_>) -> Option<Arc<str>> {
        let n = r.number()?;
        if let Some(n) = n.checked_sub(1) {
            return r.texts.get(usize::try_from(n).ok()?).cloned();
        }
        let text: Arc<str> = Arc::from(std::str::from_utf8(r.blob()?).ok()?);
        if text.len() <= KEPT_BYTES {
            r.texts.push(text.clone());
        }
        Some(text)
    }
}

impl Pack for Arc<[u8]> {
    fn put(&self, w: &mut Writer) {
        w.blob(self);
    }
    fn get(r: &mut Reader<'_>) -> Option<Arc<[u8]>> {
        r.blob().map(Arc::from)
    }
}

impl Pack for IpAddr {
    fn put(&self, w: &mut Writer) {
        match self {
            IpAddr::V4(a) => w.blob(&a.octets()),
            IpAddr::V6(a) => w.blob(&a.octets()),
        }
    }
    fn get(r: &mut Reader<'_>) -> Option<IpAddr> {
        let bytes = r.blob()?;
        let v4 = || Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)));
        v4().or_else(|| Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))))
    }
}

impl Pack for Time {
    fn put(&self, w: &mut Writer) {
        self.ns().wrapping_sub(w.last.ns).put(w);
        w.last.ns = self.ns();
        w.bytes.push(self.digits());
    }
    fn get(r: &mut Reader<'_>) -> Option<Time> {
        let ns = i64::get(r)?.wrapping_add(r.last.ns);
        r.last.ns = ns;
        Some(Time::from_ns(ns, r.byte()?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Pack, Reader, Writer};
    use crate::model::time::Time;
    use std::net::IpAddr;
    use std::sync::Arc;

    fn again<T: Pack + PartialEq + std::fmt::Debug>(all: &[T]) {
        let mut w = Writer::default();
        all.iter().for_each(|x| x.put(&mut w));
        let mut r = Reader::new(&w.bytes, 0);
        for x in all {
            assert_eq!(T::get(&mut r).as_ref(), Some(x));
        }
        assert!(r.is_done());
        // Whatever is cut off, nothing panics, and the last one is missing.
        for end in 0..w.bytes.len() {
            let mut r = Reader::new(&w.bytes[..end], 0);
            assert!(all.iter().map_while(|_| T::get(&mut r)).count() < all.len());
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        again(&[0u64, 1, 127, 128, 300, u64::MAX]);
        again(&[0i64, -1, 1, i64::MIN, i64::MAX, -300]);
        again(&[None, Some(7u32), Some(u32::MAX)]);
        let long = "x".repeat(300);
        again(&["a", "b", "a", "", &long, &long, "b"].map(Arc::<str>::from));
        again(&["192.0.2.7", "2001:db8::7"].map(|a| a.parse::<IpAddr>().unwrap()));
        again(&[Time::from_ns(5, 3), Time::from_ns(i64::MAX, 9), Time::from_ns(i64::MIN, 0)]);
        let mut w = Writer::default();
        Time::from_ns(1, 3).put(&mut w);
        assert_eq!(Time::get(&mut Reader::new(&w.bytes, 0)).unwrap().digits(), 3);
    }
}
