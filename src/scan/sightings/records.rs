//! What a log's lines say, as bytes. Each kind of record names all its fields here, so that one added to the
//! model is not forgotten: it does not compile.

use super::pack::{Pack, Reader, Writer};
use crate::model::id::RpcId;
use crate::model::place::{Place, Vantage};
use crate::model::record::{
    AccessRecord, ClientCall, ClientOutcome, LogEvent, LogEventKind, LoggedMessage, Record, When,
};
use std::sync::Arc;

macro_rules! fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Pack for $type {
            fn put(&self, w: &mut Writer) {
                let $type { $($field),* } = self;
                $($field.put(w);)*
            }
            fn get(r: &mut Reader<'_>) -> Option<$type> {
                Some($type { $($field: Pack::get(r)?),* })
            }
        }
    };
}

macro_rules! words {
    ($type:ident { $($word:ident = $number:literal),* $(,)? }) => {
        impl Pack for $type {
            fn put(&self, w: &mut Writer) {
                w.bytes.push(match self { $($type::$word => $number),* });
            }
            fn get(r: &mut Reader<'_>) -> Option<$type> {
                match u64::get(r)? {
                    $($number => Some($type::$word),)*
                    _ => None,
                }
            }
        }
    };
}

words!(Vantage { Client = 0, Proxy = 1, Server = 2, Wire = 3 });
words!(ClientOutcome { Ok = 0, Error = 1, Timeout = 2, Aborted = 3, Empty = 4, Lost = 5 });
words!(LogEventKind {
    SessionCreated = 0,
    SessionEnded = 1,
    SessionCrashed = 2,
    SessionExpired = 3,
    SessionRejected = 4,
    ServerStarted = 5,
    ServerStopping = 6,
    ServerStopped = 7,
    UnitStarted = 8,
    UnitStopping = 9,
    UnitStopped = 10,
    UnitFailed = 11,
    UnitRestart = 12,
    Processing = 13,
    Finished = 14,
    Cancelled = 15,
    ReplyDropped = 16,
    UnknownReply = 17,
    UpstreamTimeout = 18,
    UpstreamReset = 19,
    UpstreamRefused = 20,
    Error = 21,
    Other = 22,
});

fields!(When { at, error_ns });
fields!(AccessRecord {
    place,
    vantage,
    start,
    end,
    duration_ns,
    upstream_ns,
    method,
    target,
    status,
    upstream_status,
    bytes,
    bytes_are_body,
    client_addr,
    client_port,
    upstream,
    session,
    session_given,
    user_agent,
    request_id,
    termination,
    request_body,
    response_body,
    rpc_method,
    rpc_tool,
    repeat,
    comment,
});
fields!(LogEvent {
    place,
    vantage,
    when,
    kind,
    session,
    rpc_id,
    method,
    tool,
    duration_ns,
    unit,
    host,
    pid,
    cursor,
    text,
});
fields!(ClientCall {
    place,
    at,
    ended,
    conversation,
    server,
    method,
    tool,
    arguments,
    id,
    session,
    local_port,
    tool_use_id,
    outcome,
    result,
    result_sha256,
    text,
});
fields!(LoggedMessage { place, when, from_client, json, exact, elided, server, session });

/// The input is the reader's; lines are told by their distance.
impl Pack for Place {
    fn put(&self, w: &mut Writer) {
        self.number.wrapping_sub(w.last.number).cast_signed().put(w);
        w.last.number = self.number;
        self.is_frame.put(w);
    }
    fn get(r: &mut Reader<'_>) -> Option<Place> {
        let number = i64::get(r)?.cast_unsigned().wrapping_add(r.last.number);
        r.last.number = number;
        Some(Place { input: r.last.input, number, is_frame: bool::get(r)? })
    }
}

impl Pack for RpcId {
    fn put(&self, w: &mut Writer) {
        match self {
            RpcId::Null => 0u64.put(w),
            RpcId::Int(n) => {
                1u64.put(w);
                n.put(w);
            }
            RpcId::Str(text) => {
                2u64.put(w);
                text.put(w);
            }
            RpcId::Other(text) => {
                3u64.put(w);
                text.put(w);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Option<RpcId> {
        match u64::get(r)? {
            0 => Some(RpcId::Null),
            1 => i64::get(r).map(RpcId::Int),
            2 => Arc::get(r).map(RpcId::Str),
            3 => Arc::get(r).map(RpcId::Other),
            _ => None,
        }
    }
}

impl Pack for Record {
    fn put(&self, w: &mut Writer) {
        match self {
            Record::Access(x) => {
                0u64.put(w);
                x.put(w);
            }
            Record::Event(x) => {
                1u64.put(w);
                x.put(w);
            }
            Record::Client(x) => {
                2u64.put(w);
                x.put(w);
            }
            Record::Message(x) => {
                3u64.put(w);
                x.put(w);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Option<Record> {
        match u64::get(r)? {
            0 => AccessRecord::get(r).map(|x| Record::Access(Box::new(x))),
            1 => LogEvent::get(r).map(|x| Record::Event(Box::new(x))),
            2 => ClientCall::get(r).map(|x| Record::Client(Box::new(x))),
            3 => LoggedMessage::get(r).map(|x| Record::Message(Box::new(x))),
            _ => None,
        }
    }
}

/// When a record says that something was.
pub fn time_of(record: &Record) -> Option<i64> {
    let when = match record {
        Record::Access(x) => x.start.or(x.end),
        Record::Event(x) => x.when,
        Record::Client(x) => x.at.or(x.ended),
        Record::Message(x) => x.when,
    };
    when.map(|w| w.at.ns())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::super::pack::{Pack, Reader, Writer};
    use crate::analyze::logs::{Log, Sighted, row, sight};
    use crate::input::{OpenInput, formats};
    use crate::model::options::ReadOptions;
    use crate::model::record::Record;

    /// All that the samples of all formats say survives, byte for byte as far as it can be printed.
    #[test]
    fn records_of_every_format_are_read_back() {
        let options = ReadOptions::default();
        let mut kinds = [0; 4];
        for format in formats() {
            for sample in format.samples {
                let log = Log { input: 3, name: "sample", format, lines: 0, options: &options };
                let mut all = Sighted { info: row(&log), records: vec![] };
                let bytes = std::io::Cursor::new(sample.as_bytes().to_vec());
                sight(&log, &mut OpenInput::new("sample".into(), Box::new(bytes), Some(0)), &mut all);
                let mut w = Writer::default();
                all.records.iter().for_each(|r| r.put(&mut w));
                let mut r = Reader::new(&w.bytes, 3);
                for record in &all.records {
                    let back = Record::get(&mut r).unwrap_or_else(|| panic!("{}", format.name));
                    assert_eq!(format!("{back:?}"), format!("{record:?}"), "{}", format.name);
                    kinds[match record {
                        Record::Access(_) => 0,
                        Record::Event(_) => 1,
                        Record::Client(_) => 2,
                        Record::Message(_) => 3,
                    }] += 1;
                }
                assert!(r.is_done());
            }
        }
        assert!(kinds.iter().all(|n| *n > 0), "{kinds:?}");
    }
}
