//! The ladder as a Mermaid sequence diagram.

use super::text::said;
use super::{Direction, Ladder, Mood, Row, idle_text, left_out_text};
use crate::report::view::clock;
use std::io::{self, Write};

/// Writes the diagram, without a fence.
///
/// # Errors
/// Those of writing.
pub fn draw(ladder: &Ladder, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "sequenceDiagram")?;
    for name in &ladder.columns {
        writeln!(out, "    participant {name}")?;
    }
    let (Some(first), Some(last)) = (ladder.columns.first(), ladder.columns.last()) else { return Ok(()) };
    for row in &ladder.rows {
        match row {
            Row::Message(m, _) => {
                let at = m.at.map_or(String::new(), |t| format!("{} ", clock(t)));
                let text = escape(&format!("{at}{}", said(m)));
                let arrow = if m.mood == Mood::Crossed { "--x" } else { "->>" };
                match m.direction {
                    Direction::ToServer => writeln!(out, "    {first}{arrow}{last}: {text}")?,
                    Direction::ToClient => writeln!(out, "    {last}{arrow}{first}: {text}")?,
                    Direction::At(_) => writeln!(out, "    Note over {first}: {text}")?,
                }
            }
            Row::Idle(ns) => writeln!(out, "    Note over {first},{last}: {}", escape(&idle_text(*ns)))?,
            Row::LeftOut(n) => writeln!(out, "    Note over {first},{last}: {}", escape(&left_out_text(*n)))?,
        }
    }
    Ok(())
}

/// Mermaid ends statements at `;`, starts entities with `#` and reads HTML in texts.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '#' | ';' | '<' | '>' | '&' | '`' | '"' | '{' | '}' | '%' => out.push_str(&format!("#{};", c as u32)),
            c => out.push(c),
        }
    }
    out
}
