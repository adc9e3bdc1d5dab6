//! Repairs of the names of kinds and actors.

use rusqlite::{OptionalExtension, Transaction};

use crate::artifact::Kind;
use crate::storage::check::{Repair, Subject};
use crate::storage::sqlite::check::{ProvenName, proven_names};
use crate::storage::sqlite::{Result, Store};

/// The columns that refer to the rows of each table.
const REFERENCES: &[(&str, &str, &str)] = &[
    ("kind", "role", "kind"),
    ("kind", "artifact", "kind"),
    ("kind", "dictionary", "kind"),
    ("kind", "journal", "kind"),
    ("actor", "journal", "actor"),
];

impl Store {
    /// Gives the rows of kinds and actors the names that the journal proves. The names of `kinds` are tried.
    ///
    /// # Errors
    /// Returns an error if the vault cannot be read or written.
    pub fn repair_names(&self, kinds: &[Kind]) -> Result<Vec<Repair>> {
        let names: Vec<&str> = kinds.iter().copied().map(Kind::name).collect();
        self.repair(|transaction| {
            transaction.pragma_update(None, "defer_foreign_keys", true)?;
            let proven = proven_names(transaction, &names, self.actor.as_ref())?;
            // A name may be in the row of another one.
            for ProvenName { table, id, .. } in &proven {
                let sql = format!("UPDATE {table} SET name = 'row ' || id WHERE id = ?1");
                transaction.execute(&sql, [id])?;
            }
            proven.iter().try_for_each(|proven| restore(transaction, proven, kinds))?;
            let subject = |table: &str| Subject::Table(table.to_owned());
            let mut tables: Vec<&str> = proven.iter().map(|proven| proven.table).collect();
            tables.dedup();
            let did = "given the names in the journal";
            Ok(tables.into_iter().map(|table| Repair { subject: subject(table), did }).collect())
        })
    }
}

fn restore(
    transaction: &Transaction<'_>,
    ProvenName { table, id, name, .. }: &ProvenName,
    kinds: &[Kind],
) -> rusqlite::Result<()> {
    let sql = format!("SELECT id FROM {table} WHERE name = ?1");
    let other: Option<i64> = transaction.query_row(&sql, [name], |row| row.get(0)).optional()?;
    if let Some(other) = other {
        // That row has another row id than it had, or was added after this one was lost.
        for (_, table, column) in REFERENCES.iter().filter(|(of, ..)| of == table) {
            let sql = format!("UPDATE OR IGNORE {table} SET {column} = ?2 WHERE {column} = ?1");
            transaction.execute(&sql, (other, id))?;
        }
        if *table == "kind" {
            // Lists of mentions are rebuilt with the roles of the other row.
            transaction.execute("DELETE FROM role WHERE kind = ?1", [other])?;
        }
        transaction.execute(&format!("DELETE FROM {table} WHERE id = ?1"), [other])?;
    }
    let sql = format!(
        "INSERT INTO {table} (id, name) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET name = excluded.name"
    );
    transaction.execute(&sql, (id, name))?;
    if let Some(kind) = kinds.iter().find(|kind| *table == "kind" && kind.name() == name) {
        transaction.execute(
            "UPDATE kind SET stated_by = ?2, member = ?3 WHERE id = ?1",
            (id, kind.inverse_relation(), kind.document_member()),
        )?;
    }
    Ok(())
}
