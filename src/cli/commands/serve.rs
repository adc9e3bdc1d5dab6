//! `runvault serve`

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use clap::Args as ClapArgs;
use runvault::server::{ServerOptions, WebServer};

use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout;
use crate::cli::output::stop::Stop;

/// Show the vault in a browser
///
/// Starts an HTTP server and prints its address. The pages are read only, need no JavaScript for reading, and load
/// nothing from elsewhere. Ctrl-C or SIGTERM stops the server; the exit status is 0.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Listen at this address. The system chooses the port if it is 0
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Open the pages in the browser of the desktop
    #[arg(long)]
    open: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let stop = Stop::on_signals()?;
        let could_not =
            |error| CommandError::CouldNotRun(format!("cannot listen at {}: {error}", self.listen));
        let server = WebServer::bind(self.listen).map_err(could_not)?;
        let address = server.address();
        if !address.ip().is_loopback() {
            stdout::warning(&format!(
                "everyone who can reach {address} can read the vault: there are no passwords and no encryption"
            ));
        }
        let mut out = stdout::raw();
        writeln!(out, "http://{address}/")?;
        out.flush()?;
        drop(out);
        if self.open {
            open(&format!("http://{address}/"))?;
        }
        let options = ServerOptions { hint: Some(hints::hint), ..ServerOptions::default() };
        let run = server.run(vault, options, move || stop.is_requested());
        run.map_err(|error| CommandError::CouldNotRun(format!("the server failed: {error}")))?;
        Ok(Status::Done)
    }
}

/// The program that opens an address in the browser of the desktop, with its first arguments.
const OPENER: (&str, &[&str]) = if cfg!(target_os = "macos") {
    ("open", &[])
} else if cfg!(windows) {
    ("cmd", &["/C", "start"])
} else {
    ("xdg-open", &[])
};

fn open(address: &str) -> Result<(), CommandError> {
    let (program, arguments) = OPENER;
    let mut command = Command::new(program);
    command.args(arguments).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(CommandError::CouldNotRun(format!("cannot start {program}: {error}; open {address}")))
        }
    }
}
