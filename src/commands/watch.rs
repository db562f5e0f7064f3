//! `crosswire watch`: follow growing logs and captures.

use super::options::{FilterArgs, ReadArgs};
use super::telling::TellArgs;
use super::{CLEAN, Command, complain, values};
use crate::drive::Stop;
use crate::live::watch::Watched;
use crate::live::watch::follow::Follow;
use crate::live::watch::read::{self, Kind};
use crate::model::report::Report;
use anyhow::{Context, anyhow, bail};
use clap::{Args, FromArgMatches};
use std::path::PathBuf;
use std::time::Duration;

/// `crosswire watch`
pub static COMMAND: Command =
    Command { name: "watch", define: Watch::augment_args, run: |matches| Watch::from_arg_matches(matches)?.run() };

/// Follow growing logs and captures, and tell each finding once when it is certain enough
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = "\
Follows files as tail -F does: through growth, rotation by renaming (logrotate's create) and by cutting (copytruncate). \
`-` is standard input, such as of `journalctl -f -o json`.\n\n\
Of each input the last minutes are kept (--window, --window-size) and analysed again whenever something came; a \
finding is told once, when nothing about it has changed for --settle. What can be told is what analyze would say of that \
window: a call and all that explains it must lie within it, and in a window that is full the first quarter only \
explains. Memory stays within a few times --window-size however long it runs.\n\n\
A call that is never answered is known as one only when later records show that its caller has waited too long.\n\n\
Examples:\n  \
    crosswire watch backend.pcapng access.log\n  \
    journalctl -u mcp-server -f -o json | crosswire watch access.log - --findings-format ndjson\n  \
    crosswire watch access.log --exec 'mail -s \"$CROSSWIRE_RULE\" ops' --metrics 127.0.0.1:9464\n\n\
Ends at Ctrl-C, or after --for, and then tells what is left. Exit status: 0 at a clean stop, 2 trouble.")]
struct Watch {
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    tell: TellArgs,

    /// Stop after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DUR", value_parser = values::duration_ns)]
    time: Option<i64>,
}

impl Watch {
    fn run(self) -> anyhow::Result<u8> {
        let stop = Stop::on_signals().context("signals cannot be caught")?;
        let options = self.read.read_options()?;
        self.read.check_paths()?;
        let select = selection(&self.filter)?;
        let inputs = &self.read.inputs;
        let mut watched = vec![];
        for name in inputs {
            let window = self.tell.window(name, inputs.len());
            let filling = (window.clone(), options.clone());
            if name == "-" {
                watched.push(Watched { window, is_wire: false, is_live: false });
                std::thread::spawn(move || {
                    let (window, options) = filling;
                    read::stream(std::io::stdin(), Some(Kind::Log), &options, &window);
                });
                continue;
            }
            let path = PathBuf::from(name);
            if path.is_dir() {
                bail!("{name}: a directory cannot be followed; name its files");
            }
            let kind = read::kind(&path, &options).map_err(|e| anyhow!(e))?;
            let file = Follow::open(&path, stop.clone()).with_context(|| name.clone())?;
            // An empty file is what its name says, until it has bytes.
            let is_capture = |name: &str| name.split('.').any(|part| matches!(part, "pcap" | "pcapng" | "cap"));
            let is_wire = kind.map_or_else(|| is_capture(name), |kind| kind != Kind::Log);
            watched.push(Watched { window, is_wire, is_live: false });
            let stop = stop.clone();
            std::thread::spawn(move || {
                let (window, options) = filling;
                read::follow(file, &options, &window, &stop);
            });
        }
        if let Some(ns) = self.time {
            stop.set_after(Duration::from_nanos(ns.unsigned_abs()));
        }
        complain(&format!("watching {}; Ctrl-C ends it", inputs.join(", ")));
        self.tell.run(&watched, &options, &*select, &stop)?;
        Ok(CLEAN)
    }
}

/// Takes out of a report what is not wanted.
type Select = Box<dyn Fn(&mut Report)>;

/// What the options of selection leave.
fn selection(args: &FilterArgs) -> anyhow::Result<Select> {
    let (baseline, filter) = (args.baseline()?, args.filter()?);
    Ok(Box::new(move |report| {
        filter.apply(report);
        if let Some((baseline, _)) = &baseline {
            baseline.apply(report);
        }
    }))
}
