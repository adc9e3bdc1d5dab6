//! The rows of tables, as a check reads them.

use std::ops::RangeInclusive;

use super::{DamagedValue, Dialect, SqlRow, SqlValue, TOMBSTONE, text_key, tombstone};
use crate::artifact::{Signature, SignatureState};
use crate::digest::{BlobHash, CaptureHash, CoreHash, Digest, Hasher};
use crate::storage::catalog::Row;
use crate::storage::check::finding::{DIFFERENT_ROW, Finding, Subject};
use crate::storage::check::{CaptureId, JournaledTable, ReadCapture};

/// Returns the query for the rows of a table, or those of artifacts with core hashes in a range. It uses no index of the table:
/// one may be incomplete. Where a row refers to a missing artifact, its core hash is NULL. Tags are those of all artifacts.
/// The query ends in a condition.
pub(in crate::storage) fn journaled_rows(
    dialect: Dialect,
    table: JournaledTable,
    of: Option<&RangeInclusive<Digest>>,
) -> String {
    let owned = |columns: &str, alias: &str| {
        (format!("a.core, {columns}"), format!("LEFT JOIN artifact a ON a.id = {alias}.artifact"))
    };
    let is_file = dialect == Dialect::Sqlite;
    let (alias, (columns, joins)) = match table {
        JournaledTable::Artifact => {
            let columns = "a.core, a.id, k.name, a.added_at, a.seen_at, a.arrival";
            ("a", (columns.to_owned(), "LEFT JOIN kind k ON k.id = a.kind".to_owned()))
        }
        // An entry that does not have the path of the capture has none.
        JournaledTable::Capture if is_file => {
            let path = "iif(c.source_entry IS NULL, NULL, coalesce(j.source_path, ''))";
            let columns = format!("c.id, b.digest, c.size, c.added_at, c.seen_at, {path}, c.seal");
            let (columns, joins) = owned(&columns, "c");
            let joins = format!(
                "{joins} LEFT JOIN blob b ON b.id = c.blob
                 LEFT JOIN journal j ON j.seq = c.source_entry AND j.core = a.core AND j.capture = b.digest"
            );
            ("c", (columns, joins))
        }
        JournaledTable::Capture => {
            ("c", owned("c.id, c.digest, c.size, c.added_at, c.seen_at, c.source_path, c.seal", "c"))
        }
        JournaledTable::Signature if is_file => {
            let joins = "LEFT JOIN capture c ON c.id = s.capture LEFT JOIN blob b ON b.id = c.blob
                         LEFT JOIN artifact a ON a.id = c.artifact";
            ("s", ("a.core, b.digest, s.state, s.key_id".to_owned(), joins.to_owned()))
        }
        // A key without a state is not what was recorded either.
        JournaledTable::Signature => {
            let (columns, joins) = owned("c.digest, coalesce(c.signature, ''), c.key_id", "c");
            ("c", (columns, joins))
        }
        JournaledTable::Tag => ("t", owned("t.name, t.at", "t")),
        JournaledTable::Note => ("n", owned("n.text, n.at, n.folded", "n")),
        JournaledTable::Pin => ("p", owned("p.note, p.at", "p")),
        JournaledTable::Label => ("l", owned("l.key, l.value, l.at", "l")),
        JournaledTable::Link => {
            let joins = "LEFT JOIN artifact s ON s.id = l.source LEFT JOIN artifact t ON t.id = l.target";
            ("l", ("s.core, l.relation, t.core, l.note, l.at".to_owned(), joins.to_owned()))
        }
        JournaledTable::Tombstone => ("t", (TOMBSTONE.to_owned(), String::new())),
    };
    let name = match table {
        JournaledTable::Signature if !is_file => "capture",
        _ => table.name(),
    };
    let without_index = if is_file { "NOT INDEXED" } else { "" };
    let mut condition = match table {
        JournaledTable::Signature if !is_file => "(c.signature IS NOT NULL OR c.key_id IS NOT NULL)",
        _ => "true",
    }
    .to_owned();
    let core = match table {
        JournaledTable::Tag => None,
        JournaledTable::Link => Some("s.core"),
        JournaledTable::Tombstone => Some("t.core"),
        _ => Some("a.core"),
    };
    if let Some((core, of)) = core.zip(of) {
        condition.push_str(" AND ");
        condition.push_str(&dialect.is_in_range(core, of));
    }
    format!("SELECT {columns} FROM {name} {alias} {without_index} {joins} WHERE {condition}")
}

