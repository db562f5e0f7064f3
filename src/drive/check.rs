//! The checker: asserts on every reply its id, its owner by content, its stream and its session.

use super::tags::Tags;
use crate::model::id::RpcId;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// How a call is to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The reply holds the call's tag.
    Echo,
    /// The reply holds no tag; only its id can be judged.
    IdOnly,
    /// Its caller gave it up on purpose: any end will do, but its reply must reach no one else.
    Abandoned,
}

/// One call that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its id.
    pub id: RpcId,
    /// Its tag.
    pub tag: u32,
    /// Which of the sessions at hand.
    pub session: usize,
    /// How to judge it.
    pub expect: Expect,
    /// The server refused it by status: no reply is due.
    pub refused: bool,
}

/// What carried a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The POST of this call.
    Post(usize),
    /// The GET stream of this session.
    Get(usize),
}

/// One result or error that came.
#[derive(Clone, Debug)]
pub struct Got {
    /// On what.
    pub carrier: Carrier,
    /// With which id.
    pub id: Option<RpcId>,
    /// Tags in it.
    pub tags: Vec<u32>,
    /// It is a JSON-RPC error, which need not hold a tag.
    pub is_rpc_error: bool,
}

/// What is wrong with a reply or with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The reply's id is not the call's.
    WrongId,
    /// The reply's id has another JSON type than the call's.
    RetypedId,
    /// The content belongs to another call of the session.
    WrongBody,
    /// The content belongs to a call of another session.
    OtherSession,
    /// The reply came on a stream that no call of its own has: a GET stream, or after the reply of
    /// another call.
    WrongStream,
    /// The same reply came again.
    Duplicate,
    /// No reply came to the caller.
    Lost,
}

impl Fault {
    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Fault::WrongId => "wrong id",
            Fault::RetypedId => "id of another type",
            Fault::WrongBody => "wrong body",
            Fault::OtherSession => "body of another session",
            Fault::WrongStream => "wrong stream",
            Fault::Duplicate => "duplicate",
            Fault::Lost => "lost",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What.
    pub fault: Fault,
    /// The call whose caller was hurt; none on a GET stream whose reply belongs to no known call.
    pub victim: Option<usize>,
    /// The call that the reply belongs to.
    pub owner: Option<usize>,
}

/// The verdict on a set of calls.
#[derive(Debug, Default)]
pub struct Verdict {
    /// All that is wrong.
    pub claims: Vec<Claim>,
    /// Calls whose reply has the right id and the right tag.
    pub verified: usize,
    /// Calls whose reply has the right id and no tag to judge it by.
    pub id_only: usize,
}

/// Judges calls that were in flight together, and all that came for them.
pub fn check(sent: &[Sent], got: &[Got]) -> Verdict {
    let by_tag: FxHashMap<u32, usize> = sent.iter().enumerate().map(|(i, s)| (s.tag, i)).collect();
    let mut verdict = Verdict::default();
    let mut seen: Vec<Vec<&Got>> = vec![vec![]; sent.len()];
    for reply in got {
        match reply.carrier {
            Carrier::Post(call) => {
                let Some(calls) = seen.get_mut(call) else { continue };
                judge(sent, call, reply, calls, &by_tag, &mut verdict);
                calls.push(reply);
            }
            Carrier::Get(session) => {
                let owner = owner(reply, &by_tag).or_else(|| by_id(sent, session, reply));
                verdict.claims.push(Claim { fault: Fault::WrongStream, victim: owner, owner });
            }
        }
    }
    for (i, call) in sent.iter().enumerate() {
        let is_due = call.expect != Expect::Abandoned && !call.refused;
        if is_due && seen.get(i).is_none_or(Vec::is_empty) {
            verdict.claims.push(Claim { fault: Fault::Lost, victim: Some(i), owner: None });
        }
    }
    verdict
}

fn judge(
    sent: &[Sent],
    at: usize,
    reply: &Got,
    before: &[&Got],
    by_tag: &FxHashMap<u32, usize>,
    verdict: &mut Verdict,
) {
    let Some(call) = sent.get(at) else { return };
    let mut claim = |fault, owner| verdict.claims.push(Claim { fault, victim: Some(at), owner });
    let content = owner(reply, by_tag);
    let is_own_content = reply.tags.contains(&call.tag);
    if let Some(first) = before.first() {
        let is_same = first.id == reply.id && first.tags == reply.tags;
        claim(if is_same { Fault::Duplicate } else { Fault::WrongStream }, content);
        return;
    }
    let mut is_right = true;
    match &reply.id {
        Some(id) if *id == call.id => {}
        Some(id) if id.loose() == call.id.loose() => {
            claim(Fault::RetypedId, Some(at));
            is_right = false;
        }
        // A refusal may not know the id (JSON-RPC 2.0 §5); servers then send null or a word.
        _ if reply.is_rpc_error && call.refused => is_right = false,
        _ => {
            claim(Fault::WrongId, content.or_else(|| by_id(sent, call.session, reply)));
            is_right = false;
        }
    }
    if !is_own_content && !reply.tags.is_empty() {
        let is_other = content.and_then(|c| sent.get(c)).is_none_or(|c| c.session != call.session);
        claim(if is_other { Fault::OtherSession } else { Fault::WrongBody }, content);
        is_right = false;
    }
    if is_right && is_own_content {
        verdict.verified += 1;
    } else if is_right && !call.refused {
        verdict.id_only += 1;
    }
}

