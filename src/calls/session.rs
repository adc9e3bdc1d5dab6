//! Makes sessions (`model_io`) of the calls of a run: `docs/gateway.md`, "The session".

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value as Json, json};

use super::run::{CallOrigin, RunHead, SESSION_PROFILE, StoredCall};
use crate::conversation::assembled;
use crate::conversation::reader::tokens_of;
use crate::conversation::response::CallResponse;
use crate::digest::Digest;
use crate::json::compact;

/// The limits of the format.
const MAX_INTERACTIONS: usize = 10_000;
const MAX_RESPONSE_BYTES: usize = 1_000_000;
const MAX_SESSION_BYTES: usize = 100_000_000;

/// Returns the sessions of a run: one, unless its answers are more than the format permits. Errors and answers that are
/// longer than it permits are in the run pack alone.
pub(crate) fn documents(origin: CallOrigin<'_>, head: &RunHead, calls: &[StoredCall]) -> Vec<Vec<u8>> {
    let fits = |answer: &CallResponse| answer.body.len() <= MAX_RESPONSE_BYTES;
    // Whether it is a failure is found out last: that takes long.
    let of_models = calls.iter().filter(|call| !call.is_of_tool());
    let fitting = of_models.filter_map(|call| Some((call, call.answer().filter(|answer| fits(answer))?)));
    let fitting: Vec<SessionCall<'_>> =
        fitting.filter_map(|(call, answer)| SessionCall::new(call, answer)).collect();
    let mut documents = Vec::new();
    let mut rest = fitting.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |answered: &&SessionCall<'_>| {
            bytes += answered.answer.body.len();
            bytes <= MAX_SESSION_BYTES
        };
        let count = rest.iter().take(MAX_INTERACTIONS).take_while(fits).count().max(1);
        let (these, others) = rest.split_at(count);
        documents.push(document(origin, head, these));
        rest = others;
    }
    documents
}

/// A call with an answer that is not a failure.
struct SessionCall<'c> {
    call: &'c StoredCall,
    answer: &'c CallResponse,
    /// Numbers of tokens in the request and in the answer.
    tokens: [Option<u64>; 2],
}

impl<'c> SessionCall<'c> {
    /// Returns `None` if the answer is a failure.
    fn new(call: &'c StoredCall, answer: &'c CallResponse) -> Option<Self> {
        let content = assembled::read_without_texts(answer);
        content.failure.is_none().then(|| Self { call, answer, tokens: tokens_of(&content) })
    }
}

fn document(origin: CallOrigin<'_>, head: &RunHead, answered: &[SessionCall<'_>]) -> Vec<u8> {
    let interactions = answered.iter().enumerate().map(|(index, answered)| {
        let SessionCall { call, answer, tokens: [tokens_in, tokens_out] } = answered;
        let mut interaction = json!({
            "i": index,
            "prompt_hash": call.request.prompt_hash.to_string(),
            "response_hash": Digest::from_content(answer.body.as_bytes()).to_string(),
            "response_content": answer.body,
        });
        set(&mut interaction, "latency_ms", call.latency_ms.map(Into::into));
        set(&mut interaction, "tokens_input", tokens_in.map(Into::into));
        set(&mut interaction, "tokens_output", tokens_out.map(Into::into));
        interaction
    });
    let ended = answered.iter().filter_map(|answered| answered.call.ended_at()).max().or(head.started_at);
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true).into();
    let mut session = json!({
        "model_io_schema_version": "1.0.0",
        "adapter_id": origin.adapter(),
        "model_id": models(answered),
        "mode": "record",
        "interactions": interactions.collect::<Vec<_>>(),
    });
    // Not hashed: runs with the same answers have the same session.
    set(&mut session, "run_id", Some(head.id.as_str().into()));
    set(&mut session, "created_at_utc", head.started_at.map(time));
    set(&mut session, "ended_at_utc", ended.map(time));
    #[expect(
        clippy::expect_used,
        reason = "the text is that of a value, and part of a hash must not be a default"
    )]
    let import = origin
        .import(SESSION_PROFILE)
        .map(|import| serde_json::from_str(&compact::text(&import)).expect("a value is written as JSON"));
    set(&mut session, "import", import);
    session.to_string().into_bytes()
}

/// Adds a member to an object, if there is a value for it.
fn set(object: &mut Json, name: &str, value: Option<Json>) {
    if let (Some(value), Some(members)) = (value, object.as_object_mut()) {
        members.insert(name.to_owned(), value);
    }
}

/// Returns the models that were asked, by name, in the order of their names.
fn models(answered: &[SessionCall<'_>]) -> String {
    let mut models: Vec<String> =
        answered.iter().map(|answered| answered.call.request.model.clone()).collect();
    models.sort_unstable();
    models.dedup();
    models.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::request_store::RequestStore;
    use crate::calls::run::{CallOutcome, CallRecord, CompleteRequest};
    use crate::conversation::response::RetryHeaders;
    use crate::formats;

    fn call(number: u64, status: u16, body: String) -> CallRecord {
        let retry = RetryHeaders::default();
        let request = format!("{{\"input\":{number},\"model\":\"m\"}}");
        let answer = CallResponse { status, content_type: None, retry, body, chunks: Vec::new() };
        let request = CompleteRequest { prompt: request.clone(), payload: request };
        CallRecord::sample(number, request, CallOutcome::Answered(answer))
    }

    fn sessions(calls: &[CallRecord]) -> Vec<Vec<u8>> {
        let head = RunHead::new(None, 0, DateTime::UNIX_EPOCH, "{}".to_owned());
        let calls = RequestStore::store_all(calls.iter().cloned()).unwrap();
        let documents = documents(CallOrigin::Gateway, &head, &calls);
        for document in &documents {
            let kind = formats::named("model_io").unwrap();
            let admitted = kind.admit(document.clone(), &crate::artifact::AdmitOptions::default());
            assert!(admitted.is_ok());
        }
        documents
    }

    #[test]
    fn answers_become_interactions_and_errors_do_not() {
        let calls = [
            call(0, 200, "one".to_owned()),
            call(1, 500, "error".to_owned()),
            call(2, 200, "two".to_owned()),
        ];
        let documents = sessions(&calls);
        let session: serde_json::Value = serde_json::from_slice(&documents[0]).unwrap();
        let texts: Vec<_> = session["interactions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["response_content"].clone())
            .collect();
        assert_eq!(texts, ["one", "two"]);
        assert_eq!(session["model_id"], "m");
        assert!(sessions(&[call(0, 404, String::new())]).is_empty());
    }

    #[test]
    fn the_limits_of_the_format_are_kept() {
        let long = "x".repeat(MAX_RESPONSE_BYTES + 1);
        assert!(sessions(&[call(0, 200, long)]).is_empty());
        let calls: Vec<CallRecord> = (0..10_001).map(|number| call(number, 200, "x".to_owned())).collect();
        assert_eq!(sessions(&calls).len(), 2);
    }
}
