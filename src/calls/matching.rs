//! Rules of the comparison of requests: parts of a prompt that are left out or replaced.

use std::borrow::Cow;

use regex::Regex;

use super::directories::RunDirectories;
use super::normalize;
use super::redaction::{Redaction, Unredactable};
use super::target::percent_decoded;
use crate::conversation::providers::Endpoint;
use crate::digest::Digest;
use crate::json::canonical::rfc8785;
use crate::json::members::{integer, object, text};
use crate::json::pointer::PointerPattern;
use crate::json::reader::excerpt;
use crate::json::{Object, Value, compact};

/// The reason that a rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// A regular expression cannot be compiled.
    #[error("the regular expression {pattern} is not valid: {reason}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// Why not.
        reason: String,
    },
    /// A location is neither the name of a member nor a JSON Pointer.
    #[error(
        "{0} is neither the name of a member nor a JSON Pointer, in which * matches every name and index"
    )]
    Location(String),
    /// A replacement has neither of its forms.
    #[error(
        "{0} is not a replacement: [POINTER=]s/PATTERN/TEXT/, or [POINTER=]NAME with the name timestamp, date or uuid"
    )]
    Replacement(String),
}

/// The member of stated rules with the directories that are compared by their names.
pub(super) const DIRECTORIES: &str = "directories";

/// The rules by which requests are compared and stored.
#[derive(Clone, Debug, Default)]
pub struct MatchingRules {
    ignored: Vec<PointerPattern>,
    replaced: Vec<Replacement>,
    redacted: Redaction,
    sorted: Vec<SortedElements>,
    directories: RunDirectories,
    is_loose: bool,
}

/// The elements of an array whose order is not compared: those that have a member, by which they are sorted.
#[derive(Clone, Debug)]
struct SortedElements {
    location: PointerPattern,
    member: String,
}

/// A replacement of text in the strings at a location.
#[derive(Clone, Debug)]
struct Replacement {
    location: Option<PointerPattern>,
    pattern: Regex,
    with: String,
}

impl MatchingRules {
    /// Leaves a member out of prompts: a member of the request by its name, or any by a JSON Pointer in which `*` matches
    /// every name and index.
    ///
    /// # Errors
    /// Returns an error if `location` is neither.
    pub fn ignore(&mut self, location: &str) -> Result<(), InvalidRule> {
        self.ignored.push(pattern_of(location)?);
        Ok(())
    }

    /// Replaces what matches the regular expression `pattern` in prompts by `with`: in the strings at a location and
    /// inside it, or in all strings. The request is stored unchanged.
    ///
    /// # Errors
    /// Returns an error if the location or the expression is not valid.
    pub fn replace(&mut self, location: Option<&str>, pattern: &str, with: &str) -> Result<(), InvalidRule> {
        let location = location.map(pattern_of).transpose()?;
        self.replaced.push(Replacement { location, pattern: compiled(pattern)?, with: with.to_owned() });
        Ok(())
    }

    /// Replaces text in prompts by a rule that is written as `[POINTER=]s/PATTERN/TEXT/`, or as `[POINTER=]NAME`, in which
    /// `timestamp`, `date` and `uuid` are names of known patterns.
    ///
    /// # Errors
    /// Returns an error if it has another form, or the location or the expression is not valid.
    pub fn normalize(&mut self, rule: &str) -> Result<(), InvalidRule> {
        let (location, pattern, with) =
            normalize::parse(rule).ok_or_else(|| InvalidRule::Replacement(excerpt(rule)))?;
        self.replace(location.as_deref(), &pattern, &with)
    }

    /// Replaces what matches the regular expression `pattern` by `[REDACTED]` before anything is compared or stored, in
    /// requests and in answers.
    ///
    /// # Errors
    /// Returns an error if the expression is not valid, or is empty: such a one redacts nothing.
    pub fn redact(&mut self, pattern: &str) -> Result<(), InvalidRule> {
        if pattern.is_empty() {
            return Err(InvalidRule::Pattern { pattern: excerpt(pattern), reason: "it is empty".to_owned() });
        }
        self.redacted.add(compiled(pattern)?);
        Ok(())
    }

