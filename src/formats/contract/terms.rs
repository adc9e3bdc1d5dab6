use std::fmt;

use super::key_path::KeyPath;
use super::read::{self, ContractMembers};
use crate::digest::Digest;
use crate::json::reader::ReadError;
use crate::json::{Number, Value};

/// The value that a member states, if it is present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParsedMember<T> {
    /// No value.
    #[default]
    Nothing,
    /// A valid value.
    Is(T),
    /// An invalid value, and the reason.
    Unreadable(String),
}

impl<T> ParsedMember<T> {
    /// Returns the value, if it is valid.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Nothing | Self::Unreadable(_) => None,
        }
    }

    /// Returns why the value is not valid, if it is not.
    #[must_use]
    pub fn unusable(&self) -> Option<&str> {
        match self {
            Self::Unreadable(reason) => Some(reason),
            Self::Nothing | Self::Is(_) => None,
        }
    }
}

/// Returns the text for comparing a value with stated ones: strings in lower case, integers as their literals, other
/// numbers by value. Returns `None` for null, lists and objects.
#[must_use]
pub fn comparable(value: &Value<'_>) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_lowercase()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Number(number) => Some(comparable_number(number)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn comparable_number(number: &Number<'_>) -> String {
    if number.is_integer() { number.literal().to_owned() } else { number.as_f64().to_string() }
}

/// Returns the values of a member that is one value or a list.
pub(super) fn values(member: Option<&Value<'_>>) -> ParsedMember<Vec<String>> {
    let Some(member) = member else { return ParsedMember::Nothing };
    let elements = member.as_array().unwrap_or(std::slice::from_ref(member));
    if elements.is_empty() {
        return ParsedMember::Unreadable("it is an empty list".to_owned());
    }
    let read: Option<Vec<String>> = elements.iter().map(comparable).collect();
    let expected = "it must be a string, a number, a boolean, or a list of these";
    read.map_or_else(|| ParsedMember::Unreadable(expected.to_owned()), ParsedMember::Is)
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeBound {
    /// The number as written in JSON.
    pub literal: String,
    /// Whether the bound is exclusive.
    pub is_exclusive: bool,
}

/// A range with at least one bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound.
    pub least: Option<RangeBound>,
    /// The upper bound.
    pub most: Option<RangeBound>,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least =
            self.least.as_ref().map(|bound| (if bound.is_exclusive { "above" } else { "at least" }, bound));
        let most =
            self.most.as_ref().map(|bound| (if bound.is_exclusive { "below" } else { "at most" }, bound));
        for (index, (words, bound)) in least.into_iter().chain(most).enumerate() {
            write!(f, "{}{words} {}", if index > 0 { ", " } else { "" }, bound.literal)?;
        }
        Ok(())
    }
}

/// The members that state the lower and the upper bound, and whether they are exclusive.
pub(super) const LEAST: [(&str, bool); 3] = [("minimum", false), ("min", false), ("exclusiveMinimum", true)];
pub(super) const MOST: [(&str, bool); 3] = [("maximum", false), ("max", false), ("exclusiveMaximum", true)];

/// Returns the bounds that `evidence` states.
pub(super) fn bounds(evidence: &Value<'_>) -> ParsedMember<Bounds> {
    match (end(evidence, &LEAST), end(evidence, &MOST)) {
        (ParsedMember::Unreadable(why), _) | (_, ParsedMember::Unreadable(why)) => {
            ParsedMember::Unreadable(why)
        }
        (ParsedMember::Nothing, ParsedMember::Nothing) => ParsedMember::Nothing,
        (least, most) => {
            let [least, most] = [least, most].map(|end| end.value().cloned());
            ParsedMember::Is(Bounds { least, most })
        }
    }
}

fn end(evidence: &Value<'_>, members: &[(&str, bool)]) -> ParsedMember<RangeBound> {
    let mut given =
        members.iter().filter_map(|(name, exclusive)| Some((*name, evidence.get(name)?, *exclusive)));
    let Some((name, value, is_exclusive)) = given.next() else { return ParsedMember::Nothing };
    if let Some((other, ..)) = given.next() {
        return ParsedMember::Unreadable(format!("both {name} and {other} are given"));
    }
    match value.as_number() {
        Some(number) => ParsedMember::Is(RangeBound { literal: number.literal().to_owned(), is_exclusive }),
        None => ParsedMember::Unreadable(format!("{name} must be a number, is {}", value.type_name())),
    }
}

