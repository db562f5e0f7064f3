//! The sweep: every configuration, and the calls that it consists of.

use super::tool::Kit;
use crate::drive::check::Expect;
use crate::drive::tags::Tags;
use crate::model::id::RpcId;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// Where in a batch the slow call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Slow {
    /// First.
    First,
    /// In the middle.
    Middle,
    /// Last.
    Last,
    /// All or none, as the kind of the configuration says.
    Any,
}

/// How ids are given out, and what is done with the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Every id once.
    Distinct,
    /// Two conversations on one session use the same id; the call posted first ends first.
    CollideFirstEndsFirst,
    /// The same; the call posted second ends first.
    CollideSecondEndsFirst,
    /// The same with `7` and `"7"`, which are different ids.
    CollideTypes,
    /// Two conversations of several calls each, all ids twice.
    CollideBatch,
    /// Callers go away by closing their connection, then a second wave with new ids.
    AbandonClose,
    /// Callers send `notifications/cancelled` and go away, then a second wave with new ids.
    AbandonCancel,
    /// Callers go away, then the second wave uses their ids again.
    AbandonReuse,
    /// Two sessions at once, with the same ids, as any two clients have.
    TwoSessions,
}

impl Kind {
    /// Do ids repeat in flight within a session?
    pub fn collides(self) -> bool {
        use Kind::*;
        matches!(self, CollideFirstEndsFirst | CollideSecondEndsFirst | CollideTypes | CollideBatch | AbandonReuse)
    }

    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Distinct => "distinct",
            Kind::CollideFirstEndsFirst => "colliding, first call ends first",
            Kind::CollideSecondEndsFirst => "colliding, second call ends first",
            Kind::CollideTypes => "colliding as 7 and \"7\"",
            Kind::CollideBatch => "colliding, two conversations",
            Kind::AbandonClose => "distinct, first wave abandoned",
            Kind::AbandonCancel => "distinct, first wave cancelled",
            Kind::AbandonReuse => "reused after the caller left",
            Kind::TwoSessions => "same in two sessions",
        }
    }
}

/// One configuration of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Configuration {
    /// Ids.
    pub kind: Kind,
    /// Calls of a batch (of each wave or session).
    pub batch: usize,
    /// Where the slow call stands.
    pub slow: Slow,
    /// Other tools are mixed with one that echoes.
    pub mixed: bool,
    /// Connections are kept and shared; otherwise one a call.
    pub pooled: bool,
    /// The session's GET stream is held open.
    pub get: bool,
}

/// What to do when a call's caller leaves early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    /// After so long.
    pub after: Duration,
    /// Saying so first.
    pub cancel: bool,
}

/// One call of a batch.
#[derive(Clone, Debug)]
pub struct Shot {
    /// Tool.
    pub tool: String,
    /// `params`.
    pub params: Value,
    /// Id.
    pub id: RpcId,
    /// Tag in its arguments.
    pub tag: u32,
    /// Which session.
    pub session: usize,
    /// When to send it, from the start of the wave.
    pub at: Duration,
    /// Its caller leaves early.
    pub leave: Option<Leave>,
    /// How to judge it.
    pub expect: Expect,
}

/// The whole sweep with these batch sizes.
pub fn configurations(batches: &[usize], has_mix: bool) -> Vec<Configuration> {
    let plain = |kind, batch| Configuration { kind, batch, slow: Slow::Any, mixed: false, pooled: false, get: false };
    let mut all = vec![];
    for &batch in batches {
        for slow in [Slow::First, Slow::Middle, Slow::Last] {
            for mixed in [false, true].into_iter().filter(|m| has_mix || !m) {
                for pooled in [false, true] {
                    all.push(Configuration { slow, mixed, pooled, ..plain(Kind::Distinct, batch) });
                }
            }
        }
        let get = Configuration { get: true, slow: Slow::First, mixed: has_mix, ..plain(Kind::Distinct, batch) };
        all.extend([get, plain(Kind::TwoSessions, batch)]);
    }
    let few = batches.iter().copied().min().unwrap_or(3);
    all.extend([plain(Kind::AbandonClose, few), plain(Kind::AbandonCancel, few)]);
    all.push(plain(Kind::AbandonReuse, 1));
    for pooled in [false, true] {
        all.push(Configuration { pooled, ..plain(Kind::CollideFirstEndsFirst, 2) });
    }
    all.extend([plain(Kind::CollideSecondEndsFirst, 2), plain(Kind::CollideTypes, 2)]);
    all.push(plain(Kind::CollideBatch, 2 * few));
    all.push(Configuration { get: true, ..plain(Kind::CollideFirstEndsFirst, 2) });
    all
}

