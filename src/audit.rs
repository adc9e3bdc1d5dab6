//! Whether what a contract promises can be seen in a run.
//!
//! The contract specification asks of a verifier that evidence which cannot be resolved leaves its effect pending. What
//! counts as resolved is said by the rules AU1 to AU4, which `runvault rules` prints.

use crate::artifact::RunResult;
use crate::canonical::Value;
use crate::canonical::reader::excerpt;
use crate::digest::Digest;
use crate::kinds::contract::{Effect, Evidence};
use crate::verify::{RuleInfo, Severity};

/// What counts as resolved.
pub const RULES: [RuleInfo; 4] = [
    RuleInfo {
        id: "AU1",
        severity: Severity::Error,
        summary: "Evidence of type hash resolves where its path leads to a digest.",
        why: "path is a JSON Pointer into a result of the run: the output of a step or of a trace record; in a pack \
              run.json, runner.json, then evidence.json. The last result in which it leads anywhere decides. A digest \
              there, with or without sha256:, verifies the effect; anything else fails it. Without a path, or where it \
              leads nowhere, the effect is pending verification.",
    },
    RuleInfo {
        id: "AU2",
        severity: Severity::Error,
        summary: "Evidence of type status resolves where its metric is a string or true.",
        why: "metric is the name of a member anywhere in a result of the run; the last one decides. A string or true \
              verifies the effect; false, null, and the strings failed, failure and error fail it, and so does anything \
              else. Without a metric, or where no result has it, the effect is pending verification.",
    },
    RuleInfo {
        id: "AU3",
        severity: Severity::Error,
        summary: "Evidence of type range resolves where its metric is a number.",
        why: "metric is looked for as for AU2. A number verifies the effect; contracts of version 0 state no bounds that it \
              could be held to. Anything else fails it. Without a metric, or where no result has it, the effect is \
              pending verification.",
    },
    RuleInfo {
        id: "AU4",
        severity: Severity::Warning,
        summary: "An effect that is not idempotent gives a nonce or a reason.",
        why: "The specification demands of such effects a deterministic nonce, or a word on why retries are unsafe. Either \
              is a member nonce or reason, a string that is not empty, of the effect or of its idempotency. Effects \
              without are listed; this does not decide whether they are verified.",
    },
];

/// What an audit says of one effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The effect.
    pub effect: Effect,
    /// Whether its evidence resolves.
    pub verdict: Verdict,
    /// Whether it breaks AU4: it can be repeated only by mistake, and says nothing about it.
    pub is_unsafe_to_retry: bool,
}

/// Whether the evidence of an effect resolves in a run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Verified(String),
    /// There is nothing to decide by.
    Pending(String),
    /// It is there, and does not prove the effect.
    Failed(String),
}

/// Looks for the evidence of every effect in the results of a run.
#[must_use]
pub fn audit(effects: Vec<Effect>, results: &[RunResult<'_>]) -> Vec<Finding> {
    let find = |effect: Effect| {
        let verdict = match &effect.evidence {
            Some(evidence) => verdict(evidence, results),
            None => Verdict::Pending("the contract states no evidence".to_owned()),
        };
        let is_unsafe_to_retry =
            effect.idempotency.as_deref() == Some("non-idempotent") && !effect.has_nonce_or_reason;
        Finding { effect, verdict, is_unsafe_to_retry }
    };
    effects.into_iter().map(find).collect()
}

fn verdict(evidence: &Evidence, results: &[RunResult<'_>]) -> Verdict {
    let (name, found) = match (evidence.sort.as_str(), &evidence.path, &evidence.metric) {
        ("hash", Some(path), _) => (path, last(results, |value| at_pointer(value, path))),
        ("status" | "range", _, Some(metric)) => (metric, last(results, |value| last_member(value, metric))),
        ("hash", None, _) => return Verdict::Pending("its evidence has no path".to_owned()),
        _ => return Verdict::Pending("its evidence has no metric".to_owned()),
    };
    let name = excerpt(name);
    let Some((place, value)) = found else {
        return Verdict::Pending(format!("no result of the run has {name}"));
    };
    let shown = match value {
        Value::String(text) => excerpt(text),
        Value::Bool(truth) => truth.to_string(),
        other => other.sort().to_owned(),
    };
    let said = format!("{name} is {shown} at {place}");
    if proves(&evidence.sort, value) { Verdict::Verified(said) } else { Verdict::Failed(said) }
}

fn proves(sort: &str, value: &Value<'_>) -> bool {
    match (sort, value) {
        ("hash", Value::String(text)) => Digest::stated_either(text).is_some(),
        ("status", Value::String(text)) => !["failed", "failure", "error"].contains(&text.as_ref()),
        ("status", Value::Bool(truth)) => *truth,
        ("range", Value::Number(_)) => true,
        _ => false,
    }
}

/// What `find` finds in the last result in which it finds anything, and where that is.
fn last<'r>(
    results: &'r [RunResult<'_>],
    find: impl Fn(&'r Value<'r>) -> Option<&'r Value<'r>>,
) -> Option<(&'r str, &'r Value<'r>)> {
    results.iter().rev().find_map(|result| Some((result.place.as_str(), find(&result.value)?)))
}

