//! Rows of the catalog about bytes beside the database. The bytes themselves are read with the artifacts.

use super::{DatabaseInspection, table};
use crate::digest::hex;
use crate::storage::Result;
use crate::storage::check::finding::{
    DAMAGED_BYTES, DIFFERENT_ROW, Finding, SCHEMA_DIFFERS, SURPLUS_ROW, Subject,
};
use crate::storage::postgres::columns::{blob, object_name, value};

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