    /// Replaces a text by `[REDACTED]`, as [`redact`](Self::redact) does. An empty text is in no request.
    pub fn redact_text(&mut self, text: &str) {
        if let Ok(pattern) = Regex::new(&regex::escape(text))
            && !text.is_empty()
        {
            self.redacted.add(pattern);
        }
    }

    /// Compares the elements of the arrays at `location` that have a member `member` in the order of its values, because
    /// clients send them in any.
    ///
    /// # Errors
    /// Returns an error if `location` is neither the name of a member nor a JSON Pointer.
    pub fn sort(&mut self, location: &str, member: &str) -> Result<(), InvalidRule> {
        self.sorted.push(SortedElements { location: pattern_of(location)?, member: member.to_owned() });
        Ok(())
    }

    /// Compares requests with `name` in the place of the path of a directory, which a run pack states. What was recorded
    /// with another directory of that name is replayed with the path of this one. A root has no name.
    pub fn name_directory(&mut self, name: &str, path: &str) {
        self.directories.add(name, path);
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { ignored, replaced, redacted, sorted, directories, is_loose } = self;
        let are_lists_empty = ignored.is_empty() && replaced.is_empty() && sorted.is_empty();
        are_lists_empty && redacted.is_empty() && directories.is_empty() && !is_loose
    }

    /// Returns the directories that are compared by their names.
    pub(crate) fn directories(&self) -> &RunDirectories {
        &self.directories
    }

    /// Returns the same rules for requests that were made with these directories.
    pub(crate) fn with_directories(&self, directories: &RunDirectories) -> Self {
        Self { directories: directories.clone(), ..self.clone() }
    }

    /// Returns the same rules without a comparison of the results of tools, of dates and of identifiers.
    pub(crate) fn loosened(&self) -> Self {
        let mut loosened = Self { is_loose: true, ..self.clone() };
        for name in ["timestamp", "date", "uuid"] {
            // Known names are valid rules.
            let _ = loosened.normalize(name);
        }
        loosened
    }

