use std::collections::HashSet;

use super::dialect::foreign_language;
use super::key_field::{KeyFields, Presence};
use super::key_path::KeyPath;
use super::read::ContractMembers;
use super::shape;
use super::terms::{self, Effect, ParsedMember};
use crate::json::Value;
use crate::json::reader::excerpt;
use crate::validation::{Finder, Rule, RuleInfo};

/// Also broken by documents that cannot be read.
pub(super) const SCHEMA: RuleInfo = RuleInfo::error(
    "SCHEMA",
    "The contract can be read, and its refs and effects have the required members.",
    "A contract is one JSON or YAML 1.2 document: an object with the lists io_refs and effects. \
     Unreadable or ambiguous input is reported here, with its position and the DOC rule that it \
     breaks. In io_refs and effects, integers beyond 2^53 - 1 are rejected, because RFC 8785 \
     cannot represent them. Other members of the root are allowed and not hashed.",
);

type ShapeCheck = fn(&Value<'_>, &mut Finder<'_>);
type ContractCheck = fn(&ContractMembers<'_>, &mut Finder<'_>);

/// Rules for the root. If one is broken, no others are checked.
pub(super) static SHAPE: [Rule<ShapeCheck>; 1] = [Rule { info: SCHEMA, check: shape::check }];

/// Rules for contracts with a valid shape.
pub(super) static CONTENT: [Rule<ContractCheck>; 8] = [
    Rule {
        info: RuleInfo::error(
            "IC1",
            "Effects target declared refs; rollbacks name another effect or a declared ref.",
            "io_refs lists everything that the agent touches, so an effect on anything else is \
             not covered by the contract. The specification's prose requires refs as rollbacks, \
             its field table and example effects: both are accepted. Names are compared exactly.",
        ),
        check: closure,
    },
    Rule {
        info: RuleInfo::error(
            "IC2",
            "Inline schemas and their subschemas are well-formed.",
            "type is a JSON Schema type or a list of types, properties an object, required a list of strings, \
             enum a list: in the schema itself and in the subschemas of properties, items, allOf and all other \
             keywords that hold schemas. Otherwise no payload could be validated against the schema. A subschema \
             that is neither an object nor a boolean is only a warning. A schema that is a path is not checked, nor \
             is one in another language, such as Avro, JSON Type Definition or a protobuf descriptor; the latter \
             is a warning.",
        ),
        check: schemas,
    },
    Rule {
        info: RuleInfo::error(
            "IC3",
            "Every ref with mode write or mutate is the target of an effect.",
            "A write without an effect can be neither verified nor \
             rolled back. Being named as a rollback is not enough.",
        ),
        check: explicitness,
    },
    Rule {
        info: RuleInfo::error(
            "IC4",
            "Effects on written refs declare their idempotency; keyed effects list key fields that exist.",
            "A client that retries an effect must know whether that is safe, and by which fields the request is \
             identified. A key field is a name, names with dots between them, a JSON Pointer or a JSONPath, and is \
             looked up in the target's inline schema: in properties, patternProperties, additionalProperties, \
             required and items, through $ref within the schema, allOf, anyOf, oneOf, then and else. If that does \
             not decide whether it exists, or the schema is a path or not a JSON Schema, a warning says so.",
        ),
        check: idempotency,
    },
    Rule {
        info: RuleInfo::warning(
            "IC5",
            "Every effect declares its evidence.",
            "Without evidence, no audit can tell if the effect took place. Name the hash, status or range as proof.",
        ),
        check: evidence,
    },
    Rule {
        info: RuleInfo::warning(
            "IC6",
            "An effect that is not idempotent has a nonce or a reason.",
            "The specification requires a deterministic nonce, or a reason why retries \
             are unsafe: the member nonce or reason, a non-empty string, of the effect \
             or of its idempotency. Without one, a retry may repeat the effect.",
        ),
        check: retries,
    },
    Rule {
        info: RuleInfo::warning(
            "IC7",
            "The contract's criteria for its evidence are usable.",
            "success and failure are a string, a number, a boolean, or a list of these; minimum and \
             maximum (or min and max, exclusiveMinimum and exclusiveMaximum) are numbers, each bound \
             given once; path and of are JSON Pointers, and there is a path or a metric. An audit cannot \
             use anything else as proof.",
        ),
        check: statements,
    },
    Rule {
        info: RuleInfo::warning(
            "IC8",
            "Effects match the modes of their targets.",
            "An effect on a ref that is only read can only observe it. One that is not idempotent, has a rollback or \
             states another mode does more than that, so the mode of the ref or the effect is wrong.",
        ),
        check: modes,
    },
];

