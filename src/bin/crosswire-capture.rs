//! The part of crosswire that links libpcap and needs privileges: it captures, lists interfaces and
//! compiles filters, and reads no file. `crosswire capture` and `--filter` run it.
//!
//! usage: crosswire-capture list | compile EXPRESSION LINKTYPE… | capture SETTINGS (JSON)

use crosswire::drive::Stop;
use crosswire::live::capture::Settings;
use crosswire::live::capture::ring::{Captured, Drops, Ring};
use crosswire::model::limits::CAPTURE_PACKETS;
use pcap::{Active, Capture, Device, Linktype, Precision};
use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long the kernel gathers packets before it hands them over.
const GATHER: Duration = Duration::from_millis(100);
/// How long to sleep where there is nothing. Waiting inside libpcap is no choice: on Linux it ends
/// only with a packet, whatever the time given.
const IDLE: Duration = Duration::from_millis(10);
/// How often drops are asked for.
const COUNT: Duration = Duration::from_secs(1);
/// How often drops are told on the terminal, at most.
const TELL: Duration = Duration::from_secs(10);
/// Bytes kept of a packet where the user's number is none.
const SNAP: i32 = 262_144;

/// LINKTYPE_RAW in files, and the number that libpcap has for it here.
const RAW: (u16, i32) = (101, 12);
/// LINKTYPE_LINUX_SLL2.
const COOKED: i32 = 276;

type Trouble = String;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["list"] => list(),
        ["compile", expression, links @ ..] => compile(expression, links),
        ["capture", settings] => serde_json::from_str(settings)
            .map_err(|e| format!("settings that cannot be read ({e}); run `crosswire capture`"))
            .and_then(|settings| capture(&settings)),
        _ => Err("run by `crosswire capture` and --filter; see crosswire-capture(1)".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            say(&trouble);
            ExitCode::from(2)
        }
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "crosswire: {text}");
}

/// What to do about an error of libpcap.
fn explain(interface: &str, e: &pcap::Error) -> Trouble {
    let text = e.to_string();
    let lower = text.to_lowercase();
    if lower.contains("permi") {
        let own = std::env::current_exe().map_or_else(|_| "crosswire-capture".into(), |p| p.display().to_string());
        return format!(
            "{interface}: no permission to capture ({text}); run as root, or give the helper the capability once: \
             sudo setcap cap_net_raw,cap_net_admin+eip {own}"
        );
    }
    if lower.contains("no such device") || lower.contains("doesn't exist") {
        return format!("{interface}: there is no such interface; `crosswire capture --list` lists them");
    }
    format!("{interface}: cannot be captured: {text}")
}

fn list() -> Result<(), Trouble> {
    let devices = Device::list().map_err(|e| explain("the interfaces", &e))?;
    let mut out = std::io::stdout().lock();
    for device in devices {
        let addresses: Vec<String> = device.addresses.iter().map(|a| a.addr.to_string()).collect();
        let line = [device.name, addresses.join(", "), device.desc.unwrap_or_default()].join("\t");
        // A closed pipe is no trouble.
        let _ = writeln!(out, "{}", line.trim_end());
    }
    Ok(())
}

fn compile(expression: &str, links: &[&str]) -> Result<(), Trouble> {
    let mut out = std::io::stdout().lock();
    for link in links {
        let Ok(number) = link.parse::<u16>() else { return Err(format!("{link}: no link type")) };
        let _ = writeln!(out, "link {link}");
        // The files' numbers are libpcap's own but for raw IP.
        let own = if [RAW.0, 14].contains(&number) { RAW.1 } else { i32::from(number) };
        match Capture::dead(Linktype(own)).and_then(|dead| dead.compile(expression, true)) {
            Ok(program) => {
                for instruction in program.get_instructions() {
                    let _ = writeln!(out, "{instruction}");
                }
            }
            Err(e) => drop(writeln!(out, "error {}", e.to_string().replace('\n', " "))),
        }
    }
    Ok(())
}

enum Seen {
    Packet { interface: u32, ns: u64, data: Vec<u8>, wire_len: u32 },
    Drops { interface: u32, drops: Drops },
    Ended(Trouble),
}

fn capture(settings: &Settings) -> Result<(), Trouble> {
    // Without the program that started it nobody would stop it.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT));
    let stop = Stop::on_signals().map_err(|e| format!("signals cannot be caught: {e}"))?;
    let mut opened = vec![];
    let mut interfaces = vec![];
    let devices = Device::list().unwrap_or_default();
    for name in &settings.interfaces {
        let handle = open(name, settings)?;
        let link = u16::try_from(handle.get_datalink().0).unwrap_or(0);
        let link = if i32::from(link) == RAW.1 { RAW.0 } else { link };
        let description = devices.iter().find(|d| d.name == *name).and_then(|d| d.desc.clone()).unwrap_or_default();
        interfaces.push(Captured { name: name.clone(), description, link });
        opened.push(handle);
    }
    let filter = settings.filter.as_deref().unwrap_or_default();
    let comment = "Captured by crosswire";
    let ring = Ring::create(&settings.file, settings.ring.clone(), &interfaces, filter, settings.snap_bytes, comment);
    let ring = ring.map_err(|e| format!("{}: cannot be written: {e}", settings.file.display()))?;
    if let Some(ns) = settings.time_ns {
        stop.set_after(Duration::from_nanos(ns));
    }
    say(&format!("capturing on {}; Ctrl-C ends it", settings.interfaces.join(", ")));
    let (send, receive) = sync_channel(CAPTURE_PACKETS);
    std::thread::scope(|scope| {
        for (interface, handle) in (0_u32..).zip(opened) {
            let (send, stop) = (send.clone(), stop.clone());
            scope.spawn(move || read(interface, handle, &send, &stop));
        }
        drop(send);
        write(ring, &receive, &stop, settings)
    })
}

