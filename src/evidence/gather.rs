//! Reads captures and recordings again and keeps their exchanges with all messages.

use crate::input::capture::CaptureInput;
use crate::input::recorded::RecordedKind;
use crate::input::{Detected, OpenInput, Source, detect, expand};
use crate::model::exchange::{Event, Exchange, ExchangeId, ExchangeSink, Mark, Peer};
use crate::model::limits::EVIDENCE_BYTES;
use crate::model::options::ReadOptions;
use crate::model::place::InputId;
use crate::model::problem::Problems;
use crate::model::report::Report;
use crate::wire::tls::KeyStore;
use crate::wire::{captures, recorded};
use anyhow::bail;
use rustc_hash::FxHashMap;

/// A message of an exchange, kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Who sent it.
    pub from: Peer,
    /// Its payload, decoded.
    pub data: Vec<u8>,
    /// Its last byte.
    pub last: Mark,
    /// The SSE type.
    pub event: Option<String>,
    /// The SSE event id in force.
    pub event_id: Option<String>,
    /// Bytes of the response body that had come when it was complete.
    pub body_bytes: u64,
}

/// An exchange with its messages.
#[derive(Clone, Debug)]
pub struct Caught {
    /// As it was known at its end.
    pub exchange: Exchange,
    /// All messages, in order.
    pub messages: Vec<Kept>,
    /// Messages that had come before bytes of the response were missing.
    pub hole_after: Option<usize>,
}

/// What an input is, for a bundle.
pub enum Reading {
    /// Exchanges were read from it.
    Wire,
    /// A log, with the name of its format.
    Log(&'static str),
    /// Nothing that can be cut: empty, or gone since.
    None,
}

/// An input of the report, found again.
pub struct Found {
    /// How to open it.
    pub source: Source,
    /// What it is.
    pub reading: Reading,
}

/// Finds the inputs of a report again, in its order.
///
/// # Errors
/// If one cannot be read a second time.
pub fn find(report: &Report, inputs: &[String], options: &ReadOptions) -> anyhow::Result<Vec<Found>> {
    let (mut sources, _) = expand(inputs);
    let mut found = vec![];
    for info in &report.inputs {
        let Some(at) = sources.iter().position(|s| s.name == info.name) else {
            bail!("{}: is not there any more", info.name);
        };
        let source = sources.remove(at);
        if !source.can_reopen() {
            bail!("{}: cannot be read a second time; save it to a file first", info.name);
        }
        let open = source.open()?;
        let reading = match detect(&source.name, open.head(), options)? {
            Detected::Capture(_) | Detected::Recorded(_) => Reading::Wire,
            Detected::Log(format, _) => Reading::Log(format.name),
            Detected::Empty | Detected::Unknown => Reading::None,
        };
        found.push(Found { source, reading });
    }
    Ok(found)
}

/// Collects exchanges.
struct Sink {
    open: FxHashMap<ExchangeId, Caught>,
    done: Vec<Caught>,
    bytes: usize,
}

impl ExchangeSink for Sink {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        let bytes = &mut self.bytes;
        let caught = self.open.entry(exchange.id).or_insert_with(|| {
            *bytes += 1024;
            Caught { exchange: exchange.clone(), messages: vec![], hole_after: None }
        });
        match event {
            Event::Message(m) => {
                *bytes += m.data.len();
                if *bytes <= EVIDENCE_BYTES {
                    caught.messages.push(Kept {
                        from: m.from,
                        data: m.data.to_vec(),
                        last: m.last,
                        event: m.event.map(str::to_owned),
                        event_id: m.event_id.map(str::to_owned),
                        body_bytes: exchange.response.as_ref().map_or(0, |r| r.body_bytes),
                    });
                }
            }
            Event::ResponseGap => caught.hole_after = caught.hole_after.or(Some(caught.messages.len())),
            Event::End => {
                if let Some(mut caught) = self.open.remove(&exchange.id) {
                    caught.exchange = exchange.clone();
                    self.done.push(caught);
                }
            }
            _ => {}
        }
    }
}

/// All exchanges of the inputs, as they ended.
///
/// # Errors
/// If an input cannot be opened, or there is more than [`EVIDENCE_BYTES`].
pub fn exchanges(found: &[Found], options: &ReadOptions) -> anyhow::Result<Vec<Caught>> {
    let mut captures = vec![];
    let mut recordings: Vec<(InputId, RecordedKind, OpenInput)> = vec![];
    for (input, f) in found.iter().enumerate().filter(|(_, f)| matches!(f.reading, Reading::Wire)) {
        let open = f.source.open()?;
        match detect(&f.source.name, open.head(), options)? {
            Detected::Capture(kind) => {
                captures.push(CaptureInput {
                    input: input as InputId,
                    kind,
                    source: f.source.clone(),
                    open: Some(open),
                });
            }
            Detected::Recorded(kind) => recordings.push((input as InputId, kind, open)),
            _ => {}
        }
    }
    let mut sink = Sink { open: FxHashMap::default(), done: vec![], bytes: 0 };
    if !captures.is_empty() {
        packets(captures, found.len(), options, &mut sink);
    }
    let mut next = recorded::FIRST_EXCHANGE;
    for (input, kind, mut open) in recordings {
        recorded::read(kind, input, &mut open, &mut next, &mut sink, &mut Problems::default())?;
    }
    if sink.bytes > EVIDENCE_BYTES {
        bail!(
            "the messages are more than {} MiB; cut the capture to the time of the findings first",
            EVIDENCE_BYTES >> 20
        );
    }
    sink.done.sort_by_key(|c| c.exchange.id);
    Ok(sink.done)
}

fn packets(captures: Vec<CaptureInput>, inputs: usize, options: &ReadOptions, sink: &mut Sink) {
    let keys = KeyStore::new();
    for log in options.keylogs.iter().filter_map(|path| std::fs::read(path).ok()) {
        keys.read(&log);
    }
    captures::read(captures, keys, options.filter.as_deref(), sink, &mut vec![Problems::default(); inputs]);
}
