//! Calls and exchanges as Parquet: one file a unit and day below `calls/` and `exchanges/`, by
//! folders `day=2026-10-05`, as DuckDB, Spark and ClickHouse know them.
//!
//! Times are microseconds in UTC, because Spark does not read nanoseconds. docs/scan.md describes the
//! columns; a test keeps it to these tables.

use super::result::{Places, day};
use super::rows::Rows;
use crate::model::report::{Call, ExchangeRow, Report};
use crate::model::time::Time;
use anyhow::Context;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of one row group.
const GROUP_ROWS: usize = 65_536;
/// Days whose files are written at once.
const OPEN_DAYS: usize = 32;
/// The day of what has no time, as Hive names it.
const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";

/// A value of a row.
enum Cell {
    Text(Option<String>),
    Long(Option<i64>),
    Int(Option<i32>),
    Bool(bool),
}

/// One column: its name, its type in Parquet's own notation, what it means.
pub struct Column<R> {
    /// Its name.
    pub name: &'static str,
    /// `binary … (STRING)` and so on, without the name.
    kind: Kind,
    /// What it means.
    pub doc: &'static str,
    get: fn(&R) -> Cell,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Time,
    Long,
    Int,
    Bool,
}

impl Kind {
    fn field(self, name: &str) -> String {
        match self {
            Kind::Text => format!("optional binary {name} (STRING);"),
            Kind::Time => format!("optional int64 {name} (TIMESTAMP(MICROS,true));"),
            Kind::Long => format!("optional int64 {name};"),
            Kind::Int => format!("optional int32 {name};"),
            Kind::Bool => format!("required boolean {name};"),
        }
    }

    /// As SQL calls it.
    fn sql(self) -> &'static str {
        match self {
            Kind::Text => "VARCHAR",
            Kind::Time => "TIMESTAMP WITH TIME ZONE",
            Kind::Long => "BIGINT",
            Kind::Int => "INTEGER",
            Kind::Bool => "BOOLEAN",
        }
    }
}

impl<R> Column<R> {
    /// Its type as SQL calls it.
    pub fn sql(&self) -> &'static str {
        self.kind.sql()
    }
}

/// A call and where it was seen first.
pub struct CallRow<'a> {
    call: &'a Call,
    key: &'a str,
    places: &'a dyn Places,
}

/// An exchange.
pub struct Exchange<'a> {
    row: &'a ExchangeRow,
    places: &'a dyn Places,
}

fn text(t: Option<impl AsRef<str>>) -> Cell {
    Cell::Text(t.map(|t| t.as_ref().to_owned()))
}

/// The name that a value has in JSON.
fn named(value: impl serde::Serialize) -> Cell {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(s)) => Cell::Text(Some(s)),
        _ => Cell::Text(None),
    }
}

fn time(t: Option<Time>) -> Cell {
    Cell::Long(t.map(|t| t.ns().div_euclid(1000)))
}

fn long(n: Option<u64>) -> Cell {
    Cell::Long(n.and_then(|n| i64::try_from(n).ok()))
}

fn small(n: Option<u16>) -> Cell {
    Cell::Int(n.map(i32::from))
}

fn join<T: ToString>(all: impl Iterator<Item = T>) -> Cell {
    let all: Vec<String> = all.map(|t| t.to_string()).collect();
    Cell::Text((!all.is_empty()).then(|| all.join(",")))
}

macro_rules! column {
    ($name:literal, $kind:ident, $doc:literal, $get:expr) => {
        Column { name: $name, kind: Kind::$kind, doc: $doc, get: $get }
    };
}

impl CallRow<'_> {
    fn first(&self) -> Option<&crate::model::report::Sighting> {
        self.call.sightings.first()
    }

    fn place(&self) -> (Option<String>, Option<u64>) {
        self.first().map_or((None, None), |s| {
            let (file, line) = self.places.place(s.input, s.line);
            (Some(file), line)
        })
    }
}

