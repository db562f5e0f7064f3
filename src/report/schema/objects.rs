//! The objects of the JSON outputs.

use super::Kind::{
    Any, CallKey, Count, Exactly, Flag, Integer, List, Number, Object as Of, OneOf, Pair, RpcId, Sha256, Text, Time,
};
use super::Presence::{Always, Nullable, Optional};
use super::{Field, Kind, Object, PROBLEMS, Presence};

const fn field(name: &'static str, presence: Presence, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, presence, doc }
}

const CROSSWIRE: Field = field("crosswire", Always, Text, "Version of the program that wrote it.");
const INPUTS: Field = field("inputs", Always, List(&Of("input")), "What was read.");
const SUMMARY: Field = field("summary", Always, Of("summary"), "Counts over the whole run.");
const SESSIONS: Field = field("sessions", Always, List(&Of("session")), "Sessions, in order of their start.");
const CALLS: Field = field(
    "calls",
    Always,
    List(&Of("call")),
    "Calls, in order of being sent; --calls all, cited or none says which (default: all).",
);
const WINDOWS: Field = field("windows", Always, List(&Of("window")), "Stale-session windows, in order of opening.");
const FINDINGS: Field = field("findings", Always, List(&Of("finding")), "Findings, in order of time.");
const NEAR: Field =
    field("near", Optional, List(&Of("near")), "What gave reason to look and is no finding, and why; written with -v.");
const CLOCK_OFFSET: Field = field(
    "clock_offset_ms",
    Nullable,
    Number,
    "Added to its times to reach the reference clock, ms; null: nothing to align it by. Where the clock drifts, at its first record.",
);
const CLOCK_ERROR: Field = field("clock_error_ms", Nullable, Number, "How far that may be off, ms.");
const CLOCK_DRIFT: Field = field(
    "clock_drift_ppm",
    Nullable,
    Number,
    "What the offset grows by, µs a second of the input's clock; null: none can be told.",
);
const CLOCK_DRIFT_ERROR: Field = field("clock_drift_error_ppm", Nullable, Number, "How far that may be off.");
const JOINED: Field =
    field("joined", Always, Count, "How many of its records were joined to calls seen elsewhere too.");
const AMBIGUOUS: Field = field("ambiguous", Always, Count, "Of these, how many could be another call's as well.");
const SHOWS: Field = field("shows", Always, Text, "What it can and cannot show.");
const TROUBLES: Field = field(
    "troubles",
    Optional,
    List(&Text),
    "Inputs that could not be read at all, a sentence each; left out where there are none. Any makes the exit \
     status 2.",
);

/// What can stand at the top of an output. Keys come in any order.
pub static DOCUMENTS: &[Object] = &[
    Object {
        name: "report",
        doc: "What `crosswire analyze --format json` writes.",
        fields: &[
            field("schema", Always, Exactly("crosswire.report/1"), "Name and version of this layout."),
            CROSSWIRE,
            INPUTS,
            SUMMARY,
            SESSIONS,
            CALLS,
            WINDOWS,
            FINDINGS,
            NEAR,
            TROUBLES,
        ],
    },
    Object {
        name: "timeline",
        doc: "What `crosswire timeline --format json` writes: the report, and every HTTP exchange.",
        fields: &[
            field("schema", Always, Exactly("crosswire.timeline/1"), "Name and version of this layout."),
            CROSSWIRE,
            INPUTS,
            SUMMARY,
            SESSIONS,
            CALLS,
            WINDOWS,
            FINDINGS,
            NEAR,
            field(
                "exchanges",
                Always,
                List(&Of("exchange")),
                "Every HTTP exchange of any path, in order of request time.",
            ),
            TROUBLES,
        ],
    },
    Object {
        name: "calls",
        doc: "What `crosswire show --format json` writes: the calls asked for, with all that is known of them.",
        fields: &[
            field("schema", Always, Exactly("crosswire.calls/1"), "Name and version of this layout."),
            CROSSWIRE,
            CALLS,
        ],
    },
];

