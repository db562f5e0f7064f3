//! What of an exchange is no business of a recording: credentials in header fields, in the query,
//! and in the forms by which clients get tokens.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName};

/// What stands in the place of a credential.
pub(super) const STRIPPED: &str = "stripped-by-crosswire";

/// Header fields that are credentials whatever they hold.
const FIELDS: [&str; 7] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token"];
/// A field or parameter whose name holds one of these is a credential.
const WORDS: [&str; 9] =
    ["token", "secret", "password", "passwd", "apikey", "api-key", "api_key", "credential", "signature"];
/// Parameters of the query that are credentials, beside those with such a word.
const PARAMETERS: [&str; 5] = ["code", "key", "sig", "auth", "state"];

/// Is this header field a credential?
pub(super) fn is_credential(name: &HeaderName) -> bool {
    let name = name.as_str();
    FIELDS.contains(&name) || WORDS.iter().any(|w| name.contains(w))
}

/// Is the body of this message a form? Clients send them to get tokens, and the answer is the token.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    kind.to_ascii_lowercase().starts_with("application/x-www-form-urlencoded")
}

/// A request target without the values of credentials.
pub(super) fn target(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let parts: Vec<String> = query
        .split('&')
        .map(|part| match part.split_once('=') {
            Some((name, _)) if is_secret_parameter(name) => format!("{name}={STRIPPED}"),
            _ => part.to_owned(),
        })
        .collect();
    format!("{path}?{}", parts.join("&"))
}

fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARAMETERS.contains(&name.as_str()) || WORDS.iter().any(|w| name.contains(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials() {
        for name in ["authorization", "cookie", "x-goog-api-key", "x-amz-security-token", "x-client-secret"] {
            assert!(is_credential(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["mcp-session-id", "last-event-id", "content-type", "mcp-protocol-version", "user-agent"] {
            assert!(!is_credential(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[test]
    fn queries() {
        assert_eq!(target("/mcp"), "/mcp");
        assert_eq!(target("/mcp?a=1&api_key=K&b"), "/mcp?a=1&api_key=stripped-by-crosswire&b");
        assert_eq!(target("/cb?code=C&x=y"), "/cb?code=stripped-by-crosswire&x=y");
    }
}
