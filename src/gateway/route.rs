//! The upstream of a request, and the run that it belongs to.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::http::Uri;

use crate::calls::target::percent_decoded;
use crate::conversation::providers::mcp::{self, MCP};
use crate::conversation::providers::provider::MODELS;
use crate::conversation::providers::{Endpoint, PROVIDERS, Provider};
use crate::json::reader::excerpt;

/// The first segment of paths that are commands to the gateway.
pub(super) const OWN: &str = "_runvault";

/// A server to which requests are forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    name: String,
    /// Scheme, host and port.
    origin: String,
    /// The path before that of requests, without a slash at its end.
    path: String,
    /// Whether the paths of requests are complete: nothing is put before them but `path`.
    has_whole_paths: bool,
}

/// The reason that a URL cannot be that of an upstream server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUpstream {
    /// It is not of the form `NAME=URL`.
    #[error("an upstream server is given as NAME=URL")]
    Form,
    /// The name has other characters than lowercase letters, digits, hyphens and underscores, or has another meaning.
    #[error(
        "the name {0} of an upstream server is not a word of lowercase letters, digits, hyphens and underscores, or is reserved"
    )]
    Name(String),
    /// The URL is not one of HTTP or HTTPS with a host, or has a user, a query or a fragment.
    #[error(
        "the URL of the upstream server {0} must begin with http:// or https:// and a host, without user, query and fragment"
    )]
    Url(String),
}

impl Upstream {
    /// Parses `NAME=URL`. The name is that of a [`Provider`], whose URL is replaced, or a new one, whose requests are
    /// recorded if they are JSON over POST.
    ///
    /// # Errors
    /// Returns an error if it has another form, or the URL is not one of HTTP.
    pub fn parse(text: &str) -> Result<Self, InvalidUpstream> {
        let (name, url) = text.split_once('=').ok_or(InvalidUpstream::Form)?;
        if !is_name(name) {
            return Err(InvalidUpstream::Name(excerpt(name)));
        }
        Self::new(name, url).ok_or_else(|| InvalidUpstream::Url(name.to_owned()))
    }

    fn new(name: &str, url: &str) -> Option<Self> {
        // A parsed URL has no fragment.
        let uri: Uri = Some(url).filter(|url| !url.contains('#'))?.parse().ok()?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme))?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        if uri.query().is_some() || authority.host().is_empty() {
            return None;
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        let origin = format!("{scheme}://{authority}");
        Some(Self { name: name.to_owned(), origin, path, has_whole_paths: false })
    }

    fn from_provider(provider: &Provider) -> Option<Self> {
        Self::new(provider.name, provider.url)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Forwards requests with the paths that they have: a version that one leaves out is not part of its URL.
    #[must_use]
    pub fn with_whole_paths(mut self) -> Self {
        self.has_whole_paths = true;
        self
    }

    /// Returns the URL of a request, whose path and query begin with a slash. A version that ends the URL of the server
    /// and begins the path is not repeated, and one that neither of them has is added: clients differ in which of the two
    /// has it.
    fn url(&self, path: &str) -> String {
        let version = self.path.rsplit('/').next().filter(|version| !version.is_empty());
        let first = path.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
        let before = match version {
            Some(version) if first == version => self.path.strip_suffix(version).unwrap_or_default(),
            _ => &self.path,
        };
        let missing = self.missing_version(version, first).map(|version| format!("/{version}"));
        format!("{}{}{}{path}", self.origin, before.trim_end_matches('/'), missing.unwrap_or_default())
    }

    /// Returns the version that is neither at the end of the URL nor in a path that begins with this segment.
    fn missing_version(&self, last: Option<&str>, first: &str) -> Option<&'static str> {
        let has_version = |provider: &&Provider| !self.has_whole_paths && !provider.version.is_empty();
        let provider = Provider::named(&self.name).filter(has_version)?;
        // A URL of which clients expect that it ends with a version, and that ends otherwise, has none.
        let expects_version = provider.base_urls.iter().any(|(_, end)| !end.is_empty());
        let can_miss = last.is_none() || !expects_version && !last.is_some_and(is_version);
        (can_miss && provider.begins_with(first)).then_some(provider.version)
    }
}

