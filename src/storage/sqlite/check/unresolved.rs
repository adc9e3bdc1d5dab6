//! Comparison of the table of unresolved references with the lists that it follows from.

use super::FileInspection;
use crate::storage::check::finding::{Finding, FindingInfo, MISSING_ROW, SURPLUS_ROW, Subject};
use crate::storage::sqlite::Result;
use crate::storage::sqlite::unresolved::ReferenceReader;

/// Numbers of rows: those that should be in the table and are not, those that should and are, and all that are.
#[derive(Default)]
struct UnresolvedRowCounts {
    missing: u64,
    present: u64,
    all: u64,
    /// Whether a list cannot be read, so that nothing says which rows it should have.
    is_unknown: bool,
}

impl FileInspection<'_> {
    /// Adds a finding if the table lacks references to artifacts that the vault does not have, and one if it has others.
    pub(super) fn unresolved_references(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let subject = || Subject::Table("unresolved_reference".to_owned());
        let mut rows = UnresolvedRowCounts::default();
        self.look(subject(), findings, || {
            rows = self.compare_references()?;
            Ok(())
        })?;
        let mut add = |info: FindingInfo, count: u64| {
            if count > 0 {
                let rows = if count == 1 { "row" } else { "rows" };
                findings.push(Finding::new(info, subject(), format!("{count} {rows}")));
            }
        };
        add(MISSING_ROW, rows.missing);
        let surplus = if rows.is_unknown { 0 } else { rows.all.saturating_sub(rows.present) };
        add(SURPLUS_ROW, surplus);
        Ok(())
    }

    fn compare_references(&self) -> rusqlite::Result<UnresolvedRowCounts> {
        let references = ReferenceReader::new(self.lists())?;
        let mut stored =
            self.connection.prepare("SELECT 1 FROM unresolved_reference WHERE key = ?1 AND capture = ?2")?;
        let all = "SELECT count(*) FROM unresolved_reference";
        let mut rows = UnresolvedRowCounts {
            all: self.connection.query_row(all, [], |row| row.get(0))?,
            ..UnresolvedRowCounts::default()
        };
        let mut captures = self.connection.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
        let mut captures = captures.query([])?;
        while let Some(row) = captures.next()? {
            let capture: i64 = row.get(0)?;
            let Some(keys) = references.unresolved(capture, |_| true)? else {
                // It is a finding about its artifact.
                rows.is_unknown = true;
                continue;
            };
            for key in keys {
                let is_stored = stored.exists((key, capture))?;
                rows.present += u64::from(is_stored);
                rows.missing += u64::from(!is_stored);
            }
        }
        Ok(rows)
    }
}
