//! Comparison of labels with the journal entries that set them.

use std::sync::Arc;

use super::FileInspection;
use crate::digest::CoreHash;
use crate::storage::check::finding::{
    ANNOTATION_DIFFERS, ANNOTATION_LOST, ANNOTATION_UNRECORDED, Finding, Subject,
};
use crate::storage::check::journal_state::{JournalState, LabelEntry};
use crate::storage::sqlite::Result;

fn subject(core: CoreHash, key: &str) -> Subject {
    Subject::Label { core, key: key.to_owned() }
}

impl FileInspection<'_> {
    pub(super) fn compare_labels(
        &self,
        state: &mut JournalState,
        findings: &mut Vec<Finding>,
    ) -> Result<u64> {
        let expected = &mut state.labels;
        let (mut count, mut found) = (0, Vec::new());
        let read = self.look(Subject::Table("label".to_owned()), findings, || {
            let mut statement = self.connection.prepare(
                "SELECT a.core, v.key, v.value, l.at FROM label l NOT INDEXED
                   LEFT JOIN artifact a ON a.id = l.artifact LEFT JOIN label_value v ON v.id = l.value",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                // A row that refers to a missing artifact or value is a broken reference.
                let (core, key): (Option<CoreHash>, Option<Arc<str>>) = (row.get(0)?, row.get(1)?);
                let (Some(core), Some(key)) = (core, key) else { continue };
                let subject = subject(core, &key);
                let Some(recorded) = expected.remove(&(core, key)) else {
                    found.push(Finding::new(ANNOTATION_UNRECORDED, subject, "no entry set it"));
                    continue;
                };
                count += 1;
                let (value, at): (String, i64) = (row.get(2)?, row.get(3)?);
                if let Some(detail) = recorded.difference(&value, at) {
                    found.push(Finding::new(ANNOTATION_DIFFERS, subject, detail));
                }
            }
            Ok(())
        })?;
        // Rows that could not be read are not missing.
        if read.is_some() {
            for ((core, key), LabelEntry { seq, .. }) in std::mem::take(expected) {
                let detail = format!("entry {seq} set it");
                found.push(Finding::new(ANNOTATION_LOST, subject(core, &key), detail));
            }
        }
        found.sort_by(|one, other| one.key().cmp(&other.key()));
        findings.append(&mut found);
        Ok(count)
    }
}
