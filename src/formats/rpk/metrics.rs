//! The circumstances of a run: its environment, the times of its steps, tokens, costs, errors and HTTP requests. The
//! format defines few of these members, so that only their known locations are read.

use chrono::{DateTime, Utc};

use super::envelope::{at, step_type};
use super::exchanges::states_error;
use super::texts::{self, BODIES, StepTextRole};
use crate::artifact::attribute::{OptionalSum, TimeSpan, parse_millionths, parse_milliseconds};
use crate::artifact::{AttributeInfo, Draft, MissingOffset, parse_timestamp};
use crate::conversation::reader;
use crate::json::{Object, Value};

pub(super) const PLATFORM: AttributeInfo = AttributeInfo::text("platform", "the platform, with its version");
pub(super) const HTTP_HOST: AttributeInfo =
    AttributeInfo::text("http_host", "the host of the URL of an HTTP request");
pub(super) const HTTP_METHOD: AttributeInfo =
    AttributeInfo::text("http_method", "the method of an HTTP request");
pub(super) const REDACTION_PROFILE: AttributeInfo =
    AttributeInfo::text("redaction_profile", "the profile that a bundle was redacted by");
pub(super) const REDACTION_POLICY: AttributeInfo =
    AttributeInfo::text("redaction_policy", "the version of the policy that a bundle was redacted by");

/// Attributes that are texts, with their locations.
const TEXTS: [(AttributeInfo, &[&str]); 4] = [
    (REDACTION_PROFILE, &["metadata", "redaction_profile"]),
    (REDACTION_POLICY, &["metadata", "redaction_policy_version"]),
    (AttributeInfo::OS, &["payload", "run", "environment_fingerprint", "os"]),
    (PLATFORM, &["payload", "run", "environment_fingerprint", "platform"]),
];

/// Maximum number of indexed runtime versions of a run.
const MAX_RUNTIMES: usize = 64;

/// Members of the metadata of a step that state how long it took, of which the first that is a number is used.
const DURATIONS: [&str; 3] = ["duration_ms", "latency_ms", "wall_time_ms"];

/// The locations of costs in US dollars in a step.
const COSTS: [&[&str]; 3] =
    [&["metadata", "cost_usd"], &["output", "cost_usd"], &["output", "total_cost_usd"]];

/// Members of the body of a response with the numbers of tokens.
const USAGES: [&str; 2] = ["usage", "usageMetadata"];

/// The first status code of HTTP that is an error.
const FIRST_ERROR_STATUS: f64 = 400.0;

pub(super) fn describe(root: &Value<'_>, steps: &[Value<'_>], draft: &mut Draft) {
    for (info, names) in TEXTS {
        if let Some(text) = at(root, names).and_then(Value::as_non_empty_str) {
            draft.attribute(info.name, text);
        }
    }
    let versions = at(root, &["payload", "run", "runtime_versions"]).and_then(Value::as_object);
    for (name, version) in versions.into_iter().flat_map(Object::iter).take(MAX_RUNTIMES) {
        if let Some(version) = version.as_non_empty_str() {
            draft.attribute(AttributeInfo::RUNTIME.name, format!("{name} {version}"));
        }
    }
    let mut sums = Sums::default();
    for step in steps {
        sums.add(step);
        for (method, host) in http_requests(step) {
            draft.attribute(HTTP_HOST.name, host);
            if let Some(method) = method {
                draft.attribute(HTTP_METHOD.name, method);
            }
        }
    }
    sums.describe(draft);
}

/// The sums over the steps of a run.
#[derive(Default)]
struct Sums {
    times: TimeSpan,
    latency: OptionalSum,
    input: OptionalSum,
    output: OptionalSum,
    cost: OptionalSum,
}

impl Sums {
    fn add(&mut self, step: &Value<'_>) {
        self.times.add(time(step));
        let is_answer = step_type(step) == "model.response" && !is_error(step);
        let [input, output] = tokens(step);
        // Embeddings have no output.
        let are_counted = !is_answer || input.or(output).is_some();
        for (sum, number, is_known) in [
            (&mut self.latency, duration(step), !is_answer),
            (&mut self.input, input, are_counted),
            (&mut self.output, output, are_counted),
        ] {
            if is_known { sum.add(number) } else { sum.add_required(number) }
        }
        self.cost.add(COSTS.iter().find_map(|names| at(step, names).and_then(parse_millionths)));
    }

