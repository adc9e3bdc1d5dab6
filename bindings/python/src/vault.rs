//! A vault.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use pyo3::types::{PyBytes, PyDict};
use runvault::storage::{Actor, Capability, StorageError};
use runvault::vault::api::{Operation, OperationVisitor, visit_operations};
use runvault::vault::resolve::ResolveRequest;
use runvault::vault::search::BuildSearchIndexRequest;
use runvault::{LocatedCapture, LookupError, Vault as Opened};
use std::sync::RwLock;

use crate::add::{self, AddOptions, Document};
use crate::errors::Failure;
use crate::interrupt::{self, OnInterrupt};
use crate::player::Player;
use crate::sql::{Parameter, SqlRows};

/// A vault. It can be used by several threads at once.
#[pyclass(frozen, module = "runvault._native")]
pub(crate) struct Vault(RwLock<Option<Arc<Opened>>>);

impl Vault {
    fn opening(
        py: Python<'_>,
        path: PathBuf,
        actor: Option<String>,
        open: fn(&Path) -> Result<Opened, StorageError>,
    ) -> PyResult<Self> {
        let work = move || -> Result<Opened, Failure> {
            let vault = open(&path).map_err(|error| Failure::of(&error))?;
            let Some(actor) = actor else { return Ok(vault) };
            let actor = Actor::new(&actor).map_err(|error| Failure::invalid(error.to_string()))?;
            Ok(vault.acting_as(actor))
        };
        let vault = interrupt::run(py, &OnInterrupt::complete(), work)??;
        Ok(Self(RwLock::new(Some(Arc::new(vault)))))
    }

    /// Returns the vault.
    ///
    /// # Errors
    /// Returns an error if it was closed.
    pub(crate) fn opened(&self, py: Python<'_>) -> PyResult<Arc<Opened>> {
        let vault = self.0.read_py_attached(py).ok().and_then(|vault| vault.clone());
        vault.ok_or_else(|| Failure::new("VaultError", "closed", "the vault is closed").into())
    }

    /// Runs what only reads.
    fn reading<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Opened) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let vault = self.opened(py)?;
        Ok(interrupt::run(py, &OnInterrupt::Leave, move || work(&vault))??)
    }
}