pub(super) fn all() -> Vec<RuleInfo> {
    CONTENT.iter().map(|rule| rule.info).chain([SCHEMA]).collect()
}

/// Returns the member `name`, which the shape rule found to be a string, or an empty string if it is missing.
fn text<'v>(value: &'v Value<'v>, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the member `name` if it is present and not null.
fn non_null_member<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    value.get(name).filter(|member| !member.is_null())
}

fn is_written(io_ref: &Value<'_>) -> bool {
    matches!(text(io_ref, "mode"), "write" | "mutate")
}

fn closure(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    for (index, effect) in contract.effects.iter().enumerate() {
        let target = text(effect, "target");
        if !contract.declared.contains_key(target) {
            let message = format!("{} is not declared in io_refs", excerpt(target));
            found.add(format!("/effects/{index}/target"), message);
        }
        let Some(rollback) = effect.get("rollback").and_then(Value::as_str) else {
            continue;
        };
        let names_itself = rollback == text(effect, "name");
        let bearers = contract.effect_names.get(rollback).copied().unwrap_or_default();
        if bearers > usize::from(names_itself) || contract.declared.contains_key(rollback) {
            continue;
        }
        let message = if names_itself {
            "is the effect itself; it must be another effect or a declared ref".to_owned()
        } else {
            format!("{} is neither another effect nor a declared ref", excerpt(rollback))
        };
        found.add(format!("/effects/{index}/rollback"), message);
    }
}

fn schemas(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    for (index, io_ref) in contract.io_refs.iter().enumerate() {
        let Some(schema) = io_ref.get("schema") else { continue };
        let mut at = format!("/io_refs/{index}/schema");
        match foreign_language(schema) {
            Some(language) => found.warn(at, format!("not checked: the schema is {language}")),
            None => shape::check_schemas(schema, &mut at, found),
        }
    }
}

fn explicitness(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    let targets: HashSet<&str> = contract.effects.iter().map(|effect| text(effect, "target")).collect();
    for (index, io_ref) in contract.io_refs.iter().enumerate() {
        let name = text(io_ref, "ref");
        if is_written(io_ref) && !targets.contains(name) {
            let mode = text(io_ref, "mode");
            let message = format!("{} has mode {mode}, but is not the target of any effect", excerpt(name));
            found.add(format!("/io_refs/{index}"), message);
        }
    }
}

