//! Changes of rows that are in the database.

use super::state::{BatchState, RowChange};
use crate::storage::postgres::error::PostgresResult;
use crate::storage::postgres::session::DatabaseTransaction;
use crate::storage::postgres::text::to_stored;

/// Updates the artifacts that were seen again or have further captures.
pub(super) fn update_artifacts(session: &DatabaseTransaction<'_>, state: &BatchState) -> PostgresResult<()> {
    let updated = state.artifacts.values().filter(|stored| stored.change == RowChange::Updated);
    let updated: Vec<_> = updated.collect();
    if updated.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = updated.iter().map(|stored| stored.id).collect();
    let seen: Vec<i64> = updated.iter().map(|stored| stored.seen_at).collect();
    let arrivals: Vec<i64> = updated.iter().map(|stored| stored.arrival.cast_signed()).collect();
    let created: Vec<Option<i64>> = updated.iter().map(|stored| stored.created_at).collect();
    session.execute(
        "UPDATE artifact a SET seen_at = n.seen_at, arrival = n.arrival, created_at = n.created_at
           FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n (id, seen_at, arrival, created_at)
          WHERE a.id = n.id",
        &[&ids, &seen, &arrivals, &created],
    )?;
    Ok(())
}

/// Updates the captures that were seen again or whose signatures were checked again.
pub(super) fn update_captures(session: &DatabaseTransaction<'_>, state: &BatchState) -> PostgresResult<()> {
    let updated = state.captures.values().filter(|stored| stored.change == RowChange::Updated);
    let updated: Vec<_> = updated.collect();
    if updated.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = updated.iter().map(|stored| stored.id).collect();
    let seen: Vec<i64> = updated.iter().map(|stored| stored.seen_at).collect();
    let signatures = updated.iter().map(|stored| stored.signature.as_ref());
    let states: Vec<Option<&str>> =
        signatures.clone().map(|signature| signature.map(|signature| signature.state.name())).collect();
    let key_ids: Vec<_> = signatures.map(|signature| signature?.key_id.as_deref().map(to_stored)).collect();
    session.execute(
        "UPDATE capture c SET seen_at = n.seen_at, signature = n.signature, key_id = n.key_id
           FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS n (id, seen_at, signature, key_id)
          WHERE c.id = n.id",
        &[&ids, &seen, &states, &key_ids],
    )?;
    Ok(())
}
