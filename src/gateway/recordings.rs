//! The recorded answers in a vault.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::calls::call::ResponseForm;
use crate::calls::matching::MatchingRules;
use crate::calls::origin::{SOURCE, SOURCES};
use crate::calls::provider::{ANY, Endpoint, PathIdentity, Provider};
use crate::calls::recorded_run::{self, AnsweredCall, KIND, RecordedCalls, UnansweredCall};
use crate::digest::{CoreHash, Digest};
use crate::json::reader::{self, Limits, excerpt};
use crate::storage::{Condition, ErrorKind, Filter, Order, Page, TimeBasis};
use crate::vault::{LookupError, Vault};

/// Maximum number of run packs that are kept in memory.
const MAX_CACHED_PACKS: usize = 32;

/// Number of run packs that are read at a time.
const PAGE: usize = 16;

/// Number of run packs that are listed at a time if most of them are not read.
const LONG_PAGE: usize = 256;

/// A call that a gateway recorded, with a complete answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// The number of the step with the request in the run pack.
    pub step: usize,
    /// The provider.
    pub provider: String,
    /// The API.
    pub endpoint: String,
    /// The text that the request is compared by: JSON in its canonical form.
    pub prompt: String,
}

/// Returns the calls with complete answers in a run pack, in the order of their requests; `None` if it was not recorded by
/// a gateway.
///
/// # Errors
/// Returns an error if the artifact is not in the vault or cannot be read.
pub fn recorded_calls(vault: &Vault, run_pack: CoreHash) -> Result<Option<Vec<RecordedCall>>, LookupError> {
    let document = vault.get(&run_pack.0.into())?;
    let call = |AnsweredCall { step, provider, endpoint, prompt, .. }| RecordedCall {
        step,
        provider,
        endpoint,
        prompt,
    };
    Ok(recorded_run::read(&document).map(|recorded| recorded.into_iter().map(call).collect()))
}

/// A run pack that a gateway recorded, or that was imported.
#[derive(Clone, Debug)]
pub(super) struct RecordedRunPack {
    pub(super) core: CoreHash,
    pub(super) recorded: Arc<Vec<AnsweredCall>>,
    /// The requests without a complete answer.
    pub(super) unanswered: Arc<Vec<UnansweredCall>>,
}

/// A recorded failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedFailure {
    pub(super) run: CoreHash,
    pub(super) step: usize,
    pub(super) reason: String,
    /// Whether there is a complete response.
    pub(super) is_complete: bool,
}

/// The recordings that a request may be answered from.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayScope {
    /// The only run pack; all of the vault without it.
    pub(super) only: Option<CoreHash>,
    pub(super) failures: ReplayedFailures,
}

/// The failures that are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayedFailures {
    /// None: the server is asked again.
    None,
    /// Responses with an error status. Others would be taken for answers.
    ErrorStatus,
    /// All complete responses: the recording was chosen.
    All,
}

impl ReplayedFailures {
    /// Returns whether a recorded response is replayed.
    pub(super) fn allow(self, recorded: &AnsweredCall) -> bool {
        match self {
            Self::None => recorded.failure.is_none(),
            Self::ErrorStatus => recorded.failure.is_none() || !recorded.answer.has_success_status(),
            Self::All => true,
        }
    }
}

/// A request to look up.
#[derive(Clone, Debug)]
pub(super) struct RecordingLookup {
    pub(super) provider: String,
    pub(super) endpoint: &'static Endpoint,
    pub(super) path: String,
    /// The digest of the query without keys, if requests of the API are compared by it.
    pub(super) query: Option<String>,
    pub(super) prompt: String,
    pub(super) form: ResponseForm,
}

impl RecordingLookup {
    pub(super) fn digest(&self) -> Digest {
        Digest::from_content(self.prompt.as_bytes())
    }

    /// Returns what requests with the same prompt are told apart by.
    pub(super) fn target(&self) -> String {
        let PathIdentity { resources, method } = self.endpoint.path_identity(&self.path);
        format!("{}/{} {resources:?} {method:?} {:?}", self.provider, self.endpoint.name, self.query)
    }