/// Columns of `calls`.
pub fn call_columns<'a>() -> Vec<Column<CallRow<'a>>> {
    vec![
        column!("call", Text, "the key that findings cite", |r| Cell::Text(Some(format!("{}-{}", r.call.key, r.key)))),
        column!("service", Text, "folder of the source that saw it first", |r| text(
            r.first().map(|s| r.places.service(s.input))
        )),
        column!("file", Text, "file (or archive!member) that shows it first", |r| Cell::Text(r.place().0)),
        column!("line", Long, "line of its record there", |r| long(r.place().1)),
        column!("frame", Long, "frame of the request's last byte there", |r| long(r.first().and_then(|s| s.frame))),
        column!("reply_frame", Long, "frame of the reply's last byte there", |r| long(
            r.first().and_then(|s| s.reply_frame)
        )),
        column!("session", Text, "session id", |r| text(r.call.session.as_deref())),
        column!("id", Text, "JSON-RPC id as JSON", |r| Cell::Text(
            r.call.id.as_ref().and_then(|id| serde_json::to_string(id).ok())
        )),
        column!("method", Text, "JSON-RPC method", |r| text(r.call.method.as_deref())),
        column!("tool", Text, "tool of a tools/call", |r| text(r.call.tool.as_deref())),
        column!("from_server", Bool, "a request of the server's own", |r| Cell::Bool(r.call.from.is_some())),
        column!("issued", Time, "when the client says it made the call", |r| time(r.call.issued)),
        column!("sent", Time, "when it was first seen", |r| time(r.call.sent)),
        column!("replied", Time, "when the reply was complete", |r| time(r.call.replied)),
        column!("latency_us", Long, "from sent to replied, microseconds", |r| Cell::Long(
            r.call.replied.zip(r.call.sent).map(|(b, a)| b.since(a) / 1000)
        )),
        column!(
            "outcome",
            Text,
            "result, tool-error, rpc-error, http-error, cancelled, no-reply, not-sent or unobserved",
            |r| named(r.call.outcome)
        ),
        column!("delivered", Text, "whose reply the caller got: own, foreign, none or unknown", |r| named(
            r.call.delivered
        )),
        column!("status", Int, "HTTP status", |r| small(r.call.sightings.iter().find_map(|s| s.status))),
        column!("channel", Text, "on what the reply came: post-json, post-sse, get-sse or none", |r| named(
            r.first().and_then(|s| s.channel)
        )),
        column!("peer", Text, "address and port of the client as seen there", |r| text(
            r.first().and_then(|s| s.peer.as_deref())
        )),
        column!("reply_bytes", Long, "bytes of the response body", |r| long(r.first().and_then(|s| s.bytes))),
        column!("request_sha256", Text, "SHA-256 of the request message", |r| text(
            r.first().and_then(|s| s.request_sha256.as_deref())
        )),
        column!("reply_sha256", Text, "SHA-256 of the reply message", |r| text(
            r.first().and_then(|s| s.reply_sha256.as_deref())
        )),
        column!("vantages", Text, "vantage points that saw it, separated by commas", |r| join(
            r.call
                .sightings
                .iter()
                .filter_map(|s| { s.vantage.and_then(|v| serde_json::to_value(v).ok()?.as_str().map(str::to_owned)) })
        )),
    ]
}

impl Exchange<'_> {
    fn file(&self) -> String {
        self.places.place(self.row.input, None).0
    }
}