/// Returns the strings of a member that is a string or a list of strings. Other values are skipped.
pub(super) fn names(value: Option<&Value<'_>>) -> Vec<String> {
    let elements = value.map(|value| value.as_array().unwrap_or(std::slice::from_ref(value)));
    let texts = elements.unwrap_or_default().iter().filter_map(Value::as_non_empty_str);
    texts.map(str::to_owned).collect()
}

/// The declarations of a contract, as typed data.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractTerms {
    /// Its IO references, in order.
    pub io_refs: Vec<IoRef>,
    /// Its effects, in order.
    pub effects: Vec<Effect>,
}

/// An IO reference: a resource that the agent may read or change.
#[derive(Clone, Debug, PartialEq)]
pub struct IoRef {
    /// Its name, such as `service:tracker`.
    pub name: String,
    /// `read`, `write` or `mutate`.
    pub mode: String,
    /// Whether a run must attest it.
    pub is_required: bool,
    /// The schema of its payload.
    pub schema: SchemaSource,
    /// Other names under which runs call it: the member `tools`, which the specification does not define.
    pub tools: Vec<String>,
}

/// The location of the schema of an IO reference.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaSource {
    /// In the contract.
    Inline(Value<'static>),
    /// Elsewhere: a path, or a digest optionally followed by `#` and a JSON Pointer. If the reference states a path and,
    /// in `schema_hash`, `schema_sha256` or `schema_digest`, the digest of the file, it is the digest.
    Named(String),
}

/// An effect that a contract declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its name.
    pub name: String,
    /// The ref that it targets.
    pub target: String,
    /// The mode of that ref.
    pub mode: Option<String>,
    /// `keyed`, `reentrant` or `non-idempotent`, if stated.
    pub idempotency: Option<String>,
    /// The arguments that identify repeated requests.
    pub key_fields: Vec<KeyPath>,
    /// The effect or ref that reverses it.
    pub rollback: Option<String>,
    /// The `nonce` that the contract states, for the effect or in its idempotency: the argument that has it.
    pub nonce: Option<KeyPath>,
    /// Whether the contract states a `reason` why retries are unsafe, for the effect or in its idempotency. The
    /// specification requires a nonce or a reason for effects that are not idempotent.
    pub has_reason: bool,
    /// The tools whose calls are this effect, if stated in `tool` or `tools`.
    pub tools: Vec<String>,
    /// The evidence of its completion, if stated.
    pub evidence: Option<Evidence>,
}

/// The evidence of the completion of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// `hash`, `status` or `range`.
    pub sort: String,
    /// A JSON Pointer into a result.
    pub path: Option<String>,
    /// The name of a member of a result.
    pub metric: Option<String>,
    /// The values that prove the effect: `success` of the evidence or of the effect.
    pub success: ParsedMember<Vec<String>>,
    /// The values that disprove it: `failure` of the evidence or of the effect.
    pub failure: ParsedMember<Vec<String>>,
    /// The bounds of a range.
    pub bounds: ParsedMember<Bounds>,
    /// A JSON Pointer into the call, below `/arguments` or `/result`, to the hashed text.
    pub of: Option<String>,
}

impl ContractTerms {
    /// Reads an admitted contract.
    ///
    /// # Errors
    /// Returns an error if the document cannot be read.
    pub fn read(document: &[u8]) -> Result<Self, ReadError> {
        let root = read::read_admitted(document)?;
        let Some(view) = ContractMembers::from_root(&root) else {
            return Ok(Self { io_refs: Vec::new(), effects: Vec::new() });
        };
        let io_refs = view.io_refs.iter().map(IoRef::parse).collect();
        let effects = view.effects.iter().map(|effect| Effect::parse(effect, &view)).collect();
        Ok(Self { io_refs, effects })
    }
}

impl IoRef {
    fn parse(value: &Value<'_>) -> Self {
        let schema = value.get("schema").unwrap_or(&Value::Null);
        Self {
            name: text(value, "ref").unwrap_or_default(),
            mode: text(value, "mode").unwrap_or_default(),
            is_required: matches!(value.get("required"), Some(Value::Bool(true))),
            schema: match schema.as_str() {
                Some(name) => {
                    SchemaSource::Named(digest_of_schema(value, name).unwrap_or_else(|| name.to_owned()))
                }
                None => SchemaSource::Inline(schema.to_owned_value()),
            },
            tools: names(value.get("tools")),
        }
    }
}

