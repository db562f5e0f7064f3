//! How far a scan is, for a person who watches a terminal.

use super::source::Passed;
use crate::report::clean::clean_short;
use crate::report::view::{size, span};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the line is written.
const TICK: Duration = Duration::from_millis(250);
/// Room for the name of the current file.
const NAME_CHARS: usize = 40;

/// What is going on.
#[derive(Debug)]
pub struct Progress {
    phase: Mutex<Phase>,
    /// Findings so far.
    pub findings: AtomicU64,
    done: AtomicBool,
}

#[derive(Debug)]
struct Phase {
    what: &'static str,
    passed: Passed,
    total: u64,
    begun: Instant,
    current: String,
}

impl Default for Progress {
    fn default() -> Progress {
        let phase = Phase {
            what: "listing",
            passed: Passed::default(),
            total: 0,
            begun: Instant::now(),
            current: String::new(),
        };
        Progress { phase: Mutex::new(phase), findings: AtomicU64::new(0), done: AtomicBool::new(false) }
    }
}

impl Progress {
    /// Another kind of work begins, over `total` bytes that `passed` counts.
    pub fn begin(&self, what: &'static str, passed: &Passed, total: u64) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        *phase = Phase { what, passed: passed.clone(), total, begun: Instant::now(), current: String::new() };
    }

    /// The file that is being read.
    pub fn at(&self, name: &str) {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner).current = name.to_owned();
    }

    /// There is nothing more to show.
    pub fn finish(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    /// Writes a line over and over until all is done, and takes it away then.
    pub fn show(&self, out: &mut dyn Write) {
        while !self.done.load(Ordering::Relaxed) {
            let _ = write!(out, "\r\x1b[K{}", self.line()).and_then(|()| out.flush());
            std::thread::sleep(TICK);
        }
        let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
    }

    /// `reading 1.2 GiB of 5.0 GiB, 180.4 MiB/s, 21 s left, 12 findings: edge-1/nginx/access.log`
    pub fn line(&self) -> String {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let done = phase.passed.bytes().min(phase.total.max(1));
        let mut line = format!("{} {} of {}", phase.what, size(done), size(phase.total));
        let elapsed = phase.begun.elapsed().as_secs_f64();
        if elapsed > 0.5 && done > 0 {
            let rate = done as f64 / elapsed;
            let left = phase.total.saturating_sub(done) as f64 / rate;
            line.push_str(&format!(", {}/s, {} left", size(rate as u64), span((left * 1e9) as i64)));
        }
        let findings = self.findings.load(Ordering::Relaxed);
        line.push_str(&format!(", {findings} finding{}", if findings == 1 { "" } else { "s" }));
        if !phase.current.is_empty() {
            let chars: Vec<char> = clean_short(&phase.current, 4096).chars().collect();
            let end: String = chars.iter().skip(chars.len().saturating_sub(NAME_CHARS)).collect();
            line.push_str(&format!(": {}{end}", if chars.len() > NAME_CHARS { "…" } else { "" }));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::{Passed, Progress};
    use std::sync::atomic::Ordering;

    #[test]
    fn says_how_far_it_is() {
        let (progress, passed) = (Progress::default(), Passed::default());
        progress.begin("reading", &passed, 4096);
        passed.add(1024);
        progress.at("archive/edge-1/\x1b[31mnginx/and/a/very/long/path/to/an/access.log.12.gz");
        progress.findings.store(3, Ordering::Relaxed);
        let line = progress.line();
        assert!(line.starts_with("reading 1.0 KiB of 4.0 KiB"), "{line}");
        assert!(line.contains("3 findings: …") && line.ends_with("access.log.12.gz"), "{line}");
        assert!(!line.contains('\x1b'));
    }
}