/// Columns of `exchanges`.
pub fn exchange_columns<'a>() -> Vec<Column<Exchange<'a>>> {
    vec![
        column!("service", Text, "folder of the source", |r| Cell::Text(Some(r.places.service(r.row.input)))),
        column!("file", Text, "file (or archive!member); of a rotated set the newest", |r| Cell::Text(Some(r.file()))),
        column!("stream", Long, "TCP stream as Wireshark numbers it", |r| long(r.row.stream)),
        column!("request_frame", Long, "a frame of the request", |r| long(r.row.request_frame)),
        column!("response_frame", Long, "frame of the status line", |r| long(r.row.response_frame)),
        column!("started", Time, "time of the request", |r| time(r.row.at)),
        column!("ended", Time, "when it ended", |r| time(r.row.ended)),
        column!("method", Text, "HTTP method", |r| text(r.row.method.as_deref())),
        column!("target", Text, "request target", |r| text(r.row.target.as_deref())),
        column!("status", Int, "HTTP status", |r| small(r.row.status)),
        column!("session", Text, "session id of the request; for initialize the new one", |r| text(
            r.row.session.as_deref()
        )),
        column!("rpc_methods", Text, "JSON-RPC methods of the request, separated by commas", |r| join(
            r.row.rpc.iter().filter_map(|m| m.method.as_deref())
        )),
        column!("tools", Text, "tools called, separated by commas", |r| join(
            r.row.rpc.iter().filter_map(|m| m.tool.as_deref())
        )),
        column!("replies", Long, "JSON-RPC results and errors that it carried", |r| long(Some(
            r.row.replies.len() as u64
        ))),
        column!("end", Text, "complete, client-closed, server-closed, reset, input-ended or gap", |r| named(r.row.end)),
        column!("peer", Text, "address and port of the client", |r| text(r.row.peer.as_deref())),
        column!("bytes", Long, "bytes of the response body", |r| long(r.row.bytes)),
    ]
}

/// Values of one column that wait for their row group.
enum Waiting {
    Text(Vec<ByteArray>),
    Long(Vec<i64>),
    Int(Vec<i32>),
    Bool(Vec<bool>),
}

struct Buffer {
    columns: Vec<(Waiting, Vec<i16>)>,
    rows: usize,
}

impl Buffer {
    fn new(kinds: &[Kind]) -> Buffer {
        let waiting = |k: &Kind| match k {
            Kind::Text => Waiting::Text(vec![]),
            Kind::Time | Kind::Long => Waiting::Long(vec![]),
            Kind::Int => Waiting::Int(vec![]),
            Kind::Bool => Waiting::Bool(vec![]),
        };
        Buffer { columns: kinds.iter().map(|k| (waiting(k), vec![])).collect(), rows: 0 }
    }

    fn push(&mut self, row: impl Iterator<Item = Cell>) {
        for ((waiting, levels), cell) in self.columns.iter_mut().zip(row) {
            let is_there = match (waiting, cell) {
                (Waiting::Text(all), Cell::Text(Some(v))) => {
                    all.push(ByteArray::from(v.into_bytes()));
                    true
                }
                (Waiting::Long(all), Cell::Long(Some(v))) => {
                    all.push(v);
                    true
                }
                (Waiting::Int(all), Cell::Int(Some(v))) => {
                    all.push(v);
                    true
                }
                (Waiting::Bool(all), Cell::Bool(v)) => {
                    all.push(v);
                    true
                }
                _ => false,
            };
            levels.push(i16::from(is_there));
        }
        self.rows += 1;
    }

    fn write(self, group: &mut SerializedRowGroupWriter<'_, File>) -> anyhow::Result<()> {
        let mut columns = self.columns.into_iter();
        while let (Some(mut writer), Some((waiting, levels))) = (group.next_column()?, columns.next()) {
            match (writer.untyped(), waiting) {
                (ColumnWriter::ByteArrayColumnWriter(w), Waiting::Text(v)) => w.write_batch(&v, Some(&levels), None)?,
                (ColumnWriter::Int64ColumnWriter(w), Waiting::Long(v)) => w.write_batch(&v, Some(&levels), None)?,
                (ColumnWriter::Int32ColumnWriter(w), Waiting::Int(v)) => w.write_batch(&v, Some(&levels), None)?,
                (ColumnWriter::BoolColumnWriter(w), Waiting::Bool(v)) => w.write_batch(&v, None, None)?,
                _ => anyhow::bail!("a column of another type than its schema"),
            };
            writer.close()?;
        }
        Ok(())
    }
}

/// A file that is being written.
struct Open {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    buffer: Buffer,
}

/// The files of one table.
struct Files {
    table: &'static str,
    schema: String,
    kinds: Vec<Kind>,
    open: BTreeMap<String, Open>,
    written: Vec<String>,
}

