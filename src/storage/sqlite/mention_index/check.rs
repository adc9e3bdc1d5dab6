//! Checks that lookups find what is in the segments.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::{BUCKET_NUMBER_BITS, BucketEntries, KEY_BITS, MentionIndexEntry, Segment};

/// Returns a description of each defect, and calls `visit` with every entry that a lookup of its key finds.
pub(in crate::storage) fn check(
    connection: &Connection,
    mut visit: impl FnMut(MentionIndexEntry),
) -> rusqlite::Result<Vec<String>> {
    let mut problems = Vec::new();
    let segments: BTreeMap<i64, Segment> =
        Segment::all(connection)?.into_iter().map(|segment| (segment.id, segment)).collect();
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    let mut buckets = connection.prepare("SELECT id, bytes FROM mention_bucket ORDER BY id")?;
    let mut rows = buckets.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let Some(segment) = segments.get(&(id >> BUCKET_NUMBER_BITS)) else {
            problems.push(format!("bucket {id} belongs to no segment"));
            continue;
        };
        let number = (id & ((1 << BUCKET_NUMBER_BITS) - 1)).cast_unsigned();
        let outcome = entries(row.get_ref(1)?.as_blob()?, |entry| {
            *counts.entry(segment.id).or_default() += 1;
            let is_there = entry.0 >> KEY_BITS == 0 && segment.bucket(entry.0) == number;
            if is_there {
                visit(entry);
            }
            is_there
        });
        problems.extend(outcome.err().map(|problem| format!("bucket {id} {problem}")));
    }
    for segment in segments.values().filter(|segment| segment.id != Segment::FIRST.id) {
        let count = counts.get(&segment.id).copied().unwrap_or_default();
        if count != segment.entries {
            let Segment { id, entries, .. } = segment;
            problems.push(format!("segment {id} should have {entries} entries and has {count}"));
        }
    }
    Ok(problems)
}

fn entries(bytes: &[u8], mut is_there: impl FnMut(MentionIndexEntry) -> bool) -> Result<(), &'static str> {
    let mut last: Option<MentionIndexEntry> = None;
    for entry in BucketEntries::new(bytes) {
        let entry = entry.map_err(|_| "cannot be read")?;
        if last.is_some_and(|last| entry <= last) {
            return Err("is not in order");
        }
        if !is_there(entry) {
            return Err("has entries of another bucket");
        }
        last = Some(entry);
    }
    Ok(())
}
