//! The SQL view of the artifacts.

use crate::artifact::ColumnType::{Number, Text};
use crate::artifact::{ArtifactView, CREATED_AT, Column};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a run pack",
    columns: &[
        Column::new("run_id", Text, "the run's id"),
        Column::new("source_run_id", Text, "the id of the run that it was derived from"),
        Column::new("provider", Text, "the provider of the model"),
        Column::new("agent", Text, "the agent"),
        Column::new("source", Text, "the recorder"),
        Column::new("capture_mode", Text, "how it was recorded"),
        Column::new("steps", Number, "the number of steps"),
        Column::new(CREATED_AT, Text, "the creation time that it states, in UTC"),
    ],
};
