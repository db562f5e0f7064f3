//! The annotated sequence of a window, as people write it in reports:
//! `17:19:52  POST /mcp -> 404  stale session id`.

use super::sessions::Refused;
use crate::join::World;
use crate::join::hints::may_be_call;
use crate::join::unlogged::is_unlogged;
use crate::mcp::{RpcKind, Visit};
use crate::model::report::SequenceLine;

/// Lines before the refusal and after the re-initialisation that are shown.
const AROUND: usize = 2;
/// Most lines in all.
const LINES: usize = 40;

/// The requests of the old session around its refusal, and of the new one up to its first call.
pub fn sequence(world: &World, r: &Refused, init: u32, after: &[u32]) -> Vec<SequenceLine> {
    let first = r.refusals.first().copied();
    let at = r.visits.iter().position(|v| Some(*v) == first).unwrap_or(0);
    let mut shown: Vec<u32> =
        r.visits.get(at.saturating_sub(AROUND)..).unwrap_or_default().iter().copied().take(LINES / 2).collect();
    shown.push(init);
    let calls =
        after.iter().position(|v| world.visits.get(*v as usize).is_some_and(may_be_call)).unwrap_or(after.len());
    shown.extend(after.get(..(calls + AROUND).min(after.len())).unwrap_or_default().iter().take(LINES / 2));
    shown.sort_by_key(|v| world.visits.get(*v as usize).map(|x| (x.asked, *v)));
    shown.dedup();
    shown.iter().filter_map(|v| world.visits.get(*v as usize).map(|x| line(x, r, r.refusals.contains(v)))).collect()
}

fn line(visit: &Visit, r: &Refused, refused: bool) -> SequenceLine {
    let method = visit.method.as_deref().unwrap_or("?");
    let path = visit.path().unwrap_or("?");
    let mut note: Vec<String> = vec![];
    if refused {
        note.push("stale session id".into());
    }
    for rpc in &visit.rpc {
        let unnamed = if rpc.kind == RpcKind::Response { "response" } else { "request" };
        let name = rpc.tool.as_deref().or(rpc.method.as_deref()).unwrap_or(unnamed);
        match &rpc.id {
            Some(id) if !name.starts_with("notifications/") => note.push(format!("{name} id {id}")),
            _ => note.push(name.to_owned()),
        }
    }
    if visit.session.is_some() && visit.session.as_ref() != Some(&r.session) && visit.is_post() {
        note.push("new session".into());
    }
    let place = if visit.place.is_frame {
        format!("frame {}", visit.place.number)
    } else {
        format!("line {}", visit.place.number)
    };
    SequenceLine {
        at: Some(if refused { visit.answered() } else { visit.at.at }).filter(|_| visit.at.is_known()),
        what: if is_unlogged(visit) { "request".into() } else { format!("{method} {path}") },
        status: visit.status,
        note: note.join(", "),
        evidence: place,
    }
}
