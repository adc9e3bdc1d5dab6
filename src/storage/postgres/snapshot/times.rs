//! The times of artifacts.

use crate::storage::TimeBasis;

/// Returns the expression of a time of an artifact `a`, in milliseconds since 1970.
pub(super) fn column(by: TimeBasis) -> &'static str {
    match by {
        TimeBasis::FirstSeen => "a.added_at",
        TimeBasis::LastSeen => "a.seen_at",
        TimeBasis::Created => "a.created_at",
        TimeBasis::Finished => {
            "(SELECT max(t.number) FROM attribute t WHERE t.artifact = a.id AND t.name = 'finished_at')"
        }
    }
}
