//! The description of a provider of models.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::chat::Chat;
use super::decoding::{AnswerReader, MessageForm, StreamProgress};
use crate::json::members::word;
use crate::json::{Object, Value};

/// A provider of models.
#[derive(Debug)]
pub struct Provider {
    /// The first segment of the path of requests to it.
    pub name: &'static str,
    /// The URL to which its requests are forwarded, without the path that they have in the API; empty if its host depends on
    /// a region or a resource, or if they are only read from the files of other programs.
    pub url: &'static str,
    /// The version of the API, with which the paths of its requests begin; empty if there is none.
    pub version: &'static str,
    /// The environment variables from which its clients read their base URL, with the path that it has after the name of
    /// the provider.
    pub base_urls: &'static [(&'static str, &'static str)],
    /// The environment variables in which its clients expect a key.
    pub keys: &'static [&'static str],
    /// The requests that can be recorded.
    pub endpoints: &'static [Endpoint],
    /// The names by which files of other programs call it.
    pub(crate) aliases: &'static [&'static str],
    /// Parts of the names of its hosts, beside that of its URL.
    pub(crate) hosts: &'static [&'static str],
    /// Whether all requests to these hosts are to models.
    pub(crate) has_only_models: bool,
    /// Parts of the paths of its requests that paths of no other provider have.
    pub(crate) path_parts: &'static [&'static str],
    /// The ends of the paths of other requests to models.
    pub(crate) paths: &'static [&'static str],
    /// The members of requests with one of these paths, which are of this provider at any host if they have a model and no
    /// other members; empty if the host says whose they are.
    pub(crate) members: &'static [&'static str],
    /// Returns the path of a request that has the form of the API, by its body and that of its response.
    pub(crate) path_of_bodies: fn(&Value<'_>, Option<&Value<'_>>) -> Option<&'static str>,
    pub(crate) names: MemberRoles,
    pub(crate) answers: AnswerForm,
    pub(crate) messages: MessageForm,
    /// How a conversation that a file states in its own form is written; `None` if it has the form of `OpenAI`.
    pub(crate) chat: Option<ChatForm>,
    pub(crate) metadata: MetadataForm,
}

/// A request of an API that can be recorded: a POST of a JSON object.
#[derive(Debug)]
pub struct Endpoint {
    /// Its name.
    pub name: &'static str,
    /// The end of its path.
    pub path: &'static str,
    /// The members of the body that are not part of the prompt: they say how the answer is sent or accounted for.
    pub transport: &'static [&'static str],
    /// The members inside the body that are not part of the prompt, as paths in which `*` is any index.
    pub transport_inside: &'static [&'static [&'static str]],
    /// Whether the path can contain the model, between the last slash and the end.
    pub has_model_in_path: bool,
    /// The member of the answer with the number of tokens, if that is all that is asked for.
    pub count: Option<&'static str>,
}

/// Paths of names and indexes to members.
type MemberPaths = &'static [&'static [&'static str]];

/// The names of members, by what their strings are. Because many servers have the API of another provider, a name has
/// the same meaning in all bodies.
#[derive(Debug)]
pub(crate) struct MemberRoles {
    /// What a model is asked, in requests.
    pub(crate) conversation: &'static [&'static str],
    /// The messages of a conversation: their texts continue each other although their names differ.
    pub(crate) messages: &'static [&'static str],
    /// Members that all events of a stream repeat, or that name something. Their values are not parts of a longer text.
    pub(crate) repeated: &'static [&'static str],
    /// Descriptions of tools and answers. Their strings are not parts of a conversation.
    pub(crate) descriptions: &'static [&'static str],
    /// The probabilities of tokens, which spell the text of an answer again.
    pub(crate) probabilities: &'static [&'static str],
    /// The lists of the answers to a request, each of which is a conversation of its own.
    pub(crate) alternatives: &'static [&'static str],
    /// Why an answer ended, and what is stated there if it was cut off.
    pub(crate) end_reasons: &'static [&'static str],
    pub(crate) cut_off: &'static [&'static str],
    /// Members of a conversation in which everything is what a tool is called with, or returned.
    pub(crate) tool_values: &'static [&'static str],
    /// Members of answers with values that differ in every answer, and that later requests repeat.
    pub(crate) generated: &'static [&'static str],
}

