//! The command line of runvault. Everything it does, the library does.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
