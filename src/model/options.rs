//! What the user asked of a reading command, resolved.

use super::filter::FrameFilter;
use super::place::Vantage;
use super::zone::Zone;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How inputs are to be read. `Default` is what `crosswire analyze FILE` does.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// `--input-format NAME`: for every input.
    pub input_format: Option<String>,
    /// `--input-format NAME:PATH`: for one input.
    pub input_formats: Vec<(String, String)>,
    /// `--vantage NAME:PATH`.
    pub vantages: Vec<(Vantage, String)>,
    /// `--log-format STRING`: for every log whose own format is not certain.
    pub log_format: Option<String>,
    /// `--log-format NAME=STRING`: bound by `NAME:PATH`.
    pub log_formats: Vec<(String, String)>,
    /// `--tz ZONE` for local times without one.
    pub tz: Option<Zone>,
    /// `--year N` for times without one.
    pub year: Option<i32>,
    /// `--keylog FILE`s, and `SSLKEYLOGFILE`.
    pub keylogs: Vec<std::path::PathBuf>,
    /// `--client-timeout`, nanoseconds; none: learnt, else 300 s.
    pub client_timeout_ns: Option<i64>,
    /// `--endpoint PATH`; none: found from the traffic.
    pub endpoint: Option<String>,
    /// `--filter BPF`: frames of captures that are looked at; none: all.
    pub filter: Option<Arc<FrameFilter>>,
    /// `--jobs N`; 0: all cores.
    pub jobs: usize,
}

impl ReadOptions {
    /// How many threads `jobs` stands for.
    pub fn threads(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            jobs => jobs,
        }
    }
}

/// What the report of an analysis is to hold beside the findings.
#[derive(Clone, Debug, Default)]
pub struct AnalyzeOptions {
    /// Keep the exact text of requests and replies (`Call::bodies`).
    pub bodies: bool,
    /// Fill `Report::exchanges`.
    pub exchanges: bool,
    /// Hold only the calls that findings and windows cite; the counts are of all.
    pub cited_calls_only: bool,
    /// Where captures are joined in parts: exchanges of a part. 0: as `model/limits.rs` says.
    pub part_visits: usize,
    /// Fill `Sighting::detail` (headers, messages and log lines).
    pub details: bool,
    /// Count only what began within this time, ns, the end not included; none: all.
    pub core: Option<(i64, i64)>,
    /// `--memory SIZE`, bytes; none: the built-in caps.
    pub memory_bytes: Option<u64>,
    /// What is known already of the inputs' clocks, by number; none, or no more: nothing.
    pub clocks: Vec<Option<GivenClock>>,
}

/// How far the clock of a log is off that of the others it is taken together with, as a larger part of all showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenClock {
    /// Added to its times, ns.
    pub ns: i64,
    /// The truth lies within this of it where that was told, ns.
    pub error_ns: i64,
    /// When that was, ns since 1970 on its clock.
    pub at_ns: i64,
    /// What the offset grows by in a second of its clock, ns; how exactly that is known; and when the offset was as
    /// stated, ns since 1970 on its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<(i64, i64, i64)>,
}
