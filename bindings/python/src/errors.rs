//! Errors of the library as exceptions, by kind.

use std::error::Error;

use pyo3::prelude::*;
use runvault::digest::CoreHash;
use runvault::gateway::{FinishError, InvalidRule, InvalidUpstream, StartError};
use runvault::storage::{ErrorKind, SqlError, StorageError};
use runvault::validation::Report;
use runvault::vault::HashTarget;
use runvault::vault::replay::{PlayerError, ReplayError};
use runvault::vault::search::SearchError;
use runvault::{AddError, LookupError, RemoveError};
use serde::Serialize;
use serde_json::{Value, json};

/// What an exception is made of.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The class in `runvault/_errors.py`.
    class: &'static str,
    /// What kind of error it is, in lowercase with hyphens.
    kind: &'static str,
    message: String,
    /// Further attributes of the exception.
    details: Value,
}

impl Failure {
    pub(crate) fn new(class: &'static str, kind: &'static str, message: impl Into<String>) -> Self {
        Self { class, kind, message: message.into(), details: json!({}) }
    }

    /// A value that is not valid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("InvalidError", "invalid", message)
    }

    fn with(self, details: Value) -> Self {
        Self { details, ..self }
    }

    /// Returns the failure for any error of the library: that of the first one known among it and its causes.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(current) = cause {
            if let Some(known) = known(current) {
                return Self { message: error.to_string(), ..known };
            }
            cause = current.source();
        }
        Self::new("RunvaultError", "other", error.to_string())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| exception(py, failure).unwrap_or_else(|error| error))
    }
}

fn exception(py: Python<'_>, failure: Failure) -> PyResult<PyErr> {
    let Failure { class, kind, message, details } = failure;
    let class = py.import("runvault._errors")?.getattr(class)?;
    let details = py.import("json")?.call_method1("loads", (details.to_string(),))?;
    Ok(PyErr::from_value(class.call1((message, kind, details))?))
}

/// Returns the JSON of an answer.
pub(crate) fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| Failure::new("RunvaultError", "other", error.to_string()).into())
}

