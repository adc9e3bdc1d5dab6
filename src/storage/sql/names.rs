//! Names of artifacts, and references by name.

use std::collections::{HashMap, HashSet};

use super::{Dialect, SqlSession, in_order, read_rows, text_key};
use crate::digest::CoreHash;
use crate::storage::interface::{NameMention, NameUse, Names, UnresolvedReference, sort_unresolved};

/// Returns the condition that the artifact of the name `i` does not refer to it, as redacted copies of a run do.
pub(in crate::storage) fn is_original(dialect: Dialect) -> String {
    let same = dialect.same_handle("n", "i");
    format!("NOT EXISTS (SELECT 1 FROM name_mention n WHERE n.artifact = i.artifact AND {same})")
}

/// Returns the names that artifacts have and mention, sorted.
pub(in crate::storage) fn names<S: SqlSession>(session: &S, of: &[CoreHash]) -> Result<Vec<Names>, S::Error> {
    let artifacts = S::DIALECT.artifacts("?1");
    let sql = format!(
        "SELECT a.core, 0 AS is_mentioned, NULL AS relation, i.handle, {} AS flag
           FROM {artifacts} JOIN identity i ON i.artifact = a.id
         UNION
         SELECT a.core, 1, n.relation, n.handle, n.dangles FROM {artifacts} JOIN name_mention n ON n.artifact = a.id
         ORDER BY 1, 2, 3, 4",
        is_original(S::DIALECT)
    );
    let mut found: HashMap<CoreHash, Names> = HashMap::new();
    for row in session.rows(&sql, &[of.into()])? {
        let names = found.entry(row.core(0)?).or_default();
        let (handle, flag) = (row.text(3)?, row.flag(4)?);
        if row.flag(1)? {
            names.mentioned.push(NameMention { relation: row.text(2)?, handle, dangles: flag });
        } else {
            names.original.extend(flag.then(|| handle.clone()));
            names.own.push(handle);
        }
    }
    Ok(in_order(of, &found))
}

/// Returns the artifacts that have each name and that refer to it, in the order in which they were added.
pub(in crate::storage) fn named<S: SqlSession>(
    session: &S,
    names: &[String],
) -> Result<Vec<NameUse>, S::Error> {
    let sql = format!(
        "SELECT i.handle, 0 AS refers, NULL AS relation, a.id, a.core, {} AS is_original
           FROM identity i JOIN artifact a ON a.id = i.artifact WHERE {}
         UNION
         SELECT m.handle, 1, m.relation, a.id, a.core, m.dangles
           FROM name_mention m JOIN artifact a ON a.id = m.artifact WHERE {}
         ORDER BY 1, 2, 3, 4",
        is_original(S::DIALECT),
        S::DIALECT.has_handle("i", "?1", "?2"),
        S::DIALECT.has_handle("m", "?1", "?2")
    );
    let keys: Vec<i64> = names.iter().map(|name| text_key(name)).collect();
    let mut found: HashMap<String, NameUse> = HashMap::new();
    for row in session.rows(&sql, &[names.into(), keys.as_slice().into()])? {
        let uses = found.entry(row.text(0)?).or_default();
        let artifact = row.core(4)?;
        if row.flag(1)? {
            uses.referring.push((row.text(2)?, artifact));
        } else {
            uses.originals.extend(row.flag(5)?.then_some(artifact));
            uses.identified.push(artifact);
        }
    }
    Ok(in_order(names, &found))
}

/// Returns the names that several originals have, of kinds with mentions in one group, sorted.
pub(in crate::storage) fn shared_names<S: SqlSession>(
    session: &S,
    group: &str,
) -> Result<Vec<String>, S::Error> {
    let sql = format!(
        "SELECT i.handle FROM identity i JOIN artifact a ON a.id = i.artifact
          WHERE a.kind IN (SELECT r.kind FROM role r WHERE r.role_group = ?1) AND {}
          GROUP BY i.handle HAVING count(DISTINCT i.artifact) > 1 ORDER BY i.handle",
        is_original(S::DIALECT)
    );
    read_rows(session, &sql, &[group.into()], |row| row.text(0))
}

/// Returns the condition that another artifact of the kind of the artifact `a` has one of its names, or refers to a name that
/// it refers to.
pub(in crate::storage) fn has_namesake_condition(dialect: Dialect) -> String {
    let shares = |table: &str| {
        // The zero keeps the databases from reading all artifacts of the kind.
        format!(
            "EXISTS (SELECT 1 FROM {table} i JOIN {table} j ON {} JOIN artifact b ON b.id = j.artifact
              WHERE i.artifact = a.id AND b.id <> a.id AND b.kind + 0 = a.kind)",
            dialect.same_handle("j", "i")
        )
    };
    format!("{} OR {}", shares("identity"), shares("name_mention"))
}

/// Returns, for each artifact, whether another one of its kind has a name of it, or refers to a name that it refers to.
pub(in crate::storage) fn has_namesake<S: SqlSession>(
    session: &S,
    of: &[CoreHash],
) -> Result<Vec<bool>, S::Error> {
    let sql = format!(
        "SELECT a.core FROM {} WHERE {}",
        S::DIALECT.artifacts("?1"),
        has_namesake_condition(S::DIALECT)
    );
    let found: HashSet<CoreHash> =
        read_rows(session, &sql, &[of.into()], |row| row.core(0))?.into_iter().collect();
    Ok(of.iter().map(|core| found.contains(core)).collect())
}

/// Returns the references to the first `limit` names after `after` that no other artifact has, sorted.
pub(in crate::storage) fn missing_names<S: SqlSession>(
    session: &S,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<UnresolvedReference>, S::Error> {
    let sql = format!(
        "WITH missing AS (
           SELECT n.handle, n.artifact, n.relation FROM name_mention n
            WHERE n.dangles AND (?1 IS NULL OR n.handle > ?1)
              AND NOT EXISTS (SELECT 1 FROM identity i WHERE {} AND i.artifact <> n.artifact))
         SELECT m.handle, f.core, m.relation FROM missing m JOIN artifact f ON f.id = m.artifact
          WHERE m.handle IN (SELECT DISTINCT handle FROM missing ORDER BY handle LIMIT ?2)",
        S::DIALECT.same_handle("i", "n")
    );
    let mut missing = read_rows(session, &sql, &[after.into(), limit.into()], |row| {
        Ok(UnresolvedReference::to_name(row.text(0)?, row.core(1)?, row.text(2)?))
    })?;
    sort_unresolved(&mut missing);
    Ok(missing)
}
