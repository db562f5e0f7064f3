//! What captures do to packets, one thing a test.

use super::{Sent, Talk, chunk, json, post, read, sse};
use crate::model::exchange::Peer::{Client, Server};
use crate::model::problem::ProblemKind;
use crate::wire::{Checksum, flags};

/// Two calls on one connection.
fn two_calls(size: usize) -> Talk {
    let mut talk = Talk::open(40_000, [100, u32::MAX - 50]);
    talk.say(Client, &post("{\"id\":1}"), size).say(Server, &json("{\"r\":1}"), size);
    talk.say(Client, &post("{\"id\":2}"), size).say(Server, &sse(&["{\"p\":0}", "{\"r\":2}"]), size);
    talk.close(Client);
    talk
}

const TWO_CALLS: [&str; 2] = [
    "POST /mcp | > {\"id\":1} | 200 | < {\"r\":1} | end Complete",
    "POST /mcp | > {\"id\":2} | 200 | < {\"p\":0} | < {\"r\":2} | end Complete",
];

fn assert_two_calls(sent: &[Sent], what: &str) {
    let heard = read(sent);
    assert_eq!(heard.by_exchange(), TWO_CALLS, "{what}");
    assert_eq!(heard.count(ProblemKind::StreamGap), 0, "{what}");
    assert_eq!(heard.count(ProblemKind::ConflictingOverlap), 0, "{what}");
}

#[test]
fn in_order_over_the_end_of_the_numbers() {
    for size in [1, 7, 50, 1448] {
        assert_two_calls(&two_calls(size).sent, &format!("segments of {size}"));
    }
}

#[test]
fn captured_twice_or_sent_again() {
    let talk = two_calls(40);
    let twice: Vec<Sent> = talk.sent.iter().flat_map(|sent| [sent.clone(), sent.clone()]).collect();
    assert_two_calls(&twice, "each packet twice");
    let again: Vec<Sent> = talk.sent.iter().chain(&talk.sent).cloned().collect();
    assert_two_calls(&again, "the whole connection again");
    let mut other = talk.sent.clone();
    other.iter_mut().for_each(|sent| sent.input = 1);
    let both: Vec<Sent> = talk.sent.iter().chain(&other).cloned().collect();
    let heard = read(&both);
    assert_eq!(heard.by_exchange(), TWO_CALLS, "the same connection in a second input");
    // Sent again in larger segments, with the last byte before it.
    let mut resegmented = talk.clone();
    let first = post("{\"id\":1}");
    let mut larger = talk.sent[3].clone();
    larger.payload = first[..90].to_vec();
    larger.wire_len = 90;
    resegmented.sent.insert(6, larger);
    assert_two_calls(&resegmented.sent, "an overlap");
}

#[test]
fn the_first_copy_wins() {
    let mut talk = two_calls(40);
    let mut copy = talk.sent[4].clone();
    copy.payload[3] ^= 1;
    talk.sent.insert(6, copy);
    let heard = read(&talk.sent);
    assert_eq!(heard.by_exchange(), TWO_CALLS);
    assert_eq!(heard.count(ProblemKind::ConflictingOverlap), 1);
}

#[test]
fn a_good_copy_is_better_than_a_bad_first_one() {
    let mut talk = two_calls(40);
    talk.sent.iter_mut().for_each(|sent| sent.checksum = Checksum::Good);
    let mut bad = talk.sent[4].clone();
    bad.payload[3] ^= 1;
    bad.checksum = Checksum::Bad;
    talk.sent.insert(4, bad);
    let heard = read(&talk.sent);
    assert_eq!(heard.by_exchange(), TWO_CALLS);
    assert_eq!((heard.count(ProblemKind::ConflictingOverlap), heard.count(ProblemKind::BadChecksum)), (1, 1));
    // Where all are bad (offload), none is suspected.
    talk.sent.remove(4);
    talk.sent.iter_mut().for_each(|sent| sent.checksum = Checksum::Bad);
    assert_two_calls(&talk.sent, "all checksums bad");
}

