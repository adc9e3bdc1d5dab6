//! `runvault serve`

use std::io::ErrorKind::AddrInUse;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::process::{Command, Stdio};

use clap::Args as ClapArgs;
use runvault::server::{ServerOptions, WebServer};

use crate::cli::args::settings;
use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout;
use crate::cli::output::terminal::Stop;

/// Show the vault in a browser
///
/// Starts an HTTP server and prints its address. The pages are read only unless --allow-write is given, can be read
/// without JavaScript, and load nothing from other servers. Ctrl-C or SIGTERM stops the server; the exit status is 0.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Listen at this address. The system chooses the port if it is 0. Default: 127.0.0.1:4780, or the next port that
    /// is free
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Open the pages in the default browser
    #[arg(long)]
    open: bool,

    /// Permit everyone who can open the pages to set and remove tags, labels and notes. Only at a local address
    #[arg(long)]
    allow_write: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        if let Some(address) = self.listen.filter(|address| self.allow_write && !address.ip().is_loopback()) {
            return Err(CommandError::Usage(format!(
                "--allow-write needs a local address: there are no passwords, so everyone who can reach {address} could \
                 change the vault"
            )));
        }
        let vault = vault.open()?;
        let stop = Stop::on_signals()?;
        let server = self.bind()?;
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
        let options = ServerOptions {
            hint: Some(hints::hint),
            allow_write: self.allow_write,
            prices: settings::prices()?,
            ..ServerOptions::default()
        };
        let run = server.run(vault, options, move || stop.is_requested());
        run.map_err(|error| CommandError::CouldNotRun(format!("the server failed: {error}")))?;
        Ok(Status::Done)
    }

    /// Listens at the requested address, or at the first of the default ports that is free.
    fn bind(&self) -> Result<WebServer, CommandError> {
        let at = |address: SocketAddr| {
            let could_not = |error| CommandError::CouldNotRun(format!("cannot listen at {address}: {error}"));
            WebServer::bind(address).map_err(could_not)
        };
        let Some(address) = self.listen else {
            let mut ports = PORTS.map(|port| WebServer::bind((Ipv4Addr::LOCALHOST, port).into()));
            let is_free =
                |bound: &io::Result<WebServer>| !matches!(bound, Err(error) if error.kind() == AddrInUse);
            let first = ports.find(is_free);
            return match first {
                Some(Ok(server)) => Ok(server),
                // Also an address on which no port can be used has an error that names it.
                _ => at((Ipv4Addr::LOCALHOST, 0).into()),
            };
        };
        at(address)
    }
}

/// The ports that are tried without a requested address, so that bookmarks stay valid.
const PORTS: RangeInclusive<u16> = 4780..=4799;

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
