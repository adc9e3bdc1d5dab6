//! The times by which artifacts are selected and ordered.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::read::Snapshot;
use super::rows::{ArtifactId, ArtifactRow, Milliseconds};
use crate::artifact::CREATED_AT;
use crate::storage::{Result, TimeBasis};

/// The times of the artifacts of a snapshot, for one basis.
#[derive(Clone, Debug)]
pub struct Chronology {
    basis: TimeBasis,
    /// Empty unless the basis is [`TimeBasis::Created`].
    created: HashMap<ArtifactId, DateTime<Utc>>,
}

impl Chronology {
    /// Returns the time of an artifact of the snapshot, or `None` if the basis is [`TimeBasis::Created`] and it states
    /// none.
    #[must_use]
    pub fn time(&self, artifact: &ArtifactRow) -> Option<DateTime<Utc>> {
        match self.basis {
            TimeBasis::FirstSeen => Some(artifact.added_at),
            TimeBasis::LastSeen => Some(artifact.seen_at),
            TimeBasis::Created => self.created.get(&artifact.id).copied(),
        }
    }

    /// Compares artifacts, newest first, and those without a time last. The order of the journal decides between equal
    /// times: that of first additions for [`TimeBasis::FirstSeen`], that of arrival otherwise. For
    /// [`TimeBasis::LastSeen`] it decides alone.
    #[must_use]
    pub fn newest_first(&self, one: &ArtifactRow, other: &ArtifactRow) -> Ordering {
        let key = |artifact: &ArtifactRow| {
            let (time, entry) = match self.basis {
                TimeBasis::FirstSeen => (self.time(artifact), artifact.id.0),
                TimeBasis::LastSeen => (None, artifact.arrival),
                TimeBasis::Created => (self.time(artifact), artifact.arrival),
            };
            (Reverse(time), Reverse(entry), artifact.core)
        };
        key(one).cmp(&key(other))
    }
}

impl Snapshot<'_> {
    /// Returns the times of all artifacts for `basis`.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn chronology(&self, basis: TimeBasis) -> Result<Chronology> {
        let mut created = HashMap::new();
        if basis == TimeBasis::Created {
            let sql =
                "SELECT a.artifact, max(v.value) FROM attribute_value v JOIN attribute a ON a.value = v.id
                        WHERE v.name = ?1 GROUP BY a.artifact";
            let rows = self.rows(sql, [CREATED_AT], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
            created.extend(rows.into_iter().filter_map(|(id, text)| Some((id, parsed(&text)?))));
        }
        Ok(Chronology { basis, created })
    }

    /// Returns the time of the last journal entry, or `None` if the journal is empty.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn last_entry_at(&self) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT at FROM journal ORDER BY seq DESC LIMIT 1";
        Ok(self.rows(sql, [], |row| row.get::<_, Milliseconds>(0))?.pop().map(|time| time.0))
    }

    /// Returns the creation time that an artifact states: the latest of those that its captures state. `None` if it
    /// states none.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn created_at(&self, artifact: ArtifactId) -> Result<Option<DateTime<Utc>>> {
        let sql = "SELECT max(v.value) FROM attribute a JOIN attribute_value v ON v.id = a.value
                    WHERE a.artifact = ?1 AND v.name = ?2";
        let text: Option<String> =
            self.rows(sql, (artifact.0, CREATED_AT), |row| row.get(0))?.pop().flatten();
        Ok(text.as_deref().and_then(parsed))
    }
}

/// Parses the time in an attribute. An invalid value is damage, which a check reports.
fn parsed(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}
