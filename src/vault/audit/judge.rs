//! Evaluation of a value as evidence of an effect.

use std::cmp::Ordering;

use super::decimal;
use crate::digest::Digest;
use crate::formats::{Bounds, Evidence, ParsedMember, RangeBound, comparable};
use crate::json::Value;
use crate::json::reader::excerpt;

/// Lowercase statuses that mean success if a contract defines none.
pub const SUCCESS: [&str; 6] = ["ok", "success", "succeeded", "completed", "done", "true"];

/// Lowercase statuses that mean failure if a contract defines none.
pub const FAILURE: [&str; 13] = [
    "aborted",
    "canceled",
    "cancelled",
    "crashed",
    "denied",
    "error",
    "errored",
    "failed",
    "failure",
    "false",
    "rejected",
    "timed_out",
    "timeout",
];

/// A value that was found; lists and objects without their contents.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObservedValue {
    Plain(Value<'static>),
    Other(&'static str),
}

/// The judgement of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EvidenceJudgment {
    /// It proves the effect, for this reason.
    Verified(String),
    /// It proves nothing, for this reason.
    Inconclusive(String),
    /// It disproves the effect, for this reason.
    Failed(String),
    /// It is a digest whose content is yet to be determined.
    Digest(Digest),
}

impl ObservedValue {
    pub(super) fn new(value: &Value<'_>) -> Self {
        match value {
            Value::Array(_) | Value::Object(_) => Self::Other(value.type_name()),
            plain => Self::Plain(plain.to_owned_value()),
        }
    }

    /// Returns the value as shown in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            // A digest is shown in full, so that what it identifies can be looked up.
            Self::Plain(Value::String(text)) if Digest::parse_either(text).is_some() => text.to_string(),
            Self::Plain(Value::String(text)) => excerpt(text),
            Self::Plain(Value::Number(number)) if number.literal().len() <= 40 => number.literal().to_owned(),
            Self::Plain(Value::Bool(truth)) => truth.to_string(),
            Self::Plain(other) => other.type_name().to_owned(),
            Self::Other(sort) => (*sort).to_owned(),
        }
    }

    /// Returns the text that is compared with the values in the contract.
    pub(super) fn comparable(&self) -> Option<String> {
        match self {
            Self::Plain(value) => comparable(value),
            Self::Other(_) => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Plain(value) => value.as_str(),
            Self::Other(_) => None,
        }
    }
}

/// Judges `seen` as evidence of an effect.
pub(super) fn judge(evidence: &Evidence, seen: &ObservedValue) -> EvidenceJudgment {
    if *seen == ObservedValue::Plain(Value::Null) {
        return EvidenceJudgment::Inconclusive("null neither proves nor disproves it".to_owned());
    }
    match evidence.sort.as_str() {
        "hash" => hash(evidence, seen),
        "range" => range(&evidence.bounds, seen),
        _ => status(evidence, seen),
    }
}

fn status(evidence: &Evidence, seen: &ObservedValue) -> EvidenceJudgment {
    for (name, values) in [("success", &evidence.success), ("failure", &evidence.failure)] {
        if let ParsedMember::Unreadable(why) = values {
            return EvidenceJudgment::Inconclusive(format!(
                "the {name} values of the contract cannot be used: {why}"
            ));
        }
    }
    let text = seen.comparable();
    let is_one_of = |values: &[String]| text.as_ref().is_some_and(|text| values.contains(text));
    let is_known = |values: &[&str]| text.as_ref().is_some_and(|text| values.contains(&text.as_str()));
    if evidence.failure.value().is_some_and(|values| is_one_of(values)) {
        return EvidenceJudgment::Failed("which is a failure value of the contract".to_owned());
    }
    if let Some(values) = evidence.success.value() {
        return if is_one_of(values) {
            EvidenceJudgment::Verified("which is a success value of the contract".to_owned())
        } else {
            EvidenceJudgment::Failed("which is not a success value of the contract".to_owned())
        };
    }
    if is_known(&SUCCESS) {
        EvidenceJudgment::Verified("which means success".to_owned())
    } else if is_known(&FAILURE) {
        EvidenceJudgment::Failed("which means failure".to_owned())
    } else {
        EvidenceJudgment::Inconclusive("which means neither success nor failure".to_owned())
    }
}

fn range(declared: &ParsedMember<Bounds>, seen: &ObservedValue) -> EvidenceJudgment {
    let ObservedValue::Plain(Value::Number(number)) = seen else {
        return EvidenceJudgment::Failed("which is not a number".to_owned());
    };
    match declared {
        ParsedMember::Nothing => EvidenceJudgment::Inconclusive("the contract states no bounds".to_owned()),
        ParsedMember::Unreadable(why) => {
            EvidenceJudgment::Inconclusive(format!("the bounds of the contract cannot be used: {why}"))
        }
        ParsedMember::Is(bounds) if is_within(number.literal(), bounds) => {
            EvidenceJudgment::Verified(format!("which is within the bounds ({bounds})"))
        }
        ParsedMember::Is(bounds) => {
            EvidenceJudgment::Failed(format!("which is outside the bounds ({bounds})"))
        }
    }
}

fn is_within(literal: &str, bounds: &Bounds) -> bool {
    let holds = |bound: &RangeBound, outside: Ordering| match decimal::compare(literal, &bound.literal) {
        Ordering::Equal => !bound.is_exclusive,
        order => order != outside,
    };
    bounds.least.as_ref().is_none_or(|bound| holds(bound, Ordering::Less))
        && bounds.most.as_ref().is_none_or(|bound| holds(bound, Ordering::Greater))
}