/// Where the answers of an API state their content.
#[derive(Debug)]
pub(crate) struct AnswerForm {
    /// Reads a document, an event or a body in one piece, that no path describes. Returns false if it is not of the API.
    pub(crate) read: fn(&mut AnswerReader, &Value<'_>) -> bool,
    /// The text of a body: a string, or a list of parts.
    pub(crate) texts: MemberPaths,
    /// A part of the text, in an event.
    pub(crate) deltas: MemberPaths,
    /// The numbers of tokens.
    pub(crate) usages: MemberPaths,
    /// Members with a number of tokens by themselves, and its name.
    pub(crate) counts: &'static [(&'static str, &'static str)],
    /// When the answer was made.
    pub(crate) created: MemberPaths,
    /// How the types of the events of streams begin, and those of the events that end one.
    pub(crate) event_types: &'static [&'static str],
    pub(crate) last_events: &'static [&'static str],
    /// Follows a stream whose events have no types. Returns false if the event is not of the API.
    pub(crate) follow: fn(&mut StreamProgress, &Value<'_>) -> bool,
}

/// How a conversation is written as a request and its response. What has no place in them is added to a list.
#[derive(Debug)]
pub(crate) struct ChatForm {
    /// Returns the path of the request.
    pub(crate) path: fn(&Chat) -> String,
    pub(crate) request: fn(&Chat, &mut Vec<String>) -> Value<'static>,
    pub(crate) response: fn(&Chat, &mut Vec<String>) -> ChatResponse,
}

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ChatResponse {
    Whole(Value<'static>),
    /// The events of a stream.
    Stream(String),
    /// There is no answer, and the API has no response without one.
    Missing,
}

/// The responses that a gateway makes itself for clients of a provider.
#[derive(Debug)]
pub(crate) struct MetadataForm {
    /// Returns a model of a provider, with the members that are known.
    pub(crate) model: fn(provider: &str, name: &str) -> Json,
    /// Returns the list of models with these names.
    pub(crate) models: fn(Vec<Json>, &BTreeSet<String>) -> Json,
    /// Adds the members to an error with a status without which some clients do not show its message.
    pub(crate) complete_error: fn(&mut Json, u16),
}

impl Provider {
    /// A provider of which nothing is known.
    pub(super) const UNKNOWN: Self = Self {
        name: "",
        url: "",
        version: "",
        base_urls: &[],
        keys: &[],
        endpoints: &[],
        aliases: &[],
        hosts: &[],
        has_only_models: false,
        path_parts: &[],
        paths: &[],
        members: &[],
        path_of_bodies: |_, _| None,
        names: MemberRoles::NONE,
        answers: AnswerForm::NONE,
        messages: MessageForm::NONE,
        chat: None,
        metadata: MetadataForm::OPENAI,
    };

    /// Returns whether a host is one of its own, or a path one that only it has.
    pub(crate) fn is_at(&self, host: &str, path: &str) -> bool {
        self.hosts.iter().any(|part| host.contains(part))
            || self.path_parts.iter().any(|part| path.contains(part))
    }

    /// Returns whether a path is that of another request to a model, at a host that may be of another provider.
    pub(crate) fn has_other_path(&self, path: &str, body: &Value<'_>) -> bool {
        let stated = || body.as_object().into_iter().flat_map(Object::iter).map(|(name, _)| name);
        let is_own = || word(body, "model").is_some() && stated().all(|name| self.members.contains(&name));
        self.paths.iter().any(|end| path.ends_with(end)) && (self.members.is_empty() || is_own())
    }

    /// Returns the request with this path.
    pub(crate) fn endpoint(&self, path: &str) -> Option<&'static Endpoint> {
        self.endpoints.iter().find(|endpoint| path.ends_with(endpoint.path))
    }

    /// Returns whether paths of its requests begin with a segment, after the version.
    pub(crate) fn begins_with(&self, segment: &str) -> bool {
        let first = |endpoint: &Endpoint| endpoint.path.trim_start_matches('/').split('/').next();
        segment == MODELS || self.endpoints.iter().any(|endpoint| first(endpoint) == Some(segment))
    }
}

impl MemberRoles {
    pub(super) const NONE: Self = Self {
        conversation: &[],
        messages: &[],
        repeated: &[],
        descriptions: &[],
        probabilities: &[],
        alternatives: &[],
        end_reasons: &[],
        cut_off: &[],
        tool_values: &[],
        generated: &[],
    };
}

