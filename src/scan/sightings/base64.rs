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
    for four in text.as_bytes().chunks(4) {
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

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
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
