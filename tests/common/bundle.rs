//! Looks into bundles, for tests.
#![allow(dead_code, clippy::unwrap_used)]

use crosswire::input::container::Container;

/// Name and bytes of every member.
pub fn unpacked(file: &str) -> Vec<(String, Vec<u8>)> {
    let archive = Container::new(std::fs::read(file).unwrap()).unwrap();
    archive.names().into_iter().map(|name| (name.to_owned(), archive.read(name).unwrap().unwrap())).collect()
}

/// Where a text stands in names or bytes, whatever the case of its letters.
pub fn holds(members: &[(String, Vec<u8>)], text: &str) -> Option<String> {
    let wanted = text.to_lowercase().into_bytes();
    let has = |bytes: &[u8]| bytes.to_ascii_lowercase().windows(wanted.len()).any(|w| w == wanted);
    members.iter().find(|(name, bytes)| has(name.as_bytes()) || has(bytes)).map(|(name, _)| name.clone())
}

pub fn contains(members: &[(String, Vec<u8>)], text: &str) -> bool {
    holds(members, text).is_some()
}
