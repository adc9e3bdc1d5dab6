//! Checks that do not read stored bytes: the journal and the rows that follow from it, rows that are there twice, refer to
//! missing ones, or contradict each other, and tables, indexes, constraints and views that differ from those of the schema.

use std::collections::{BTreeMap, BTreeSet};

use super::{DatabaseInspection, table};
use crate::storage::check::finding::{
    BROKEN_CHAIN, DAMAGED_BYTES, DIFFERENT_ROW, Finding, INDEX_DIFFERS, MISSING_BYTES, SCHEMA_DIFFERS,
    SURPLUS_ROW,
};
use crate::storage::postgres::error::{PostgresError, PostgresResult};
use crate::storage::postgres::schema::VAULT;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::sql::{self, Dialect, Question, QuestionSubject, SqlSession as _};
use crate::storage::{BUSY_TIMEOUT, Result};

/// Tables and columns, and those that the columns refer to.
const REFERENCES: &[(&str, &str, &str, &str)] = &[
    ("artifact", "kind", "kind", "id"),
    ("attribute", "artifact", "artifact", "id"),
    ("blob", "base", "blob", "digest"),
    ("blob", "object", "object", "name"),
    ("capture", "artifact", "artifact", "id"),
    ("capture", "digest", "blob", "digest"),
    ("edge", "artifact", "artifact", "id"),
    ("edge", "role", "role", "id"),
    ("identity", "artifact", "artifact", "id"),
    ("label", "artifact", "artifact", "id"),
    ("link", "source", "artifact", "id"),
    ("link", "target", "artifact", "id"),
    ("member", "blob", "blob", "digest"),
    ("member", "capture", "capture", "id"),
    ("mention_list", "capture", "capture", "id"),
    ("mention_list", "group_id", "role", "group_id"),
    ("name_mention", "artifact", "artifact", "id"),
    ("note", "artifact", "artifact", "id"),
    ("pin", "artifact", "artifact", "id"),
    ("role", "kind", "kind", "id"),
    ("tag", "artifact", "artifact", "id"),
];

/// Tables and their keys.
const KEYS: &[(&str, &str)] = &[
    ("artifact", "id"),
    ("blob", "digest"),
    ("capture", "id"),
    ("kind", "id"),
    ("kind", "name"),
    ("object", "name"),
    ("role", "id"),
    ("role", "kind, name"),
];

impl DatabaseInspection<'_> {
    /// Finds duplicate and incomplete rows, rows that refer to missing ones, and rows that contradict each other.
    pub(super) fn structure(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let mut questions = Vec::new();
        questions.extend(KEYS.iter().map(|(table, key)| duplicates(table, key)));
        questions.extend(
            REFERENCES.iter().map(|(table, column, parent, key)| references(table, column, parent, key)),
        );
        questions.push(sql::wrong_creation_times(Dialect::Postgres));
        questions.extend(of_rows());
        questions.extend(of_blobs());
        sql::ask(self, &questions, findings)
    }
}

fn duplicates(table: &'static str, key: &str) -> Question {
    let sql = format!(
        "SELECT count(*), array_to_string(ARRAY[{}], ', ') FROM {table}
          GROUP BY {key} HAVING count(*) > 1 ORDER BY {key}",
        key.split(", ").map(|column| format!("{column}::text")).collect::<Vec<_>>().join(", ")
    );
    Question::new(SURPLUS_ROW, QuestionSubject::Table(table), "{} of its rows have the key {}", sql)
}

fn references(table: &'static str, column: &str, parent: &str, key: &str) -> Question {
    // The bytes of a blob are in an object, in its base or in its row; no other row may refer to nothing.
    let but = if table == "blob" { format!("AND x.{column} IS NOT NULL") } else { String::new() };
    let sql = format!(
        "SELECT count(*), '{parent}' FROM {table} x
          WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.{key} = x.{column}) {but} HAVING count(*) > 0"
    );
    let detail = "{} of its rows refer to rows of {} that do not exist";
    Question::new(SURPLUS_ROW, QuestionSubject::Table(table), detail, sql)
}

fn of_rows() -> [Question; 3] {
    [
        Question::new(
            BROKEN_CHAIN,
            QuestionSubject::Table("head"),
            "it does not name entry {}, the last one",
            "SELECT coalesce(j.seq, 0)
               FROM (VALUES (decode(repeat('00', 32), 'hex'))) none(chain)
               LEFT JOIN (SELECT seq, at, chain FROM journal ORDER BY seq DESC LIMIT 1) j ON true
              WHERE (SELECT count(*) FROM head) <> 1
                 OR EXISTS (SELECT 1 FROM head h
                             WHERE h.id IS DISTINCT FROM 1 OR h.seq IS DISTINCT FROM coalesce(j.seq, 0)
                                OR h.at IS DISTINCT FROM j.at OR h.chain IS DISTINCT FROM coalesce(j.chain, none.chain))",
        ),
        Question::new(
            DIFFERENT_ROW,
            QuestionSubject::Table("role"),
            "group_id of the role {} of {} is that of another group",
            "SELECT r.name, k.name FROM role r JOIN
               (SELECT role_group, min(id) AS id FROM role GROUP BY role_group) g ON g.role_group = r.role_group
               LEFT JOIN kind k ON k.id = r.kind
              WHERE r.group_id IS DISTINCT FROM g.id ORDER BY r.id",
        ),
        Question::new(
            SCHEMA_DIFFERS,
            QuestionSubject::Table("vault"),
            "it has {} rows instead of one with the number 1",
            "SELECT count(*) FROM vault HAVING count(*) <> 1 OR count(*) FILTER (WHERE id = 1) <> 1",
        ),
    ]
}

