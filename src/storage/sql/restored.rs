//! Writing the rows that follow from the journal again.

use std::collections::{BTreeMap, BTreeSet};

use super::stored::seal;
use super::value::SqlType::{Bytes, Integer, Text};
use super::{AnnotationChanges, Dialect, SqlSession, SqlTable, SqlValue, put_tombstones};
use crate::artifact::Kind;
use crate::digest::CoreHash;
use crate::storage::catalog::Row;
use crate::storage::check::ExpectedCatalog;

/// The number of rows that are sent at once.
const ROWS: usize = 2_000;

const EXPECTED_ARTIFACT: SqlTable = SqlTable::new(
    "expected_artifact",
    0,
    &[
        ("id", Integer),
        ("core", Bytes),
        ("kind", Text),
        ("added_at", Integer),
        ("seen_at", Integer),
        ("arrival", Integer),
    ],
);

const EXPECTED_CAPTURE: SqlTable = SqlTable::new(
    "expected_capture",
    0,
    &[
        ("id", Integer),
        ("core", Bytes),
        ("digest", Bytes),
        ("size", Integer),
        ("added_at", Integer),
        ("seen_at", Integer),
        ("seal", Bytes),
        ("source_path", Text),
        ("state", Text),
        ("key_id", Text),
    ],
);

/// Temporary tables of the rows that should be there. Both databases understand the types.
const CREATE: [&str; 2] = [
    "CREATE TEMPORARY TABLE expected_artifact
       (id bigint, core bytea, kind text, added_at bigint, seen_at bigint, arrival bigint)",
    "CREATE TEMPORARY TABLE expected_capture
       (id bigint, core bytea, digest bytea, size bigint, added_at bigint, seen_at bigint, seal bytea, source_path text,
        state text, key_id text)",
];

/// Writes the rows of artifacts, captures, annotations and tombstones that follow from the journal, and replaces those that
/// were in their place. Other rows stay, except tombstones, and so does what is derived from stored bytes. Artifacts of kinds
/// and captures of bytes that are not stored are left out.
pub(super) fn restore_rows<S: SqlSession>(session: &S, catalog: &ExpectedCatalog) -> Result<(), S::Error> {
    let run = |sql: &str| session.execute(sql, &[]).map(drop);
    CREATE.into_iter().try_for_each(run)?;
    let mut artifacts = TemporaryRows { session, table: &EXPECTED_ARTIFACT, waiting: Vec::new() };
    let mut captures = TemporaryRows { session, table: &EXPECTED_CAPTURE, waiting: Vec::new() };
    let (mut annotations, mut tombstones) = (AnnotationChanges::default(), Vec::new());
    for row in catalog.rows() {
        match row {
            row @ Row::Artifact { .. } => artifacts.add(row)?,
            row @ Row::Capture { .. } => captures.add(row)?,
            Row::Signature { state, key_id, .. } => captures.sign(state, key_id),
            Row::Tombstone(tombstone) => tombstones.push(*tombstone),
            row => annotations.put(row),
        }
    }
    artifacts.send()?;
    captures.send()?;
    statements(S::DIALECT).iter().try_for_each(|sql| run(sql))?;
    annotations.write(session)?;
    run("DELETE FROM tombstone")?;
    put_tombstones(session, tombstones)
}

/// Rows of a temporary table, which are sent together.
struct TemporaryRows<'r, S> {
    session: &'r S,
    table: &'static SqlTable,
    waiting: Vec<Vec<SqlValue>>,
}

impl<S: SqlSession> TemporaryRows<'_, S> {
    fn add(&mut self, row: Row) -> Result<(), S::Error> {
        if self.waiting.len() >= ROWS {
            self.send()?;
        }
        self.waiting.push(values(row));
        Ok(())
    }

    /// Adds the signature of the capture that was added last.
    fn sign(&mut self, state: String, key_id: Option<String>) {
        if let Some([.., last_state, last_key]) = self.waiting.last_mut().map(Vec::as_mut_slice) {
            (*last_state, *last_key) = (state.into(), key_id.into());
        }
    }

    fn send(&mut self) -> Result<(), S::Error> {
        self.session.insert(self.table, std::mem::take(&mut self.waiting))
    }
}

