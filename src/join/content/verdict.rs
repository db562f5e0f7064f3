//! Signs of whose a reply is, and what they amount to.

use crate::join::answers::HopCallId;
use crate::model::report::Confidence;
use std::sync::Arc;

/// One reason to say whose a reply is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It holds an argument value that only the other call has.
    EchoesOther(Arc<str>),
    /// The tool echoes its arguments as a habit, and this reply holds none of its call's.
    LacksOwnEcho,
    /// It has the shape of the other call's tool.
    ShapeOfOther,
    /// It does not have the shape of its call's tool.
    NotOwnShape,
    /// It satisfies the output schema of the other call's tool.
    SchemaOfOther,
    /// It does not satisfy the output schema of its call's tool.
    NotOwnSchema(String),
    /// The other call has the same id and is left without a reply.
    SameIdHangs,
    /// The other call's reply holds this call's arguments in turn.
    Mutual,
}

/// What the content of the reply that a call got says.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The call it belongs to.
    pub owner: HopCallId,
    /// Why.
    pub signs: Vec<Sign>,
    /// How sure.
    pub confidence: Confidence,
    /// Owner and victim had the same id, and the owner got nothing.
    pub collision: bool,
    /// The owner is of another session or client.
    pub other_group: bool,
}

/// Across sessions many calls of a tool wait at once: only an argument tells them apart.
pub(super) fn by_echo(v: &Verdict) -> bool {
    v.signs.iter().any(|s| matches!(s, Sign::EchoesOther(_)))
}

/// One sign is possible, two independent ones are probable; a unique echo with a sign against the
/// reply's own call is certain.
pub(super) fn confidence(signs: &[Sign]) -> Confidence {
    let echo = signs.iter().any(|s| matches!(s, Sign::EchoesOther(_)));
    let against = signs.iter().any(|s| matches!(s, Sign::LacksOwnEcho | Sign::NotOwnShape | Sign::NotOwnSchema(_)));
    let pair = signs.contains(&Sign::SameIdHangs) || signs.contains(&Sign::Mutual);
    let kind = signs.iter().any(|s| matches!(s, Sign::ShapeOfOther | Sign::SchemaOfOther));
    if echo && (against || signs.contains(&Sign::Mutual)) || pair && kind {
        Confidence::Certain
    } else if echo && pair || kind {
        Confidence::Probable
    } else {
        Confidence::Possible
    }
}
