//! The kinds and roles that artifacts have. They are added with the artifacts and never removed, so that every process
//! remembers them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;

use super::error::{PostgresError, PostgresResult};
use super::session::DatabaseTransaction;
use crate::artifact::{Admitted, Kind, Role};
use crate::storage::Prepared;
use crate::storage::catalog::MentionRole;
use crate::storage::sql::SqlSession as _;

/// All kinds and roles at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct NameRegistry {
    kinds: HashMap<String, i64>,
    roles: BTreeMap<i64, Arc<MentionRole>>,
    /// The numbers of roles, by the names of their kinds and their own.
    role_ids: HashMap<String, HashMap<String, i64>>,
    /// The number of each group: the lowest one of a role in it.
    groups: HashMap<String, i64>,
}

/// The names that this process has read.
#[derive(Debug, Default)]
pub(super) struct NameCache(RwLock<Arc<NameRegistry>>);

impl NameCache {
    pub(super) fn get(&self) -> Arc<NameRegistry> {
        Arc::clone(&self.0.read())
    }

    /// Remembers names that are committed.
    pub(super) fn set(&self, names: Arc<NameRegistry>) {
        *self.0.write() = names;
    }

    /// Returns what `find` finds. If it finds nothing, others may have added the name, so that the names are read again.
    pub(super) fn find<T>(
        &self,
        session: &DatabaseTransaction<'_>,
        find: impl Fn(&NameRegistry) -> Option<T>,
    ) -> PostgresResult<Option<T>> {
        if let Some(found) = find(&self.get()) {
            return Ok(Some(found));
        }
        let names = Arc::new(NameRegistry::read(session)?);
        let found = find(&names);
        self.set(names);
        Ok(found)
    }

    /// Returns the number of a group of roles, if there are roles in it.
    pub(super) fn group(&self, session: &DatabaseTransaction<'_>, name: &str) -> PostgresResult<Option<i64>> {
        self.find(session, |names| names.groups.get(name).copied())
    }

    /// Returns a role.
    pub(super) fn role(
        &self,
        session: &DatabaseTransaction<'_>,
        id: i64,
    ) -> PostgresResult<Arc<MentionRole>> {
        let found = self.find(session, |names| names.role(id).cloned())?;
        found.ok_or_else(|| PostgresError::damaged(format_args!("there is no role {id}")))
    }
}

impl NameRegistry {
    /// Reads all names.
    pub(super) fn read(session: &DatabaseTransaction<'_>) -> PostgresResult<Self> {
        let mut names = Self::default();
        let sql = "SELECT k.id, k.name, r.id, r.name, r.role_group, r.unit, r.relation, r.dangles
                   FROM kind k FULL JOIN role r ON r.kind = k.id";
        for row in session.rows(sql, &[])? {
            let kind = row.optional_text(1)?.unwrap_or_default();
            if let Some(id) = row.optional_integer(0)? {
                names.kinds.insert(kind.clone(), id);
            }
            if let Some(id) = row.optional_integer(2)? {
                let (name, group, unit) = (row.text(3)?.into(), row.text(4)?, row.text(5)?.into());
                let (relation, dangles) = (row.optional_text(6)?, row.flag(7)?);
                names.add_role(id, MentionRole { kind, name, group, unit, relation, dangles });
            }
        }
        Ok(names)
    }

    fn add_role(&mut self, id: i64, role: MentionRole) {
        self.role_ids.entry(role.kind.clone()).or_default().insert(role.name.to_string(), id);
        let group = self.groups.entry(role.group.clone()).or_insert(id);
        *group = id.min(*group);
        self.roles.insert(id, Arc::new(role));
    }

    /// Returns the number of a kind.
    pub(super) fn kind_id(&self, kind: &str) -> Option<i64> {
        self.kinds.get(kind).copied()
    }

    /// Returns a role.
    pub(super) fn role(&self, id: i64) -> Option<&Arc<MentionRole>> {
        self.roles.get(&id)
    }

    /// Returns the number of the group of a role.
    pub(super) fn group_of(&self, role: i64) -> Option<i64> {
        self.groups.get(&self.role(role)?.group).copied()
    }

    /// Returns the number of a role of a kind, and that of its group.
    pub(super) fn role_id(&self, kind: Kind, role: &Role) -> Option<(i64, i64)> {
        let id = *self.role_ids.get(kind.name())?.get(role.name)?;
        Some((id, self.group_of(id)?))
    }

    /// Returns whether all names of a batch are known.
    fn has_all(&self, batch: &[&Prepared]) -> bool {
        batch.iter().all(|prepared| self.has_names_of(prepared))
    }

