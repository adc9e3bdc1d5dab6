//! Files, and what is read of them.

use std::collections::BTreeSet;

use super::exchange::ImportedExchange;
use crate::json::Value;

/// A file to convert.
#[derive(Clone, Debug)]
pub struct ConvertInput {
    /// Its name, for reports.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The runs read from files of a format.
#[derive(Debug, Default)]
pub(super) struct ImportedRuns {
    pub(super) runs: Vec<ImportedRun>,
    /// Values that cannot be mapped: the number of the file, the location and the reason.
    pub(super) unmapped: Vec<(usize, String, String)>,
}

/// The calls of a run, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct ImportedRun {
    /// The name that distinguishes the run from others in the file.
    pub(super) name: Option<String>,
    /// Other properties of the run that the file states.
    pub(super) details: Vec<(&'static str, Value<'static>)>,
    /// The numbers of the files that it is from; all of them if it is empty.
    pub(super) files: BTreeSet<usize>,
    /// The calls, each with the number of its file.
    pub(super) exchanges: Vec<(usize, ImportedExchange)>,
}
