//! Inputs that are no files: objects in stores (S3, Google Cloud Storage, Azure) and files of web servers.
//!
//! `address` says what a URL names and what of it may be shown, `store` asks the store (both only in builds
//! with the feature `objects`), `object` reads: as a stream, or here and there.

mod object;

#[cfg(feature = "objects")]
mod address;
#[cfg(feature = "objects")]
mod errors;
#[cfg(feature = "objects")]
mod list;
#[cfg(feature = "objects")]
mod store;

#[cfg(feature = "objects")]
pub use list::{at, list};
pub use object::{Facts, Object, ObjectOpener, Remote};

use std::sync::Arc;

/// What a URL stands for.
#[derive(Debug, Default)]
pub struct Found {
    /// Objects in order of their names, and whether each was found below a prefix or by a pattern (and not named).
    pub objects: Vec<(Arc<Object>, bool)>,
    /// Sentences about what cannot be listed. They hold no secret that the URL held.
    pub troubles: Vec<String>,
}

/// Is this input a URL? Then it is no file, whatever files there are.
pub fn is_url(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// A URL without what may be secret in it: the password before the host, and behind a `?` all but a pattern.
pub fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let end = rest.find(['?', '#']).filter(|at| is_web || has_secret(rest.get(*at..).unwrap_or_default()));
    let rest = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
    let host_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(host_end);
    // abfs://container@account.dfs.core.windows.net: what stands before the @ is no secret there.
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) if is_web || user.contains(':') => host,
        _ => authority,
    };
    format!("{scheme}://{authority}{path}")
}

/// Does what follows a `?` look like a signature rather than a pattern?
fn has_secret(query: &str) -> bool {
    let query = query.to_ascii_lowercase();
    ["sig=", "signature=", "credential=", "token=", "accesskeyid="].iter().any(|word| query.contains(word))
}

/// In this build no URL can be read.
#[cfg(not(feature = "objects"))]
pub fn list(url: &str) -> Found {
    let trouble = format!(
        "{}: this build reads files only; one that reads URLs (s3://, gs://, az://, abfs://, http://, https://) is made by \
         `cargo install --locked --path . --features objects`, or copy what is wanted to a folder first",
        shown(url)
    );
    Found { troubles: vec![trouble], ..Found::default() }
}

/// In this build no URL can be read.
#[cfg(not(feature = "objects"))]
pub fn at(_: &str, _: Facts) -> Option<Arc<Object>> {
    None
}

#[cfg(test)]
mod tests {
    use super::{is_url, shown};

    #[test]
    fn what_is_a_url() {
        for (name, is) in [
            ("s3://b/k", true),
            ("https://h/x", true),
            ("logs/access.log", false),
            ("dir/s3://b", false),
            ("://x", false),
            ("", false),
        ] {
            assert_eq!(is_url(name), is, "{name}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (url, wanted) in [
            ("https://h/a/b.log?X-Amz-Signature=abc&x=1", "https://h/a/b.log"),
            ("https://me:pass@h:8443/a.log#part", "https://h:8443/a.log"),
            ("https://token@h/a.log", "https://h/a.log"),
            ("http://h", "http://h"),
            ("s3://b/logs/a?.log", "s3://b/logs/a?.log"),
            ("s3://b/logs/year=202?/m=1/*", "s3://b/logs/year=202?/m=1/*"),
            ("s3://b/a.log?X-Amz-Signature=abc", "s3://b/a.log"),
            ("s3://key:secret@b/a.log", "s3://b/a.log"),
            ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ] {
            assert_eq!(shown(url), wanted);
        }
    }
}
