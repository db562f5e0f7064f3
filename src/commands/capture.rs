//! `crosswire capture`: live capture by the helper.

use super::telling::{TellArgs, sure};
use super::{Command, TROUBLE, values};
use crate::drive::Stop;
use crate::live::capture::Settings;
use crate::live::capture::helper::{self, Running};
use crate::live::capture::ring::RingSettings;
use crate::live::watch::Watched;
use crate::live::watch::follow::{Follow, Ring};
use crate::live::watch::read;
use crate::model::options::ReadOptions;
use anyhow::{Context, anyhow};
use clap::{ArgGroup, Args, FromArgMatches};
use std::path::PathBuf;

/// `crosswire capture`
pub static COMMAND: Command = Command {
    name: "capture",
    define: Capture::augment_args,
    run: |matches| Capture::from_arg_matches(matches)?.run(),
};

/// Capture packets live, into one file or a ring of them
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("what").args(["write", "list"]).required(true))]
#[command(after_long_help = "\
Captures by the program crosswire-capture, which alone links libpcap and needs privileges: run as root, or give it \
the capability once with `setcap cap_net_raw,cap_net_admin+eip`. It is looked for beside crosswire and in PATH; \
CROSSWIRE_CAPTURE names it elsewhere.\n\n\
The file is pcapng with the names of interfaces and host, the filter, and how many packets the kernel dropped: a call \
that may have been among them is `unobserved` in every analysis, and never an orphan. It is complete at any moment, \
also where the program is killed.\n\n\
With --ring-size or --ring-time a new file is begun (NAME_00001_20261129194155.pcapng), and nothing is lost in between; \
--ring-files keeps the last ones only.\n\n\
Examples:\n  \
    crosswire capture --list\n  \
    crosswire capture -i lo -f 'tcp port 9311' -w backend.pcapng\n  \
    crosswire capture -i any -w traffic.pcapng --ring-size 200MB --ring-files 50\n\n\
Ends at Ctrl-C, or after --for. Exit status: 0 at a clean stop, 2 trouble.")]
struct Capture {
    /// Interface to capture on, or any; several with -i each [default: any]
    #[arg(short, long, value_name = "IFACE")]
    interface: Vec<String>,

    /// Capture only what this filter lets through (see pcap-filter(7)), such as 'tcp port 9311'
    #[arg(short, long, value_name = "BPF")]
    filter: Option<String>,

    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// List the interfaces, with addresses, and capture nothing
    #[arg(long)]
    list: bool,

    /// Most bytes kept of a packet; less than a whole packet is a hole in a body
    #[arg(short, long, value_name = "BYTES", default_value_t = 262_144, value_parser = values::whole::<u32, 64, 262_144>)]
    snap: u32,

    /// The kernel's buffer for each interface; a larger one drops less
    #[arg(short = 'B', long, value_name = "SIZE", default_value = "16MiB", value_parser = values::size_bytes)]
    buffer: u64,

    /// Do not take in packets for other machines
    #[arg(short = 'p', long)]
    no_promiscuous: bool,

    /// Begin a new file at this size
    #[arg(long, value_name = "SIZE", value_parser = values::size_bytes, requires = "write", help_heading = "Ring")]
    ring_size: Option<u64>,

    /// Begin a new file after this time
    #[arg(long, value_name = "DUR", value_parser = values::duration_ns, requires = "write", help_heading = "Ring")]
    ring_time: Option<i64>,

    /// Keep this many files, the last ones [default: all]
    #[arg(long, value_name = "N", value_parser = values::whole::<u32, 1, 4_294_967_295>, requires = "write", help_heading = "Ring")]
    ring_files: Option<u32>,

    /// Tell of findings as they happen, as `crosswire watch` does
    #[arg(long, requires = "write")]
    watch: bool,

    #[command(flatten)]
    telling: TellArgs,

    /// Stop after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DUR", value_parser = values::duration_ns)]
    time: Option<i64>,
}

impl Capture {
    fn run(self) -> anyhow::Result<u8> {
        let Some(file) = self.write.clone() else {
            return Ok(status(helper::list()?));
        };
        let stop = Stop::on_signals().context("signals cannot be caught")?;
        let settings = self.settings(file);
        if !self.watch {
            let running = Running::start(&settings)?;
            return Ok(status(running.wait(&stop).context("crosswire-capture cannot be waited for")?));
        }
        // What is there already is not of this capture.
        let ring = settings.ring.is_ring().then(|| Ring::before(&settings.file));
        if ring.is_none() && settings.file.is_file() {
            let unwritable = || format!("{}: cannot be written", settings.file.display());
            std::fs::remove_file(&settings.file).with_context(unwritable)?;
        }
        let running = Running::start(&settings)?;
        let window = self.telling.window(&settings.file.display().to_string(), 1);
        let (filled, path, stopped) = (window.clone(), settings.file, stop.clone());
        std::thread::spawn(move || {
            let first = match ring {
                Some(ring) => ring.follow(stopped.clone()),
                None => Follow::once(&path, &stopped),
            };
            if let Some(file) = first {
                read::follow(file, &ReadOptions::default(), &filled, &stopped);
            }
        });
        let watched = [Watched { window, is_wire: true, is_live: true }];
        std::thread::scope(|scope| {
            let (stop, telling) = (&stop, &self.telling);
            let tell = scope.spawn(move || telling.run(&watched, &ReadOptions::default(), &sure, stop));
            let code = running.wait(stop).context("crosswire-capture cannot be waited for");
            tell.join().unwrap_or_else(|_| Err(anyhow!("the analysis stopped")))?;
            Ok(status(code?))
        })
    }

    fn settings(&self, file: PathBuf) -> Settings {
        let interfaces = match self.interface.as_slice() {
            [] => vec!["any".to_owned()],
            given => given.to_vec(),
        };
        let ns = |ns: i64| ns.unsigned_abs();
        Settings {
            interfaces,
            filter: self.filter.clone(),
            file,
            snap_bytes: self.snap,
            buffer_bytes: u32::try_from(self.buffer).unwrap_or(u32::MAX).min(i32::MAX as u32),
            promiscuous: !self.no_promiscuous,
            ring: RingSettings {
                size_bytes: self.ring_size,
                time_ns: self.ring_time.map(ns),
                files: self.ring_files.map(|n| n as usize),
            },
            time_ns: self.time.map(ns),
        }
    }
}

fn status(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(TROUBLE)
}
