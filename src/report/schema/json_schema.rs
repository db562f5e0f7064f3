//! JSON Schema (draft 2020-12) of the documents.

use super::{Field, Kind, Object, Presence, object};
use serde_json::{Map, Value, json};

/// The `$id` of a document's schema.
pub fn json_schema_id(document: &Object) -> String {
    format!("crosswire-{}.schema.json", document.name)
}

/// The schema of a document. Later versions may add fields, so a reader must not refuse what it
/// does not know; `closed` makes a schema that does, for tests of what is written now.
pub fn json_schema(document: &Object, closed: bool) -> Value {
    let mut parts: Vec<&'static Object> = Vec::new();
    gather(document, &mut parts);
    parts.sort_by_key(|o| o.name);
    let definitions: Map<String, Value> = parts.iter().map(|o| (o.name.to_owned(), of_object(o, closed))).collect();
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("$id".into(), json!(json_schema_id(document)));
    if let Value::Object(own) = of_object(document, closed) {
        schema.extend(own);
    }
    schema.insert("$defs".into(), Value::Object(definitions));
    Value::Object(schema)
}

/// The objects that `of` holds, each once.
fn gather(of: &Object, found: &mut Vec<&'static Object>) {
    for part in of.fields.iter().filter_map(|f| f.kind.object()) {
        if !found.iter().any(|o| o.name == part.name) {
            found.push(part);
            gather(part, found);
        }
    }
}

fn of_object(o: &Object, closed: bool) -> Value {
    let properties: Map<String, Value> = o.fields.iter().map(|f| (f.name.to_owned(), of_field(f))).collect();
    let required: Vec<&str> = o.fields.iter().filter(|f| f.presence != Presence::Optional).map(|f| f.name).collect();
    let mut schema = json!({ "description": o.doc, "type": "object", "required": required, "properties": properties });
    if let (true, Some(schema)) = (closed, schema.as_object_mut()) {
        schema.insert("additionalProperties".into(), json!(false));
    }
    schema
}

fn of_field(f: &Field) -> Value {
    let kind = of_kind(&f.kind);
    let mut schema = Map::new();
    schema.insert("description".into(), json!(f.doc));
    match kind {
        Value::Object(mut kind) if f.presence == Presence::Nullable => match kind.remove("type") {
            // `enum` and `$ref` would still forbid null.
            Some(Value::String(name)) if !kind.contains_key("enum") => {
                schema.insert("type".into(), json!([name, "null"]));
                schema.extend(kind);
            }
            Some(Value::Array(mut names)) => {
                names.push(json!("null"));
                schema.insert("type".into(), Value::Array(names));
                schema.extend(kind);
            }
            name => {
                if let Some(name) = name {
                    kind.insert("type".into(), name);
                }
                if !kind.is_empty() {
                    schema.insert("anyOf".into(), json!([kind, { "type": "null" }]));
                }
            }
        },
        Value::Object(kind) => schema.extend(kind),
        _ => {}
    }
    Value::Object(schema)
}

fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        Kind::Integer => json!({ "type": "integer" }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Time => json!({ "type": "string", "pattern": r"^\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$" }),
        Kind::Sha256 => json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
        Kind::CallKey => json!({ "type": "string", "pattern": "^c[0-9]+$" }),
        Kind::RpcId => json!({ "type": ["string", "number"] }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Exactly(text) => json!({ "const": text }),
        Kind::OneOf(words) => {
            json!({ "type": "string", "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() })
        }
        Kind::Object(name) => match object(name) {
            Some(o) => json!({ "$ref": format!("#/$defs/{}", o.name) }),
            None => json!({}),
        },
        Kind::List(of) => json!({ "type": "array", "items": of_kind(of) }),
        Kind::Pair => json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 }),
        Kind::Any => json!({}),
    }
}
