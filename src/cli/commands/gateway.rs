//! `runvault gateway`

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use clap::{Args as ClapArgs, Subcommand};
use runvault::display::{counted, escaped};
use runvault::gateway::{
    Gateway, GatewayMode, Recovery, UnstoredRun, base_url_variables, otlp_variables, recover_runs,
    unstored_runs,
};

use crate::cli::args::gateway::GatewayArgs;
use crate::cli::args::help;
use crate::cli::args::inputs::SecretArgs;
use crate::cli::args::vault::{CreateArgs, VaultArgs};
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::terminal::Stop;
use crate::cli::output::{json, stdout};

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
#[command(mut_args(help::rarely(&["ci", "label"])))]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<GatewayCommand>,

    /// Listen at this address. The system chooses the port if it is 0
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4711")]
    listen: SocketAddr,

    /// Also receive spans of OpenTelemetry
    ///
    /// Receives OTLP over HTTP, in Protocol Buffers and JSON, and stores each trace as "import" does. A trace is stored
    /// when its outermost span has ended and nothing of it was received for ten seconds, when it was idle, and when the
    /// gateway stops.
    #[arg(long)]
    otlp: bool,

    #[command(flatten)]
    gateway: GatewayArgs,
}

#[derive(Subcommand)]
enum GatewayCommand {
    Recover(RecoverArgs),
    Discard(DiscardArgs),
}

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        match &self.command {
            Some(GatewayCommand::Recover(command)) => return command.run(args),
            Some(GatewayCommand::Discard(command)) => return command.run(args),
            None => {}
        }
        let vault = self.gateway.open(args)?;
        let mut options = self.gateway.options(args, &vault)?;
        options.otlp = self.otlp;
        if self.otlp && options.mode == GatewayMode::Replay {
            return Err(CommandError::Usage("--otlp stores runs, and --mode replay stores none".to_owned()));
        }
        let stop = Stop::on_signals()?;
        let (upstreams, only_replays) = (options.upstreams.clone(), options.mode == GatewayMode::Replay);
        let gateway = Gateway::start(vault, self.listen, options)?;
        let address = gateway.address();
        if !address.ip().is_loopback() {
            stdout::warning(&format!(
                "everyone who can reach {address} can use the gateway and read what is recorded: there are no passwords"
            ));
        }
        let mut out = stdout::raw();
        for (variable, url) in base_url_variables(address, &upstreams, only_replays) {
            writeln!(out, "{variable}={url}")?;
        }
        for (variable, url) in otlp_variables(address).filter(|_| self.otlp) {
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

/// Store the runs that earlier gateways could not store
///
/// Tries again to store the calls in the files of the directory of --spool that no gateway works on, also in those that
/// were set aside. Exits with status 1 if files remain.
#[derive(ClapArgs)]
struct RecoverArgs {
    #[command(flatten)]
    spool: SpoolArgs,

    #[command(flatten)]
    secrets: SecretArgs,

    #[command(flatten)]
    create: CreateArgs,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RecoverArgs {
    fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        let directory = self.spool.directory(args)?;
        let vault = args.open_to_add(self.create)?;
        let recovery = recover_runs(vault, &directory, self.secrets.policy()?)?;
        let mut out = stdout::raw();
        if self.json {
            json::line(&mut out, &recovery)?;
        } else {
            for run in &recovery.stored {
                let calls = counted(run.calls, "call");
                writeln!(out, "stored {}: {calls}, run pack {}", escaped(&run.run_id), run.run_pack)?;
            }
            for UnstoredRun { path, reason, .. } in &recovery.left {
                let reason = reason.as_deref().unwrap_or_default();
                stdout::warning(&format!("{}: {}", escaped(&path.to_string_lossy()), escaped(reason)));
            }
        }
        let Recovery { stored, left } = recovery;
        stdout::note(&format!(
            "stored {}, {} remain",
            counted(stored.len() as u64, "run"),
            counted(left.len() as u64, "file")
        ));
        Ok(if left.is_empty() { Status::Done } else { Status::No })
    }
}

/// Remove calls that a gateway could not store
///
/// Without arguments, lists the files that were set aside: their calls could not be stored, or they are damaged. Removes
/// the files that are named, or all with --all.
#[derive(ClapArgs)]
struct DiscardArgs {
    /// The files to remove, of those that are listed
    #[arg(value_name = "FILE", conflicts_with = "all")]
    files: Vec<PathBuf>,

    /// Remove all of them
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    spool: SpoolArgs,

    /// Print one line of JSON for each file
    #[arg(long)]
    json: bool,
}

impl DiscardArgs {
    fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        let mut runs = unstored_runs(&self.spool.directory(args)?)?;
        let is_named = |run: &UnstoredRun| {
            self.files.iter().any(|file| *file == run.path || run.path.file_name() == Some(file.as_os_str()))
        };
        let is_listed = |file: &&PathBuf| {
            runs.iter().any(|run| **file == run.path || run.path.file_name() == Some(file.as_os_str()))
        };
        if let Some(file) = self.files.iter().find(|file| !is_listed(file)) {
            let file = escaped(&file.to_string_lossy()).to_string();
            return Err(CommandError::No(format!(
                "{file} is not a file that was set aside; nothing was removed"
            )));
        }
        let removes = self.all || !self.files.is_empty();
        if removes && !self.all {
            runs.retain(is_named);
        }
        let mut out = stdout::raw();
        for run in &runs {
            if removes {
                fs::remove_file(&run.path)?;
            }
            if self.json {
                json::line(&mut out, run)?;
                continue;
            }
            let UnstoredRun { path, run_id, calls, bytes, .. } = run;
            let id = run_id.as_ref().map(|id| format!(" of the run {}", escaped(id))).unwrap_or_default();
            let verb = if removes { "removed " } else { "" };
            let path = path.to_string_lossy();
            writeln!(out, "{verb}{}: {}{id}, {bytes} bytes", escaped(&path), counted(*calls, "call"))?;
        }
        let files = counted(runs.len() as u64, "file");
        stdout::note(&if removes { format!("removed {files}") } else { format!("{files} set aside") });
        Ok(Status::Done)
    }
}

/// The directory with the calls that are not in the vault.
#[derive(ClapArgs)]
struct SpoolArgs {
    /// Directory for the calls of runs that are not finished. Default: beside the vault, its name with -gateway
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
}

impl SpoolArgs {
    /// Returns the directory.
    fn directory(&self, args: &VaultArgs) -> Result<PathBuf, CommandError> {
        self.spool.clone().map_or_else(|| args.recordings(), Ok)
    }
}