#[test]
fn keep_alive_probes_are_no_data() {
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, &post("1"), 1448);
    let mut probe = talk.sent[3].clone();
    probe.seq = probe.seq.wrapping_add(probe.wire_len - 1);
    probe.payload = vec![0];
    probe.wire_len = 1;
    talk.sent.push(probe.clone());
    talk.sent.push(probe.clone());
    talk.say(Server, &json("2"), 1448).close(Server);
    let want = ["POST /mcp | > 1 | 200 | < 2 | end Complete"];
    let heard = read(&talk.sent);
    assert_eq!(heard.by_exchange(), want);
    assert_eq!(heard.count(ProblemKind::ConflictingOverlap), 0);
    // Without the handshake, and with the probe before everything else.
    talk.sent.drain(..3);
    talk.sent.insert(0, probe);
    assert_eq!(read(&talk.sent).by_exchange(), want);
}

#[test]
fn one_port_twice() {
    let mut talk = two_calls(1448);
    talk.sent.extend(two_calls_again().sent);
    let heard = read(&talk.sent);
    assert_eq!(heard.by_exchange().len(), 4);
    let mut streams: Vec<u64> = heard.ended.iter().map(|exchange| exchange.stream).collect();
    streams.sort_unstable();
    assert_eq!(streams, [0, 0, 1, 1]);
    // The last FIN of the first comes after the SYN of the second.
    let last = talk.sent.iter().position(|sent| sent.seq == two_calls_again().sent[0].seq).unwrap();
    talk.sent.swap(last, last - 2);
    assert_eq!(read(&talk.sent).by_exchange().len(), 4);
}

fn two_calls_again() -> Talk {
    let mut talk = Talk::open(40_000, [7_000_000, 9_000_000]);
    talk.wait(5000).say(Client, &post("{\"id\":1}"), 1448).say(Server, &json("{\"r\":1}"), 1448);
    talk.say(Client, &post("{\"id\":2}"), 1448).say(Server, &json("{\"r\":2}"), 1448).close(Server);
    talk
}

#[test]
fn holes_are_told_where_they_are() {
    // Each segment in turn is missing from the capture.
    let talk = two_calls(60);
    for missing in 3..talk.sent.len() {
        if talk.sent[missing].payload.is_empty() {
            continue;
        }
        let mut sent = talk.sent.clone();
        let lost = sent.remove(missing);
        let heard = read(&sent);
        assert_eq!(heard.count(ProblemKind::StreamGap), 1, "segment {missing}");
        for line in heard.by_exchange() {
            let mixed = line.contains("\"id\":1") && line.contains("\"r\":2")
                || line.contains("\"id\":2") && line.contains("\"r\":1");
            assert!(!mixed, "segment {missing}: {line}");
        }
        // What the hole is not in is whole.
        let before = missing < talk.sent.len() / 2;
        let whole = if before { TWO_CALLS[1] } else { TWO_CALLS[0] };
        assert!(
            heard.by_exchange().iter().any(|line| line == whole),
            "segment {missing} of {:?}: {:?}",
            lost.from,
            heard.by_exchange()
        );
    }
}

#[test]
fn a_chunked_stream_goes_on_behind_a_hole() {
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, b"GET /mcp HTTP/1.1\r\nAccept: text/event-stream\r\n\r\n", 1448);
    talk.say(Server, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", 1448);
    for n in 0..6 {
        talk.say(Server, &chunk(&format!("data: {n}\n\n")), 1448);
    }
    talk.say(Server, b"0\r\n\r\n", 1448).close(Server);
    let mut sent = talk.sent.clone();
    let lost = sent.iter().position(|sent| sent.payload.ends_with(b"data: 2\n\n\r\n")).unwrap();
    sent.remove(lost);
    let want = "GET /mcp | 200 | < 0 | < 1 | response gap | < 3 | < 4 | < 5 | end Complete";
    assert_eq!(read(&sent).by_exchange(), [want]);
}

#[test]
fn cut_frames() {
    let mut talk = two_calls(1448);
    let cut = talk.sent.iter().position(|sent| sent.payload.ends_with(b"{\"r\":1}")).unwrap();
    talk.sent[cut].payload.truncate(72);
    let heard = read(&talk.sent);
    assert_eq!(heard.by_exchange()[0], "POST /mcp | > {\"id\":1} | 200 | response gap | end Complete");
    assert_eq!(heard.by_exchange()[1], TWO_CALLS[1]);
    // A second, whole copy fills it.
    let whole = two_calls(1448).sent[cut].clone();
    talk.sent.insert(cut + 1, whole);
    assert_eq!(read(&talk.sent).by_exchange(), TWO_CALLS);
}

