//! One JSON-RPC message of a client, with what the rules look at.

use super::content::{ArgumentValues, fingerprint, overlap};
use super::visit::{MessageHash, Sha256, Span};
use crate::model::id::RpcId;
use std::sync::{Arc, OnceLock};

/// What a client message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RpcKind {
    /// Expects a reply.
    Request,
    /// Expects none.
    Notification,
    /// Answers a request of the server.
    Response,
}

/// One JSON-RPC message that the client sent.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// What it is.
    pub kind: RpcKind,
    /// Its id.
    pub id: Option<RpcId>,
    /// Its method.
    pub method: Option<Arc<str>>,
    /// `params.name` of `tools/call`.
    pub tool: Option<Arc<str>>,
    /// Hash of its exact bytes, see [`Rpc::sha256`].
    pub hash: MessageHash,
    /// See [`Rpc::arguments`].
    pub fingerprint: OnceLock<u64>,
    /// See [`Rpc::values`]. Copies share it: a call that is open is joined as a copy, part after part.
    pub values: Option<Arc<OnceLock<ArgumentValues>>>,
    /// `params.requestId` of `notifications/cancelled`.
    pub cancels: Option<RpcId>,
    /// `params._meta["claudecode/toolUseId"]`.
    pub tool_use_id: Option<Arc<str>>,
    /// `params._meta` says revision 2026-07-28 or later, where closing is cancelling.
    pub revision: Option<Arc<str>>,
    /// Where in `body` the arguments lie.
    pub asks: Span,
    /// Exact bytes, kept while a rule or the output may want them.
    pub body: Option<Arc<[u8]>>,
}

impl Rpc {
    /// A request of which only its method is known, if that.
    pub fn unknown(method: Option<&str>) -> Rpc {
        Rpc {
            kind: RpcKind::Request,
            id: None,
            method: method.map(Arc::from),
            tool: None,
            hash: MessageHash::unknown(),
            fingerprint: OnceLock::new(),
            values: None,
            cancels: None,
            tool_use_id: None,
            revision: None,
            asks: Span::default(),
            body: None,
        }
    }

    fn asked(&self) -> Option<&[u8]> {
        let (from, to) = self.asks;
        self.body.as_ref()?.get(from as usize..to as usize).filter(|a| !a.is_empty())
    }

    /// Order-free fingerprint of `params.arguments` (of `params` for other methods); 0: none.
    pub fn arguments(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.asked().map_or(0, fingerprint))
    }

    /// Values among the arguments of a `tools/call` that a reply may echo, looked for when they are first asked for:
    /// who reads a capture leaves that to who joins it.
    pub fn values(&self) -> &[Box<[u8]>] {
        let of_asked = || self.asked().map(ArgumentValues::of).unwrap_or_default();
        self.values.as_ref().map_or(&[], |values| &values.get_or_init(of_asked).0)
    }

    /// Is `value` among them, or one that contains it or is contained in it?
    pub fn overlaps(&self, value: &[u8]) -> bool {
        overlap(self.values(), value)
    }

    /// Lets go of the bytes, of which nothing but what they ask for stays.
    pub fn forget_body(&mut self) {
        self.arguments();
        self.values();
        self.body = None;
    }

    /// SHA-256 of its exact bytes.
    pub fn sha256(&self) -> Sha256 {
        self.hash.of(self.body.as_deref())
    }

    /// Is it the same message as another, as far as the inputs hold them?
    pub fn is_again(&self, other: &Rpc) -> bool {
        let (mine, theirs) = (self.sha256(), other.sha256());
        if mine == [0; 32] || theirs == [0; 32] {
            return (&self.method, &self.tool, self.arguments()) == (&other.method, &other.tool, other.arguments());
        }
        mine == theirs
    }
}