impl Configuration {
    /// Sessions that it needs.
    pub fn sessions(&self) -> usize {
        if self.kind == Kind::TwoSessions { 2 } else { 1 }
    }

    /// Calls of one repetition.
    pub fn calls(&self) -> usize {
        match self.kind {
            Kind::AbandonClose | Kind::AbandonCancel | Kind::AbandonReuse | Kind::TwoSessions => 2 * self.batch,
            _ => self.batch,
        }
    }
}

impl Configuration {
    /// How many times the delay of a slow call one repetition takes, if it is served one by one.
    pub fn slow_calls(&self) -> f64 {
        let n = self.batch as f64;
        match self.kind {
            Kind::Distinct => 1.0,
            Kind::TwoSessions => 2.0,
            Kind::CollideBatch => 1.5 * n,
            Kind::AbandonClose | Kind::AbandonCancel | Kind::AbandonReuse => 3.0 * n,
            Kind::CollideFirstEndsFirst | Kind::CollideSecondEndsFirst | Kind::CollideTypes => 3.1,
        }
    }
}

/// Makes the calls of configurations.
pub struct Maker<'a> {
    /// Tools.
    pub kit: &'a Kit,
    /// Tags.
    pub tags: &'a Tags,
    /// How long a slow call takes.
    pub delay: Duration,
}

