//! Words that are kept because everybody knows them: protocols, programming interfaces, log
//! layouts. Everything else is replaced, so a forgotten word costs legibility and never a secret.

use rustc_hash::FxHashSet;
use std::sync::LazyLock;

/// Names of days and months, as logs and HTTP write times.
const TIMES: &str = "
jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june july august september october
november december mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday
utc gmt est edt cst cdt mst mdt pst pdt cet cest bst
";

/// JSON-RPC, the Model Context Protocol (all revisions), JSON Schema, HTTP.
const PROTOCOL: &str = "
true false null nan
jsonrpc id method params result error code message data
initialize initialized notifications ping progress cancelled tools list call resources templates read subscribe
unsubscribe updated prompts get sampling createmessage roots elicitation create complete completion logging setlevel
discover server client tasks task cancel status listen changed list_changed listchanged tool resource prompt root
protocolversion capabilities clientinfo serverinfo instructions name version title description experimental extensions
arguments content structuredcontent iserror type text image audio resource_link embedded blob mimetype uri uritemplate
annotations audience priority lastmodified size role user assistant messages modelpreferences hints systemprompt
includecontext temperature maxtokens stopsequences stopreason endturn metadata model costpriority speedpriority
intelligencepriority _meta meta progresstoken requestid reason total cursor nextcursor inputschema outputschema
readonlyhint destructivehint idempotenthint openworldhint argument ref values hasmore level logger debug info notice
warning critical alert emergency action accept decline requestedschema taskid ttl pollinterval resulttype input_required
claude anthropic openai chatgpt copilot cursor vscode inspector connector claudecode tooluseid toolu modelcontextprotocol io
object array string number integer boolean properties required additionalproperties items enum const format pattern
minimum maximum minlength maxlength minitems maxitems uniqueitems default examples anyof oneof allof not definitions defs
schema date time datetime email uuid hostname ipv4 ipv6 json draft exclusiveminimum exclusivemaximum multipleof
application event stream utf charset plain html octet xml form urlencoded multipart www
post delete put head options patch connect trace http https tcp tls ws wss localhost mcp sse endpoint
bearer basic digest negotiate oauth authorization authenticate proxy cookie set path secure httponly samesite domain
expires max age lax strict
host user agent accept encoding language origin referer connection keep alive close upgrade cache control no store
transform transfer chunked length identity gzip deflate br zstd vary date etag allow location via forwarded for proto
port real ip request response session last protocol version x buffering mcp access expose headers methods credentials
trailer te expect continue range content disposition server age retry after sec fetch mode dest site cors empty
python httpx node undici axios reqwest hyper curl uvicorn starlette hypercorn gunicorn nginx caddy apache haproxy envoy
traefik istio kestrel jetty netty express fastify fastmcp rmcp java go rust dotnet typescript javascript mozilla
openid configuration well known register token authorize jwks
";