fn idempotency(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    let mut key_fields = KeyFields::default();
    for (index, effect) in contract.effects.iter().enumerate() {
        let target = contract.declared.get(text(effect, "target")).copied();
        let at = format!("/effects/{index}/idempotency");
        let idempotency = non_null_member(effect, "idempotency");
        let sort = idempotency.and_then(|idempotency| non_null_member(idempotency, "type"));
        if sort.is_none() && target.is_some_and(is_written) {
            let requirement = "required because the target is written";
            match idempotency {
                None => found.add(at.as_str(), format!("missing; {requirement}")),
                Some(_) => found.add(format!("{at}/type"), format!("missing; {requirement}")),
            }
        }
        if sort.and_then(Value::as_str) == Some("keyed") {
            let fields = idempotency.and_then(|idempotency| idempotency.get("key_fields"));
            let fields = fields.and_then(Value::as_array).unwrap_or_default();
            if fields.is_empty() {
                let message = "missing or empty; a keyed effect must list its key fields";
                found.add(format!("{at}/key_fields"), message);
            }
            let Some(schema) = target.and_then(|target| target.get("schema")) else {
                continue;
            };
            let undecidable = match foreign_language(schema) {
                Some(language) => Some(format!("the schema of the target is {language}")),
                None => schema.as_str().map(|_| "the schema of the target is a path".to_owned()),
            };
            for (position, field) in fields.iter().filter_map(Value::as_str).enumerate() {
                let at = format!("{at}/key_fields/{position}");
                let presence = match &undecidable {
                    Some(_) => Presence::Unknown,
                    None => key_fields.look_up(&KeyPath::new(field), schema),
                };
                let name = excerpt(field);
                match presence {
                    Presence::Yes => {}
                    Presence::No => found.add(at, format!("{name} is not in the schema of the target")),
                    Presence::Unknown | Presence::Silent => {
                        let open = "the schema of the target does not decide whether it exists";
                        let why = undecidable.as_deref().unwrap_or(open);
                        found.warn(at, format!("{name} was not checked: {why}"));
                    }
                }
            }
        }
    }
}

fn evidence(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    for (index, effect) in contract.effects.iter().enumerate() {
        if non_null_member(effect, "evidence").is_none() {
            let message = "missing; without evidence the effect cannot be audited";
            found.add(format!("/effects/{index}/evidence"), message);
        }
    }
}

fn retries(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    for (index, effect) in contract.effects.iter().enumerate() {
        if Effect::parse(effect, contract).is_unsafe_to_retry() {
            let message = "not idempotent, but without a nonce or reason; retries may repeat the effect";
            found.add(format!("/effects/{index}/idempotency"), message);
        }
    }
}

fn statements(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    for (index, effect) in contract.effects.iter().enumerate() {
        let Some(evidence) = non_null_member(effect, "evidence") else { continue };
        for name in ["success", "failure"] {
            for (place, value) in [("/evidence", evidence.get(name)), ("", effect.get(name))] {
                if let ParsedMember::Unreadable(why) = terms::values(value) {
                    found.add(format!("/effects/{index}{place}/{name}"), why);
                }
            }
        }
        let at = format!("/effects/{index}/evidence");
        if evidence.get("path").is_none() && evidence.get("metric").is_none() {
            found.add(at.as_str(), "has neither a path nor a metric; an audit cannot find the value");
        }
        if let ParsedMember::Unreadable(why) = terms::bounds(evidence) {
            found.add(at.as_str(), format!("invalid bounds: {why}"));
        }
        for name in ["path", "of"] {
            let text = evidence.get(name).and_then(Value::as_str);
            if let Some(text) = text.filter(|text| !text.is_empty() && !text.starts_with('/')) {
                found.add(format!("{at}/{name}"), format!("{} is not a JSON Pointer", excerpt(text)));
            }
        }
    }
}

fn modes(contract: &ContractMembers<'_>, found: &mut Finder<'_>) {
    for (index, effect) in contract.effects.iter().enumerate() {
        let declared = contract.declared.get(text(effect, "target")).map(|target| text(target, "mode"));
        let (target, mode) = (excerpt(text(effect, "target")), text(effect, "mode"));
        let is_other = !mode.is_empty() && declared.is_some_and(|it| it != "mutate" && it != mode);
        if is_other {
            let declared = declared.unwrap_or_default();
            let message =
                format!("the effect has mode {}, but {target} is declared as {declared}", excerpt(mode));
            found.add(format!("/effects/{index}/mode"), message);
        } else if let Some(why) = Effect::parse(effect, contract).exceeds_reading() {
            let message =
                format!("{target} is declared as read, but the effect {why}, so it does more than read");
            found.add(format!("/effects/{index}/target"), message);
        }
    }
}