/// Returns whether a segment is a version, such as `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    let digit = segment.strip_prefix('v').and_then(|rest| rest.chars().next());
    digit.is_some_and(|first| first.is_ascii_digit())
}

/// Returns whether a word can be the name of a server.
fn is_name(word: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let is_reserved = [OWN, MCP, "run", "label", "recording", "v1", "v1beta"].contains(&word);
    !word.is_empty() && word.bytes().all(is_of_name) && !is_reserved
}

/// The servers to which requests are forwarded, by name.
#[derive(Clone, Debug)]
pub(super) struct Upstreams {
    by_name: BTreeMap<String, Upstream>,
    /// Whether calls are only replayed, so that there can be recordings of servers with other names.
    only_replays: bool,
}

impl Upstreams {
    /// Returns the known providers and `given`, which replace those of the same name.
    pub(super) fn new(given: &[Upstream], only_replays: bool) -> Self {
        let known = PROVIDERS.iter().filter_map(Upstream::from_provider);
        let all = known.chain(given.iter().cloned());
        Self { by_name: all.map(|upstream| (upstream.name.clone(), upstream)).collect(), only_replays }
    }

    /// Returns the environment variables that point clients at a gateway at this address.
    pub(super) fn variables(&self, address: SocketAddr) -> impl Iterator<Item = (&'static str, String)> {
        let is_answered =
            |provider: &&Provider| self.only_replays || self.by_name.contains_key(provider.name);
        PROVIDERS.iter().filter(is_answered).flat_map(move |provider| {
            let url = move |path| format!("http://{address}/{}{path}", provider.name);
            provider.base_urls.iter().map(move |(variable, path)| (*variable, url(path)))
        })
    }

    /// Returns whether there can be recordings of a server with this name, which is not known.
    fn can_have_recorded(&self, name: &str) -> bool {
        let is_of_api = PROVIDERS.iter().any(|provider| provider.begins_with(name));
        self.only_replays && is_name(name) && !is_of_api
    }
}

/// Returns the environment variables that point the clients of each provider at a gateway, with their values. A provider
/// whose host depends on a region or a resource has some if its server is `given`, or only recordings are replayed.
///
/// ```
/// # use runvault::gateway::base_url_variables;
/// let address = "127.0.0.1:4711".parse().unwrap();
/// let variables = base_url_variables(address, &[], false);
/// assert_eq!(variables[0], ("OPENAI_BASE_URL", "http://127.0.0.1:4711/openai/v1".to_owned()));
/// assert!(variables.iter().all(|(name, _)| *name != "AZURE_OPENAI_ENDPOINT"));
/// ```
#[must_use]
pub fn base_url_variables(
    address: SocketAddr,
    given: &[Upstream],
    only_replays: bool,
) -> Vec<(&'static str, String)> {
    Upstreams::new(given, only_replays).variables(address).collect()
}

/// The parts of the path of a request.
#[derive(Debug)]
pub(super) struct GatewayPath {
    /// The run that it names.
    pub(super) run: Option<String>,
    /// The labels that it states.
    pub(super) labels: BTreeMap<String, String>,
    /// The only recording to replay from, as it is written.
    pub(super) recording: Option<String>,
    pub(super) destination: Destination,
}

/// Where a request goes.
#[derive(Debug)]
pub(super) enum Destination {
    /// To the gateway itself: the name of a command.
    Own(String),
    /// To a server.
    Upstream(Route),
    /// Nowhere: no server has this path.
    Unknown,
    /// Nowhere: the path would leave that of the server.
    Outside,
}

/// A request to a server.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// The name of the provider.
    pub(super) provider: String,
    /// The URL; empty if the server is not known.
    pub(super) url: String,
    /// The path in the API, without the query.
    pub(super) path: String,
    /// The query, which may contain a key.
    pub(super) query: Option<String>,
    /// The request of the API; `None` if it cannot be recorded.
    pub(super) endpoint: Option<&'static Endpoint>,
}