const VANTAGE: &[(&str, &str)] = &[
    ("client", "the client's own record"),
    ("proxy", "a proxy's log"),
    ("server", "the server's log, journal or container output"),
    ("wire", "packets, or whole exchanges recorded in their place"),
];
const HOPS: &[(&str, &str)] = &[
    ("client", "the MCP client"),
    ("proxy", "a reverse proxy between them"),
    ("server", "the MCP server"),
    ("network", "the network between two of them"),
];
const END: &[(&str, &str)] = &[
    ("complete", "the response came to its end as framed"),
    ("client-closed", "the client closed before the response was complete"),
    ("server-closed", "the server closed before the response was complete, or before any"),
    ("reset", "a TCP or HTTP/2 reset ended it"),
    ("input-ended", "the input ended while it was open"),
    ("gap", "bytes are missing, so the end is not known"),
];

/// The parts of documents.
pub static OBJECTS: &[Object] = &[
    Object {
        name: "input",
        doc: "One file, stream or interface that was read.",
        fields: &[
            field("name", Always, Text, "As given on the command line; `-`, `archive!member`, `capture#interface`."),
            field("format", Nullable, Text, "Name in the table of formats; null: none was recognised."),
            field("vantage", Nullable, OneOf(VANTAGE), "Where it was taken."),
            field(
                "side",
                Nullable,
                OneOf(&[("front", "between client and proxy"), ("back", "between proxy and server")]),
                "Side of the proxy, for captures where both were seen.",
            ),
            field("records", Always, Count, "Packets, journal entries or log lines, unreadable ones included."),
            field("first", Nullable, Time, "Time of the first record."),
            field("last", Nullable, Time, "Time of the last record."),
            CLOCK_OFFSET,
            CLOCK_ERROR,
            CLOCK_DRIFT,
            CLOCK_DRIFT_ERROR,
            field("problems", Always, List(&Of("problem")), "What could not be read, one entry a kind."),
            JOINED,
            AMBIGUOUS,
            SHOWS,
            field(
                "parts",
                Optional,
                List(&Of("part")),
                "Where several wrote in it (a journal with a proxy's lines beside the server's): each by itself.",
            ),
        ],
    },
    Object {
        name: "part",
        doc: "What one of several who wrote in an input left there.",
        fields: &[
            field("vantage", Nullable, OneOf(VANTAGE), "Who wrote it."),
            field("records", Always, Count, "Its requests and events."),
            field("first", Nullable, Time, "Time of the first of these."),
            field("last", Nullable, Time, "Time of the last."),
            CLOCK_OFFSET,
            CLOCK_ERROR,
            CLOCK_DRIFT,
            CLOCK_DRIFT_ERROR,
            JOINED,
            AMBIGUOUS,
            SHOWS,
        ],
    },
    Object {
        name: "problem",
        doc: "One kind of problem with one input.",
        fields: &[
            field("kind", Always, OneOf(PROBLEMS), "What kind."),
            field("count", Always, Count, "How often it was met."),
            field("where", Nullable, Text, "The first place: `frame 97`, `line 3`, `byte 4096`."),
            field("text", Nullable, Text, "What was expected, what was found, and what to do."),
        ],
    },
    Object {
        name: "summary",
        doc: "Counts over the whole run.",
        fields: &[
            field("exchanges", Always, Count, "HTTP exchanges, summed over inputs before joining."),
            field("sessions", Always, Count, "Sessions and session-less groups listed."),
            field("calls", Always, Count, "Calls after joining."),
            field("tool_calls", Always, Count, "Of these, `tools/call`."),
            field("findings", Always, Count, "Findings listed."),
            field("known", Always, Count, "Findings left out because --baseline lists them."),
            field("tls_connections", Always, Count, "TLS connections met."),
            field("tls_readable", Always, Count, "Of these, decrypted."),
        ],
    },
    Object {
        name: "session",
        doc: "What one `Mcp-Session-Id` names, or a group of session-less calls.",
        fields: &[
            field("session", Nullable, Text, "The id; null: a group of calls without one."),
            field("revision", Nullable, Text, "Protocol revision agreed on."),
            field("client", Nullable, Text, "`name/version` of the client."),
            field("server", Nullable, Text, "`name/version` of the server."),
            field("started", Nullable, Time, "First request."),
            field("ended", Nullable, Time, "Last thing seen of it."),
            field(
                "end",
                Nullable,
                OneOf(&[
                    ("deleted", "by the client's DELETE"),
                    ("stale", "refused as unknown"),
                    ("server-stopped", "the server stopped"),
                    ("open", "not within the inputs"),
                ]),
                "How it ended.",
            ),
            field("calls", Always, Count, "Calls in it."),
            field(
                "conversations",
                Nullable,
                Count,
                "Least number of increasing id chains that explains what was seen; null where it cannot be told.",
            ),
            field("peers", Always, List(&Text), "Client addresses, without ports."),
            field("endpoint", Nullable, Text, "Host or address and port, and path, of the server."),
        ],
    },
    Object {
        name: "call",
        doc: "One JSON-RPC request that expects a reply.",
        fields: &[
            field("key", Always, CallKey, "Unique in the report, stable for the same inputs in the same order."),
            field("session", Nullable, Text, "Its session."),
            field("id", Nullable, RpcId, "The id with its JSON type; null where not known."),
            field("method", Nullable, Text, "JSON-RPC method; null where only HTTP was seen."),
            field("tool", Nullable, Text, "Tool."),
            field("from", Optional, OneOf(&[("server", "the server asked")]), "Who asked; left out: the client."),
            field("issued", Nullable, Time, "When the client says it issued it."),
            field("sent", Nullable, Time, "When it was first seen on its way."),
            field("replied", Nullable, Time, "When the reply was complete."),
            field(
                "outcome",
                Always,
                OneOf(&[
                    ("result", "a result"),
                    ("tool-error", "a result with `isError`"),
                    ("rpc-error", "a JSON-RPC error"),
                    ("http-error", "an HTTP error without a JSON-RPC reply"),
                    ("cancelled", "cancelled by the caller"),
                    ("no-reply", "nothing, though it would have been seen"),
                    ("not-sent", "the client claims it, nobody else saw it"),
                    ("unobserved", "the inputs do not show"),
                ]),
                "What came back on the call's own stream.",
            ),
            field(
                "delivered",
                Always,
                OneOf(&[
                    ("own", "its own reply"),
                    ("foreign", "another call's reply"),
                    ("none", "no reply"),
                    ("unknown", "not known"),
                ]),
                "Whose reply the caller got.",
            ),
            field("client_saw", Nullable, Any, "What the client's record says: outcome and a short text."),
            field("sightings", Always, List(&Of("sighting")), "Where it was seen."),
            field("bodies", Optional, Of("bodies"), "Request and reply as text; only with --bodies and in `show`."),
        ],
    },
    Object {
        name: "bodies",
        doc: "Exact message texts.",
        fields: &[
            field("request", Nullable, Text, "The JSON-RPC request."),
            field("reply", Nullable, Text, "The JSON-RPC reply."),
        ],
    },
    Object {
        name: "sighting",
        doc: "A call as one vantage point saw it.",
        fields: &[
            field("input", Always, Count, "Which input, from 0."),
            field("vantage", Nullable, OneOf(VANTAGE), "Its vantage point."),
            field("frame", Nullable, Count, "Frame of the request's last byte, from 1."),
            field("line", Nullable, Count, "Line of its record, from 1."),
            field("at", Nullable, Time, "Estimated start of the request."),
            field("at_error_ms", Nullable, Number, "How far that may be off, ms."),
            field(
                "ambiguous",
                Optional,
                Flag,
                "True where another call's record fits no worse: it supports nothing; left out: false.",
            ),
            field("peer", Nullable, Text, "The client's address and port as seen here."),
            field("status", Nullable, Count, "HTTP status."),
            field(
                "channel",
                Nullable,
                OneOf(&[
                    ("post-json", "the POST's JSON body"),
                    ("post-sse", "the POST's event stream"),
                    ("get-sse", "a GET event stream"),
                    ("none", "on none"),
                ]),
                "On what the reply came.",
            ),
            field("reply_frame", Nullable, Count, "Frame of the reply's last byte."),
            field("reply_id", Nullable, RpcId, "The reply's id."),
            field("request_sha256", Nullable, Sha256, "Of the request message's exact bytes, decoded."),
            field("reply_sha256", Nullable, Sha256, "Of the reply message's exact bytes, decoded."),
            field("bytes", Nullable, Count, "Bytes of the response body."),
            field("end", Nullable, OneOf(END), "How the exchange ended here."),
            field("ended_at", Nullable, Time, "When it ended here."),
            field("head_at", Nullable, Time, "When the status line was seen here."),
            field("reply_at", Nullable, Time, "When the reply's last byte was seen here."),
            field("stream", Nullable, Count, "TCP stream as Wireshark numbers it."),
            field("detail", Optional, Of("detail"), "Everything this vantage point shows; only in `show`."),
        ],
    },
    Object {
        name: "detail",
        doc: "Everything that one vantage point shows of a call, as text.",
        fields: &[
            field("request_line", Nullable, Text, "`POST /mcp HTTP/1.1`, as far as known."),
            field("request_headers", Always, List(&Pair), "Request header fields in order."),
            field("request", Nullable, Text, "The JSON-RPC request."),
            field("status_line", Nullable, Text, "`HTTP/1.1 200 OK`, as far as known."),
            field("response_headers", Always, List(&Pair), "Response header fields in order."),
            field("reply", Nullable, Text, "The JSON-RPC reply, or the body of an HTTP error."),
            field("record", Nullable, Text, "The log's own text of the record."),
        ],
    },
    Object {
        name: "window",
        doc: "From the refusal of an old session id to the client's recovery.",
        fields: &[
            field("stale_session", Nullable, Text, "The refused id."),
            field("new_session", Nullable, Text, "The id that the client got instead."),
            field("opened", Nullable, Time, "The refusal."),
            field("initialize", Nullable, Time, "The initialize request that followed."),
            field(
                "recovered",
                Nullable,
                Time,
                "First 2xx to a request sent after `notifications/initialized` (its own 202 does not count).",
            ),
            field("next_call", Nullable, Time, "First tool call after it that any vantage point but the client saw."),
            field(
                "silence_s",
                Nullable,
                Number,
                "From the last request of the re-initialisation to the next request, s.",
            ),
            field(
                "cause",
                Nullable,
                OneOf(&[
                    ("restart", "the server restarted"),
                    ("idle", "evicted for idleness"),
                    ("deleted", "deleted by the client"),
                    ("replica", "another replica answered"),
                    ("unknown", "the evidence does not say"),
                ]),
                "Why the id was no longer known.",
            ),
            field("trigger_call", Nullable, CallKey, "The call that was refused."),
            field(
                "lost",
                Always,
                List(&CallKey),
                "Calls refused and never replayed, or issued in the window and never seen.",
            ),
        ],
    },
    Object {
        name: "finding",
        doc: "A claim over sightings.",
        fields: &[
            field("rule", Always, Text, "Name in crosswire-rules(7)."),
            field(
                "severity",
                Always,
                OneOf(&[
                    ("high", "crossed, or lost without a word"),
                    ("medium", "calls failed visibly, or a session was stranded"),
                    ("low", "harmed no call"),
                ]),
                "How bad.",
            ),
            field(
                "confidence",
                Always,
                OneOf(&[
                    ("certain", "proved by what is cited"),
                    ("probable", "two independent signs"),
                    ("possible", "one sign"),
                ]),
                "How sure.",
            ),
            field("fault", Always, List(&OneOf(HOPS)), "Hops that can be at fault; empty: none is proved."),
            field("cleared", Always, List(&OneOf(HOPS)), "Hops that were right."),
            field("session", Nullable, Text, "Session."),
            field("at", Nullable, Time, "When it began."),
            field("until", Nullable, Time, "When it ended."),
            field("calls", Always, List(&CallKey), "Calls concerned, the victim first."),
            field("victim", Nullable, CallKey, "The call whose caller was hurt."),
            field("owner", Nullable, CallKey, "The call that the content belongs to."),
            field("batch", Nullable, Count, "Tool calls of the session in flight with the victim, itself included."),
            field("summary", Always, Text, "One sentence that a stranger understands."),
            field("evidence", Always, List(&Of("evidence")), "Proof, never empty."),
            field("shown", Always, Text, "What each server-side vantage point shows for the calls."),
            field("waited_ns", Nullable, Integer, "How long the caller waited, ns, where that is part of the claim."),
        ],
    },
    Object {
        name: "evidence",
        doc: "A piece of proof.",
        fields: &[
            field("input", Nullable, Count, "Which input, from 0."),
            field("frame", Nullable, Count, "Frame, from 1."),
            field("line", Nullable, Count, "Line, from 1."),
            field("offset", Nullable, Count, "Byte offset in the input."),
            field("cursor", Nullable, Text, "Journal cursor."),
            field("text", Nullable, Text, "What it shows."),
            field("filter", Nullable, Text, "A display filter that shows it in Wireshark."),
        ],
    },
    Object {
        name: "near",
        doc: "Something that is nearly a finding. At most 50 of a kind are told.",
        fields: &[
            field("call", Nullable, CallKey, "The call that it is about; null: it says how many more there are."),
            field("text", Always, Text, "The call, what it might have been, and why it is not called that."),
        ],
    },
    Object {
        name: "exchange",
        doc: "One HTTP request and its response on one stream.",
        fields: &[
            field("input", Always, Count, "Which input, from 0."),
            field("stream", Nullable, Count, "TCP stream as Wireshark numbers it."),
            field("request_frame", Nullable, Count, "A frame of the request."),
            field("response_frame", Nullable, Count, "Frame of the status line."),
            field("at", Nullable, Time, "Time of the request."),
            field("method", Nullable, Text, "HTTP method."),
            field("target", Nullable, Text, "Request target."),
            field("status", Nullable, Count, "Status."),
            field("session", Nullable, Text, "Session of the request; for `initialize` the new one."),
            field("rpc", Always, List(&Of("rpc")), "The client's requests and notifications."),
            field("replies", Always, List(&Of("reply")), "The server's results and errors."),
            field("end", Nullable, OneOf(END), "How it ended."),
            field("ended", Nullable, Time, "When it ended."),
            field("peer", Nullable, Text, "The client's address and port."),
            field("bytes", Nullable, Count, "Bytes of the response body."),
        ],
    },
    Object {
        name: "rpc",
        doc: "A request or notification in an exchange.",
        fields: &[
            field("id", Nullable, RpcId, "Its id; null: a notification."),
            field("method", Nullable, Text, "Method."),
            field("tool", Nullable, Text, "Tool."),
        ],
    },
    Object {
        name: "reply",
        doc: "A result or error in an exchange.",
        fields: &[
            field("frame", Nullable, Count, "Frame of its last byte."),
            field("at", Nullable, Time, "Time of that frame."),
            field("id", Nullable, RpcId, "Its id."),
            field("kind", Nullable, OneOf(&[("result", "a result"), ("error", "a JSON-RPC error")]), "What it is."),
            field("sha256", Nullable, Sha256, "Of its exact bytes."),
        ],
    },
];
