//! Output schemas of tools as listed, and whether a result satisfies them
//! (MCP 2025-06-18, server/tools "Output Schema": structured results must conform).

mod quick;

use crate::mcp::visit::{Reply, Visit};
use crate::model::time::Time;
use quick::Quick;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// Schemas by hop and tool, each from when it was listed.
#[derive(Default)]
pub struct Schemas {
    by_tool: FxHashMap<(u32, Arc<str>), Vec<Listed>>,
    compiled: FxHashMap<Arc<str>, Option<Arc<Compiled>>>,
}

/// A schema as far as it was needed.
struct Compiled {
    number: u32,
    quick: Option<Quick>,
    schema: serde_json::Value,
    /// None: it is no schema.
    validator: OnceLock<Option<jsonschema::Validator>>,
}

impl Compiled {
    fn new(number: u32, text: &str) -> Option<Compiled> {
        let schema = serde_json::from_str(text).ok()?;
        Some(Compiled { number, quick: Quick::new(&schema), schema, validator: OnceLock::new() })
    }

    fn surely_takes(&self, content: &[u8]) -> bool {
        self.quick.as_ref().is_some_and(|q| q.surely_takes(content))
    }

    /// Before the first one a schema of schemas is compiled: of 2020-12, which MCP's schemas are, that takes 25 MB,
    /// of draft 7 a tenth of it. The keywords that the quick check knows mean the same in both.
    fn validator(&self) -> Option<&jsonschema::Validator> {
        let make = || match &self.quick {
            Some(_) => jsonschema::options().with_draft(jsonschema::Draft::Draft7).build(&self.schema).ok(),
            None => jsonschema::validator_for(&self.schema).ok(),
        };
        self.validator.get_or_init(make).as_ref()
    }
}

struct Listed {
    at: Time,
    schema: Arc<str>,
}

/// A schema that a result does not satisfy, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What is wrong first, as the validator says it.
    pub what: String,
}

impl Schemas {
    /// Takes over the schemas that a `tools/list` reply gave.
    pub fn learn(&mut self, hop: u32, visit: &Visit) {
        for tool in &visit.tools {
            let Some(schema) = &tool.output_schema else { continue };
            let at = visit.last_seen();
            let list = self.by_tool.entry((hop, tool.name.clone())).or_default();
            if list.last().is_none_or(|l| l.schema != *schema) {
                list.push(Listed { at, schema: schema.clone() });
            }
        }
    }

    /// Does any tool have a schema?
    pub fn is_empty(&self) -> bool {
        self.by_tool.is_empty()
    }

    /// The schema of a tool as last listed before `at`; listed only later, the first.
    fn schema(&self, hop: u32, tool: &Arc<str>, at: Time) -> Option<Arc<str>> {
        let list = self.by_tool.get(&(hop, tool.clone()))?;
        let before = list.iter().rev().find(|l| l.at <= at);
        before.or(list.first()).map(|l| l.schema.clone())
    }

    /// Does the `structuredContent` of a `result` satisfy the tool's schema? None: there is no
    /// schema, no structured content, or the schema itself cannot be compiled.
    pub fn check(&mut self, hop: u32, tool: &Arc<str>, at: Time, reply: &Reply) -> Option<Result<(), Mismatch>> {
        let content = reply.structured()?;
        let schema = self.schema(hop, tool, at)?;
        let compiled = self.compiled(&schema)?;
        // An exchange that goes on from part to part is looked at in each.
        if reply.conforms.get() == Some(&compiled.number) {
            return Some(Ok(()));
        }
        if compiled.surely_takes(content) {
            reply.conforms.get_or_init(|| compiled.number);
            return Some(Ok(()));
        }
        let value: serde_json::Value = serde_json::from_slice(content).ok()?;
        Some(compiled.validator()?.validate(&value).map_err(|e| {
            let at = e.instance_path.to_string();
            let at = if at.is_empty() { "structuredContent".to_owned() } else { format!("structuredContent{at}") };
            Mismatch { what: format!("{at}: {e}") }
        }))
    }

    /// Are the two tools' schemas different texts, so that satisfying one says something?
    pub fn differ(&self, hop: u32, a: &Arc<str>, b: &Arc<str>, at: Time) -> bool {
        match (self.schema(hop, a, at), self.schema(hop, b, at)) {
            (Some(a), Some(b)) => a != b,
            _ => false,
        }
    }

    /// Does the tool's schema take an object that has nothing of what it names? Then satisfying it tells nothing.
    pub fn takes_anything(&mut self, hop: u32, tool: &Arc<str>, at: Time) -> bool {
        let Some(compiled) = self.schema(hop, tool, at).and_then(|s| self.compiled(&s)) else { return true };
        let nothing = serde_json::json!({"crosswire/none": null});
        compiled.surely_takes(nothing.to_string().as_bytes())
            || compiled.validator().is_none_or(|v| v.is_valid(&nothing))
    }

    fn compiled(&mut self, schema: &Arc<str>) -> Option<Arc<Compiled>> {
        let number = self.compiled.len() as u32;
        self.compiled.entry(schema.clone()).or_insert_with(|| Compiled::new(number, schema).map(Arc::new)).clone()
    }
}