/// Reads the path and query of a request.
pub(super) fn target(upstreams: &Upstreams, uri: &Uri) -> GatewayPath {
    let mut target = GatewayPath {
        run: None,
        labels: BTreeMap::new(),
        recording: None,
        destination: Destination::Unknown,
    };
    let mut rest = uri.path();
    loop {
        let (segment, after) = first(rest);
        let (value, after_value) = first(after);
        match segment {
            "run" if !value.is_empty() => target.run = Some(percent_decoded(value)),
            "recording" if !value.is_empty() => target.recording = Some(percent_decoded(value)),
            "label" => {
                let decoded = percent_decoded(value);
                let Some((key, value)) = decoded.split_once('=') else { break };
                target.labels.insert(key.to_owned(), value.to_owned());
            }
            _ => break,
        }
        rest = after_value;
    }
    let (name, after) = first(rest);
    target.destination = if name == OWN {
        Destination::Own(after.trim_matches('/').to_owned())
    } else {
        let route = named(upstreams, name, after, uri.query());
        let route = route.or_else(|| by_path(upstreams, rest, uri.query()));
        route.map_or(Destination::Unknown, within_server)
    };
    target
}

/// Returns the destination of a route, unless its path would leave that of the server.
fn within_server(route: Route) -> Destination {
    if leaves(&route.path) { Destination::Outside } else { Destination::Upstream(route) }
}

/// How often servers on the way can decode a path.
const DECODED: usize = 3;

/// Returns whether a server can read a path as one outside of where it begins: with segments `..`, also in an encoded form,
/// between encoded slashes, or with parameters. Segments that stay inside are not normalized, because servers do that.
fn leaves(path: &str) -> bool {
    let mut decoded = path.to_owned();
    (0..=DECODED).any(|_| {
        let mut depth = 0_usize;
        let leaves = decoded.split(['/', '\\']).any(|segment| {
            match segment.split(';').next().unwrap_or_default().trim() {
                "" | "." => false,
                ".." => depth.checked_sub(1).map(|above| depth = above).is_none(),
                _ => {
                    depth += 1;
                    false
                }
            }
        });
        decoded = percent_decoded(&decoded);
        leaves
    })
}

/// Returns the first segment of a path, and the rest with its slash.
fn first(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_at(path.find('/').unwrap_or(path.len()))
}

/// Returns the route of a request whose path begins with the name of a server. It need not be known if nothing is forwarded
/// to it.
fn named(upstreams: &Upstreams, name: &str, path: &str, query: Option<&str>) -> Option<Route> {
    if name == MCP {
        // Their clients ask the servers themselves.
        let (path, endpoint) = (path.to_owned(), Some(mcp::endpoint(path)));
        return Some(Route { provider: MCP.to_owned(), url: String::new(), path, query: None, endpoint });
    }
    let url = match upstreams.by_name.get(name) {
        Some(upstream) => upstream.url(&with_query(path, query)),
        None if Provider::named(name).is_some() || upstreams.can_have_recorded(name) => String::new(),
        None => return None,
    };
    // Other programs record requests of known providers that a gateway does not.
    let other = || upstreams.only_replays.then_some(&Endpoint::ANY);
    let known = Provider::named(name);
    let endpoint = known.map_or(Some(&Endpoint::ANY), |provider| provider.endpoint(path).or_else(other));
    let (provider, path, query) = (name.to_owned(), path.to_owned(), query.map(str::to_owned));
    Some(Route { provider, url, path, query, endpoint })
}

/// Returns the route of a request whose path is that of an API, without the name of a server.
fn by_path(upstreams: &Upstreams, path: &str, query: Option<&str>) -> Option<Route> {
    let (version, rest) = first(path);
    let lists_models = |provider: &&Provider| {
        provider.is_forwarded() && version == provider.version && first(rest).0 == MODELS
    };
    // Paths of the others can be those of any server.
    let mut hosted = PROVIDERS.iter().filter(|provider| !provider.url.is_empty());
    let provider = hosted.clone().find(|provider| provider.endpoint(path).is_some());
    let provider = provider.or_else(|| hosted.find(lists_models))?;
    named(upstreams, provider.name, path, query)
}

