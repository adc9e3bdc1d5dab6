//! Comparison of the keys by which mentions are found with the lists that they lead to.

use std::collections::BTreeSet;

use super::{DatabaseInspection, LARGE_ROWS, ROWS, table};
use crate::digest::Digest;
use crate::storage::Result;
use crate::storage::check::CheckedArtifact;
use crate::storage::check::compare::IndexFingerprint;
use crate::storage::check::finding::{Finding, INDEX_DIFFERS, SURPLUS_ROW, Subject};
use crate::storage::postgres::columns::digests;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::sql::{SqlParameter, SqlSession as _};

impl DatabaseInspection<'_> {
    /// Checks whether there is exactly one key for every beginning of a digest in a list. If the returned flag is false,
    /// [`Inspection::unlisted`](crate::storage::check::Inspection::unlisted) should be called for every artifact.
    pub(super) fn compare_mentions(&self) -> Result<(Vec<Finding>, bool)> {
        let mut findings = Vec::new();
        let (mut listed, mut indexed, mut unread) =
            (IndexFingerprint::default(), IndexFingerprint::default(), 0);
        let lists = self.look(table("mention_list"), &mut findings, || {
            self.scan("SELECT capture, group_id, digests FROM mention_list", LARGE_ROWS, &mut |rows| {
                for row in rows {
                    let (capture, group) = (row.integer(0)?, row.integer(1)?);
                    // An unreadable list is a finding about its artifact.
                    match digests(row.bytes(2)?) {
                        Ok(digests) => {
                            for key in digests.iter().map(Digest::key).collect::<BTreeSet<_>>() {
                                listed.add(key.cast_unsigned(), capture, group);
                            }
                        }
                        Err(_) => unread += 1,
                    }
                }
                Ok(())
            })
        })?;
        let keys = self.look(table("mention_key"), &mut findings, || {
            self.scan("SELECT key, capture, group_id FROM mention_key", ROWS, &mut |rows| {
                for row in rows {
                    indexed.add(row.integer(0)?.cast_unsigned(), row.integer(1)?, row.integer(2)?);
                }
                Ok(())
            })
        })?;
        let is_complete = lists.is_some() && keys.is_some() && unread == 0;
        let surplus = indexed.count().saturating_sub(listed.count());
        if surplus > 0 && is_complete {
            findings.push(Finding::new(SURPLUS_ROW, Subject::Mentions, format!("{surplus} entries")));
        }
        Ok((findings, indexed == listed))
    }

    /// Adds a finding if the artifact's captures mention digests that have no key.
    pub(super) fn unlisted_mentions(
        &self,
        artifact: &CheckedArtifact,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let subject = || Subject::Artifact(artifact.core);
        let missing = self.look(subject(), findings, || self.count_unlisted(artifact.id))?.unwrap_or(0);
        if missing > 0 {
            let detail = format!("{missing} of the digests it mentions");
            findings.push(Finding::new(INDEX_DIFFERS, subject(), detail));
        }
        Ok(())
    }

    fn count_unlisted(&self, artifact: i64) -> PostgresResult<usize> {
        let mut expected = BTreeSet::new();
        let sql =
            "SELECT l.capture, l.group_id, l.digests FROM capture c JOIN mention_list l ON l.capture = c.id
                    WHERE c.artifact = $1";
        for row in self.session.rows(sql, &[artifact.into()])? {
            let (capture, group) = (row.integer(0)?, row.integer(1)?);
            // An unreadable list is reported with the other facts of the artifact.
            let digests = digests(row.bytes(2)?).unwrap_or_default();
            expected.extend(digests.iter().map(|digest| (digest.key(), capture, group)));
        }
        let keys: SqlParameter = expected.iter().map(|(key, ..)| *key).collect();
        let captures: BTreeSet<i64> = expected.iter().map(|(_, capture, _)| *capture).collect();
        let sql = "SELECT key, capture, group_id FROM mention_key WHERE key = ANY($1) AND capture = ANY($2)";
        self.session.each(sql, &[keys, captures.into_iter().collect()], &mut |row| {
            expected.remove(&(row.integer(0)?, row.integer(1)?, row.integer(2)?));
            Ok(())
        })?;
        Ok(expected.len())
    }
}
