//! Reading of mention lists.

use rusqlite::OptionalExtension;

use super::error::{ReadFailure, index_damage};
use super::mentions::MentionList;
use super::payload::PayloadReader;
use crate::artifact::ArtifactLocation;
use crate::digest::Digest;

/// Maximum number of entries of a list, whatever size a damaged vault states for a capture.
const MAX_ENTRIES: usize = 1 << 26;

/// A mention, with the row id of its role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MentionRow {
    pub(super) role: i64,
    pub(super) place: ArtifactLocation,
    pub(super) digest: Digest,
}

/// A reader of mention lists.
#[derive(Clone, Copy)]
pub(super) struct MentionListReader<'c> {
    pub(super) payloads: PayloadReader<'c>,
}

impl MentionListReader<'_> {
    /// Returns the mentions of an artifact's captures, ordered by role, place and digest.
    pub(super) fn for_artifact(&self, artifact: i64) -> rusqlite::Result<Vec<MentionRow>> {
        let mut statement = self
            .payloads
            .connection
            .prepare_cached("SELECT id FROM capture WHERE artifact = ?1 ORDER BY id")?;
        let captures = statement.query_map([artifact], |row| row.get(0))?;
        let mut mentions = Vec::new();
        for capture in captures {
            mentions.append(&mut self.for_capture(capture?)?);
        }
        mentions.sort_unstable();
        mentions.dedup();
        Ok(mentions)
    }

    /// Returns the mentions of some captures of an artifact that are older than `before`, sorted by role, place and
    /// digest: those of the first capture and of the latest ones, at most `most` captures in total.
    pub(super) fn of_older_captures(
        &self,
        artifact: i64,
        before: i64,
        most: usize,
    ) -> rusqlite::Result<Vec<MentionRow>> {
        let captures = |order: &str, limit: usize| -> rusqlite::Result<Vec<i64>> {
            let sql = format!(
                "SELECT id FROM capture WHERE artifact = ?1 AND id < ?2 ORDER BY id {order} LIMIT ?3"
            );
            let mut statement = self.payloads.connection.prepare_cached(&sql)?;
            statement.query_map((artifact, before, limit), |row| row.get(0))?.collect()
        };
        let mut some = captures("ASC", 1)?;
        some.extend(captures("DESC", most.saturating_sub(1))?);
        some.sort_unstable();
        some.dedup();
        let mut mentions = Vec::new();
        for capture in some {
            mentions.append(&mut self.for_capture(capture)?);
        }
        mentions.sort_unstable();
        mentions.dedup();
        Ok(mentions)
    }

    /// Returns the mentions of a capture; empty if it has no list.
    pub(super) fn for_capture(&self, capture: i64) -> rusqlite::Result<Vec<MentionRow>> {
        let Some((list, digests)) = self.read(capture)? else { return Ok(Vec::new()) };
        let mentions = list.entries.into_iter().map(|entry| {
            let digest = digests.get(entry.position).copied();
            Some(MentionRow { role: entry.role, place: entry.place, digest: digest? })
        });
        mentions.collect::<Option<_>>().ok_or_else(|| damaged(capture))
    }

    /// Returns the mentions of a capture whose digests satisfy `is_match`.
    pub(super) fn with(
        &self,
        capture: i64,
        is_match: impl Fn(&Digest) -> bool,
    ) -> rusqlite::Result<Vec<MentionRow>> {
        let Some((list, digests)) = self.read(capture)? else { return Ok(Vec::new()) };
        let found: Vec<usize> =
            (0..).zip(&digests).filter(|(_, digest)| is_match(digest)).map(|(at, _)| at).collect();
        let entries = list.entries.into_iter().filter(|entry| found.binary_search(&entry.position).is_ok());
        let mentions = entries.map(|entry| {
            let digest = digests.get(entry.position).copied();
            Some(MentionRow { role: entry.role, place: entry.place, digest: digest? })
        });
        mentions.collect::<Option<_>>().ok_or_else(|| damaged(capture))
    }

    /// Returns the list of a capture and the digests that it refers to.
    fn read(&self, capture: i64) -> rusqlite::Result<Option<(MentionList, Vec<Digest>)>> {
        let row = self
            .payloads
            .connection
            .prepare_cached(
                "SELECT l.blob, l.bytes, c.size FROM mention_list l LEFT JOIN capture c ON c.id = l.capture
                  WHERE l.capture = ?1",
            )?
            .query_row([capture], |row| {
                // No byte of a capture belongs to two mentions.
                let size = row.get::<_, Option<i64>>(2)?.and_then(|size| usize::try_from(size).ok());
                let list = MentionList::decode(
                    row.get_ref(1)?.as_blob()?,
                    size.unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES),
                );
                Ok((row.get::<_, Option<i64>>(0)?, list))
            })
            .optional()?;
        let Some((blob, list)) = row else { return Ok(None) };
        let mut list = list.ok_or_else(|| damaged(capture))?;
        let mut digests = match blob.map(|blob| self.payloads.digests(blob)) {
            None => Vec::new(),
            Some(Ok(digests)) => digests,
            Some(Err(ReadFailure::Database(error))) => return Err(error),
            Some(Err(ReadFailure::Defect(defect))) => return Err(index_damage(defect.to_string())),
        };
        digests.append(&mut list.own);
        Ok(Some((list, digests)))
    }
}

fn damaged(capture: i64) -> rusqlite::Error {
    index_damage(format!("the list of mentions of capture {capture} cannot be read"))
}
