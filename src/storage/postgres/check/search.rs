//! The state of the search index. Its content is compared with the artifacts elsewhere.

use super::DatabaseInspection;
use crate::storage::Result;
use crate::storage::check::finding::{Finding, INDEX_DIFFERS};
use crate::storage::sql::{self, Question};

impl DatabaseInspection<'_> {
    /// Checks that the recorded state of the index agrees with its rows.
    pub(super) fn search_index(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let mut found = Vec::new();
        sql::ask(self, &questions(), &mut found)?;
        findings.extend(found.into_iter().map(|finding| Finding { info: INDEX_DIFFERS, ..finding }));
        Ok(())
    }
}

fn questions() -> [Question; 6] {
    [
        Question::of_search(
            "states without a number, a version or a capture: {}",
            "search_state WHERE id IS DISTINCT FROM 1 OR version IS NULL OR capture IS NULL OR capture < 0",
        ),
        Question::of_search(
            "states more than one: {}",
            "(SELECT count(*) AS states FROM search_state) s WHERE states > 1",
        ),
        Question::of_search(
            "captures recorded as indexed that do not exist yet: {}",
            "search_state WHERE capture > (SELECT coalesce(max(id), 0) FROM capture)",
        ),
        Question::of_search(
            "captures recorded as indexed that are missing: {}",
            "capture c JOIN search_state s ON c.id <= s.capture
              WHERE NOT EXISTS (SELECT 1 FROM search_capture i WHERE i.capture = c.id)",
        ),
        Question::of_search(
            "captures indexed but not recorded as indexed: {}",
            "search_capture i WHERE NOT EXISTS (SELECT 1 FROM search_state s WHERE i.capture <= s.capture)",
        ),
        Question::of_search(
            "captures indexed more than once: {}",
            "(SELECT capture FROM search_capture GROUP BY capture HAVING count(*) > 1) i",
        ),
    ]
}
