//! The rows that are derived from the bytes of captures.

use std::collections::{BTreeMap, BTreeSet};

use super::tables::{
    AttributeColumns, EdgeColumns, IdentityColumns, MemberColumns, MentionKeyColumns, MentionListColumns,
    NameMentionColumns,
};
use crate::artifact::{Admitted, Member};
use crate::digest::CoreHash;
use crate::storage::catalog::Row;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::lists::{self, ListedMention};
use crate::storage::postgres::names::NameRegistry;
use crate::storage::postgres::session::DatabaseTransaction;

/// Rows that are derived from captures, each table's by column.
#[derive(Default)]
pub(in crate::storage::postgres) struct DerivedRows {
    members: MemberColumns,
    lists: MentionListColumns,
    keys: MentionKeyColumns,
    edges: EdgeColumns,
    /// Names and values, by the number of the artifact.
    attributes: BTreeMap<(i64, String, String), Option<i64>>,
    identities: BTreeSet<(i64, String)>,
    /// Relations and handles, by the number of the artifact, with whether they dangle.
    name_mentions: BTreeMap<(i64, String, String), bool>,
}

impl DerivedRows {
    /// Adds the files of a capture.
    pub(in crate::storage::postgres) fn add_members(&mut self, capture: i64, members: &[Member]) {
        for member in members {
            self.members.add(capture, member);
        }
    }

    /// Adds what a capture mentions. Without the number of its artifact, adds nothing that belongs to that.
    pub(in crate::storage::postgres) fn add_mentions(
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
        self.members.write(session)?;
        self.lists.write(session)?;
        self.keys.write(session)?;
        self.edges.write(session)?;
        let mut attributes = AttributeColumns::default();
        for ((artifact, name, value), number) in self.attributes {
            attributes.add(artifact, name, &value, number);
        }
        attributes.write(session)?;
        let mut identities = IdentityColumns::default();
        for (artifact, handle) in &self.identities {
            identities.add(*artifact, handle);
        }
        identities.write(session)?;
        let mut mentions = NameMentionColumns::default();
        for ((artifact, relation, handle), dangles) in self.name_mentions {
            mentions.add(artifact, relation, &handle, dangles);
        }
        mentions.write(session)
    }
}