/// Returns the values of an artifact or of a capture without a signature, as a temporary table has them.
fn values(row: Row) -> Vec<SqlValue> {
    match row {
        Row::Artifact { core, entry, kind, added_at, seen_at, arrival } => {
            vec![entry.into(), core.into(), kind.into(), added_at.into(), seen_at.into(), arrival.into()]
        }
        Row::Capture { core, capture, entry, size, added_at, seen_at, source_path } => vec![
            entry.into(),
            core.into(),
            capture.0.into(),
            size.into(),
            added_at.into(),
            seen_at.into(),
            seal(core, capture).to_vec().into(),
            source_path.into(),
            SqlValue::Null,
            SqlValue::Null,
        ],
        _ => Vec::new(),
    }
}

/// Returns the statements that make the rows of artifacts and captures those of the temporary tables, and drop these.
fn statements(dialect: Dialect) -> Vec<String> {
    let (artifact, blob) =
        (dialect.same_digest("a.core", "n.core"), dialect.same_digest("b.digest", "n.digest"));
    let (own, key) = (dialect.blob_of_capture(), dialect.key_of_blob());
    let joined = format!("expected_capture n JOIN artifact a ON {artifact} JOIN blob b ON {blob}");
    // A row with another number than that of its entry was one of these, and one of no artifact may have been.
    let moved = format!(
        "SELECT c.id FROM {joined} JOIN capture c ON c.artifact = a.id AND c.{own} = b.{key} WHERE c.id <> n.id
         UNION ALL SELECT c.id FROM capture c WHERE c.artifact NOT IN (SELECT id FROM artifact)"
    );
    let (further, values) = match dialect {
        Dialect::Sqlite => (&["source_entry"][..], "CASE WHEN n.source_path IS NOT NULL THEN n.id END"),
        Dialect::Postgres => {
            (&["source_path", "signature", "key_id"][..], "n.source_path, n.state, n.key_id")
        }
    };
    let columns = [&["artifact", own, "size", "added_at", "seen_at", "seal"], further].concat();
    let values = format!("a.id, b.{key}, n.size, n.added_at, n.seen_at, n.seal, {values}");
    let mut statements = vec![
        format!(
            "DELETE FROM artifact WHERE id IN
               (SELECT a.id FROM expected_artifact n JOIN artifact a ON {artifact} WHERE a.id <> n.id)"
        ),
        upsert(
            "artifact",
            &["core", "kind", "added_at", "seen_at", "arrival"],
            "n.core, k.id, n.added_at, n.seen_at, n.arrival FROM expected_artifact n JOIN kind k ON k.name = n.kind",
        ),
        format!("DELETE FROM member WHERE capture IN ({moved})"),
        format!("DELETE FROM capture WHERE id IN ({moved})"),
        upsert("capture", &columns, &format!("{values} FROM {joined}")),
    ];
    if dialect == Dialect::Sqlite {
        statements.extend(SIGNATURES.map(str::to_owned));
    }
    statements.extend(["expected_artifact", "expected_capture"].map(|table| format!("DROP TABLE {table}")));
    statements
}

/// Statements for the signatures of a vault in a file, which has a table of them.
const SIGNATURES: [&str; 2] = [
    "DELETE FROM signature WHERE capture IN (SELECT id FROM expected_capture)",
    "INSERT OR IGNORE INTO signature (capture, state, key_id)
     SELECT id, state, key_id FROM expected_capture WHERE state IS NOT NULL AND id IN (SELECT id FROM capture)",
];

/// Returns the statement that gives rows these values, which are selected from rows `n` with their numbers.
fn upsert(table: &str, columns: &[&str], values: &str) -> String {
    let set: Vec<String> = columns.iter().map(|column| format!("{column} = excluded.{column}")).collect();
    let (columns, set) = (columns.join(", "), set.join(", "));
    format!(
        "INSERT INTO {table} (id, {columns}) SELECT n.id, {values} WHERE true ON CONFLICT (id) DO UPDATE SET {set}"
    )
}

/// Inserts the rows of kinds that are missing, and gives all what this program says of them.
pub(super) fn restore_kinds<S: SqlSession>(
    session: &S,
    catalog: &ExpectedCatalog,
    kinds: &[Kind],
) -> Result<(), S::Error> {
    let artifact = |row| if let Row::Artifact { core, kind, .. } = row { Some((kind, core)) } else { None };
    for (name, core) in catalog.rows().filter_map(artifact).collect::<BTreeMap<_, _>>() {
        insert_kind(session, &name, core)?;
    }
    kinds.iter().try_for_each(|kind| correct_kind(session, *kind))
}

