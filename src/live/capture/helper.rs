//! Finding and running `crosswire-capture`.

use super::Settings;
use crate::model::filter::{FrameFilter, Instruction};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::drive::Stop;
use crate::input::capture::bpf::Program;

/// The helper's file name.
const NAME: &str = "crosswire-capture";
/// The variable that says where it is.
const VARIABLE: &str = "CROSSWIRE_CAPTURE";
/// Link types that filters are compiled for: those that are read and that libpcap can filter.
const LINKS: [u16; 16] = [0, 1, 9, 12, 14, 50, 51, 101, 104, 108, 109, 113, 117, 228, 229, 276];

/// Why the helper could not do what it was to do.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// It is not there.
    #[error(
        "the program {NAME} is needed for this, and is neither beside {own} nor in PATH; it links libpcap and is built \
         by `cargo install --locked --path . --features capture` (Debian: `apt install libpcap-dev` before), or comes \
         with the Debian package; {VARIABLE}=PATH names it where it is elsewhere"
    )]
    Missing {
        /// The program that runs.
        own: String,
    },
    /// It cannot be run.
    #[error("{path}: cannot be run: {source}")]
    Unrunnable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The expression is no filter.
    #[error("--filter {expression}: {why}")]
    Filter {
        /// As given.
        expression: String,
        /// libpcap's words.
        why: String,
    },
}

/// Where the helper is: named by the environment, beside this program, or in `PATH`.
///
/// # Errors
/// If it is nowhere.
pub fn find() -> Result<PathBuf, HelperError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return Ok(named.into());
    }
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.parent().map(|folder| folder.join(NAME));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join(NAME));
    let found = beside.into_iter().chain(in_path).find(|p| p.is_file());
    found.ok_or_else(|| HelperError::Missing { own: own.display().to_string() })
}

fn command(path: &Path, args: &[&OsStr]) -> Command {
    let mut command = Command::new(path);
    command.args(args).stdin(Stdio::null());
    command
}

/// Lists the interfaces on standard output; gives the exit status.
///
/// # Errors
/// If it cannot be run.
pub fn list() -> Result<i32, HelperError> {
    let path = find()?;
    let status = command(&path, &["list".as_ref()]).status();
    let status = status.map_err(|source| HelperError::Unrunnable { path, source })?;
    Ok(status.code().unwrap_or(2))
}

/// A capture that runs.
pub struct Running(Child);

impl Running {
    /// Starts a capture.
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn start(settings: &Settings) -> Result<Running, HelperError> {
        let path = find()?;
        let text = serde_json::to_string(settings).unwrap_or_default();
        // A terminal sends Ctrl-C to the whole group: with what is passed on here it would be the second, which ends
        // a program at once, with the last packets unwritten.
        let child = command(&path, &["capture".as_ref(), text.as_ref()]).process_group(0).spawn();
        Ok(Running(child.map_err(|source| HelperError::Unrunnable { path, source })?))
    }

    /// Waits for its end, which `stop` brings about; gives its exit status.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn wait(mut self, stop: &Stop) -> io::Result<i32> {
        let mut asked = false;
        loop {
            if let Some(status) = self.0.try_wait()? {
                stop.set();
                return Ok(status.code().unwrap_or(2));
            }
            if stop.is_set() && !std::mem::replace(&mut asked, true) {
                self.interrupt();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn interrupt(&self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

/// Has the helper compile a filter. It reads no packet for that and needs no privilege.
///
/// # Errors
/// If it cannot be run, or the expression is none.
pub fn compile(expression: &str) -> Result<FrameFilter, HelperError> {
    let path = find()?;
    let links = LINKS.map(|l| l.to_string());
    let mut args: Vec<&OsStr> = vec!["compile".as_ref(), expression.as_ref()];
    args.extend(links.iter().map(|l| AsRef::<OsStr>::as_ref(l.as_str())));
    let output = command(&path, &args).stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| HelperError::Unrunnable { path, source })?;
    parse(expression, &String::from_utf8_lossy(&output.stdout))
}

/// What the helper prints: for each link type a line `link N`, then its instructions as four numbers
/// a line, or `error TEXT`.
fn parse(expression: &str, text: &str) -> Result<FrameFilter, HelperError> {
    let mut programs: Vec<(u16, Vec<Instruction>)> = vec![];
    let mut why = None;
    for line in text.lines() {
        if let Some(link) = line.strip_prefix("link ") {
            programs.extend(link.parse().ok().map(|link| (link, vec![])));
        } else if let Some(error) = line.strip_prefix("error ") {
            why.get_or_insert_with(|| error.to_owned());
        } else if let (Some(instruction), Some((_, program))) = (instruction(line), programs.last_mut()) {
            program.push(instruction);
        }
    }
    programs.retain(|(_, program)| Program::new(program.clone()).is_ok());
    if programs.is_empty() {
        let why = why.unwrap_or_else(|| format!("{NAME} gave no program for it"));
        return Err(HelperError::Filter { expression: expression.to_owned(), why });
    }
    Ok(FrameFilter { expression: expression.to_owned(), programs })
}

fn instruction(line: &str) -> Option<Instruction> {
    let mut n = line.split_ascii_whitespace().map(str::parse::<u32>);
    let mut next = || n.next()?.ok();
    let (code, jt, jf, k) = (next()?, next()?, next()?, next()?);
    Some(Instruction { code: code.try_into().ok()?, jt: jt.try_into().ok()?, jf: jf.try_into().ok()?, k })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_helper() {
        let text = "link 1\n40 0 0 12\n21 0 1 2048\n6 0 0 1\n6 0 0 0\nlink 117\nerror not for this link type\n";
        let filter = parse("ip", text).unwrap();
        assert_eq!((filter.programs.len(), filter.programs.first().unwrap().1.len()), (1, 4));
        let error = parse("ipp", "link 1\nerror syntax error\nlink 12\nerror syntax error\n").unwrap_err();
        assert_eq!(error.to_string(), "--filter ipp: syntax error");
        // What does not end is not believed.
        assert!(parse("ip", "link 1\n40 0 0 12\n").is_err());
        assert!(parse("ip", "").is_err());
    }
}
