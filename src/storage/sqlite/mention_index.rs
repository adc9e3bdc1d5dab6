//! The mention index: which mention lists to read for a digest.
//!
//! A B-tree with random keys modifies a page for each entry, and the larger it is, the fewer entries share a page.
//! Here, entries are stored in sorted segments instead. New entries go into segment 0, which is small and rewritten
//! each time. When it is full, it becomes a separate segment, and segments of about the same size are merged into a
//! larger one, so that there are never many, and an entry is rewritten only a few times, sequentially.
//!
//! A segment is divided into `1 << bits` buckets by the first bits of the digest: a lookup reads one row of each
//! segment. An entry contains the first 40 bits of a digest and the capture whose list may contain it. Entries are not
//! authoritative; those of missing captures are harmless.

mod check;

use rusqlite::{Connection, OptionalExtension};

pub(super) use check::check;

use super::encodings::Encoding;
use crate::digest::{Digest, DigestPrefix};
use crate::storage::varint;

/// An entry: the first 40 bits of a digest, and the capture whose list contains it.
pub(super) type MentionIndexEntry = (u64, i64);

const KEY_BITS: u32 = 40;

/// The intended number of entries per bucket. Much smaller buckets waste space, larger ones time.
const BUCKET_ENTRIES: u64 = 128;

/// Number of bits of a row id that are the bucket's number, the lowest ones.
const BUCKET_NUMBER_BITS: u32 = 24;

/// Maximum number of entries in segment 0, which is written with every addition: 1,024 entries are less than a page.
const FIRST_ENTRIES: usize = 1_024;

/// Number of segments of one size that are merged into one of the next size, and the ratio of the two sizes.
const FAN: u64 = 4;

/// Returns the key of a digest.
pub(super) fn key(digest: &Digest) -> u64 {
    digest.key().cast_unsigned() >> (64 - KEY_BITS)
}

/// The segments at one point in time, for looking up many keys while nothing changes.
pub(super) struct MentionIndexReader(Vec<Segment>);

impl MentionIndexReader {
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        Segment::all(connection).map(Self)
    }

    /// Returns the captures whose lists may contain a digest with this key, without duplicates, in order.
    pub(super) fn captures(&self, connection: &Connection, key: u64) -> rusqlite::Result<Vec<i64>> {
        self.captures_up_to(connection, key, usize::MAX).map(Option::unwrap_or_default)
    }

    /// Returns the captures whose lists may contain a digest with this key, without duplicates, in order, or `None` if they are
    /// more than `limit`.
    pub(super) fn captures_up_to(
        &self,
        connection: &Connection,
        key: u64,
        limit: usize,
    ) -> rusqlite::Result<Option<Vec<i64>>> {
        captures_between(connection, &self.0, KeyRange { low: key, high: key }, limit)
    }

    /// Calls `visit` with what [`MentionIndexReader::captures`] returns for each of `keys`. A bucket is read and decoded once for
    /// consecutive keys in it, so that keys in ascending order take the least time.
    pub(super) fn visit_captures(
        &self,
        connection: &Connection,
        keys: impl IntoIterator<Item = u64>,
        mut visit: impl FnMut(Vec<i64>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut buckets: Vec<_> = self.0.iter().map(|segment| BucketCache::new(*segment)).collect();
        for key in keys {
            if Encoding::MentionIndex.is_off() {
                visit(self.captures(connection, key)?)?;
                continue;
            }
            let mut captures = Vec::new();
            for bucket in &mut buckets {
                captures.extend(bucket.entries_of(connection, key)?.iter().map(|(_, capture)| *capture));
            }
            captures.sort_unstable();
            captures.dedup();
            visit(captures)?;
        }
        Ok(())
    }
}

/// The last bucket of a segment in which a key was looked up.
struct BucketCache {
    segment: Segment,
    bucket: Option<u64>,
    entries: Vec<MentionIndexEntry>,
}

impl BucketCache {
    fn new(segment: Segment) -> Self {
        Self { segment, bucket: None, entries: Vec::new() }
    }