/// What log layouts are made of.
const LOGS: &str = "
trace debug info notice warn warning error err crit critical fatal emerg panic stdout stderr
at ended outcome conversation issued local_port ok timeout aborted lost tool_use_id result_sha256 text
message msg timestamp ts time log logs level severity logger caller thread pid tid hostname host unit identifier fields
realtime monotonic source cursor boot_id machine priority facility syslog transport stream uid gid comm exe cmdline
systemd cgroup slice invocation selinux context cap effective audit loginuid owner user code file line func message_id
invocation_id job type result hint namespace runtime scope seqnum
remote addr remote_addr remote_user remote_ip remote_port client_ip client_addr time_local time_iso8601 iso8601 msec
request_time request_method request_uri request_body request_id request_length response_time response_body response_code
status body_bytes_sent bytes_sent bytes sent body size duration duration_ms upstream upstream_addr
upstream_status upstream_response_time upstream_header_time upstream_connect_time http_user_agent http_referer
http_mcp_session_id sent_http_mcp_session_id sent_http http_host server_name server_port server_protocol scheme host uri
url query_string args handled logger http log access log0 log1 resp_headers read bytes_read user_id tls
clientaddr clienthost clientport clientusername downstreamcontentsize downstreamstatus frontendname originduration
origincontentsize originstatus overhead requestaddr requestcontentsize requestcount requesthost requestmethod requestpath
requestport requestprotocol requestscheme retryattempts routername serviceaddr servicename serviceurl startlocal startutc
entrypointname response_flags upstream_host upstream_cluster downstream start_time authority route downstream_remote_address
x_forwarded_for forwarded completion termination frontend backend connect queue ssl cert alpn cipher
streamablehttp session manager started shutting down created transport crashed cleaning up active instances
idle timeout refusing sessions rejected request unknown expired stateless terminating processing
calltoolrequest listtoolsrequest initializerequest pingrequest listresourcesrequest listpromptsrequest
readresourcerequest getpromptrequest subscriberequest completerequest setlevelrequest
duplicate suppressed failed missing valid provided terminated initialized closed
connection established
process application startup complete shutdown waiting background connections ctrl c quit press finished running reload
asgi callable returned without completing booting worker sigterm sigkill sigint exiting listening signal handling
starting stopping stopped deactivated successfully main exited killed code status exit failure signal scheduled restart
counter job service scope target socket timer
traceback call module raise exception runtimeerror valueerror keyerror typeerror timeouterror
event request_start request_success request_error duration source lowlevel streamable_http streamable_http_manager
warnings future deprecationwarning py js ts rs rb ex exs java src dist lib site packages usr bin
calling elapsed completed aborting response progress notification stream never answered outcome
retrying recovery clearing cache re initialization remote established expiry expired reinit
sessionid cwd input tool_use tool_result tool_use_id is_error uuid parentuuid requestid usertype external version
prematurely peer reset broken pipe operation timed header epoll_wait refused dial lookup such
upstream prematurely closed worker_connections connection_requests rid sid rt ut uct uht urt ua ref xff
kubelet pod container namespace docker compose kubectl cri f p
ms us ns kb mb gb kib mib gib sec secs min mins hour hours day days s m h d
";

/// What inputs are usually called.
const FILES: &str = "
pcap pcapng cap har flows jsonl ndjson txt log logs json csv export short precise verbose combined access error journal
client front back backend frontend proxy server upstream downstream trace dump capture dsb keylog nano any sll sll2
";

/// Sentences of servers and proxies that rules read; kept as wholes, their words by themselves are not.
pub static PHRASES: &[&str] = &[
    "Session not found",
    "session not found",
    "Session has been terminated",
    "Missing session ID",
    "No valid session ID provided",
    "Mcp-Session-Id header is required",
    "Server not initialized",
    "Invalid or expired session",
    "Invalid session ID",
    "Session expired",
    "unknown session",
    "Unknown session",
    "Request cancelled",
    "server-error",
    "Not Found",
    "Bad Request",
    "Bad Gateway",
    "Gateway Timeout",
    "Gateway Time-out",
    "Service Unavailable",
    "Method Not Allowed",
    "Not Acceptable",
    "Unauthorized",
    "Forbidden",
    "Internal Server Error",
    "Internal error",
    "Method not found",
    "Unknown tool",
    "Invalid params",
    "Invalid Request",
    "Parse error",
    "duplicate in-flight request ID",
    "Only one SSE stream is allowed per session",
    "No connection established for request ID",
    "Received a response for an unknown message ID",
    // Revisions of the protocol.
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
    // systemd's message ids (sd-messages.h).
    "39f53479d3a045ac8e11786248231fbf",
    "de5b426a63be47a7b6ac3eaac82e2f6f",
    "9d1aaa27d60140bd96365438aad20286",
    "7ad2d189f7e94e70a38c781354912448",
    "98e322203f7a4ed290d09fe03c09fe15",
    "d9b373ed55a64feb8242e02dbe79a49c",
    "5eb03494b6584870a536b337290809b3",
    "be02cf6855d2428ba40df7e9d022f03d",
    "7d4958e842da4a758f6c1cdc7b36dcc5",
];

fn words(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split_whitespace().flat_map(|word| word.split('_')).filter(|w| !w.is_empty())
}

/// Words that are kept, in lower case.
static WORDS: LazyLock<FxHashSet<&'static str>> =
    LazyLock::new(|| [TIMES, PROTOCOL, LOGS, FILES].into_iter().flat_map(words).collect());

/// Is it a word that everybody knows, perhaps with a short number behind it (`python3`)? In lower case.
pub fn is_known(word: &str) -> bool {
    let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
    WORDS.contains(word) || (word.len() - stem.len() <= 2 && WORDS.contains(stem))
}