fn with_query(path: &str, query: Option<&str>) -> String {
    query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(given: &[&str], uri: &str) -> (Option<String>, BTreeMap<String, String>, Option<Route>) {
        let given: Vec<Upstream> = given.iter().map(|text| Upstream::parse(text).unwrap()).collect();
        let target = target(&Upstreams::new(&given, false), &uri.parse().unwrap());
        let route = match target.destination {
            Destination::Upstream(route) => Some(route),
            _ => None,
        };
        (target.run, target.labels, route)
    }

    #[test]
    fn the_first_segment_names_the_provider() {
        let (_, _, found) = route(&[], "/openai/v1/chat/completions?a=b");
        let found = found.unwrap();
        assert_eq!(found.url, "https://api.openai.com/v1/chat/completions?a=b");
        assert_eq!((found.provider.as_str(), found.path.as_str()), ("openai", "/v1/chat/completions"));
        assert_eq!(found.endpoint.unwrap().name, "chat.completions");
        let (_, _, models) = route(&[], "/openai/v1/models");
        assert!(models.unwrap().endpoint.is_none());
    }

    #[test]
    fn the_path_of_an_api_is_enough() {
        for (path, provider) in [
            ("/v1/chat/completions", "openai"),
            ("/v1/messages", "anthropic"),
            ("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", "gemini"),
        ] {
            assert_eq!(route(&[], path).2.unwrap().provider, provider);
        }
        assert!(route(&[], "/favicon.ico").2.is_none());
    }

    #[test]
    fn other_names_are_of_recordings() {
        let replayed = |uri: &str| match target(&Upstreams::new(&[], true), &uri.parse().unwrap()).destination
        {
            Destination::Upstream(Route { provider, path, .. }) => format!("{provider} {path}"),
            other => format!("{other:?}"),
        };
        assert_eq!(replayed("/mistral/v1/chat/completions"), "mistral /v1/chat/completions");
        assert_eq!(replayed("/local/generate?a=b"), "local /generate");
        for (path, expected) in [
            ("/openai/v1/responses", "openai /v1/responses"),
            ("/v1/chat/completions", "openai /v1/chat/completions"),
            ("/chat/completions", "openai /chat/completions"),
            ("/models/g:generateContent", "gemini /models/g:generateContent"),
            ("/v1beta/models", "gemini /v1beta/models"),
            ("//models", "Unknown"),
            ("/favicon.ico", "Unknown"),
        ] {
            assert_eq!(replayed(path), expected);
        }
    }

    #[test]
    fn runs_and_labels_precede_the_provider() {
        let (run, labels, found) =
            route(&[], "/run/nightly%201/label/job=7/label/a%3Db%3Dc/anthropic/v1/messages");
        assert_eq!(run.as_deref(), Some("nightly 1"));
        let expected = [("a", "b=c"), ("job", "7")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(labels, BTreeMap::from(expected));
        assert_eq!(found.unwrap().url, "https://api.anthropic.com/v1/messages");
    }

    #[test]
    fn a_version_is_not_repeated() {
        let (_, _, found) = route(&["openai=http://127.0.0.1:9/v1"], "/openai/v1/responses");
        assert_eq!(found.unwrap().url, "http://127.0.0.1:9/v1/responses");
        let (_, _, found) = route(&["local=http://127.0.0.1:9/api/"], "/local/generate");
        let found = found.unwrap();
        assert_eq!(found.url, "http://127.0.0.1:9/api/generate");
        assert_eq!(found.endpoint.unwrap().name, "json");
    }

    #[test]
    fn a_version_that_a_client_leaves_out_is_added() {
        for (given, path, expected) in [
            (None, "/anthropic/messages?beta=true", "https://api.anthropic.com/v1/messages?beta=true"),
            (None, "/messages/count_tokens", "https://api.anthropic.com/v1/messages/count_tokens"),
            (None, "/openai/chat/completions", "https://api.openai.com/v1/chat/completions"),
            (None, "/openai/models/m", "https://api.openai.com/v1/models/m"),
            (
                None,
                "/gemini/models/g:generateContent",
                "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent",
            ),
            (Some("anthropic=http://h:9"), "/anthropic/messages", "http://h:9/v1/messages"),
            (Some("anthropic=http://h:9/proxy"), "/anthropic/messages", "http://h:9/proxy/v1/messages"),
            (Some("anthropic=http://h:9/v1"), "/anthropic/messages", "http://h:9/v1/messages"),
            (Some("openai=http://h:9/v1"), "/openai/responses", "http://h:9/v1/responses"),
            // These have no version, or another one.
            (Some("openai=http://h:9/proxy"), "/openai/responses", "http://h:9/proxy/responses"),
            (Some("anthropic=http://h:9"), "/anthropic/v2/messages", "http://h:9/v2/messages"),
            (None, "/openai/deployments/d/responses", "https://api.openai.com/deployments/d/responses"),
            (None, "/anthropic/", "https://api.anthropic.com/"),
        ] {
            let given: Vec<&str> = given.into_iter().collect();
            assert_eq!(route(&given, path).2.unwrap().url, expected, "{path}");
        }
        let exact = Upstream::parse("openai=http://h:9").unwrap().with_whole_paths();
        assert_eq!(exact.url("/responses"), "http://h:9/responses");
    }

    #[test]
    fn the_model_is_in_the_path_of_gemini() {
        let (_, _, found) = route(&[], "/gemini/v1beta/models/gemini-x:generateContent?key=secret");
        let found = found.unwrap();
        assert_eq!(found.endpoint.unwrap().model(&found.path), Some("gemini-x"));
        assert!(!found.path.contains("secret"));
    }

    #[test]
    fn servers_of_regions_and_resources_are_given() {
        for (given, path, provider, model, expected) in [
            (
                "azure=https://r.openai.azure.com",
                "/azure/openai/deployments/d-1/chat/completions?api-version=1",
                "azure chat.completions",
                Some("d-1"),
                "https://r.openai.azure.com/openai/deployments/d-1/chat/completions?api-version=1",
            ),
            (
                "azure=http://h",
                "/azure/openai/v1/responses",
                "azure responses",
                None,
                "http://h/openai/v1/responses",
            ),
            (
                "bedrock=http://h",
                "/bedrock/model/a.b-v1%3A0/converse-stream",
                "bedrock converse",
                Some("a.b-v1%3A0"),
                "http://h/model/a.b-v1%3A0/converse-stream",
            ),
            (
                "vertex=https://h/v1",
                "/vertex/v1/projects/p/locations/l/publishers/anthropic/models/c@1:streamRawPredict",
                "vertex rawPredict",
                Some("c@1"),
                "https://h/v1/projects/p/locations/l/publishers/anthropic/models/c@1:streamRawPredict",
            ),
            (
                "vertex=https://h",
                "/vertex/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent",
                "vertex generateContent",
                Some("g"),
                "https://h/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent",
            ),
        ] {
            let found = route(&[given], path).2.unwrap();
            let endpoint = found.endpoint.unwrap();
            assert_eq!(format!("{} {}", found.provider, endpoint.name), provider);
            assert_eq!((endpoint.model(&found.path), found.url.as_str()), (model, expected));
            // Without the server, no other one is asked.
            assert_eq!(route(&[], path).2.unwrap().url, "", "{path}");
        }
        assert!(route(&["bedrock=http://h"], "/other/invoke").2.is_none());
    }

    #[test]
    fn rejects_paths_that_leave_that_of_the_server() {
        let destination = |path: &str| {
            let given = [Upstream::parse("local=http://h/prefix").unwrap()];
            target(&Upstreams::new(&given, false), &path.parse().unwrap()).destination
        };
        for path in [
            "/local/../admin",
            "/local/%2e%2e/admin",
            "/local/.%2E/admin",
            "/local/a/../../admin",
            "/local/a/..%2f..%2fadmin",
            "/local/%2e%2e%2fadmin",
            "/local/..%5cadmin",
            "/local/%252e%252e/admin",
            "/local/..;/admin",
            "/local/./..;a=b/admin",
            "/local/..",
            "/openai/v1/../../chat/completions",
        ] {
            assert!(matches!(destination(path), Destination::Outside), "{path}");
        }
        for path in ["/local/a/../b", "/local/models/a%2Fb:c", "/local/...", "/local/a..b/", "/local/./a"] {
            assert!(matches!(destination(path), Destination::Upstream(_)), "{path}");
        }
    }

    #[test]
    fn rejects_what_is_not_an_upstream() {
        for text in [
            "",
            "openai",
            "Upper=http://h",
            "run=http://h",
            "a=ftp://h",
            "a=http://u:p@h",
            "a=http://h/?k=1",
            "a=http://h/#f",
        ] {
            assert!(Upstream::parse(text).is_err(), "{text}");
        }
    }
}
