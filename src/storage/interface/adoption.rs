//! Adoption of the journal of another vault.

use crate::storage::{Head, Prepared, RecordedEntry, Result};

/// Adoption of the journal of another vault by an empty one: the same entries with the same times and the same chain, and
/// everything that follows from them.
///
/// From [`Adoption::begin`] to [`Adoption::finish`], the vault is marked as an incomplete copy: it cannot be opened but to
/// continue the copy, and everything else that writes to it fails with the kind
/// [`Incomplete`](crate::storage::ErrorKind::Incomplete).
///
/// Every method returns an error if the vault cannot be read or written.
pub trait Adoption: Send + Sync {
    /// Returns whether the vault is an incomplete copy.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn is_incomplete(&self) -> Result<bool>;

    /// Marks the vault as an incomplete copy, unless it is one, and returns the last adopted entry.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the vault is not an incomplete copy
    /// and not empty.
    fn begin(&self) -> Result<Head>;

    /// Adopts entries in one transaction, with their artifacts. All of it is durable when this returns; if it fails, a
    /// beginning of the entries may have been adopted. Returns the last adopted entry.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the vault is not an incomplete copy,
    /// the entries do not continue its journal, or an artifact is not the one that its entry records.
    fn adopt(&self, entries: &[AppendedEntry<'_>]) -> Result<Head>;

    /// Removes the mark: the copy is complete.
    ///
    /// # Errors
    /// Returns an error of the kind [`Invalid`](crate::storage::ErrorKind::Invalid) if the vault is not an incomplete copy
    /// whose last entry is `head`.
    fn finish(&self, head: Head) -> Result<()>;
}

/// An entry to be adopted.
#[derive(Clone, Copy, Debug)]
pub struct AppendedEntry<'e> {
    /// The entry.
    pub entry: &'e RecordedEntry,
    /// The artifact whose capture it adds, unless that was removed later. What is embedded in it has entries of its own.
    pub content: Option<&'e Prepared>,
}
