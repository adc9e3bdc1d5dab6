//! Comparison of labels with the journal entries that set them.

use std::sync::Arc;

use super::FileInspection;
use crate::digest::CoreHash;
use crate::storage::check::comparison::JournalComparison;
use crate::storage::check::finding::{Finding, Subject};
use crate::storage::check::journal_state::JournalState;
use crate::storage::sqlite::Result;

impl FileInspection<'_> {
    pub(super) fn compare_labels(
        &self,
        state: &mut JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<u64> {
        let mut compared = JournalComparison::default();
        let sql = "SELECT a.core, v.key, v.value, l.at FROM label l NOT INDEXED
                     LEFT JOIN artifact a ON a.id = l.artifact LEFT JOIN label_value v ON v.id = l.value";
        let is_whole = self.each_row(sql, Subject::Table("label".to_owned()), findings, |row| {
            // A row that refers to a missing artifact or value is a broken reference.
            let (core, key): (Option<CoreHash>, Option<Arc<str>>) = (row.get(0)?, row.get(1)?);
            let (Some(core), Some(key)) = (core, key) else { return Ok(()) };
            let (value, at): (String, i64) = (row.get(2)?, row.get(3)?);
            compared.label(state, &(core, key), (&value, at));
            Ok(())
        })?;
        // Rows that could not be read are not missing.
        if is_whole {
            compared.lost_labels(state);
        }
        Ok(compared.finish(findings))
    }
}