    fn has_names_of(&self, prepared: &Prepared) -> bool {
        let admitted = prepared.admitted();
        let kind = admitted.kind();
        self.kind_id(kind.name()).is_some()
            && roles(admitted).all(|role| self.role_id(kind, role).is_some())
            && prepared.embedded().iter().all(|embedded| self.has_names_of(embedded))
    }

    /// Returns names that include those of a batch, adding them to the vault if they are new. The session must hold the
    /// writer lock.
    pub(super) fn with_all(
        known: Arc<Self>,
        session: &DatabaseTransaction<'_>,
        batch: &[&Prepared],
    ) -> PostgresResult<Arc<Self>> {
        if known.has_all(batch) {
            return Ok(known);
        }
        let mut names = Self::read(session)?;
        for prepared in batch {
            names.insert_names_of(session, prepared)?;
        }
        Ok(Arc::new(names))
    }

    /// Returns names that include those of artifacts, whose kinds are stored, as this program defines them. The session must hold
    /// the lock of writers.
    pub(super) fn corrected(session: &DatabaseTransaction<'_>, all: &[&Admitted]) -> PostgresResult<Self> {
        let mut names = Self::read(session)?;
        let mut used: BTreeMap<(&str, &str), (Kind, &Role)> = BTreeMap::new();
        for admitted in all {
            let kind = admitted.kind();
            used.extend(roles(admitted).map(|role| ((kind.name(), role.name), (kind, role))));
        }
        for (kind, role) in used.into_values() {
            match (names.role_id(kind, role), names.kind_id(kind.name())) {
                (Some((id, _)), _) => correct_role(session, id, role)?,
                (None, Some(id)) => names.insert_role(session, kind, id, role)?,
                (None, None) => {}
            }
        }
        session.execute(
            "UPDATE role r SET group_id = g.id FROM (SELECT role_group, min(id) AS id FROM role GROUP BY role_group) g
              WHERE g.role_group = r.role_group AND r.group_id IS DISTINCT FROM g.id",
            &[],
        )?;
        Self::read(session)
    }

    fn insert_names_of(
        &mut self,
        session: &DatabaseTransaction<'_>,
        prepared: &Prepared,
    ) -> PostgresResult<()> {
        for embedded in prepared.embedded() {
            self.insert_names_of(session, embedded)?;
        }
        let kind = prepared.admitted().kind();
        let kind_id = match self.kind_id(kind.name()) {
            Some(known) => known,
            None => self.insert_kind(session, kind)?,
        };
        for role in roles(prepared.admitted()) {
            if self.role_id(kind, role).is_none() {
                self.insert_role(session, kind, kind_id, role)?;
            }
        }
        Ok(())
    }

    fn insert_kind(&mut self, session: &DatabaseTransaction<'_>, kind: Kind) -> PostgresResult<i64> {
        let id = self.kinds.values().max().map_or(1, |last| last + 1);
        session.execute(
            "INSERT INTO kind (id, name, stated_by, is_directory) VALUES ($1, $2, $3, $4)",
            &[id.into(), kind.name().into(), kind.inverse_relation().into(), kind.is_of_directories().into()],
        )?;
        self.kinds.insert(kind.name().to_owned(), id);
        Ok(id)
    }

    fn insert_role(
        &mut self,
        session: &DatabaseTransaction<'_>,
        kind: Kind,
        kind_id: i64,
        role: &Role,
    ) -> PostgresResult<()> {
        let id = self.roles.keys().next_back().map_or(1, |last| last + 1);
        let row = MentionRole::new(kind, role);
        self.add_role(id, row.clone());
        let MentionRole { name, group, unit, relation, dangles, .. } = row;
        let group_id = self.group_of(id);
        session.execute(
            "INSERT INTO role (id, kind, name, role_group, group_id, unit, relation, dangles)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                id.into(),
                kind_id.into(),
                (&*name).into(),
                group.into(),
                group_id.into(),
                (&*unit).into(),
                relation.into(),
                dangles.into(),
            ],
        )?;
        Ok(())
    }
}

/// Returns the roles of the mentions of an artifact.
fn roles(admitted: &Admitted) -> impl Iterator<Item = &'static Role> {
    admitted.draft().mentions.iter().map(|mention| mention.role)
}

/// Corrects the stored properties of a role.
fn correct_role(session: &DatabaseTransaction<'_>, id: i64, role: &Role) -> PostgresResult<()> {
    let relation = role.relation.map(|relation| relation.name);
    session.execute(
        "UPDATE role SET role_group = $2, unit = $3, relation = $4, dangles = $5
          WHERE id = $1 AND (role_group, unit, relation, dangles) IS DISTINCT FROM ($2, $3, $4, $5)",
        &[
            id.into(),
            role.group.into(),
            role.unit.into(),
            relation.into(),
            role.relation.is_some_and(|relation| relation.dangles).into(),
        ],
    )?;
    Ok(())
}
