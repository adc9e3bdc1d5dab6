//! Options of every command: the vault, and the amount and form of output.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use runvault::Vault;
use runvault::display::escaped;
use runvault::storage::{Actor, ActorError, ErrorKind, StorageError};

use super::environment::{self, user_and_machine};
use super::settings;
use crate::cli::hints;
use crate::cli::output::exit::CommandError;
use crate::cli::output::{stdout, terminal};

/// Which vault to use.
#[derive(Args)]
pub(crate) struct VaultArgs {
    /// Path of the vault, or postgres:// URL of one in a database
    ///
    /// Default: the setting vault, else runvault/default.vault in the user's data directory, which is created on first
    /// use.
    #[arg(long, global = true, value_name = "PATH", help_heading = "Vault")]
    vault: Option<PathBuf>,

    /// Name recorded in the journal. Default: the setting actor, else USER@HOST
    #[arg(long, global = true, value_name = "NAME", help_heading = "Vault", hide_short_help = true)]
    actor: Option<String>,
}

/// Whether a vault may be created where one was named.
#[derive(Args, Clone, Copy)]
pub(crate) struct CreateArgs {
    /// Create the vault if it does not exist; without this, only the one at the default location is created
    #[arg(long, hide_short_help = true)]
    create: bool,
}

impl VaultArgs {
    /// Returns the path of the vault, which need not exist.
    pub(crate) fn path(&self) -> Result<PathBuf, CommandError> {
        match &self.vault {
            Some(path) => Ok(path.clone()),
            None => settings::VAULT.get_path()?.map_or_else(environment::default_path, Ok),
        }
    }

    /// Returns the directory with the calls of runs that are not finished: beside the vault, or in the user's data directory
    /// for a database.
    pub(crate) fn recordings(&self) -> Result<PathBuf, CommandError> {
        match Vault::recordings_beside(&self.path()?) {
            Some(directory) => Ok(directory),
            None => Ok(environment::default_path()?.with_file_name("gateway")),
        }
    }

    /// Returns the name that the journal records.
    pub(crate) fn actor(&self) -> Result<Actor, CommandError> {
        actor(self.actor.as_deref())
    }

    /// Opens the vault, which must exist.
    pub(crate) fn open(&self) -> Result<Vault, CommandError> {
        self.opened(Vault::open)
    }

    /// Opens the vault to check it. One that cannot be opened cannot be checked.
    pub(crate) fn open_to_check(&self) -> Result<Vault, CommandError> {
        self.opened(|path| {
            Vault::open(path).map_err(|error| match error.kind() {
                ErrorKind::VaultDamaged => {
                    CommandError::CouldNotRun(format!("{error}; {}", hints::NOT_CHECKED))
                }
                _ => error.into(),
            })
        })
    }

    /// Opens the vault for additions. If there is none, it is created when the first artifact is stored: at the default
    /// location, elsewhere only if `create` permits it, so that a mistyped path is an error.
    pub(crate) fn open_to_add(&self, create: CreateArgs) -> Result<Vault, CommandError> {
        let create: fn(&Path) -> _ =
            if self.may_create(create)? { Vault::create_when_needed } else { Vault::open };
        self.opened(create)
    }

    /// Opens the vault for a dry run; `None` if it would be created.
    pub(crate) fn open_for_dry_run(&self, create: CreateArgs) -> Result<Option<Vault>, CommandError> {
        if self.may_create(create)? && !exists(&self.path()?) {
            return Ok(None);
        }
        self.open().map(Some)
    }

    /// Returns the path or URL of the vault in the form in which it may be shown.
    pub(crate) fn shown_path(&self) -> Result<PathBuf, CommandError> {
        self.path().map(|path| Vault::shown_address(&path))
    }

    /// Opens the vault to watch directories for, creating it immediately if [`VaultArgs::open_to_add`] would create it.
    /// The inner error is that of the vault, and may be temporary.
    pub(crate) fn try_open_to_watch(
        &self,
        create: CreateArgs,
    ) -> Result<Result<Vault, StorageError>, CommandError> {
        let open: fn(&Path) -> _ = if self.may_create(create)? { Vault::open_or_create } else { Vault::open };
        let actor = self.actor()?;
        Ok(open(&self.path()?).map(|vault| vault.acting_as(actor)))
    }

    /// Creates a vault.
    pub(crate) fn create(&self) -> Result<Vault, CommandError> {
        self.opened(Vault::create)
    }

    fn opened<E>(&self, open: impl FnOnce(&Path) -> Result<Vault, E>) -> Result<Vault, CommandError>
    where
        CommandError: From<E>,
    {
        static NAMED: AtomicBool = AtomicBool::new(false);
        let actor = self.actor()?;
        let vault = open(&self.path()?)?.acting_as(actor);
        if terminal::is_verbose() && !NAMED.swap(true, Ordering::Relaxed) {
            stdout::note(&format!("vault {}", escaped(&vault.path().to_string_lossy())));
        }
        if let Some(damage) = vault.log_damage() {
            let remedy = "add again what was added last";
            stdout::warning(&format!("{}: {damage}; {remedy}", vault.path().display()));
        }
        Ok(vault)
    }

    fn may_create(&self, create: CreateArgs) -> Result<bool, CommandError> {
        Ok(create.create || self.is_default()?)
    }

    /// Returns whether neither an argument nor a setting names a vault.
    fn is_default(&self) -> Result<bool, CommandError> {
        Ok(self.vault.is_none() && settings::VAULT.get_path()?.is_none())
    }
}

/// Returns whether there is something at the path or URL of a vault. If a server does not say, opening returns the reason.
fn exists(path: &Path) -> bool {
    match Vault::file_of(path) {
        Some(file) => file.exists(),
        None => !Vault::open(path)
            .is_err_and(|error| matches!(error.kind(), ErrorKind::Missing | ErrorKind::NoDatabase)),
    }
}

/// Returns the actor from the argument, otherwise from the settings, otherwise the user and the machine.
pub(crate) fn actor(given: Option<&str>) -> Result<Actor, CommandError> {
    let refused = |error: ActorError| CommandError::Usage(format!("--actor: {error}"));
    if let Some(name) = given {
        return Actor::new(name).map_err(refused);
    }
    let set = settings::ACTOR.get()?;
    set.map_or_else(|| Actor::new(user_and_machine()).map_err(refused), Ok)
}

/// Options of the output of every command.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Print only results, warnings and errors
    ///
    /// Summaries, notes and progress are omitted. "add", "import" and "watch" list only what is rejected; "verify"
    /// still prints one line for each file.
    #[arg(short, long, global = true, help_heading = "Output", conflicts_with = "verbose")]
    quiet: bool,

    /// Print details: the vault, every file, signatures
    ///
    /// Names the vault that is used. "add", "import", "verify" and "watch" also list files that are already stored and
    /// files that are not artifacts, and the states of signatures.
    #[arg(short, long, global = true, help_heading = "Output")]
    verbose: bool,

    /// Do not show long output with a pager
    #[arg(long, global = true, help_heading = "Output", hide_short_help = true)]
    no_pager: bool,
}

impl OutputArgs {
    /// Applies the options to this process.
    pub(crate) fn apply(&self, command: &str) {
        terminal::set_verbosity(self.quiet, self.verbose);
        if !self.no_pager {
            terminal::allow_for(command);
        }
    }
}
