//! The rows that are derived from the bytes of captures, and their tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifact::{Admitted, ArtifactLocation, Member};
use crate::digest::CoreHash;
use crate::storage::catalog::Row;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention, StoredList};
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::SqlType::{Bytes, Flag, Integer, Text};
use crate::storage::sql::{SqlSession as _, SqlTable, SqlValue};

/// Rows that are derived from captures.
#[derive(Default)]
pub(in crate::storage::postgres) struct DerivedRows {
    members: Vec<Vec<SqlValue>>,
    lists: Vec<Vec<SqlValue>>,
    keys: BTreeSet<(i64, i64, i64)>,
    edges: Vec<Vec<SqlValue>>,
    /// The numbers of the values, by the number of the artifact, name and value.
    attributes: BTreeMap<(i64, String, String), Option<i64>>,
    identities: BTreeSet<(i64, String)>,
    /// Relations and handles, by the number of the artifact, with whether they dangle.
    name_mentions: BTreeMap<(i64, String, String), bool>,
}

impl DerivedRows {
    /// Adds the files of a capture.
    pub(in crate::storage::postgres) fn add_members(&mut self, capture: i64, members: &[Member]) {
        let row =
            |member: &Member| vec![capture.into(), member.name().to_owned().into(), member.blob().0.into()];
        self.members.extend(members.iter().map(row));
    }

    /// Adds what a capture mentions. Without the number of its artifact, adds nothing that belongs to that.
    pub(in crate::storage::postgres) fn add_mentions(
        &mut self,
        artifact: Option<i64>,
        capture: i64,
        admitted: &Admitted,
        names: &NameRegistry,
    ) -> PostgresResult<()> {
        let mut listed = Vec::new();
        for mention in admitted.draft().mentions.iter().collect::<BTreeSet<_>>() {
            let missing = || PostgresError::damaged("a role was not added");
            let (role, group) = names.role_id(admitted.kind(), mention.role).ok_or_else(missing)?;
            let entry = ListedMention { role, place: mention.place.clone(), digest: mention.digest };
            if let (Some(artifact), true) = (artifact, mention.role.relation.is_some()) {
                self.edges.push(edge(artifact, &entry));
            }
            // Digests with the same first eight bytes share one key.
            self.keys.insert((mention.digest.key(), capture, group));
            listed.push((group, entry));
        }
        for StoredList { group, digests, entries, firsts } in lists::by_group(listed) {
            let row = vec![capture.into(), group.into(), digests.into(), entries.into(), firsts.into()];
            self.lists.push(row);
        }
        Ok(())
    }

    /// Adds what an artifact states. `id_of` returns the number of an artifact; what others state is left out.
    pub(in crate::storage::postgres) fn add_fact(
        &mut self,
        fact: Row,
        id_of: impl FnOnce(CoreHash) -> Option<i64>,
    ) {
        match fact {
            Row::Attribute { core, name, value, number } => {
                self.attributes.extend(id_of(core).map(|id| ((id, name, value), number)));
            }
            Row::Identity { core, handle } => self.identities.extend(id_of(core).map(|id| (id, handle))),
            Row::NameMention { core, relation, handle, dangles } => {
                self.name_mentions.extend(id_of(core).map(|id| ((id, relation, handle), dangles)));
            }
            _ => {}
        }
    }

    /// Writes the rows.
    pub(in crate::storage::postgres) fn write(self, session: &DatabaseTransaction<'_>) -> PostgresResult<()> {
        let attributes = self.attributes.into_iter().map(|((artifact, name, value), number)| {
            vec![artifact.into(), name.into(), value.into(), number.into()]
        });
        let identities =
            self.identities.into_iter().map(|(artifact, handle)| vec![artifact.into(), handle.into()]);
        let mentions = self.name_mentions.into_iter().map(|((artifact, relation, handle), dangles)| {
            vec![artifact.into(), relation.into(), handle.into(), dangles.into()]
        });
        let keys =
            self.keys.into_iter().map(|(key, capture, group)| vec![key.into(), capture.into(), group.into()]);
        let tables: [(&SqlTable, Vec<Vec<SqlValue>>); 7] = [
            (&MEMBER, self.members),
            (&MENTION_LIST, self.lists),
            (&MENTION_KEY, keys.collect()),
            (&EDGE, self.edges),
            (&ATTRIBUTE, attributes.collect()),
            (&IDENTITY, identities.collect()),
            (&NAME_MENTION, mentions.collect()),
        ];
        tables.into_iter().try_for_each(|(table, rows)| session.insert(table, rows))
    }
}

fn edge(artifact: i64, entry: &ListedMention) -> Vec<SqlValue> {
    let (index, pointer) = match &entry.place {
        ArtifactLocation::Index(index) => (i64::from(*index).into(), SqlValue::Null),
        ArtifactLocation::Pointer(pointer) => (SqlValue::Null, pointer.clone().into()),
    };
    vec![artifact.into(), entry.digest.into(), entry.role.into(), index, pointer]
}

/// The files of captures.
const MEMBER: SqlTable = SqlTable::new("member", 2, &[("capture", Integer), ("name", Text), ("blob", Bytes)]);

/// What captures mention, by group of roles.
const MENTION_LIST: SqlTable = SqlTable::new(
    "mention_list",
    2,
    &[("capture", Integer), ("group_id", Integer), ("digests", Bytes), ("entries", Bytes), ("firsts", Bytes)],
);

/// Which lists to read for a digest.
const MENTION_KEY: SqlTable =
    SqlTable::new("mention_key", 0, &[("key", Integer), ("capture", Integer), ("group_id", Integer)]);

/// Mentions that relate an artifact to another.
const EDGE: SqlTable = SqlTable::new(
    "edge",
    0,
    &[("artifact", Integer), ("target", Bytes), ("role", Integer), ("index", Integer), ("pointer", Text)],
);

/// What artifacts state.
const ATTRIBUTE: SqlTable = SqlTable::new(
    "attribute",
    3,
    &[("artifact", Integer), ("name", Text), ("value", Text), ("number", Integer)],
)
.hashing(2);

/// Names of artifacts.
const IDENTITY: SqlTable =
    SqlTable::new("identity", 2, &[("artifact", Integer), ("handle", Text)]).hashing(1);

/// Names by which artifacts refer to others.
const NAME_MENTION: SqlTable = SqlTable::new(
    "name_mention",
    3,
    &[("artifact", Integer), ("relation", Text), ("handle", Text), ("dangles", Flag)],
)
.hashing(2);
