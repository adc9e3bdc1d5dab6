use super::{View, read};
use crate::canonical::Value;
use crate::canonical::reader::{Limits, ReadError};

/// An effect that a contract declares, as typed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its name.
    pub name: String,
    /// The ref that it is on.
    pub target: String,
    /// The mode of that ref.
    pub mode: Option<String>,
    /// `keyed`, `reentrant` or `non-idempotent`, if stated.
    pub idempotency: Option<String>,
    /// Whether the contract gives a `nonce` or a `reason`, at the effect or in its idempotency: what the specification
    /// demands of effects that are not idempotent.
    pub has_nonce_or_reason: bool,
    /// How its completion can be proved, if stated.
    pub evidence: Option<Evidence>,
}

/// How the completion of an effect can be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// `hash`, `status` or `range`.
    pub sort: String,
    /// Where a hash is found.
    pub path: Option<String>,
    /// What a status or range is called.
    pub metric: Option<String>,
}

impl Effect {
    /// The effects of an admitted contract, in its order.
    ///
    /// # Errors
    /// What keeps the document from being read.
    pub fn read_all(document: &[u8], limits: &Limits) -> Result<Vec<Self>, ReadError> {
        let root = read::read(document, limits)?;
        let Some(view) = View::of(&root) else { return Ok(Vec::new()) };
        let effects = view.effects.iter().map(|effect| {
            let target = text(effect, "target").unwrap_or_default();
            Self {
                name: text(effect, "name").unwrap_or_default(),
                mode: view.declared.get(target.as_str()).and_then(|io_ref| text(io_ref, "mode")),
                target,
                idempotency: effect.get("idempotency").and_then(|idempotency| text(idempotency, "type")),
                has_nonce_or_reason: says_why(effect) || effect.get("idempotency").is_some_and(says_why),
                evidence: effect.get("evidence").and_then(Evidence::of),
            }
        });
        Ok(effects.collect())
    }
}

impl Evidence {
    fn of(value: &Value<'_>) -> Option<Self> {
        Some(Self { sort: text(value, "type")?, path: text(value, "path"), metric: text(value, "metric") })
    }
}

fn text(value: &Value<'_>, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn says_why(value: &Value<'_>) -> bool {
    ["nonce", "reason"].into_iter().any(|name| value.get(name).and_then(Value::as_filled_str).is_some())
}