/// Returns questions about the rows that say where bytes are.
fn of_blobs() -> [Question; 5] {
    [
        Question::new(
            SURPLUS_ROW,
            QuestionSubject::Blob,
            "blob: no capture has it",
            sql::blobs_without_captures(Dialect::Postgres, false),
        ),
        Question::new(
            MISSING_BYTES,
            QuestionSubject::Blob,
            "blob: there is none",
            "SELECT m.blob FROM (SELECT blob FROM member UNION SELECT digest FROM capture) m
              WHERE NOT EXISTS (SELECT 1 FROM blob b WHERE b.digest = m.blob) ORDER BY 1",
        ),
        Question::new(
            DAMAGED_BYTES,
            QuestionSubject::Blob,
            "its row does not say where its bytes are",
            "SELECT digest FROM blob
              WHERE NOT ((bytes IS NULL) = (object IS NOT NULL OR base IS NOT NULL)
                         AND (object IS NULL) = (start IS NULL) AND (start IS NULL) = (length IS NULL))
                 OR (object IS NULL AND condemned_at IS NOT NULL) OR start < 0 OR length < 0 ORDER BY digest",
        ),
        // A blob that was stored twice at the same time has its bytes in another object, so that an object may be larger.
        Question::new(
            DIFFERENT_ROW,
            QuestionSubject::Table("object"),
            "object {}: it should be {} or more but is {}",
            "SELECT o.name, coalesce(max(b.start + b.length), 0), o.size FROM object o
               LEFT JOIN blob b ON b.object = o.name
              GROUP BY o.name, o.size HAVING o.size IS NULL OR o.size < coalesce(max(b.start + b.length), 0)
              ORDER BY o.name",
        ),
        // The storage of the vault is recorded if blobs are there, and once.
        Question::new(
            SCHEMA_DIFFERS,
            QuestionSubject::Table("blob_store"),
            "its rows do not fit where the bytes of blobs are: {}",
            "SELECT count(*) FROM blob_store
             HAVING count(*) > 1
                 OR count(*) FILTER (WHERE id = 1 AND octet_length(vault) = 16 AND url IS NOT NULL AND is_claimed) <> count(*)
                 OR (count(*) = 0 AND EXISTS (SELECT 1 FROM blob WHERE object IS NOT NULL))
                 OR (count(*) > 0 AND EXISTS (SELECT 1 FROM blob WHERE bytes IS NOT NULL))",
        ),
    ]
}

impl DatabaseInspection<'_> {
    /// Checks that the recorded state of the index agrees with its rows.
    pub(super) fn search_index(&self, findings: &mut Vec<Finding>) -> Result<()> {
        let mut found = Vec::new();
        sql::ask(self, &questions(), &mut found)?;
        findings.extend(found.into_iter().map(|finding| Finding { info: INDEX_DIFFERS, ..finding }));
        Ok(())
    }
}

fn questions() -> [Question; 6] {
    [
        Question::of_search(
            "states without a number, a version or a capture: {}",
            "search_state WHERE id IS DISTINCT FROM 1 OR version IS NULL OR capture IS NULL OR capture < 0",
        ),
        Question::of_search(
            "states more than one: {}",
            "(SELECT count(*) AS states FROM search_state) s WHERE states > 1",
        ),
        Question::of_search(
            "captures recorded as indexed that do not exist yet: {}",
            "search_state WHERE capture > (SELECT coalesce(max(id), 0) FROM capture)",
        ),
        Question::of_search(
            "captures recorded as indexed that are missing: {}",
            "capture c JOIN search_state s ON c.id <= s.capture
              WHERE NOT EXISTS (SELECT 1 FROM search_capture i WHERE i.capture = c.id)",
        ),
        Question::of_search(
            "captures indexed but not recorded as indexed: {}",
            "search_capture i WHERE NOT EXISTS (SELECT 1 FROM search_state s WHERE i.capture <= s.capture)",
        ),
        Question::of_search(
            "captures indexed more than once: {}",
            "(SELECT capture FROM search_capture GROUP BY capture HAVING count(*) > 1) i",
        ),
    ]
}

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
        let schema = format!("runvault_check_{}", row.integer(0)?);
        session.batch(&format!("CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}"))?;
        session.batch(VAULT)?;
        objects(&session)
    }
}

fn objects(session: &DatabaseTransaction<'_>) -> PostgresResult<RelationDefinitions> {
    let mut objects = RelationDefinitions::new();
    for row in session.rows(OBJECTS, &[])? {
        objects.entry(row.text(0)?).or_default().insert(row.optional_text(1)?.unwrap_or_default());
    }
    Ok(objects)
}

/// Returns the beginning of a definition.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
