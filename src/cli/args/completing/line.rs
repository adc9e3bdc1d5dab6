//! Context from the words before the one to complete.

use std::ffi::OsString;
use std::path::PathBuf;

use runvault::Vault;

use crate::cli::args::default_vault;
use crate::cli::args::settings;

/// The command line to complete.
#[derive(Clone)]
pub(super) struct CompletionLine {
    /// The vault that it names.
    vault: Option<PathBuf>,
    /// The setting whose value is completed.
    setting: Option<&'static settings::SettingInfo>,
}

impl CompletionLine {
    pub(super) fn parse(words: &[OsString]) -> Self {
        let after = |at: usize| words.get(at + 1).map(OsString::as_os_str);
        let mut named = words.iter().enumerate().rev().filter_map(|(at, word)| match word.to_str()? {
            // Bash splits "--vault=x" into several words.
            "--vault" if after(at).is_some_and(|next| next == "=") => after(at + 1).map(PathBuf::from),
            "--vault" => after(at).map(PathBuf::from),
            word => word.strip_prefix("--vault=").map(PathBuf::from),
        });
        let set = words.iter().position(|word| word == "set").and_then(after);
        let setting = set.and_then(|name| Some(settings::named(name.to_str()?)?.entry()));
        Self { vault: named.next(), setting }
    }

    /// Returns the setting whose value is completed.
    pub(super) fn setting(&self) -> Option<&'static settings::SettingInfo> {
        self.setting
    }

    /// Returns the vault, if it exists and can be read.
    pub(super) fn vault(&self) -> Option<Vault> {
        let set = || settings::VAULT.get_path().ok();
        let path = match &self.vault {
            Some(path) => path.clone(),
            None => set()?.map_or_else(|| default_vault::default().ok(), Some)?,
        };
        Vault::open(&path).ok()
    }
}
