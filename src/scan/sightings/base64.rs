//! Base64 (RFC 4648 §4) without padding: payloads are text, since the pipes of cluster engines carry lines.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for n in 0..=three.len() {
            let digit = DIGITS.get((bits >> (18 - 6 * n) & 63) as usize).copied().unwrap_or(b'A');
            out.push(char::from(digit));
        }
    }
    out
}

/// Text as bytes; none if it is no base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (fours, rest) = text.as_bytes().as_chunks::<4>();
    for four in fours {
        let [a, b, c, d] = four.map(|b| VALUES[usize::from(b)]);
        // What is no digit has a bit that none has.
        if (a | b | c | d) & NONE != 0 {
            return None;
        }
        let bits = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
        let [_, bytes @ ..] = bits.to_be_bytes();
        out.extend_from_slice(&bytes);
    }
    for four in rest.chunks(4) {
        let mut bits = 0u32;
        for b in four {
            bits = bits << 6 | value(*b)?;
        }
        bits <<= 6 * (4 - four.len());
        // One digit alone is no byte.
        let bytes = four.len().checked_sub(1).filter(|n| *n > 0)?;
        out.extend_from_slice(bits.to_be_bytes().get(1..=bytes)?);
    }
    Some(out)
}

/// What [`VALUES`] has for a byte that is no digit.
const NONE: u8 = 0x80;

/// Values of digits.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut n = 0;
    while n < 64 {
        values[DIGITS[n] as usize] = n as u8;
        n += 1;
    }
    values
};

fn value(digit: u8) -> Option<u32> {
    let value = VALUES[usize::from(digit)];
    (value != NONE).then_some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn rfc_4648_section_10_without_padding() {
        let all = [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in all {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!((decode("Zg="), decode("Z"), decode("Zm9vZ")), (None, None, None));
        let every: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&every)), Some(every));
    }
}