    fn describe(self, draft: &mut Draft) {
        draft.time(AttributeInfo::FIRST_STEP_AT, self.times.first());
        draft.time(AttributeInfo::LAST_STEP_AT, self.times.last());
        draft.number(AttributeInfo::DURATION_MS, self.times.milliseconds());
        draft.number(AttributeInfo::LATENCY_MS, self.latency.sum());
        draft.tokens(self.input.sum(), self.output.sum());
        draft.number(AttributeInfo::COST_USD, self.cost.sum());
    }
}

/// Returns the time of a step. A time without an offset is not a point in time.
pub(super) fn time(step: &Value<'_>) -> Option<DateTime<Utc>> {
    let text = step.get("timestamp").and_then(Value::as_str)?;
    parse_timestamp(text, MissingOffset::Unknown)
}

/// Returns the milliseconds that a step states to have taken.
pub(super) fn duration(step: &Value<'_>) -> Option<i64> {
    let metadata = step.get("metadata")?;
    DURATIONS.into_iter().find_map(|name| metadata.get(name).and_then(parse_milliseconds))
}

/// Returns whether a step is an error, or a response that states an error or a status code of HTTP that is one, or that is
/// marked as an error.
pub(super) fn is_error(step: &Value<'_>) -> bool {
    match step_type(step) {
        "error.event" => true,
        "model.response" | "tool.response" => {
            states_error(step)
                || matches!(at(step, &["output", "is_error"]), Some(Value::Bool(true)))
                || has_error_status(step)
        }
        _ => false,
    }
}

/// Returns whether a step states a status code of HTTP that is an error, so that its body is not an answer.
pub(super) fn has_error_status(step: &Value<'_>) -> bool {
    let status = at(step, &["output", "status_code"]).and_then(Value::as_number);
    status.is_some_and(|status| status.as_f64() >= FIRST_ERROR_STATUS)
}

/// Returns the numbers of input tokens and of output tokens that a step states.
pub(super) fn tokens(step: &Value<'_>) -> [Option<i64>; 2] {
    usage(step).map(reader::tokens).unwrap_or_default()
}

/// Returns the object with the numbers of tokens of a model response.
fn usage<'v>(step: &'v Value<'_>) -> Option<&'v Value<'v>> {
    let of_responses = BODIES.iter().filter(|(name, carries, _)| {
        *carries == StepTextRole::Responses && *name == "model.response" && *name == step_type(step)
    });
    let bodies = of_responses.flat_map(|(_, _, bodies)| *bodies);
    let mut bodies = bodies.filter_map(|pointer| texts::find(step, pointer));
    bodies.find_map(|body| USAGES.into_iter().find_map(|name| body.get(name)).filter(|it| !it.is_null()))
}

/// Returns the methods and hosts of the HTTP requests that a step states.
pub(super) fn http_requests(step: &Value<'_>) -> impl Iterator<Item = (Option<String>, String)> {
    ["input", "metadata"].into_iter().filter_map(|name| {
        let request = step.get(name)?;
        let host = host_of(request.get("url").and_then(Value::as_str)?)?;
        Some((request.get("method").and_then(Value::as_str).and_then(method), host))
    })
}

/// Returns a method of HTTP in uppercase, or `None` if the text is not one.
fn method(text: &str) -> Option<String> {
    const MAX_LENGTH: usize = 20;
    let is_method = !text.is_empty()
        && text.len() <= MAX_LENGTH
        && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    is_method.then(|| text.to_ascii_uppercase())
}

/// Returns the host of a URL in lowercase, without user information and port. Returns `None` if it has no host.
fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let address = authority.rsplit('@').next().unwrap_or_default();
    let host = match address.strip_prefix('[').and_then(|address| address.split_once(']')) {
        Some((address, _)) if address.parse::<std::net::Ipv6Addr>().is_ok() => format!("[{address}]"),
        Some(_) => return None,
        None => address.split(':').next().unwrap_or_default().to_owned(),
    };
    let is_host = !host.is_empty() && !host.chars().any(|it| it.is_whitespace() || it.is_control());
    (is_scheme && is_host).then(|| host.to_lowercase())
}

#[cfg(test)]
pub(super) mod testing {
    use serde_json::{Value as Json, json};

    use crate::artifact::Draft;
    use crate::digest::{CoreHash, Digest};
    use crate::formats::rpk::envelope::steps;
    use crate::json::Value;
    use crate::json::reader::{self, Limits};

