//! Header blocks to header fields (RFC 7541 §6).

use super::huffman;
use super::table::Table;
use std::sync::Arc;

/// One header field; a part that refers to an entry never seen is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Its name as sent (lower case by RFC 9113 §8.2).
    pub name: Option<Arc<str>>,
    /// Its value; bytes that are no UTF-8 are converted lossily.
    pub value: Option<Arc<str>>,
}

/// Why a header block does not decode. The decoder forgets its table then and goes on with the
/// next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// It ends inside a field.
    #[error("header block ends inside a field")]
    Truncated,
    /// An integer of more than 32 bits.
    #[error("integer too large")]
    Integer,
    /// Index 0, or behind the end of the table.
    #[error("index that is not in the table")]
    Index,
    /// A Huffman code with bad padding or EOS in it.
    #[error("bad Huffman code")]
    Huffman,
}

/// Decodes the header blocks of one direction of a connection, in order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    text: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// For a connection seen from its beginning.
    pub fn new() -> Decoder {
        Decoder { table: Table::new(), text: Vec::new() }
    }

    /// For a connection whose earlier header blocks were not seen.
    pub fn midstream() -> Decoder {
        Decoder { table: Table::unknown(), text: Vec::new() }
    }

    /// A header block was lost: what the table holds now is not known.
    pub fn forget(&mut self) {
        self.table = Table::unknown();
    }

    /// Decodes one whole header block, handing over each field in order.
    pub fn decode(&mut self, block: &[u8], each: &mut dyn FnMut(Field)) -> Result<(), HpackError> {
        let decoded = self.fields(block, each);
        if decoded.is_err() {
            self.forget();
        }
        decoded
    }

    fn fields(&mut self, mut block: &[u8], each: &mut dyn FnMut(Field)) -> Result<(), HpackError> {
        while let Some(&first) = block.first() {
            match first {
                0x80.. => {
                    let index = integer(&mut block, 7)?;
                    each(self.table.get(index).ok_or(HpackError::Index)?);
                }
                0x40..=0x7f => {
                    let field = self.literal(&mut block, 6)?;
                    self.table.insert(field.clone());
                    each(field);
                }
                0x20..=0x3f => self.table.resize(integer(&mut block, 5)?),
                _ => each(self.literal(&mut block, 4)?),
            }
        }
        Ok(())
    }

    fn literal(&mut self, block: &mut &[u8], prefix: u32) -> Result<Field, HpackError> {
        let name = match integer(block, prefix)? {
            0 => Some(self.string(block)?),
            index => self.table.get(index).ok_or(HpackError::Index)?.name,
        };
        Ok(Field { name, value: Some(self.string(block)?) })
    }

    /// A string literal (RFC 7541 §5.2).
    fn string(&mut self, block: &mut &[u8]) -> Result<Arc<str>, HpackError> {
        let coded = block.first().ok_or(HpackError::Truncated)? & 0x80 != 0;
        let length = integer(block, 7)?;
        let (bytes, rest) = block.split_at_checked(length).ok_or(HpackError::Truncated)?;
        *block = rest;
        if !coded {
            return Ok(Arc::from(String::from_utf8_lossy(bytes)));
        }
        self.text.clear();
        if !huffman::decode(bytes, &mut self.text) {
            return Err(HpackError::Huffman);
        }
        Ok(Arc::from(String::from_utf8_lossy(&self.text)))
    }
}

