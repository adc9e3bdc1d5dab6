//! Files, and what is read of them.

use super::exchange::Exchange;
use crate::json::Value;

/// A file to convert.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name, for reports.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a format has read.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) runs: Vec<RecordedRun>,
    /// What cannot be mapped: the number of the file, the location and the reason.
    pub(super) unmapped: Vec<(usize, String, String)>,
}

/// The calls of a run, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct RecordedRun {
    /// What distinguishes the run from others in the file.
    pub(super) name: Option<String>,
    /// What else the file states of it.
    pub(super) details: Vec<(&'static str, Value<'static>)>,
    /// The calls, each with the number of its file.
    pub(super) exchanges: Vec<(usize, Exchange)>,
}
