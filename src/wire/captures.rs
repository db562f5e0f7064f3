//! Captures through the wire stage: frames to segments, segments to exchanges.

use super::packet::Decoder;
use super::tls::{KeyStore, TlsCount, TlsSetup};
use super::{Wire, WireOptions};
use crate::input::capture::bpf::Filtered;
use crate::input::capture::{CaptureInput, CaptureStats, Frame, FrameSink, read_all};
use crate::model::exchange::ExchangeSink;
use crate::model::filter::FrameFilter;
use crate::model::place::InputId;
use crate::model::problem::Problems;
use std::sync::Arc;

struct Frames<'a> {
    /// One an input: fragments of two captures are not each other's.
    decoders: Vec<Decoder>,
    wire: Wire,
    sink: &'a mut dyn ExchangeSink,
    problems: &'a mut [Problems],
    tls: Arc<TlsSetup>,
}

impl FrameSink for Frames<'_> {
    fn frame(&mut self, frame: &Frame<'_>) {
        let input = frame.place.input as usize;
        let (Some(problems), Some(decoder)) = (self.problems.get_mut(input), self.decoders.get_mut(input)) else {
            return;
        };
        if let Some(segment) = decoder.segment(frame, problems) {
            self.wire.segment(segment, self.sink, self.problems);
        }
    }

    fn secrets(&mut self, _: InputId, key_log: &[u8]) {
        self.tls.keys.read(key_log);
    }
}

/// Reads `captures` as one timeline and tells `sink` of every exchange. `problems` holds those of every input, by
/// its number. Gives what was read of each capture, in their order, and the TLS connections met.
pub fn read(
    captures: Vec<CaptureInput>,
    keys: KeyStore,
    filter: Option<&FrameFilter>,
    sink: &mut dyn ExchangeSink,
    problems: &mut [Problems],
) -> (Vec<CaptureStats>, TlsCount) {
    let tls = Arc::new(TlsSetup::new(Arc::new(keys)));
    let mut frames = Frames {
        decoders: std::iter::repeat_with(Decoder::new).take(problems.len()).collect(),
        wire: Wire::new(WireOptions { tls: tls.clone() }),
        sink,
        problems,
        tls,
    };
    let stats = read_all(captures, &mut Filtered::new(filter, &mut frames));
    let Frames { decoders, mut wire, sink, problems, tls } = frames;
    for (mut decoder, problems) in decoders.into_iter().zip(problems.iter_mut()) {
        decoder.finish(problems);
    }
    wire.finish(sink, problems);
    (stats, tls.count())
}
