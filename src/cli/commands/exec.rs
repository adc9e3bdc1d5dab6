//! `runvault exec`

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitStatus};

use clap::Args as ClapArgs;
use runvault::gateway::{Gateway, Mode, REPLAY_KEY, base_url_variables, key_variables};

use crate::cli::args::gateway::GatewayArgs;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::stop::Stop;

/// Run a program, and record or replay its calls of models.
///
/// Starts a gateway, runs the program with the variables that point clients at it, and finishes the run. Prints the
/// hashes of the run pack and the session, and exits with the status of the program.
///
/// With --mode replay, variables for keys that are not set get a value that no server accepts.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    gateway: GatewayArgs,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, Failure> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(Failure::Usage("no program is given".to_owned()));
        };
        let vault = self.gateway.open(args)?;
        let options = self.gateway.options(args, &vault)?;
        // The signals of a terminal go to the program as well: it decides whether it ends, and what was recorded is stored
        // after that.
        let _stop = Stop::on_signals()?;
        let gateway = Gateway::start(vault, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?;
        let mut command = Command::new(program);
        command.args(arguments).envs(base_url_variables(gateway.address()));
        command.env("RUNVAULT_GATEWAY", format!("http://{}", gateway.address()));
        if self.gateway.mode() == Mode::Replay {
            command.envs(
                key_variables().filter(|key| std::env::var_os(key).is_none()).map(|key| (key, REPLAY_KEY)),
            );
        }
        let status = command.status().map_err(|error| {
            let program = program.to_string_lossy();
            Failure::CouldNotRun(format!("cannot run {}: {error}", escaped(&program)))
        })?;
        gateway.stop()?;
        Ok(Status::OfProgram(code(status)))
    }
}

/// Returns the exit code of a program; for one that a signal ended, the one that shells report.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