fn owner(reply: &Got, by_tag: &FxHashMap<u32, usize>) -> Option<usize> {
    reply.tags.iter().find_map(|t| by_tag.get(t).copied())
}

fn by_id(sent: &[Sent], session: usize, reply: &Got) -> Option<usize> {
    sent.iter().position(|s| s.session == session && Some(&s.id) == reply.id.as_ref())
}

/// What a reply says for the checker.
pub fn got(carrier: Carrier, reply: &super::message::Reply, tags: &Tags) -> Got {
    Got { carrier, id: reply.id.clone(), tags: tags.find(&reply.raw), is_rpc_error: reply.is_rpc_error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(id: i64, session: usize) -> Sent {
        Sent {
            id: RpcId::Int(id),
            tag: id as u32 + 100 * session as u32,
            session,
            expect: Expect::Echo,
            refused: false,
        }
    }

    fn reply(carrier: Carrier, id: i64, tags: &[u32]) -> Got {
        Got { carrier, id: Some(RpcId::Int(id)), tags: tags.to_vec(), is_rpc_error: false }
    }

    fn faults(sent: &[Sent], got: &[Got]) -> Vec<(Fault, Option<usize>, Option<usize>)> {
        check(sent, got).claims.iter().map(|c| (c.fault, c.victim, c.owner)).collect()
    }

    use Carrier::{Get, Post};

    #[test]
    fn right_replies() {
        let calls = [sent(1, 0), sent(2, 0)];
        let verdict = check(&calls, &[reply(Post(1), 2, &[2]), reply(Post(0), 1, &[1])]);
        assert_eq!((verdict.claims.len(), verdict.verified), (0, 2));
        // A reply that holds its own tag may hold others: a list of what is known.
        assert!(faults(&calls, &[reply(Post(1), 2, &[1, 2]), reply(Post(0), 1, &[1])]).is_empty());
    }

    #[test]
    fn swapped_bodies_and_ids() {
        let calls = [sent(1, 0), sent(2, 0)];
        let bodies = faults(&calls, &[reply(Post(0), 1, &[2]), reply(Post(1), 2, &[1])]);
        assert_eq!(bodies, [(Fault::WrongBody, Some(0), Some(1)), (Fault::WrongBody, Some(1), Some(0))]);
        let ids = faults(&calls, &[reply(Post(0), 2, &[1]), reply(Post(1), 1, &[2])]);
        assert_eq!(ids, [(Fault::WrongId, Some(0), Some(0)), (Fault::WrongId, Some(1), Some(1))]);
        let retyped = Got { id: Some(RpcId::Str("1".into())), ..reply(Post(0), 1, &[1]) };
        assert_eq!(faults(&calls[..1], &[retyped]), [(Fault::RetypedId, Some(0), Some(0))]);
    }

    #[test]
    fn streams_sessions_and_silence() {
        let calls = [sent(1, 0), sent(1, 1)];
        let got = [reply(Post(0), 1, &[101]), reply(Get(1), 1, &[101])];
        let expected = [
            (Fault::OtherSession, Some(0), Some(1)),
            (Fault::WrongStream, Some(1), Some(1)),
            (Fault::Lost, Some(1), None),
        ];
        assert_eq!(faults(&calls, &got), expected);
        let twice = [reply(Post(0), 1, &[1]), reply(Post(0), 1, &[1])];
        assert_eq!(faults(&calls[..1], &twice), [(Fault::Duplicate, Some(0), Some(0))]);
    }

    #[test]
    fn what_is_no_fault() {
        let abandoned = Sent { expect: Expect::Abandoned, ..sent(1, 0) };
        let refused = Sent { refused: true, ..sent(2, 0) };
        let error = Got { id: None, is_rpc_error: true, ..reply(Post(1), 0, &[]) };
        assert!(faults(&[abandoned, refused], &[error]).is_empty());
    }
}
