//! Traffic that several tests begin with.

use super::traffic::{Session, Traffic, X, document, plain, result_of};

/// Tools that the scenes call: two that echo their argument, one that does not, one of plain text.
pub fn append_result(entry: &str) -> String {
    document(&format!(r#"{{"receipt":"r-1","entry":"{entry}"}}"#))
}

pub fn update_result(entity: &str) -> String {
    document(&format!(r#"{{"entity":"{entity}","version":7}}"#))
}

pub fn append(t: &mut Traffic, s: &Session, id: impl ToString, entry: &str) -> X {
    t.tool(s, id, "journal_append", &format!(r#"{{"entry":"{entry}"}}"#))
}

pub fn update(t: &mut Traffic, s: &Session, id: impl ToString, entity: &str) -> X {
    t.tool(s, id, "entity_update", &format!(r#"{{"entity":"{entity}"}}"#))
}

/// One after the other, so that the tools' shapes and habits are known. Takes ids from 100 on.
pub fn warm(t: &mut Traffic, s: &Session) {
    for n in 0..4 {
        let (entry, entity) = (format!("early-{n:04}"), format!("forest-{n:04}"));
        let x = append(t, s, 100 + n * 4, &entry);
        t.wait(20).answer(x, &append_result(&entry));
        let x = update(t, s, 101 + n * 4, &entity);
        t.wait(20).answer(x, &update_result(&entity));
        let x = t.wait(5).tool(s, 102 + n * 4, "weather", r#"{"place":"hut"}"#);
        t.wait(20).answer(x, &document(r#"{"celsius":12.5,"sky":"clear"}"#));
        let x = t.wait(5).tool(s, 103 + n * 4, "motd", "{}");
        t.wait(20).answer(x, &plain("Welcome to the trail."));
        t.wait(5);
    }
}

/// A session on which the tools are known; the clock stands at 10 s.
pub fn known(id: &str) -> (Traffic, Session) {
    known_in(id, false)
}

/// The same, with replies as JSON or as event streams.
pub fn known_in(id: &str, json: bool) -> (Traffic, Session) {
    let mut t = Traffic::new();
    t.json = json;
    let s = t.session(id);
    warm(&mut t, &s);
    t.at(10_000);
    (t, s)
}

/// The reply of a `journal_append` with `id`.
pub fn append_reply(id: &str, entry: &str) -> String {
    result_of(id, &append_result(entry))
}

/// The reply of an `entity_update` with `id`.
pub fn update_reply(id: &str, entity: &str) -> String {
    result_of(id, &update_result(entity))
}
