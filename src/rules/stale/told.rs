//! What servers and service managers say of their lives, found by time and by session.

use crate::join::World;
use crate::model::id::SessionId;
use crate::model::record::LogEventKind;
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// Clocks and times that are less sure than this do not tell what came first, ns.
pub const UNSURE_NS: i64 = 2_000_000_000;

/// An event that starts or stops something, when, and how far that may be off (ns, at most [`UNSURE_NS`]).
pub struct Turn {
    /// When, on the reference clock.
    pub at: Time,
    /// How far that may be off.
    pub error_ns: i64,
    /// What.
    pub kind: LogEventKind,
    /// Is its clock known?
    pub is_aligned: bool,
}

/// The events of all logs that say why sessions end.
pub struct Told<'w> {
    turns: Vec<Turn>,
    expired: FxHashMap<&'w SessionId, Vec<Time>>,
}

impl<'w> Told<'w> {
    /// Looks through all events once.
    pub fn of(world: &'w World) -> Told<'w> {
        let (mut turns, mut expired): (Vec<Turn>, FxHashMap<_, Vec<Time>>) = (vec![], FxHashMap::default());
        for e in &world.logs.events {
            let Some(when) = e.when else { continue };
            if e.kind.is_up().is_some() || matches!(e.kind, LogEventKind::UnitStarted | LogEventKind::UnitRestart) {
                let source = world.logs.sources.of_event(e);
                let error_ns = world.logs.clock_error(source).max(when.error_ns).min(UNSURE_NS);
                turns.push(Turn { at: when.at, error_ns, kind: e.kind, is_aligned: world.logs.is_aligned(source) });
            }
            if let (LogEventKind::SessionExpired, Some(session)) = (e.kind, &e.session) {
                expired.entry(session).or_default().push(when.at);
            }
        }
        turns.sort_by_key(|t| t.at);
        Told { turns, expired }
    }

    /// What started or stopped from `from` to `to`, each that may have been so, its clock and `slack_ns` considered.
    pub fn between(&self, from: Option<Time>, to: Time, slack_ns: i64) -> impl Iterator<Item = &Turn> {
        let widest = UNSURE_NS + slack_ns;
        let begin = from.map_or(0, |t| self.turns.partition_point(|x| x.at < t.plus_ns(-widest)));
        let near = self.turns.get(begin..).unwrap_or_default().iter().take_while(move |x| x.at <= to.plus_ns(widest));
        near.filter(move |x| {
            let error = x.error_ns + slack_ns;
            x.at <= to.plus_ns(error) && from.is_none_or(|t| x.at.plus_ns(error) >= t)
        })
    }

    /// When the server says that it let a session expire.
    pub fn expired(&self, session: &SessionId) -> &[Time] {
        self.expired.get(session).map_or(&[], |l| l)
    }
}
