//! The operations of a vault as data: requests, answers, and the document that describes them.
//!
//! Every operation has a request type and an answer type in a file of its own. Both are serde types, so that the
//! command line, a server and other languages exchange the same documents. [`document`] describes all of them in
//! OpenAPI 3.1; `docs/api.json` is that document.

mod json_value;
mod types;

pub use super::openapi::{OperationVisitor, document, visit_operations};
pub use json_value::{JsonText, JsonValue};
pub use types::{
    ArtifactName, ArtifactSummary, FindingSummary, PathName, PlaceSummary, SignatureName, Timestamp, bytes_of,
};

pub use crate::storage::TimeBasis;

use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::handle::Vault;

/// An operation of a vault: a request, which runs and returns its answer.
pub trait Operation: Serialize + DeserializeOwned + ToSchema {
    /// The answer.
    type Answer: Serialize + DeserializeOwned + ToSchema;
    /// The reason that there is no answer.
    type Error: std::error::Error + 'static;

    /// The name of the operation, in lowercase with hyphens.
    const NAME: &'static str;
    /// The summary of the operation, as a verb phrase.
    const SUMMARY: &'static str;
    /// Whether it changes the vault.
    const CHANGES: bool = false;

    /// Runs the operation. It reads one snapshot, or writes one transaction, of the vault.
    ///
    /// # Errors
    /// Each operation documents its errors.
    fn run(&self, vault: &Vault) -> Result<Self::Answer, Self::Error>;
}

impl Vault {
    /// Runs an operation.
    ///
    /// # Errors
    /// Same as [`Operation::run`] of the request.
    pub fn run<O: Operation>(&self, request: &O) -> Result<O::Answer, O::Error> {
        request.run(self)
    }
}
