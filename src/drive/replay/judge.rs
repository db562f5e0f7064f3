//! What a live reply is to the recorded one, and whose it is.

use super::schedule::Planned;
use aho_corasick::AhoCorasick;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Least length of a value that tells calls apart.
const DISTINCTIVE: usize = 6;

/// Finds out by argument values to which call a reply belongs.
pub struct Owners {
    search: Option<AhoCorasick>,
    /// Call of each pattern.
    calls: Vec<usize>,
}

impl Owners {
    /// From the arguments of all calls: a value that occurs in one call alone is that call's.
    pub fn new(calls: &[Planned]) -> Owners {
        let mut of: FxHashMap<String, Option<usize>> = FxHashMap::default();
        for (i, call) in calls.iter().enumerate().filter(|(_, c)| c.what.tool.is_some()) {
            leaves(call.what.params.get("arguments").unwrap_or(&Value::Null), &mut |value| {
                let owner = of.entry(value).or_insert(Some(i));
                if *owner != Some(i) {
                    *owner = None;
                }
            });
        }
        let (values, calls): (Vec<String>, Vec<usize>) = of.into_iter().filter_map(|(v, o)| Some((v, o?))).unzip();
        Owners { search: AhoCorasick::new(values).ok(), calls }
    }

    /// The calls whose own values the reply holds.
    pub fn of(&self, reply: &Value) -> Vec<usize> {
        let mut found = vec![];
        let Some(search) = &self.search else { return found };
        leaves_text(reply, &mut |text| {
            for hit in search.find_overlapping_iter(text) {
                let call = self.calls.get(hit.pattern().as_usize()).copied();
                found.extend(call.filter(|c| !found.contains(c)));
            }
        });
        found
    }
}

/// Strings and numbers that are long enough to tell calls apart.
fn leaves(value: &Value, each: &mut impl FnMut(String)) {
    leaves_text(value, &mut |text| {
        if text.chars().count() >= DISTINCTIVE {
            each(text.to_owned());
        }
    });
}

fn leaves_text(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(s) => each(s),
        Value::Number(n) => each(&n.to_string()),
        Value::Array(all) => all.iter().for_each(|v| leaves_text(v, each)),
        Value::Object(map) => map.values().for_each(|v| leaves_text(v, each)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The path of the first difference (RFC 6901), and how many there are; none if they are the same.
pub fn difference(a: &Value, b: &Value) -> Option<(String, usize)> {
    let mut found = (None, 0);
    compare(a, b, &mut String::new(), &mut found);
    let (first, count) = found;
    first.map(|path| (path, count))
}

fn compare(a: &Value, b: &Value, path: &mut String, found: &mut (Option<String>, usize)) {
    let length = path.len();
    let mut below = |key: &str, a: &Value, b: &Value| {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        compare(a, b, path, found);
        path.truncate(length);
    };
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for (key, value) in x {
                below(key, value, y.get(key).unwrap_or(&Value::Null));
            }
            for (key, value) in y.iter().filter(|(k, _)| !x.contains_key(*k)) {
                below(key, &Value::Null, value);
            }
        }
        (Value::Array(x), Value::Array(y)) => {
            for i in 0..x.len().max(y.len()) {
                let at = |v: &[Value]| v.get(i).cloned().unwrap_or_default();
                below(&i.to_string(), &at(x), &at(y));
            }
        }
        _ if a == b => {}
        _ => {
            found.0.get_or_insert_with(|| path.clone());
            found.1 += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::difference;
    use serde_json::json;

    #[test]
    fn differences_have_a_path() {
        assert_eq!(difference(&json!({"a": [1, {"b": 2}]}), &json!({"a": [1, {"b": 2}]})), None);
        let two = difference(&json!({"a": [1, {"b/c": 2}]}), &json!({"a": [1, {"b/c": 3}, 4]}));
        assert_eq!(two, Some(("/a/1/b~1c".into(), 2)));
        assert_eq!(difference(&json!(1), &json!("1")), Some((String::new(), 1)));
    }
}
