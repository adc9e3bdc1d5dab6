//! What the gateway does with a request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Limited};
use serde_json::json;
use tokio::task;
use tokio::time::{Instant, sleep_until};

use super::call::{Answer, Form};
use super::events::GatewayEvent;
use super::forward::{OpenCall, Received, Recording, forward};
use super::miss::Miss;
use super::problem::{json_problem, json_response, problem};
use super::provider::Endpoint;
use super::recordings::Wanted;
use super::replay::{self, Found, ReplayFailure};
use super::route::{Destination, Route, Target, target};
use super::run::Run;
use super::shared::{Mode, Pace, Shared};
use crate::clock;
use crate::json::compact;
use crate::json::reader::{self, Limits};
use crate::server::is_own_host;
use crate::storage::{check_labels, is_label_value};

/// Maximum size of a request.
const MAX_REQUEST: usize = 64 << 20;

/// The header that names the run of a request, and the one that states labels of it.
const RUN: &str = "x-runvault-run";
const LABEL: &str = "x-runvault-label";
/// The header of an answer that was replayed: the run pack that it is from.
const REPLAYED: &str = "x-runvault-replayed";

/// Answers a request.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<Body>) -> Response<Body> {
    if let Some((status, why)) = refusal(&shared, request.headers()) {
        return problem(status, "refused", why);
    }
    let (parts, body) = request.into_parts();
    let Target { run, mut labels, destination } = target(&shared.upstreams, &parts.uri);
    let run = header(&parts.headers, RUN).or(run);
    let Some(stated) = labels_of(&parts.headers) else {
        let reason = format!("the header {LABEL} is a label, such as job=7");
        return problem(StatusCode::BAD_REQUEST, "not valid", &reason);
    };
    labels.extend(stated);
    if check_labels(&labels).is_err() || run.as_deref().is_some_and(|run| !is_label_value(run)) {
        let reason = "the name of the run, or a label, is not valid: both have the form of labels";
        return problem(StatusCode::BAD_REQUEST, "not valid", reason);
    }
    let Ok(body) = Limited::new(body, MAX_REQUEST).collect().await else {
        let reason = format!("the request is longer than {MAX_REQUEST} bytes, or was broken off");
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "not read", &reason);
    };
    let body = body.to_bytes();
    match destination {
        Destination::Own(command) => {
            command_of(&shared, &parts.method, &command, run.as_deref(), &labels).await
        }
        Destination::Upstream(route) => {
            let client = Client { run, labels };
            call(shared, route, client, parts, body).await
        }
        Destination::Unknown => {
            let reason = format!("{} is the path of no known provider", parts.uri.path());
            problem(StatusCode::NOT_FOUND, "unknown path", &reason)
        }
    }
}

/// Returns why a request is refused. Pages of other sites that a browser shows cannot use the gateway.
fn refusal(shared: &Shared, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    if shared.address.ip().is_loopback() && !host.is_some_and(|host| is_own_host(host, shared.address)) {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "this gateway is not at the address that the request names",
        ));
    }
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    site.filter(|site| ["cross-site", "same-site"].contains(site))
        .map(|_| (StatusCode::FORBIDDEN, "pages of other sites cannot use this gateway"))
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Returns the labels in the headers, or `None` if a header has none.
fn labels_of(headers: &HeaderMap) -> Option<BTreeMap<String, String>> {
    let label = |value: &HeaderValue| {
        let (key, value) = value.to_str().ok()?.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    };
    headers.get_all(LABEL).iter().map(label).collect()
}

/// What a client says of its run.
struct Client {
    run: Option<String>,
    labels: BTreeMap<String, String>,
}

/// Runs a command to the gateway itself.
async fn command_of(
    shared: &Arc<Shared>,
    method: &Method,
    command: &str,
    run: Option<&str>,
    labels: &BTreeMap<String, String>,
) -> Response<Body> {
    match (command, method) {
        ("finish", &Method::POST) => match shared.finish(run, labels).await {
            Ok(finished) => json_response(StatusCode::OK, &json!({"finished": finished})),
            Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, "not finished", &error.to_string()),
        },
        ("status", &Method::GET) => json_response(StatusCode::OK, &json!({"mode": shared.mode.name()})),
        ("finish" | "status", _) => {
            problem(StatusCode::METHOD_NOT_ALLOWED, "refused", "finish is a POST, status a GET")
        }
        _ => problem(StatusCode::NOT_FOUND, "unknown command", "the commands are finish and status"),
    }
}

/// The reason that a call with such a request is not recorded.
const UNREADABLE: &str = "the request is not a JSON object that has a canonical form";

