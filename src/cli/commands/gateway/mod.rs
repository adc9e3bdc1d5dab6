//! `runvault gateway`

mod discard;
mod recover;
mod spool;

use std::io::Write;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use runvault::gateway::{Gateway, base_url_variables};

use crate::cli::args::gateway::GatewayArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout;
use crate::cli::output::stop::Stop;

/// How often the command checks whether it is to stop.
const POLL: Duration = Duration::from_millis(50);

/// Record and replay the calls of model clients
///
/// Starts an HTTP server for clients of `OpenAI`, Anthropic and Gemini, and of others with --upstream, and prints the
/// variables that point clients at it. It forwards calls and archives them as a session and a run pack, or answers them
/// from the archive. Ctrl-C or SIGTERM finishes all runs and stops it.
///
/// A run consists of all calls with the same x-runvault-run header, or under the same path /run/NAME; all other calls
/// are one run. A run is stored after POST /_runvault/finish, when it was idle, and when the gateway stops.
/// Credentials are never stored.
#[derive(ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<GatewayCommand>,

    /// Listen at this address. The system chooses the port if it is 0
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4711")]
    listen: SocketAddr,

    #[command(flatten)]
    gateway: GatewayArgs,
}

#[derive(Subcommand)]
enum GatewayCommand {
    Recover(recover::Args),
    Discard(discard::Args),
}

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        match &self.command {
            Some(GatewayCommand::Recover(command)) => return command.run(args),
            Some(GatewayCommand::Discard(command)) => return command.run(args),
            None => {}
        }
        let vault = self.gateway.open(args)?;
        let options = self.gateway.options(args, &vault)?;
        let stop = Stop::on_signals()?;
        let gateway = Gateway::start(vault, self.listen, options)?;
        let address = gateway.address();
        if !address.ip().is_loopback() {
            stdout::warning(&format!(
                "everyone who can reach {address} can use the gateway and read what is recorded: there are no passwords"
            ));
        }
        let mut out = stdout::raw();
        for (variable, url) in base_url_variables(address) {
            writeln!(out, "{variable}={url}")?;
        }
        out.flush()?;
        drop(out);
        while !stop.is_requested() {
            thread::sleep(POLL);
        }
        gateway.stop()?;
        Ok(Status::Done)
    }
}
