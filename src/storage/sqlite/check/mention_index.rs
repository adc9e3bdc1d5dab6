//! Comparison of the mention index with the lists that it points to.

use super::FileInspection;
use crate::storage::check::finding::{Finding, INDEX_DIFFERS, SURPLUS_ROW, Subject};
use crate::storage::check::sum::IndexFingerprint;
use crate::storage::sqlite::{Result, mention_index};

impl FileInspection<'_> {
    /// Checks that the segments can be read and are sorted.
    pub(super) fn order_of_mentions(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        self.segments(&mut findings, |_, _| ())?;
        Ok(findings)
    }

    /// Checks that the segments can be read and are sorted, and whether they have exactly one entry for every digest
    /// that a capture mentions. If the returned flag is false, [`FileInspection::unlisted`] should be called for every
    /// artifact.
    pub(super) fn compare_mentions(&self) -> Result<(Vec<Finding>, bool)> {
        let mut findings = Vec::new();
        let mut captures: Vec<i64> = Vec::new();
        let mut listed = IndexFingerprint::default();
        let table = |name: &str| Subject::Table(name.to_owned());
        self.look(table("capture"), &mut findings, || {
            let mut statement = self.connection.prepare("SELECT id FROM capture NOT INDEXED ORDER BY id")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                captures.push(row.get(0)?);
            }
            Ok(())
        })?;
        let mut unread = 0;
        self.look(table("mention_list"), &mut findings, || {
            let mut statement =
                self.connection.prepare("SELECT capture FROM mention_list ORDER BY capture")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let capture: i64 = row.get(0)?;
                // An unreadable list is a finding about its artifact.
                match self.keys(capture) {
                    Ok(keys) if captures.binary_search(&capture).is_ok() => {
                        for key in keys {
                            listed.add(key, capture, 0);
                        }
                    }
                    Ok(_) => {}
                    Err(_) => unread += 1,
                }
            }
            Ok(())
        })?;
        let mut indexed = IndexFingerprint::default();
        self.segments(&mut findings, |key, capture| {
            // Entries of missing captures do no harm.
            if captures.binary_search(&capture).is_ok() {
                indexed.add(key, capture, 0);
            }
        })?;
        let surplus = indexed.count().saturating_sub(listed.count());
        if surplus > 0 && unread == 0 {
            findings.push(Finding::new(SURPLUS_ROW, Subject::Mentions, format!("{surplus} entries")));
        }
        self.unresolved_references(&mut findings)?;
        Ok((findings, indexed == listed))
    }

    fn segments(&self, findings: &mut Vec<Finding>, mut visit: impl FnMut(u64, i64)) -> Result<()> {
        let mut problems = Vec::new();
        self.look(Subject::Mentions, findings, || {
            problems = mention_index::check(&self.connection, |(key, capture)| visit(key, capture))?;
            Ok(())
        })?;
        let finding = |problem| Finding::new(INDEX_DIFFERS, Subject::Mentions, problem);
        findings.extend(problems.into_iter().map(finding));
        Ok(())
    }
}
