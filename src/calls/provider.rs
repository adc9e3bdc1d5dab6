//! The providers of models, and the requests of each that can be recorded, in one table.

use std::net::SocketAddr;

/// A provider of models.
#[derive(Debug)]
pub struct Provider {
    /// The first segment of the path of requests to it.
    pub name: &'static str,
    /// The URL to which its requests are forwarded, without the path that they have in the API.
    pub url: &'static str,
    /// The version of the API, with which the paths of its requests begin.
    pub version: &'static str,
    /// The environment variables from which its clients read their base URL, with the path that it has after the name of
    /// the provider.
    pub base_urls: &'static [(&'static str, &'static str)],
    /// The environment variables in which its clients expect a key.
    pub keys: &'static [&'static str],
    /// The requests that can be recorded.
    pub endpoints: &'static [Endpoint],
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
    /// Whether the path contains the model, between the last slash and the end.
    pub has_model_in_path: bool,
    /// The member of the answer with the number of tokens, if that is all that is asked for.
    pub count: Option<&'static str>,
}

/// The key of clients of which calls are only replayed: most clients do not start without one, and no server accepts it.
pub const REPLAY_KEY: &str = "runvault-replay";

/// Returns the environment variables that point the clients of each provider at a gateway, with their values.
///
/// ```
/// # use runvault::calls::base_url_variables;
/// let address = "127.0.0.1:4711".parse().unwrap();
/// let found = base_url_variables(address).find(|(name, _)| *name == "OPENAI_BASE_URL");
/// assert_eq!(found.unwrap().1, "http://127.0.0.1:4711/openai/v1");
/// ```
pub fn base_url_variables(address: SocketAddr) -> impl Iterator<Item = (&'static str, String)> {
    PROVIDERS.iter().flat_map(move |provider| {
        let url = move |path| format!("http://{address}/{}{path}", provider.name);
        provider.base_urls.iter().map(move |(variable, path)| (*variable, url(path)))
    })
}

/// Returns the environment variables in which the clients of each provider expect a key. Where only recordings are
/// replayed, those that are not set can have the value [`REPLAY_KEY`].
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().flat_map(|provider| provider.keys).copied()
}

/// Members of requests to `OpenAI` that do not change the answer.
const OPENAI: &[&str] = &[
    "metadata",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "user",
];

/// Members of requests to Anthropic that do not change the answer.
const ANTHROPIC: &[&str] = &["metadata", "service_tier", "stream"];

/// Members inside requests to Gemini that do not change the answer. Its API does not need them, so that several clients
/// invent random ones where it sends none.
const GEMINI_INSIDE: &[&[&str]] = &[
    &["contents", "*", "parts", "*", "functionCall", "id"],
    &["contents", "*", "parts", "*", "functionResponse", "id"],
];

/// The providers that are known.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        name: "openai",
        url: "https://api.openai.com",
        version: "v1",
        base_urls: &[("OPENAI_BASE_URL", "/v1"), ("OPENAI_API_BASE", "/v1")],
        keys: &["OPENAI_API_KEY"],
        endpoints: &[
            endpoint("chat.completions", "/chat/completions", OPENAI),
            endpoint("completions", "/completions", OPENAI),
            endpoint("responses", "/responses", OPENAI),
            endpoint_of_count("responses.input_tokens", "/responses/input_tokens", OPENAI, "input_tokens"),
            endpoint("embeddings", "/embeddings", OPENAI),
        ],
    },
    Provider {
        name: "anthropic",
        url: "https://api.anthropic.com",
        version: "v1",
        base_urls: &[("ANTHROPIC_BASE_URL", ""), ("ANTHROPIC_API_BASE", "")],
        keys: &["ANTHROPIC_API_KEY"],
        endpoints: &[
            endpoint("messages", "/messages", ANTHROPIC),
            endpoint_of_count("messages.count_tokens", "/messages/count_tokens", ANTHROPIC, "input_tokens"),
        ],
    },
    Provider {
        name: "gemini",
        url: "https://generativelanguage.googleapis.com",
        version: "v1beta",
        base_urls: &[("GOOGLE_GEMINI_BASE_URL", ""), ("GEMINI_API_BASE", "")],
        keys: &["GEMINI_API_KEY"],
        endpoints: &[
            endpoint_of_model("generateContent", ":generateContent"),
            endpoint_of_model("generateContent", ":streamGenerateContent"),
            endpoint_of_model("embedContent", ":embedContent"),
            endpoint_of_model("batchEmbedContents", ":batchEmbedContents"),
            Endpoint { count: Some("totalTokens"), ..endpoint_of_model("countTokens", ":countTokens") },
        ],
    },
];

/// Any request that is a POST of a JSON object, of a provider that is not known. All of its body is the prompt.
pub(crate) const ANY: Endpoint = endpoint("json", "", &[]);

const fn endpoint(name: &'static str, path: &'static str, transport: &'static [&'static str]) -> Endpoint {
    Endpoint { name, path, transport, transport_inside: &[], has_model_in_path: false, count: None }
}

const fn endpoint_of_model(name: &'static str, path: &'static str) -> Endpoint {
    Endpoint {
        name,
        path,
        transport: &[],
        transport_inside: GEMINI_INSIDE,
        has_model_in_path: true,
        count: None,
    }
}

const fn endpoint_of_count(
    name: &'static str,
    path: &'static str,
    transport: &'static [&'static str],
    count: &'static str,
) -> Endpoint {
    Endpoint { count: Some(count), ..endpoint(name, path, transport) }
}

/// The segment of paths with the models of a provider, and before the model in paths of APIs.
pub(crate) const MODELS: &str = "models";

/// The segments of paths before the name of what answers: a model, or a server that has one.
const COLLECTIONS: [&str; 5] = ["deployments", "endpoints", "engines", MODELS, "tunedModels"];

/// The part of a path that requests are compared by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathIdentity {
    /// All of the path if the API is not known; otherwise the names of what answers, each after its collection.
    pub(crate) resources: Vec<String>,
    /// The method after the last colon of the path, if paths of the API have one.
    pub(crate) method: Option<String>,
}

impl Provider {
    /// Returns the provider with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// Returns whether paths of its requests begin with a segment, after the version.
    pub(crate) fn begins_with(&self, segment: &str) -> bool {
        let first = |endpoint: &Endpoint| endpoint.path.trim_start_matches('/').split('/').next();
        segment == MODELS || self.endpoints.iter().any(|endpoint| first(endpoint) == Some(segment))
    }

    /// Returns the request with this path.
    pub(crate) fn endpoint(&self, path: &str) -> Option<&'static Endpoint> {
        self.endpoints.iter().find(|endpoint| path.ends_with(endpoint.path))
    }
}

impl Endpoint {
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
        let model = path.strip_suffix(self.path).filter(|_| self.has_model_in_path)?;
        model.rsplit('/').next().filter(|model| !model.is_empty())
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
        let (path, method) = match path.rsplit_once(':').filter(|_| self.has_model_in_path) {
            Some((path, method)) => (path, Some(method.to_owned())),
            None => (path, None),
        };
        let segments: Vec<&str> = path.split('/').collect();
        let named =
            segments.windows(2).filter(|pair| pair.first().is_some_and(|one| COLLECTIONS.contains(one)));
        PathIdentity { resources: named.flatten().map(|segment| (*segment).to_owned()).collect(), method }
    }
}
