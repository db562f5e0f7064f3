//! The report does not depend on how the packets were cut, shuffled, doubled, or spread over files;
//! and a packet that is missing accuses nobody.

use crate::kit::packets::Packet;
use crate::kit::scene::Scene;
use crate::kit::*;
use crosswire::model::report::{Call, Delivered, Report};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::collections::BTreeSet;

/// Captures that must read the same in any disorder: made ones with a finding of each family, and real ones.
fn captures() -> Vec<(&'static str, Vec<Packet>)> {
    let mut out = vec![("made", made().packets())];
    for name in [
        "02-crossed-id-collision",
        "10a-raw-body-swap",
        "11-resumability",
        "09-legacy-sse-clean",
        "19-jsonrpc-batch-sse",
    ] {
        out.push((name, fixture(&format!("{name}/backend.pcap"))));
    }
    out
}

/// Body swap, dropped reply, collision, copy and stale window in one short capture, JSON and SSE.
fn made() -> Traffic {
    let (mut t, s) = known("s-1111");
    let a = append(&mut t, &s, 5, "walk-0017");
    let b = update(t.wait(20), &s, 6, "park-0042");
    t.wait(50).answer(a, &update_result("park-0042"));
    t.wait(5).answer(b, &append_result("walk-0017"));
    let a = append(t.wait(50), &s, 7, "walk-0018");
    t.wait(3).open(a);
    let b = update(t.wait(20), &s, 7, "park-0043");
    t.json = true;
    t.wait(50).reply(b, &append_reply("7", "walk-0018"));
    let c = update(t.wait(20).on(b), &s, 8, "park-0044");
    t.wait(20).answer(c, &update_result("park-0044"));
    t.json = false;
    let d = append(t.wait(20), &s, 9, "walk-0019");
    t.wait(20).reply(d, &update_reply("8", "park-0044"));
    t.wait(60_000).close(a);
    let x = append(t.wait(50), &s, 10, "walk-0020");
    t.wait(3).status(x, 404, &error_of("\"server-error\"", -32600, "Session not found"));
    let new = t.wait(100).handshake(&client("2025-06-18"), Some("s-2222"));
    let x = append(t.wait(2000), &new, 2, "walk-0021");
    t.wait(20).answer(x, &append_result("walk-0021"));
    t
}

/// Runs `mess` on every capture, `cases` times each, and compares.
fn unchanged(cases: u32, mess: impl Fn(&[Packet], &mut Choices) -> Vec<Packet>) {
    unchanged_in(captures(), cases, mess);
}