/// Inserts the row of a kind if it is missing. It gets the number that an artifact of the kind has, so that other rows still
/// refer to it.
pub(super) fn insert_kind<S: SqlSession>(session: &S, name: &str, of: CoreHash) -> Result<(), S::Error> {
    let (column, value) = match S::DIALECT {
        Dialect::Sqlite => ("", ""),
        Dialect::Postgres => (", is_directory", ", false"),
    };
    let sql = format!(
        "INSERT INTO kind (id, name{column}) SELECT coalesce(
           (SELECT a.kind FROM artifact a WHERE {} AND a.kind NOT IN (SELECT id FROM kind)),
           (SELECT max(n.id) + 1 FROM (SELECT id FROM kind UNION ALL SELECT kind FROM artifact) n), 1), ?1{value}
          WHERE NOT EXISTS (SELECT 1 FROM kind WHERE name = ?1)",
        S::DIALECT.same_digest("a.core", "?2")
    );
    session.execute(&sql, &[name.into(), (&of.0).into()]).map(drop)
}

/// Gives the row of a kind what this program says of it.
pub(super) fn correct_kind<S: SqlSession>(session: &S, kind: Kind) -> Result<(), S::Error> {
    let (column, value) = match S::DIALECT {
        Dialect::Sqlite => ("member", "?3"),
        Dialect::Postgres => ("is_directory", "?3 IS NULL"),
    };
    let sql = format!(
        "UPDATE kind SET stated_by = ?2, {column} = {value}
          WHERE name = ?1 AND (stated_by, {column}) IS DISTINCT FROM (?2, {value})"
    );
    let parameters = [kind.name().into(), kind.inverse_relation().into(), kind.document_member().into()];
    session.execute(&sql, &parameters).map(drop)
}

/// Returns the tables of what is derived from the bytes of captures, except what they mention, with the columns that refer to
/// captures or artifacts.
pub(super) fn derived_tables(dialect: Dialect) -> impl Iterator<Item = (&'static str, &'static str)> {
    let edges = (dialect == Dialect::Postgres).then_some("edge");
    let artifacts = ["attribute", "identity", "name_mention"].into_iter().chain(edges);
    artifacts.map(|table| (table, "artifact")).chain([("member", "capture")])
}

/// Deletes derived rows, and those of other tables, whose columns refer to artifacts or captures that do not exist. Returns the
/// names of their tables.
pub(super) fn delete_strays<S: SqlSession>(
    session: &S,
    others: &[(&'static str, &'static str)],
) -> Result<BTreeSet<&'static str>, S::Error> {
    let signatures = (S::DIALECT == Dialect::Sqlite).then_some(("signature", "capture"));
    let captures = signatures.into_iter().chain([("mention_list", "capture")]);
    let mut found = BTreeSet::new();
    for (table, column) in others.iter().copied().chain(captures).chain(derived_tables(S::DIALECT)) {
        let parent = if column == "capture" { "capture" } else { "artifact" };
        let sql = format!(
            "DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = {table}.{column})"
        );
        if session.execute(&sql, &[])? > 0 {
            found.insert(table);
        }
    }
    Ok(found)
}

/// The condition for values of attributes, in a vault in a file, that no artifact has.
pub(in crate::storage) const UNUSED_VALUE: &str = "id NOT IN (SELECT value FROM attribute)";

/// Tables of a vault in a file, with the conditions for rows that belong to nothing.
const UNUSED: [(&str, &str); 4] = [
    ("attribute", "value NOT IN (SELECT id FROM attribute_value)"),
    ("attribute_value", UNUSED_VALUE),
    (
        "payload",
        "blob NOT IN (SELECT id FROM blob) AND blob NOT IN (SELECT base FROM payload WHERE base IS NOT NULL)",
    ),
    ("dictionary", "id NOT IN (SELECT dictionary FROM payload WHERE dictionary IS NOT NULL)"),
];

/// Deletes rows that belong to nothing. Returns the names of their tables.
pub(super) fn delete_unused<S: SqlSession>(session: &S) -> Result<Vec<&'static str>, S::Error> {
    let mut found = Vec::new();
    for (table, condition) in UNUSED.into_iter().filter(|_| S::DIALECT == Dialect::Sqlite) {
        if session.execute(&format!("DELETE FROM {table} WHERE {condition}"), &[])? > 0 {
            found.push(table);
        }
    }
    Ok(found)
}