    pub(super) fn is_answered_by(&self, recorded: &AnsweredCall) -> bool {
        self.is_same_api(recorded)
            && recorded.prompt == self.prompt
            && self.has_resources(&recorded.path, recorded.query.as_deref())
            // Errors are sent in one piece, also to clients that expect a stream.
            && (!recorded.answer.has_success_status() || recorded.form == self.form && self.has_method(&recorded.path))
    }

    /// Returns whether it is a request that was recorded without an answer.
    pub(super) fn is(&self, unanswered: &UnansweredCall) -> bool {
        let UnansweredCall { provider, endpoint, path, query, prompt, .. } = unanswered;
        *provider == self.provider
            && endpoint == self.endpoint.name
            && *prompt == self.prompt
            && self.has_resources(path, query.as_deref())
    }

    /// Returns whether a recorded request is one of the same API.
    pub(super) fn is_same_api(&self, recorded: &AnsweredCall) -> bool {
        recorded.provider == self.provider && recorded.endpoint == self.endpoint.name
    }

    /// Returns whether a recorded request asked the same model or server, as far as its path says that.
    fn has_resources(&self, path: &str, query: Option<&str>) -> bool {
        let identity = |path| self.endpoint.path_identity(path).resources;
        identity(path) == identity(&self.path) && query == self.query.as_deref()
    }

    /// Returns whether a recorded path has the same method: one asks for a document, another for an array of events.
    fn has_method(&self, path: &str) -> bool {
        let identity = |path| self.endpoint.path_identity(path).method;
        identity(path) == identity(&self.path)
    }

    /// Returns in which way the URL of a recorded request differs, if requests are compared by that.
    pub(super) fn url_difference(&self, recorded: &AnsweredCall) -> Option<String> {
        let identity = |path| self.endpoint.path_identity(path);
        if identity(&recorded.path) != identity(&self.path) {
            let (one, other) = (excerpt(&recorded.path), excerpt(&self.path));
            return Some(format!("the path differs: recorded {one}, requested {other}"));
        }
        (recorded.query != self.query).then(|| "the query of the URL differs".to_owned())
    }
}

/// Reads run packs, and keeps those that were read last.
#[derive(Debug, Default)]
pub(super) struct RunPackCache {
    kept: Mutex<VecDeque<RecordedRunPack>>,
    /// The rules by which prompts are made of the recorded requests. Without any, recordings have the prompts that they
    /// state.
    rules: MatchingRules,
    /// The digests of the prompts of all run packs that were read, if rules make them.
    prompts: Mutex<HashMap<CoreHash, HashSet<Digest>>>,
}

