//! `crosswire proxy`: a recording reverse proxy.

use super::telling::{TellArgs, sure};
use super::{CLEAN, Command, TROUBLE, complain, values};
use crate::drive::Stop;
use crate::input::capture::CaptureKind;
use crate::live::proxy::{self, Counts, Settings, Speak, Upstream};
use crate::live::spool::{Out, Spool, Tee};
use crate::live::watch::Watched;
use crate::live::watch::read::{self, Kind, Shared};
use crate::model::limits::{DETECT_BLOCKS, SPOOL_BYTES};
use crate::model::options::ReadOptions;
use anyhow::{Context, anyhow};
use clap::{ArgGroup, Args, FromArgMatches};
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TrySendError, sync_channel};
use std::time::Duration;

/// `crosswire proxy`
pub static COMMAND: Command =
    Command { name: "proxy", define: Proxy::augment_args, run: |matches| Proxy::from_arg_matches(matches)?.run() };

/// Record the traffic of a server that cannot be captured in the clear: a reverse proxy that changes nothing
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("what").args(["write", "guard", "detect"]).multiple(true).required(true))]
#[command(after_long_help = "\
Give the client the proxy's address in the place of the server's, with the same path. The recording is a capture of the \
decrypted traffic between client and server (HTTP/1.1, one connection for each HTTP/2 stream) that every command here \
and Wireshark read as any other. Credentials in header fields, in the query and in forms are left out of it.\n\n\
The proxy speaks HTTP/1.1 and HTTP/2 with clients, and with the server what that chooses over TLS. Events are passed on \
as they come. It never answers for the server: where the server cannot be reached, closes or resets, so does the proxy; \
where a client leaves, the server sees it. When the disk is full or slow it goes on, and counts in the recording what it \
did not record, so that nothing is concluded from what is missing.\n\n\
With --guard it refuses (409, a JSON-RPC error) a request whose id is already in flight on its session, which makes many \
servers give one caller the other's reply. An id is free again when its reply has passed, or it was cancelled, or after \
--guard-hold.\n\n\
Examples:\n  \
    crosswire proxy --listen 127.0.0.1:8080 --upstream https://mcp.example.com -w traffic.pcapng\n  \
    crosswire proxy --listen 0.0.0.0:8443 --cert chain.pem --key key.pem --upstream http://127.0.0.1:9000 -w traffic.pcapng --guard\n\n\
Ends at Ctrl-C, or after --for. Exit status: 0 at a clean stop, 2 trouble.")]
struct Proxy {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: String,

    /// The server, http:// or https://; requests keep their own path
    #[arg(long, value_name = "URL", value_parser = upstream)]
    upstream: Upstream,

    /// Write the decrypted traffic to this pcapng capture
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Record credentials too
    #[arg(long, requires = "write")]
    keep_credentials: bool,

    /// Refuse a request whose id is already in flight on its session
    #[arg(long)]
    guard: bool,

    /// How long an id that is never answered stays taken
    #[arg(long, value_name = "DUR", default_value = "300s", value_parser = values::duration_ns, requires = "guard")]
    guard_hold: i64,

    /// Serve clients over TLS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "TLS")]
    cert: Option<PathBuf>,

    /// The private key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "TLS")]
    key: Option<PathBuf>,

    /// Trust this certificate (PEM) of the server or its authority, beside those the system trusts
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    ca: Vec<PathBuf>,

    /// How to speak with the server: auto (over TLS what it chooses, else HTTP/1.1), http1 or http2
    #[arg(long, value_name = "VERSION", default_value = "auto", value_parser = speak)]
    speak: Speak,

    /// Pass the client's Host field on [default: the server's name, as its own clients would send]
    #[arg(long)]
    keep_host: bool,

    /// Tell of findings as they happen, as `crosswire watch` does
    #[arg(long, visible_alias = "watch")]
    detect: bool,

    #[command(flatten)]
    telling: TellArgs,

    /// Traffic that may wait for the disk
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size_bytes, requires = "write")]
    buffer: u64,

    /// Stop after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DUR", value_parser = values::duration_ns)]
    time: Option<i64>,
}

fn upstream(url: &str) -> Result<Upstream, String> {
    Upstream::parse(url).map_err(|e| e.to_string())
}

fn speak(name: &str) -> Result<Speak, String> {
    match name {
        "auto" => Ok(Speak::Auto),
        "http1" => Ok(Speak::Http1),
        "http2" => Ok(Speak::Http2),
        _ => Err("expected auto, http1 or http2".into()),
    }
}

