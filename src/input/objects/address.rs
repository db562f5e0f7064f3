//! What a URL names: a store, and an object, a prefix or a pattern in it.

use super::{has_secret, shown};

/// Which kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    S3,
    Google,
    Azure,
    Web,
}

/// A URL taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Which kind of store.
    pub kind: Kind,
    /// The store: all before the key, secrets included.
    pub store: String,
    /// The same as it is shown.
    pub shown_store: String,
    /// Behind the store's `/`, without the query. Of a web server percent-encoded.
    pub key: String,
    /// The query of a web server's URL.
    pub query: Option<String>,
    /// More than the shown name is needed to read it.
    pub has_secret: bool,
}

impl Address {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// A sentence, without the URL, where it is none that is read.
    pub fn of(url: &str) -> Result<Address, String> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => Kind::S3,
            "gs" => Kind::Google,
            "az" | "azure" | "abfs" | "abfss" => Kind::Azure,
            "http" | "https" => Kind::Web,
            _ => {
                return Err(format!(
                    "{scheme}:// is not read; expected s3://, gs://, az://, abfs://, http:// or https:// (what has :// in its \
                     name is a URL; write ./ before the name of a file)"
                ));
            }
        };
        let (rest, query) = match kind {
            Kind::Web => {
                let rest = rest.split('#').next().unwrap_or_default();
                rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query.to_owned())))
            }
            _ => (rest, None),
        };
        if let Some((_, behind)) = rest.split_once('?').filter(|(_, behind)| has_secret(behind)) {
            let words = behind.len();
            return Err(format!(
                "what follows the ? ({words} bytes) looks like a signature, and such URLs take none; give the https:// URL \
                 that was signed, or credentials in the environment"
            ));
        }
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() {
            return Err(format!("there is no name behind {scheme}://; expected {}", example(kind)));
        }
        let store = format!("{scheme}://{authority}");
        let shown_store = shown(&store);
        if kind != Kind::Web && shown_store != store {
            return Err("credentials in such a URL are not read; give them in the environment".into());
        }
        let has_secret = query.is_some() || shown_store != store;
        Ok(Address { kind, store, shown_store, key: key.to_owned(), query, has_secret })
    }

    /// As it is shown.
    pub fn shown(&self) -> String {
        format!("{}/{}", self.shown_store, self.key)
    }

    /// All of it.
    pub fn whole(&self) -> String {
        let query = self.query.as_ref().map_or(String::new(), |q| format!("?{q}"));
        format!("{}/{}{query}", self.store, self.key)
    }

    /// Does it say itself that it is no object, but all below it?
    pub fn is_prefix(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// The characters of patterns.
    pub fn wild(&self) -> &'static [char] {
        if self.kind == Kind::Web { &['*'] } else { &['*', '?'] }
    }
}

fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::S3 => "s3://BUCKET/KEY",
        Kind::Google => "gs://BUCKET/KEY",
        Kind::Azure => "az://CONTAINER/NAME or abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME",
        Kind::Web => "https://HOST/PATH",
    }
}

/// Does a key fit a pattern, part by part? `**` is any folders; what is below a fitting folder fits, as on disk.
pub fn fits(pattern: &[&str], key: &[&str], glob: &dyn Fn(&str, &str) -> bool) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return true };
    if *first == "**" {
        return (0..=key.len()).any(|n| !key.is_empty() && fits(rest, key.get(n..).unwrap_or_default(), glob));
    }
    match key.split_first() {
        Some((part, below)) => glob(first, part) && fits(rest, below, glob),
        None => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Address, Kind, fits};

    #[test]
    fn urls_are_taken_apart() {
        let a = Address::of("s3://logs/2026/11/*.gz").unwrap();
        assert_eq!((a.kind, a.store.as_str(), a.key.as_str()), (Kind::S3, "s3://logs", "2026/11/*.gz"));
        let a = Address::of("https://me:pass@h:1/a%20b.log?sig=abc#x").unwrap();
        assert_eq!(
            (a.shown(), a.whole()),
            ("https://h:1/a%20b.log".into(), "https://me:pass@h:1/a%20b.log?sig=abc".into())
        );
        assert!(a.has_secret && !a.is_prefix());
        assert!(Address::of("gs://bucket").unwrap().is_prefix());
        let a = Address::of("abfss://c@acc.dfs.core.windows.net/d/").unwrap();
        assert_eq!((a.kind, a.has_secret, a.is_prefix()), (Kind::Azure, false, true));
        for (url, said) in [
            ("ftp://h/x", "expected s3://"),
            ("s3:///x", "s3://BUCKET/KEY"),
            ("s3://b/x?X-Amz-Signature=Zm9v", "looks like a signature"),
            ("s3://key:c2VjcmV0@b/x", "in the environment"),
        ] {
            let e = Address::of(url).unwrap_err();
            assert!(e.contains(said) && !e.contains("Zm9v") && !e.contains("c2VjcmV0"), "{url}: {e}");
        }
    }

    #[test]
    fn patterns_are_those_of_folders() {
        let glob = |p: &str, t: &str| p == t || p == "*" || p.strip_prefix('*').is_some_and(|end| t.ends_with(end));
        let is = |pattern: &str, key: &str| {
            fits(&pattern.split('/').collect::<Vec<_>>(), &key.split('/').collect::<Vec<_>>(), &glob)
        };
        assert!(is("*.gz", "a.gz") && !is("*.gz", "a.log") && !is("*.gz", "x/a.gz"));
        assert!(is("*", "x/a.gz") && is("x", "x/a/b"));
        assert!(is("**/*.gz", "a.gz") && is("**/*.gz", "x/y/a.gz") && !is("**/*.gz", "x/y/a.log"));
        assert!(is("x/**", "x/y/z") && !is("x/**", "y/z"));
        assert!(is("*/a.log", "h/a.log") && !is("*/a.log", "a.log"));
    }
}