impl RunPackCache {
    /// Creates a cache of run packs whose requests are compared by these rules.
    pub(super) fn new(rules: MatchingRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Returns a run pack, or `None` if it does not have the profile of a gateway.
    ///
    /// # Errors
    /// Returns an error if it is not in the vault or cannot be read.
    pub(super) fn pack(&self, vault: &Vault, core: CoreHash) -> Result<Option<RecordedRunPack>, LookupError> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pack) = lock().iter().find(|pack| pack.core == core) {
            return Ok(Some(pack.clone()));
        }
        let document = vault.get(&core.0.into())?;
        let run = recorded_run::read_all(&document).map(|run| self.with_own_prompts(run));
        if !self.rules.is_empty() {
            let prompts = run.as_ref().map(prompt_digests).unwrap_or_default();
            self.lock_prompts().insert(core, prompts);
        }
        let Some(RecordedCalls { recorded, unanswered }) = run else { return Ok(None) };
        let pack = RecordedRunPack { core, recorded: Arc::new(recorded), unanswered: Arc::new(unanswered) };
        let mut kept = lock();
        kept.truncate(MAX_CACHED_PACKS - 1);
        kept.push_front(pack.clone());
        Ok(Some(pack))
    }

    /// A panic of another thread leaves nothing half changed.
    fn lock_prompts(&self) -> std::sync::MutexGuard<'_, HashMap<CoreHash, HashSet<Digest>>> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the prompts of recordings by those that the rules make of their requests: what was recorded without these
    /// rules is compared by them, too.
    fn with_own_prompts(&self, mut run: RecordedCalls) -> RecordedCalls {
        if self.rules.is_empty() {
            return run;
        }
        for AnsweredCall { provider, path, request, prompt, .. } in &mut run.recorded {
            *prompt = self.own_prompt(provider, path, request).unwrap_or_else(|| std::mem::take(prompt));
        }
        for UnansweredCall { provider, path, request, prompt, .. } in &mut run.unanswered {
            *prompt = self.own_prompt(provider, path, request).unwrap_or_else(|| std::mem::take(prompt));
        }
        run
    }

    fn own_prompt(&self, provider: &str, path: &str, request: &str) -> Option<String> {
        let endpoint = Provider::named(provider).and_then(|provider| provider.endpoint(path)).unwrap_or(&ANY);
        let request = reader::read(request.as_bytes(), &Limits::most()).ok()?;
        let (path, request) = (self.rules.redacted_path(path), self.rules.redacted_value(&request));
        self.rules.prompt(endpoint, &path, &request)
    }

    /// Calls `visit` with recordings until it returns false: those that have a prompt, last seen first; or all, those of
    /// gateways before those that were imported.
    pub(super) fn visit(
        &self,
        vault: &Vault,
        prompt: Option<Digest>,
        visit: &mut dyn FnMut(RecordedRunPack) -> bool,
    ) -> Result<(), LookupError> {
        if !vault.is_created() {
            return Ok(());
        }
        if let Some(prompt) = prompt {
            let (filter, page) = if self.rules.is_empty() {
                (filter(Some(prompt), None), PAGE)
            } else {
                // The index has only the prompts that run packs state.
                (filter(None, None), LONG_PAGE)
            };
            self.visit_those(
                vault,
                &filter,
                Page::first(page),
                &mut |core| self.may_have(core, prompt),
                visit,
            )?;
            return Ok(());
        }
        for source in SOURCES {
            let filter = filter(None, Some(source));
            if !self.visit_those(vault, &filter, Page::first(PAGE), &mut |_| true, visit)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns false if a run pack was read, and it has no recording with this prompt.
    fn may_have(&self, core: CoreHash, prompt: Digest) -> bool {
        self.lock_prompts().get(&core).is_none_or(|prompts| prompts.contains(&prompt))
    }

    /// Calls `visit` with the recordings that a filter finds and that `is_wanted` selects, and returns whether it always
    /// returned true.
    fn visit_those(
        &self,
        vault: &Vault,
        filter: &Filter,
        mut page: Page,
        is_wanted: &mut dyn FnMut(CoreHash) -> bool,
        visit: &mut dyn FnMut(RecordedRunPack) -> bool,
    ) -> Result<bool, LookupError> {
        loop {
            // It is not open while run packs are read, each of which needs a connection of its own. Every request waits for
            // this, so that no more is read than is needed, such as how many others there are.
            let found = vault.snapshot()?.find(filter, Order::Newest(TimeBasis::LastSeen), &page)?;
            for hit in found.items.into_iter().filter(|hit| is_wanted(hit.artifact.core)) {
                match self.pack(vault, hit.artifact.core) {
                    Ok(Some(pack)) => {
                        if !visit(pack) {
                            return Ok(false);
                        }
                    }
                    Ok(None) => {}
                    // It was removed since.
                    Err(LookupError::Store(error)) if error.kind() == ErrorKind::Gone => {}
                    Err(error) => return Err(error),
                }
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => return Ok(true),
            }
        }
    }
}

fn prompt_digests(run: &RecordedCalls) -> HashSet<Digest> {
    let recorded = run.recorded.iter().map(|recorded| &recorded.prompt);
    let prompts = recorded.chain(run.unanswered.iter().map(|unanswered| &unanswered.prompt));
    prompts.map(|prompt| Digest::from_content(prompt.as_bytes())).collect()
}

/// Other run packs that state the prompt are found too; they do not have the profile.
fn filter(prompt: Option<Digest>, source: Option<&str>) -> Filter {
    let recorded =
        source.map(|source| Condition::Attribute { name: SOURCE.to_owned(), value: source.to_owned() });
    let group = || Some(crate::artifact::group::PROMPT.to_owned());
    let mentioned = prompt.map(|digest| Condition::Mention { group: group(), digest });
    let conditions = mentioned.into_iter().chain(recorded).collect();
    Filter { kinds: vec![KIND.to_owned()], conditions, ..Filter::default() }
}