/// Returns a row of [`journaled_rows`], or `None` if it refers to a missing one, which is found as that.
pub(in crate::storage) fn journaled_row(
    table: JournaledTable,
    row: &SqlRow,
) -> Result<Option<Row>, DamagedValue> {
    if table == JournaledTable::Tombstone {
        return Ok(Some(Row::Tombstone(Box::new(tombstone(row)?))));
    }
    let Some(core) = row.optional_digest(0)?.map(CoreHash) else { return Ok(None) };
    let number = |column| row.integer(column).map(i64::cast_unsigned);
    Ok(Some(match table {
        JournaledTable::Artifact => Row::Artifact {
            core,
            entry: number(1)?,
            // A damaged name is another one.
            kind: row.optional_text(2).unwrap_or_default().unwrap_or_default(),
            added_at: row.integer(3)?,
            seen_at: row.integer(4)?,
            arrival: row.integer(5)?,
        },
        JournaledTable::Capture => {
            let Some(capture) = row.optional_digest(2)?.map(CaptureHash) else { return Ok(None) };
            Row::Capture {
                core,
                capture,
                entry: number(1)?,
                size: number(3)?,
                added_at: row.integer(4)?,
                seen_at: row.integer(5)?,
                source_path: row.optional_text(6)?,
            }
        }
        JournaledTable::Signature => {
            let Some(capture) = row.optional_digest(1)?.map(CaptureHash) else { return Ok(None) };
            Row::Signature { core, capture, state: row.text(2)?, key_id: row.optional_text(3)? }
        }
        JournaledTable::Tag => Row::Tag { core, name: row.text(1)?, at: row.integer(2)? },
        JournaledTable::Note => Row::Note { core, text: row.text(1)?, at: row.integer(2)? },
        JournaledTable::Pin => Row::Pin { core, note: row.optional_text(1)?, at: row.integer(2)? },
        JournaledTable::Label => {
            Row::Label { core, key: row.text(1)?, value: row.text(2)?, at: row.integer(3)? }
        }
        JournaledTable::Link | JournaledTable::Tombstone => {
            let Some(target) = row.optional_digest(2)?.map(CoreHash) else { return Ok(None) };
            let (relation, note, at) = (row.text(1)?, row.optional_text(3)?, row.integer(4)?);
            Row::Link { source: core, relation, target, note, at }
        }
    }))
}

/// Returns the query for the captures `c` that satisfy a condition, in the order in which they were added. The first two columns
/// have the numbers of the artifact and of the capture.
pub(in crate::storage) fn captured_rows(dialect: Dialect, condition: &str) -> String {
    let (columns, from) = match dialect {
        Dialect::Sqlite => (
            "b.digest, c.size, c.warnings, s.state, s.key_id",
            "capture c LEFT JOIN blob b ON b.id = c.blob LEFT JOIN signature s ON s.capture = c.id",
        ),
        Dialect::Postgres => ("c.digest, c.size, c.warnings, c.signature, c.key_id", "capture c"),
    };
    format!("SELECT c.artifact, c.id, {columns} FROM {from} WHERE {condition} ORDER BY c.id")
}

/// Returns the signature whose state is in a column, and whose key is in the next one.
pub(super) fn signature(row: &SqlRow, column: usize) -> Result<Option<Signature>, DamagedValue> {
    let invalid = DamagedValue::new(column, "a state of a signature is not known");
    let Some(state) = row.optional_text(column)? else { return Ok(None) };
    let state = SignatureState::named(&state).ok_or(invalid)?;
    Ok(Some(Signature { state, key_id: row.optional_text(column + 1)? }))
}

/// Returns what a row of [`captured_rows`] has of a capture, without its files.
pub(in crate::storage) fn captured(row: &SqlRow) -> Result<ReadCapture, DamagedValue> {
    Ok(ReadCapture {
        id: CaptureId(row.integer(1)?),
        capture: row.capture(2)?,
        size: row.integer(3)?,
        is_directory: false,
        warnings: serde_json::from_str(row.optional_text(4)?.as_deref().unwrap_or("[]")).ok(),
        signature: signature(row, 5)?,
        files: None,
        findings: Vec::new(),
    })
}

/// The tables whose rows follow from the bytes of artifacts and that both databases have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::storage) enum DerivedTable {
    Member,
    Attribute,
    Identity,
    NameMention,
}

impl DerivedTable {
    pub(in crate::storage) const ALL: [Self; 4] =
        [Self::Member, Self::Attribute, Self::Identity, Self::NameMention];

    /// Returns its name.
    pub(in crate::storage) fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Attribute => "attribute",
            Self::Identity => "identity",
            Self::NameMention => "name_mention",
        }
    }
}

