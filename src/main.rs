//! Arguments in, exit status out; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(crosswire::commands::main(std::env::args_os()))
}
