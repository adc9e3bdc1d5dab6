//! The SQL view of the artifacts.

use crate::artifact::ColumnType::{Number, Text};
use crate::artifact::{ArtifactView, CREATED_AT, Column};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a trace log",
    columns: &[
        Column::new("trace_id", Text, "its id, which is the id of the run"),
        Column::new("engine_version", Text, "the version of the engine"),
        Column::new("records", Number, "the number of records, including the header"),
        Column::new(CREATED_AT, Text, "the creation time that it states, in UTC"),
    ],
};