/// An integer whose first `prefix` bits end the first byte (RFC 7541 §5.1).
fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let (&first, mut rest) = block.split_first().ok_or(HpackError::Truncated)?;
    let mask = (1u8 << prefix) - 1;
    let mut value = u64::from(first & mask);
    if first & mask == mask {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(HpackError::Truncated)?;
            rest = after;
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift > 28 {
                return Err(HpackError::Integer);
            }
        }
    }
    *block = rest;
    u32::try_from(value).map(|value| value as usize).map_err(|_| HpackError::Integer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, HpackError> {
        let mut fields = Vec::new();
        decoder.decode(block, &mut |field| {
            let text = |text: Option<Arc<str>>| text.map_or("?".to_owned(), |text| text.to_string());
            fields.push((text(field.name), text(field.value)));
        })?;
        Ok(fields)
    }

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The requests of RFC 7541 §C.4, Huffman-coded.
    const REQUESTS: [&[u8]; 3] = [
        b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
        b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
        b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
    ];

    #[test]
    fn decodes_the_requests_of_the_rfc() {
        let mut decoder = Decoder::new();
        let start =
            fields(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")]);
        assert_eq!(decode(&mut decoder, REQUESTS[0]).unwrap(), start);
        let second = decode(&mut decoder, REQUESTS[1]).unwrap();
        assert_eq!(second[3..], fields(&[(":authority", "www.example.com"), ("cache-control", "no-cache")]));
        let third = decode(&mut decoder, REQUESTS[2]).unwrap();
        assert_eq!(third[3..], fields(&[(":authority", "www.example.com"), ("custom-key", "custom-value")]));
    }

    #[test]
    fn an_index_from_before_the_capture_is_unknown_and_the_rest_is_read() {
        let mut decoder = Decoder::midstream();
        let second = decode(&mut decoder, REQUESTS[1]).unwrap();
        assert_eq!(second[2..], fields(&[(":path", "/"), ("?", "?"), ("cache-control", "no-cache")]));
        // 0xbf is now one behind the entry that was just added.
        let third = decode(&mut decoder, REQUESTS[2]).unwrap();
        assert_eq!(third[3..], fields(&[("?", "?"), ("custom-key", "custom-value")]));
        assert_eq!(decode(&mut decoder, b"\xbe\xbf").unwrap()[1], ("cache-control".to_owned(), "no-cache".to_owned()));
    }

    #[test]
    fn a_name_from_before_the_capture_leaves_its_value() {
        let mut decoder = Decoder::midstream();
        assert_eq!(decode(&mut decoder, b"\x7f\x00\x01x\xbe").unwrap(), fields(&[("?", "x"), ("?", "x")]));
    }

    #[test]
    fn an_index_behind_a_known_table_is_an_error_and_the_next_block_is_read() {
        let mut decoder = Decoder::new();
        assert_eq!(decode(&mut decoder, b"\xbe"), Err(HpackError::Index));
        assert_eq!(decode(&mut decoder, b"\x82\xbe").unwrap(), fields(&[(":method", "GET"), ("?", "?")]));
    }

    #[test]
    fn a_size_update_of_zero_makes_the_table_known() {
        let mut decoder = Decoder::midstream();
        assert_eq!(decode(&mut decoder, b"\x20\x3f\xe1\x1f\xbe"), Err(HpackError::Index));
    }

    #[test]
    fn what_is_cut_or_too_large_is_an_error() {
        for (block, error) in [
            (&b"\x41\x05www"[..], HpackError::Truncated),
            (b"\x80", HpackError::Index),
            (b"\xff\x80", HpackError::Truncated),
            (b"\xff\xff\xff\xff\xff\xff\x01", HpackError::Integer),
            (b"\x41\x81\x00", HpackError::Huffman),
        ] {
            assert_eq!(decode(&mut Decoder::new(), block), Err(error), "{block:x?}");
        }
    }

    /// Blocks of an independent encoder, and what they hold.
    fn blocks(lists: &[Vec<(String, String)>]) -> Vec<Vec<u8>> {
        let mut encoder = loona_hpack::Encoder::new();
        lists
            .iter()
            .map(|list| encoder.encode(list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))))
            .collect()
    }

    fn lists() -> impl Strategy<Value = Vec<Vec<(String, String)>>> {
        let name = prop_oneof![Just(":path".to_owned()), Just("mcp-session-id".to_owned()), "[a-z-]{1,12}"];
        let field = (name, "[ -~]{0,40}");
        proptest::collection::vec(proptest::collection::vec(field, 0..12), 1..8)
    }

    proptest! {
        #[test]
        fn reads_what_another_encoder_wrote(lists in lists()) {
            let mut decoder = Decoder::new();
            for (block, list) in blocks(&lists).iter().zip(&lists) {
                prop_assert_eq!(&decode(&mut decoder, block).unwrap(), list);
            }
        }

        /// Whatever the decoder missed, what it says it knows is right.
        #[test]
        fn never_says_what_is_wrong(lists in lists(), skip in 0usize..8) {
            let mut decoder = Decoder::midstream();
            for (block, list) in blocks(&lists).iter().zip(&lists).skip(skip) {
                let read = decode(&mut decoder, block).unwrap();
                prop_assert_eq!(read.len(), list.len());
                for (read, sent) in read.iter().zip(list) {
                    prop_assert!(read.0 == "?" || read.0 == sent.0);
                    prop_assert!(read.1 == "?" || read.1 == sent.1);
                }
            }
        }

        /// Random blocks decode as another decoder says, or both refuse them.
        #[test]
        fn agrees_with_another_decoder_on_random_blocks(
            blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..4)
        ) {
            let (mut ours, mut theirs) = (Decoder::new(), loona_hpack::Decoder::new());
            for block in &blocks {
                let mut expected = Vec::new();
                let verdict = theirs.decode_with_cb(block, |name, value| {
                    expected.push((
                        String::from_utf8_lossy(&name).into_owned(),
                        String::from_utf8_lossy(&value).into_owned(),
                    ));
                });
                let read = decode(&mut ours, block);
                // The other one refuses a size update behind a field, and one above the setting.
                if verdict.is_err() || read.is_err() {
                    break;
                }
                prop_assert_eq!(read.unwrap(), expected);
            }
        }

        #[test]
        fn survives_anything(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            super::super::fuzz(&bytes);
        }
    }
}
