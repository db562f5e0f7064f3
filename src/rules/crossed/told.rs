//! A crossing told by content, put into words: shared by the rules that content decides.

use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::content::{Sign, Verdict};
use crate::rules::batch::batch;
use crate::rules::claim::{Claim, at_mark, at_reply, at_request, call_name};
use crate::rules::fault::wrong_reply;

/// Every call whose reply content gives to another, at the hop nearest the client where it is so.
pub fn foreign(world: &World) -> impl Iterator<Item = (HopCallId, &Verdict)> {
    world
        .calls
        .iter()
        .filter_map(|joint| joint.hops.iter().find_map(|c| world.contents.foreign.get(c).map(|v| (*c, v))))
}

/// A sign as a clause.
pub fn sign(sign: &Sign, own: &str, other: &str) -> String {
    match sign {
        Sign::EchoesOther(value) => format!("it holds {value:?}, an argument of {other} alone"),
        Sign::LacksOwnEcho => format!("it holds no argument of {own}, whose tool always echoes them"),
        Sign::ShapeOfOther => format!("it has the shape of {other}'s tool"),
        Sign::NotOwnShape => format!("no uncontested reply of {own}'s tool has this shape"),
        Sign::SchemaOfOther => format!("it satisfies the output schema of {other}'s tool"),
        Sign::NotOwnSchema(what) => format!("it breaks the output schema of {own}'s tool: {what}"),
        Sign::SameIdHangs => format!("{other} has the same id and never got a reply"),
        Sign::Mutual => format!("{other}'s reply holds the arguments of {own} in turn"),
    }
}

/// The claim that the reply of call `c` is its owner's.
pub fn claim(world: &World, c: HopCallId, verdict: &Verdict) -> Option<Claim> {
    let (call, owner) = (world.hop_call(c)?, world.hop_call(verdict.owner)?);
    let (own, other) = (call_name(world, call), call_name(world, owner));
    let joint = world.joint(c)?;
    let reply = call.answer?;
    let blame = wrong_reply(world, &joint.hops, |h| {
        world.hop_call(h)?.answer?;
        Some(world.contents.foreign.contains_key(&h))
    });
    let mut evidence = vec![at_request(world.visit_of(c)?, format!("request of {own}"))];
    evidence.push(at_request(world.visit_of(verdict.owner)?, format!("request of {other}")));
    let why: Vec<String> = verdict.signs.iter().map(|s| sign(s, &own, &other)).collect();
    evidence.extend(at_reply(world, reply.at, format!("reply on the stream of {own}: {}", why.join("; "))));
    for h in joint.hops.iter().filter(|h| **h != c) {
        if let Some(a) = world.hop_call(*h).and_then(|x| x.answer) {
            let word = if world.contents.foreign.contains_key(h) {
                "the same reply at the next vantage"
            } else {
                "the right reply at the next vantage"
            };
            evidence.extend(at_reply(world, a.at, word));
        }
    }
    if let Some(v) = world.visit_of(verdict.owner)
        && owner.answer.is_none()
        && let Some(end) = v.client_closed.or(v.ended)
    {
        evidence.push(at_mark(v, end, format!("stream of {other} ends without a reply")));
    }
    Some(Claim {
        confidence: verdict.confidence,
        fault: blame.fault,
        cleared: blame.cleared,
        shown: blame.shown,
        session: world.session_of(c),
        at: Some(call.asked),
        until: world.replied(c).map(|m| m.at),
        victim: world.key(c),
        owner: world.key(verdict.owner),
        batch: batch(world, c),
        summary: format!("{own} received the reply of {other}: {}.", why.join("; ")),
        evidence,
        ..Claim::default()
    })
}
