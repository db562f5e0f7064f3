//! What the names of fields mean: nginx's variables, HTTP headers, and what people call the keys
//! of JSON and `key=value` access logs.

use super::assemble::{Field, Unit};
use super::time::SECOND_NS;

const MS: Unit = Unit::SuffixOr(1_000_000);
const SECONDS: Unit = Unit::SuffixOr(SECOND_NS);

/// An nginx variable (without `$`), as documented in the `ngx_http_core`, `ngx_http_log` and
/// `ngx_http_upstream` modules. Times are of the end: the line is written when the request is done.
pub(super) fn nginx_variable(name: &str) -> Option<Field> {
    Some(match name {
        "time_local" | "time_iso8601" | "msec" => Field::End,
        "request_time" => Field::Duration(Unit::Ns(SECOND_NS)),
        "upstream_response_time" => Field::UpstreamDuration(Unit::Ns(SECOND_NS)),
        "request" => Field::RequestLine,
        "request_method" => Field::Method,
        "request_uri" | "uri" | "document_uri" => Field::Target,
        "args" | "query_string" => Field::Query,
        "status" => Field::Status,
        "upstream_status" => Field::UpstreamStatus,
        "body_bytes_sent" => Field::BodyBytes,
        "bytes_sent" => Field::Bytes,
        "remote_addr" => Field::ClientAddr,
        "remote_port" => Field::ClientPort,
        "upstream_addr" => Field::Upstream,
        "request_id" => Field::RequestId,
        "request_completion" => Field::Termination,
        "request_body" => Field::RequestBody,
        "proxy_add_x_forwarded_for" => Field::ForwardedFor,
        _ => {
            if let Some(header) = name.strip_prefix("sent_http_").or_else(|| name.strip_prefix("upstream_http_")) {
                response_header(header)?
            } else if let Some(header) = name.strip_prefix("http_") {
                request_header(header)?
            } else {
                // Variables set by `map` or `set`.
                common(name.as_bytes()).filter(|f| !matches!(f, Field::Start | Field::End | Field::Duration(_)))?
            }
        }
    })
}

/// A header of the request, any case, `-` or `_` between its words.
pub(super) fn request_header(name: &str) -> Option<Field> {
    Some(match &*name.to_ascii_lowercase().replace('_', "-") {
        "mcp-session-id" => Field::Session,
        "mcp-method" => Field::RpcMethod,
        "mcp-name" => Field::RpcTool,
        "user-agent" => Field::UserAgent,
        "x-request-id" | "x-amzn-trace-id" | "x-correlation-id" | "request-id" => Field::RequestId,
        "x-forwarded-for" => Field::ForwardedFor,
        _ => return None,
    })
}

/// A header of the response.
pub(super) fn response_header(name: &str) -> Option<Field> {
    Some(match &*name.to_ascii_lowercase().replace('_', "-") {
        "mcp-session-id" => Field::SessionGiven,
        "x-request-id" => Field::RequestId,
        _ => return None,
    })
}

/// Longest name that is looked up.
const NAME_BYTES: usize = 64;