    /// Returns `text` as it may be stored.
    pub(crate) fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redacted.text(text)
    }

    /// Returns a request as it may be stored: strings, names and numbers without what must be redacted.
    pub(crate) fn redacted_value<'v, 'a>(&self, value: &'v Value<'a>) -> Cow<'v, Value<'a>> {
        if self.redacted.is_empty() { Cow::Borrowed(value) } else { Cow::Owned(self.redacted.value(value)) }
    }

    /// Returns a request as it may be stored, as [`redacted_value`](Self::redacted_value) does; itself if nothing is redacted.
    pub(crate) fn redacted_owned(&self, value: Value<'static>) -> Value<'static> {
        if self.redacted.is_empty() { value } else { self.redacted.value(&value) }
    }

    /// Returns the path of a request as it may be stored.
    pub(crate) fn redacted_path(&self, path: &str) -> String {
        self.redacted.path(path)
    }

    /// Returns the body of a response as it may be stored: what must be redacted is neither in its text, nor in a string
    /// that it contains, nor split over the parts of a stream.
    ///
    /// # Errors
    /// Returns an error if that cannot be achieved, because the body cannot be decoded.
    pub(crate) fn redacted_body<'b>(&self, body: &'b str) -> Result<Cow<'b, str>, Unredactable> {
        self.redacted.body(body, false)
    }

    /// Returns what arrived of a response, as it may be stored: as [`redacted_body`](Self::redacted_body), and also without
    /// the beginning of what must be redacted at its end.
    pub(crate) fn redacted_beginning(&self, beginning: &str) -> String {
        self.redacted.body(beginning, true).map_or_else(|_| String::new(), Cow::into_owned)
    }

    /// Returns the prompt of a request, which is what requests are compared by: the canonical form of its body without the
    /// members that the rules or the API leave out, in which integers keep their digits. Returns `None` if it has none,
    /// because a number overflows.
    pub(crate) fn prompt(&self, endpoint: &Endpoint, path: &str, request: &Value<'_>) -> Option<String> {
        let compared = self.compared_request(endpoint, path, request);
        String::from_utf8(rfc8785::to_vec_with_distinct_integers(&compared).ok()?).ok()
    }

    /// Returns the digest of the prompt of a request, which can have as many bytes as the request.
    pub(crate) fn prompt_digest(
        &self,
        endpoint: &Endpoint,
        path: &str,
        request: &Value<'_>,
    ) -> Option<Digest> {
        rfc8785::digest_with_distinct_integers(&self.compared_request(endpoint, path, request)).ok()
    }

    fn compared_request<'v>(&self, endpoint: &Endpoint, path: &str, request: &'v Value<'_>) -> Value<'v> {
        let mut members = Vec::new();
        if let Some(model) = endpoint.model(path) {
            members.push((Cow::Borrowed("model"), text(percent_decoded(model))));
        }
        for (name, member) in request.as_object().map(Object::iter).into_iter().flatten() {
            let is_from_path = name == "model" && !members.is_empty() && endpoint.has_model_in_path;
            if is_from_path {
                continue;
            }
            if let Some(member) = self.compared(endpoint, member, &mut vec![name.to_owned()]) {
                members.push((Cow::Borrowed(name), member));
            }
        }
        Value::Object(Object::from_members(members))
    }

    /// Returns a value as it is compared, or `None` if it is ignored.
    fn compared<'v>(
        &self,
        endpoint: &Endpoint,
        value: &'v Value<'_>,
        at: &mut Vec<String>,
    ) -> Option<Value<'v>> {
        if endpoint.leaves_out(at) || self.ignored.iter().any(|location| location.is_at(at)) {
            return None;
        }
        let mut inside = |name: String, value: &'v Value<'_>| {
            at.push(name);
            let compared = self.compared(endpoint, value, at);
            at.pop();
            compared
        };
        Some(match value {
            Value::Array(elements) => {
                let compared = elements.iter().enumerate();
                let mut compared: Vec<Value<'v>> =
                    compared.filter_map(|(index, element)| inside(index.to_string(), element)).collect();
                self.sort_elements(&mut compared, at);
                Value::Array(compared)
            }
            Value::Object(members) => {
                let compared = members.iter().filter_map(|(name, member)| {
                    at.push(name.to_owned());
                    let is_left_out = self.is_loose && normalize::leaves_out(members, at);
                    let compared = if is_left_out { None } else { self.compared(endpoint, member, at) };
                    at.pop();
                    Some((Cow::Borrowed(name), compared?))
                });
                Value::Object(Object::from_members(compared.collect()))
            }
            Value::String(text) => Value::String(self.compared_text(text, at)),
            other => other.to_owned_value(),
        })
    }

    /// Puts the elements of an array whose order is not compared in the order of a member, in the places that they have
    /// together.
    fn sort_elements(&self, elements: &mut [Value<'_>], at: &[String]) {
        for SortedElements { member, .. } in self.sorted.iter().filter(|rule| rule.location.is_at(at)) {
            let key = |element: &Value<'_>| element.get(member).map(compact::text);
            let mut sorted: Vec<(String, Value<'_>)> = elements
                .iter_mut()
                .filter_map(|element| Some((key(element)?, std::mem::replace(element, Value::Null))))
                .collect();
            sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
            let places = elements.iter_mut().filter(|element| matches!(element, Value::Null));
            places.zip(sorted).for_each(|(place, (_, element))| *place = element);
        }
    }

    fn compared_text<'v>(&self, text: &'v str, at: &[String]) -> Cow<'v, str> {
        if self.replaced.is_empty() && self.directories.is_empty() {
            return Cow::Borrowed(text);
        }
        let applies =
            |rule: &&Replacement| rule.location.as_ref().is_none_or(|location| location.contains(at));
        let named = self.directories.named(text);
        let replaced = self
            .replaced
            .iter()
            .filter(applies)
            .fold(named, |text, rule| rule.pattern.replace_all(&text, rule.with.as_str()).into_owned());
        Cow::Owned(if self.is_loose { normalize::without_ids(&replaced).into_owned() } else { replaced })
    }

    /// Returns the rules in the form in which run packs state them. Redacted patterns are only counted: they may contain
    /// what they protect.
    pub(crate) fn to_json(&self) -> Value<'_> {
        let ignored = self.ignored.iter().map(|location| text(location.as_str())).collect();
        let replaced = self.replaced.iter().map(|rule| {
            let location = rule.location.as_ref().map_or("", PointerPattern::as_str);
            object([
                ("at", text(location)),
                ("pattern", text(rule.pattern.as_str())),
                ("with", text(rule.with.as_str())),
            ])
        });
        let sorted = self
            .sorted
            .iter()
            .map(|rule| object([("at", text(rule.location.as_str())), ("by", text(rule.member.as_str()))]));
        let directories = (!self.directories.is_empty()).then(|| (DIRECTORIES, self.directories.to_json()));
        let sorted = (!self.sorted.is_empty()).then(|| ("sorted", Value::Array(sorted.collect())));
        let always = [
            ("ignored", Value::Array(ignored)),
            ("redacted", integer(self.redacted.count() as u64)),
            ("replaced", Value::Array(replaced.collect())),
        ];
        object(directories.into_iter().chain(always).chain(sorted))
    }
}

