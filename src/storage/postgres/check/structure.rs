//! Checks that do not read stored bytes: rows that are there twice, refer to missing ones, or contradict each other.

use super::DatabaseInspection;
use crate::storage::Result;
use crate::storage::check::finding::{
    DAMAGED_BYTES, DIFFERENT_ROW, Finding, MISSING_BYTES, SCHEMA_DIFFERS, SURPLUS_ROW,
};
use crate::storage::sql::{self, Dialect, Question, QuestionSubject};

/// Tables and columns, and those that the columns refer to.
const REFERENCES: &[(&str, &str, &str, &str)] = &[
    ("artifact", "kind", "kind", "id"),
    ("attribute", "artifact", "artifact", "id"),
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
        questions.extend(KEYS.iter().map(|key| duplicates(*key)));
        questions.extend(REFERENCES.iter().map(|reference| references(*reference)));
        questions.push(sql::wrong_creation_times(Dialect::Postgres));
        questions.extend(of_rows());
        questions.extend(of_blobs());
        sql::ask(self, &questions, findings)
    }
}

fn duplicates((table, key): (&'static str, &str)) -> Question {
    let sql = format!(
        "SELECT count(*), array_to_string(ARRAY[{}], ', ') FROM {table}
          GROUP BY {key} HAVING count(*) > 1 ORDER BY {key}",
        key.split(", ").map(|column| format!("{column}::text")).collect::<Vec<_>>().join(", ")
    );
    Question::new(SURPLUS_ROW, QuestionSubject::Table(table), "{} of its rows have the key {}", sql)
}

fn references((table, column, parent, key): (&'static str, &str, &str, &str)) -> Question {
    // The bytes of a blob are in an object or in its row; no other row may refer to nothing.
    let but = if column == "object" { "AND x.object IS NOT NULL" } else { "" };
    let sql = format!(
        "SELECT count(*), '{parent}' FROM {table} x
          WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.{key} = x.{column}) {but} HAVING count(*) > 0"
    );
    let detail = "{} of its rows refer to rows of {} that do not exist";
    Question::new(SURPLUS_ROW, QuestionSubject::Table(table), detail, sql)
}

fn of_rows() -> [Question; 2] {
    [
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
              WHERE NOT ((bytes IS NULL) <> (object IS NULL) AND (object IS NULL) = (start IS NULL)
                         AND (start IS NULL) = (length IS NULL))
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
