//! Indexing of artifacts.

use foldhash::HashMap;

use super::{NewCapture, SqliteWriter};
use crate::artifact::{Admitted, Mention, Role};
use crate::storage::catalog::{RowChange, facts};
use crate::storage::sqlite::error::is_damage;
use crate::storage::sqlite::lists::{MentionListReader, MentionRow};
use crate::storage::sqlite::mentions::{MentionList, MentionListEntry};
use crate::storage::sqlite::payload::PayloadReader;
use crate::storage::sqlite::shared_statements::StatementProvider;
use crate::storage::sqlite::{mention_index, unresolved};

/// Maximum number of captures of an artifact whose lists are compared with that of a new one: the first and the latest
/// ones.
const LISTS_READ: usize = 8;

impl SqliteWriter<'_> {
    /// Adds what a capture mentions and states. What earlier captures state stays: the rows are those of all captures.
    pub(in crate::storage::sqlite) fn index(
        &mut self,
        new: &NewCapture<'_>,
        kind: i64,
        admitted: &Admitted,
    ) -> rusqlite::Result<()> {
        self.mentions(new, kind, &admitted.draft().mentions)?;
        self.last_artifact = Some((admitted.core(), new.artifact));
        facts(admitted.core(), admitted).try_for_each(|row| self.execute(RowChange::Insert(row)))
    }

    /// Stores what a capture mentions, unless earlier captures of its artifact mention all of it.
    pub(super) fn mentions(
        &mut self,
        new: &NewCapture<'_>,
        kind: i64,
        mentions: &[Mention],
    ) -> rusqlite::Result<()> {
        let roles: Vec<i64> = self.roles(kind, mentions)?;
        let mentions_with_roles = || mentions.iter().zip(&roles);
        if mentions.is_empty() || (!new.is_first && self.are_known(new, mentions_with_roles())?) {
            return Ok(());
        }
        // Most digests are in a single file of the artifact.
        let blob = new.blobs.iter().max_by_key(|blob| blob.digests.len());
        let digests = blob.map(|blob| blob.digests.as_ref()).unwrap_or_default();
        let mut positions: HashMap<_, usize> = digests.iter().zip(0..).collect();
        let mut list = MentionList::default();
        for (mention, role) in mentions_with_roles() {
            let position = *positions.entry(&mention.digest).or_insert_with(|| {
                list.own.push(mention.digest);
                digests.len() + list.own.len() - 1
            });
            list.entries.push(MentionListEntry { role: *role, place: mention.place.clone(), position });
            self.entries.push((mention_index::key(&mention.digest), new.id));
            if mention.role.relation.is_some_and(|relation| relation.dangles) {
                unresolved::add(self.connection, mention.digest, new.id)?;
            }
        }
        // A damaged vault may contain a list of a lost capture that had this row id.
        self.statements
            .with(
                "INSERT OR REPLACE INTO mention_list (capture, blob, bytes) VALUES (?1, ?2, ?3)",
                |insert| insert.execute((new.id, blob.map(|blob| blob.id), list.encode())),
            )
            .map(drop)
    }

    /// Returns whether the lists of earlier captures of the artifact contain all of `mentions`. Reads only some of the
    /// lists, including the first: an artifact may have any number of captures, and a superfluous list does no harm.
    fn are_known<'m>(
        &self,
        new: &NewCapture<'_>,
        mentions: impl Iterator<Item = (&'m Mention, &'m i64)>,
    ) -> rusqlite::Result<bool> {
        let payloads = PayloadReader { connection: self.connection, readers: &self.bases.readers };
        let known = match (MentionListReader { payloads }).of_older_captures(new.artifact, new.id, LISTS_READ)
        {
            // Damage of an older capture must not keep others from being stored and indexed.
            Err(error) if is_damage(&error) => return Ok(false),
            known => known?,
        };
        let mut mentions = mentions.map(|(mention, role)| MentionRow {
            role: *role,
            place: mention.place.clone(),
            digest: mention.digest,
        });
        Ok(mentions.all(|mention| known.binary_search(&mention).is_ok()))
    }

    /// Returns the row ids of the mentions' roles. Mentions are sorted by role, so there are few changes.
    fn roles(&mut self, kind: i64, mentions: &[Mention]) -> rusqlite::Result<Vec<i64>> {
        let mut roles = Vec::with_capacity(mentions.len());
        for run in mentions.chunk_by(|one, other| one.role == other.role) {
            let role = run.first().map(|mention| self.role(kind, mention.role)).transpose()?;
            roles.extend(run.iter().filter_map(|_| role));
        }
        Ok(roles)
    }

    fn role(&mut self, kind: i64, role: &'static Role) -> rusqlite::Result<i64> {
        if let Some(id) = self.roles.get(&(kind, role.name)) {
            return Ok(*id);
        }
        let id = self
            .connection
            .prepare_cached(
                "INSERT INTO role (kind, name, role_group, unit, relation, dangles)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (kind, name) DO UPDATE SET
                   role_group = excluded.role_group, unit = excluded.unit,
                   relation = excluded.relation, dangles = excluded.dangles
                 RETURNING id",
            )?
            .query_row(
                (
                    kind,
                    role.name,
                    role.group,
                    role.unit,
                    role.relation.map(|relation| relation.name),
                    role.relation.is_some_and(|relation| relation.dangles),
                ),
                |row| row.get(0),
            )?;
        self.roles.insert((kind, role.name), id);
        Ok(id)
    }

    /// Returns the row id of the value of an attribute, which may be new.
    pub(super) fn attribute_value(
        &mut self,
        name: &str,
        value: &str,
        number: Option<i64>,
    ) -> rusqlite::Result<i64> {
        if let Some(id) = self.attributes.get(name).and_then(|values| values.get(value)) {
            return Ok(*id);
        }
        // Most values that were not seen in this transaction are new, such as times.
        let inserted = self.statements.with(
            "INSERT OR IGNORE INTO attribute_value (name, value, number) VALUES (?1, ?2, ?3)",
            |insert| insert.execute((name, value, number)),
        )?;
        let id = match inserted {
            0 => self.stored_value(name, value, number)?,
            _ => self.connection.last_insert_rowid(),
        };
        self.attributes.entry(name.to_owned()).or_default().insert(value.to_owned(), id);
        Ok(id)
    }

    /// Returns the row id of a value that the vault has. In a damaged vault, its number may be another one.
    fn stored_value(&self, name: &str, value: &str, number: Option<i64>) -> rusqlite::Result<i64> {
        let (id, known): (i64, Option<i64>) = self
            .connection
            .prepare_cached("SELECT id, number FROM attribute_value WHERE name = ?1 AND value = ?2")?
            .query_row((name, value), |row| Ok((row.get(0)?, row.get(1)?)))?;
        if known != number {
            self.connection
                .prepare_cached("UPDATE attribute_value SET number = ?2 WHERE id = ?1")?
                .execute((id, number))?;
        }
        Ok(id)
    }
}
