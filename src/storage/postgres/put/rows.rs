//! The rows of a batch, each table's in one statement.

use std::collections::{BTreeMap, BTreeSet};

use super::state::BatchState;
use super::tables::{
    AttributeColumns, EdgeColumns, IdentityColumns, MemberColumns, MentionKeyColumns, MentionListColumns,
    NameMentionColumns,
};
use super::updates::{update_artifacts, update_captures};
use crate::artifact::{Admitted, NameHandle};
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::Prepared;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;
use crate::storage::seal::seal;

/// The rows that a batch adds.
#[derive(Default)]
pub(super) struct BatchRows {
    /// New artifacts, with the numbers of their kinds.
    pub(super) artifacts: Vec<(CoreHash, Option<i16>)>,
    /// Artifacts whose removal is taken back.
    pub(super) readmitted: Vec<CoreHash>,
    captures: Vec<NewCaptureRow>,
    members: MemberColumns,
    lists: MentionListColumns,
    keys: MentionKeyColumns,
    edges: EdgeColumns,
    attributes: AttributeColumns,
    identities: IdentityColumns,
    name_mentions: NameMentionColumns,
}

struct NewCaptureRow {
    artifact: i64,
    core: CoreHash,
    capture: CaptureHash,
    size: i64,
    warnings: Option<String>,
    seal: [u8; 16],
    source_path: Option<String>,
}

impl BatchRows {
    /// Adds the rows of a new capture of an artifact, given by their numbers. Without `names`, adds none.
    pub(super) fn add_capture(
        &mut self,
        (artifact, capture): (i64, i64),
        prepared: &Prepared,
        names: Option<&NameRegistry>,
    ) -> PostgresResult<()> {
        let Some(names) = names else { return Ok(()) };
        let admitted = prepared.admitted();
        self.captures.push(NewCaptureRow {
            artifact,
            core: admitted.core(),
            capture: admitted.capture(),
            size: admitted.size().cast_signed(),
            warnings: warnings(admitted)?,
            seal: seal(admitted.core(), admitted.capture()),
            source_path: prepared.source_path().map(|path| to_stored(path).into_owned()),
        });
        for member in admitted.members() {
            self.members.add(capture, member);
        }
        self.add_derived((artifact, capture), admitted, names)
    }

    /// Adds the rows that are derived from a capture of an artifact.
    pub(super) fn add_derived(
        &mut self,
        (artifact, capture): (i64, i64),
        admitted: &Admitted,
        names: &NameRegistry,
    ) -> PostgresResult<()> {
        self.add_mentions((Some(artifact), capture), admitted, names)?;
        self.add_attributes(artifact, admitted);
        self.add_names(artifact, admitted);
        Ok(())
    }

    /// Adds the lists of mentions of a capture, and nothing that belongs to its artifact.
    pub(super) fn add_lists(
        &mut self,
        capture: i64,
        admitted: &Admitted,
        names: &NameRegistry,
    ) -> PostgresResult<()> {
        self.add_mentions((None, capture), admitted, names)
    }

    fn add_mentions(
        &mut self,
        (artifact, capture): (Option<i64>, i64),
        admitted: &Admitted,
        names: &NameRegistry,
    ) -> PostgresResult<()> {
        let mut groups: BTreeMap<i32, Vec<ListedMention>> = BTreeMap::new();
        for mention in admitted.draft().mentions.iter().collect::<BTreeSet<_>>() {
            let missing = || PostgresError::damaged("a role was not added");
            let (role, group) = names.role_id(admitted.kind(), mention.role).ok_or_else(missing)?;
            let entry = ListedMention { role, place: mention.place.clone(), digest: mention.digest };
            if let (Some(artifact), true) = (artifact, mention.role.relation.is_some()) {
                self.edges.add(artifact, &entry);
            }
            groups.entry(group).or_default().push(entry);
        }
        for (group, entries) in groups {
            let list = lists::encode(entries);
            self.keys.add(capture, group, &list.digests);
            self.lists.add(capture, group, list);
        }
        Ok(())
    }

    fn add_attributes(&mut self, artifact: i64, admitted: &Admitted) {
        for attribute in admitted.draft().attributes.iter().collect::<BTreeSet<_>>() {
            self.attributes.add(artifact, attribute);
        }
    }

    fn add_names(&mut self, artifact: i64, admitted: &Admitted) {
        let draft = admitted.draft();
        for handle in draft.identified_by.iter().map(NameHandle::as_str).collect::<BTreeSet<_>>() {
            self.identities.add(artifact, handle);
        }
        let references =
            draft.refers_to.iter().map(|(relation, name)| ((relation.name, name.as_str()), relation.dangles));
        for ((relation, handle), dangles) in references.collect::<BTreeMap<_, _>>() {
            self.name_mentions.add(artifact, relation, handle, dangles);
        }
    }

