//! The SQL view of the artifacts.

use crate::artifact::ColumnType::{Number, Text};
use crate::artifact::{ArtifactView, CREATED_AT, Column};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "an IO contract",
    columns: &[
        Column::new("effects", Number, "the number of declared effects"),
        Column::new("io_refs", Number, "the number of declared refs"),
        Column::new(CREATED_AT, Text, "the creation time that it states, in UTC"),
    ],
};
