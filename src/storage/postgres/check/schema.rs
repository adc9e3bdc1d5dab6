//! Comparison of the tables, indexes, constraints and views with those of the schema.

use std::collections::{BTreeMap, BTreeSet};

use super::{DatabaseInspection, table};
use crate::storage::check::finding::{Finding, SCHEMA_DIFFERS};
use crate::storage::postgres::columns::value;
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::schema::VAULT;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::{BUSY_TIMEOUT, Result};

/// The definitions of a table, an index or a view, by its name.
type RelationDefinitions = BTreeMap<String, BTreeSet<String>>;

/// The table of the version is not part of a migration: there would be none without it.
const OBJECTS: &str = "
  WITH relation AS
    (SELECT c.oid, c.relname::text COLLATE \"C\" AS name, c.relkind, c.relpersistence, c.relrowsecurity
       FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relname <> 'vault'),
  object AS
    (SELECT name, 'kind ' || relkind::text || relpersistence::text || relrowsecurity::text AS definition
       FROM relation WHERE relkind NOT IN ('i', 'I', 't')
     UNION ALL
     SELECT r.name, 'column ' || a.attname::text || ' ' || format_type(a.atttypid, a.atttypmod)
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
            || coalesce(' COLLATE ' || o.collname::text, '')
            || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') || ' ' || a.attstorage::text
       FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
       LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
       LEFT JOIN pg_collation o ON o.oid = a.attcollation
      WHERE r.relkind NOT IN ('i', 'I', 't')
     UNION ALL
     SELECT r.name, 'constraint ' || pg_get_constraintdef(n.oid)
       FROM relation r JOIN pg_constraint n ON n.conrelid = r.oid WHERE n.contype IN ('p', 'u', 'f', 'c', 'x')
     UNION ALL
     SELECT r.name,
            'index ' || replace(pg_get_indexdef(i.indexrelid), format('%I.', current_schema()), '')
            || CASE WHEN i.indisvalid AND i.indisready THEN '' ELSE ' (not valid)' END
       FROM relation r JOIN pg_index i ON i.indrelid = r.oid WHERE r.relkind <> 't'
     UNION ALL
     SELECT r.name, 'view ' || pg_get_viewdef(r.oid) FROM relation r WHERE r.relkind IN ('v', 'm')
     UNION ALL
     SELECT r.name, 'trigger ' || t.tgname::text
       FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
     UNION ALL
     SELECT r.name, 'rule ' || w.rulename::text
       FROM relation r JOIN pg_rewrite w ON w.ev_class = r.oid WHERE w.rulename <> '_RETURN'
     UNION ALL
     SELECT p.proname::text COLLATE \"C\", 'function ' || coalesce(p.prosrc, '') FROM pg_proc p
      WHERE p.pronamespace = current_schema()::regnamespace)
  SELECT name, definition FROM object";

impl DatabaseInspection<'_> {
    /// Finds tables, indexes and views that differ from those of the schema.
    pub(super) fn schema(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let Some(found) = self.look(table("pg_class"), findings, || objects(&self.session))? else {
            return Ok(());
        };
        let expected = match self.expected() {
            Ok(expected) => expected,
            // A role that only reads, or a standby, cannot create tables to compare with.
            Err(failure) => return self.skip("the definitions of tables, indexes and views", failure),
        };
        let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
        for name in names {
            let detail = match (expected.get(name), found.get(name)) {
                (Some(expected), Some(found)) => match expected.symmetric_difference(found).next() {
                    None => continue,
                    Some(first) => {
                        let what = if found.contains(first) { "is not part of it" } else { "is missing" };
                        format!("it is defined differently: {} {what}", shortened(first))
                    }
                },
                (Some(_), None) => "it is missing".to_owned(),
                (None, _) => "it is not part of the vault's schema".to_owned(),
            };
            findings.push(Finding::new(SCHEMA_DIFFERS, table(name), detail));
        }
        Ok(())
    }

    /// Returns the definitions of an empty vault, which is created in a transaction that is not committed: the server
    /// describes both in the same words.
    fn expected(&self) -> PostgresResult<RelationDefinitions> {
        let session = DatabaseTransaction::to_write(self.session.server(), BUSY_TIMEOUT)?;
        let row = session.row("SELECT pg_backend_pid()", &[])?;
        let row = row.ok_or_else(|| PostgresError::damaged("a process has no number"))?;
        let schema = format!("runvault_check_{}", value::<i32>(&row, 0)?);
        session.batch(&format!("CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}"))?;
        session.batch(VAULT)?;
        objects(&session)
    }
}

fn objects(session: &DatabaseTransaction<'_>) -> PostgresResult<RelationDefinitions> {
    let mut objects = RelationDefinitions::new();
    for row in session.rows(OBJECTS, &[])? {
        let (name, definition): (String, Option<String>) = (value(&row, 0)?, value(&row, 1)?);
        objects.entry(name).or_default().insert(definition.unwrap_or_default());
    }
    Ok(objects)
}

/// Returns the beginning of a definition.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
