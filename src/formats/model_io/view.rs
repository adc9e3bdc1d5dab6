//! The SQL view of the artifacts.

use crate::artifact::ColumnType::{Number, Text};
use crate::artifact::{ArtifactView, CREATED_AT, Column};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a recorded model session",
    columns: &[
        Column::new("adapter_id", Text, "the adapter that recorded it"),
        Column::new("model_id", Text, "the model that answered"),
        Column::new("mode", Text, "`record` or `replay`"),
        Column::new("interactions", Number, "the number of interactions"),
        Column::new(CREATED_AT, Text, "the creation time that it states, in UTC"),
    ],
};
