//! The Huffman code of HPACK (RFC 7541 §5.2, Appendix B).

/// Code and length in bits of every symbol; the last is EOS.
const CODES: [(u32, u8); 257] = [
    (0x1ff8, 13),
    (0x7fffd8, 23),
    (0xfffffe2, 28),
    (0xfffffe3, 28),
    (0xfffffe4, 28),
    (0xfffffe5, 28),
    (0xfffffe6, 28),
    (0xfffffe7, 28),
    (0xfffffe8, 28),
    (0xffffea, 24),
    (0x3ffffffc, 30),
    (0xfffffe9, 28),
    (0xfffffea, 28),
    (0x3ffffffd, 30),
    (0xfffffeb, 28),
    (0xfffffec, 28),
    (0xfffffed, 28),
    (0xfffffee, 28),
    (0xfffffef, 28),
    (0xffffff0, 28),
    (0xffffff1, 28),
    (0xffffff2, 28),
    (0x3ffffffe, 30),
    (0xffffff3, 28),
    (0xffffff4, 28),
    (0xffffff5, 28),
    (0xffffff6, 28),
    (0xffffff7, 28),
    (0xffffff8, 28),
    (0xffffff9, 28),
    (0xffffffa, 28),
    (0xffffffb, 28),
    (0x14, 6),
    (0x3f8, 10),
    (0x3f9, 10),
    (0xffa, 12),
    (0x1ff9, 13),
    (0x15, 6),
    (0xf8, 8),
    (0x7fa, 11),
    (0x3fa, 10),
    (0x3fb, 10),
    (0xf9, 8),
    (0x7fb, 11),
    (0xfa, 8),
    (0x16, 6),
    (0x17, 6),
    (0x18, 6),
    (0x0, 5),
    (0x1, 5),
    (0x2, 5),
    (0x19, 6),
    (0x1a, 6),
    (0x1b, 6),
    (0x1c, 6),
    (0x1d, 6),
    (0x1e, 6),
    (0x1f, 6),
    (0x5c, 7),
    (0xfb, 8),
    (0x7ffc, 15),
    (0x20, 6),
    (0xffb, 12),
    (0x3fc, 10),
    (0x1ffa, 13),
    (0x21, 6),
    (0x5d, 7),
    (0x5e, 7),
    (0x5f, 7),
    (0x60, 7),
    (0x61, 7),
    (0x62, 7),
    (0x63, 7),
    (0x64, 7),
    (0x65, 7),
    (0x66, 7),
    (0x67, 7),
    (0x68, 7),
    (0x69, 7),
    (0x6a, 7),
    (0x6b, 7),
    (0x6c, 7),
    (0x6d, 7),
    (0x6e, 7),
    (0x6f, 7),
    (0x70, 7),
    (0x71, 7),
    (0x72, 7),
    (0xfc, 8),
    (0x73, 7),
    (0xfd, 8),
    (0x1ffb, 13),
    (0x7fff0, 19),
    (0x1ffc, 13),
    (0x3ffc, 14),
    (0x22, 6),
    (0x7ffd, 15),
    (0x3, 5),
    (0x23, 6),
    (0x4, 5),
    (0x24, 6),
    (0x5, 5),
    (0x25, 6),
    (0x26, 6),
    (0x27, 6),
    (0x6, 5),
    (0x74, 7),
    (0x75, 7),
    (0x28, 6),
    (0x29, 6),
    (0x2a, 6),
    (0x7, 5),
    (0x2b, 6),
    (0x76, 7),
    (0x2c, 6),
    (0x8, 5),
    (0x9, 5),
    (0x2d, 6),
    (0x77, 7),
    (0x78, 7),
    (0x79, 7),
    (0x7a, 7),
    (0x7b, 7),
    (0x7ffe, 15),
    (0x7fc, 11),
    (0x3ffd, 14),
    (0x1ffd, 13),
    (0xffffffc, 28),
    (0xfffe6, 20),
    (0x3fffd2, 22),
    (0xfffe7, 20),
    (0xfffe8, 20),
    (0x3fffd3, 22),
    (0x3fffd4, 22),
    (0x3fffd5, 22),
    (0x7fffd9, 23),
    (0x3fffd6, 22),
    (0x7fffda, 23),
    (0x7fffdb, 23),
    (0x7fffdc, 23),
    (0x7fffdd, 23),
    (0x7fffde, 23),
    (0xffffeb, 24),
    (0x7fffdf, 23),
    (0xffffec, 24),
    (0xffffed, 24),
    (0x3fffd7, 22),
    (0x7fffe0, 23),
    (0xffffee, 24),
    (0x7fffe1, 23),
    (0x7fffe2, 23),
    (0x7fffe3, 23),
    (0x7fffe4, 23),
    (0x1fffdc, 21),
    (0x3fffd8, 22),
    (0x7fffe5, 23),
    (0x3fffd9, 22),
    (0x7fffe6, 23),
    (0x7fffe7, 23),
    (0xffffef, 24),
    (0x3fffda, 22),
    (0x1fffdd, 21),
    (0xfffe9, 20),
    (0x3fffdb, 22),
    (0x3fffdc, 22),
    (0x7fffe8, 23),
    (0x7fffe9, 23),
    (0x1fffde, 21),
    (0x7fffea, 23),
    (0x3fffdd, 22),
    (0x3fffde, 22),
    (0xfffff0, 24),
    (0x1fffdf, 21),
    (0x3fffdf, 22),
    (0x7fffeb, 23),
    (0x7fffec, 23),
    (0x1fffe0, 21),
    (0x1fffe1, 21),
    (0x3fffe0, 22),
    (0x1fffe2, 21),
    (0x7fffed, 23),
    (0x3fffe1, 22),
    (0x7fffee, 23),
    (0x7fffef, 23),
    (0xfffea, 20),
    (0x3fffe2, 22),
    (0x3fffe3, 22),
    (0x3fffe4, 22),
    (0x7ffff0, 23),
    (0x3fffe5, 22),
    (0x3fffe6, 22),
    (0x7ffff1, 23),
    (0x3ffffe0, 26),
    (0x3ffffe1, 26),
    (0xfffeb, 20),
    (0x7fff1, 19),
    (0x3fffe7, 22),
    (0x7ffff2, 23),
    (0x3fffe8, 22),
    (0x1ffffec, 25),
    (0x3ffffe2, 26),
    (0x3ffffe3, 26),
    (0x3ffffe4, 26),
    (0x7ffffde, 27),
    (0x7ffffdf, 27),
    (0x3ffffe5, 26),
    (0xfffff1, 24),
    (0x1ffffed, 25),
    (0x7fff2, 19),
    (0x1fffe3, 21),
    (0x3ffffe6, 26),
    (0x7ffffe0, 27),
    (0x7ffffe1, 27),
    (0x3ffffe7, 26),
    (0x7ffffe2, 27),
    (0xfffff2, 24),
    (0x1fffe4, 21),
    (0x1fffe5, 21),
    (0x3ffffe8, 26),
    (0x3ffffe9, 26),
    (0xffffffd, 28),
    (0x7ffffe3, 27),
    (0x7ffffe4, 27),
    (0x7ffffe5, 27),
    (0xfffec, 20),
    (0xfffff3, 24),
    (0xfffed, 20),
    (0x1fffe6, 21),
    (0x3fffe9, 22),
    (0x1fffe7, 21),
    (0x1fffe8, 21),
    (0x7ffff3, 23),
    (0x3fffea, 22),
    (0x3fffeb, 22),
    (0x1ffffee, 25),
    (0x1ffffef, 25),
    (0xfffff4, 24),
    (0xfffff5, 24),
    (0x3ffffea, 26),
    (0x7ffff4, 23),
    (0x3ffffeb, 26),
    (0x7ffffe6, 27),
    (0x3ffffec, 26),
    (0x3ffffed, 26),
    (0x7ffffe7, 27),
    (0x7ffffe8, 27),
    (0x7ffffe9, 27),
    (0x7ffffea, 27),
    (0x7ffffeb, 27),
    (0xffffffe, 28),
    (0x7ffffec, 27),
    (0x7ffffed, 27),
    (0x7ffffee, 27),
    (0x7ffffef, 27),
    (0x7fffff0, 27),
    (0x3ffffee, 26),
    (0x3fffffff, 30),
];

