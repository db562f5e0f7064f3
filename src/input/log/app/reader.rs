//! Application logs by themselves: each line is an entry unless it continues one.

use super::{Interpreter, Origin};
use crate::input::log::{LineReader, LogContext, RecordSink};
use crate::model::place::Place;

struct Lines {
    interpreter: Interpreter,
    input: u32,
    entries: u64,
    last: Place,
}

/// A reader for any mixture of layouts.
pub(in crate::input::log) fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Lines {
        interpreter: Interpreter::new(context),
        input: context.input,
        entries: 0,
        last: Place::line(context.input, 1),
    })
}

impl LineReader for Lines {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let text = super::plain(line);
        let text = super::utf8(&text);
        if text.is_empty() {
            return;
        }
        if self.entries > 0 && self.interpreter.continues(&text) {
            return self.interpreter.continuation(line, &Origin::at(self.last), out);
        }
        self.entries += 1;
        self.last = Place::line(self.input, number);
        self.interpreter.entry(line, &Origin::at(self.last), out);
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.interpreter.finish(out);
    }
}
