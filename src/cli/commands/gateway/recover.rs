//! `runvault gateway recover`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::display::{counted, escaped};
use runvault::gateway::{Recovery, UnstoredRun, recover_runs};

use super::spool::SpoolArgs;
use crate::cli::args::inputs::SecretArgs;
use crate::cli::args::vault::{CreateArgs, VaultArgs};
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::{json, stdout};

/// Store the runs that earlier gateways could not store
///
/// Tries again to store the calls in the files of the directory of --spool that no gateway works on, also in those that
/// were set aside. Exits with status 1 if files remain.
#[derive(ClapArgs)]
pub(crate) struct Args {
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

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
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
