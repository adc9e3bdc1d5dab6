//! SQL queries. A query runs on a thread of its own, a few batches of rows ahead of who reads them.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};
use runvault::Vault;
use runvault::artifact::Cell;
use runvault::storage::SqlError;

use crate::errors::Failure;
use crate::interrupt;

/// Number of rows that are handed over together.
const BATCH: usize = 256;

/// Number of batches that are computed ahead.
const AHEAD: usize = 2;

/// The value of a parameter of a query; `None` is NULL.
#[derive(FromPyObject)]
pub(crate) enum Parameter {
    /// An integer, or a truth value.
    Integer(i64),
    /// A number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl From<Parameter> for Cell {
    fn from(parameter: Parameter) -> Self {
        match parameter {
            Parameter::Integer(value) => Self::Integer(value),
            Parameter::Real(value) => Self::Real(value),
            Parameter::Text(value) => Self::Text(value),
            Parameter::Blob(value) => Self::Blob(value),
        }
    }
}

type Row = Vec<Cell>;

/// What the thread of a query sends.
enum Message {
    Columns(Vec<String>),
    Rows(VecDeque<Row>),
    Failed(Failure),
}

/// The rows of a result.
#[pyclass(frozen, module = "runvault._native")]
pub(crate) struct SqlRows {
    columns: Vec<String>,
    left: Mutex<Left>,
}

struct Left {
    receiver: Receiver<Message>,
    rows: VecDeque<Row>,
}

impl SqlRows {
    /// Starts a query, and waits until it is prepared.
    ///
    /// # Errors
    /// Returns an error if it is not valid, or the vault cannot be read.
    pub(crate) fn start(
        py: Python<'_>,
        vault: Arc<Vault>,
        query: String,
        parameters: BTreeMap<String, Option<Parameter>>,
    ) -> PyResult<Self> {
        let (sender, mut receiver) = mpsc::sync_channel(AHEAD);
        let parameters: Vec<(String, Cell)> = parameters
            .into_iter()
            .map(|(name, value)| (name, value.map_or(Cell::Null, Cell::from)))
            .collect();
        let _thread = thread::Builder::new().name("runvault-sql".to_owned()).spawn(move || {
            if let Err(error) = answer(&vault, &query, &parameters, &sender) {
                // If the receiver has left, the error is of no interest either.
                let _ = sender.send(Message::Failed(Failure::of(&error)));
            }
        })?;
        match interrupt::receive(py, &mut receiver)? {
            Some(Message::Columns(columns)) => {
                Ok(Self { columns, left: Mutex::new(Left { receiver, rows: VecDeque::new() }) })
            }
            Some(Message::Failed(failure)) => Err(failure.into()),
            _ => Err(ended()),
        }
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<Row>> {
        let mut left = self.left.lock_py_attached(py).map_err(|_| ended())?;
        if left.rows.is_empty() {
            match interrupt::receive(py, &mut left.receiver)? {
                Some(Message::Rows(rows)) => left.rows = rows,
                Some(Message::Failed(failure)) => return Err(failure.into()),
                _ => return Ok(None),
            }
        }
        Ok(left.rows.pop_front())
    }
}

#[pymethods]
impl SqlRows {
    /// Returns the names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn __iter__(of: PyRef<'_, Self>) -> PyRef<'_, Self> {
        of
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(row) = self.next(py)? else { return Ok(None) };
        let cells = row.into_iter().map(|cell| value(py, cell)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, cells).map(Some)
    }
}

fn value(py: Python<'_>, cell: Cell) -> PyResult<Bound<'_, PyAny>> {
    Ok(match cell {
        Cell::Null => py.None().into_bound(py),
        Cell::Integer(number) => number.into_pyobject(py)?.into_any(),
        Cell::Real(number) => number.into_pyobject(py)?.into_any(),
        Cell::Text(text) => text.into_pyobject(py)?.into_any(),
        Cell::Blob(bytes) => PyBytes::new(py, &bytes).into_any(),
    })
}

/// Runs a query until it ends or its receiver has left.
fn answer(
    vault: &Vault,
    query: &str,
    parameters: &[(String, Cell)],
    sender: &SyncSender<Message>,
) -> Result<(), SqlError> {
    let parameters: Vec<(&str, Cell)> =
        parameters.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let reader = vault.sql()?;
    let mut statement = reader.prepare(query, &parameters)?;
    if sender.send(Message::Columns(statement.columns().to_vec())).is_err() {
        return Ok(());
    }
    let mut rows = VecDeque::new();
    for row in statement.rows() {
        rows.push_back(row?);
        if rows.len() == BATCH && sender.send(Message::Rows(std::mem::take(&mut rows))).is_err() {
            return Ok(());
        }
    }
    if !rows.is_empty() {
        // The same as above: the receiver has left.
        let _ = sender.send(Message::Rows(rows));
    }
    Ok(())
}

fn ended() -> PyErr {
    Failure::new("RunvaultError", "other", "the query has ended").into()
}
