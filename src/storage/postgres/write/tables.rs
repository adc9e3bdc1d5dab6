//! The rows of one table each, by column, as one statement takes them.

use std::collections::BTreeSet;

use crate::artifact::{ArtifactLocation, Member};
use crate::digest::{BlobHash, Digest};
use crate::storage::postgres::columns::text_key;
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::lists::{self, EncodedList, ListedMention};
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;

#[derive(Default)]
pub(super) struct MemberColumns {
    captures: Vec<i64>,
    names: Vec<String>,
    blobs: Vec<BlobHash>,
}

#[derive(Default)]
pub(super) struct MentionListColumns {
    captures: Vec<i64>,
    groups: Vec<i32>,
    digests: Vec<Vec<u8>>,
    entries: Vec<Vec<u8>>,
    firsts: Vec<Option<Vec<u8>>>,
}

#[derive(Default)]
pub(super) struct MentionKeyColumns {
    beginnings: Vec<i64>,
    captures: Vec<i64>,
    groups: Vec<i32>,
}

#[derive(Default)]
pub(super) struct EdgeColumns {
    artifacts: Vec<i64>,
    targets: Vec<Digest>,
    roles: Vec<i32>,
    indexes: Vec<Option<i64>>,
    pointers: Vec<Option<String>>,
}

#[derive(Default)]
pub(super) struct AttributeColumns {
    artifacts: Vec<i64>,
    names: Vec<String>,
    values: Vec<String>,
    numbers: Vec<Option<i64>>,
    keys: Vec<i64>,
}

#[derive(Default)]
pub(super) struct IdentityColumns {
    artifacts: Vec<i64>,
    handles: Vec<String>,
    keys: Vec<i64>,
}

#[derive(Default)]
pub(super) struct NameMentionColumns {
    artifacts: Vec<i64>,
    relations: Vec<String>,
    handles: Vec<String>,
    dangle: Vec<bool>,
    keys: Vec<i64>,
}

impl MemberColumns {
    pub(super) fn add(&mut self, capture: i64, member: &Member) {
        self.captures.push(capture);
        self.names.push(to_stored(member.name()).into_owned());
        self.blobs.push(member.blob());
    }

    pub(super) fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.captures.is_empty() {
            return Ok(());
        }
        session.execute(
            "INSERT INTO member (capture, name, blob) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])",
            &[&self.captures, &self.names, &self.blobs],
        )?;
        Ok(())
    }
}

impl MentionListColumns {
    pub(super) fn add(&mut self, capture: i64, group: i32, list: EncodedList) {
        self.captures.push(capture);
        self.groups.push(group);
        self.digests.push(lists::joined(&list.digests));
        self.entries.push(list.entries);
        self.firsts.push((!list.firsts.is_empty()).then(|| lists::joined(&list.firsts)));
    }

    pub(super) fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.captures.is_empty() {
            return Ok(());
        }
        session.execute(
            "INSERT INTO mention_list (capture, group_id, digests, entries, firsts)
             SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bytea[], $4::bytea[], $5::bytea[])",
            &[&self.captures, &self.groups, &self.digests, &self.entries, &self.firsts],
        )?;
        Ok(())
    }
}

impl MentionKeyColumns {
    /// Adds the keys of digests. Digests with the same first eight bytes share one key.
    pub(super) fn add(&mut self, capture: i64, group: i32, digests: &[Digest]) {
        for key in digests.iter().map(Digest::key).collect::<BTreeSet<_>>() {
            self.beginnings.push(key);
            self.captures.push(capture);
            self.groups.push(group);
        }
    }

    pub(super) fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.beginnings.is_empty() {
            return Ok(());
        }
        session.execute(
            "INSERT INTO mention_key (key, capture, group_id)
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[])",
            &[&self.beginnings, &self.captures, &self.groups],
        )?;
        Ok(())
    }
}

impl EdgeColumns {
    pub(super) fn add(&mut self, artifact: i64, entry: &ListedMention) {
        self.artifacts.push(artifact);
        self.targets.push(entry.digest);
        self.roles.push(entry.role);
        let (index, pointer) = match &entry.place {
            ArtifactLocation::Index(index) => (Some(i64::from(*index)), None),
            ArtifactLocation::Pointer(pointer) => (None, Some(to_stored(pointer).into_owned())),
        };
        self.indexes.push(index);
        self.pointers.push(pointer);
    }

    pub(super) fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.artifacts.is_empty() {
            return Ok(());
        }
        session.execute(
            "INSERT INTO edge (artifact, target, role, index, pointer)
             SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::integer[], $4::bigint[], $5::text[])",
            &[&self.artifacts, &self.targets, &self.roles, &self.indexes, &self.pointers],
        )?;
        Ok(())
    }
}

impl AttributeColumns {
    pub(super) fn add(&mut self, artifact: i64, name: String, value: &str, number: Option<i64>) {
        self.artifacts.push(artifact);
        self.names.push(name);
        self.values.push(to_stored(value).into_owned());
        self.numbers.push(number);
        self.keys.push(text_key(value));
    }

    pub(super) fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.artifacts.is_empty() {
            return Ok(());
        }
        session.execute(
            "INSERT INTO attribute (artifact, name, value, number, key)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
               AS n (artifact, name, value, number, key)
              WHERE NOT EXISTS (SELECT 1 FROM attribute x
                                 WHERE x.artifact = n.artifact AND x.name = n.name AND x.value = n.value)",
            &[&self.artifacts, &self.names, &self.values, &self.numbers, &self.keys],
        )?;
        Ok(())
    }
}

impl IdentityColumns {
    pub(super) fn add(&mut self, artifact: i64, handle: &str) {
        self.artifacts.push(artifact);
        self.handles.push(to_stored(handle).into_owned());
        self.keys.push(text_key(handle));
    }

    pub(super) fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.artifacts.is_empty() {
            return Ok(());
        }
        session.execute(
            "INSERT INTO identity (artifact, handle, key)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS n (artifact, handle, key)
              WHERE NOT EXISTS (SELECT 1 FROM identity x WHERE x.artifact = n.artifact AND x.handle = n.handle)",
            &[&self.artifacts, &self.handles, &self.keys],
        )?;
        Ok(())
    }
}

impl NameMentionColumns {
    pub(super) fn add(&mut self, artifact: i64, relation: String, handle: &str, dangles: bool) {
        self.artifacts.push(artifact);
        self.relations.push(relation);
        self.handles.push(to_stored(handle).into_owned());
        self.dangle.push(dangles);
        self.keys.push(text_key(handle));
    }

    pub(super) fn write(&self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        if self.artifacts.is_empty() {
            return Ok(());
        }
        session.execute(
            "INSERT INTO name_mention (artifact, relation, handle, dangles, key)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[], $5::bigint[])
               AS n (artifact, relation, handle, dangles, key)
              WHERE NOT EXISTS (SELECT 1 FROM name_mention x
                                 WHERE x.artifact = n.artifact AND x.relation = n.relation AND x.handle = n.handle)",
            &[&self.artifacts, &self.relations, &self.handles, &self.dangle, &self.keys],
        )?;
        Ok(())
    }
}
