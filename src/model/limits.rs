//! Every cap in one place. Reaching one is a counted problem (`limit-hit`), never silent.

/// A decoded message body or SSE event kept for parsing, bytes.
pub const MESSAGE_BYTES: usize = 64 << 20;
/// Decompressed size of one body relative to its coded size before it counts as a bomb.
pub const INFLATE_RATIO: usize = 1200;
/// An HTTP head (start line and headers), bytes.
pub const HEAD_BYTES: usize = 256 << 10;
/// HTTP header fields in one head.
pub const HEADER_FIELDS: usize = 256;
/// Out-of-order bytes held for one direction of a connection.
pub const REORDER_BYTES: usize = 4 << 20;
/// Out-of-order bytes held over all connections.
pub const REORDER_TOTAL_BYTES: usize = 256 << 20;
/// Out-of-order segments held for one direction of a connection.
pub const REORDER_SEGMENTS: usize = 16_384;
/// Closed connections remembered, so that a second copy of their packets is known as one.
pub const CLOSED_CONNECTIONS: usize = 16_384;
/// First bytes of a connection kept until it is known what they are.
pub const PROBE_BYTES: usize = 16 << 10;
/// Connections tracked at once; the longest idle one is closed first.
pub const CONNECTIONS: usize = 1 << 20;
/// IP datagrams under reassembly at once.
pub const FRAGMENTED_DATAGRAMS: usize = 4096;
/// One captured packet, bytes.
pub const PACKET_BYTES: usize = 16 << 20;
/// Interfaces of one pcapng file.
pub const INTERFACES: usize = 65_536;
/// Nesting of JSON that is followed.
pub const JSON_DEPTH: usize = 128;
/// One log line, bytes; the rest of a longer one is passed over.
pub const LINE_BYTES: usize = 16 << 20;
/// Requests waiting for their response on one connection (pipelining).
pub const PIPELINED: usize = 4096;
/// Elements of one JSON-RPC batch.
pub const BATCH: usize = 65_536;
/// Exchanges of a capture that are joined at a time.
pub const PART_VISITS: usize = 2048;
/// Bytes of messages that are joined at a time.
pub const PART_BYTES: usize = 4 << 20;
/// Exchanges of a capture kept to the end because a rule may need them.
pub const KEPT_VISITS: usize = 1 << 18;
/// The same for the lines of a log that is read alone.
pub const KEPT_LINES: usize = 1 << 20;
/// Replies kept as samples of what tools say, bytes in all.
pub const SAMPLE_BYTES: usize = 16 << 20;
/// Distinctive argument values kept of one call.
pub const ARGUMENT_VALUES: usize = 64;
/// Calls of one client's log whose end has not been read yet.
pub const OPEN_CLIENT_CALLS: usize = 65_536;
/// Exchanges of one HAR or flow file held to be told in order of time, bytes of their bodies.
pub const RECORDED_BYTES: usize = 512 << 20;
/// A dynamic table of HTTP/2 header compression, by its own count, bytes.
pub const HPACK_TABLE_BYTES: usize = 256 << 10;
/// Header block of one HTTP/2 message before decompression, bytes.
pub const HEADER_BLOCK_BYTES: usize = 256 << 10;
/// Open HTTP/2 streams of one connection.
pub const H2_STREAMS: usize = 16_384;
/// Bytes searched for the next HTTP/2 frame or TLS record after a hole.
pub const RESYNC_BYTES: usize = 256 << 10;
/// A TLS handshake message that is read, bytes; longer ones are passed over.
pub const TLS_HANDSHAKE_BYTES: usize = 256 << 10;
/// Bytes of TLS records decrypted on trial in one connection, to find out what a hole took.
pub const TLS_TRIAL_BYTES: usize = 8 << 20;
/// TLS early data held until the server accepts it, bytes.
pub const TLS_EARLY_BYTES: usize = 1 << 20;
/// TLS secrets taken from key logs.
pub const TLS_SECRETS: usize = 4 << 20;
/// Writers of log lines (processes and their streams) whose folded messages are followed at once.
pub const LOG_STREAMS: usize = 256;
/// Names (hosts, units, targets, sessions) of one log that are shared and not copied.
pub const LOG_NAMES: usize = 1 << 16;
/// A log message as events quote it, bytes.
pub const EVENT_TEXT_BYTES: usize = 512;
/// Bytes of one journal field, container line or JSON object that are kept.
pub const FIELD_BYTES: usize = 16 << 20;
/// A `.journal` file, decompressed, bytes: it is read as a whole.
pub const JOURNAL_BYTES: usize = 1 << 30;
/// Lines held at the beginning of a log to find its year, zone or boot time.
pub const HELD_LINES: usize = 256;
/// Messages that an evidence bundle is chosen from, bytes.
pub const EVIDENCE_BYTES: usize = 512 << 20;
/// One member of an evidence bundle, unpacked, bytes.
pub const BUNDLE_MEMBER_BYTES: usize = 1 << 30;
/// Unpacked to packed size of a member of an evidence bundle before it counts as a bomb.
pub const BUNDLE_RATIO: usize = 200;
/// Members of an evidence bundle.
pub const BUNDLE_MEMBERS: usize = 4096;
/// TLS sessions remembered in case they are resumed.
pub const TLS_RESUMABLE: usize = 65_536;
/// Connections that a played server holds at once.
pub const SERVED_CONNECTIONS: usize = 1024;
/// Recorded traffic that waits for the disk, bytes.
pub const SPOOL_BYTES: usize = 64 << 20;
/// A request body that the proxy holds to look at its ids, bytes; a longer one is passed on unseen.
pub const GUARDED_BYTES: usize = 4 << 20;
/// Calls in flight that the proxy's guard follows.
pub const GUARDED_CALLS: usize = 1 << 18;
/// Files in one archive that a scan follows.
pub const MEMBERS: usize = 1 << 20;
/// A member's name, bytes; the rest is not shown.
pub const MEMBER_NAME_BYTES: usize = 4096;
/// An extended header of a tar archive that is read, bytes.
pub const MEMBER_HEADER_BYTES: usize = 64 << 10;
/// The directory of a zip archive, bytes.
pub const ZIP_DIRECTORY_BYTES: usize = 256 << 20;
/// Bytes of one compressed file or member, unpacked, for each byte packed, before it counts as a bomb.
pub const SCAN_RATIO: u64 = 4000;
/// Unpacked bytes of one file or member that are always allowed, whatever the ratio.
pub const SCAN_RATIO_FREE_BYTES: u64 = 256 << 20;
/// Session ids remembered of one source to find the others that speak of the same sessions.
pub const SCAN_IDS: usize = 1024;
/// Places in one source whose time is remembered.
pub const SCAN_MARKS: usize = 4096;
/// Memory that analysis takes for each byte of a log, at most; for the plan of a scan.
pub const SCAN_LOG_FACTOR: u64 = 24;
/// The same for a log that is folded alone, line by line, where one line in four is odd.
pub const SCAN_ALONE_FACTOR: u64 = 8;
/// Memory that analysis takes for each byte of a capture, at most; for the plan of a scan.
pub const SCAN_CAPTURE_FACTOR: u64 = 4;
/// Files that one scan follows.
pub const SCAN_FILES: usize = 1 << 25;
/// Folders inside each other that a scan enters.
pub const SCAN_DEPTH: usize = 64;
/// Captured packets that wait to be written.
pub const CAPTURE_PACKETS: usize = 1024;
/// Lines and exchanges that a watch keeps of all inputs, bytes.
pub const WATCH_BYTES: usize = 64 << 20;
/// Findings that a watch remembers to have told.
pub const WATCH_TOLD: usize = 1 << 16;
/// Recorded packets that wait for the analysis which runs along.
pub const DETECT_BLOCKS: usize = 8192;

