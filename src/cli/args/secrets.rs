//! Options for keys and card numbers in documents that are to be stored.

use clap::Args;
use runvault::secrets::{SecretMatch, SecretPolicy};

use crate::cli::args::settings;
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::CommandError;
use crate::cli::output::stdout;

/// What is done about secrets.
#[derive(Args)]
pub(crate) struct SecretArgs {
    /// Refuse to store what looks like a key or a card number
    ///
    /// Without this, there is only a warning. The setting refuse-secrets changes the default.
    #[arg(long)]
    refuse_secrets: bool,
}

impl SecretArgs {
    /// Returns what is done.
    pub(crate) fn policy(&self) -> Result<SecretPolicy, CommandError> {
        let refuses = self.refuse_secrets || settings::refuse_secrets()?;
        Ok(if refuses { SecretPolicy::Refuse } else { SecretPolicy::Report })
    }
}

/// Warns of secrets in what has this name.
pub(crate) fn warn(name: &str, secrets: &[SecretMatch]) {
    for found in secrets {
        let text = found.to_string();
        stdout::warning(&format!("{}: {}", escaped(name), escaped(&text)));
    }
}
