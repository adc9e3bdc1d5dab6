//! The captures whose passages are searched.

use super::value::ARTIFACT;
use super::{DamagedValue, SqlSession, SqlSnapshot};
use crate::digest::CaptureHash;
use crate::storage::Result;
use crate::storage::interface::SearchableCapture;

/// Returns up to `limit` captures with numbers after `after` up to `last`, in the order in which they were added. Captures
/// without a hash are left to a check.
pub(in crate::storage) fn captures_between<S: SqlSnapshot>(
    snapshot: &S,
    after: i64,
    last: i64,
    limit: u32,
) -> Result<Vec<SearchableCapture>> {
    let dialect = S::Session::DIALECT;
    let sql = format!(
        "SELECT {ARTIFACT}, c.id, {}, (SELECT {} FROM capture f
                  WHERE f.id = (SELECT min(o.id) FROM capture o WHERE o.artifact = c.artifact))
           FROM {} JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind
          WHERE c.id > ?1 AND c.id <= ?2 ORDER BY c.id LIMIT ?3",
        dialect.capture_hash(),
        dialect.hash_of_capture("f"),
        dialect.captures()
    );
    let captures =
        snapshot.read_rows(&sql, &[after.into(), last.into(), u64::from(limit).into()], |row| {
            let (id, capture) = (row.integer(6)?, row.capture(7)?);
            // Callers continue after the last capture of an answer, and must terminate.
            if id <= after || id > last {
                return Err(out_of_order());
            }
            let first = row.optional_digest(8)?.map(CaptureHash).filter(|first| *first != capture);
            Ok(SearchableCapture { id, capture, artifact: row.artifact()?, first })
        })?;
    if captures.is_sorted_by(|one, other| one.id < other.id) {
        Ok(captures)
    } else {
        snapshot.answer(Err(out_of_order().into()))
    }
}

fn out_of_order() -> DamagedValue {
    DamagedValue::new(6, "the rows of capture are not in the order of their numbers")
}
