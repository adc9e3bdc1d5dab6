//! Views of the artifacts of a kind, over the plain views.

use std::fmt::Write;

use crate::storage::interface::KindView;
use crate::storage::views::attribute_value;

/// Returns the statement that creates a view.
pub(super) fn statement(of_kind: &KindView) -> String {
    let mut columns = String::new();
    for column in of_kind.view.columns {
        let (name, value) = (column.name, attribute_value(*column));
        // Writing to a string cannot fail.
        let _ = write!(
            columns,
            ",
                (SELECT {value} FROM main.attributes t WHERE t.artifact = a.artifact AND t.name = '{name}') AS \"{name}\""
        );
    }
    format!(
        "CREATE TEMP VIEW \"{}\" AS
         SELECT a.artifact AS artifact, a.core_hash AS core_hash, a.added_at AS added_at, a.seen_at AS seen_at{columns}
           FROM main.artifacts a WHERE a.kind = '{}'",
        of_kind.name, of_kind.kind
    )
}
