//! Metrics for Prometheus (text format 0.0.4), on a local port.

use crate::drive::Stop;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is looked whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// What is known of an input.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Records read.
    pub records: u64,
    /// Bytes kept.
    pub bytes: u64,
    /// Packets that the capture says were dropped.
    pub dropped: u64,
}

/// One number of an input.
type Value = fn(&Input) -> u64;

/// What is told.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Values>>);

#[derive(Default)]
struct Values {
    /// Findings told, by rule.
    findings: BTreeMap<&'static str, u64>,
    inputs: Vec<Input>,
    analyses: u64,
    analysis_seconds: f64,
    /// Findings that the command was too slow for.
    untold: u64,
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Values> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A finding was told.
    pub fn finding(&self, rule: &'static str) {
        *self.lock().findings.entry(rule).or_default() += 1;
    }

    /// The command could not be run for a finding.
    pub fn untold(&self) {
        self.lock().untold += 1;
    }

    /// An analysis took this long; and what is known of the inputs.
    pub fn analysed(&self, took: Duration, inputs: Vec<Input>) {
        let mut values = self.lock();
        values.analyses += 1;
        values.analysis_seconds += took.as_secs_f64();
        values.inputs = inputs;
    }

    /// As Prometheus reads it.
    pub fn text(&self) -> String {
        let values = self.lock();
        let mut out = String::new();
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        head(&mut out, "crosswire_findings_total", "counter", "Findings told.");
        for (rule, n) in &values.findings {
            let _ = writeln!(out, "crosswire_findings_total{{rule=\"{rule}\"}} {n}");
        }
        let inputs: [(&str, &str, &str, Value); 3] = [
            ("crosswire_records_total", "counter", "Packets and lines read.", |i| i.records),
            ("crosswire_window_bytes", "gauge", "Bytes kept of an input.", |i| i.bytes),
            ("crosswire_dropped_packets_total", "counter", "Packets that the capture says were dropped.", |i| {
                i.dropped
            }),
        ];
        for (name, kind, help, value) in inputs {
            head(&mut out, name, kind, help);
            for input in &values.inputs {
                let _ = writeln!(out, "{name}{{input=\"{}\"}} {}", escaped(&input.name), value(input));
            }
        }
        let totals = [
            ("crosswire_analyses_total", "Analyses of the windows.", values.analyses.to_string()),
            ("crosswire_analysis_seconds_total", "Time that these took.", values.analysis_seconds.to_string()),
            ("crosswire_untold_total", "Findings that the command was too slow for.", values.untold.to_string()),
        ];
        for (name, help, value) in totals {
            head(&mut out, name, "counter", help);
            let _ = writeln!(out, "{name} {value}");
        }
        out
    }

    /// Serves the metrics until stopped; gives the address.
    ///
    /// # Errors
    /// If it cannot be listened on.
    pub fn serve(&self, address: &str, stop: Stop) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        let metrics = self.clone();
        std::thread::Builder::new().name("metrics".into()).spawn(move || {
            while !stop.is_set() {
                match listener.accept() {
                    // One after the other: there is one reader.
                    Ok((stream, _)) => drop(metrics.answer(stream)),
                    Err(_) => std::thread::sleep(TICK),
                }
            }
        })?;
        Ok(local)
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.set_write_timeout(Some(Duration::from_secs(1)))?;
        let mut request = [0; 4096];
        let n = stream.read(&mut request)?;
        let asked = request.get(..n).unwrap_or_default();
        let is_ours = asked.starts_with(b"GET /metrics ") || asked.starts_with(b"GET / ");
        let (status, body) = if is_ours { ("200 OK", self.text()) } else { ("404 Not Found", String::new()) };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn they_are_served() {
        let metrics = Metrics::default();
        metrics.finding("crossed/id-collision");
        metrics.finding("crossed/id-collision");
        metrics.analysed(
            Duration::from_millis(1500),
            vec![Input { name: "a\"b.log".into(), records: 7, bytes: 700, dropped: 3 }],
        );
        let stop = Stop::default();
        let address = metrics.serve("127.0.0.1:0", stop.clone()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        stop.set();
        for line in [
            "crosswire_findings_total{rule=\"crossed/id-collision\"} 2",
            "crosswire_records_total{input=\"a\\\"b.log\"} 7",
            "crosswire_dropped_packets_total{input=\"a\\\"b.log\"} 3",
            "crosswire_analysis_seconds_total 1.5",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
    }
}
