//! Reading the bytes of blobs.

use postgres::types::Type;

use super::blob_store::{Checked, Part, StoredBlob};
use super::columns::{count, object_name, value};
use super::error::Outcome;
use super::session::{Parameter, Session};
use crate::digest::{BlobHash, CaptureHash, CoreHash};
use crate::storage::PayloadDefect;

/// Returns the bytes of a blob that a capture of an artifact has, wherever they are, hashed again.
pub(super) fn read_of_capture(
    session: &Session<'_>,
    blob: BlobHash,
    core: CoreHash,
    capture: CaptureHash,
) -> Outcome<Checked> {
    let condition = "EXISTS (SELECT 1 FROM artifact a JOIN capture c ON c.artifact = a.id JOIN member m ON m.capture = c.id
                              WHERE a.core = $2 AND c.digest = $3 AND m.blob = b.digest)";
    let (core, capture) = (&core.0.as_bytes()[..], &capture.0.as_bytes()[..]);
    read_if(session, blob, condition, &[(&core, Type::BYTEA), (&capture, Type::BYTEA)])
}

/// Returns the bytes of a blob `b`, wherever they are, hashed again, if a condition holds; its parameters begin with `$2`.
fn read_if(
    session: &Session<'_>,
    blob: BlobHash,
    condition: &str,
    parameters: &[Parameter<'_>],
) -> Outcome<Checked> {
    let sql = format!(
        "SELECT b.size, b.encoding, b.bytes, b.object, b.start, b.length FROM blob b WHERE b.digest = $1 AND {condition}"
    );
    let digest = &blob.0.as_bytes()[..];
    let mut all: Vec<Parameter<'_>> = vec![(&digest, Type::BYTEA)];
    all.extend(parameters.iter().map(|(value, of)| (*value, of.clone())));
    let Some(row) = session.row(&sql, &all)? else { return Ok(Err(PayloadDefect::Missing { blob })) };
    let is_beside = value::<Option<&[u8]>>(&row, 3)?.is_some();
    let part = || -> Outcome<Part> {
        Ok(Part { object: object_name(&row, 3)?, start: count(&row, 4)?, length: count(&row, 5)? })
    };
    let part = is_beside.then(part).transpose()?;
    let stored =
        StoredBlob { size: count(&row, 0)?, encoding: value(&row, 1)?, bytes: value(&row, 2)?, part };
    session.server().blobs().read(blob, stored)
}
