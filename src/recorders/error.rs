//! Reasons why a file is not converted.

use crate::json::reader::{Defect, Limit, ReadError};
use crate::validation::RuleInfo;

pub use crate::vault::rules::RULES;
pub(super) use crate::vault::rules::{LIMITS, SHAPE, SYNTAX};

/// The reason that a file is not converted. Nothing of it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {location}: {message} (rule {rule})")]
pub struct ConvertError {
    /// The file.
    pub file: String,
    /// The location in it.
    pub location: String,
    /// The id of the rule; [`RULES`] explains it.
    pub rule: &'static str,
    /// The message.
    pub message: String,
    /// The limit that the file exceeds; `None` also if that limit is fixed.
    pub limit: Option<Limit>,
}

/// A defect, before the name of the file is known.
#[derive(Debug)]
pub(super) struct Fault {
    location: String,
    rule: RuleInfo,
    message: String,
    limit: Option<Limit>,
}

pub(super) type RecorderResult<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(super) fn new(rule: RuleInfo, location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { location: location.into(), rule, message: message.into(), limit: None }
    }

    /// Returns the fault of a file that exceeds a limit that callers set.
    pub(super) fn beyond(limit: Limit, location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { limit: Some(limit), ..Self::new(LIMITS, location, message) }
    }

    /// Returns the fault of a text that begins at line `first` of the file.
    pub(super) fn of_text(error: &ReadError, first: usize) -> Self {
        let rule = if matches!(error.defect, Defect::TooLarge | Defect::TooDeep) { LIMITS } else { SYNTAX };
        let location = format!("line {} column {}", error.line + first - 1, error.column);
        Self { limit: error.limit, ..Self::new(rule, location, error.message.clone()) }
    }

    /// Returns the fault of a file in an archive.
    pub(super) fn inside(self, entry: &str) -> Self {
        Self { location: format!("{entry}: {}", self.location), ..self }
    }

    pub(super) fn in_file(self, file: &str) -> ConvertError {
        let Self { location, rule, message, limit } = self;
        ConvertError { file: file.to_owned(), location, rule: rule.id, message, limit }
    }
}
