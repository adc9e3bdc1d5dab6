//! Comparison of rows: what findings say of a row, and which rows of an artifact are missing or surplus; and of collections
//! that may be too large for memory.

use std::fmt;
use std::mem::discriminant;

use super::finding::{Finding, FindingInfo, MISSING_ROW, SURPLUS_ROW, Subject};
use crate::digest::Digest;
use crate::storage::catalog::{MentionRole, Row};

/// Maximum number of characters of a row that are shown.
const SHOWN_CHARACTERS: usize = 300;

/// Compares the rows that an artifact has with those that follow from the bytes of its captures. Surplus rows are only
/// reported if the bytes of all captures could be read: rows may be those of the others.
#[must_use]
pub fn compare_rows(mut expected: Vec<Row>, mut stored: Vec<Row>, are_complete: bool) -> Vec<Finding> {
    expected.sort_unstable();
    // Several captures state the same.
    expected.dedup();
    stored.sort_unstable();
    let mut findings = lacking(MISSING_ROW, &expected, &stored);
    if are_complete {
        findings.append(&mut lacking(SURPLUS_ROW, &stored, &expected));
    }
    findings
}

/// Returns a finding for each table of which `some` has rows that `others` lacks, or has fewer of, which names the first of
/// them: a damaged list could have any number. Both are sorted.
pub(in crate::storage) fn lacking(info: FindingInfo, some: &[Row], others: &[Row]) -> Vec<Finding> {
    let mut others = others.iter().peekable();
    let is_lacking = |row: &&Row| {
        while others.next_if(|other| other < row).is_some() {}
        others.next_if_eq(row).is_none()
    };
    let lacking: Vec<&Row> = some.iter().filter(is_lacking).collect();
    let finding = |rows: &[&Row]| {
        let first = rows.first()?;
        let shown = shortened(&first.to_string());
        let detail = match rows.len() {
            1 => shown,
            count => format!("{shown} and {} more", count - 1),
        };
        Some(Finding::new(info, Subject::from(*first), detail))
    };
    lacking.chunk_by(|one, other| discriminant(*one) == discriminant(*other)).filter_map(finding).collect()
}

/// Truncates a text, which may be megabytes long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl From<&Row> for Subject {
    fn from(row: &Row) -> Self {
        match row {
            Row::Tag { name, .. } => Self::Tag(name.clone()),
            Row::Capture { capture, .. } | Row::Signature { capture, .. } => Self::Capture(*capture),
            Row::Tombstone(tombstone) => Self::Tombstone(tombstone.digest),
            row => row.owner().map_or_else(|| Self::Table(row.table().to_owned()), Self::Artifact),
        }
    }
}

/// Writes the table of a row, and what distinguishes it from others with the same subject.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "kind {}", kind.name()),
            Self::Member { capture, name, .. } => write!(f, "member {name} of capture {capture}"),
            Self::Mention { role, place, digest, .. } => {
                let MentionRole { kind, name, group, unit, relation, dangles } = &**role;
                let relation = relation.as_deref().unwrap_or("no relation");
                let dangles = if *dangles { ", dangles" } else { "" };
                // The rest of the role matters only if it differs, but is always shown.
                write!(f, "mention {name} {place} {digest} ({kind}, {group}, {unit:?}, {relation}{dangles})")
            }
            Self::Attribute { name, value, number, .. } => {
                write!(f, "attribute {name} {value:?}")?;
                // The number follows from the value, and is shown because only it may differ.
                number.map_or(Ok(()), |number| write!(f, " ({number})"))
            }
            Self::Identity { handle, .. } => write!(f, "name {handle}"),
            Self::NameMention { relation, handle, dangles, .. } => {
                write!(f, "reference {relation} {handle}{}", if *dangles { " (dangles)" } else { "" })
            }
            Self::Label { key, .. } => write!(f, "label {key:?}"),
            Self::Link { relation, target, .. } => write!(f, "link {relation:?} to {target}"),
            _ => f.write_str(self.table()),
        }
    }
}

/// An order-independent fingerprint of a collection of index entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::storage) struct IndexFingerprint {
    count: u64,
    sum: u128,
}

impl IndexFingerprint {
    /// Adds an entry: a key and the list that it leads to, given by its capture and its group.
    pub(in crate::storage) fn add(&mut self, key: u64, capture: i64, group: i64) {
        let mut bytes = [0; 24];
        let fields = key.to_le_bytes().into_iter().chain(capture.to_le_bytes()).chain(group.to_le_bytes());
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        let digest = Digest::from_content(&bytes);
        let number = digest.as_bytes().first_chunk::<16>().map_or(0, |first| u128::from_le_bytes(*first));
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
    }

    /// Returns the number of entries.
    pub(in crate::storage) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter_and_everything_else_does() {
        let of = |entries: &[(u64, i64, i64)]| {
            let mut sum = IndexFingerprint::default();
            for (key, capture, group) in entries {
                sum.add(*key, *capture, *group);
            }
            sum
        };
        let both = of(&[(1, 2, 3), (4, 5, 6)]);
        assert_eq!(both, of(&[(4, 5, 6), (1, 2, 3)]));
        for other in [(1, 2, 4), (1, 3, 3), (2, 2, 3)] {
            assert_ne!(both, of(&[other, (4, 5, 6)]));
        }
        assert_ne!(of(&[(1, 2, 3)]), of(&[(1, 2, 3), (1, 2, 3)]));
    }
}
