//! Players of recordings.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use runvault::digest::Digest;
use runvault::vault::replay::{
    Player as Recording, PlayerRequest, RecordedResponse, Repeat, ReplayMiss, ReplayMode,
};

use crate::errors::{Failure, to_json};

/// A player of a recording, in place of the recorded model or tool.
#[pyclass(frozen, module = "runvault._native")]
pub(crate) struct Player(Mutex<Recording>);

impl Player {
    pub(crate) fn new(recording: Recording, sequential: bool, repeat: bool) -> Self {
        let mode = if sequential { ReplayMode::Sequential } else { ReplayMode::Lookup };
        let repeat = if repeat { Repeat::Last } else { Repeat::Never };
        Self(Mutex::new(recording.in_mode(mode).repeating(repeat)))
    }

    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Recording) -> Result<T, Failure>,
    ) -> PyResult<T> {
        let mut recording = self
            .0
            .lock_py_attached(py)
            .map_err(|_| Failure::new("RunvaultError", "other", "a player failed"))?;
        Ok(work(&mut recording)?)
    }

    fn play(&self, py: Python<'_>, request: &PlayerRequest) -> PyResult<String> {
        let played = self.with(py, |recording| {
            recording.play(request).map(|played| RecordedResponse::from(played.exchange)).map_err(missed)
        })?;
        to_json(&played)
    }
}

#[pymethods]
impl Player {
    /// Returns the recorded response to a prompt.
    fn respond(&self, py: Python<'_>, prompt: &str) -> PyResult<String> {
        self.with(py, |recording| recording.respond(prompt).map(str::to_owned).map_err(missed))
    }

    /// Returns the recorded exchange for the hash of a prompt, as JSON.
    fn respond_to(&self, py: Python<'_>, prompt: &str, occurrence: Option<usize>) -> PyResult<String> {
        let digest: Digest =
            prompt.parse().map_err(|_| Failure::invalid("the hash of a prompt is not one"))?;
        let occurrence = occurrence.map(|number| {
            NonZeroUsize::new(number).ok_or_else(|| Failure::invalid("occurrences are counted from 1"))
        });
        self.play(py, &PlayerRequest { occurrence: occurrence.transpose()?, ..PlayerRequest::prompt(digest) })
    }

    /// Returns the recorded exchange for a call of a tool with these arguments, which are JSON, as JSON.
    fn call(&self, py: Python<'_>, tool: &str, arguments: &str) -> PyResult<String> {
        let request =
            PlayerRequest::call(tool, arguments).map_err(|error| Failure::invalid(error.to_string()))?;
        self.play(py, &request)
    }

    /// Returns the next recorded exchange, as JSON.
    fn next_response(&self, py: Python<'_>) -> PyResult<String> {
        self.play(py, &PlayerRequest::default())
    }

    /// Returns the exchanges that were not played yet, as JSON.
    fn unused(&self, py: Python<'_>) -> PyResult<String> {
        let unused = self.with(py, |recording| {
            Ok(recording.unused().map(RecordedResponse::from).collect::<Vec<RecordedResponse>>())
        })?;
        to_json(&unused)
    }
}

fn missed(miss: ReplayMiss) -> Failure {
    let kind = match miss {
        ReplayMiss::RecordedError { .. } => "recorded-error",
        _ => "not-recorded",
    };
    Failure::new("NotRecordedError", kind, miss.to_string())
}
