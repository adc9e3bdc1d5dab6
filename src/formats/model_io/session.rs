use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::rfc8785::CanonicalInput;
use crate::json::reader::{self, Limits, ReadError};

/// A recorded model session as typed data: the hashed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// `model_io_schema_version`.
    pub schema_version: String,
    /// The adapter that recorded it.
    pub adapter_id: String,
    /// The model that responded.
    pub model_id: String,
    /// The purpose of the recording.
    pub mode: SessionMode,
    /// The prompts and responses, in order.
    pub interactions: Vec<Interaction>,
}

/// The purpose of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode {
    /// It was made from live calls.
    Record,
    /// It is intended for deterministic replay.
    Replay,
}

/// One prompt and its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// The SHA-256 of the prompt's UTF-8 bytes; the prompt itself is not recorded.
    pub prompt_hash: Digest,
    /// The SHA-256 of the response's UTF-8 bytes.
    pub response_hash: Digest,
    /// The response.
    pub response_content: String,
}

impl Session {
    /// Returns the session in an admitted `document`, or `None` if the document is not an admitted session.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read as JSON.
    pub fn read(document: &[u8]) -> Result<Option<Self>, ReadError> {
        let root = reader::read_keeping_overflow(document, &Limits::most())?;
        Ok(Self::from_value(&root))
    }

    fn from_value(root: &Value<'_>) -> Option<Self> {
        let text = |name: &str| root.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            schema_version: text("model_io_schema_version")?,
            adapter_id: text("adapter_id")?,
            model_id: text("model_id")?,
            mode: match text("mode")?.as_str() {
                "record" => SessionMode::Record,
                "replay" => SessionMode::Replay,
                _ => return None,
            },
            interactions: root
                .get("interactions")?
                .as_array()?
                .iter()
                .map(Interaction::from_value)
                .collect::<Option<_>>()?,
        })
    }
}

impl Interaction {
    fn from_value(value: &Value<'_>) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        Some(Self {
            prompt_hash: text("prompt_hash").and_then(Digest::parse_prefixed)?,
            response_hash: text("response_hash").and_then(Digest::parse_prefixed)?,
            response_content: text("response_content")?.to_owned(),
        })
    }
}

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