fn known(error: &(dyn Error + 'static)) -> Option<Failure> {
    if let Some(error) = error.downcast_ref::<StorageError>() {
        return Some(storage(error));
    }
    if let Some(error) = error.downcast_ref::<LookupError>() {
        return Some(lookup(error));
    }
    if let Some(error) = error.downcast_ref::<SearchError>() {
        return Some(search(error));
    }
    if let Some(error) = error.downcast_ref::<SqlError>() {
        return Some(sql(error));
    }
    if let Some(error) = error.downcast_ref::<AddError>() {
        return Some(match error {
            AddError::Rejected(report) => rejected(report),
            AddError::Store(error) => storage(error),
        });
    }
    if let Some(error) = error.downcast_ref::<PlayerError>() {
        return Some(match error {
            PlayerError::Rejected(report) => rejected(report),
            _ => Failure::new("KindError", "no-recording", ""),
        });
    }
    if let Some(error) = error.downcast_ref::<ReplayError>() {
        return Some(match error {
            ReplayError::Lookup(error) => lookup(error),
            ReplayError::Miss { .. } => Failure::new("NotRecordedError", "not-recorded", ""),
        });
    }
    if let Some(error) = error.downcast_ref::<RemoveError>() {
        return Some(match error {
            RemoveError::Pinned { .. } => Failure::new("ConflictError", "pinned", ""),
            RemoveError::Contained { .. } => Failure::new("ConflictError", "contained", ""),
            RemoveError::Linked { .. } => Failure::new("ConflictError", "linked", ""),
            _ => return None,
        });
    }
    gateway(error)
}

fn gateway(error: &(dyn Error + 'static)) -> Option<Failure> {
    if let Some(error) = error.downcast_ref::<StartError>() {
        return Some(match error {
            StartError::Listen { .. } => Failure::new("GatewayError", "listen", ""),
            StartError::NoRecording(_) => Failure::new("NotRecordedError", "no-recording", ""),
            StartError::Vault(error) => lookup(error),
        });
    }
    if error.is::<FinishError>() && error.source().is_none() {
        return Some(Failure::new("GatewayError", "finish", ""));
    }
    (error.is::<InvalidRule>() || error.is::<InvalidUpstream>()).then(|| Failure::invalid(""))
}

fn rejected(report: &Report) -> Failure {
    let details = json!({"violations": report.violations(), "violations_omitted": report.omitted()});
    Failure::new("RejectedError", "rejected", "").with(details)
}

fn storage(error: &StorageError) -> Failure {
    let (class, kind) = match error.kind() {
        ErrorKind::Missing | ErrorKind::NoDatabase => ("VaultNotFoundError", "missing"),
        ErrorKind::Exists => ("VaultExistsError", "exists"),
        ErrorKind::NotAVault => ("NotAVaultError", "not-a-vault"),
        ErrorKind::HardLinks => ("VaultError", "hard-links"),
        ErrorKind::MountPoint => ("VaultError", "mount-point"),
        ErrorKind::Replaced => ("VaultError", "replaced"),
        ErrorKind::Newer => ("VersionError", "newer"),
        ErrorKind::Older => ("VersionError", "older"),
        ErrorKind::Incomplete => ("VaultError", "incomplete"),
        ErrorKind::Full => ("VaultError", "full"),
        ErrorKind::ReadOnly => ("ReadOnlyError", "read-only"),
        ErrorKind::Busy => ("BusyError", "busy"),
        ErrorKind::Damaged => ("DamagedError", "damaged"),
        ErrorKind::VaultDamaged => ("DamagedError", "vault-damaged"),
        ErrorKind::IndexDamaged => ("DamagedError", "index-damaged"),
        ErrorKind::Gone => ("NotFoundError", "gone"),
        ErrorKind::Invalid => ("InvalidError", "invalid"),
        ErrorKind::Pinned => ("ConflictError", "pinned"),
        ErrorKind::Unsupported => ("UnsupportedError", "unsupported"),
        ErrorKind::Io => ("VaultError", "io"),
        ErrorKind::Device => ("VaultError", "device"),
        ErrorKind::Connection => ("VaultConnectionError", "connection"),
        ErrorKind::Database => ("VaultError", "database"),
    };
    Failure::new(class, kind, error.to_string())
}

fn lookup(error: &LookupError) -> Failure {
    let hashes = |hashes: Vec<CoreHash>| json!({"candidates": hashes});
    match error {
        LookupError::Store(error) => storage(error),
        LookupError::NotFound(_)
        | LookupError::NoSuchTag(_)
        | LookupError::NoSuchName { .. }
        | LookupError::NotMentioned { .. }
        | LookupError::CaptureNotFound { .. }
        | LookupError::LatestOutOfRange { .. } => Failure::new("NotFoundError", "not-found", ""),
        LookupError::Removed(_) => Failure::new("RemovedError", "removed", ""),
        LookupError::Mentioned(_) => Failure::new("NotFoundError", "mentioned", ""),
        LookupError::AmbiguousName { candidates, .. } => Failure::new("AmbiguousError", "ambiguous", "")
            .with(hashes(candidates.iter().map(|candidate| candidate.core).collect())),
        LookupError::AmbiguousHandle { meanings, .. } => Failure::new("AmbiguousError", "ambiguous", "")
            .with(hashes(meanings.iter().map(|(_, core)| *core).collect())),
        LookupError::AmbiguousMention { candidates, .. } => {
            Failure::new("AmbiguousError", "ambiguous", "").with(json!({"candidates": candidates}))
        }
        LookupError::Ambiguous { candidates, .. } => {
            let candidates: Vec<_> = candidates.iter().map(HashTarget::digest).collect();
            Failure::new("AmbiguousError", "ambiguous", "").with(json!({"candidates": candidates}))
        }
        LookupError::KindMismatch { .. } => Failure::new("KindError", "kind-mismatch", ""),
        LookupError::NotARun { .. } => Failure::new("KindError", "not-a-run", ""),
        LookupError::SeveralMembers { .. } => Failure::new("KindError", "several-members", ""),
        LookupError::NoRecording { .. } => Failure::new("KindError", "no-recording", ""),
        LookupError::Unreadable { .. } => Failure::new("UnsupportedError", "unreadable", ""),
    }
}

fn search(error: &SearchError) -> Failure {
    match error {
        SearchError::NoIndex => Failure::new("NoIndexError", "no-index", ""),
        SearchError::StaleIndex => Failure::new("NoIndexError", "stale-index", ""),
        SearchError::Differs { .. } => Failure::new("DamagedError", "index-damaged", ""),
        SearchError::Words(_) => Failure::new("InvalidError", "words", ""),
        SearchError::NoSuchField(_) => Failure::new("InvalidError", "no-such-field", ""),
        SearchError::Store(error) => storage(error),
    }
}

fn sql(error: &SqlError) -> Failure {
    match error {
        SqlError::Store(error) => storage(error),
        SqlError::Unreadable { .. } => Failure::new("UnsupportedError", "unreadable", ""),
        _ => Failure::new("QueryError", "query", ""),
    }
}
