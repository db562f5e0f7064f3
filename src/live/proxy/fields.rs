//! What a proxy must change in a head, and nothing else: fields that speak of one connection only
//! (RFC 9110 §7.6.1), the host, and what differs between versions of HTTP.

use super::target::Upstream;
use hyper::header::{CONNECTION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use hyper::http::{request, response};
use hyper::{Uri, Version};

/// Makes a request what the server is to get, and gives the host it names.
pub(super) fn to_server(parts: &mut request::Parts, upstream: &Upstream, to_h2: bool, keep_host: bool) -> String {
    let from_h2 = parts.version == Version::HTTP_2;
    let authority = upstream.target.authority.as_str();
    let named = parts.uri.authority().map(ToString::to_string);
    let given = parts.headers.get(HOST).and_then(|h| h.to_str().ok()).map(str::to_owned).or(named);
    let host = given.filter(|_| keep_host).unwrap_or_else(|| authority.to_owned());
    let had_host = parts.headers.contains_key(HOST);
    parts.headers = end_to_end(&parts.headers, to_h2);
    // HTTP/2 has it in the URI, below.
    if let (false, Ok(value)) = (to_h2, HeaderValue::from_str(&host)) {
        if had_host {
            parts.headers.insert(HOST, value);
        } else {
            // Where a client of HTTP/2 has its authority: before all else.
            let rest = std::mem::take(&mut parts.headers);
            parts.headers.insert(HOST, value);
            parts.headers.extend(rest);
        }
    }
    if from_h2 && !to_h2 {
        join_cookies(&mut parts.headers);
    }
    let path = parts.uri.path_and_query().cloned();
    let mut uri = Uri::builder();
    if to_h2 {
        uri = uri.scheme(if upstream.is_tls { "https" } else { "http" }).authority(host.as_str());
    }
    if let Ok(uri) = uri.path_and_query(path.map_or_else(|| "/".to_owned(), |p| p.to_string())).build() {
        parts.uri = uri;
    }
    parts.version = if to_h2 { Version::HTTP_2 } else { Version::HTTP_11 };
    host
}

/// Makes a response what the client is to get.
pub(super) fn to_client(parts: &mut response::Parts, version: Version) {
    parts.headers = end_to_end(&parts.headers, version == Version::HTTP_2);
    parts.version = version;
}

/// The fields that are not of one connection, in their order. HTTP/1.1 keeps the field that says that
/// a body comes in chunks, which is how it will be sent.
fn end_to_end(headers: &HeaderMap, to_h2: bool) -> HeaderMap {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let is_chunked = headers.get(TRANSFER_ENCODING).is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"chunked"));
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let of_connection = *name == CONNECTION
            || *name == UPGRADE
            || (*name == HOST && to_h2)
            || (*name == TRANSFER_ENCODING && (to_h2 || !is_chunked))
            || (*name == TE && value.as_bytes() != b"trailers")
            || matches!(name.as_str(), "keep-alive" | "proxy-connection" | "http2-settings")
            || (named.contains(name) && !matches!(name.as_str(), "te" | "host" | "content-length"));
        if !of_connection {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// RFC 9113 §8.2.3: HTTP/2 may carry cookies in several fields, HTTP/1.1 may not.
fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        headers.insert(COOKIE, whole);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyper::Request;

    fn to(version: Version, fields: &[(&str, &str)], uri: &str, to_h2: bool) -> (String, Vec<String>) {
        let mut request = Request::builder().version(version).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let upstream = Upstream::parse("https://server.example/ignored").unwrap();
        to_server(&mut parts, &upstream, to_h2, false);
        let fields = parts.headers.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
        (parts.uri.to_string(), fields)
    }

    #[test]
    fn only_fields_of_the_connection_go() {
        let fields = [
            ("accept", "a"),
            ("host", "127.0.0.1:80"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("mcp-session-id", "s"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("x-a", "1"),
            ("x-a", "2"),
        ];
        let (uri, kept) = to(Version::HTTP_11, &fields, "/mcp?x=1", false);
        assert_eq!(uri, "/mcp?x=1");
        assert_eq!(
            kept,
            [
                "accept: a",
                "host: server.example",
                "mcp-session-id: s",
                "transfer-encoding: chunked",
                "te: trailers",
                "x-a: 1",
                "x-a: 2"
            ]
        );
        let (uri, kept) = to(Version::HTTP_11, &fields, "/mcp", true);
        assert_eq!(uri, "https://server.example/mcp");
        assert_eq!(kept, ["accept: a", "mcp-session-id: s", "te: trailers", "x-a: 1", "x-a: 2"]);
    }

    #[test]
    fn from_http2_to_http1() {
        let fields = [("accept", "a"), ("cookie", "a=1"), ("cookie", "b=2")];
        let (uri, kept) = to(Version::HTTP_2, &fields, "http://127.0.0.1:80/mcp", false);
        assert_eq!(uri, "/mcp");
        assert_eq!(kept, ["host: server.example", "accept: a", "cookie: a=1; b=2"]);
    }
}
