//! JSON-RPC messages that are sent, and replies that came.

use super::wire::Heard;
use crate::mcp::jsonrpc::{self, Kind, Message, Payload};
use crate::mcp::scan;
use crate::model::id::RpcId;
use serde_json::{Value, json};

/// A request as JSON text.
pub fn request(id: &RpcId, method: &str, params: &Value) -> String {
    // The id is spelled by hand: numbers beyond 64 bits must stay what they are.
    let method = Value::from(method);
    if params.is_null() {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#);
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
}

/// A notification as JSON text.
pub fn notification(method: &str, params: Option<Value>) -> String {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let (Some(params), Some(object)) = (params, message.as_object_mut()) {
        object.insert("params".into(), params);
    }
    message.to_string()
}

/// One result or error that came.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its id; none where the member is missing.
    pub id: Option<RpcId>,
    /// Exact text of the whole message.
    pub raw: Vec<u8>,
    /// A JSON-RPC error, or a result with `isError`.
    pub is_error: bool,
    /// A JSON-RPC error.
    pub is_rpc_error: bool,
    /// When its last byte came, ns since 1970.
    pub at_ns: i64,
}

impl Reply {
    /// The `result` member.
    pub fn result(&self) -> Option<Value> {
        serde_json::from_slice(scan::member(&self.raw, "result")?).ok()
    }
    /// The `error` member.
    pub fn error(&self) -> Option<Value> {
        serde_json::from_slice(scan::member(&self.raw, "error")?).ok()
    }
}

/// The results and errors among what was heard, in order.
pub fn replies(heard: &Heard) -> Vec<Reply> {
    let mut found = vec![];
    for message in &heard.messages {
        match jsonrpc::parse(&message.data) {
            Payload::One(m) => found.extend(reply(&m, message.at_ns)),
            Payload::Batch(all, _) => found.extend(all.iter().filter_map(|m| reply(m, message.at_ns))),
            Payload::Other | Payload::Invalid => {}
        }
    }
    found
}

fn reply(message: &Message<'_>, at_ns: i64) -> Option<Reply> {
    let is_rpc_error = match message.kind {
        Kind::Result => false,
        Kind::Error => true,
        Kind::Request | Kind::Notification => return None,
    };
    let is_tool_error = message.result.and_then(|r| scan::member(r, "isError")).is_some_and(|v| v.starts_with(b"true"));
    Some(Reply {
        id: message.id.clone(),
        raw: message.raw.to_vec(),
        is_error: is_rpc_error || is_tool_error,
        is_rpc_error,
        at_ns,
    })
}
