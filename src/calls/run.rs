//! A run of calls: its name, its labels, and where the calls are from.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::formats::IMPORT_ADAPTER;
use crate::json::Value;
use crate::json::members::{integer, object, text};

/// The label with the name of a run.
const RUN_LABEL: &str = "run";

/// The properties of a run that are known when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunHead {
    /// Its id, which no other run has.
    pub(crate) id: String,
    /// The name that the client gave it.
    pub(crate) name: Option<String>,
    /// When it began, if that is known.
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub(crate) labels: BTreeMap<String, String>,
    /// The rules by which its requests are compared, as JSON.
    pub(crate) rules: String,
    /// The id of the run of which it makes calls again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_run_id: Option<String>,
}

/// The labels of a run are more than an artifact can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run would have more than {MAX_LABELS} labels together")]
pub(crate) struct TooManyLabels;

/// The most labels that an artifact can have.
const MAX_LABELS: usize = 100;

impl RunHead {
    /// Creates the head of a run that begins now.
    pub(crate) fn new(name: Option<&str>, number: u64, at: DateTime<Utc>, rules: String) -> Self {
        let time = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let id = format!("{}-{time}-{}-{number}", name.unwrap_or("gateway"), std::process::id());
        Self {
            id,
            name: name.map(str::to_owned),
            started_at: Some(at),
            labels: BTreeMap::new(),
            rules,
            source_run_id: None,
        }
    }

    /// Adds labels to those of the run.
    ///
    /// # Errors
    /// Returns an error if it would have too many, and adds none then.
    pub(crate) fn add_labels(&mut self, labels: &BTreeMap<String, String>) -> Result<(), TooManyLabels> {
        let before = self.labels.clone();
        self.labels.extend(labels.clone());
        if self.all_labels().len() > MAX_LABELS {
            self.labels = before;
            return Err(TooManyLabels);
        }
        Ok(())
    }

    /// Returns the labels of what is stored, with the name of the run.
    pub(crate) fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        if let Some(name) = &self.name {
            labels.entry(RUN_LABEL.to_owned()).or_insert_with(|| name.clone());
        }
        labels
    }
}

/// The version of the profile of run packs in `docs/gateway.md`. Those of version 1 are read, too.
pub(crate) const PROFILE: u64 = 2;

/// The version of the profile of sessions.
pub(crate) const SESSION_PROFILE: u64 = 1;

/// The attribute of run packs with the program that made them.
pub(crate) const SOURCE: &str = "source";

/// The sources of run packs that have the profile, in the order in which recordings are looked for.
pub(crate) const SOURCES: [&str; 2] = [CallOrigin::Gateway.source(), IMPORT];

const IMPORT: &str = "runvault-import";

/// Where the calls of a run are from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallOrigin<'o> {
    /// A gateway of this machine forwarded them.
    Gateway,
    /// A file of another program.
    File(&'o ImportSource),
}

/// A file of another program.
#[derive(Clone, Debug)]
pub(crate) struct ImportSource {
    /// The format of the file.
    pub(crate) format: &'static str,
    /// The digests of the file, or of the files.
    pub(crate) digests: Vec<Digest>,
    /// Other properties of the run that the file states.
    pub(crate) details: Vec<(&'static str, Value<'static>)>,
}

impl CallOrigin<'_> {
    /// Returns the adapter that sessions state, with the version of their profile.
    pub(crate) const fn adapter(self) -> &'static str {
        match self {
            Self::Gateway => "runvault-gateway/1",
            Self::File(_) => IMPORT_ADAPTER,
        }
    }

    /// Returns the source that run packs state.
    pub(crate) const fn source(self) -> &'static str {
        match self {
            Self::Gateway => "runvault-gateway",
            Self::File(_) => IMPORT,
        }
    }

    pub(crate) const fn capture_mode(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::File(_) => "import",
        }
    }

    /// Returns the environment in which the calls were recorded. That of imported calls is not known, and the machine
    /// that imports them must not change their hashes.
    pub(crate) fn environment(self) -> Value<'static> {
        match self {
            Self::Gateway => object([("os", text(std::env::consts::OS))]),
            Self::File(_) => object([]),
        }
    }

    pub(crate) fn versions(self) -> Value<'static> {
        match self {
            Self::Gateway => object([("runvault", text(env!("CARGO_PKG_VERSION")))]),
            Self::File(_) => object([]),
        }
    }

    /// Returns what documents with this version of their profile state of the file.
    pub(crate) fn import(self, profile: u64) -> Option<Value<'static>> {
        let Self::File(ImportSource { format, digests, details }) = self else { return None };
        let digests = digests.iter().map(|digest| text(digest.to_string())).collect();
        let members = [("format", text(*format)), ("originals", Value::Array(digests))];
        let members = members.into_iter().chain(details.iter().cloned());
        Some(object(members.chain([("profile", integer(profile))])))
    }
}
