//! Signatures of captures.

use postgres::Row;

use crate::artifact::{Signature, SignatureState};
use crate::storage::postgres::columns::{optional_text, value};
use crate::storage::postgres::error::{PostgresError, PostgresResult};

/// Returns the signature in two columns from `first` on.
pub(in crate::storage::postgres) fn signature(row: &Row, first: usize) -> PostgresResult<Option<Signature>> {
    let Some(state) = value::<Option<&str>>(row, first)? else { return Ok(None) };
    let state = SignatureState::named(state)
        .ok_or_else(|| PostgresError::damaged("a signature has no such state"))?;
    Ok(Some(Signature { state, key_id: optional_text(row, first + 1)? }))
}