/// Answers a call of a provider.
async fn call(
    shared: Arc<Shared>,
    route: Route,
    client: Client,
    parts: Parts,
    body: Bytes,
) -> Response<Body> {
    let received = Received { method: parts.method, headers: parts.headers, body };
    let comparable = route.endpoint.filter(|_| received.method == Method::POST);
    let asked = comparable.and_then(|endpoint| Asked::new(&shared, endpoint, &route, &received.body));
    let Some(asked) = asked.filter(|_| shared.mode != Mode::Pass) else {
        if shared.mode == Mode::Replay {
            let reason = if comparable.is_some() {
                UNREADABLE.to_owned()
            } else {
                format!("{} {} is not a call that can be recorded", received.method, route.path)
            };
            let Route { provider, path, .. } = &route;
            shared.report(&GatewayEvent::Missed { provider, path, reason: &reason });
            return problem(StatusCode::NOT_FOUND, "not recorded", &reason);
        }
        if comparable.is_some() && shared.mode != Mode::Pass {
            let Route { provider, path, .. } = &route;
            shared.report(&GatewayEvent::NotRecorded { provider, path, reason: UNREADABLE });
        }
        return forward(shared, route, received, None).await;
    };
    let (run, number) = shared.begin(client.run.as_deref(), &client.labels);
    let open = OpenCall { run: Arc::clone(&run), number };
    if matches!(shared.mode, Mode::Replay | Mode::Auto) {
        match replayed(&shared, &route, &asked, run).await {
            Ok(Ok(found)) => {
                let Route { provider, path, .. } = &route;
                let (from, step) = (found.from, found.recorded.step);
                shared.report(&GatewayEvent::Replayed { provider, path, from, step });
                return play(found, shared.pace);
            }
            Ok(Err(miss)) if shared.mode == Mode::Replay => {
                let Route { provider, path, .. } = &route;
                shared.report(&GatewayEvent::Missed { provider, path, reason: &miss.reason() });
                return json_problem(StatusCode::NOT_FOUND, &miss.problem());
            }
            Ok(Err(_)) => {}
            Err(failure) => {
                return problem(StatusCode::INTERNAL_SERVER_ERROR, "not replayed", &failure.to_string());
            }
        }
    }
    let Asked { endpoint, prompt, request, .. } = asked;
    let recording = Recording { run: open, asked_at: clock::now(), endpoint: endpoint.name, prompt, request };
    forward(shared, route, received, Some(recording)).await
}

/// What a request asks.
struct Asked {
    endpoint: &'static Endpoint,
    prompt: String,
    /// The body, as it is stored.
    request: String,
    form: Form,
}

impl Asked {
    /// Reads a body. Returns `None` if it is not a JSON object with a canonical form.
    fn new(shared: &Shared, endpoint: &'static Endpoint, route: &Route, body: &[u8]) -> Option<Self> {
        let value = reader::read(body, &Limits::default()).ok()?;
        value.as_object()?;
        let stored = shared.rules.redacted_value(&value);
        let prompt = shared.rules.prompt(endpoint, &route.path, &stored)?;
        // Without this parameter, Gemini sends the events as one JSON array.
        let of_query = || if route.url.contains("alt=sse") { Form::Stream } else { Form::Whole };
        let form = Form::requested(&route.path, &value).unwrap_or_else(of_query);
        Some(Self { endpoint, prompt, request: compact::text(&stored), form })
    }
}

async fn replayed(
    shared: &Arc<Shared>,
    route: &Route,
    asked: &Asked,
    run: Arc<Run>,
) -> Result<Result<Found, Miss>, ReplayFailure> {
    let wanted = Wanted {
        provider: route.provider.clone(),
        endpoint: asked.endpoint.name,
        prompt: asked.prompt.clone(),
        form: asked.form,
    };
    let shared = Arc::clone(shared);
    let found = task::spawn_blocking(move || {
        replay::find(&shared.vault, &shared.recordings, shared.only, (&run, &wanted))
    });
    found.await.unwrap_or_else(|error| Err(ReplayFailure(error.to_string())))
}

/// Sends a recorded answer, a stream in the chunks in which it arrived.
fn play(found: Found, pace: Pace) -> Response<Body> {
    let Found { from, recorded } = found;
    let Answer { status, content_type, retry_after, body, chunks } = recorded.answer;
    let is_whole = Form::of(content_type.as_deref()) == Form::Whole;
    let fits = chunks.iter().map(|chunk| chunk.bytes).sum::<u64>() == body.len() as u64;
    let mut response = if is_whole || !fits {
        Response::new(Body::from(body))
    } else {
        let (sender, channel) = Channel::<Bytes, std::io::Error>::new(1);
        let started = Instant::now();
        let chunks = chunks.into_iter().map(move |chunk| {
            let wait =
                if pace == Pace::Recorded { Duration::from_micros(chunk.at_us) } else { Duration::ZERO };
            (started + wait, usize::try_from(chunk.bytes).unwrap_or(usize::MAX))
        });
        task::spawn(send(Bytes::from(body), chunks, sender));
        Response::new(Body::new(channel))
    };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    let core = from.to_string();
    let values = [
        (CONTENT_TYPE, content_type),
        (RETRY_AFTER, retry_after),
        (HeaderName::from_static(REPLAYED), Some(core)),
    ];
    for (name, value) in values {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
    response
}

async fn send(
    mut body: Bytes,
    chunks: impl Iterator<Item = (Instant, usize)>,
    mut sender: Sender<Bytes, std::io::Error>,
) {
    for (at, bytes) in chunks {
        sleep_until(at).await;
        if sender.send_data(body.split_to(bytes.min(body.len()))).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::connection::OWN_HEADERS;

    #[test]
    fn headers_for_the_gateway_have_one_beginning() {
        for name in [RUN, LABEL, REPLAYED] {
            assert!(name.starts_with(OWN_HEADERS));
        }
    }
}
