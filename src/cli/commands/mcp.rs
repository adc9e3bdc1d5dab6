//! `runvault mcp`

use clap::Args as ClapArgs;
use runvault::mcp::{McpError, McpOptions, McpServer};

use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::terminal::Stop;

/// Give models tools to read the vault
///
/// Answers one client of the Model Context Protocol over standard input and output: tools to find, read, search, compare
/// and audit runs, and artifacts as resources. It is read only unless --allow-write is given. It ends at the end of
/// standard input, and on Ctrl-C or SIGTERM.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Permit clients to set notes and labels, and to build and update the search index
    #[arg(long)]
    allow_write: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let stop = Stop::on_signals()?;
        let options = McpOptions { allow_write: self.allow_write, hint: Some(hints::hint) };
        match McpServer::new(vault, options).run(|| stop.is_requested()) {
            Ok(()) => Ok(Status::Done),
            Err(error @ (McpError::System(_) | McpError::Session(_))) => {
                Err(CommandError::CouldNotRun(format!("the server failed: {error}")))
            }
        }
    }
}
