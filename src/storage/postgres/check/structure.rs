//! Checks that do not read stored bytes: rows that are there twice, refer to missing ones, or lack those that belong to
//! them.

use postgres::Row;

use super::{DatabaseInspection, ROWS, read_all, table};
use crate::artifact::CREATED_AT;
use crate::digest::hex;
use crate::storage::check::KindFacts;
use crate::storage::check::finding::{
    DAMAGED_BYTES, DIFFERENT_ROW, Finding, MISSING_BYTES, SCHEMA_DIFFERS, SURPLUS_ROW, Subject,
};
use crate::storage::postgres::columns::{blob, core, object_name, optional_text, text, value};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::shared_statements::shared_row;
use crate::storage::postgres::unreferenced::UNREFERENCED;
use crate::storage::sql::{TOMBSTONE, tombstone};
use crate::storage::{PayloadDefect, Result, Tombstone};

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

/// Tables with a number that stands for one row.
const NUMBERED: &[&str] = &["artifact", "capture", "kind", "role"];

/// Artifacts whose recorded creation time is not the latest of their attributes.
fn misdated() -> String {
    format!(
        "SELECT a.core FROM artifact a LEFT JOIN
           (SELECT artifact, max(number) AS number FROM attribute WHERE name = '{CREATED_AT}' GROUP BY artifact) t
             ON t.artifact = a.id
          WHERE a.created_at IS DISTINCT FROM t.number ORDER BY a.core"
    )
}

/// Roles whose group does not have the lowest number of its roles.
const MISGROUPED: &str = "SELECT k.name, r.name FROM role r JOIN
       (SELECT role_group, min(id) AS id FROM role GROUP BY role_group) g ON g.role_group = r.role_group
       LEFT JOIN kind k ON k.id = r.kind
      WHERE r.group_id IS DISTINCT FROM g.id ORDER BY r.id";