/// A key of a JSON or `key=value` log. Case, `_`, `-`, `@`, `$` and spaces do not count; nested
/// keys are joined with dots.
///
/// Unless the name says otherwise a time is of the end, as in nearly every log that is written
/// when the request is done, and a duration without a unit is in seconds where it has a decimal
/// point, else in milliseconds.
pub(super) fn common(name: &[u8]) -> Option<Field> {
    let mut buffer = [0u8; NAME_BYTES];
    let mut len = 0;
    for c in name {
        if !matches!(c, b'_' | b'-' | b'@' | b'$' | b' ') {
            *buffer.get_mut(len)? = c.to_ascii_lowercase();
            len += 1;
        }
    }
    let name = buffer.get(..len)?;
    if let Some(header) = header_of(
        name,
        &[
            b"req.headers.",
            b"request.headers.",
            b"requestheaders.",
            b"headers.",
            b"reqheaders.",
            b"http.request.header.",
            b"http.request.headers.",
        ],
    ) {
        return squeezed_header(header, false);
    }
    if let Some(header) = header_of(
        name,
        &[
            b"res.headers.",
            b"response.headers.",
            b"responseheaders.",
            b"respheaders.",
            b"resheaders.",
            b"http.response.header.",
            b"http.response.headers.",
        ],
    ) {
        return squeezed_header(header, true);
    }
    Some(match name {
        b"time" | b"ts" | b"timestamp" | b"msec" | b"timelocal" | b"timeiso8601" | b"datetime" | b"date"
        | b"logtime" | b"end" | b"ended" | b"endtime" | b"endedat" | b"timemsec" | b"edgeendtimestamp"
        | b"eventtime" | b"localtime" | b"t" => Field::End,
        b"start"
        | b"started"
        | b"starttime"
        | b"startutc"
        | b"startlocal"
        | b"startedat"
        | b"requeststart"
        | b"requesttimestamp"
        | b"requesttimeepoch"
        | b"edgestarttimestamp"
        | b"requestreceived"
        | b"begin" => Field::Start,
        b"requesttime"
        | b"rt"
        | b"timetaken"
        | b"requesttimeseconds"
        | b"durations"
        | b"durationseconds"
        | b"elapsedseconds"
        | b"latencyseconds"
        | b"responsetimes" => Field::Duration(SECONDS),
        b"durationms" | b"elapsedms" | b"latencyms" | b"responsetimems" | b"requesttimems" | b"tookms" | b"timems"
        | b"responsetime" | b"durationmillis" | b"elapsedmillis" | b"responselatency" => {
            if name == b"responsetime" {
                Field::Duration(Unit::Guess)
            } else {
                Field::Duration(MS)
            }
        }
        b"durationus" | b"latencyus" | b"elapsedus" | b"durationmicros" => Field::Duration(Unit::Ns(1_000)),
        b"durationns" | b"latencyns" | b"elapsedns" | b"event.duration" => Field::Duration(Unit::Ns(1)),
        b"duration" | b"latency" | b"elapsed" | b"took" | b"httprequest.latency" | b"dur" => {
            Field::Duration(Unit::Guess)
        }
        b"upstreamresponsetime" | b"urt" | b"ut" | b"upstreamtime" | b"upstreamduration" => {
            Field::UpstreamDuration(SECONDS)
        }
        b"method"
        | b"requestmethod"
        | b"httpmethod"
        | b"verb"
        | b"reqmethod"
        | b"req.method"
        | b"request.method"
        | b"http.method"
        | b"http.request.method"
        | b"clientrequestmethod"
        | b"httprequest.requestmethod" => Field::Method,
        b"uri"
        | b"requesturi"
        | b"path"
        | b"url"
        | b"target"
        | b"requestpath"
        | b"requesturl"
        | b"req.url"
        | b"req.uri"
        | b"req.path"
        | b"request.uri"
        | b"request.url"
        | b"request.path"
        | b"http.target"
        | b"http.url"
        | b"http.path"
        | b"url.path"
        | b"url.original"
        | b"clientrequesturi"
        | b"clientrequestpath"
        | b"httprequest.requesturl" => Field::Target,
        b"args" | b"querystring" | b"query" | b"url.query" => Field::Query,
        b"request" | b"requestline" | b"req" | b"httprequest" => Field::RequestLine,
        b"status"
        | b"statuscode"
        | b"responsecode"
        | b"httpstatus"
        | b"httpstatuscode"
        | b"responsestatus"
        | b"res.statuscode"
        | b"res.status"
        | b"response.status"
        | b"response.statuscode"
        | b"http.statuscode"
        | b"http.response.statuscode"
        | b"http.status"
        | b"edgeresponsestatus"
        | b"httprequest.status"
        | b"code" => Field::Status,
        b"upstreamstatus" | b"originstatus" | b"originresponsestatus" | b"backendstatus" => Field::UpstreamStatus,
        b"bodybytessent" | b"bodybytes" | b"http.response.body.bytes" | b"bodysize" | b"responsebodysize" => {
            Field::BodyBytes
        }
        b"bytessent"
        | b"bytes"
        | b"size"
        | b"responsesize"
        | b"bytesout"
        | b"responsebytes"
        | b"edgeresponsebytes"
        | b"httprequest.responsesize"
        | b"responselength" => Field::Bytes,
        b"remoteaddr"
        | b"remoteip"
        | b"clientip"
        | b"client"
        | b"remote"
        | b"clientaddr"
        | b"clientaddress"
        | b"remoteaddress"
        | b"peer"
        | b"ip"
        | b"remotehost"
        | b"clienthost"
        | b"srcip"
        | b"sourceip"
        | b"src"
        | b"client.ip"
        | b"client.address"
        | b"source.ip"
        | b"source.address"
        | b"req.remoteaddress"
        | b"request.remoteaddr"
        | b"request.remoteip"
        | b"httprequest.remoteip"
        | b"downstreamremoteaddress" => Field::ClientAddr,
        b"remoteport"
        | b"clientport"
        | b"srcport"
        | b"sourceport"
        | b"client.port"
        | b"source.port"
        | b"req.remoteport"
        | b"request.remoteport" => Field::ClientPort,
        b"xforwardedfor" | b"httpxforwardedfor" | b"xff" => Field::ForwardedFor,
        b"upstreamaddr"
        | b"upstream"
        | b"upstreamhost"
        | b"upstreamaddress"
        | b"serviceaddr"
        | b"backend"
        | b"httprequest.serverip" => Field::Upstream,
        b"httpmcpsessionid"
        | b"mcpsessionid"
        | b"sessionid"
        | b"session"
        | b"sid"
        | b"mcpsession"
        | b"reqmcpsessionid"
        | b"requestmcpsessionid"
        | b"reqsid" => Field::Session,
        b"senthttpmcpsessionid"
        | b"sentmcpsessionid"
        | b"sentsid"
        | b"ssid"
        | b"upstreamhttpmcpsessionid"
        | b"respmcpsessionid"
        | b"resmcpsessionid"
        | b"responsemcpsessionid"
        | b"upstreammcpsessionid"
        | b"newsession"
        | b"newsessionid"
        | b"sentsession"
        | b"sentsessionid"
        | b"respsid"
        | b"ressid"
        | b"responsesessionid"
        | b"sessiongiven"
        | b"upstreamsid" => Field::SessionGiven,
        b"httpuseragent"
        | b"useragent"
        | b"ua"
        | b"useragent.original"
        | b"requestuseragent"
        | b"clientrequestuseragent"
        | b"httprequest.useragent"
        | b"agent" => Field::UserAgent,
        b"requestid" | b"rid" | b"reqid" | b"xrequestid" | b"httpxrequestid" | b"req.id" | b"rayid"
        | b"http.request.id" => Field::RequestId,
        b"requestcompletion" | b"responseflags" | b"terminationstate" | b"completion" => Field::Termination,
        b"requestbody" | b"body" | b"reqbody" | b"request.body" | b"req.body" => Field::RequestBody,
        b"responsebody" | b"respbody" | b"resbody" | b"response.body" | b"res.body" => Field::ResponseBody,
        b"httpmcpmethod" | b"mcpmethod" | b"rpcmethod" => Field::RpcMethod,
        b"httpmcpname" | b"mcpname" | b"rpctool" => Field::RpcTool,
        _ => return None,
    })
}