/// Returns the query for the rows of the artifact, or in PostgreSQL of the artifacts, whose numbers are the parameter `?1`. The
/// first column has the number.
pub(in crate::storage) fn derived_rows(dialect: Dialect, table: DerivedTable) -> String {
    let is_file = dialect == Dialect::Sqlite;
    let (columns, from) = match table {
        // The only file of a document is the capture itself.
        DerivedTable::Member if is_file => (
            "b.digest, coalesce(m.name, k.member) AS name, coalesce(f.digest, b.digest)",
            "capture x JOIN blob b ON b.id = x.blob JOIN artifact a ON a.id = x.artifact
               LEFT JOIN kind k ON k.id = a.kind LEFT JOIN member m ON m.capture = x.id
               LEFT JOIN blob f ON f.id = m.blob",
        ),
        DerivedTable::Member => ("x.digest, m.name, m.blob", "capture x JOIN member m ON m.capture = x.id"),
        DerivedTable::Attribute if is_file => {
            ("v.name, v.value, v.number", "attribute x JOIN attribute_value v ON v.id = x.value")
        }
        DerivedTable::Attribute => ("x.name, x.value, x.number, x.key", "attribute x"),
        DerivedTable::Identity => ("x.handle, x.key", "identity x"),
        DerivedTable::NameMention => ("x.relation, x.handle, x.dangles, x.key", "name_mention x"),
    };
    let columns = if is_file { columns.trim_end_matches(", x.key") } else { columns };
    let condition = if is_file { "x.artifact = ?1".to_owned() } else { dialect.is_in("x.artifact", "?1") };
    format!("SELECT x.artifact, {columns} FROM {from} WHERE {condition}")
}

/// Returns a row of [`derived_rows`] of an artifact; `None` if it is that of a directory that has lost its files.
pub(in crate::storage) fn derived_row(
    table: DerivedTable,
    core: CoreHash,
    row: &SqlRow,
) -> Result<Option<Row>, DamagedValue> {
    Ok(Some(match table {
        DerivedTable::Member => {
            let Some(name) = row.optional_text(2)? else { return Ok(None) };
            Row::Member { core, capture: row.capture(1)?, name, blob: row.digest(3).map(BlobHash)? }
        }
        DerivedTable::Attribute => {
            let number = row.optional_integer(3)?;
            Row::Attribute { core, name: row.text(1)?, value: row.text(2)?, number }
        }
        DerivedTable::Identity => Row::Identity { core, handle: row.text(1)? },
        DerivedTable::NameMention => {
            let (relation, handle) = (row.text(1)?, row.text(2)?);
            Row::NameMention { core, relation, handle, dangles: row.flag(3)? }
        }
    }))
}

/// Returns a finding if what is derived from the other columns of a row of [`journaled_rows`] or [`derived_rows`] differs
/// from them.
pub(in crate::storage) fn differently_derived(stored: &Row, row: &SqlRow) -> Option<Finding> {
    match stored {
        Row::Capture { core, capture, .. } => {
            let is_right = row.bytes(7).is_ok_and(|found| found == seal(*core, *capture));
            let detail = "capture: seal is not that of its artifact";
            (!is_right).then(|| Finding::new(DIFFERENT_ROW, Subject::Capture(*capture), detail))
        }
        Row::Note { core, text, .. } => {
            let is_right = row.bytes(3).is_ok_and(|found| found == text.to_lowercase().as_bytes());
            let detail = "note: folded, in which it is searched, differs from its text";
            (!is_right).then(|| Finding::new(DIFFERENT_ROW, Subject::Artifact(*core), detail))
        }
        Row::Identity { handle: text, .. } => differently_keyed(stored, text, row.0.get(2)?),
        Row::Attribute { value: text, .. } | Row::NameMention { handle: text, .. } => {
            differently_keyed(stored, text, row.0.get(4)?)
        }
        _ => None,
    }
}

/// Returns a finding if the key by which PostgreSQL finds a text is not that of the text.
fn differently_keyed(stored: &Row, text: &str, key: &SqlValue) -> Option<Finding> {
    let detail = || format!("{stored}: key is not that of its text");
    (*key != text_key(text).into()).then(|| Finding::new(DIFFERENT_ROW, Subject::from(stored), detail()))
}

/// Returns the seal that binds a capture to its artifact in the vault.
pub(in crate::storage) fn seal(core: CoreHash, capture: CaptureHash) -> [u8; 16] {
    let mut hasher = Hasher::new();
    hasher.update(core.0.as_bytes());
    hasher.update(capture.0.as_bytes());
    let mut seal = [0; 16];
    seal.iter_mut().zip(hasher.finish().as_bytes()).for_each(|(to, from)| *to = *from);
    seal
}