impl Files {
    fn new<R>(table: &'static str, columns: &[Column<R>]) -> Files {
        let fields: Vec<String> = columns.iter().map(|c| c.kind.field(c.name)).collect();
        Files {
            table,
            schema: format!("message {table} {{ {} }}", fields.join(" ")),
            kinds: columns.iter().map(|c| c.kind).collect(),
            open: BTreeMap::new(),
            written: vec![],
        }
    }

    fn add(&mut self, to: &Target<'_>, day: &str, row: impl Iterator<Item = Cell>) -> anyhow::Result<()> {
        if !self.open.contains_key(day) && self.open.len() >= OPEN_DAYS {
            self.close()?;
        }
        let open = match self.open.entry(day.to_owned()) {
            std::collections::btree_map::Entry::Occupied(e) => e.into_mut(),
            std::collections::btree_map::Entry::Vacant(e) => {
                let name = format!("{}/day={day}/{}-{}.parquet", self.table, to.unit, self.written.len());
                let path = to.out.join(&name);
                let folder = path.parent().unwrap_or(to.out);
                std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
                let beside = beside(&path);
                let file = File::create(&beside).with_context(|| format!("{}: cannot be written", beside.display()))?;
                let schema = Arc::new(parse_message_type(&self.schema)?);
                let writer = SerializedFileWriter::new(file, schema, properties()?)?;
                self.written.push(name);
                e.insert(Open { path, writer, buffer: Buffer::new(&self.kinds) })
            }
        };
        open.buffer.push(row);
        if open.buffer.rows >= GROUP_ROWS {
            flush(open, &self.kinds)?;
        }
        Ok(())
    }

    fn close(&mut self) -> anyhow::Result<()> {
        for (_, mut open) in std::mem::take(&mut self.open) {
            flush(&mut open, &self.kinds)?;
            open.writer.close()?;
            let path = &open.path;
            std::fs::rename(beside(path), path).with_context(|| format!("{}: cannot be written", path.display()))?;
        }
        Ok(())
    }
}

fn flush(open: &mut Open, kinds: &[Kind]) -> anyhow::Result<()> {
    let buffer = std::mem::replace(&mut open.buffer, Buffer::new(kinds));
    if buffer.rows > 0 {
        let mut group = open.writer.next_row_group()?;
        buffer.write(&mut group)?;
        group.close()?;
    }
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("new")
}

fn properties() -> anyhow::Result<WriterPropertiesPtr> {
    Ok(Arc::new(WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build()))
}

struct Target<'a> {
    out: &'a Path,
    unit: &'a str,
}

/// Writes the calls and exchanges of one unit.
pub struct Parquet {
    out: PathBuf,
    unit: String,
    calls: Files,
    exchanges: Files,
}

impl Parquet {
    /// For the unit of this fingerprint, to the folder `out`.
    pub fn new(out: &Path, unit: &str) -> Parquet {
        Parquet {
            out: out.to_owned(),
            unit: unit.to_owned(),
            calls: Files::new("calls", &call_columns()),
            exchanges: Files::new("exchanges", &exchange_columns()),
        }
    }
}

impl Rows for Parquet {
    fn wants_exchanges(&self) -> bool {
        true
    }

    fn add(&mut self, report: &Report, places: &dyn Places, key: &str) -> anyhow::Result<()> {
        let to = Target { out: &self.out, unit: &self.unit };
        let on = |t: Option<Time>| t.map_or_else(|| NO_DAY.to_owned(), day);
        let columns = call_columns();
        for call in &report.calls {
            let row = CallRow { call, key, places };
            let at = call.sent.or(call.issued).or(call.replied);
            self.calls.add(&to, &on(at), columns.iter().map(|c| (c.get)(&row)))?;
        }
        let columns = exchange_columns();
        for exchange in &report.exchanges {
            let row = Exchange { row: exchange, places };
            self.exchanges.add(&to, &on(exchange.at), columns.iter().map(|c| (c.get)(&row)))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> anyhow::Result<Vec<String>> {
        self.calls.close()?;
        self.exchanges.close()?;
        let mut parts = std::mem::take(&mut self.calls.written);
        parts.append(&mut self.exchanges.written);
        Ok(parts)
    }
}
