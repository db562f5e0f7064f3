//! One MCP session with a server: the handshake, and requests that belong to it.

use super::client::{Ask, Client};
use super::message::{self, Reply};
use super::wire::Heard;
use crate::model::id::RpcId;
use serde_json::{Value, json};
use std::time::Duration;

/// Revision that is asked for first.
const REVISION: &str = "2025-06-18";
/// The first revision without a handshake and without sessions.
const MODERN: &str = "2026-07-28";
/// Marks, in `_meta`, what a run asks for its own sake: a replay of its recording leaves that out.
pub(super) const LOOKUP: &str = "crosswire/lookup";
/// Pages of a tool list that are read.
const PAGES: usize = 100;

/// What a server agreed to.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its id; none where the server keeps no sessions.
    pub id: Option<String>,
    /// Protocol revision.
    pub revision: String,
    /// `name/version` of the server; the name alone where it gives no version.
    pub server: Option<String>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Sockets.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// HTTP or JSON-RPC.
    #[error("{0}: initialize was refused: {1}")]
    Refused(String, String),
    /// Silence.
    #[error("{0}: initialize was not answered in {1:.1} s")]
    Silent(String, f64),
    /// Stopped by the user.
    #[error("stopped")]
    Stopped,
}

impl Session {
    /// The handshake. Servers that know none (2026-07-28) get a session without id.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn open(client: &Client, patience: Duration) -> Result<Session, SessionError> {
        let url = client.target.to_string();
        let io = |e| SessionError::Io(url.clone(), e);
        let new = Session { id: None, revision: String::new(), server: None };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "crosswire", "version": env!("CARGO_PKG_VERSION")},
        });
        let heard = client.once(&new.ask(&RpcId::Int(0), "initialize", &params), patience).map_err(io)?;
        if client.stop.is_set() {
            return Err(SessionError::Stopped);
        }
        let reply = message::replies(&heard).into_iter().next();
        let Some(result) = reply.as_ref().and_then(Reply::result) else {
            if heard.status.is_none() && heard.end.is_none() {
                return Err(SessionError::Silent(url, patience.as_secs_f64()));
            }
            if let Some(session) = modern(&heard, reply.as_ref()) {
                return Ok(session);
            }
            return Err(SessionError::Refused(url, refusal(&heard, reply.as_ref())));
        };
        let text = |path: &str| result.pointer(path).and_then(Value::as_str);
        let version = text("/serverInfo/version").filter(|v| !v.is_empty());
        let server = text("/serverInfo/name").map(|n| version.map_or(n.to_owned(), |v| format!("{n}/{v}")));
        let session = Session {
            id: heard.header("mcp-session-id").map(str::to_owned),
            revision: text("/protocolVersion").unwrap_or(REVISION).to_owned(),
            server,
        };
        client.once(&session.notify("notifications/initialized", None), patience).map_err(io)?;
        Ok(session)
    }

    /// A request of this session.
    pub fn ask(&self, id: &RpcId, method: &str, params: &Value) -> Ask {
        let mut headers = self.headers();
        let mut params = params.clone();
        if self.revision == MODERN {
            headers.push(("Mcp-Method".into(), method.into()));
            if let Some(name) = params.get("name").or(params.get("uri")).and_then(Value::as_str) {
                headers.push(("Mcp-Name".into(), name.into()));
            }
            if params.is_null() {
                params = json!({});
            }
            if let Some(params) = params.as_object_mut() {
                let meta = params.entry("_meta").or_insert_with(|| json!({}));
                if let Some(meta) = meta.as_object_mut() {
                    let own = "io.modelcontextprotocol/";
                    meta.insert(format!("{own}protocolVersion"), self.revision.as_str().into());
                    meta.insert(
                        format!("{own}clientInfo"),
                        json!({"name": "crosswire", "version": env!("CARGO_PKG_VERSION")}),
                    );
                    meta.insert(format!("{own}clientCapabilities"), json!({}));
                }
            }
        }
        Ask { method: "POST", headers, body: message::request(id, method, &params) }
    }

    /// A notification of this session.
    pub fn notify(&self, method: &str, params: Option<Value>) -> Ask {
        Ask { method: "POST", headers: self.headers(), body: message::notification(method, params) }
    }

    /// The request for the session's own event stream.
    pub fn listen(&self) -> Ask {
        let headers = self.headers().into_iter().filter(|(n, _)| n != "Content-Type" && n != "Accept");
        let accept = ("Accept".to_owned(), "text/event-stream".to_owned());
        Ask { method: "GET", headers: headers.chain([accept]).collect(), body: String::new() }
    }

    /// Ends the session, where there is one.
    pub fn close(&self, client: &Client) {
        if self.id.is_some() {
            let headers = self.headers().into_iter().filter(|(n, _)| n != "Content-Type").collect();
            let _ = client.once(&Ask { method: "DELETE", headers, body: String::new() }, Duration::from_secs(2));
        }
    }

    /// The tools, page by page.
    ///
    /// # Errors
    /// If the list cannot be had.
    pub fn tools(&self, client: &Client, patience: Duration) -> Result<Vec<Value>, SessionError> {
        let url = client.target.to_string();
        let mut tools = vec![];
        let mut cursor: Option<String> = None;
        for page in 0..PAGES {
            let mut params = json!({ "_meta": { LOOKUP: true } });
            if let (Some(cursor), Some(params)) = (&cursor, params.as_object_mut()) {
                params.insert("cursor".into(), cursor.as_str().into());
            }
            let ask = self.ask(&RpcId::Int(1 + page as i64), "tools/list", &params);
            let heard = client.once(&ask, patience).map_err(|e| SessionError::Io(url.clone(), e))?;
            let reply = message::replies(&heard).into_iter().next();
            let Some(result) = reply.as_ref().and_then(Reply::result) else {
                let why = refusal(&heard, reply.as_ref());
                return Err(SessionError::Refused(url, format!("tools/list: {why}")));
            };
            tools.extend(result.get("tools").and_then(Value::as_array).cloned().unwrap_or_default());
            cursor = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(tools)
    }

    fn headers(&self) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = vec![
            ("Accept".into(), "application/json, text/event-stream".into()),
            ("Content-Type".into(), "application/json".into()),
            ("User-Agent".into(), concat!("crosswire/", env!("CARGO_PKG_VERSION")).into()),
        ];
        if !self.revision.is_empty() {
            headers.push(("MCP-Protocol-Version".into(), self.revision.clone()));
        }
        if let Some(id) = &self.id {
            headers.push(("Mcp-Session-Id".into(), id.clone()));
        }
        headers
    }
}

/// A server of revision 2026-07-28 alone answers `initialize` with an unknown method (404, -32601)
/// or names the header or revision that is missing (-32020 to -32022).
fn modern(heard: &Heard, reply: Option<&Reply>) -> Option<Session> {
    let code = reply?.error()?.get("code")?.as_i64()?;
    let is_modern = matches!(code, -32022..=-32020) || (code == -32601 && heard.status == Some(404));
    is_modern.then(|| Session { id: None, revision: MODERN.into(), server: None })
}

/// What a refusal says.
pub(super) fn refusal(heard: &Heard, reply: Option<&Reply>) -> String {
    let status = heard.status.map_or("no response".to_owned(), |s| format!("status {s}"));
    match reply.and_then(Reply::error) {
        Some(error) => format!("{status}, {}", error.get("message").and_then(Value::as_str).unwrap_or("error")),
        None => status,
    }
}