    /// Writes the rows, and what changed of those that are in the database.
    pub(super) fn write(&self, session: &DatabaseTransaction<'_>, state: &BatchState) -> PostgresResult<()> {
        if !self.readmitted.is_empty() {
            session.execute("DELETE FROM tombstone WHERE core = ANY($1)", &[&self.readmitted])?;
        }
        self.write_artifacts(session, state)?;
        update_artifacts(session, state)?;
        update_captures(session, state)?;
        if self.captures.is_empty() {
            return Ok(());
        }
        self.write_captures(session, state)?;
        self.members.write(session)?;
        self.write_derived(session)
    }

    /// Writes the rows that are derived from captures.
    pub(super) fn write_derived(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        self.lists.write(session)?;
        self.keys.write(session)?;
        self.edges.write(session)?;
        self.attributes.write(session)?;
        self.identities.write(session)?;
        self.name_mentions.write(session)
    }

    fn write_artifacts(&self, session: &DatabaseTransaction<'_>, state: &BatchState) -> PostgresResult<()> {
        if self.artifacts.is_empty() {
            return Ok(());
        }
        let stored: Vec<_> = self
            .artifacts
            .iter()
            .filter_map(|(core, kind)| Some((core, kind, state.artifacts.get(core)?)))
            .collect();
        let cores: Vec<CoreHash> = stored.iter().map(|(core, ..)| **core).collect();
        let kinds: Vec<Option<i16>> = stored.iter().map(|(_, kind, _)| **kind).collect();
        let ids: Vec<i64> = stored.iter().map(|(.., stored)| stored.id).collect();
        let added: Vec<i64> = stored.iter().map(|(.., stored)| stored.added_at).collect();
        let seen: Vec<i64> = stored.iter().map(|(.., stored)| stored.seen_at).collect();
        let arrivals: Vec<i64> = stored.iter().map(|(.., stored)| stored.arrival.cast_signed()).collect();
        let created: Vec<Option<i64>> = stored.iter().map(|(.., stored)| stored.created_at).collect();
        session.execute(
            "INSERT INTO artifact (id, core, kind, added_at, seen_at, arrival, created_at)
             SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[],
                                  $7::bigint[])",
            &[&ids, &cores, &kinds, &added, &seen, &arrivals, &created],
        )?;
        Ok(())
    }

    fn write_captures(&self, session: &DatabaseTransaction<'_>, state: &BatchState) -> PostgresResult<()> {
        let rows: Vec<_> = self
            .captures
            .iter()
            .filter_map(|row| Some((row, state.captures.get(&(row.core, row.capture))?)))
            .collect();
        let ids: Vec<i64> = rows.iter().map(|(_, stored)| stored.id).collect();
        let artifacts: Vec<i64> = rows.iter().map(|(row, _)| row.artifact).collect();
        let captures: Vec<CaptureHash> = rows.iter().map(|(row, _)| row.capture).collect();
        let sizes: Vec<i64> = rows.iter().map(|(row, _)| row.size).collect();
        let seen: Vec<i64> = rows.iter().map(|(_, stored)| stored.seen_at).collect();
        let warnings: Vec<Option<&String>> = rows.iter().map(|(row, _)| row.warnings.as_ref()).collect();
        let signatures: Vec<Option<&str>> = rows
            .iter()
            .map(|(_, stored)| stored.signature.as_ref().map(|signature| signature.state.name()))
            .collect();
        let key_ids: Vec<_> = rows
            .iter()
            .map(|(_, stored)| stored.signature.as_ref()?.key_id.as_deref().map(to_stored))
            .collect();
        let paths: Vec<Option<&String>> = rows.iter().map(|(row, _)| row.source_path.as_ref()).collect();
        let seals: Vec<&[u8]> = rows.iter().map(|(row, _)| &row.seal[..]).collect();
        session.execute(
            "INSERT INTO capture (id, artifact, digest, size, added_at, seen_at, warnings, signature, key_id, seal,
                                  source_path)
             SELECT n.id, n.artifact, n.digest, n.size, n.at, n.at, n.warnings, n.signature, n.key_id, n.seal,
                    n.source_path
               FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],
                           $8::text[], $9::bytea[], $10::text[])
                 AS n (id, artifact, digest, size, at, warnings, signature, key_id, seal, source_path)",
            &[&ids, &artifacts, &captures, &sizes, &seen, &warnings, &signatures, &key_ids, &seals, &paths],
        )?;
        Ok(())
    }
}

/// Returns the warnings of a capture as they are stored; nothing if there are none.
pub(super) fn warnings(admitted: &Admitted) -> PostgresResult<Option<String>> {
    let violations = admitted.report().violations();
    let warnings = (!violations.is_empty()).then(|| serde_json::to_string(violations)).transpose();
    warnings.map_err(PostgresError::damaged)
}
