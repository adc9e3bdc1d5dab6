//! Writes calls to disk, without what must not be stored.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use tokio::task;

use super::open_calls::OpenCallEntry;
use super::run::GatewayRun;
use super::shared::{GatewayEvent, GatewayState};
use crate::calls::body;
use crate::calls::matching::MatchingRules;
use crate::calls::run::{CallOutcome, CallRecord, CompleteRequest};
use crate::conversation::providers::Endpoint;
use crate::conversation::response::CallResponse;
use crate::json::reader::{self, Limits};
use crate::secrets::{self, SecretMatch, SecretPolicy};

/// A call that a run waits for.
pub(super) struct OpenCall(pub(super) Arc<GatewayRun>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A call that is being recorded. Its run waits until it is on disk.
pub(super) struct PendingCall {
    pub(super) open: OpenCall,
    /// The call in the list of those that are lost if the process is killed. It is there until the call is on disk.
    pub(super) entry: Option<OpenCallEntry>,
    pub(super) endpoint: &'static Endpoint,
    /// The call, without the prompt: it has about as many bytes as the body of the request, and is made when it is written.
    pub(super) record: CallRecord,
}

impl PendingCall {
    /// Writes the call on another thread, as [`write`](Self::write) does.
    pub(super) async fn write_on_thread(self, shared: &Arc<GatewayState>) -> io::Result<bool> {
        let shared = Arc::clone(shared);
        let written = task::spawn_blocking(move || self.write(&shared)).await;
        written.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Writes the call to disk as it may be stored, and returns whether its outcome was written: not if secrets are refused
    /// and it has one, nor if its answer must not be stored. To redact an answer can take long.
    fn write(self, shared: &GatewayState) -> io::Result<bool> {
        let Self { open, entry: _entry, endpoint, record: mut call } = self;
        let (outcome, unredactable) = redacted(&shared.options.rules, call.outcome);
        call.outcome = outcome;
        if let Some(reason) = &unredactable {
            let CallRecord { provider, path, .. } = &call;
            shared.report(&GatewayEvent::NotRecorded { provider, path, reason });
        }
        let policy = shared.options.secrets;
        if has_secrets(&call, policy, &*shared.options.report) && policy == SecretPolicy::Refuse {
            return Ok(false);
        }
        let CallRecord { path, request: CompleteRequest { prompt, payload }, .. } = &mut call;
        *prompt = reader::read(payload.as_bytes(), &Limits::most())
            .ok()
            .and_then(|request| shared.options.rules.prompt(endpoint, path, &request))
            .ok_or_else(|| io::Error::other("the request has no canonical form"))?;
        open.0.record(&shared.spool, call).map(|()| unredactable.is_none())
    }

    /// Writes a call without a complete answer to disk.
    pub(super) fn write_failure(self, shared: &GatewayState) {
        if let Err(error) = self.write(shared) {
            let reason = format!("the failure of a call could not be recorded: {error}");
            shared.report(&GatewayEvent::Failed { reason: &reason });
        }
    }
}

/// Returns the outcome of a call as it may be stored, and why the answer is not stored if it must not be.
fn redacted(rules: &MatchingRules, outcome: CallOutcome) -> (CallOutcome, Option<String>) {
    let text = |text: String| rules.redacted(&text).into_owned();
    let answer = match outcome {
        CallOutcome::Answered(answer) => answer,
        CallOutcome::Failed { reason, partial } => {
            let partial = rules.redacted_beginning(&partial);
            return (CallOutcome::Failed { reason: text(reason), partial }, None);
        }
    };
    let body = match rules.redacted_body(&answer.body) {
        Ok(Cow::Borrowed(_)) => None,
        Ok(Cow::Owned(body)) => Some(body),
        Err(unredactable) => {
            let reason = format!("the answer is not stored: {unredactable}");
            return (CallOutcome::Failed { reason: reason.clone(), partial: String::new() }, Some(reason));
        }
    };
    let CallResponse { status, content_type, retry, body: unchanged, chunks } = answer;
    let (content_type, retry) =
        (content_type.map(text), retry.map(|value| rules.redacted(value).into_owned()));
    let body = body.unwrap_or(unchanged);
    (CallOutcome::Answered(CallResponse { status, content_type, retry, body, chunks }), None)
}

/// Reports what looks like a secret in a call, and returns whether there is any. Nothing is looked for if the policy is to
/// ignore it.
fn has_secrets(call: &CallRecord, policy: SecretPolicy, report: &dyn Fn(&GatewayEvent<'_>)) -> bool {
    if policy == SecretPolicy::Ignore {
        return false;
    }
    let secrets = found(call);
    if !secrets.is_empty() {
        let refused = policy == SecretPolicy::Refuse;
        report(&GatewayEvent::Secrets {
            provider: &call.provider,
            path: &call.path,
            secrets: &secrets,
            refused,
        });
    }
    !secrets.is_empty()
}

/// Returns whether a call that was recorded before is refused now, and reports it.
pub(super) fn is_refused(
    call: &CallRecord,
    policy: SecretPolicy,
    report: &dyn Fn(&GatewayEvent<'_>),
) -> bool {
    policy == SecretPolicy::Refuse && has_secrets(call, policy, report)
}

/// Returns what looks like a secret in what is recorded of a call: in its bytes, or in the texts that a client reads from
/// them.
fn found(call: &CallRecord) -> Vec<SecretMatch> {
    let answer = match &call.outcome {
        CallOutcome::Answered(answer) => &answer.body,
        CallOutcome::Failed { partial, .. } => partial,
    };
    let mut found: Vec<SecretMatch> = Vec::new();
    for (name, body) in [("request", &call.request.payload), ("answer", answer)] {
        found.extend(secrets::find(body.as_bytes()).into_iter().map(|secret| secret.within(name)));
        body::visit_decoded(body, &mut |text| {
            for secret in secrets::find(text.as_bytes()) {
                let is_known = |known: &SecretMatch| {
                    (&known.rule, &known.beginning) == (&secret.rule, &secret.beginning)
                };
                // What the bytes contain is in the texts, too.
                if !found.iter().any(is_known) {
                    found.push(secret.within(&format!("text of the {name}")));
                }
            }
        });
    }
    found
}