    /// Returns the attributes that `describe` adds for a run with these steps.
    pub(crate) fn described(
        run: &Json,
        describe: impl Fn(&Value<'_>, &[Value<'_>], &mut Draft),
    ) -> Vec<String> {
        let text = json!({"payload": {"run": {"steps": run}}}).to_string();
        let root = reader::read(text.as_bytes(), &Limits::default()).unwrap();
        let mut draft = Draft::new(CoreHash(Digest::from_content(b"")));
        describe(&root, steps(&root), &mut draft);
        draft.attributes.iter().map(|attribute| format!("{} {}", attribute.name, attribute.value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    /// Returns the circumstances of a run with these steps.
    fn described(steps: &Json) -> Vec<String> {
        testing::described(steps, describe)
    }

    #[test]
    fn tokens_are_read_where_providers_state_them() {
        let chat = json!({"usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}});
        let anthropic = json!({"usage": {"input_tokens": 10, "output_tokens": 5}});
        let gemini = json!({"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}});
        let apart = json!({"usageMetadata": {"promptTokenCount": 7, "toolUsePromptTokenCount": 3,
            "candidatesTokenCount": 4, "thoughtsTokenCount": 1, "totalTokenCount": 15}});
        let thought = json!({"usageMetadata": {"promptTokenCount": 10, "thoughtsTokenCount": 5}});
        let expected = ["tokens_input 10", "tokens_output 5", "tokens 15"];
        for body in [chat, anthropic, gemini, apart, thought] {
            for output in [body.clone(), json!({"output": body, "error": null})] {
                assert_eq!(described(&json!([{"type": "model.response", "output": output}])), expected);
                assert!(described(&json!([{"type": "output.final", "output": output}])).is_empty());
            }
        }
        let response = |usage: Json| json!({"type": "model.response", "output": {"usage": usage}});
        assert_eq!(described(&json!([response(json!({"input_tokens": 3}))])), ["tokens_input 3"]);
        assert!(described(&json!([response(json!({"input_tokens": "3", "output_tokens": -1}))])).is_empty());
    }

    #[test]
    fn a_sum_of_which_a_response_states_nothing_is_not_shown() {
        let response = |output: Json, latency: Json| json!({"type": "model.response", "output": output, "metadata": {"latency_ms": latency}});
        let counted = response(json!({"usage": {"input_tokens": 3, "output_tokens": 1}}), json!(4));
        let embedding = response(json!({"usage": {"prompt_tokens": 2}}), json!(5));
        let all = described(&json!([counted, embedding]));
        assert_eq!(all, ["latency_ms 9", "tokens_input 5", "tokens_output 1", "tokens 6"]);
        let failed = response(json!({"error": "no"}), json!(null));
        let expected = ["latency_ms 4", "tokens_input 3", "tokens_output 1", "tokens 4"];
        assert_eq!(described(&json!([counted, failed])), expected);
        for other in [json!({"text": "a"}), json!({"usage": null}), json!({"usage": [1]})] {
            assert_eq!(described(&json!([counted, response(other, json!(null))])), [""; 0]);
        }
    }

    #[test]
    fn steps_state_times_durations_and_costs() {
        let steps = json!([
            {"timestamp": "2026-11-20T10:00:01+00:00", "metadata": {"latency_ms": 4, "wall_time_ms": 9}},
            {"timestamp": "2026-11-20T12:00:00.250+02:00", "metadata": {"duration_ms": 2.5}},
            {"timestamp": "2026-11-21T10:00:00", "metadata": {"cost_usd": 0.5, "duration_ms": "long"}},
            {"timestamp": 5, "metadata": null, "output": {"total_cost_usd": 0.000_001}},
        ]);
        assert_eq!(
            described(&steps),
            [
                "first_step_at 2026-11-20T10:00:00.250Z",
                "last_step_at 2026-11-20T10:00:01.000Z",
                "duration_ms 750",
                "latency_ms 7",
                "cost_usd 0.500001",
            ]
        );
    }

    #[test]
    fn hosts_are_those_of_absolute_urls() {
        for (url, host) in [
            ("https://API.example.com/v1?x=//y", Some("api.example.com")),
            ("http://user:pass@host:8080", Some("host")),
            ("https://evil.example\\@good.example/", Some("evil.example")),
            ("http://[::1]:80/", Some("[::1]")),
            ("http://[REDACTED]/", None),
            ("file:///etc/hosts", None),
            ("/v1/chat", None),
            ("[REDACTED]", None),
            ("https://a b/", None),
            ("x y://a/", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
        let step = json!([{"type": "tool.request", "input": {"method": "get", "url": "https://a.b/"},
            "metadata": {"method": "GET", "url": "https://a.b/"}}]);
        let expected = ["http_host a.b", "http_method GET", "http_host a.b", "http_method GET"];
        assert_eq!(described(&step), expected);
        // Arguments of tools have such names too.
        let tool = json!([{"type": "tool.request", "input": {"method": "fast", "tool": "sort"}}]);
        assert_eq!(described(&tool), [""; 0]);
    }
}
