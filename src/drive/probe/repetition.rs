//! One repetition of a configuration: its waves are sent, its GET streams listened to, and all that
//! came is judged.

use super::plan::{Configuration, Maker, Shot};
use super::volley::{Flight, Pool, Range};
use crate::drive::check::{self, Carrier, Expect, Got, Sent, Verdict};
use crate::drive::message;
use crate::drive::session::Session;
use crate::drive::wire::Heard;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a GET stream may take to answer.
const GET_HEAD: Duration = Duration::from_secs(2);
/// How long GET streams are listened to after the last call.
const GET_AFTER: Duration = Duration::from_millis(100);

/// What a repetition gave.
pub struct Repetition {
    /// Its calls.
    pub flights: Vec<Flight>,
    /// The verdict on them; indices are those of `flights`.
    pub verdict: Verdict,
    /// GET streams that the server opened; none where none was asked for.
    pub get_open: Option<usize>,
}

/// Runs one repetition on these sessions.
pub fn run(
    range: &Range<'_>,
    maker: &Maker<'_>,
    c: &Configuration,
    first_id: i64,
    sessions: &[Session],
    pool: Option<&Pool>,
) -> Repetition {
    let waves = maker.waves(c, first_id);
    let (flights, gets) =
        if c.get { listening(range, sessions, waves, pool) } else { (waves_of(range, sessions, waves, pool), vec![]) };
    let mut got = vec![];
    for (i, flight) in flights.iter().enumerate() {
        got.extend(flight.replies.iter().map(|r| check::got(Carrier::Post(i), r, range.tags)));
    }
    for (session, heard) in gets.iter().enumerate() {
        got.extend(message::replies(heard).iter().map(|r| check::got(Carrier::Get(session), r, range.tags)));
    }
    let sent: Vec<Sent> = flights.iter().map(sent).collect();
    let verdict = verdict(&sent, &got, range);
    let is_open = |h: &&Heard| h.status == Some(200);
    Repetition { flights, verdict, get_open: c.get.then(|| gets.iter().filter(is_open).count()) }
}

/// A run that is stopped says nothing of what had not come yet.
fn verdict(sent: &[Sent], got: &[Got], range: &Range<'_>) -> Verdict {
    let mut verdict = check::check(sent, got);
    if range.client.stop.is_set() {
        verdict.claims.retain(|c| c.fault != check::Fault::Lost);
    }
    verdict
}

fn sent(flight: &Flight) -> Sent {
    let shot = &flight.shot;
    let refused = flight.refusal().is_some();
    // What the caller had before it left is judged as any other.
    let left = shot.expect == Expect::Abandoned;
    Sent { id: shot.id.clone(), tag: shot.tag, session: shot.session, expect: shot.expect, refused: refused && !left }
}

fn waves_of(range: &Range<'_>, sessions: &[Session], waves: Vec<Vec<Shot>>, pool: Option<&Pool>) -> Vec<Flight> {
    waves.into_iter().flat_map(|wave| range.fire(sessions, wave, pool)).collect()
}

/// The waves, with the GET stream of every session held open meanwhile.
fn listening(
    range: &Range<'_>,
    sessions: &[Session],
    waves: Vec<Vec<Shot>>,
    pool: Option<&Pool>,
) -> (Vec<Flight>, Vec<Heard>) {
    let (ready, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let listen = |session: &Session| {
            let mut line = range.client.connect().ok()?;
            line.send(range.client, &session.listen()).ok()?;
            line.hear(Instant::now() + GET_HEAD, |heard| heard.status.is_some());
            ready.fetch_add(1, Ordering::SeqCst);
            let heard = line.hear(Instant::now() + range.patience * 4, |_| done.load(Ordering::SeqCst) > 0);
            Some(heard)
        };
        let ears: Vec<_> = sessions.iter().map(|s| scope.spawn(move || listen(s))).collect();
        let until = Instant::now() + GET_HEAD;
        while ready.load(Ordering::SeqCst) < sessions.len() && Instant::now() < until && !range.client.stop.is_set() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let flights = waves_of(range, sessions, waves, pool);
        range.client.stop.sleep_until(Instant::now() + GET_AFTER);
        done.store(1, Ordering::SeqCst);
        let heard = ears.into_iter().map(|e| e.join().ok().flatten().unwrap_or_default()).collect();
        (flights, heard)
    })
}
