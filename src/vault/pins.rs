//! Lists pinned artifacts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::annotations;
use super::api::{Operation, Timestamp};
use super::handle::Vault;
use crate::digest::CoreHash;
use crate::storage::StorageError;

/// A request for all pinned artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PinsRequest {}

/// All pinned artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinsAnswer {
    /// The artifacts in the order in which they were pinned.
    pub pins: Vec<PinSummary>,
}

/// A pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinSummary {
    /// Its core hash.
    pub core_hash: CoreHash,
    /// The id of its kind.
    pub kind: String,
    /// The reason, if one was given.
    pub note: Option<String>,
    /// The time at which it was pinned.
    pub pinned_at: Timestamp,
}

impl Operation for PinsRequest {
    type Answer = PinsAnswer;
    type Error = StorageError;

    const NAME: &'static str = "pins";
    const SUMMARY: &'static str = "List pinned artifacts";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<PinsAnswer, StorageError> {
        let pins = annotations::pins(&*vault.snapshot()?)?.into_iter();
        let pins = pins.map(|pinned| PinSummary {
            core_hash: pinned.artifact.core,
            kind: pinned.artifact.kind,
            note: pinned.pin.note,
            pinned_at: pinned.pin.at.into(),
        });
        Ok(PinsAnswer { pins: pins.collect() })
    }
}
