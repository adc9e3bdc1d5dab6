//! The state of the search index. Its content is compared with the artifacts elsewhere.

use super::DatabaseInspection;
use crate::storage::Result;
use crate::storage::check::finding::{Finding, INDEX_DIFFERS, Subject};
use crate::storage::postgres::columns::value;

/// Queries whose count must be zero, with the finding's detail.
const QUESTIONS: &[(&str, &str)] = &[
    (
        "SELECT count(*) FROM search_state WHERE id IS DISTINCT FROM 1 OR version IS NULL OR capture IS NULL OR capture < 0",
        "states without a number, a version or a capture",
    ),
    ("SELECT greatest(count(*) - 1, 0) FROM search_state", "states more than one"),
    (
        "SELECT count(*) FROM search_state WHERE capture > (SELECT coalesce(max(id), 0) FROM capture)",
        "captures recorded as indexed that do not exist yet",
    ),
    (
        "SELECT count(*) FROM capture c JOIN search_state s ON c.id <= s.capture
          WHERE NOT EXISTS (SELECT 1 FROM search_capture i WHERE i.capture = c.id)",
        "captures recorded as indexed that are missing",
    ),
    (
        "SELECT count(*) FROM search_capture i WHERE NOT EXISTS (SELECT 1 FROM search_state s WHERE i.capture <= s.capture)",
        "captures indexed but not recorded as indexed",
    ),
    (
        "SELECT count(*) - count(DISTINCT capture) FROM search_capture",
        "captures indexed more than once, or without a number",
    ),
    (
        "SELECT count(*) FROM search_capture WHERE passages IS NULL OR passages < 0",
        "captures indexed without a number of passages",
    ),
    (
        "SELECT count(*) FROM search_passage p
          WHERE NOT EXISTS (SELECT 1 FROM search_capture i WHERE i.capture = p.capture AND p.number >= 0 AND p.number < i.passages)
             OR field IS NULL OR (words IS NULL AND rest IS NULL)",
        "passages that are not those of an indexed capture",
    ),
    (
        "SELECT count(*) - count(DISTINCT (capture, number)) FROM search_passage",
        "passages indexed more than once",
    ),
];

impl DatabaseInspection<'_> {
    /// Checks that the recorded state of the index agrees with its rows.
    pub(super) fn search_index(&self, findings: &mut Vec<Finding>) -> Result<()> {
        for (sql, detail) in QUESTIONS {
            let counted = self.attempt(|| {
                let mut counted = 0_i64;
                self.scan(sql, 1, &mut |rows| {
                    for row in rows {
                        counted += value::<i64>(row, 0)?;
                    }
                    Ok(())
                })?;
                Ok(counted)
            })?;
            match counted {
                Ok(0) => {}
                Ok(count) => {
                    let detail = format!("{detail}: {count}");
                    findings.push(Finding::new(INDEX_DIFFERS, Subject::Search, detail));
                }
                Err(damage) => findings.push(Finding::new(INDEX_DIFFERS, Subject::Search, damage)),
            }
        }
        Ok(())
    }
}