    /// Returns the entries with a key.
    fn entries_of(&mut self, connection: &Connection, key: u64) -> rusqlite::Result<&[MentionIndexEntry]> {
        let bucket = self.segment.bucket(key);
        if self.bucket != Some(bucket) {
            self.entries = self.segment.bucket_entries(connection, bucket)?;
            self.bucket = Some(bucket);
        }
        let first = self.entries.partition_point(|entry| entry.0 < key);
        let end = self.entries.partition_point(|entry| entry.0 <= key);
        Ok(self.entries.get(first..end).unwrap_or_default())
    }
}

/// Returns the captures whose lists may contain a digest that begins with `prefix`, which has six digits or more.
pub(super) fn captures_beginning(
    connection: &Connection,
    prefix: &DigestPrefix,
) -> rusqlite::Result<Vec<i64>> {
    let (low, high) = prefix.range();
    let keys = KeyRange { low: key(&low), high: key(&high) };
    let captures = captures_between(connection, &Segment::all(connection)?, keys, usize::MAX);
    captures.map(Option::unwrap_or_default)
}

/// Keys from the first to the last one.
#[derive(Clone, Copy)]
struct KeyRange {
    low: u64,
    high: u64,
}

/// Returns the captures of entries with these keys, in order, or `None` if there are more than `limit`.
fn captures_between(
    connection: &Connection,
    segments: &[Segment],
    KeyRange { low, high }: KeyRange,
    limit: usize,
) -> rusqlite::Result<Option<Vec<i64>>> {
    if Encoding::MentionIndex.is_off() {
        let mut captures = connection.prepare_cached("SELECT id FROM capture ORDER BY id")?;
        return captures.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>().map(Some);
    }
    let mut captures = Vec::new();
    let mut buckets =
        connection.prepare_cached("SELECT bytes FROM mention_bucket WHERE id BETWEEN ?1 AND ?2")?;
    for segment in segments {
        let mut rows = buckets.query((segment.row(low), segment.row(high)))?;
        while let Some(row) = rows.next()? {
            for entry in BucketEntries::new(row.get_ref(0)?.as_blob()?) {
                let (key, capture) = entry?;
                if key > high {
                    break;
                }
                if key >= low {
                    captures.push(capture);
                }
                if captures.len() > limit {
                    return Ok(None);
                }
            }
        }
    }
    captures.sort_unstable();
    captures.dedup();
    Ok(Some(captures))
}

/// Adds `entries`, in any order.
pub(super) fn add(connection: &Connection, mut entries: Vec<MentionIndexEntry>) -> rusqlite::Result<()> {
    if entries.is_empty() || Encoding::MentionIndex.is_off() {
        return Ok(());
    }
    entries.extend(Segment::FIRST.entries(connection)?);
    entries.sort_unstable();
    entries.dedup();
    if entries.len() <= FIRST_ENTRIES {
        return Segment::FIRST.write(connection, 0, &entries);
    }
    Segment::FIRST.write(connection, 0, &[])?;
    let segment = Segment::new(connection, entries.len() as u64)?;
    for (bucket, entries) in entries
        .chunk_by(|one, other| segment.bucket(one.0) == segment.bucket(other.0))
        .map(|entries| (entries.first().map_or(0, |entry| segment.bucket(entry.0)), entries))
    {
        segment.write(connection, bucket, entries)?;
    }
    merge(connection)
}

/// Removes `entries`, in any order.
pub(super) fn remove(connection: &Connection, mut entries: Vec<MentionIndexEntry>) -> rusqlite::Result<()> {
    entries.sort_unstable();
    entries.dedup();
    for segment in Segment::all(connection)? {
        let mut removed = 0;
        for entries in entries.chunk_by(|one, other| segment.bucket(one.0) == segment.bucket(other.0)) {
            let bucket = entries.first().map_or(0, |entry| segment.bucket(entry.0));
            let before = segment.bucket_entries(connection, bucket)?;
            let after: Vec<MentionIndexEntry> =
                before.iter().filter(|entry| entries.binary_search(entry).is_err()).copied().collect();
            if after.len() < before.len() {
                removed += before.len() - after.len();
                segment.write(connection, bucket, &after)?;
            }
        }
        segment.shrink(connection, removed as u64)?;
    }
    Ok(())
}

