//! Where requests go: an `http://` address.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// An MCP endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `host:port` for the `Host` field; the port is left out where it is 80.
    pub authority: String,
    /// Name or address to connect to, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub path: String,
}

/// Why a URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// TLS.
    #[error("{0}: https is not spoken; use the server's own http address, or a local proxy that ends TLS")]
    Tls(String),
    /// Something else.
    #[error("{0}: expected a URL such as http://127.0.0.1:8000/mcp")]
    Malformed(String),
}

impl Target {
    /// From `http://host[:port][/path]`; without a path it is `/mcp`.
    ///
    /// # Errors
    /// If it is another scheme or no URL.
    pub fn parse(url: &str) -> Result<Target, TargetError> {
        let malformed = || TargetError::Malformed(url.to_owned());
        let (scheme, rest) = url.split_once("://").ok_or_else(malformed)?;
        if scheme.eq_ignore_ascii_case("https") {
            return Err(TargetError::Tls(url.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(malformed());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let cut = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        let (host, port) = host_and_port(authority).ok_or_else(malformed)?;
        if path.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(malformed());
        }
        let path = match path {
            "" => "/mcp".to_owned(),
            p if p.starts_with('?') => format!("/{p}"),
            p => p.to_owned(),
        };
        Ok(Target { authority: authority.to_owned(), host: host.to_owned(), port, path })
    }

    /// Every address of the host.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

fn host_and_port(authority: &str) -> Option<(&str, u16)> {
    // User and password belong into a header that the user gives.
    if authority.contains('@') || authority.chars().any(char::is_whitespace) {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (host, port)
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map_or(Some(80), |p| p.parse().ok())?;
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let t = |url: &str| {
            let t = Target::parse(url).unwrap();
            (t.host, t.port, t.path)
        };
        assert_eq!(t("http://127.0.0.1:8000/mcp"), ("127.0.0.1".into(), 8000, "/mcp".into()));
        assert_eq!(t("HTTP://example.org"), ("example.org".into(), 80, "/mcp".into()));
        assert_eq!(t("http://[::1]:9/a?b#c"), ("::1".into(), 9, "/a?b".into()));
        assert_eq!(t("http://h?x"), ("h".into(), 80, "/?x".into()));
    }

    #[test]
    fn what_is_refused() {
        assert!(matches!(Target::parse("https://h/mcp"), Err(TargetError::Tls(_))));
        for url in ["", "h:80/mcp", "ftp://h/", "http://", "http://h:port/", "http://u:p@h/", "http://h/a b"] {
            assert!(matches!(Target::parse(url), Err(TargetError::Malformed(_))), "{url}");
        }
    }
}