impl DatabaseInspection<'_> {
    /// Finds duplicate and incomplete rows, and rows that refer to missing ones.
    pub(super) fn structure(&self, findings: &mut Vec<Finding>) -> Result<()> {
        self.duplicates(findings)?;
        self.references(findings)?;
        let unreferenced = format!(
            "SELECT digest FROM blob b WHERE {UNREFERENCED} AND condemned_at IS NULL ORDER BY digest"
        );
        self.each(&unreferenced, "blob", findings, &|row| {
            Ok(Finding::new(SURPLUS_ROW, Subject::Blob(blob(row, 0)?), "blob: no capture has it"))
        })?;
        self.each(
            "SELECT m.blob FROM (SELECT blob FROM member UNION SELECT digest FROM capture) m
              WHERE NOT EXISTS (SELECT 1 FROM blob b WHERE b.digest = m.blob) ORDER BY 1",
            "blob",
            findings,
            &|row| {
                let blob = blob(row, 0)?;
                let missing = PayloadDefect::Missing { blob };
                Ok(Finding::new(MISSING_BYTES, Subject::Blob(blob), missing.to_string()))
            },
        )?;
        self.each(&misdated(), "artifact", findings, &|row| {
            let detail = "artifact: created_at does not match its attributes";
            Ok(Finding::new(DIFFERENT_ROW, Subject::Artifact(core(row, 0)?), detail))
        })?;
        self.each(MISGROUPED, "role", findings, &|row| {
            let kind = optional_text(row, 0)?.unwrap_or_default();
            let detail = format!("group_id of the role {} of {kind} is that of another group", text(row, 1)?);
            Ok(Finding::new(DIFFERENT_ROW, table("role"), detail))
        })?;
        let sql = "SELECT count(*) FROM vault HAVING count(*) <> 1 OR count(*) FILTER (WHERE id = 1) <> 1";
        self.each(sql, "vault", findings, &|row| {
            let detail = format!("it has {} rows instead of one with the number 1", value::<i64>(row, 0)?);
            Ok(Finding::new(SCHEMA_DIFFERS, table("vault"), detail))
        })
    }

    /// Finds rows with the same key. Artifacts and captures are compared with the journal.
    fn duplicates(&self, findings: &mut Vec<Finding>) -> Result<()> {
        for name in NUMBERED {
            let sql = format!(
                "SELECT id::bigint, count(*) FROM {name} GROUP BY id HAVING count(*) > 1 ORDER BY id"
            );
            self.each(&sql, name, findings, &|row| {
                let (id, count): (i64, i64) = (value(row, 0)?, value(row, 1)?);
                let detail = format!("{count} of its rows have the number {id}");
                Ok(Finding::new(SURPLUS_ROW, table(name), detail))
            })?;
        }
        for (name, columns, shown) in [
            ("kind", "name", "min(name)"),
            ("role", "kind, name", "min(name)"),
            ("blob", "digest", "encode(digest, 'hex')"),
        ] {
            let sql = format!(
                "SELECT {shown}, count(*) FROM {name} GROUP BY {columns} HAVING count(*) > 1 ORDER BY {columns}"
            );
            self.each(&sql, name, findings, &|row| {
                let detail = format!("{} of its rows have the key {}", value::<i64>(row, 1)?, text(row, 0)?);
                Ok(Finding::new(SURPLUS_ROW, table(name), detail))
            })?;
        }
        Ok(())
    }

    /// Finds rows that refer to missing rows, one finding per pair of tables.
    fn references(&self, findings: &mut Vec<Finding>) -> Result<()> {
        for (child, column, parent, key) in REFERENCES {
            // The bytes of a blob are in an object or in its row; no other row may refer to nothing.
            let but = if *column == "object" { "AND x.object IS NOT NULL" } else { "" };
            let sql = format!(
                "SELECT count(*) FROM {child} x WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.{key} = x.{column})
                    {but} HAVING count(*) > 0"
            );
            self.each(&sql, child, findings, &|row| {
                let count: i64 = value(row, 0)?;
                let detail = format!("{count} of its rows refer to rows of {parent} that do not exist");
                Ok(Finding::new(SURPLUS_ROW, table(child), detail))
            })?;
        }
        Ok(())
    }

    /// Finds the artifacts that are recorded as removed and whose bytes are still in the vault.
    pub(super) fn undeleted(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let sql = format!(
            "SELECT {TOMBSTONE}, h.kind, h.core FROM tombstone t LEFT JOIN LATERAL
               (SELECT k.name AS kind, a.core FROM member m JOIN capture c ON c.id = m.capture
                  JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
                 WHERE m.blob = t.digest ORDER BY a.core LIMIT 1) h ON true
              WHERE EXISTS (SELECT 1 FROM blob b WHERE b.digest = t.digest AND b.condemned_at IS NULL)
                AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.core = t.core)
              ORDER BY t.core, t.digest, t.entry"
        );
        let mut found: Vec<(Tombstone, Finding)> = Vec::new();
        let mut unreadable = Vec::new();
        self.look(table("tombstone"), &mut findings, || {
            for row in self.session.rows(&sql, &[])? {
                found.extend(read_all(&[row], &table("tombstone"), &mut unreadable, removed));
            }
            Ok(())
        })?;
        found.dedup_by_key(|(tombstone, _)| tombstone.core);
        findings.append(&mut unreadable);
        findings.extend(found.into_iter().map(|(_, finding)| finding));
        Ok(findings)
    }

    /// Returns the kinds as the vault records them.
    pub(super) fn stored_kinds(&self, findings: &mut Vec<Finding>) -> Result<Vec<KindFacts>> {
        let mut kinds = Vec::new();
        let mut found = Vec::new();
        self.look(table("kind"), findings, || {
            self.scan("SELECT name, stated_by, is_directory FROM kind ORDER BY name", ROWS, &mut |rows| {
                kinds.extend(read_all(rows, &table("kind"), &mut found, |row| {
                    let (name, inverse_relation) = (text(row, 0)?, optional_text(row, 1)?);
                    Ok(KindFacts { name, inverse_relation, is_directory: value(row, 2)?, member: None })
                }));
                Ok(())
            })
        })?;
        findings.append(&mut found);
        Ok(kinds)
    }

    /// Adds a finding for every row that `sql` returns. A row that cannot be read is a finding about the table `name`.
    pub(super) fn each(
        &self,
        sql: &str,
        name: &str,
        findings: &mut Vec<Finding>,
        finding: &dyn Fn(&Row) -> PostgresResult<Finding>,
    ) -> Result<()> {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        self.look(table(name), findings, || {
            self.scan(sql, ROWS, &mut |rows| {
                found.append(&mut read_all(rows, &table(name), &mut unreadable, finding));
                Ok(())
            })
        })?;
        findings.append(&mut found);
        findings.append(&mut unreadable);
        Ok(())
    }
}

