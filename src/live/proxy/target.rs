//! The server that the proxy stands in front of.

use crate::drive::{Target, TargetError};

/// `http://` or `https://` with host and port. The path of the URL is for the user alone: requests
/// keep theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Host, port and the `Host` field.
    pub target: Target,
    /// Over TLS.
    pub is_tls: bool,
}

impl Upstream {
    /// From a URL; the port is 80 or 443 if it names none.
    ///
    /// # Errors
    /// If it is no such URL.
    pub fn parse(url: &str) -> Result<Upstream, TargetError> {
        let malformed = || TargetError::Malformed(url.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(malformed)?;
        let is_tls = scheme.eq_ignore_ascii_case("https");
        let clear = if is_tls { format!("http://{rest}") } else { url.to_owned() };
        let mut target = Target::parse(&clear).map_err(|_| malformed())?;
        let after_address = target.authority.rsplit(']').next().unwrap_or_default();
        if is_tls && !after_address.contains(':') {
            target.port = 443;
        }
        Ok(Upstream { target, is_tls })
    }
}

impl std::fmt::Display for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", if self.is_tls { "https" } else { "http" }, self.target.authority)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parse = |url: &str| {
            let u = Upstream::parse(url).unwrap();
            (u.is_tls, u.target.host, u.target.port, u.target.authority)
        };
        assert_eq!(parse("https://h/mcp"), (true, "h".into(), 443, "h".into()));
        assert_eq!(parse("https://h:80"), (true, "h".into(), 80, "h:80".into()));
        assert_eq!(parse("https://[::1]/x"), (true, "::1".into(), 443, "[::1]".into()));
        assert_eq!(parse("http://h"), (false, "h".into(), 80, "h".into()));
        for bad in ["h:80", "ftp://h", "https://", "https://u:p@h"] {
            assert!(Upstream::parse(bad).is_err(), "{bad}");
        }
    }
}
