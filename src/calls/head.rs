//! The name of a run.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

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
        Self { id, name: name.map(str::to_owned), started_at: Some(at), labels: BTreeMap::new(), rules }
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
