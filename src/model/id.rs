//! JSON-RPC ids and session names.

use serde::ser::{Serialize, Serializer};
use std::sync::Arc;

/// What one `Mcp-Session-Id` header names.
pub type SessionId = Arc<str>;

/// A JSON-RPC id exactly as carried: its JSON type is part of it (`7` is not `"7"`).
///
/// JSON-RPC 2.0 §4 allows strings, numbers and null; MCP forbids null. Everything else that
/// was seen in an `id` member is kept as its JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RpcId {
    /// `"id": null`
    Null,
    /// An integer that fits 64 bits.
    Int(i64),
    /// A string, unescaped.
    Str(Arc<str>),
    /// Any other JSON (fractional or huge numbers, booleans, arrays, objects), as its text.
    Other(Arc<str>),
}

impl RpcId {
    /// The id in the form in which some servers key their in-flight table (Python SDKs use
    /// `str(id)`, mcp/server/streamable_http.py), so that `7` and `"7"` collide.
    pub fn loose(&self) -> Arc<str> {
        match self {
            RpcId::Null => Arc::from("null"),
            RpcId::Int(n) => Arc::from(n.to_string()),
            RpcId::Str(s) | RpcId::Other(s) => s.clone(),
        }
    }

    /// Is it one that the specification lets a request carry (string or integer)?
    pub fn is_legal(&self) -> bool {
        matches!(self, RpcId::Int(_) | RpcId::Str(_))
    }
}

impl std::fmt::Display for RpcId {
    /// The id as JSON text: `7`, `"7"`, `null`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RpcId::Null => f.write_str("null"),
            RpcId::Int(n) => write!(f, "{n}"),
            RpcId::Str(s) => f.write_str(&serde_json::Value::from(&**s).to_string()),
            RpcId::Other(t) => f.write_str(t),
        }
    }
}

impl Serialize for RpcId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            RpcId::Null => s.serialize_unit(),
            RpcId::Int(n) => s.serialize_i64(*n),
            RpcId::Str(t) => s.serialize_str(t),
            // The contract's `id` is a number, a string or null: other types become their text.
            RpcId::Other(t) => match serde_json::from_str::<serde_json::Number>(t) {
                Ok(n) => n.serialize(s),
                Err(_) => s.serialize_str(t),
            },
        }
    }
}