/// Returns the digest of a text, with digits in either case: programs that are not runvault's write both.
fn digest_of(text: &str) -> Option<Digest> {
    Digest::parse_either(&text.to_ascii_lowercase())
}

fn hash(evidence: &Evidence, seen: &ObservedValue) -> EvidenceJudgment {
    let Some(digest) = seen.text().and_then(digest_of) else {
        return EvidenceJudgment::Failed("which is not a digest".to_owned());
    };
    match &evidence.success {
        ParsedMember::Nothing => EvidenceJudgment::Digest(digest),
        ParsedMember::Unreadable(why) => EvidenceJudgment::Inconclusive(format!(
            "the success values of the contract cannot be used: {why}"
        )),
        ParsedMember::Is(values) if values.iter().any(|value| digest_of(value) == Some(digest)) => {
            EvidenceJudgment::Verified("which is the digest that the contract states".to_owned())
        }
        ParsedMember::Is(_) => {
            EvidenceJudgment::Failed("which is not the digest that the contract states".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::ContractTerms;
    use crate::json::reader::{self, Limits};

    fn outcome(evidence: &str, value: &str) -> &'static str {
        let contract = format!(
            r#"{{"io_refs": [], "effects": [{{"name": "e", "target": "t", "evidence": {evidence}}}]}}"#
        );
        let terms = ContractTerms::read(contract.as_bytes()).unwrap();
        let value = reader::read(value.as_bytes(), &Limits::default()).unwrap();
        match judge(terms.effects[0].evidence.as_ref().unwrap(), &ObservedValue::new(&value)) {
            EvidenceJudgment::Verified(_) => "verified",
            EvidenceJudgment::Inconclusive(_) => "inconclusive",
            EvidenceJudgment::Failed(_) => "failed",
            EvidenceJudgment::Digest(_) => "digest",
        }
    }

    #[test]
    fn statuses_are_compared_with_the_documented_lists_without_case() {
        for text in SUCCESS.iter().map(ToString::to_string).chain(["OK".to_owned(), "Succeeded".to_owned()]) {
            assert_eq!(outcome(r#"{"type": "status"}"#, &format!("\"{text}\"")), "verified", "{text}");
        }
        for text in FAILURE.iter().map(ToString::to_string).chain(["FAILED".to_owned(), "Error".to_owned()]) {
            assert_eq!(outcome(r#"{"type": "status"}"#, &format!("\"{text}\"")), "failed", "{text}");
        }
        for (value, expected) in [
            ("true", "verified"),
            ("false", "failed"),
            ("\"running\"", "inconclusive"),
            ("\"set\"", "inconclusive"),
            ("\"not ok\"", "inconclusive"),
            ("\"\"", "inconclusive"),
            ("200", "inconclusive"),
            ("null", "inconclusive"),
            ("[\"ok\"]", "inconclusive"),
            ("{}", "inconclusive"),
        ] {
            assert_eq!(outcome(r#"{"type": "status"}"#, value), expected, "{value}");
        }
    }

    #[test]
    fn stated_values_count_before_the_lists() {
        let success = r#"{"type": "status", "success": ["Set", 200]}"#;
        for (value, expected) in [
            ("\"set\"", "verified"),
            ("200", "verified"),
            ("200.0", "verified"),
            ("\"ok\"", "failed"),
            ("{}", "failed"),
        ] {
            assert_eq!(outcome(success, value), expected, "{value}");
        }
        let failure = r#"{"type": "status", "failure": "DONE"}"#;
        for (value, expected) in [("\"done\"", "failed"), ("\"ok\"", "verified"), ("\"failed\"", "failed")] {
            assert_eq!(outcome(failure, value), expected, "{value}");
        }
        assert_eq!(outcome(r#"{"type": "status", "success": []}"#, "\"ok\""), "inconclusive");
        assert_eq!(outcome(r#"{"type": "status", "failure": {}}"#, "\"ok\""), "inconclusive");
    }

    #[test]
    fn numbers_are_held_to_the_bounds_that_are_stated() {
        let bounds = r#"{"type": "range", "minimum": 0, "exclusiveMaximum": 0.3}"#;
        for (value, expected) in [
            ("0", "verified"),
            ("0.29999999999999999999", "verified"),
            ("0.3", "failed"),
            ("-0.000001", "failed"),
            ("1e3", "failed"),
            ("\"0\"", "failed"),
            ("null", "inconclusive"),
        ] {
            assert_eq!(outcome(bounds, value), expected, "{value}");
        }
        assert_eq!(outcome(r#"{"type": "range"}"#, "5"), "inconclusive");
        assert_eq!(outcome(r#"{"type": "range", "min": "0"}"#, "5"), "inconclusive");
        assert_eq!(outcome(r#"{"type": "range", "min": 6}"#, "5"), "failed");
    }

    #[test]
    fn digests_are_held_to_the_one_that_is_stated() {
        let digest = Digest::from_content(b"x");
        let evidence = format!(r#"{{"type": "hash", "success": "{digest}"}}"#);
        assert_eq!(outcome(&evidence, &format!("\"{}\"", digest.hex())), "verified");
        assert_eq!(outcome(&evidence, &format!("\"{}\"", digest.hex().to_uppercase())), "verified");
        assert_eq!(outcome(&evidence, &format!("\"{}\"", Digest::from_content(b"y"))), "failed");
        assert_eq!(outcome(r#"{"type": "hash"}"#, &format!("\"{digest}\"")), "digest");
        assert_eq!(outcome(r#"{"type": "hash"}"#, "\"set\""), "failed");
        assert_eq!(outcome(r#"{"type": "hash"}"#, "1"), "failed");
    }
}