impl AnswerForm {
    pub(super) const NONE: Self = Self {
        read: |_, _| false,
        texts: &[],
        deltas: &[],
        usages: &[],
        counts: &[],
        created: &[],
        event_types: &[],
        last_events: &[],
        follow: |_, _| false,
    };

    /// Returns whether an event of this type is of a stream of the API.
    pub(crate) fn has_event(&self, event_type: &str) -> bool {
        self.event_types.iter().any(|start| event_type.starts_with(start))
    }

    /// Returns whether an event of this type ends a stream of the API.
    pub(crate) fn is_last_event(&self, event_type: &str) -> bool {
        self.last_events.contains(&event_type)
    }
}

impl MetadataForm {
    /// That of `OpenAI`, which most other servers have.
    pub(super) const OPENAI: Self = Self {
        model: |provider, name| json!({"id": name, "object": "model", "created": 0, "owned_by": provider}),
        models: |all, _| json!({"object": "list", "data": all}),
        complete_error: |_, _| {},
    };
}

/// The segment of paths with the models of a provider, and before the model in paths of APIs.
pub(crate) const MODELS: &str = "models";

/// The segments of paths before the name of what answers: a model, or a server that has one.
const COLLECTIONS: [&str; 6] = ["deployments", "endpoints", "engines", "model", MODELS, "tunedModels"];

fn is_collection(segment: &str) -> bool {
    COLLECTIONS.contains(&segment)
}

/// The part of a path that requests are compared by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathIdentity {
    /// All of the path if the API is not known; otherwise the names of what answers, each after its collection.
    pub(crate) resources: Vec<String>,
    /// The method after the last colon of the path, if paths of the API have one.
    pub(crate) method: Option<String>,
}

impl Endpoint {
    /// Any request that is a POST of a JSON object, of a provider that is not known. All of its body is the prompt.
    pub(crate) const ANY: Self = Self::new("json", "", &[]);

    pub(super) const fn new(
        name: &'static str,
        path: &'static str,
        transport: &'static [&'static str],
    ) -> Self {
        Self { name, path, transport, transport_inside: &[], has_model_in_path: false, count: None }
    }

    /// Returns a request whose path contains the model.
    pub(super) const fn of_model(
        name: &'static str,
        path: &'static str,
        transport: &'static [&'static str],
    ) -> Self {
        Self { has_model_in_path: true, ..Self::new(name, path, transport) }
    }

    /// Returns whether its path ends with a method after a colon.
    fn has_method(&self) -> bool {
        self.path.starts_with(':')
    }

    /// Returns whether the member at this path of names and indexes is not part of the prompt.
    pub(crate) fn leaves_out(&self, at: &[String]) -> bool {
        let is_at = |path: &&[&str]| {
            path.len() == at.len() && path.iter().zip(at).all(|(token, name)| *token == "*" || token == name)
        };
        matches!(at, [name] if self.transport.contains(&name.as_str()))
            || self.transport_inside.iter().any(is_at)
    }

    /// Returns the model that a path names.
    pub(crate) fn model<'p>(&self, path: &'p str) -> Option<&'p str> {
        let path = path.strip_suffix(self.path).filter(|_| self.has_model_in_path)?;
        let (before, model) = path.rsplit_once('/').unwrap_or(("", path));
        let is_model = self.has_method() || before.rsplit('/').next().is_some_and(is_collection);
        (is_model && !model.is_empty()).then_some(model)
    }

    /// Returns whether requests are compared by their whole path and their query, because the API is not known.
    pub(crate) fn compares_urls(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns the part of a path that requests are compared by, in addition to the prompt. Clients differ in the rest of
    /// the path, such as the version.
    pub(crate) fn path_identity(&self, path: &str) -> PathIdentity {
        if self.compares_urls() {
            return PathIdentity { resources: vec![path.to_owned()], method: None };
        }
        let (path, method) = match path.rsplit_once(':').filter(|_| self.has_method()) {
            Some((path, method)) => (path, Some(method.to_owned())),
            None => (path, None),
        };
        let segments: Vec<&str> = path.split('/').collect();
        let named = segments.windows(2).filter(|pair| pair.first().is_some_and(|one| is_collection(one)));
        PathIdentity { resources: named.flatten().map(|segment| (*segment).to_owned()).collect(), method }
    }
}