impl Maker<'_> {
    /// The waves of one repetition; ids begin at `first_id`.
    pub fn waves(&self, c: &Configuration, first_id: i64) -> Vec<Vec<Shot>> {
        let d = self.delay;
        let step = Duration::from_millis(1);
        let id = |n: usize| RpcId::Int(first_id + n as i64);
        match c.kind {
            Kind::Distinct => vec![self.batch(c, 0, first_id)],
            Kind::TwoSessions => {
                let mut both = self.batch(c, 0, first_id);
                let shifted = self.batch(c, 1, first_id).into_iter().map(|s| Shot { at: s.at + step, ..s });
                both.extend(shifted);
                vec![both]
            }
            Kind::CollideFirstEndsFirst => vec![vec![self.slow(id(0), d), self.later(d / 3, self.slow(id(0), d * 2))]],
            Kind::CollideSecondEndsFirst => {
                vec![vec![self.slow(id(0), d * 3), self.later(d / 3, self.slow(id(0), d / 10))]]
            }
            Kind::CollideTypes => {
                let text = RpcId::Str(id(0).to_string().into());
                vec![vec![self.slow(id(0), d), self.later(d / 3, self.slow(text, d * 2))]]
            }
            Kind::CollideBatch => {
                let half = c.batch / 2;
                let first = (0..half).map(|n| self.later(step * n as u32, self.slow(id(n), d)));
                let second = (0..half).map(|n| self.later(d / 3 + step * n as u32, self.slow(id(n), d * 2)));
                vec![first.chain(second).collect()]
            }
            Kind::AbandonClose | Kind::AbandonCancel | Kind::AbandonReuse => {
                let leave = Leave { after: d / 3, cancel: c.kind == Kind::AbandonCancel };
                let gone = |n: usize| Shot { leave: Some(leave), expect: Expect::Abandoned, ..self.slow(id(n), d) };
                let first = (0..c.batch).map(|n| self.later(step * n as u32, gone(n)));
                let shift = if c.kind == Kind::AbandonReuse { 0 } else { c.batch };
                let second = (0..c.batch).map(|n| self.later(step * n as u32, self.slow(id(shift + n), d * 2)));
                vec![first.collect(), second.collect()]
            }
        }
    }

    fn batch(&self, c: &Configuration, session: usize, first_id: i64) -> Vec<Shot> {
        let slow_at = match c.slow {
            Slow::First | Slow::Any => 0,
            Slow::Middle => c.batch / 2,
            Slow::Last => c.batch.saturating_sub(1),
        };
        let mut shots = vec![];
        for n in 0..c.batch {
            let id = RpcId::Int(first_id + n as i64);
            let mut shot = if n == slow_at { self.slow(id, self.delay) } else { self.other(n, id, c.mixed) };
            shot.session = session;
            // In order, and still all in flight at once.
            shot.at = Duration::from_micros(500) * n as u32;
            shots.push(shot);
        }
        shots
    }

    fn later(&self, at: Duration, shot: Shot) -> Shot {
        Shot { at, ..shot }
    }

    /// A call that takes `delay`, where the server has a tool for that.
    fn slow(&self, id: RpcId, delay: Duration) -> Shot {
        let slowest = || self.kit.echo.iter().copied().max_by(|a, b| self.lone(*a).total_cmp(&self.lone(*b)));
        let tool = self.kit.slow.or_else(slowest).unwrap_or(0);
        self.shot(tool, id, delay)
    }

    fn lone(&self, tool: usize) -> f64 {
        self.kit.tool(tool).map_or(0.0, |t| t.lone_ms)
    }

    fn other(&self, n: usize, id: RpcId, mixed: bool) -> Shot {
        let all: Vec<usize> = if mixed {
            self.kit.echo.iter().chain(&self.kit.plain).copied().collect()
        } else {
            self.kit.echo.first().or(self.kit.plain.first()).copied().into_iter().collect()
        };
        let tool = all.get(n.checked_rem(all.len()).unwrap_or(0)).copied().unwrap_or(0);
        self.shot(tool, id, Duration::ZERO)
    }

    fn shot(&self, tool: usize, id: RpcId, delay: Duration) -> Shot {
        let tag = self.tags.take();
        let tool = self.kit.tool(tool);
        Shot {
            tool: tool.map_or_else(String::new, |t| t.name.clone()),
            params: tool.map_or(Value::Null, |t| t.params(&self.tags.text(tag), delay)),
            id,
            tag,
            session: 0,
            at: Duration::ZERO,
            leave: None,
            expect: if tool.is_some_and(|t| t.echoes) { Expect::Echo } else { Expect::IdOnly },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn at_least_28_configurations_each_once() {
        let all = configurations(&[3, 12], true);
        let names: HashSet<String> = all.iter().map(|c| format!("{c:?}")).collect();
        assert!(all.len() >= 28 && names.len() == all.len(), "{}", all.len());
        let calls: usize = all.iter().map(|c| c.calls() * 5).sum();
        assert!((1000..1600).contains(&calls), "{calls}");
    }

    #[test]
    fn ids_repeat_only_where_they_should() {
        let (kit, tags) = (Kit::default(), Tags::new(1));
        let maker = Maker { kit: &kit, tags: &tags, delay: Duration::from_millis(100) };
        for c in configurations(&[3, 12], true) {
            let shots: Vec<Shot> = maker.waves(&c, 5).into_iter().flatten().collect();
            assert_eq!(shots.len(), c.calls());
            let ids: HashSet<_> = shots.iter().map(|s| (s.session, s.id.loose())).collect();
            assert_eq!(ids.len() < shots.len(), c.kind.collides(), "{c:?}");
            let tags: HashSet<u32> = shots.iter().map(|s| s.tag).collect();
            assert_eq!(tags.len(), shots.len());
        }
    }
}
