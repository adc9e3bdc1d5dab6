//! Training of dictionaries on the documents of a vault.

use super::dictionaries::{MAX_TEXT, SAMPLES, last_entry, number, train};
use super::payload::PayloadReader;

/// Returns the texts of `blobs` that are small enough for a dictionary. Unreadable blobs are skipped; reading them
/// elsewhere reports the error.
pub(super) fn texts(payloads: PayloadReader<'_>, blobs: impl Iterator<Item = i64>) -> Vec<Vec<u8>> {
    let contents = blobs.filter_map(|blob| payloads.verified_content(blob).ok());
    contents.map(|content| content.text).filter(|text| text.len() <= MAX_TEXT).collect()
}

/// Trains a dictionary on the newest documents of a kind, for future additions: where documents arrive one by one,
/// there are never enough of them at once.
pub(super) fn make(payloads: PayloadReader<'_>, kind: i64) -> rusqlite::Result<()> {
    let connection = payloads.connection;
    let has_one = connection.prepare_cached("SELECT 1 FROM dictionary WHERE kind = ?1")?.exists([kind])?;
    if has_one {
        return Ok(());
    }
    let mut newest = connection.prepare_cached(
        "SELECT c.blob FROM artifact a JOIN capture c ON c.artifact = a.id JOIN blob b ON b.id = c.blob
          WHERE a.kind = ?1 AND b.size <= ?2 ORDER BY a.id DESC LIMIT ?3",
    )?;
    let blobs = newest.query_map((kind, MAX_TEXT, SAMPLES), |row| row.get::<_, i64>(0))?;
    let blobs = blobs.collect::<rusqlite::Result<Vec<_>>>()?;
    let samples = texts(payloads, blobs.into_iter());
    if samples.len() == SAMPLES
        && let Some(dictionary) = train(&samples, last_entry(connection)?)
    {
        number(connection, kind, &dictionary)?;
    }
    Ok(())
}
