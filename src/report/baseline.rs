//! `--baseline FILE`: findings that an earlier JSON report already lists.

use crate::model::id::RpcId;
use crate::model::report::{Call, CallKey, Finding, Report};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::Value;

/// What tells two findings apart over runs; call keys differ between inputs, so a call is
/// known by its method, tool, id and time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    rule: String,
    session: Option<String>,
    call: Option<CallIdentity>,
    /// For findings about no call.
    at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CallIdentity {
    method: Option<String>,
    tool: Option<String>,
    id: String,
    at: Option<String>,
}

/// The findings of an earlier report.
#[derive(Clone, Debug, Default)]
pub struct Baseline(FxHashSet<Identity>);

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It is no JSON, or not of the form expected.
    #[error("is no JSON report; make one with `crosswire analyze … --format json`")]
    Json(#[from] serde_json::Error),
    /// It is JSON of another schema.
    #[error("has schema {0:?}, expected \"crosswire.report/1\"; make one with `crosswire analyze … --format json`")]
    Schema(String),
}

#[derive(Deserialize)]
struct Earlier {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    calls: Vec<EarlierCall>,
    #[serde(default)]
    findings: Vec<EarlierFinding>,
}

#[derive(Deserialize)]
struct EarlierCall {
    key: String,
    id: Value,
    method: Option<String>,
    tool: Option<String>,
    issued: Option<String>,
    sent: Option<String>,
}

#[derive(Deserialize)]
struct EarlierFinding {
    rule: String,
    session: Option<String>,
    at: Option<String>,
    victim: Option<String>,
    #[serde(default)]
    calls: Vec<String>,
}

impl Baseline {
    /// Reads a JSON report (`crosswire.report/1` or `crosswire.timeline/1`).
    ///
    /// # Errors
    /// If it is no such report.
    pub fn read(json: &[u8]) -> Result<Baseline, BaselineError> {
        let earlier: Earlier = serde_json::from_slice(json)?;
        if !matches!(earlier.schema.as_str(), "crosswire.report/1" | "crosswire.timeline/1") {
            return Err(BaselineError::Schema(earlier.schema));
        }
        let calls: FxHashMap<&str, &EarlierCall> = earlier.calls.iter().map(|c| (c.key.as_str(), c)).collect();
        let identity = |f: &EarlierFinding| {
            let key = f.victim.as_deref().or(f.calls.first().map(String::as_str));
            let call = key.and_then(|k| calls.get(k)).map(|c| CallIdentity {
                method: c.method.clone(),
                tool: c.tool.clone(),
                id: c.id.to_string(),
                at: c.sent.clone().or_else(|| c.issued.clone()),
            });
            let at = if call.is_none() { f.at.clone() } else { None };
            Identity { rule: f.rule.clone(), session: f.session.clone(), call, at }
        };
        Ok(Baseline(earlier.findings.iter().map(identity).collect()))
    }

    /// Takes the known findings out of `report` and counts them in its summary.
    pub fn apply(&self, report: &mut Report) {
        let calls: FxHashMap<CallKey, &Call> = report.calls.iter().map(|c| (c.key, c)).collect();
        let before = report.findings.len();
        report.findings.retain(|f| !self.0.contains(&identity(f, &calls)));
        report.summary.findings = report.findings.len() as u64;
        report.summary.known = (before - report.findings.len()) as u64;
    }
}

fn identity(f: &Finding, calls: &FxHashMap<CallKey, &Call>) -> Identity {
    let key = f.victim.or(f.calls.first().copied());
    let call = key.and_then(|k| calls.get(&k)).map(|c| CallIdentity {
        method: c.method.as_deref().map(str::to_string),
        tool: c.tool.as_deref().map(str::to_string),
        id: c.id.as_ref().map_or("null".into(), id_text),
        at: c.sent.or(c.issued).map(|t| t.to_string()),
    });
    let at = if call.is_none() { f.at.map(|t| t.to_string()) } else { None };
    Identity { rule: f.rule.into(), session: f.session.as_deref().map(str::to_string), call, at }
}

/// The id as the JSON report writes it.
fn id_text(id: &RpcId) -> String {
    serde_json::to_value(id).map_or("null".into(), |v| v.to_string())
}
