//! Runs every fuzz target over mutated seeds for a short time, on any toolchain.
//!
//! Without more it runs the same few hundred inputs a target each time. `FUZZ_SECONDS` is a time
//! over all targets instead, `FUZZ_SEED` another sequence of mutations, `FUZZ_TARGET` one target
//! alone, `FUZZ_INPUT` a file to run instead. See fuzz/README.md for long runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../fuzz/targets.rs"]
mod targets;

use crosswire::input::{client, log};
use std::cell::RefCell;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use targets::{TARGETS, Target};

/// Inputs a target where no time is given.
const INPUTS: u64 = 300;
/// An input is cut to this, bytes.
const INPUT_BYTES: usize = 64 << 10;
/// No input may take longer, in a debug build on a busy machine.
const ONE_INPUT: Duration = Duration::from_secs(20);
/// The most memory that the whole run may ever hold, KiB.
const PEAK_KIB: u64 = 768 << 10;

/// xorshift64*, Vigna 2016: repeatable and enough for this.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name)
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = vec![Vec::new()];
    let files = std::fs::read_dir(folder("corpus").join(target)).into_iter().flatten();
    let mut files: Vec<PathBuf> = files.map(|f| f.unwrap().path()).collect();
    files.sort();
    seeds.extend(files.iter().map(|f| std::fs::read(f).unwrap()));
    // A format carries its own seeds.
    let formats = match target {
        "client_logs" => client::FORMATS,
        "log_lines" | "journal" => log::FORMATS,
        _ => &[],
    };
    let formats = formats.iter().filter(|f| f.name.starts_with("journal") == (target == "journal"));
    seeds.extend(formats.flat_map(|f| f.samples).map(|s| s.as_bytes().to_vec()));
    seeds
}

/// One to eight changes to a seed.
fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const EDGES: [u64; 12] =
        [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, u64::MAX >> 1, u64::MAX];
    const WORDS: [&[u8]; 12] = [
        b"\r\n",
        b"\n\n",
        b"{}",
        b"\"",
        b"[",
        b"null",
        b"-1",
        b"1e999",
        b":",
        b"\0",
        b"\xff\xfe",
        b"99999999999999999999",
    ];
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(input.len() + 1);
        let length = random.below(32.min(input.len() - at) + 1);
        match random.below(9) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next() as u8,
            2 => drop(input.drain(at..at + length)),
            3 => input.truncate(at),
            4 => {
                let piece = input[at..at + length].to_vec();
                let to = random.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            5 => {
                let word = WORDS[random.below(WORDS.len())];
                input.splice(at..at + length.min(4), word.iter().copied());
            }
            6 => {
                let width = 1 << random.below(4);
                let edge = EDGES[random.below(EDGES.len())];
                let bytes = if random.below(2) == 0 { edge.to_le_bytes() } else { edge.to_be_bytes() };
                let bytes = if random.below(2) == 0 { &bytes[..width] } else { &bytes[8 - width..] };
                let end = (at + width).min(input.len());
                input.splice(at..end, bytes.iter().copied());
            }
            7 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                if let Some(digit) = input.iter_mut().skip(at).find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + random.below(10) as u8;
                }
            }
        }
    }
    input.truncate(INPUT_BYTES);
    input
}

thread_local! {
    /// The target and input at work, for the panic hook: some panics end the process.
    static AT_WORK: RefCell<(&'static str, Vec<u8>)> = const { RefCell::new(("", Vec::new())) };
}

/// Runs one input; the fault, if there is any.
fn run((name, body): Target, input: &[u8]) -> Option<String> {
    AT_WORK.with_borrow_mut(|work| {
        work.0 = name;
        work.1.clear();
        work.1.extend_from_slice(input);
    });
    let began = Instant::now();
    let survived = catch_unwind(|| body(input)).is_ok();
    let took = began.elapsed();
    AT_WORK.with_borrow_mut(|work| work.0 = "");
    if !survived {
        return Some(keep(name, input, "panicked"));
    }
    (took > ONE_INPUT).then(|| keep(name, input, &format!("took {took:?}")))
}

/// Writes the input of every panic down before the process may be gone.
fn keep_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        AT_WORK.with_borrow(|(name, input)| {
            if !name.is_empty() {
                println!("{}", keep(name, input, "panics"));
            }
        });
        before(panic);
    }));
}

/// Writes the input of a fault down and says where.
fn keep(target: &str, input: &[u8], what: &str) -> String {
    let folder = folder("artifacts").join(target);
    std::fs::create_dir_all(&folder).unwrap();
    let sum = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    let file = folder.join(format!("crash-{sum:016x}"));
    std::fs::write(&file, input).unwrap();
    format!("{target} {what}: {}", file.display())
}

fn fuzz(target: Target, time: Option<Duration>, seed: u64) -> Result<u64, String> {
    let seeds = seeds(target.0);
    if let Some(fault) = seeds.iter().find_map(|input| run(target, input)) {
        return Err(fault);
    }
    let mut random = Random(seed | 1);
    let until = time.map(|time| Instant::now() + time);
    let mut inputs = 0;
    while until.map_or(inputs < INPUTS, |until| Instant::now() < until) {
        let input = mutate(&seeds, &mut random);
        if let Some(fault) = run(target, &input) {
            return Err(fault);
        }
        inputs += 1;
    }
    Ok(inputs)
}

/// The most memory that this process ever held, KiB; none where /proc does not say.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value}")))
}

#[test]
fn every_target_survives() {
    let only = std::env::var("FUZZ_TARGET").ok();
    let chosen: Vec<Target> =
        TARGETS.iter().filter(|(n, _)| only.as_deref().is_none_or(|o| o == *n)).copied().collect();
    assert!(!chosen.is_empty(), "no target {only:?}");
    if let Ok(file) = std::env::var("FUZZ_INPUT") {
        let input = std::fs::read(&file).unwrap();
        chosen.iter().for_each(|(_, body)| body(&input));
        return;
    }
    keep_on_panic();
    let seed = number("FUZZ_SEED").unwrap_or(0x5eed);
    let time = number("FUZZ_SECONDS").map(|s| Duration::from_secs(s) / chosen.len() as u32);
    let mut faults = Vec::new();
    for target in chosen {
        match fuzz(target, time, seed) {
            Ok(inputs) => println!("{}: {inputs} inputs", target.0),
            Err(fault) => faults.push(fault),
        }
        if let Some(peak) = peak_kib().filter(|p| *p > PEAK_KIB) {
            faults.push(format!("{}: memory rose to {peak} KiB", target.0));
            break;
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn every_target_has_seeds() {
    for (name, _) in TARGETS {
        assert!(seeds(name).iter().any(|s| !s.is_empty()), "{name}: nothing in fuzz/corpus/{name}");
    }
}

#[test]
fn every_target_can_be_run_by_cargo_fuzz() {
    let manifest = std::fs::read_to_string(folder("Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is not in fuzz/Cargo.toml");
        let body = std::fs::read_to_string(folder("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(body.contains(&format!("targets::{name}(data)")), "{name}");
    }
}