/// Removes all entries.
pub(super) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("DELETE FROM mention_bucket; DELETE FROM mention_segment")
}

/// Returns the number of entries.
pub(super) fn count(connection: &Connection) -> rusqlite::Result<u64> {
    let first = Segment::FIRST.entries(connection)?.len() as u64;
    Ok(Segment::all(connection)?.iter().fold(first, |sum, segment| sum.saturating_add(segment.entries)))
}

/// Merges segments while there are several of about the same size.
fn merge(connection: &Connection) -> rusqlite::Result<()> {
    // Every round leaves fewer segments. In a damaged vault, a deleted row may remain.
    for _ in 0..Segment::all(connection)?.len() {
        let segments = Segment::all(connection)?;
        let alike = |size| segments.iter().filter(move |segment| segment.id > 0 && segment.size() == size);
        let full = segments.iter().map(Segment::size).find(|size| alike(*size).count() as u64 >= FAN);
        let Some(size) = full else { return Ok(()) };
        let alike: Vec<Segment> = alike(size).copied().collect();
        merge_into_one(connection, &alike)?;
    }
    Ok(())
}

fn merge_into_one(connection: &Connection, segments: &[Segment]) -> rusqlite::Result<()> {
    // A damaged vault may contain any number of entries.
    let entries = segments.iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.entries));
    let merged = Segment::new(connection, entries.min(i64::MAX.cast_unsigned()))?;
    let mut sources: Vec<SegmentCursor> =
        segments.iter().map(|segment| SegmentCursor::new(*segment)).collect();
    for bucket in 0..1 << merged.bits {
        // The highest key of the bucket: keys above it are left for a later bucket.
        let last = ((bucket + 1) << (KEY_BITS - merged.bits)) - 1;
        let mut entries = Vec::new();
        for source in &mut sources {
            source.take_up_to(connection, last, &mut entries)?;
        }
        entries.sort_unstable();
        entries.dedup();
        if !entries.is_empty() {
            merged.write(connection, bucket, &entries)?;
        }
    }
    let mut buckets = connection.prepare_cached("DELETE FROM mention_bucket WHERE id BETWEEN ?1 AND ?2")?;
    for segment in segments {
        buckets.execute((segment.row(0), segment.row(u64::MAX)))?;
        connection.prepare_cached("DELETE FROM mention_segment WHERE id = ?1")?.execute([segment.id])?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Segment {
    id: i64,
    bits: u32,
    entries: u64,
}

impl Segment {
    const FIRST: Self = Self { id: 0, bits: 0, entries: 0 };

    /// Returns all segments; the first has no row of its own.
    fn all(connection: &Connection) -> rusqlite::Result<Vec<Self>> {
        let mut statement =
            connection.prepare_cached("SELECT id, bits, entries FROM mention_segment ORDER BY id")?;
        let stored = statement.query_map([], |row| {
            // A damaged value must not shift bits out of a number.
            let bits = row.get::<_, u32>(1)?.min(BUCKET_NUMBER_BITS);
            Ok(Self { id: row.get(0)?, bits, entries: row.get(2)? })
        })?;
        std::iter::once(Ok(Self::FIRST)).chain(stored).collect()
    }

    fn new(connection: &Connection, entries: u64) -> rusqlite::Result<Self> {
        let bits = (entries / BUCKET_ENTRIES).max(1).ilog2().min(BUCKET_NUMBER_BITS);
        connection
            .prepare_cached("INSERT INTO mention_segment (bits, entries) VALUES (?1, ?2)")?
            .execute((bits, entries))?;
        Ok(Self { id: connection.last_insert_rowid(), bits, entries })
    }

    /// Returns the size class. Segments of the same class differ in size by a factor of less than [`FAN`].
    fn size(&self) -> u32 {
        self.entries.max(1).ilog(FAN)
    }

    fn bucket(&self, key: u64) -> u64 {
        key.min((1 << KEY_BITS) - 1) >> (KEY_BITS - self.bits)
    }

    /// Returns the row id of the bucket for `key`.
    fn row(&self, key: u64) -> i64 {
        (self.id << BUCKET_NUMBER_BITS) | self.bucket(key).cast_signed()
    }

    fn write(
        &self,
        connection: &Connection,
        bucket: u64,
        entries: &[MentionIndexEntry],
    ) -> rusqlite::Result<()> {
        let mut bytes = Vec::with_capacity(entries.len() * 8);
        let mut last = 0;
        for (key, capture) in entries {
            varint::write(&mut bytes, key - last);
            varint::write(&mut bytes, capture.cast_unsigned());
            last = *key;
        }
        connection
            .prepare_cached("INSERT OR REPLACE INTO mention_bucket (id, bytes) VALUES (?1, ?2)")?
            .execute(((self.id << BUCKET_NUMBER_BITS) | bucket.cast_signed(), bytes))?;
        Ok(())
    }

    /// Records that the segment has `removed` entries less.
    fn shrink(&self, connection: &Connection, removed: u64) -> rusqlite::Result<()> {
        if self.id == Self::FIRST.id || removed == 0 {
            return Ok(());
        }
        connection
            .prepare_cached("DELETE FROM mention_bucket WHERE length(bytes) = 0 AND id BETWEEN ?1 AND ?2")?
            .execute((self.row(0), self.row(u64::MAX)))?;
        let left = self.entries.saturating_sub(removed);
        let sql = if left == 0 {
            "DELETE FROM mention_segment WHERE id = ?2 AND ?1 = 0"
        } else {
            "UPDATE mention_segment SET entries = ?1 WHERE id = ?2"
        };
        connection.prepare_cached(sql)?.execute((left, self.id))?;
        Ok(())
    }

    /// Returns the entries of a segment that has one bucket.
    fn entries(&self, connection: &Connection) -> rusqlite::Result<Vec<MentionIndexEntry>> {
        self.bucket_entries(connection, 0)
    }

    fn bucket_entries(
        &self,
        connection: &Connection,
        bucket: u64,
    ) -> rusqlite::Result<Vec<MentionIndexEntry>> {
        let id = (self.id << BUCKET_NUMBER_BITS) | bucket.cast_signed();
        connection
            .prepare_cached("SELECT bytes FROM mention_bucket WHERE id = ?1")?
            .query_row([id], |row| BucketEntries::new(row.get_ref(0)?.as_blob()?).collect())
            .optional()
            .map(Option::unwrap_or_default)
    }
}

/// A cursor over the entries of a segment in order.
struct SegmentCursor {
    segment: Segment,
    next_bucket: u64,
    /// Entries that were read and not returned yet, in reverse order.
    waiting: Vec<MentionIndexEntry>,
}

impl SegmentCursor {
    fn new(segment: Segment) -> Self {
        Self { segment, next_bucket: 0, waiting: Vec::new() }
    }

    fn take_up_to(
        &mut self,
        connection: &Connection,
        last: u64,
        out: &mut Vec<MentionIndexEntry>,
    ) -> rusqlite::Result<()> {
        loop {
            while let Some(entry) = self.waiting.pop_if(|entry| entry.0 <= last) {
                out.push(entry);
            }
            if !self.waiting.is_empty() || self.next_bucket > self.segment.bucket(last) {
                return Ok(());
            }
            self.waiting = self.segment.bucket_entries(connection, self.next_bucket)?;
            self.waiting.reverse();
            self.next_bucket += 1;
        }
    }
}

/// An iterator over the entries of a bucket, in order.
struct BucketEntries<'b> {
    rest: &'b [u8],
    key: u64,
}

