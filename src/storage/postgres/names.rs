//! The kinds and roles that artifacts have. They are added with the artifacts and never removed, so that every process
//! remembers them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use super::columns::{optional_text, text, value};
use super::error::{PostgresError, PostgresResult};
use super::session::DatabaseTransaction;
use crate::artifact::{Admitted, Kind, Role};
use crate::storage::Prepared;

/// A stored role.
#[derive(Clone, Debug)]
pub(super) struct StoredRole {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) group_id: i32,
    pub(super) unit: String,
    pub(super) relation: Option<String>,
    pub(super) dangles: bool,
}

/// All kinds and roles at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct NameRegistry {
    kinds: HashMap<i16, String>,
    kind_ids: HashMap<String, i16>,
    roles: HashMap<i32, Arc<StoredRole>>,
    role_ids: HashMap<(i16, String), i32>,
}

/// The names that this process has read.
#[derive(Debug, Default)]
pub(super) struct NameCache(RwLock<Arc<NameRegistry>>);

impl NameCache {
    pub(super) fn get(&self) -> Arc<NameRegistry> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Remembers names that are committed.
    pub(super) fn set(&self, names: Arc<NameRegistry>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
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

    /// Returns the name of a kind.
    pub(super) fn kind(&self, session: &DatabaseTransaction<'_>, id: i16) -> PostgresResult<String> {
        let found = self.find(session, |names| names.kinds.get(&id).cloned())?;
        found.ok_or_else(|| PostgresError::damaged(format_args!("there is no kind {id}")))
    }

    /// Returns the number of a group of roles, if there are roles in it.
    pub(super) fn group(&self, session: &DatabaseTransaction<'_>, name: &str) -> PostgresResult<Option<i32>> {
        self.find(session, |names| {
            names.roles.values().filter(|role| role.group == name).map(|role| role.group_id).min()
        })
    }

    /// Returns a role.
    pub(super) fn role(&self, session: &DatabaseTransaction<'_>, id: i32) -> PostgresResult<Arc<StoredRole>> {
        let found = self.find(session, |names| names.roles.get(&id).cloned())?;
        found.ok_or_else(|| PostgresError::damaged(format_args!("there is no role {id}")))
    }
}

impl NameRegistry {
    /// Reads all names.
    pub(super) fn read(session: &DatabaseTransaction<'_>) -> PostgresResult<Self> {
        let mut names = Self::default();
        for row in session.rows("SELECT id, name FROM kind", &[])? {
            names.add_kind(value(&row, 0)?, text(&row, 1)?);
        }
        let sql = "SELECT id, kind, name, role_group, group_id, unit, relation, dangles FROM role";
        for row in session.rows(sql, &[])? {
            let role = StoredRole {
                name: text(&row, 2)?,
                group: text(&row, 3)?,
                group_id: value(&row, 4)?,
                unit: text(&row, 5)?,
                relation: optional_text(&row, 6)?,
                dangles: value(&row, 7)?,
            };
            names.add_role(value(&row, 0)?, value(&row, 1)?, role);
        }
        Ok(names)
    }

    fn add_kind(&mut self, id: i16, name: String) {
        self.kinds.insert(id, name.clone());
        self.kind_ids.insert(name, id);
    }

    fn add_role(&mut self, id: i32, kind: i16, role: StoredRole) {
        self.role_ids.insert((kind, role.name.clone()), id);
        self.roles.insert(id, Arc::new(role));
    }

    /// Returns the number of a kind.
    pub(super) fn kind_id(&self, kind: &str) -> Option<i16> {
        self.kind_ids.get(kind).copied()
    }

    /// Returns the number of a role of a kind, and that of its group.
    pub(super) fn role_id(&self, kind: Kind, role: &Role) -> Option<(i32, i32)> {
        let id = *self.role_ids.get(&(self.kind_id(kind.name())?, role.name.to_owned()))?;
        Some((id, self.roles.get(&id)?.group_id))
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
                (None, Some(kind)) => names.insert_role(session, kind, role)?,
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
                self.insert_role(session, kind_id, role)?;
            }
        }
        Ok(())
    }

    fn insert_kind(&mut self, session: &DatabaseTransaction<'_>, kind: Kind) -> PostgresResult<i16> {
        let id = self.kinds.keys().max().map_or(1, |last| last + 1);
        session.execute(
            "INSERT INTO kind (id, name, stated_by, is_directory) VALUES ($1, $2, $3, $4)",
            &[&id, &kind.name(), &kind.inverse_relation(), &kind.is_of_directories()],
        )?;
        self.add_kind(id, kind.name().to_owned());
        Ok(id)
    }

    fn insert_role(
        &mut self,
        session: &DatabaseTransaction<'_>,
        kind: i16,
        role: &Role,
    ) -> PostgresResult<()> {
        let id = self.roles.keys().max().map_or(1, |last| last + 1);
        let group = self.roles.values().find(|known| known.group == role.group);
        let role = StoredRole {
            name: role.name.to_owned(),
            group: role.group.to_owned(),
            group_id: group.map_or(id, |known| known.group_id),
            unit: role.unit.to_owned(),
            relation: role.relation.map(|relation| relation.name.to_owned()),
            dangles: role.relation.is_some_and(|relation| relation.dangles),
        };
        session.execute(
            "INSERT INTO role (id, kind, name, role_group, group_id, unit, relation, dangles)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[&id, &kind, &role.name, &role.group, &role.group_id, &role.unit, &role.relation, &role.dangles],
        )?;
        self.add_role(id, kind, role);
        Ok(())
    }
}

/// Returns the roles of the mentions of an artifact.
fn roles(admitted: &Admitted) -> impl Iterator<Item = &'static Role> {
    admitted.draft().mentions.iter().map(|mention| mention.role)
}

/// Corrects the stored properties of a role.
fn correct_role(session: &DatabaseTransaction<'_>, id: i32, role: &Role) -> PostgresResult<()> {
    let relation = role.relation.map(|relation| relation.name);
    session.execute(
        "UPDATE role SET role_group = $2, unit = $3, relation = $4, dangles = $5
          WHERE id = $1 AND (role_group, unit, relation, dangles) IS DISTINCT FROM ($2, $3, $4, $5)",
        &[&id, &role.group, &role.unit, &relation, &role.relation.is_some_and(|relation| relation.dangles)],
    )?;
    Ok(())
}
