//! What URLs stand for: one object, all below a prefix, all that fits a pattern.

use super::address::{Address, Kind, fits};
use super::object::{Facts, Object};
use super::store::{Place, Stored, facts, url};
use super::{Found, shown};
use crate::model::glob::glob;
use crate::model::limits::SCAN_FILES;
use object_store::path::Path;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

/// The objects that a URL stands for.
pub fn list(url: &str) -> Found {
    let mut found = Found::default();
    let result = Address::of(url).and_then(|address| objects(&address));
    match result {
        Ok(objects) => found.objects = objects,
        Err(why) => found.troubles.push(format!("{}: {why}", shown(url))),
    }
    found
}

/// The object of this name, as it was found by somebody else.
pub fn at(name: &str, facts: Facts) -> Option<Arc<Object>> {
    let address = Address::of(name).ok()?;
    Some(Arc::new(Object::new(name.to_owned(), facts, false, Box::new(Stored::At(address)))))
}

fn objects(address: &Address) -> Result<Vec<(Arc<Object>, bool)>, String> {
    let is_pattern = address.key.contains(address.wild());
    if !address.is_prefix() {
        let place = Place::of(address).map_err(|e| e.to_string())?;
        match place.facts() {
            Ok(facts) => {
                let stored = Box::new(Stored::Here(place));
                return Ok(vec![(Arc::new(Object::new(address.shown(), facts, address.has_secret, stored)), false)]);
            }
            // A web server has no folders but those that it lists.
            Err(e) if e.kind() == ErrorKind::NotFound && (is_pattern || address.kind != Kind::Web) => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    let below = below(address)?;
    match (below.is_empty(), is_pattern) {
        (false, _) => Ok(below),
        // Nothing found in nothing would look like a clean report.
        (true, true) => Err("no object fits this pattern".into()),
        (true, false) => Err("there is no such object, and none below it (hidden ones are left out)".into()),
    }
}

/// What is listed below an address and, where it is a pattern, fits it.
fn below(address: &Address) -> Result<Vec<(Arc<Object>, bool)>, String> {
    let wild = address.key.find(address.wild());
    let fixed = wild.map_or(address.key.as_str(), |at| address.key.get(..at).unwrap_or_default());
    let fixed = if wild.is_some() { fixed.rsplit_once('/').map_or("", |(folders, _)| folders) } else { fixed };
    let top = Address { key: fixed.trim_end_matches('/').to_owned(), query: None, ..address.clone() };
    let place = Place::of(&top).map_err(|e| e.to_string())?;
    let pattern: Option<Vec<&str>> = wild.map(|_| address.key.split('/').collect());
    let mut listed = vec![];
    for meta in place.below() {
        let meta = meta.map_err(|e| cannot_list(&e, address.kind))?;
        let parts: Vec<String> = meta.location.parts().map(|p| p.as_ref().to_owned()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let depth = place.path.parts_count();
        let is_hidden = parts.iter().skip(depth).any(|p| p.starts_with('.'));
        let is_wanted = pattern.as_ref().is_none_or(|pattern| fits(pattern, &parts, &glob));
        if !is_hidden && is_wanted {
            listed.push(meta);
        }
        // One more than are read, so that it is said that there are more.
        if listed.len() > SCAN_FILES {
            break;
        }
    }
    // Some tools make an object without a byte for each folder.
    let folders: BTreeSet<String> = match listed.iter().any(|m| m.size == 0) {
        true => listed.iter().flat_map(|m| above(m.location.as_ref())).collect(),
        false => BTreeSet::new(),
    };
    let wanted = listed.into_iter().filter(|m| m.size > 0 || !folders.contains(m.location.as_ref()));
    let object = |m: object_store::ObjectMeta| {
        let name = name(address, &m.location);
        let has_secret = address.shown_store != address.store;
        let facts = facts(&m);
        let stored = Stored::Here(Place { path: m.location, ..place.clone() });
        (Arc::new(Object::new(name, facts, has_secret, Box::new(stored))), true)
    };
    Ok(wanted.map(object).collect())
}

/// Everything above a key.
fn above(key: &str) -> impl Iterator<Item = String> + '_ {
    key.match_indices('/').filter_map(|(at, _)| key.get(..at).map(str::to_owned))
}

fn cannot_list(e: &std::io::Error, kind: Kind) -> String {
    match kind {
        Kind::Web => {
            format!("it cannot be listed ({e}); expected a server that speaks WebDAV, or the URL of each file")
        }
        _ => e.to_string(),
    }
}

fn name(address: &Address, path: &Path) -> String {
    match address.kind {
        Kind::Web => url(&address.shown_store, path).map_or_else(String::new, |url| url.to_string()),
        _ => format!("{}/{path}", address.shown_store),
    }
}