fn open(name: &str, settings: &Settings) -> Result<Capture<Active>, Trouble> {
    let inactive = Capture::from_device(name).map_err(|e| explain(name, &e))?;
    let inactive = inactive
        .promisc(settings.promiscuous && name != "any")
        .snaplen(i32::try_from(settings.snap_bytes).unwrap_or(SNAP))
        .buffer_size(i32::try_from(settings.buffer_bytes).unwrap_or(i32::MAX))
        .timeout(i32::try_from(GATHER.as_millis()).unwrap_or(100))
        .precision(Precision::Nano);
    let mut handle = inactive.open().map_err(|e| explain(name, &e))?;
    if name == "any" {
        // Says of each packet which interface it was on; older libpcap has it not.
        let _ = handle.set_datalink(Linktype(COOKED));
    }
    if let Some(filter) = &settings.filter {
        handle.filter(filter, true).map_err(|e| format!("-f {filter}: {e}"))?;
    }
    handle.setnonblock().map_err(|e| explain(name, &e))
}

/// Reads an interface until stopped, and then what waits in the kernel.
fn read(interface: u32, mut handle: Capture<Active>, send: &SyncSender<Seen>, stop: &Stop) {
    let mut counted = Instant::now();
    let mut stopped: Option<Instant> = None;
    let drops = |handle: &mut Capture<Active>| {
        let Ok(s) = handle.stats() else { return };
        let (received, kernel, interface_dropped) = (s.received.into(), s.dropped.into(), s.if_dropped.into());
        let drops = Drops { received, kernel, interface: interface_dropped };
        let _ = send.send(Seen::Drops { interface, drops });
    };
    loop {
        match handle.next_packet() {
            Ok(packet) => {
                let (seconds, ns) = (packet.header.ts.tv_sec, packet.header.ts.tv_usec);
                let ns = (seconds as u64).saturating_mul(1_000_000_000).saturating_add(ns as u64);
                let (data, wire_len) = (packet.data.to_vec(), packet.header.len);
                if send.send(Seen::Packet { interface, ns, data, wire_len }).is_err() {
                    return;
                }
            }
            // What came last is handed over after a while.
            Err(pcap::Error::TimeoutExpired) if stopped.is_some_and(|at| at.elapsed() > 2 * GATHER) => break,
            Err(pcap::Error::TimeoutExpired) => std::thread::sleep(IDLE),
            Err(e) => {
                drops(&mut handle);
                let _ = send.send(Seen::Ended(e.to_string()));
                return;
            }
        }
        // Where packets never cease.
        if stop.is_set() && stopped.get_or_insert_with(Instant::now).elapsed() > COUNT {
            break;
        }
        if counted.elapsed() >= COUNT {
            counted = Instant::now();
            drops(&mut handle);
        }
    }
    drops(&mut handle);
}

fn write(mut ring: Ring, receive: &Receiver<Seen>, stop: &Stop, settings: &Settings) -> Result<(), Trouble> {
    let mut all = vec![Drops::default(); settings.interfaces.len()];
    let mut told = (0, None::<Instant>);
    let mut trouble = None;
    let unwritable = |e: std::io::Error| format!("{}: cannot be written: {e}", settings.file.display());
    loop {
        let done = match receive.recv_timeout(GATHER) {
            Ok(Seen::Packet { interface, ns, data, wire_len }) => ring.packet(interface, ns, &data, wire_len),
            Ok(Seen::Drops { interface, drops }) => {
                ring.counted(interface, drops);
                if let Some(slot) = all.get_mut(interface as usize) {
                    *slot = drops;
                }
                Ok(())
            }
            Ok(Seen::Ended(e)) => {
                trouble.get_or_insert(format!("the capture ended: {e}"));
                stop.set();
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Err(e) = done.and_then(|()| ring.tick()) {
            stop.set();
            trouble.get_or_insert(unwritable(e));
        }
        let lost: u64 = all.iter().map(|d| d.kernel + d.interface).sum();
        if lost > told.0 && told.1.is_none_or(|at| at.elapsed() >= TELL) {
            say(&format!("{lost} packets dropped so far; a larger buffer (-B) or a filter (-f) helps"));
            told = (lost, Some(Instant::now()));
        }
    }
    let outcome = ring.finish();
    for (name, drops) in settings.interfaces.iter().zip(&outcome.drops) {
        say(&format!(
            "{name}: {} packets came, {} dropped by the kernel, {} by the interface",
            drops.received, drops.kernel, drops.interface
        ));
    }
    let files = if outcome.files == 1 { String::new() } else { format!(" in {} files", outcome.files) };
    say(&format!("{}: {} packets{files}", settings.file.display(), outcome.packets));
    if outcome.unwritten > 0 {
        let why = outcome.error.unwrap_or_default();
        return Err(format!("{} packets could not be written: {why}", outcome.unwritten));
    }
    trouble.map_or(Ok(()), Err)
}
