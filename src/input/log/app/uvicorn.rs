//! uvicorn: access lines on standard output, the process's life on standard error.
//! The lines carry no time of their own; `Started server process` is the process's birth.

use super::mcp_messages::plain;
use super::phrase::{Phrase, Said};
use super::{layout, reader};
use crate::input::log::{Format, Reader};
use crate::model::place::Vantage;
use crate::model::record::LogEventKind as K;

/// The phrases.
pub(super) static PHRASES: &[Phrase] = &[
    Phrase::start("Started server process [", K::ServerStarted, plain),
    Phrase::start("Application startup complete.", K::ServerStarted, plain),
    Phrase::start("Shutting down", K::ServerStopping, alone),
    Phrase::start("Waiting for connections to close.", K::ServerStopping, plain),
    Phrase::start("Waiting for background tasks to complete.", K::ServerStopping, plain),
    Phrase::start("Finished server process [", K::ServerStopped, plain),
    Phrase::start("ASGI callable returned without completing response.", K::ReplyDropped, plain),
    Phrase::start("ASGI callable returned without starting response.", K::ReplyDropped, plain),
    Phrase::start("Exception in ASGI application", K::Error, plain),
    Phrase::start("Application startup failed.", K::Error, plain),
    Phrase::start("[Errno 98]", K::Error, plain),
];

/// The words and nothing more: much is shut down beside the server.
fn alone(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    text.get(end..)?.trim_matches(['.', ' ', '\u{2026}']).is_empty().then(Said::default)
}

/// Plain uvicorn output.
pub static FORMAT: Format = Format {
    name: "uvicorn",
    vantage: Vantage::Server,
    carries: false,
    doc: "uvicorn's own output, as it stands in a file or in `journalctl -o cat`: `INFO:     ADDRESS - \"POST /mcp \
          HTTP/1.1\" 200 OK` and the life of the process. It has no time and no duration: the order of lines is all \
          there is, unless a journal or container around it adds times. An access line is written when the response's \
          headers are sent, so a 200 says nothing of the reply's body. It shows statuses, peers, starts and stops; \
          never a session id or a body.",
    samples: &[
        "INFO:     Started server process [23820]\nINFO:     Application startup complete.\nINFO:     127.0.0.1:51586 - \"POST /mcp HTTP/1.1\" 200 OK\nINFO:     Shutting down",
    ],
    grade: |bytes| layout::grade(bytes, layout::is_uvicorn),
    reader: Reader::Lines(reader::new),
};