#[test]
fn one_direction() {
    let talk = two_calls(1448);
    let of = |peer| talk.sent.iter().filter(|sent| sent.from == peer).cloned().collect::<Vec<_>>();
    let heard = read(&of(Client));
    let want = [
        "POST /mcp | > {\"id\":1} | response gap | end Gap",
        "POST /mcp | > {\"id\":2} | response gap | client closed | end Gap",
    ];
    assert_eq!(heard.by_exchange(), want);
    assert!(heard.ended.iter().all(|exchange| exchange.one_direction));
    assert_eq!((heard.count(ProblemKind::OneDirection), heard.count(ProblemKind::StreamGap)), (1, 0));
    let heard = read(&of(Server));
    let want = ["200 | < {\"p\":0} | < {\"r\":2} | end Complete", "200 | < {\"r\":1} | end Complete"];
    assert_eq!(heard.by_exchange(), want);
}

#[test]
fn midstream() {
    let talk = two_calls(1448);
    let no_handshake = &talk.sent[3..];
    let heard = read(no_handshake);
    assert_eq!(heard.by_exchange(), TWO_CALLS);
    assert_eq!(heard.count(ProblemKind::MidstreamStart), 1);
    assert!(heard.ended.iter().all(|exchange| exchange.connected.is_none()));
    // From within the first response on.
    let middle = talk.sent.iter().position(|sent| sent.from == Server && !sent.payload.is_empty()).unwrap();
    let heard = read(&talk.sent[middle..]);
    assert_eq!(heard.by_exchange(), ["200 | < {\"r\":1} | end Complete", TWO_CALLS[1]]);
}

#[test]
fn midstream_with_the_first_answer_missing() {
    let talk = two_calls(1448);
    let mut sent = talk.sent[3..].to_vec();
    let answer = sent.iter().position(|sent| sent.payload.ends_with(b"{\"r\":1}")).unwrap();
    sent.remove(answer);
    let want = ["POST /mcp | > {\"id\":1} | response gap | end Gap", TWO_CALLS[1]];
    assert_eq!(read(&sent).by_exchange(), want);
}

#[test]
fn reset_and_half_close() {
    let mut talk = Talk::open(40_000, [1, 2]);
    talk.say(Client, &post("1"), 1448).send(Client, flags::FIN | flags::ACK, b"");
    let mut reset = talk.clone();
    talk.wait(100).say(Server, &json("2"), 1448).send(Server, flags::FIN | flags::ACK, b"");
    let heard = read(&talk.sent);
    assert_eq!(heard.by_exchange(), ["POST /mcp | > 1 | client closed | 200 | < 2 | end Complete"]);
    assert!(heard.ended[0].client_closed.is_some());
    reset.send(Server, flags::FIN | flags::ACK, b"");
    assert_eq!(read(&reset.sent).by_exchange(), ["POST /mcp | > 1 | client closed | end ClientClosed"]);
    for (by, end) in [(Client, "client closed | end Reset"), (Server, "end Reset")] {
        let mut talk = Talk::open(40_000, [1, 2]);
        talk.say(Client, &post("1"), 1448).send(by, flags::RST | flags::ACK, b"");
        let heard = read(&talk.sent);
        assert_eq!(heard.by_exchange(), [format!("POST /mcp | > 1 | {end}")]);
        assert_eq!(heard.ended[0].ended_by, Some(by));
    }
}

#[test]
fn data_with_the_syn_and_the_fin() {
    let mut talk = Talk::open(40_000, [1, 2]);
    let request = post("1");
    talk.sent.clear();
    let mut fast = Talk { sent: Vec::new(), ..Talk::open(40_000, [1, 2]) };
    fast.next = [1, 2];
    fast.send(Client, flags::SYN, &request);
    fast.next[0] = fast.next[0].wrapping_add(1).wrapping_sub(1);
    fast.send(Server, flags::SYN | flags::ACK, b"").send(Client, flags::ACK, b"");
    fast.send(Server, flags::FIN | flags::ACK, &json("2")).send(Client, flags::FIN | flags::ACK, b"");
    assert_eq!(read(&fast.sent).by_exchange(), ["POST /mcp | > 1 | 200 | < 2 | end Complete"]);
}
