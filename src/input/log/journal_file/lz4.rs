//! LZ4 blocks (lz4/doc/lz4_Block_format.md), as journal files of systemd 231 to 245 hold them.

/// Decompresses a block that is `size` bytes when plain; none where it is broken or `size`
/// exceeds `most`.
pub(super) fn block(mut from: &[u8], size: usize, most: usize) -> Option<Vec<u8>> {
    if size > most {
        return None;
    }
    let mut out = Vec::with_capacity(size.min(1 << 20));
    loop {
        let (&token, rest) = from.split_first()?;
        from = rest;
        let literals = length(usize::from(token >> 4), &mut from)?;
        if literals > size - out.len() {
            return None;
        }
        out.extend_from_slice(from.get(..literals)?);
        from = from.get(literals..)?;
        if from.is_empty() {
            // the last sequence has no match
            return (out.len() == size).then_some(out);
        }
        let (low, high) = (*from.first()?, *from.get(1)?);
        from = from.get(2..)?;
        let offset = usize::from(u16::from_le_bytes([low, high]));
        let matched = length(usize::from(token & 15), &mut from)? + 4;
        let start = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if matched > size - out.len() {
            return None;
        }
        // a match may overlap what it produces
        for i in start..start + matched {
            let b = *out.get(i)?;
            out.push(b);
        }
    }
}

/// A length of four bits, and bytes of 255 and one less that add to it where they are all set.
fn length(nibble: usize, from: &mut &[u8]) -> Option<usize> {
    let mut n = nibble;
    if nibble == 15 {
        loop {
            let (&b, rest) = from.split_first()?;
            *from = rest;
            n = n.checked_add(usize::from(b))?;
            if b != 255 {
                break;
            }
        }
    }
    Some(n)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn literals_matches_and_overlaps() {
        assert_eq!(block(b"\x50hello", 5, 100).unwrap(), b"hello");
        // "ab", then 10 more of it, then the last literals "x"
        assert_eq!(block(b"\x26ab\x02\x00\x10x", 13, 100).unwrap(), b"ababababababx");
        let mut long = vec![0xf0, 255, 10];
        long.extend([b'z'; 280]);
        assert_eq!(block(&long, 280, 1000).unwrap(), [b'z'; 280]);
    }

    #[test]
    fn broken_blocks_are_none() {
        assert_eq!(block(b"", 5, 100), None);
        assert_eq!(block(b"\x50hel", 5, 100), None);
        assert_eq!(block(b"\x50hello", 4, 100), None);
        assert_eq!(block(b"\x50hello", 5, 4), None);
        assert_eq!(block(b"\x26ab\x03\x00\x10x", 13, 100), None);
        assert_eq!(block(b"\x26ab\x00\x00\x10x", 13, 100), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 0usize..5000) {
            if let Some(out) = block(&bytes, size, 4096) {
                prop_assert_eq!(out.len(), size);
            }
        }
    }
}
