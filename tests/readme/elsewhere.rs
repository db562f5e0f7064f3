//! Commands of the texts that need more than files: a server, a client, an interface, a terminal, or a
//! machine elsewhere. Each is run as it stands, but for its addresses and for the programs in
//! `stand-ins`, which do on this machine what docker, ssh and their like would do on another.

use crate::fake::{Fake, Manner};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a command needs that is not here.
pub struct Lacking(pub String);

/// Where the texts' commands run.
pub struct Elsewhere {
    folder: PathBuf,
    /// The server that the texts have at port 8000.
    server: Fake,
}

impl Elsewhere {
    pub fn new(folder: &Path) -> Elsewhere {
        Elsewhere { folder: folder.to_owned(), server: Fake::start(Manner::Right) }
    }

    /// Runs a line of a text to its end, or until it is interrupted if it has none.
    pub fn run(&self, line: &str) -> Result<(), Lacking> {
        lacking(line)?;
        let line = self.with_addresses(line);
        let ours = line.split("crosswire ").nth(1).and_then(|l| l.split(' ').next());
        match ours.filter(|_| line.starts_with("crosswire ") || line.contains("| crosswire ")) {
            Some("browse") => in_terminal(&self.command(&line), &self.folder, &line),
            Some("proxy") => self.until_interrupted(&line, "proxy for"),
            Some("watch") => self.until_interrupted(&line, "watching"),
            Some("serve") if !line.contains("--write-script") => self.until_interrupted(&line, "http://"),
            Some("capture") if line.contains(" -w ") => self.until_interrupted(&line, "capturing"),
            _ => self.to_its_end(&line),
        }
        Ok(())
    }

    /// The line with the addresses of this run: tests run side by side, and ports may be taken.
    fn with_addresses(&self, line: &str) -> String {
        let mut line = line.replace("http://127.0.0.1:8000/mcp", &self.server.url());
        line = line.replace("http://127.0.0.1:8000", &format!("http://{}", self.server.address));
        for port in ["127.0.0.1:8080", "127.0.0.1:8000", "127.0.0.1:9464"] {
            line = line.replace(port, "127.0.0.1:0");
        }
        if line.starts_with("crosswire proxy ") && !line.contains("--listen") {
            line.push_str(" --listen 127.0.0.1:0");
        }
        line
    }

    fn command(&self, line: &str) -> Command {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = Path::new(env!("CARGO_BIN_EXE_crosswire")).parent().unwrap();
        let stand_ins = root.join("tests/readme/stand-ins");
        let path = std::env::var("PATH").unwrap();
        // Where tests run in the background of a script, Ctrl-C is ignored, which a stand-in that waits would inherit.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", "bash", "-c", line])
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{}:{path}", stand_ins.display(), program.display()))
            .env("ROOT", root)
            .env("HOME", &self.folder)
            .env("CROSSWIRE_CAPTURE", capture_helper())
            .env_remove("SSLKEYLOGFILE");
        command
    }

    /// Findings are no failure, trouble is.
    fn to_its_end(&self, line: &str) {
        let o = self.command(&format!("set -o pipefail; {line}")).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&o.stderr);
        assert!(matches!(o.status.code(), Some(0 | 1)), "{line}: {}: {said}", o.status);
    }

    /// Waits until it says that it is at work, and ends it as Ctrl-C does.
    fn until_interrupted(&self, line: &str, at_work: &str) {
        let mut child = self
            .command(line)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        while !all.contains(at_work) {
            assert!(said.read_line(&mut all).unwrap() > 0, "{line}: ended before it was at work: {all}");
        }
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        said.read_to_string(&mut all).unwrap();
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{line}: {status}: {all}");
    }
}

/// Opens it in a terminal, and leaves with `q`.
fn in_terminal(of: &Command, folder: &Path, line: &str) {
    let pair = native_pty_system().openpty(PtySize { rows: 40, cols: 120, ..PtySize::default() }).unwrap();
    let mut command = CommandBuilder::new("bash");
    command.args(["-c", line]);
    command.cwd(folder);
    for (name, value) in of.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    command.env("TERM", "xterm-256color");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut screen = pair.master.try_clone_reader().unwrap();
    let mut keys = pair.master.take_writer().unwrap();
    let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&shown).contains("finding") {
        let n = screen.read(&mut buffer).unwrap_or(0);
        assert!(n > 0, "{line}: {}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&buffer[..n]);
    }
    // What it draws on its way out must be taken, or it would wait.
    std::thread::spawn(move || std::io::copy(&mut screen, &mut std::io::sink()));
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let _ = keys.write_all(b"q");
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.exit_code() <= 1, "{line}: {status:?}");
            return;
        }
        assert!(Instant::now() < until, "{line}: does not end");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn capture_helper() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_crosswire")).with_file_name("crosswire-capture")
}

/// Is everything here that the line needs?
fn lacking(line: &str) -> Result<(), Lacking> {
    if line.starts_with("crosswire scan ") && line.contains("://") {
        return Err(Lacking("object stores (tests/objects has one)".to_owned()));
    }
    if line.contains("crosswire capture") {
        if !capture_helper().exists() {
            return Err(Lacking("crosswire-capture (--features capture)".to_owned()));
        }
        if !line.contains("--list") && !rustix::process::geteuid().is_root() {
            return Err(Lacking("root, to capture".to_owned()));
        }
    }
    let programs = line.split(" | ").filter_map(|part| part.split(' ').next());
    let programs = programs.filter(|p| p.chars().all(|c| c.is_ascii_alphanumeric())).collect::<BTreeSet<_>>();
    let stand_ins = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readme/stand-ins");
    let is_here = |program: &str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        program == "crosswire" || stand_ins.join(program).exists() || found.is_ok_and(|o| o.status.success())
    };
    match programs.into_iter().find(|p| !is_here(p)) {
        Some(program) => Err(Lacking(program.to_owned())),
        None => Ok(()),
    }
}