fn header_of<'a>(name: &'a [u8], prefixes: &[&[u8]]) -> Option<&'a [u8]> {
    prefixes.iter().find_map(|p| name.strip_prefix(*p))
}

/// A header's name without its dashes.
fn squeezed_header(name: &[u8], of_response: bool) -> Option<Field> {
    match (name, of_response) {
        (b"mcpsessionid", false) => Some(Field::Session),
        (b"mcpsessionid", true) => Some(Field::SessionGiven),
        (b"mcpmethod", false) => Some(Field::RpcMethod),
        (b"mcpname", false) => Some(Field::RpcTool),
        (b"useragent", false) => Some(Field::UserAgent),
        (b"xrequestid", _) => Some(Field::RequestId),
        (b"xforwardedfor", false) => Some(Field::ForwardedFor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter() {
        for name in
            ["mcp_session_id", "Mcp-Session-Id", "req.headers.mcp-session-id", "http_mcp_session_id", "sessionId"]
        {
            assert_eq!(common(name.as_bytes()), Some(Field::Session), "{name}");
        }
        assert_eq!(common(b"@timestamp"), Some(Field::End));
        assert_eq!(common(b"res.headers.mcp-session-id"), Some(Field::SessionGiven));
        assert_eq!(common("x".repeat(100).as_bytes()), None);
        assert_eq!(nginx_variable("sent_http_mcp_session_id"), Some(Field::SessionGiven));
        assert_eq!(nginx_variable("mcp_sid"), None);
        assert_eq!(nginx_variable("connection"), None);
    }
}
