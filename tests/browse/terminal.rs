//! A terminal for tests: crosswire behind a pseudo-terminal, its screen as an emulator shows it.

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// No test waits longer; what is waited for comes in well under a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program and the terminal that it runs in.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    /// What the terminal shows.
    pub emulator: vt100::Parser,
    /// Every byte that came.
    pub bytes: Vec<u8>,
}

impl Terminal {
    /// Runs `crosswire browse` with these arguments in a folder.
    pub fn run(args: &[&str], folder: &Path, columns: u16, rows: u16) -> Terminal {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_crosswire"));
        command.arg("browse");
        command.args(args);
        Terminal::start(command, folder, columns, rows)
    }

    /// Runs a line as a shell does.
    pub fn run_shell(script: &str, folder: &Path, columns: u16, rows: u16) -> Terminal {
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script]);
        Terminal::start(command, folder, columns, rows)
    }

    fn start(mut command: CommandBuilder, folder: &Path, columns: u16, rows: u16) -> Terminal {
        let pty = native_pty_system();
        let pair = pty.openpty(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
        command.cwd(folder);
        command.env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color");
        command.env_remove("SSLKEYLOGFILE");
        command.env_remove("NO_COLOR");
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n) = reader.read(&mut buffer) {
                if n == 0 || sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let keys = pair.master.take_writer().unwrap();
        let emulator = vt100::Parser::new(cells(rows), cells(columns), 0);
        Terminal { child, master: pair.master, keys, output, emulator, bytes: vec![] }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types, and waits until the screen holds this.
    pub fn press_for(&mut self, keys: &str, wanted: &str) -> String {
        self.press(keys);
        self.wait_for(wanted)
    }

    fn take(&mut self, wait: Duration) -> bool {
        let Ok(bytes) = self.output.recv_timeout(wait) else { return false };
        self.emulator.process(&bytes);
        self.bytes.extend(bytes);
        true
    }

    /// Waits until the screen holds this, and gives the screen.
    pub fn wait_for(&mut self, wanted: &str) -> String {
        self.wait_until(wanted, |screen| screen.contains(wanted))
    }

    /// Waits until the screen is as wanted.
    pub fn wait_until(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        while !is_wanted(&self.screen()) {
            assert!(Instant::now() < end, "waited for {what}; the screen is\n{}", self.screen());
            self.take(Duration::from_millis(100));
        }
        // What belongs to the same screen may come in another piece.
        while self.take(Duration::from_millis(30)) {}
        self.screen()
    }

    /// The screen as text.
    pub fn screen(&self) -> String {
        self.emulator.screen().contents()
    }

    /// Another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.emulator.screen_mut().set_size(cells(rows), cells(columns));
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).unwrap();
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let id = self.child.process_id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for the end of the program.
    pub fn end(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            while self.take(Duration::from_millis(20)) {}
            if let Some(status) = self.child.try_wait().unwrap() {
                while self.take(Duration::from_millis(50)) {}
                return status;
            }
            assert!(Instant::now() < end, "it does not end; the screen is\n{}", self.screen());
        }
    }

    /// Is the terminal as it was: its own screen, the cursor shown, lines wrapped?
    pub fn is_given_back(&self) -> bool {
        let said = String::from_utf8_lossy(&self.bytes);
        let last = |on: &str, off: &str| said.rfind(on) > said.rfind(off);
        !self.emulator.screen().alternate_screen()
            && !self.emulator.screen().hide_cursor()
            && last("\x1b[?7h", "\x1b[?7l")
    }
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