fn at_pointer<'v>(value: &'v Value<'v>, pointer: &str) -> Option<&'v Value<'v>> {
    let tokens = pointer.strip_prefix('/')?.split('/');
    tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).try_fold(
        value,
        |value, token| match value {
            Value::Array(elements) => elements.get(token.parse::<usize>().ok()?),
            other => other.get(&token),
        },
    )
}

/// The last member called `name`, at any depth.
fn last_member<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    match value {
        Value::Array(elements) => elements.iter().rev().find_map(|element| last_member(element, name)),
        Value::Object(object) => {
            let inner = || object.iter().filter_map(|(_, member)| last_member(member, name)).last();
            object.get(name).or_else(inner)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::reader::{self, Limits};

    fn results(texts: &[&'static str]) -> Vec<RunResult<'static>> {
        let read = |text: &&'static str| reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let numbered = texts.iter().enumerate();
        numbered
            .map(|(index, text)| RunResult { place: format!("step {index}"), value: read(text) })
            .collect()
    }

    fn of(sort: &str, path: Option<&str>, metric: Option<&str>, texts: &[&'static str]) -> Verdict {
        let evidence = Evidence {
            sort: sort.to_owned(),
            path: path.map(str::to_owned),
            metric: metric.map(str::to_owned),
        };
        verdict(&evidence, &results(texts))
    }

    #[test]
    fn what_resolves_and_what_does_not() {
        let bare = r#"{"state": {"a/b": ["x", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]}}"#;
        let hash = |path, texts: &[&'static str]| of("hash", path, None, texts);
        assert!(
            matches!(hash(Some("/state/a~1b/1"), &["1", bare, "{}"]), Verdict::Verified(said) if said.ends_with("at step 1"))
        );
        assert!(matches!(hash(Some("/state/a~1b/0"), &[bare]), Verdict::Failed(_)));
        assert!(matches!(hash(Some("/state/a~1b/2"), &[bare]), Verdict::Pending(_)));
        assert!(matches!(hash(Some("state"), &[bare]), Verdict::Pending(_)));
        assert!(matches!(hash(None, &[bare]), Verdict::Pending(_)));
        let metric = |sort, texts: &[&'static str]| of(sort, None, Some("m"), texts);
        for (sort, text, verified) in [
            ("status", r#"{"m": "running"}"#, true),
            ("status", r#"[{"x": {"m": true}}]"#, true),
            ("status", r#"{"m": false}"#, false),
            ("status", r#"{"m": "failed"}"#, false),
            ("status", r#"{"m": 1}"#, false),
            ("range", r#"{"m": 1e3}"#, true),
            ("range", r#"{"m": "1"}"#, false),
        ] {
            let verdict = metric(sort, &[text]);
            assert_eq!(matches!(verdict, Verdict::Verified(_)), verified, "{sort} {text}");
            assert_eq!(matches!(verdict, Verdict::Failed(_)), !verified, "{sort} {text}");
        }
        assert!(
            matches!(metric("status", &[r#"{"m": "ok"}"#, r#"{"m": "failed"}"#]), Verdict::Failed(_)),
            "the last decides"
        );
        assert!(matches!(metric("range", &["{}"]), Verdict::Pending(_)));
        assert!(matches!(of("status", Some("/m"), None, &[r#"{"m": "ok"}"#]), Verdict::Pending(_)));
    }
}