fn removed(row: &Row) -> PostgresResult<(Tombstone, Finding)> {
    let tombstone = tombstone(&shared_row(row)?)?;
    let place = match optional_text(row, 9)? {
        Some(kind) => format!("its bytes are in {kind} {}", core(row, 10)?),
        None => "its bytes are in the vault, but no artifact has them".to_owned(),
    };
    let detail = format!("tombstone: {}; {place}", tombstone.removal());
    let finding = Finding::new(SURPLUS_ROW, Subject::Artifact(tombstone.core), detail);
    Ok((tombstone, finding))
}

/// Blobs whose rows do not say where the bytes are.
const NOWHERE: &str = "SELECT digest FROM blob
  WHERE NOT ((bytes IS NULL) <> (object IS NULL) AND (object IS NULL) = (start IS NULL)
             AND (start IS NULL) = (length IS NULL))
     OR (object IS NULL AND condemned_at IS NOT NULL) OR start < 0 OR length < 0 ORDER BY digest";

/// Objects whose recorded size is not where the last blob in them ends. A blob that was stored twice at the same time has
/// its bytes in another object, so that an object may be larger.
const TOO_SMALL: &str = "SELECT o.name, o.size, max(b.start + b.length) FROM object o
  LEFT JOIN blob b ON b.object = o.name
  GROUP BY o.name, o.size HAVING o.size IS NULL OR o.size < coalesce(max(b.start + b.length), 0) ORDER BY o.name";

const DUPLICATES: &str =
    "SELECT name, count(*) FROM object GROUP BY name HAVING count(*) > 1 OR name IS NULL ORDER BY name";

/// The storage of the vault is recorded if blobs are there, and once.
const STORES: &str = "SELECT count(*) FROM blob_store
  HAVING count(*) > 1 OR count(*) FILTER (WHERE id = 1 AND octet_length(vault) = 16 AND url IS NOT NULL AND is_claimed) <> count(*)
      OR (count(*) = 0 AND EXISTS (SELECT 1 FROM blob WHERE object IS NOT NULL))
      OR (count(*) > 0 AND EXISTS (SELECT 1 FROM blob WHERE bytes IS NOT NULL))";

impl DatabaseInspection<'_> {
    /// Finds rows about object storage that contradict each other.
    pub(super) fn objects(&self, findings: &mut Vec<Finding>) -> Result<()> {
        self.each(STORES, "blob_store", findings, &|row| {
            let detail =
                format!("its rows do not fit where the bytes of blobs are: {}", value::<i64>(row, 0)?);
            Ok(Finding::new(SCHEMA_DIFFERS, table("blob_store"), detail))
        })?;
        self.each(NOWHERE, "blob", findings, &|row| {
            let detail = "its row does not say where its bytes are";
            Ok(Finding::new(DAMAGED_BYTES, Subject::Blob(blob(row, 0)?), detail))
        })?;
        self.each(DUPLICATES, "object", findings, &|row| {
            let detail = format!("{} rows have the same name", value::<i64>(row, 1)?);
            Ok(Finding::new(SURPLUS_ROW, table("object"), detail))
        })?;
        self.each(TOO_SMALL, "object", findings, &|row| {
            let (name, size, end) =
                (object_name(row, 0)?, value::<Option<i64>>(row, 1)?, value::<Option<i64>>(row, 2)?);
            let end = end.unwrap_or(0);
            let size = size.map_or_else(|| "nothing".to_owned(), |size| size.to_string());
            let detail = format!("object {}: it should be {end} or more but is {size}", hex(&name));
            Ok(Finding::new(DIFFERENT_ROW, table("object"), detail))
        })
    }
}
