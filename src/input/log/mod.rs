//! Logs of proxies, servers, journals and containers: one file a format.
//!
//! A format is one file here (or in `input/client`) and one line in [`FORMATS`].

mod access_line;
#[cfg(test)]
mod access_tests;
mod alb;
mod apache;
mod apache_error;
pub mod app;
mod app_lines;
mod assemble;
mod caddy;
mod clf;
pub mod clock;
mod compose;
mod condensed;
mod container;
mod cri;
pub mod described;
mod docker;
mod envoy;
mod escape;
mod event;
mod format_apache;
mod format_envoy;
mod format_haproxy;
mod format_nginx;
pub mod format_string;
#[cfg(test)]
mod format_string_tests;
#[cfg(test)]
mod format_tests;
mod haproxy;
mod intern;
mod journal;
mod journal_export;
pub mod journal_file;
mod journal_json;
mod journal_short;
#[cfg(test)]
mod journal_tests;
mod journal_verbose;
mod json_access;
mod json_layout;
pub mod json_mapping;
mod json_scan;
mod kubectl;
mod layout;
mod names;
mod nginx;
mod nginx_error;
mod nginx_proxy_manager;
mod reading;
mod sequence;
#[cfg(test)]
mod sequence_tests;
mod strftime;
mod syslog;
mod syslog_prefix;
mod tail;
mod template;
#[cfg(test)]
pub(crate) mod testing;
pub mod time;
#[cfg(test)]
mod told;
mod traefik;

use crate::model::options::ReadOptions;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{BoxedRecords, Record, When};
use std::io::BufRead;

pub use layout::ProxyLines;

/// How sure a format is that some lines are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Not this format.
    No,
    /// It parses, and so would much else.
    Unsure,
    /// Its marks are there.
    Likely,
    /// It can be nothing else.
    Certain,
}

/// What a reader needs to know beside the bytes.
#[derive(Clone, Debug)]
pub struct LogContext<'a> {
    /// Number of the input.
    pub input: InputId,
    /// Name as given on the command line.
    pub name: &'a str,
    /// `--tz`, `--year`, `--log-format` and the rest.
    pub options: &'a ReadOptions,
    /// Last modification of the file, ns since the epoch, to infer a missing year.
    pub modified_ns: Option<i64>,
}

/// Receives what a reader finds.
pub trait RecordSink {
    /// One entry (line, journal entry) was read, whether or not it says anything: it counts as a
    /// record and shows that the log covers its time. Continuation lines are no entries.
    fn entry(&mut self, when: Option<When>);
    /// Something the entry says.
    fn record(&mut self, record: Record);
    /// Something that could not be read.
    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str);
    /// Records handed over before that nobody needs any more: their room is used again.
    fn spent(&mut self) -> BoxedRecords {
        vec![]
    }
}

/// Reads a log line by line.
pub trait LineReader {
    /// One line without its line end, and its number from 1.
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink);
    /// The log has ended.
    fn finish(&mut self, out: &mut dyn RecordSink);
}

/// How a format is read.
pub enum Reader {
    /// Line by line.
    Lines(fn(&LogContext<'_>) -> Box<dyn LineReader>),
    /// As bytes (binary journals, the export format with binary fields, HAR).
    Bytes(fn(&LogContext<'_>, &mut dyn BufRead, &mut dyn RecordSink) -> std::io::Result<()>),
}

/// One format that can be read.
pub struct Format {
    /// Its name for `--input-format` and in reports.
    pub name: &'static str,
    /// Where such a log is taken, unless the user says otherwise.
    pub vantage: Vantage,
    /// Its entries hold the messages of other programs, as those of a journal or a container's log do.
    pub carries: bool,
    /// Manual text: what it is, which clock its times are of, what it can and cannot show.
    pub doc: &'static str,
    /// Sample inputs (each one or more lines) that a test feeds to `grade` and to the reader.
    pub samples: &'static [&'static str],
    /// How sure is it that an input that begins with these bytes (up to 64 KiB, cut anywhere) is its own?
    pub grade: fn(&[u8]) -> Grade,
    /// How it is read.
    pub reader: Reader,
}

/// Every format of a proxy's, server's, journal's or container's log. Order decides ties.
pub static FORMATS: &[&Format] = &[
    &journal_file::FORMAT,
    &journal_json::FORMAT,
    &journal_export::FORMAT,
    &journal_verbose::FORMAT,
    &journal_short::FORMAT,
    &syslog::FORMAT,
    &docker::FORMAT,
    &cri::FORMAT,
    &compose::FORMAT,
    &kubectl::FORMAT,
    &haproxy::FORMAT,
    &nginx_error::FORMAT,
    &apache_error::FORMAT,
    &caddy::FORMAT,
    &traefik::CLF,
    &traefik::JSON,
    &envoy::TEXT,
    &envoy::JSON,
    &alb::FORMAT,
    &nginx_proxy_manager::FORMAT,
    &nginx::COMBINED,
    &apache::COMBINED,
    &json_access::FORMAT,
    &app::RICH,
    &app::LOGURU,
    &app::GUNICORN,
    &app::DOTNET,
    &app::LOGBACK,
    &app::TRACING,
    &app::LOGFMT,
    &app::JSON_LINES,
    &app::PYTHON,
    &app::ELIXIR,
    &app::UVICORN,
    &app::MORGAN,
    &app::NODE_CONSOLE,
    &access_line::FORMAT,
    &app::APPLICATION,
    &sequence::FORMAT,
];