impl Proxy {
    fn run(self) -> anyhow::Result<u8> {
        let stop = Stop::on_signals().context("signals cannot be caught")?;
        super::driving::more_files();
        let room = usize::try_from(self.buffer).unwrap_or(SPOOL_BYTES).min(SPOOL_BYTES);
        let comment = format!(
            "Written by crosswire proxy: decrypted traffic of clients with {}{}",
            self.upstream,
            if self.keep_credentials { "" } else { ", without credentials" }
        );
        let detection = self.detect.then(|| self.detection(&stop));
        let (window, tee) = detection.unzip();
        let out: Option<Box<dyn Out>> = match &self.write {
            Some(path) => {
                let file = File::create(path).with_context(|| format!("{}: cannot be written", path.display()))?;
                Some(Box::new(file))
            }
            None => self.detect.then(|| Box::new(Nowhere) as Box<dyn Out>),
        };
        let unwritable = || format!("{}: cannot be written", self.file().display());
        let spool = out.map(|out| Spool::begin(out, &comment, room, tee).with_context(unwritable));
        let (spool, recorder) = spool.transpose()?.unzip();
        let settings = Settings {
            listen: self.listen.clone(),
            upstream: self.upstream.clone(),
            speak: self.speak,
            identity: self.cert.clone().zip(self.key.clone()),
            trusted: self.ca.clone(),
            keep_host: self.keep_host,
            keep_credentials: self.keep_credentials,
            guard: self.guard.then(|| Duration::from_nanos(self.guard_hold.unsigned_abs())),
            recorder,
            say: Box::new(complain),
        };
        let counts = Arc::new(Counts::default());
        if let Some(ns) = self.time {
            stop.set_after(Duration::from_nanos(ns.unsigned_abs()));
        }
        let scheme = if self.cert.is_some() { "https" } else { "http" };
        let ready = |address| {
            complain(&format!("proxy for {} at {scheme}://{address}", self.upstream));
        };
        let told = std::thread::scope(|scope| {
            let tell = window.map(|window| {
                let (stop, telling) = (&stop, &self.telling);
                let watched = [Watched { window, is_wire: true, is_live: true }];
                scope.spawn(move || telling.run(&watched, &ReadOptions::default(), &sure, stop))
            });
            let done = proxy::run(settings, counts.clone(), &stop, ready);
            stop.set();
            let told = tell.map_or(Ok(()), |t| t.join().unwrap_or_else(|_| Err(anyhow!("the analysis stopped"))));
            done.map_err(Into::into).and(told)
        });
        told?;
        let count = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
        complain(&format!(
            "{} requests on {} connections, {} without an answer{}",
            count(&counts.exchanges),
            count(&counts.connections),
            count(&counts.lost),
            if self.guard { format!(", {} refused by the guard", count(&counts.guarded)) } else { String::new() }
        ));
        Ok(match (spool, &self.write) {
            (Some(spool), Some(path)) => recorded(spool, path),
            _ => CLEAN,
        })
    }
}

impl Proxy {
    /// Where the traffic is recorded, or would be.
    fn file(&self) -> PathBuf {
        self.write.clone().unwrap_or_else(|| "proxy".into())
    }

    /// A window of what is recorded, and what fills it.
    fn detection(&self, stop: &Stop) -> (Shared, Tee) {
        let window = self.telling.window(&self.file().display().to_string(), 1);
        let (send, receive) = sync_channel(DETECT_BLOCKS);
        let (filled, stop) = (window.clone(), stop.clone());
        std::thread::spawn(move || {
            let source = Blocks { receive, stop, block: Cursor::new(vec![]) };
            read::stream(source, Some(Kind::Capture(CaptureKind::Pcapng)), &ReadOptions::default(), &filled);
        });
        let (missed, told) = (window.clone(), AtomicU64::new(0));
        let tee: Tee = Box::new(move |block| {
            // What the analysis is too slow for counts as dropped: nothing is concluded from it.
            if let Err(TrySendError::Full(_)) = send.try_send(block.to_vec()) {
                read::lock(&missed).dropped(told.fetch_add(1, Ordering::Relaxed) + 1);
            }
        });
        (window, tee)
    }
}

/// Takes everything, where nothing is to be recorded.
struct Nowhere;

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out for Nowhere {
    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// The blocks of a recording as a stream.
struct Blocks {
    receive: Receiver<Vec<u8>>,
    stop: Stop,
    block: Cursor<Vec<u8>>,
}

impl Read for Blocks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.block.read(out)?;
            if n > 0 || out.is_empty() {
                return Ok(n);
            }
            match self.receive.recv_timeout(Duration::from_millis(100)) {
                Ok(block) => self.block = Cursor::new(block),
                Err(RecvTimeoutError::Timeout) if !self.stop.is_set() => {}
                Err(_) => return Ok(0),
            }
        }
    }
}

/// Ends a recording, and says what is in it.
fn recorded(spool: Spool, path: &std::path::Path) -> u8 {
    let counts = spool.finish();
    if counts.lost() == 0 {
        complain(&format!("{}: {} packets", path.display(), counts.written));
        return CLEAN;
    }
    let why = counts.error.map_or_else(String::new, |e| format!(" ({e})"));
    complain(&format!(
        "{}: {} packets; {} more were not recorded: {} because the disk was behind, {} because they could not be written{why}",
        path.display(),
        counts.written,
        counts.behind.saturating_add(counts.failed),
        counts.behind,
        counts.failed
    ));
    TROUBLE
}
