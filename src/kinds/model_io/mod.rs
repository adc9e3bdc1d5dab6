//! `model_io`: recorded model sessions. Rules: the Model IO specification, section 5; `docs/formats.md`, "`model_io`".

mod rules;
mod session;

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::artifact::{AdmitOptions, Artifact, Draft, Mention, Recognition, Role, document, unreadable};
use crate::canonical::reader::{self, Limits};
use crate::canonical::{Value, rfc8785};
use crate::digest::{CoreHash, Digest, Hasher};
use crate::verify::{Findings, RuleInfo, apply};

pub use session::{Interaction, Mode, Session};

const PROMPT: Role = Role { name: "prompt", group: "prompt", unit: "interaction", relation: None };
const RESPONSE: Role = Role { name: "response", group: "response", unit: "interaction", relation: None };

/// Where digests stand that are indexed as prompts and responses.
const INDEXED: [&str; 2] = ["/interactions/*/prompt_hash", "/interactions/*/response_hash"];

/// The kind `model_io`.
pub struct ModelIo;

impl Artifact for ModelIo {
    const NAME: &'static str = "model_io";
    const PLURAL: &'static str = "sessions";
    const MEMBER: &'static str = "model_io.json";
    const FILE_NAMES: &'static [&'static str] = &["model_io.json"];

    fn rules() -> Vec<RuleInfo> {
        rules::all()
    }

    fn recognises(_: &str, names: &[Cow<'_, str>]) -> Option<Recognition> {
        let has = |name: &str| names.iter().any(|other| other == name);
        let (adapter, model) = (has("adapter_id"), has("model_id"));
        let surely = has("model_io_schema_version") || has("interactions") && adapter && model;
        Recognition::of(surely, has("interactions") && (adapter || model))
    }

    fn examine(bytes: &[u8], options: &AdmitOptions, findings: &mut Findings) -> Option<Draft> {
        let root = match reader::read_keeping_overflow(bytes, &options.limits) {
            Ok(root) => root,
            Err(error) => {
                document::report(&error, findings);
                return None;
            }
        };
        apply(&rules::ROOT, findings, |check, found| check(&root, found));
        let view = View::of(&root)?;
        apply(&rules::CONTENT, findings, |check, found| check(&view, found));
        if findings.has_errors() {
            return None;
        }
        Some(describe(&root, &view))
    }

    fn write_core(document: &[u8], limits: &Limits, out: &mut dyn Write) -> io::Result<()> {
        let root = reader::read_keeping_overflow(document, limits).map_err(unreadable)?;
        let view = View::of(&root).ok_or(io::ErrorKind::InvalidData)?;
        Ok(rfc8785::write(&view.core(), &mut io::BufWriter::new(out))?)
    }
}

/// The members that matter, of a root that keeps the rule SCHEMA.
struct View<'v> {
    schema_version: &'v Value<'v>,
    adapter_id: &'v Value<'v>,
    model_id: &'v Value<'v>,
    mode: &'v Value<'v>,
    interactions: &'v [Value<'v>],
}

impl<'v> View<'v> {
    fn of(root: &'v Value<'v>) -> Option<Self> {
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

    fn core(&self) -> Core<'v> {
        Core {
            model_io_schema_version: self.schema_version,
            adapter_id: self.adapter_id,
            model_id: self.model_id,
            mode: self.mode,
            // MI5 and MI9 make sure that they are in order.
            interactions: self.interactions.iter().map(CoreInteraction::of).collect(),
        }
    }
}

/// `ModelIOCore` of the specification, section 4.1: what is hashed. Everything else is ephemeral (MI12).
#[derive(Serialize)]
struct Core<'v> {
    model_io_schema_version: &'v Value<'v>,
    adapter_id: &'v Value<'v>,
    model_id: &'v Value<'v>,
    mode: &'v Value<'v>,
    interactions: Vec<CoreInteraction<'v>>,
}

#[derive(Serialize)]
struct CoreInteraction<'v> {
    i: Option<&'v Value<'v>>,
    prompt_hash: Option<&'v Value<'v>>,
    response_hash: Option<&'v Value<'v>>,
    response_content: Option<&'v Value<'v>>,
}

impl<'v> CoreInteraction<'v> {
    fn of(interaction: &'v Value<'v>) -> Self {
        Self {
            i: interaction.get("i"),
            prompt_hash: interaction.get("prompt_hash"),
            response_hash: interaction.get("response_hash"),
            response_content: interaction.get("response_content"),
        }
    }
}

fn describe(root: &Value<'_>, view: &View<'_>) -> Draft {
    let mut hasher = Hasher::new();
    // Neither can fail: the hasher takes everything, and the rules allow no number that overflows in the core.
    let _ = rfc8785::write(&view.core(), &mut hasher);
    let mut draft = Draft::new(CoreHash(hasher.finish()));
    for (index, interaction) in view.interactions.iter().enumerate() {
        for (name, role) in [("prompt_hash", &PROMPT), ("response_hash", &RESPONSE)] {
            let digest = interaction.get(name).and_then(Value::as_str).and_then(Digest::stated);
            draft.mentions.extend(digest.map(|digest| Mention::at(role, index, digest)));
        }
    }
    draft.collect_references(root, "", &INDEXED);
    for (name, value) in [("adapter_id", view.adapter_id), ("model_id", view.model_id), ("mode", view.mode)] {
        draft.attribute(name, value.as_str().unwrap_or_default());
    }
    draft.attribute("interactions", view.interactions.len().to_string());
    draft
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Kind;

    #[test]
    fn the_core_is_pinned() {
        let content = Digest::of(b"hi");
        let prompt = Digest::of(b"hello");
        let text = format!(
            r#"{{"mode":"record","stats":[1e999],"model_io_schema_version":"1.0.0","model_id":"m","adapter_id":"a",
            "interactions":[{{"i":-0,"prompt_hash":"{prompt}","response_hash":"{content}","response_content":"hi",
            "latency_ms":3,"seen":"{prompt}"}}]}}"#
        );
        let mut core = Vec::new();
        ModelIo::write_core(text.as_bytes(), &Limits::default(), &mut core).unwrap();
        let expected = format!(
            r#"{{"adapter_id":"a","interactions":[{{"i":0,"prompt_hash":"{prompt}","response_content":"hi","response_hash":"{content}"}}],"mode":"record","model_id":"m","model_io_schema_version":"1.0.0"}}"#
        );
        assert_eq!(String::from_utf8(core).unwrap(), expected);
        let admitted = Kind::of::<ModelIo>().admit(text.into_bytes(), &AdmitOptions::default()).unwrap();
        assert_eq!(admitted.core(), CoreHash(Digest::of(expected.as_bytes())));
        let mentions: Vec<String> = admitted
            .draft()
            .mentions
            .iter()
            .map(|mention| format!("{} {} {:.6}", mention.role.name, mention.place, mention.digest))
            .collect();
        assert_eq!(
            mentions,
            ["prompt 0 2cf24d", "reference /interactions/0/seen 2cf24d", "response 0 8f4343"]
        );
    }
}