impl Effect {
    pub(super) fn parse(effect: &Value<'_>, view: &ContractMembers<'_>) -> Self {
        let target = text(effect, "target").unwrap_or_default();
        let idempotency = effect.get("idempotency");
        let key_fields = names(idempotency.and_then(|idempotency| idempotency.get("key_fields")));
        let mut tools = names(effect.get("tools"));
        tools.extend(text(effect, "tool").filter(|tool| !tool.is_empty()));
        Self {
            name: text(effect, "name").unwrap_or_default(),
            mode: view.declared.get(target.as_str()).and_then(|io_ref| text(io_ref, "mode")),
            target,
            idempotency: idempotency.and_then(|idempotency| text(idempotency, "type")),
            key_fields: key_fields.iter().map(|field| KeyPath::new(field)).collect(),
            rollback: text(effect, "rollback"),
            nonce: stated(effect, "nonce").map(KeyPath::new),
            has_reason: stated(effect, "reason").is_some(),
            tools,
            evidence: effect.get("evidence").and_then(|evidence| Evidence::parse(evidence, effect)),
        }
    }

    /// Returns whether a retry is unsafe and the contract states neither a safeguard nor a reason.
    #[must_use]
    pub fn is_unsafe_to_retry(&self) -> bool {
        self.is_non_idempotent() && self.nonce.is_none() && !self.has_reason
    }

    /// Returns whether it is declared as not idempotent.
    #[must_use]
    pub fn is_non_idempotent(&self) -> bool {
        self.idempotency.as_deref() == Some("non-idempotent")
    }

    /// Returns why it does more than read, although its target is declared as read, if it does.
    #[must_use]
    pub fn exceeds_reading(&self) -> Option<&'static str> {
        match self.mode.as_deref() {
            Some("read") if self.is_non_idempotent() => Some("is not idempotent"),
            Some("read") if self.rollback.is_some() => Some("has a rollback"),
            _ => None,
        }
    }
}

impl Evidence {
    fn parse(value: &Value<'_>, effect: &Value<'_>) -> Option<Self> {
        let values = |name: &str| values(value.get(name).or_else(|| effect.get(name)));
        Some(Self {
            sort: text(value, "type")?,
            path: text(value, "path"),
            metric: text(value, "metric"),
            success: values("success"),
            failure: values("failure"),
            bounds: bounds(value),
            of: text(value, "of"),
        })
    }
}

/// Members of a ref with the digest of the schema whose path it states. The specification does not define them.
const SCHEMA_DIGESTS: [&str; 3] = ["schema_hash", "schema_sha256", "schema_digest"];

/// Returns the digest of the schema at a path, if the ref states it.
fn digest_of_schema(io_ref: &Value<'_>, name: &str) -> Option<String> {
    // A name that is a digest itself has precedence.
    if Digest::parse_prefixed(name.split('#').next()?).is_some() {
        return None;
    }
    let digest = |member| Digest::parse_prefixed(io_ref.get(member)?.as_str()?);
    SCHEMA_DIGESTS.into_iter().find_map(digest).map(|digest| digest.to_string())
}

fn text(value: &Value<'_>, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Returns the non-empty string `name` of an effect or of its idempotency.
fn stated<'v>(effect: &'v Value<'_>, name: &str) -> Option<&'v str> {
    let places = [Some(effect), effect.get("idempotency")];
    places.into_iter().flatten().find_map(|place| place.get(name).and_then(Value::as_non_empty_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::{self, Limits};

    fn read(text: &str) -> Value<'_> {
        reader::read(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn values_are_compared_without_case_and_sort() {
        let parse_values = |text| values(Some(&read(text)));
        assert_eq!(parse_values(r#""SET""#), ParsedMember::Is(vec!["set".to_owned()]));
        let all = ["set", "200", "true", "0.5", "100"].map(str::to_owned).to_vec();
        assert_eq!(parse_values(r#"["set", 200, true, 5e-1, 1e2]"#), ParsedMember::Is(all));
        assert_eq!(values(None), ParsedMember::Nothing);
        for text in ["[]", "null", "{}", r#"["a", null]"#, "[[1]]"] {
            assert!(matches!(parse_values(text), ParsedMember::Unreadable(_)), "{text}");
        }
    }

    #[test]
    fn bounds_have_one_or_two_ends() {
        let shown = |text| match bounds(&read(text)) {
            ParsedMember::Nothing => "nothing".to_owned(),
            ParsedMember::Is(bounds) => bounds.to_string(),
            ParsedMember::Unreadable(why) => why,
        };
        assert_eq!(shown("{}"), "nothing");
        assert_eq!(shown(r#"{"minimum": 0, "exclusiveMaximum": 1.50}"#), "at least 0, below 1.50");
        assert_eq!(shown(r#"{"max": 3}"#), "at most 3");
        assert_eq!(shown(r#"{"min": "0"}"#), "min must be a number, is a string");
        assert_eq!(shown(r#"{"max": 3, "maximum": 4}"#), "both maximum and max are given");
    }
}
