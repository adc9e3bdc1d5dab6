//! The root of a session's document: its relevant members, and the part that is hashed.

use crate::json::Value;
use crate::json::canonical::rfc8785::CanonicalInput;

/// Returns the interactions of a root.
pub(super) fn interactions<'v>(root: &'v Value<'v>) -> &'v [Value<'v>] {
    root.get("interactions").and_then(Value::as_array).unwrap_or_default()
}

/// The relevant members of a root that satisfies the rule SCHEMA.
pub(super) struct SessionMembers<'v> {
    pub(super) schema_version: &'v Value<'v>,
    pub(super) adapter_id: &'v Value<'v>,
    pub(super) model_id: &'v Value<'v>,
    pub(super) mode: &'v Value<'v>,
    pub(super) interactions: &'v [Value<'v>],
}

impl<'v> SessionMembers<'v> {
    pub(super) fn from_root(root: &'v Value<'v>) -> Option<Self> {
        let interactions = root.get("interactions")?.as_array()?;
        if interactions.iter().any(Value::is_null) {
            return None;
        }
        Some(Self {
            schema_version: root.get("model_io_schema_version")?,
            adapter_id: root.get("adapter_id")?,
            model_id: root.get("model_id")?,
            mode: root.get("mode")?,
            interactions,
        })
    }

    /// Returns `ModelIOCore` of the specification, section 4.1: the hashed part. Everything else is ephemeral (MI12).
    pub(super) fn core(&self) -> CanonicalInput<'v> {
        // MI5 and MI9 ensure that they are in order.
        let interactions = self.interactions.iter().map(core_of_interaction).collect();
        CanonicalInput::Object(vec![
            ("model_io_schema_version", CanonicalInput::Value(self.schema_version)),
            ("adapter_id", CanonicalInput::Value(self.adapter_id)),
            ("model_id", CanonicalInput::Value(self.model_id)),
            ("mode", CanonicalInput::Value(self.mode)),
            ("interactions", CanonicalInput::Array(interactions)),
        ])
    }
}

fn core_of_interaction<'v>(interaction: &'v Value<'v>) -> CanonicalInput<'v> {
    let names = ["i", "prompt_hash", "response_hash", "response_content"];
    let members =
        names.into_iter().filter_map(|name| Some((name, CanonicalInput::Value(interaction.get(name)?))));
    CanonicalInput::Object(members.collect())
}
