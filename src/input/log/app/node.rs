//! Node consoles: the TypeScript SDK's example servers, and morgan's access lines.

use super::mcp_messages::plain;
use super::phrase::{Phrase, Said};
use super::{layout, reader};
use crate::input::log::{Format, Grade, Reader};
use crate::model::place::Vantage;
use crate::model::record::LogEventKind as K;

/// The phrases.
pub(super) static PHRASES: &[Phrase] = &[
    Phrase::anywhere(" listening on ", K::ServerStarted, listening),
    Phrase::anywhere(" listening at ", K::ServerStarted, listening),
    Phrase::anywhere("erver running on ", K::ServerStarted, listening),
    Phrase::anywhere("erver running at ", K::ServerStarted, listening),
    Phrase::start("Shutting down server", K::ServerStopping, plain),
    Phrase::start("Server shutdown complete", K::ServerStopped, plain),
    Phrase::start("SIGTERM received", K::ServerStopping, plain),
    Phrase::start("Received SIGTERM", K::ServerStopping, plain),
];

/// `MCP Streamable HTTP Server listening on port 3000`, `Server listening on http://…`.
fn listening(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let rest = text.get(end..)?.trim_start();
    let place = ["port ", "http://", "https://", ":", "0.0.0.0", "127.0.0.1", "localhost", "[::", "tcp "];
    place.iter().any(|p| rest.starts_with(p)).then(Said::default)
}

/// A Node console with ISO times.
pub static CONSOLE: Format = Format {
    name: "node-console",
    vantage: Vantage::Server,
    carries: false,
    doc: "What a Node server prints: the TypeScript SDK's messages bare or after an ISO time (`2026-11-29T21:09:10.241Z \
          [tools] …`), and morgan's access lines between them. Times are the console's, UTC; lines without one \
          have their order alone. Session ids are named when sessions begin and end.",
    samples: &[
        "MCP Streamable HTTP Server listening on port 9311\nSession initialized with ID: ab9f644e-23dc-4cf6-8440-c1e6f5ad9cea\n2026-11-29T21:09:10.241Z [tools] fast_echo tag=before-0\nShutting down server...",
        "Session initialized with ID: 493bd65f-502b-4ddb-8ebd-2b9b1db7447d\n127.0.0.1 - - [29/Nov/2026:19:55:19 +0000] \"POST /mcp HTTP/1.1\" 200 182 \"-\" \"-\"",
    ],
    grade: |bytes| match layout::grade(bytes, layout::is_node) {
        // combined lines are a proxy's unless a server speaks between them
        Grade::Likely if memchr::memmem::find(bytes, b"] \"POST /").is_some() => Grade::Certain,
        grade => grade,
    },
    reader: Reader::Lines(reader::new),
};

/// morgan.
pub static MORGAN: Format = Format {
    name: "morgan",
    vantage: Vantage::Server,
    carries: false,
    doc: "morgan (Express) access lines `tiny` and `dev`, which have no time. (`combined` and `common` are read among a \
          Node server's other lines; alone they cannot be told from a proxy's.) A line is written when the response has \
          ended; its milliseconds run to the response's headers alone, so no start is derived from them.",
    samples: &[
        "Session initialized with ID: 36a56b28-98bb-4639-b347-a24a836e95cf\nPOST /mcp 200 182 - 28.596 ms\nPOST /mcp 202 - - 1.391 ms",
        "\u{1b}[0mPOST /mcp \u{1b}[32m200\u{1b}[0m 12.295 ms - 182\u{1b}[0m\n\u{1b}[0mPOST /mcp \u{1b}[32m202\u{1b}[0m 1.578 ms - -\u{1b}[0m",
    ],
    grade: |bytes| layout::grade(bytes, layout::is_morgan),
    reader: Reader::Lines(reader::new),
};