impl<'b> BucketEntries<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, key: 0 }
    }

    fn entry(&mut self) -> Option<MentionIndexEntry> {
        self.key = self.key.checked_add(varint::read(&mut self.rest)?)?;
        Some((self.key, varint::read(&mut self.rest)?.cast_signed()))
    }
}

impl Iterator for BucketEntries<'_> {
    type Item = rusqlite::Result<MentionIndexEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_none() {
            self.rest = &[];
        }
        Some(entry.ok_or_else(|| super::error::index_damage("a bucket of the mention index cannot be read")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn index() -> Connection {
        let connection = Connection::open_with_flags("", rusqlite::OpenFlags::default()).unwrap();
        let schema = "CREATE TABLE mention_segment (id INTEGER PRIMARY KEY, bits INTEGER, entries INTEGER);
                      CREATE TABLE mention_bucket (id INTEGER PRIMARY KEY, bytes BLOB)";
        connection.execute_batch(schema).unwrap();
        connection
    }

    fn captures(connection: &Connection, key: u64) -> rusqlite::Result<Vec<i64>> {
        MentionIndexReader::load(connection)?.captures(connection, key)
    }

    /// Returns a key; consecutive numbers are spread over all buckets.
    fn spread(number: u64) -> u64 {
        key(&Digest::from_content(&number.to_be_bytes()))
    }

    #[test]
    fn everything_that_was_added_is_found_and_segments_stay_few() {
        let connection = index();
        let mut next = 0;
        let sizes = [1, 1_023, 1, 5, 3_000, 20_000, 20_000, 20_000, 20_000, 2_000, 60, 60, 60];
        for (batch, size) in (0..).zip(sizes) {
            let entries = (next..next + size).map(|number| (spread(number), batch)).collect();
            add(&connection, entries).unwrap();
            next += size;
        }
        for number in (0..next).step_by(97) {
            let batch = sizes.iter().scan(0, |sum, size| {
                *sum += size;
                Some(*sum)
            });
            let batch = i64::try_from(batch.take_while(|end| *end <= number).count()).unwrap();
            assert_eq!(captures(&connection, spread(number)).unwrap(), [batch], "{number}");
        }
        assert_eq!(captures(&connection, spread(next)).unwrap(), [0_i64; 0]);
        let segments = Segment::all(&connection).unwrap();
        assert!(segments.len() < 8, "{}", segments.len());
        let total: u64 = segments.iter().map(|segment| segment.entries).sum();
        let first = Segment::FIRST.entries(&connection).unwrap().len() as u64;
        assert_eq!(total + first, next);
    }

    #[test]
    fn small_additions_do_not_write_large_segments_again() {
        let connection = index();
        add(&connection, (0..100_000).map(|number| (spread(number), 1)).collect()).unwrap();
        let large = Segment::all(&connection).unwrap().last().unwrap().id;
        for round in 0..300_u64 {
            let numbers = 200_000 + round * 20..200_020 + round * 20;
            add(&connection, numbers.map(|number| (spread(number), 2)).collect()).unwrap();
        }
        assert!(Segment::all(&connection).unwrap().iter().any(|segment| segment.id == large));
    }

    #[test]
    fn a_damaged_bucket_is_an_error() {
        let connection = index();
        add(&connection, vec![(5, 1)]).unwrap();
        connection.execute("UPDATE mention_bucket SET bytes = x'ff'", []).unwrap();
        assert!(captures(&connection, 5).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn the_index_is_a_set_of_entries(
            batches in proptest::collection::vec(
                proptest::collection::vec((0_u64..3_000, 0_i64..3), 0..1_500), 0..8),
        ) {
            let connection = index();
            let mut all = BTreeSet::new();
            for batch in batches {
                // Some keys are spread, some are clustered: an attacker may choose the digests.
                let keyed = batch.iter().map(|(number, capture)| {
                    (if number % 3 == 0 { *number } else { spread(*number) }, *capture)
                });
                let entries: Vec<MentionIndexEntry> = keyed.collect();
                all.extend(entries.iter().copied());
                add(&connection, entries).unwrap();
            }
            let keys: Vec<u64> = (0..3_000).step_by(7).flat_map(|number| [number, spread(number)]).collect();
            let mut visited = Vec::new();
            let reader = MentionIndexReader::load(&connection).unwrap();
            let keep = |captures| {
                visited.push(captures);
                Ok(())
            };
            reader.visit_captures(&connection, keys.iter().copied(), keep).unwrap();
            prop_assert_eq!(visited.len(), keys.len());
            for (key, visited) in keys.into_iter().zip(visited) {
                let expected: Vec<i64> = all.range((key, 0)..=(key, 3)).map(|entry| entry.1).collect();
                prop_assert_eq!(captures(&connection, key).unwrap(), expected.clone());
                prop_assert_eq!(visited, expected);
            }
        }
    }
}
