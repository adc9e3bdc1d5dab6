//! A note on which capture of an artifact a command uses.

use runvault::Vault;
use runvault::digest::{CaptureHash, CoreHash};
use runvault::storage::StorageError;
use runvault::vault::captures::CapturesRequest;

use crate::cli::output::stdout::{self, HASH, counted};

/// Reports which capture is used if the artifact has several: they may differ in what the core hash does not cover.
pub(crate) fn say_which(vault: &Vault, core: CoreHash, hash: CaptureHash) -> Result<(), StorageError> {
    let count = vault.run(&CapturesRequest { limit: Some(0), ..CapturesRequest::new(core) })?.count;
    if count > 1 {
        let count = counted(count, "capture");
        stdout::note(&format!(
            "{core:.12} has {count}; this is {HASH}{hash:.12}{HASH:#}, \"runvault diff --all {core:.12}\" shows how they differ"
        ));
    }
    Ok(())
}
