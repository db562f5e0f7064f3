//! The terminal: taken over at the beginning, and given back as it was whatever happens.

use super::line::Line;
use crate::report::paper::{Style, code};
use crossterm::event::{Event, poll, read};
use crossterm::style::Print;
use crossterm::terminal::{self, ClearType};
use crossterm::{cursor, execute, queue};
use std::io::{self, Stdout, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it is looked whether a signal came or the terminal is gone.
const TICK: Duration = Duration::from_millis(100);
/// How long a wish to stop may go unheard.
const PATIENCE: Duration = Duration::from_secs(1);

/// The terminal, taken over.
pub struct Terminal {
    out: Stdout,
    shown: Vec<Line>,
    color: bool,
    stop: Arc<AtomicBool>,
    is_waiting: Arc<AtomicBool>,
}

/// What came from the terminal.
pub enum Came {
    /// A key, or another size.
    Event(Event),
    /// A wish to stop: a signal, or the terminal went away.
    Stop,
}

impl Terminal {
    /// Takes it over.
    ///
    /// # Errors
    /// Where it cannot be.
    pub fn open(color: bool) -> io::Result<Terminal> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, stop.clone())?;
        }
        // What a panic says would else be lost with the screen.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
        let is_waiting = Arc::new(AtomicBool::new(false));
        watch(stop.clone(), is_waiting.clone());
        let mut terminal = Terminal { out: io::stdout(), shown: vec![], color, stop, is_waiting };
        terminal.take()?;
        Ok(terminal)
    }

    fn take(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        execute!(self.out, terminal::EnterAlternateScreen, terminal::DisableLineWrap, cursor::Hide)?;
        self.forget();
        Ok(())
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        match terminal::window_size() {
            // Serial lines and terminals that are not laid out yet have none.
            Ok(size) if size.columns > 0 && size.rows > 0 => (usize::from(size.columns), usize::from(size.rows)),
            _ => (80, 24),
        }
    }

    /// Draws everything at the next [`Terminal::show`], not only what changed.
    pub fn forget(&mut self) {
        self.shown.clear();
    }

    /// Shows these lines; only those that changed are sent, because lines over ssh are slow.
    ///
    /// # Errors
    /// Where the terminal does not take them.
    pub fn show(&mut self, lines: Vec<Line>) -> io::Result<()> {
        if self.shown.len() != lines.len() {
            self.shown.clear();
            queue!(self.out, terminal::Clear(ClearType::All))?;
        }
        for (row, line) in lines.iter().enumerate() {
            if self.shown.get(row) == Some(line) {
                continue;
            }
            queue!(self.out, cursor::MoveTo(0, u16::try_from(row).unwrap_or(u16::MAX)))?;
            for (text, style) in &line.runs {
                let text = self.dressed(text, *style, line.is_current);
                queue!(self.out, Print(text))?;
            }
            queue!(self.out, terminal::Clear(ClearType::UntilNewLine))?;
        }
        self.out.flush()?;
        self.shown = lines;
        Ok(())
    }

    fn dressed(&self, text: &str, style: Style, is_current: bool) -> String {
        let is_color = !matches!(style, Style::Plain | Style::Bold);
        let code = code(style).filter(|_| self.color || !is_color);
        match (code, is_current) {
            _ if text.is_empty() => String::new(),
            (None, false) => text.to_owned(),
            (None, true) => format!("\x1b[7m{text}\x1b[0m"),
            (Some(code), false) => format!("\x1b[{code}m{text}\x1b[0m"),
            (Some(code), true) => format!("\x1b[7;{code}m{text}\x1b[0m"),
        }
    }

    /// Waits for a key, another size, or the wish to stop.
    pub fn wait(&mut self) -> Came {
        loop {
            // A terminal that is gone has no size, and may give no signal either.
            if self.stop.load(Ordering::SeqCst) || terminal::window_size().is_err() {
                return Came::Stop;
            }
            self.is_waiting.store(true, Ordering::SeqCst);
            let came = poll(TICK).and_then(|is_there| if is_there { read().map(Some) } else { Ok(None) });
            self.is_waiting.store(false, Ordering::SeqCst);
            match came {
                Ok(None) => {}
                Ok(Some(event)) => return Came::Event(event),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Came::Stop,
            }
        }
    }

    /// Gives the terminal back, stops as Ctrl-Z does, and takes it again when the shell goes on.
    ///
    /// # Errors
    /// Where it cannot be taken again.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)?;
        self.take()
    }
}

/// Ends the program where a wish to stop is not heard: after the first bytes of a key that has
/// several, reading waits for the others whatever signals come.
fn watch(stop: Arc<AtomicBool>, is_waiting: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            std::thread::sleep(TICK);
        }
        std::thread::sleep(PATIENCE);
        while !is_waiting.load(Ordering::SeqCst) {
            std::thread::sleep(TICK);
        }
        give_back();
        std::process::exit(0);
    });
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// As it was. Where it is gone there is nothing to give back, so errors are not told.
fn give_back() {
    let mut out = io::stdout();
    let _ = execute!(out, terminal::EnableLineWrap, cursor::Show, terminal::LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}