fn pattern_of(location: &str) -> Result<PointerPattern, InvalidRule> {
    PointerPattern::parse(location).ok_or_else(|| InvalidRule::Location(excerpt(location)))
}

fn compiled(pattern: &str) -> Result<Regex, InvalidRule> {
    Regex::new(pattern).map_err(|error| {
        let reason = error.to_string();
        let last = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
        InvalidRule::Pattern { pattern: excerpt(pattern), reason: last.to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::providers::endpoint;
    use crate::json::reader::{self, Limits};

    fn prompt(rules: &MatchingRules, provider: &str, path: &str, request: &str) -> String {
        let request = reader::read(request.as_bytes(), &Limits::default()).unwrap();
        let prompt = rules.prompt(endpoint(provider, path), path, &request).unwrap();
        let digest = rules.prompt_digest(endpoint(provider, path), path, &request);
        assert_eq!(digest, Some(Digest::from_content(prompt.as_bytes())));
        prompt
    }

    #[test]
    fn transport_members_are_not_part_of_a_prompt() {
        let rules = MatchingRules::default();
        let chat =
            r#"{"stream":true, "model":"m","user":"u","messages":[{"role":"user","content":"hi"}], "n":1.0}"#;
        assert_eq!(
            prompt(&rules, "openai", "/v1/chat/completions", chat),
            r#"{"messages":[{"content":"hi","role":"user"}],"model":"m","n":1}"#
        );
        assert_eq!(prompt(&rules, "other", "/x", r#"{"stream":true}"#), r#"{"stream":true}"#);
    }

    #[test]
    fn different_integers_make_different_prompts() {
        let rules = MatchingRules::default();
        let of = |number: &str| prompt(&rules, "other", "/x", &format!("{{\"seed\":{number}}}"));
        for number in ["9007199254740993", "-9007199254740993", "18446744073709551617"] {
            assert_eq!(of(number), format!("{{\"seed\":{number}}}"));
        }
        assert_ne!(of("1152921504606846976"), of("1152921504606846977"));
        // Up to 2^53, numbers have the form of RFC 8785.
        for number in ["9007199254740992", "9007199254740992.0", "9.007199254740992e15"] {
            assert_eq!(of(number), "{\"seed\":9007199254740992}");
        }
        assert_eq!((of("-0"), of("1e21")), ("{\"seed\":0}".to_owned(), "{\"seed\":1e+21}".to_owned()));
    }

    #[test]
    fn the_model_of_a_path_is_part_of_the_prompt() {
        let rules = MatchingRules::default();
        let path = "/v1beta/models/gemini-x:streamGenerateContent";
        assert_eq!(
            prompt(&rules, "gemini", path, r#"{"contents":[]}"#),
            r#"{"contents":[],"model":"gemini-x"}"#
        );
        assert_eq!(prompt(&rules, "gemini", path, r#"{"model":"other"}"#), r#"{"model":"gemini-x"}"#);
    }

    #[test]
    fn ids_of_function_calls_are_not_part_of_a_prompt_of_gemini() {
        let rules = MatchingRules::default();
        let path = "/v1beta/models/g:generateContent";
        let call = r#"{"id":"a","contents":[{"parts":[{"functionCall":{"id":"x1","name":"f","args":{"id":"kept"}}}]},{"parts":[{"functionResponse":{"id":"x1","name":"f"}}]}]}"#;
        let expected = r#"{"contents":[{"parts":[{"functionCall":{"args":{"id":"kept"},"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f"}}]}],"id":"a","model":"g"}"#;
        assert_eq!(prompt(&rules, "gemini", path, call), expected);
        let snake = |text: &str| {
            text.replace("functionCall", "function_call").replace("functionResponse", "function_response")
        };
        assert_eq!(prompt(&rules, "gemini", path, &snake(call)), snake(expected));
        assert_eq!(prompt(&rules, "vertex", path, &snake(call)), snake(expected));
        assert!(prompt(&rules, "openai", "/chat/completions", call).contains("x1"));
    }

    #[test]
    fn metadata_of_codex_is_not_part_of_a_prompt() {
        let rules = MatchingRules::default();
        let request = r#"{"client_metadata":{"turn_id":"x1"},"input":[{"id":"a","content":"hi",
            "internal_chat_message_metadata_passthrough":{"turn_id":"x1"}}],"tools":[{"client_metadata":1}]}"#;
        let expected = r#"{"input":[{"content":"hi","id":"a"}],"tools":[{"client_metadata":1}]}"#;
        assert_eq!(prompt(&rules, "openai", "/v1/responses", request), expected);
    }

    #[test]
    fn members_are_ignored_and_texts_replaced() {
        let mut rules = MatchingRules::default();
        rules.ignore("temperature").unwrap();
        rules.ignore("/messages/*/name").unwrap();
        rules.replace(Some("/messages"), r"\d{4}-\d\d-\d\d", "DATE").unwrap();
        let request =
            r#"{"temperature":0,"model":"m 2024-01-02","messages":[{"name":"n","content":"on 2024-01-02"}]}"#;
        assert_eq!(
            prompt(&rules, "openai", "/chat/completions", request),
            r#"{"messages":[{"content":"on DATE"}],"model":"m 2024-01-02"}"#
        );
        for wrong in ["", "a/b", "/a~2", "/a~"] {
            assert!(rules.ignore(wrong).is_err());
        }
        rules.ignore("/~0~1").unwrap();
        assert!(rules.replace(None, "(", "").is_err() && rules.sort("/a~", "id").is_err());
        assert!(rules.redact("").is_err());
    }

    #[test]
    fn the_order_of_results_can_be_left_out() {
        let mut rules = MatchingRules::default();
        rules.sort("/messages/*/content", "tool_use_id").unwrap();
        let request = |content: &str| format!(r#"{{"messages":[{{"content":[{content}]}}]}}"#);
        let compared = |content: &str| prompt(&rules, "anthropic", "/v1/messages", &request(content));
        let (a, b, text) = (r#"{"tool_use_id":"a"}"#, r#"{"tool_use_id":"b"}"#, r#"{"text":"t"}"#);
        assert_eq!(compared(&format!("{b},{text},{a}")), request(&format!("{a},{text},{b}")));
        assert_ne!(compared(&format!("{b},{text},{a}")), compared(&format!("{a},{b},{text}")));
    }

    #[test]
    fn a_loose_comparison_leaves_out_results_dates_and_ids() {
        let strict = MatchingRules::default();
        let loose = strict.loosened();
        for (provider, path, request) in [
            (
                "anthropic",
                "/v1/messages",
                r#"{"messages":[{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"DIFFERENT"}]}],"system":"Today is Nov 26 2026."}"#,
            ),
            (
                "openai",
                "/chat/completions",
                r#"{"messages":[{"role":"tool","content":"DIFFERENT","tool_call_id":"a"}]}"#,
            ),
            (
                "openai",
                "/responses",
                r#"{"input":[{"type":"custom_tool_call_output","call_id":"b","output":"DIFFERENT"}]}"#,
            ),
            (
                "gemini",
                "/models/g:generateContent",
                r#"{"contents":[{"parts":[{"functionResponse":{"name":"f","response":{"output":"DIFFERENT"}}}]}]}"#,
            ),
        ] {
            let other = request
                .replace("DIFFERENT", "other")
                .replace("Nov 26", "Nov 27")
                .replace("toolu_1", "toolu_2");
            let same =
                |rules| prompt(rules, provider, path, request) == prompt(rules, provider, path, &other);
            assert!(same(&loose) && !same(&strict), "{request}");
        }
        let asked = |text: &str| format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let of = |text: &str| prompt(&loose, "openai", "/chat/completions", &asked(text));
        assert_ne!(of("delete step_2"), of("delete step_3"));
    }
}
