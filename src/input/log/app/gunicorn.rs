//! gunicorn and hypercorn: `[2026-11-29 19:50:39 +0000] [123] [INFO] …`.

use super::mcp_messages::plain;
use super::phrase::Phrase;
use super::{layout, reader};
use crate::input::log::{Format, Reader};
use crate::model::place::Vantage;
use crate::model::record::LogEventKind as K;

/// The phrases.
pub(super) static PHRASES: &[Phrase] = &[
    Phrase::start("Starting gunicorn ", K::ServerStarted, plain),
    Phrase::start("Booting worker with pid: ", K::ServerStarted, plain),
    Phrase::start("Running on http", K::ServerStarted, plain),
    Phrase::start("Handling signal: term", K::ServerStopping, plain),
    Phrase::start("Handling signal: int", K::ServerStopping, plain),
    Phrase::start("Worker exiting (pid: ", K::ServerStopped, plain),
    Phrase::start("Worker (pid:", K::ServerStopped, plain),
    Phrase::start("Shutting down: Master", K::ServerStopped, plain),
    Phrase::start("WORKER TIMEOUT (pid:", K::Error, plain),
];

/// gunicorn's and hypercorn's layout.
pub static FORMAT: Format = Format {
    name: "gunicorn",
    vantage: Vantage::Server,
    carries: false,
    doc: "gunicorn's and hypercorn's output: `[date time zone] [pid] [LEVEL] message`, to the second, with the zone. \
          hypercorn's access lines are written when the response has ended and count its bytes; gunicorn with uvicorn's \
          worker writes uvicorn's access lines. Shows workers that boot, time out or are killed.",
    samples: &[
        "[2026-11-29 19:50:48 +0000] [18949] [INFO] Running on http://127.0.0.1:19002 (CTRL + C to quit)\n[2026-11-29 19:50:48 +0000] [18949] [INFO] 127.0.0.1:39902 - - [29/Nov/2026:19:50:48 +0000] \"POST /mcp 1.1\" 200 - \"-\" \"-\"",
        "[2026-11-29 19:50:39 +0000] [120] [INFO] Booting worker with pid: 123\n[2026-11-29 19:51:39 +0000] [120] [CRITICAL] WORKER TIMEOUT (pid:123)",
    ],
    grade: |bytes| layout::grade(bytes, layout::is_gunicorn),
    reader: Reader::Lines(reader::new),
};