#[pymethods]
impl Vault {
    /// Opens the vault at an address.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, actor: Option<String>) -> PyResult<Self> {
        Self::opening(py, path, actor, Opened::open)
    }

    /// Opens the vault at an address, and creates it if it does not exist.
    #[staticmethod]
    fn open_or_create(py: Python<'_>, path: PathBuf, actor: Option<String>) -> PyResult<Self> {
        Self::opening(py, path, actor, Opened::open_or_create)
    }

    /// Creates a vault at an address.
    #[staticmethod]
    fn create(py: Python<'_>, path: PathBuf, actor: Option<String>) -> PyResult<Self> {
        Self::opening(py, path, actor, Opened::create)
    }

    /// Creates an empty vault in memory.
    #[staticmethod]
    fn in_memory() -> Self {
        Self(RwLock::new(Some(Arc::new(Opened::in_memory()))))
    }

    /// Closes the vault. Its files are closed after what is still running on other threads.
    fn close(&self, py: Python<'_>) {
        let vault = self.0.write_py_attached(py).ok().and_then(|mut vault| vault.take());
        // Closing writes the log back into the file.
        py.detach(move || drop(vault));
    }

    /// Returns whether the vault is closed.
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.opened(py).is_err()
    }

    /// Returns the path of the vault, or its address without a password.
    fn path(&self, py: Python<'_>) -> PyResult<PathBuf> {
        Ok(self.opened(py)?.path().to_owned())
    }

    /// Runs an operation: JSON in, JSON out.
    fn run(&self, py: Python<'_>, name: String, request: String) -> PyResult<String> {
        let vault = self.opened(py)?;
        let mut named = Named { name: &name, changes: None };
        visit_operations(&mut named);
        let on_interrupt = match named.changes {
            None => return Err(Failure::invalid(format!("there is no operation {name:?}")).into()),
            Some(true) => OnInterrupt::complete(),
            Some(false) => OnInterrupt::Leave,
        };
        let work = move || {
            let mut dispatch = Dispatch { name: &name, request: &request, vault: &vault, answer: None };
            visit_operations(&mut dispatch);
            dispatch.answer
        };
        let answer = interrupt::run(py, &on_interrupt, work)?;
        Ok(answer.unwrap_or_else(|| Err(Failure::invalid("there is no such operation")))?)
    }

    /// Returns the core hash and the capture hash that a text refers to.
    fn locate(&self, py: Python<'_>, text: String) -> PyResult<(String, String, bool)> {
        self.reading(py, move |vault| {
            let LocatedCapture { artifact, capture } = located(vault, &text)?;
            let is_capture = text.parse().is_ok_and(|prefix: runvault::digest::DigestPrefix| {
                !prefix.matches(&artifact.core.0) && prefix.matches(&capture.capture.0)
            });
            Ok((artifact.core.to_string(), capture.capture.to_string(), is_capture))
        })
    }

    /// Returns the exact bytes of an artifact that is one document, hashed again.
    fn get<'py>(&self, py: Python<'py>, text: String) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.reading(py, move |vault| {
            let request = ResolveRequest { text, any_artifact: true };
            request.read(vault).map_err(|error| Failure::of(&error))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the files of an artifact by name, hashed again.
    fn members<'py>(&self, py: Python<'py>, text: String) -> PyResult<Bound<'py, PyDict>> {
        let members = self.reading(py, move |vault| {
            let request = ResolveRequest { text, any_artifact: true };
            request.members(vault).map_err(|error| Failure::of(&error))
        })?;
        let files = PyDict::new(py);
        for member in members {
            files.set_item(member.name, PyBytes::new(py, &member.bytes))?;
        }
        Ok(files)
    }

    /// Adds documents and files, and returns what was done with each, as JSON.
    fn add(
        &self,
        py: Python<'_>,
        inputs: Vec<Document>,
        labels: BTreeMap<String, String>,
        note: Option<String>,
        options: AddOptions,
    ) -> PyResult<Vec<String>> {
        add::run(py, self.opened(py)?, inputs, (labels, note), options)
    }

    /// Updates the search index, which is created if it does not exist.
    fn build_index(&self, py: Python<'_>) -> PyResult<()> {
        let vault = self.opened(py)?;
        let work =
            move || vault.run(&BuildSearchIndexRequest {}).map(drop).map_err(|error| Failure::of(&error));
        Ok(interrupt::run(py, &OnInterrupt::complete(), work)??)
    }

    /// Adds what is new to the search index, without waiting for others, and builds it if there is none.
    fn catch_up_index(&self, py: Python<'_>) -> PyResult<()> {
        let vault = self.opened(py)?;
        let work = move || vault.catch_up_search(&mut |_| {}).map(drop).map_err(|error| Failure::of(&error));
        Ok(interrupt::run(py, &OnInterrupt::complete(), work)??)
    }

    /// Runs a query.
    fn sql(
        &self,
        py: Python<'_>,
        query: String,
        parameters: BTreeMap<String, Option<Parameter>>,
    ) -> PyResult<SqlRows> {
        SqlRows::start(py, self.opened(py)?, query, parameters)
    }

    /// Returns a player of a recording.
    fn player(&self, py: Python<'_>, text: String, sequential: bool, repeat: bool) -> PyResult<Player> {
        let player = self.reading(py, move |vault| {
            vault.player(&located(vault, &text)?).map_err(|error| Failure::of(&error))
        })?;
        Ok(Player::new(player, sequential, repeat))
    }

    /// Returns whether SQL queries are possible.
    fn has_sql(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.opened(py)?.has(Capability::Sql))
    }
}

/// Returns the artifact and the capture that a text refers to.
pub(crate) fn located(vault: &Opened, text: &str) -> Result<LocatedCapture, Failure> {
    let request = ResolveRequest { text: text.to_owned(), any_artifact: true };
    request.locate(vault).map_err(|error: LookupError| Failure::of(&error))
}

/// Whether the operation of a name changes the vault.
struct Named<'n> {
    name: &'n str,
    changes: Option<bool>,
}

impl OperationVisitor for Named<'_> {
    fn visit<O: Operation>(&mut self) {
        if O::NAME == self.name {
            self.changes = Some(O::CHANGES);
        }
    }
}

/// Runs the operation of a name.
struct Dispatch<'d> {
    name: &'d str,
    request: &'d str,
    vault: &'d Opened,
    answer: Option<Result<String, Failure>>,
}

impl OperationVisitor for Dispatch<'_> {
    fn visit<O: Operation>(&mut self) {
        if O::NAME == self.name {
            self.answer = Some(answer::<O>(self.vault, self.request));
        }
    }
}

fn answer<O: Operation>(vault: &Opened, request: &str) -> Result<String, Failure> {
    let request: O =
        serde_json::from_str(request).map_err(|error| Failure::invalid(format!("{}: {error}", O::NAME)))?;
    let answer = vault.run(&request).map_err(|error| Failure::of(&error))?;
    serde_json::to_string(&answer).map_err(|error| Failure::new("RunvaultError", "other", error.to_string()))
}