fn unchanged_in(
    captures: Vec<(&'static str, Vec<Packet>)>,
    cases: u32,
    mess: impl Fn(&[Packet], &mut Choices) -> Vec<Packet>,
) {
    for (name, packets) in captures {
        let want = essence(&analyze(&packets));
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let result = runner.run(&any::<u64>().no_shrink(), |seed| {
            let got = essence(&analyze(&mess(&packets, &mut Choices(seed | 1))));
            same_lines(name, seed, &want, &got)
        });
        if let Err(e) = result {
            panic!("{e}");
        }
    }
}

fn same_lines(name: &str, seed: u64, want: &[String], got: &[String]) -> Result<(), TestCaseError> {
    if want == got {
        return Ok(());
    }
    let (a, b): (BTreeSet<_>, BTreeSet<_>) = (want.iter().collect(), got.iter().collect());
    let (less, more): (Vec<_>, Vec<_>) = (a.difference(&b).collect(), b.difference(&a).collect());
    Err(TestCaseError::fail(format!("{name}, seed {seed}\n lost: {less:#?}\n came: {more:#?}")))
}

/// Choices that follow from one number (xorshift64).
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

pub fn payloads_cut_anywhere() {
    unchanged(5, |packets, c| {
        packets
            .iter()
            .flat_map(|p| {
                let n = p.payload().len();
                let cuts: Vec<usize> = (0..c.below(5)).map(|_| c.below(n)).collect();
                p.split(&cuts)
            })
            .collect()
    });
}

pub fn every_byte_by_itself() {
    // Single bytes everywhere would be slow; one packet in eight is enough to meet every kind of place.
    unchanged(2, |packets, c| {
        packets
            .iter()
            .flat_map(|p| {
                let all: Vec<usize> = (1..p.payload().len().min(300)).collect();
                if c.below(8) == 0 { p.split(&all) } else { vec![p.clone()] }
            })
            .collect()
    });
}

/// Segments that follow each other come as one, as offloading hands them on.
pub fn segments_joined() {
    unchanged(1, |packets, _| {
        let mut out: Vec<Packet> = vec![];
        for p in packets.iter().filter(|p| !p.is_pure_ack()) {
            match out.last().and_then(|last| last.join(p)) {
                Some(both) => *out.last_mut().unwrap() = both,
                None => out.push(p.clone()),
            }
        }
        out
    });
}

/// Each packet up to three places from where it was; its time goes with it, or stays in order.
fn shuffle(packets: &[Packet], c: &mut Choices, keep_times_sorted: bool) -> Vec<Packet> {
    let mut keyed: Vec<(usize, Packet)> =
        packets.iter().enumerate().map(|(i, p)| (i * 2 + c.below(7), p.clone())).collect();
    keyed.sort_by_key(|(k, _)| *k);
    let mut out: Vec<Packet> = keyed.into_iter().map(|(_, p)| p).collect();
    if keep_times_sorted {
        let mut times: Vec<i64> = out.iter().map(|p| p.us).collect();
        times.sort_unstable();
        out.iter_mut().zip(times).for_each(|(p, us)| p.us = us);
    }
    out
}

/// Captures whose connections end within a call: their FINs' times say who ended it.
const END_EARLY: [&str; 2] = ["02-crossed-id-collision", "11-resumability"];

pub fn packets_shuffled() {
    unchanged(4, |packets, c| shuffle(packets, c, false));
    let captures = captures().into_iter().filter(|(name, _)| !END_EARLY.contains(name)).collect();
    unchanged_in(captures, 4, |packets, c| shuffle(packets, c, true));
}

/// A client's FIN that comes 280 µs before the server's must be known for the first by its time.
pub fn ends_shuffled() {
    let captures = captures().into_iter().filter(|(name, _)| END_EARLY.contains(name)).collect();
    unchanged_in(captures, 60, |packets, c| shuffle(packets, c, false));
}

pub fn packets_doubled() {
    unchanged(3, |packets, c| {
        let mut out: Vec<(i64, Packet)> = vec![];
        for p in packets {
            out.push((p.us, p.clone()));
            if c.below(3) == 0 {
                let later = p.us + c.below(400) as i64;
                out.push((later, Packet { us: later, ..p.clone() }));
            }
        }
        out.sort_by_key(|(us, _)| *us);
        out.into_iter().map(|(_, p)| p).collect()
    });
}

pub fn no_pure_acks() {
    unchanged(1, |packets, _| packets.iter().filter(|p| !p.is_pure_ack()).cloned().collect());
}

/// The calls with what became of them and the findings, without the order in which files were given.
pub fn captures_in_either_order() {
    for name in ["01-clean", "02-crossed-id-collision", "11-resumability"] {
        let (front, back) = (fixture(&format!("{name}/front.pcap")), fixture(&format!("{name}/backend.pcap")));
        let (one, two) = (analyze_all(&[&front, &back]), analyze_all(&[&back, &front]));
        assert_eq!(essence(&one), essence(&two), "{name}");
    }
}

pub fn rotated_files() {
    for (name, packets) in captures() {
        let want = essence(&analyze(&packets));
        for parts in [2, 3, 7] {
            let pieces: Vec<&[Packet]> = packets.chunks(packets.len().div_ceil(parts)).collect();
            assert_eq!(essence(&analyze_all(&pieces)), want, "{name} in {parts}");
            let backwards: Vec<&[Packet]> = pieces.into_iter().rev().collect();
            assert_eq!(essence(&analyze_all(&backwards)), want, "{name} in {parts}, last first");
        }
        // The same capture twice is one capture.
        assert_eq!(essence(&analyze_all(&[&packets, &packets])), want, "{name} twice");
    }
}

/// No crossing comes from a packet that is missing, and no call that was answered is an orphan for it.
fn loss_accuses_nobody(name: &str, packets: &[Packet], lose: impl Fn(usize) -> Vec<usize>) {
    let whole = analyze(packets);
    let allowed = crossed(&whole);
    let answered: BTreeSet<String> =
        whole.calls.iter().filter(|c| c.delivered == Delivered::Own).map(exact_name).collect();
    for n in 0..packets.len() {
        let lost = lose(n);
        let rest: Vec<Packet> =
            packets.iter().enumerate().filter(|(i, _)| !lost.contains(i)).map(|(_, p)| p.clone()).collect();
        let report = analyze(&rest);
        let new: Vec<String> = crossed(&report).difference(&allowed).cloned().collect();
        assert!(new.is_empty(), "{name} without {lost:?}: {new:#?} {:#?}", lines(&report));
        // Of a whole stream there may be nothing left that tells of the loss.
        if lost.len() > 1 {
            continue;
        }
        for f in report.findings.iter().filter(|f| f.rule.starts_with("orphaned/")) {
            let victim = f.victim.and_then(|v| report.calls.iter().find(|c| c.key == v));
            let Some(who) = victim.map(exact_name) else { continue };
            assert!(!answered.contains(&who), "{name} without {lost:?}: {} about {who}", f.rule);
        }
    }
}

/// The callers that got another's reply. Which rule says so may change with what is missing.
fn crossed(report: &Report) -> BTreeSet<String> {
    let crossed = report.findings.iter().filter(|f| f.rule.starts_with("crossed/"));
    crossed.filter_map(|f| report.calls.iter().find(|c| Some(c.key) == f.victim)).map(exact_name).collect()
}

fn exact_name(call: &Call) -> String {
    format!("{} {} {:?}", call.session.as_deref().unwrap_or("-"), call_name(call), call.sent)
}

pub fn any_packet_lost() {
    for (name, packets) in captures() {
        loss_accuses_nobody(name, &packets, |n| vec![n]);
    }
    loss_accuses_nobody("scene", &Scene::made(true).traffic().packets(), |n| vec![n]);
}

/// One connection after the other with one id for all of it, where a lost request must not make the
/// reply an earlier call's.
pub fn any_packet_lost_with_a_constant_id() {
    for json in [false, true] {
        let mut t = Traffic::new();
        t.json = json;
        let s = t.session("s-1111");
        let gone = append(&mut t, &s, 1, "walk-9999");
        t.wait(50).cancel(&s, 1);
        t.close(gone);
        for n in 0..8 {
            let entry = format!("walk-{n:04}");
            let x = append(t.wait(20), &s, 1, &entry);
            t.wait(20).answer(x, &append_result(&entry));
            let x = t.wait(20).ask(&s, 1, "ping", "{}");
            t.wait(5).answer(x, "{}");
        }
        loss_accuses_nobody("constant id", &t.packets(), |n| vec![n]);
        loss_accuses_nobody("constant id", &t.packets(), |n| (n..n + 3).collect());
    }
}

pub fn runs_of_packets_lost() {
    for (name, packets) in captures().into_iter().take(4) {
        loss_accuses_nobody(name, &packets, |n| (n..n + 4).collect());
    }
}

crate::table::tests!(
    payloads_cut_anywhere,
    every_byte_by_itself,
    segments_joined,
    packets_shuffled,
    ends_shuffled,
    packets_doubled,
    no_pure_acks,
    captures_in_either_order,
    rotated_files,
    any_packet_lost,
    any_packet_lost_with_a_constant_id,
    runs_of_packets_lost,
);