/// Name, value and meaning of every cap, for `crosswire formats --limits`.
pub const ALL: &[(&str, usize, &str)] = &[
    ("message-bytes", MESSAGE_BYTES, "a decoded message body or SSE event"),
    ("inflate-ratio", INFLATE_RATIO, "decompressed to coded size of one body"),
    ("head-bytes", HEAD_BYTES, "an HTTP start line with its headers"),
    ("header-fields", HEADER_FIELDS, "header fields in one HTTP head"),
    ("reorder-bytes", REORDER_BYTES, "bytes held out of order for one direction of a connection"),
    ("reorder-total-bytes", REORDER_TOTAL_BYTES, "bytes held out of order over all connections"),
    ("reorder-segments", REORDER_SEGMENTS, "segments held out of order for one direction of a connection"),
    ("closed-connections", CLOSED_CONNECTIONS, "closed connections remembered to know a second copy of their packets"),
    ("probe-bytes", PROBE_BYTES, "first bytes of a connection kept until it is known what they are"),
    ("connections", CONNECTIONS, "connections tracked at once"),
    ("fragmented-datagrams", FRAGMENTED_DATAGRAMS, "IP datagrams under reassembly"),
    ("packet-bytes", PACKET_BYTES, "one captured packet"),
    ("interfaces", INTERFACES, "interfaces of one pcapng file"),
    ("json-depth", JSON_DEPTH, "nesting of JSON that is followed"),
    ("line-bytes", LINE_BYTES, "one log line"),
    ("pipelined", PIPELINED, "requests waiting on one connection"),
    ("batch", BATCH, "elements of one JSON-RPC batch"),
    ("hpack-table-bytes", HPACK_TABLE_BYTES, "a dynamic table of HTTP/2 header compression"),
    ("header-block-bytes", HEADER_BLOCK_BYTES, "a compressed HTTP/2 header block"),
    ("h2-streams", H2_STREAMS, "open HTTP/2 streams of one connection"),
    ("resync-bytes", RESYNC_BYTES, "searched for the next frame or record after a hole"),
    ("tls-handshake-bytes", TLS_HANDSHAKE_BYTES, "a TLS handshake message that is read"),
    ("tls-trial-bytes", TLS_TRIAL_BYTES, "TLS records decrypted on trial in one connection"),
    ("tls-early-bytes", TLS_EARLY_BYTES, "TLS early data held until it is accepted"),
    ("tls-secrets", TLS_SECRETS, "secrets taken from key logs"),
    ("tls-resumable", TLS_RESUMABLE, "TLS sessions remembered in case they are resumed"),
    ("part-visits", PART_VISITS, "exchanges of a capture joined at a time"),
    ("part-bytes", PART_BYTES, "bytes of messages joined at a time"),
    ("kept-lines", KEPT_LINES, "lines of a log kept to the end because they are not clean"),
    ("kept-visits", KEPT_VISITS, "exchanges kept to the end of a capture because they are not clean"),
    ("sample-bytes", SAMPLE_BYTES, "replies kept to learn what is usual in a tool's results"),
    ("argument-values", ARGUMENT_VALUES, "argument values kept of one call"),
    ("open-client-calls", OPEN_CLIENT_CALLS, "calls of one client's log whose end was not read yet"),
    ("recorded-bytes", RECORDED_BYTES, "bodies of one HAR or flow file held at once"),
    ("log-streams", LOG_STREAMS, "writers of log lines followed at once"),
    ("log-names", LOG_NAMES, "names of one log that are shared"),
    ("event-text-bytes", EVENT_TEXT_BYTES, "a log message as events quote it"),
    ("field-bytes", FIELD_BYTES, "one journal field or container line"),
    ("journal-bytes", JOURNAL_BYTES, "a .journal file, decompressed"),
    ("held-lines", HELD_LINES, "lines held to find a log's year, zone or boot time"),
    ("served-connections", SERVED_CONNECTIONS, "connections of clients to a played server"),
    ("spool-bytes", SPOOL_BYTES, "recorded traffic that waits for the disk"),
    ("guarded-bytes", GUARDED_BYTES, "a request body that the proxy's guard looks at"),
    ("guarded-calls", GUARDED_CALLS, "calls in flight that the proxy's guard follows"),
    ("capture-packets", CAPTURE_PACKETS, "captured packets that wait to be written"),
    ("watch-bytes", WATCH_BYTES, "lines and exchanges that a watch keeps"),
    ("watch-told", WATCH_TOLD, "findings that a watch remembers to have told"),
    ("detect-blocks", DETECT_BLOCKS, "recorded packets that wait for the analysis that runs along"),
    ("evidence-bytes", EVIDENCE_BYTES, "messages that an evidence bundle is chosen from"),
    ("bundle-member-bytes", BUNDLE_MEMBER_BYTES, "one member of an evidence bundle, unpacked"),
    ("bundle-ratio", BUNDLE_RATIO, "unpacked to packed size of a member of an evidence bundle"),
    ("bundle-members", BUNDLE_MEMBERS, "members of an evidence bundle"),
    ("members", MEMBERS, "files in one archive"),
    ("member-name-bytes", MEMBER_NAME_BYTES, "the name of a file in an archive"),
    ("member-header-bytes", MEMBER_HEADER_BYTES, "an extended header of a tar archive"),
    ("zip-directory-bytes", ZIP_DIRECTORY_BYTES, "the directory of a zip archive"),
    ("scan-ratio", SCAN_RATIO as usize, "unpacked to packed size of one file of a scan"),
    ("scan-ratio-free-bytes", SCAN_RATIO_FREE_BYTES as usize, "unpacked bytes of a file that are allowed at any ratio"),
    ("scan-ids", SCAN_IDS, "session ids remembered of one source of a scan"),
    ("scan-marks", SCAN_MARKS, "places of one source of a scan whose time is remembered"),
    ("scan-log-factor", SCAN_LOG_FACTOR as usize, "memory for each byte of a log that a scan plans with"),
    ("scan-alone-factor", SCAN_ALONE_FACTOR as usize, "the same for a log that nothing else is correlated with"),
    ("scan-capture-factor", SCAN_CAPTURE_FACTOR as usize, "memory for each byte of a capture that a scan plans with"),
    ("scan-files", SCAN_FILES, "files of one scan"),
    ("scan-depth", SCAN_DEPTH, "folders inside each other that a scan enters"),
];
