//! Arguments in, exit status out; nothing else.

use std::process::ExitCode;

/// Most of the work is small values that are made on one thread and dropped on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(crosswire::commands::main(std::env::args_os()))
}
