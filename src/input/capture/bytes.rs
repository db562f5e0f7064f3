//! Integers out of byte slices, in either byte order. Missing bytes read as zero: callers have
//! checked the length, and a reader of foreign bytes must not be able to panic.

/// Byte order of a file or section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let b = array(bytes, at);
        match self {
            Order::Little => u16::from_le_bytes(b),
            Order::Big => u16::from_be_bytes(b),
        }
    }

    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let b = array(bytes, at);
        match self {
            Order::Little => u32::from_le_bytes(b),
            Order::Big => u32::from_be_bytes(b),
        }
    }

    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let b = array(bytes, at);
        match self {
            Order::Little => u64::from_le_bytes(b),
            Order::Big => u64::from_be_bytes(b),
        }
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