/// Longest code, bits.
const LONGEST: usize = 30;

/// Symbols in order of their codes, and for each length the first code and its place in that order.
/// Codes of one length are consecutive, as in any canonical code.
struct Canonical {
    symbols: [u16; 257],
    first: [u32; LONGEST + 1],
    start: [u16; LONGEST + 1],
    count: [u16; LONGEST + 1],
}

const fn canonical() -> Canonical {
    let mut table =
        Canonical { symbols: [0; 257], first: [0; LONGEST + 1], start: [0; LONGEST + 1], count: [0; LONGEST + 1] };
    let (mut length, mut placed) = (1, 0);
    while length <= LONGEST {
        table.start[length] = placed as u16;
        let mut symbol = 0;
        while symbol < 257 {
            let (code, bits) = CODES[symbol];
            if bits as usize == length {
                if table.count[length] == 0 {
                    table.first[length] = code;
                }
                table.count[length] += 1;
                table.symbols[placed] = symbol as u16;
                placed += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    table
}

static CANONICAL: Canonical = canonical();

/// Symbol and length of every code of at most 8 bits, by the next 8 bits of input; length 0: the code is longer.
static SHORT: [(u8, u8); 256] = {
    let mut table = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < 256 {
        let (code, bits) = CODES[symbol];
        if bits <= 8 {
            let low = (code as usize) << (8 - bits);
            let mut i = 0;
            while i < 1 << (8 - bits) {
                table[low + i] = (symbol as u8, bits);
                i += 1;
            }
        }
        symbol += 1;
    }
    table
};

/// Decodes a Huffman-coded string literal into `out`; false if it holds EOS, or its padding is
/// longer than 7 bits or not all ones (RFC 7541 §5.2).
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> bool {
    // The next bits, left-aligned.
    let (mut window, mut bits) = (0u64, 0u32);
    let mut coded = coded.iter();
    loop {
        while bits <= 56 {
            let Some(&byte) = coded.next() else { break };
            window |= u64::from(byte) << (56 - bits);
            bits += 8;
        }
        if bits == 0 {
            return true;
        }
        let Some((symbol, length)) = next(window) else {
            return false;
        };
        if length > bits {
            // What is left is no whole code: it must be padding.
            return bits < 8 && window >> (64 - bits) == (1 << bits) - 1;
        }
        let Ok(symbol) = u8::try_from(symbol) else {
            return false;
        };
        out.push(symbol);
        window <<= length;
        bits -= length;
    }
}

/// The code that the left-aligned `window` begins with.
fn next(window: u64) -> Option<(u16, u32)> {
    match SHORT.get((window >> 56) as usize) {
        Some(&(symbol, length)) if length > 0 => return Some((u16::from(symbol), u32::from(length))),
        _ => {}
    }
    (9..=LONGEST).find_map(|length| {
        let code = (window >> (64 - length)) as u32;
        let nth = code.checked_sub(*CANONICAL.first.get(length)?)?;
        let nth = u16::try_from(nth).ok().filter(|n| CANONICAL.count.get(length).is_some_and(|count| n < count))?;
        let symbol = CANONICAL.symbols.get(usize::from(CANONICAL.start.get(length)? + nth))?;
        Some((*symbol, length as u32))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(text: &[u8]) -> Vec<u8> {
        let (mut out, mut window, mut bits) = (Vec::new(), 0u64, 0);
        for &symbol in text {
            let (code, length) = CODES[usize::from(symbol)];
            window = window << length | u64::from(code);
            bits += length;
            while bits >= 8 {
                bits -= 8;
                out.push((window >> bits) as u8);
            }
        }
        if bits > 0 {
            out.push((window << (8 - bits)) as u8 | 0xff >> bits);
        }
        out
    }

    #[test]
    fn codes_of_one_length_are_consecutive() {
        for length in 1..=LONGEST {
            let codes: Vec<u32> =
                CODES.iter().filter(|(_, bits)| usize::from(*bits) == length).map(|(code, _)| *code).collect();
            assert!(codes.windows(2).all(|pair| pair[0] + 1 == pair[1]), "length {length}");
        }
    }

    #[test]
    fn decodes_the_examples_of_the_rfc() {
        let mut out = Vec::new();
        assert!(decode(&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff], &mut out));
        assert_eq!(out, b"www.example.com");
    }

    #[test]
    fn refuses_bad_padding_and_eos() {
        for bad in [&[0xff][..], &[0xf1, 0xe3, 0xc2, 0xff, 0xff], &[0x00], &[0xff, 0xff, 0xff, 0xff], &[0x18]] {
            assert!(!decode(bad, &mut Vec::new()), "{bad:x?}");
        }
        assert!(decode(&[0x1f], &mut Vec::new()), "`a` (00011) and three ones");
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            prop_assert!(decode(&encode(&text), &mut out));
            prop_assert_eq!(out, text);
        }
    }
}
