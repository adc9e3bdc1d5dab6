//! Reading of rows of which some may be damaged.

use postgres::Row;

use crate::storage::check::finding::{Finding, Subject, UNREADABLE};
use crate::storage::postgres::error::{PostgresError, PostgresResult};

/// Returns what `read` makes of each row. A row that it cannot read is a finding.
pub(super) fn read_all<T>(
    rows: &[Row],
    subject: &Subject,
    found: &mut Vec<Finding>,
    read: impl Fn(&Row) -> PostgresResult<T>,
) -> Vec<T> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        match read(row) {
            Ok(value) => all.push(value),
            Err(failure) => found.push(Finding::new(UNREADABLE, subject.clone(), of_row(failure))),
        }
    }
    all
}

/// Returns the reason that a row cannot be read.
pub(super) fn of_row(failure: PostgresError) -> String {
    format!("a row: {}", failure.at("the vault").cause())
}
