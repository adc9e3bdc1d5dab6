//! Sends a recorded answer.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use http_body_util::channel::{Channel, Sender};
use tokio::task;
use tokio::time::{Instant, sleep_until};

use super::replay::RecordingMatch;
use super::shared::Pace;
use crate::calls::call::{CallResponse, ResponseForm};

/// The header of an answer that was replayed: the run pack that it is from.
pub(super) const REPLAYED: &str = "x-runvault-replayed";

/// How long before its time a part is sent at most: timers wake up to two milliseconds late.
const EARLY: Duration = Duration::from_millis(1);

/// Sends a recorded answer, a stream in the chunks in which it arrived. With the recorded pace, they are due as long after
/// `arrived`, when the request arrived, as they were when they were recorded.
pub(super) fn play(found: RecordingMatch, pace: Pace, arrived: Instant) -> Response<Body> {
    let RecordingMatch { from, recorded } = found;
    let CallResponse { status, content_type, retry, body, chunks } = recorded.answer;
    let is_whole = ResponseForm::of(content_type.as_deref()) == ResponseForm::Whole;
    let fits = chunks.iter().map(|chunk| chunk.bytes).sum::<u64>() == body.len() as u64;
    let mut response = if is_whole || !fits {
        Response::new(Body::from(body))
    } else {
        let (sender, channel) = Channel::<Bytes, std::io::Error>::new(1);
        let chunks = chunks.into_iter().map(move |chunk| {
            let wait = (pace == Pace::Recorded).then(|| Duration::from_micros(chunk.at_us));
            // Offsets are those of a file: one that is too large for the clock is not waited for.
            let at = wait.and_then(|wait| arrived.checked_add(wait)?.checked_sub(EARLY));
            (at, usize::try_from(chunk.bytes).unwrap_or(usize::MAX))
        });
        task::spawn(send(Bytes::from(body), chunks, sender));
        Response::new(Body::new(channel))
    };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    let core = from.to_string();
    let values = [("content-type", &content_type), (REPLAYED, &Some(core))];
    for (name, value) in values.into_iter().chain(retry.iter()) {
        if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}

async fn send(
    mut body: Bytes,
    chunks: impl Iterator<Item = (Option<Instant>, usize)>,
    mut sender: Sender<Bytes, std::io::Error>,
) {
    for (at, bytes) in chunks {
        // A timer takes up to two milliseconds, also for a time that has passed.
        if let Some(at) = at.filter(|at| *at > Instant::now()) {
            sleep_until(at).await;
        }
        if sender.send_data(body.split_to(bytes.min(body.len()))).await.is_err() {
            return;
        }
    }
}
