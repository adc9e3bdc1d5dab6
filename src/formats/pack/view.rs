//! The SQL view of the artifacts.

use crate::artifact::ColumnType::Text;
use crate::artifact::{ArtifactView, CREATED_AT, Column};

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a run export pack",
    columns: &[
        Column::new("run_id", Text, "the run's id"),
        Column::new("result", Text, "`BUNDLE`, `CLARIFY` or `REFUSE`"),
        Column::new("policy", Text, "the policy, with its version"),
        Column::new("model_mode", Text, "how the model was used"),
        Column::new("kernel_version", Text, "the version of the kernel"),
        Column::new(CREATED_AT, Text, "the creation time that it states, in UTC"),
    ],
};
