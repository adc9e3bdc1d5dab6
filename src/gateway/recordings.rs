//! The recorded answers in a vault.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::calls::directories::RunDirectories;
use crate::calls::matching::MatchingRules;
use crate::calls::recorded_run::{self, AnsweredCall, KIND, RecordedCalls, RequestRecord, UnansweredCall};
use crate::calls::run::{CompleteRequest, SOURCE, SOURCES};
use crate::conversation::providers::provider::PathIdentity;
use crate::conversation::providers::{Endpoint, endpoint};
use crate::conversation::response::ResponseForm;
use crate::digest::{CoreHash, Digest};
use crate::json::reader::{self, Limits, excerpt};
use crate::storage::{Condition, ErrorKind, Filter, Order, Page, TimeBasis};
use crate::vault::{LookupError, Vault};

/// Maximum number of run packs that are kept in memory.
const MAX_CACHED_PACKS: usize = 32;

/// The attribute with the id of a run.
const RUN_ID: &str = "run_id";

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
    /// The text that the request is compared by: JSON in its canonical form. Empty if the request is an attachment.
    pub prompt: String,
}

/// Returns the calls with complete answers in a run pack, in the order of their requests; `None` if it was not recorded by
/// a gateway.
///
/// # Errors
/// Returns an error if the artifact is not in the vault or cannot be read.
pub fn recorded_calls(vault: &Vault, run_pack: CoreHash) -> Result<Option<Vec<RecordedCall>>, LookupError> {
    let document = vault.get(&run_pack.0.into())?;
    let Some(recorded) = recorded_run::read(&document) else { return Ok(None) };
    let mut requests = recorded_run::requests(&document);
    let calls = recorded.into_iter().map(|call| {
        let RequestRecord { step, provider, endpoint, .. } = call.request;
        let prompt = requests.remove(&step).map(|request| request.prompt).unwrap_or_default();
        RecordedCall { step, provider, endpoint, prompt }
    });
    Ok(Some(calls.collect()))
}

/// A run pack that a gateway recorded, or that was imported; or all run packs of a run that has several.
#[derive(Clone, Debug)]
pub(super) struct RecordedRunPack {
    /// The id of the run.
    pub(super) run_id: Arc<str>,
    /// The run packs, in their order, each with the number of its first step in the run.
    packs: Arc<Vec<(CoreHash, usize)>>,
    pub(super) recorded: Arc<Vec<AnsweredCall>>,
    /// The requests without a complete answer.
    pub(super) unanswered: Arc<Vec<UnansweredCall>>,
    /// The directories that its requests were compared without.
    directories: Arc<RunDirectories>,
}

/// A function that is called with a recorded call, the core hash of its run pack, and a function that returns its prompt.
type PromptVisitor<'f> = dyn FnMut(CoreHash, &AnsweredCall, &dyn Fn() -> String) + 'f;

impl RecordedRunPack {
    /// Returns the core hash of the run pack with this position in the run.
    pub(super) fn core(&self, pack: usize) -> Option<CoreHash> {
        self.packs.get(pack).map(|(core, _)| *core)
    }

    /// Returns the number of the step with a request in the run.
    fn step(&self, request: &RequestRecord) -> usize {
        self.packs.get(request.pack).map_or(0, |(_, first)| *first) + request.step
    }

    /// Returns the body of one of its answers for a run with these directories.
    pub(super) fn moved(&self, here: &RunDirectories, body: String) -> String {
        self.directories.moved(here, body)
    }

    /// Returns the recorded calls, each with the core hash of its run pack.
    pub(super) fn recorded(&self) -> impl Iterator<Item = (CoreHash, &AnsweredCall)> {
        self.recorded.iter().filter_map(|recorded| Some((self.core(recorded.request.pack)?, recorded)))
    }
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
    /// The number of the step from which on calls are made again; `None` to replay all.
    pub(super) rerun_from: Option<usize>,
}

impl ReplayScope {
    /// Returns whether a recording is replayed.
    pub(super) fn allows(self, pack: &RecordedRunPack, recorded: &AnsweredCall) -> bool {
        let is_made_again = self.rerun_from.is_some_and(|from| pack.step(&recorded.request) >= from);
        self.failures.allow(recorded) && !is_made_again
    }
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
    /// The body, as it is stored.
    pub(super) payload: String,
    /// The digest of the text that it is compared by, which can have as many bytes as the body.
    pub(super) digest: Digest,
    pub(super) form: ResponseForm,
}

impl RecordingLookup {
    /// Returns the text that it is compared by.
    pub(super) fn prompt(&self, rules: &MatchingRules) -> Option<String> {
        let request = reader::read(self.payload.as_bytes(), &Limits::most()).ok()?;
        rules.prompt(self.endpoint, &self.path, &request)
    }

    /// Returns what requests with the same prompt are told apart by.
    pub(super) fn target(&self) -> String {
        let PathIdentity { resources, method } = self.endpoint.path_identity(&self.path);
        format!("{}/{} {resources:?} {method:?} {:?}", self.provider, self.endpoint.name, self.query)
    }

    pub(super) fn is_answered_by(&self, recorded: &AnsweredCall) -> bool {
        // One method asks for a document, another for an array of events.
        let method = |path| self.endpoint.path_identity(path).method;
        let has_form = || recorded.form == self.form && method(&recorded.request.path) == method(&self.path);
        // Errors are sent in one piece, also to clients that expect a stream.
        self.is(&recorded.request) && (!recorded.answer.has_success_status() || has_form())
    }

    /// Returns whether a recorded request has the same prompt, and asked the same model or server as far as its path says.
    pub(super) fn is(&self, recorded: &RequestRecord) -> bool {
        let resources = |path| self.endpoint.path_identity(path).resources;
        self.is_same_api(recorded)
            && recorded.prompt == self.digest
            && resources(&recorded.path) == resources(&self.path)
            && recorded.query == self.query
    }

    /// Returns whether a recorded request is one of the same API.
    pub(super) fn is_same_api(&self, recorded: &RequestRecord) -> bool {
        recorded.provider == self.provider && recorded.endpoint == self.endpoint.name
    }

    /// Returns in which way the URL of a recorded request differs, if requests are compared by that.
    pub(super) fn url_difference(&self, recorded: &RequestRecord) -> Option<String> {
        let identity = |path| self.endpoint.path_identity(path);
        if identity(&recorded.path) != identity(&self.path) {
            let (one, other) = (excerpt(&recorded.path), excerpt(&self.path));
            return Some(format!("the path differs: recorded {one}, requested {other}"));
        }
        (recorded.query != self.query).then(|| "the query of the URL differs".to_owned())
    }
}

/// The recordings that are looked through.
#[derive(Clone, Copy, Debug)]
pub(super) enum RecordingSearch {
    /// All: those of gateways before those that were imported.
    All,
    /// Those that state this prompt, last seen first; if all recordings are read, those that have it.
    Stating(Digest),
    /// Those that have this prompt with the rules, whichever they state, last seen first.
    Having(Digest),
}

/// Reads the run packs of a vault, and keeps those that were read last.
pub(super) struct RunPackCache {
    vault: Arc<Vault>,
    kept: Mutex<VecDeque<RecordedRunPack>>,
    /// The rules by which prompts are made of the recorded requests. Without any, recordings have the prompts that they
    /// state.
    pub(super) rules: MatchingRules,
    /// Whether all recordings are read to find a prompt, and not only those that state it.
    reads_all: bool,
    /// The digests of the prompts of all run packs that were read, if rules make them.
    prompts: Mutex<HashMap<CoreHash, HashSet<Digest>>>,
}

impl RunPackCache {
    /// Creates a cache of run packs whose requests are compared by these rules.
    pub(super) fn new(vault: Arc<Vault>, rules: MatchingRules, reads_all: bool) -> Self {
        let reads_all = reads_all && !rules.is_empty();
        Self { vault, rules, reads_all, kept: Mutex::default(), prompts: Mutex::default() }
    }

    /// Returns a run pack, or `None` if it does not have the profile of a gateway.
    ///
    /// # Errors
    /// Returns an error if it is not in the vault or cannot be read.
    pub(super) fn pack(&self, core: CoreHash) -> Result<Option<RecordedRunPack>, LookupError> {
        if let Some(pack) =
            self.kept.lock().iter().find(|pack| pack.packs.iter().any(|(own, _)| *own == core))
        {
            return Ok(Some(pack.clone()));
        }
        let document = self.vault.get(&core.0.into())?;
        let Some(run) = recorded_run::read_all(&document) else {
            if !self.rules.is_empty() {
                self.prompts.lock().insert(core, HashSet::new());
            }
            return Ok(None);
        };
        let packs = if run.part.is_some() { self.parts(core, run)? } else { vec![(core, run)] };
        let run_id = packs.first().map(|(_, run)| run.run_id.as_str()).unwrap_or_default().into();
        let (mut cores, mut recorded, mut unanswered) = (Vec::new(), Vec::new(), Vec::new());
        let (mut directories, mut first_step) = (RunDirectories::default(), 0);
        for (position, (core, mut run)) in packs.into_iter().enumerate() {
            if !self.rules.is_empty() {
                self.set_own_prompts(&self.vault.get(&core.0.into())?, &mut run);
                let prompts = requests(&mut run).map(|request| request.prompt).collect();
                self.prompts.lock().insert(core, prompts);
            }
            requests(&mut run).for_each(|request| request.pack = position);
            cores.push((core, first_step));
            first_step += run.steps;
            recorded.append(&mut run.recorded);
            unanswered.append(&mut run.unanswered);
            directories = run.directories;
        }
        let pack = RecordedRunPack {
            run_id,
            packs: Arc::new(cores),
            recorded: Arc::new(recorded),
            unanswered: Arc::new(unanswered),
            directories: Arc::new(directories),
        };
        let mut kept = self.kept.lock();
        kept.truncate(MAX_CACHED_PACKS - 1);
        kept.push_front(pack.clone());
        Ok(Some(pack))
    }

    /// Returns the bytes of a body that is an attachment.
    pub(super) fn attachment(&self, body: Digest) -> Result<Vec<u8>, LookupError> {
        self.vault.get(&body.into())
    }

    /// Replaces the prompts of recordings by those that the rules make of their requests: what was recorded without these
    /// rules is compared by them, too.
    fn set_own_prompts(&self, document: &[u8], run: &mut RecordedCalls) {
        let rules = self.rules.with_directories(&run.directories);
        let mut recorded: HashMap<_, _> = requests(run).map(|request| (request.step, request)).collect();
        recorded_run::visit_requests(document, &mut |step, request| {
            if let Some(recorded) = recorded.get_mut(&step)
                && let Some(own) = own_prompt(&rules, recorded, &request().payload)
            {
                recorded.prompt = Digest::from_content(own.as_bytes());
            }
        });
    }

    /// Calls `visit` with the recorded calls of a run and the text that each is compared by. Those whose requests are
    /// attachments are left out.
    pub(super) fn visit_prompts(
        &self,
        pack: &RecordedRunPack,
        visit: &mut PromptVisitor<'_>,
    ) -> Result<(), LookupError> {
        let rules = self.rules.with_directories(&pack.directories);
        for (position, (core, _)) in pack.packs.iter().enumerate() {
            let document = self.vault.get(&core.0.into())?;
            recorded_run::visit_requests(&document, &mut |step, request| {
                // The calls are in the order of their steps.
                let place = |call: &AnsweredCall| (call.request.pack, call.request.step);
                let found = pack.recorded.binary_search_by_key(&(position, step), place);
                let Some(recorded) = found.ok().and_then(|index| pack.recorded.get(index)) else { return };
                visit(*core, recorded, &|| {
                    let CompleteRequest { prompt, payload } = request();
                    let has_rules = !self.rules.is_empty();
                    let own = has_rules.then(|| own_prompt(&rules, &recorded.request, &payload)).flatten();
                    own.unwrap_or(prompt)
                });
            });
        }
        Ok(())
    }

    /// Returns the run packs of a run that has several, in their order; `core` is one of them.
    fn parts(
        &self,
        core: CoreHash,
        run: RecordedCalls,
    ) -> Result<Vec<(CoreHash, RecordedCalls)>, LookupError> {
        let has_id = Condition::Attribute { name: RUN_ID.to_owned(), value: run.run_id.clone() };
        let filter = Filter { kinds: vec![KIND.to_owned()], conditions: vec![has_id], ..Filter::default() };
        let hits = self.vault.snapshot()?.find(&filter, Order::Newest(TimeBasis::LastSeen), &Page::all())?;
        let mut others = HashMap::new();
        for hit in hits.items.into_iter().map(|hit| hit.artifact.core).filter(|other| *other != core) {
            let document = match self.vault.get(&hit.0.into()) {
                Ok(document) => document,
                Err(LookupError::Store(error)) if error.kind() == ErrorKind::Gone => continue,
                Err(error) => return Err(error),
            };
            others.extend(recorded_run::read_all(&document).map(|run| (hit, run)));
        }
        let mut parts = VecDeque::from([(core, run)]);
        while let Some(previous) = parts.front().and_then(|(_, run)| run.previous).map(CoreHash)
            && let Some(run) = others.remove(&previous)
        {
            parts.push_front((previous, run));
        }
        while let Some(last) = parts.back().map(|(core, _)| core.0)
            && let Some(next) =
                others.iter().find(|(_, run)| run.previous == Some(last)).map(|(core, _)| *core)
            && let Some(run) = others.remove(&next)
        {
            parts.push_back((next, run));
        }
        Ok(parts.into())
    }

    /// Returns the run pack from which a recording is replayed: itself, or that of a session that a gateway recorded.
    ///
    /// # Errors
    /// Returns an error if the artifact is not in the vault or cannot be read.
    pub(super) fn pack_of(&self, core: CoreHash) -> Result<Option<CoreHash>, LookupError> {
        if self.pack(core)?.is_some() {
            return Ok(Some(core));
        }
        for other in self.vault.linked_by(core, "replays")? {
            if self.pack(other)?.is_some() {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    /// Returns whether there can be recordings of a prompt that do not state it, because they were made with other rules,
    /// and that were not read.
    pub(super) fn can_have_others(&self) -> bool {
        !self.rules.is_empty() && !self.reads_all
    }

    /// Calls `visit` with the recording `only`; or with recordings until it returns false: those of a search.
    pub(super) fn visit(
        &self,
        only: Option<CoreHash>,
        search: RecordingSearch,
        visit: &mut dyn FnMut(RecordedRunPack) -> bool,
    ) -> Result<(), LookupError> {
        if let Some(core) = only {
            self.pack(core)?.map(visit);
            return Ok(());
        }
        if !self.vault.is_created() {
            return Ok(());
        }
        let prompt = match search {
            RecordingSearch::All => None,
            // The index has only the prompts that run packs state.
            RecordingSearch::Stating(prompt) if !self.reads_all => {
                Some((prompt, filter(Some(prompt), None), PAGE))
            }
            RecordingSearch::Stating(prompt) | RecordingSearch::Having(prompt) => {
                Some((prompt, filter(None, None), LONG_PAGE))
            }
        };
        if let Some((prompt, filter, page)) = prompt {
            let mut may_have = |core| self.may_have(core, prompt);
            return self.visit_those(&filter, Page::first(page), &mut may_have, visit).map(drop);
        }
        for source in SOURCES {
            let filter = filter(None, Some(source));
            if !self.visit_those(&filter, Page::first(PAGE), &mut |_| true, visit)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns false if a run pack was read, and it has no recording with this prompt.
    fn may_have(&self, core: CoreHash, prompt: Digest) -> bool {
        self.prompts.lock().get(&core).is_none_or(|prompts| prompts.contains(&prompt))
    }

    /// Calls `visit` with the recordings that a filter finds and that `is_wanted` selects, and returns whether it always
    /// returned true.
    fn visit_those(
        &self,
        filter: &Filter,
        mut page: Page,
        is_wanted: &mut dyn FnMut(CoreHash) -> bool,
        visit: &mut dyn FnMut(RecordedRunPack) -> bool,
    ) -> Result<bool, LookupError> {
        // The first run packs of the runs that were visited and have several.
        let mut visited = HashSet::new();
        loop {
            // It is not open while run packs are read, each of which needs a connection of its own. Every request waits for
            // this, so that no more is read than is needed, such as how many others there are.
            let found = self.vault.snapshot()?.find(filter, Order::Newest(TimeBasis::LastSeen), &page)?;
            for hit in found.items.into_iter().filter(|hit| is_wanted(hit.artifact.core)) {
                match self.pack(hit.artifact.core) {
                    Ok(Some(pack)) => {
                        let is_new = pack.packs.len() == 1 || visited.insert(pack.core(0));
                        if is_new && !visit(pack) {
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

/// Returns the text that rules make of a recorded request.
fn own_prompt(rules: &MatchingRules, recorded: &RequestRecord, request: &str) -> Option<String> {
    let request = reader::read(request.as_bytes(), &Limits::most()).ok()?;
    let endpoint = endpoint(&recorded.provider, &recorded.path);
    let path = rules.redacted_path(&recorded.path);
    rules.prompt(endpoint, &path, &rules.redacted_value(&request))
}

/// Returns the requests of a run pack.
fn requests(run: &mut RecordedCalls) -> impl Iterator<Item = &mut RequestRecord> {
    let RecordedCalls { recorded, unanswered, .. } = run;
    let recorded = recorded.iter_mut().map(|call| &mut call.request);
    recorded.chain(unanswered.iter_mut().map(|call| &mut call.request))
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use chrono::DateTime;

    use super::*;
    use crate::calls::request_store::RequestStore;
    use crate::calls::run::CallOrigin;
    use crate::calls::run::RunHead;
    use crate::calls::run::{CallOutcome, CallRecord};
    use crate::calls::run_parts::{PartLimits, RunDocuments, RunSink};
    use crate::conversation::response::{CallResponse, RetryHeaders};
    use crate::intake::ExamineOptions;
    use crate::vault::list::ListRequest;
    use crate::vault::resolve::ResolveRequest;
    use crate::vault::view::ViewRequest;

    struct Packs(Vec<Vec<u8>>);

    impl RunSink for Packs {
        type Error = Infallible;

        fn attachment(&mut self, _: Vec<u8>) -> Result<(), Infallible> {
            Ok(())
        }

        fn run_pack(&mut self, document: Vec<u8>, _: Digest) -> Result<bool, Infallible> {
            self.0.push(document);
            Ok(true)
        }
    }

    /// Returns a call whose request is the same as that of all others, and whose answer states its number.
    fn call(number: u64) -> CallRecord {
        let request = r#"{"messages":[],"model":"m"}"#.to_owned();
        let request = CompleteRequest { prompt: request.clone(), payload: request };
        let outcome = CallOutcome::Answered(CallResponse {
            status: 200,
            content_type: None,
            retry: RetryHeaders::default(),
            body: format!("{{\"number\":{number}}}"),
            chunks: Vec::new(),
        });
        CallRecord { latency_ms: None, ..CallRecord::sample(number, request, outcome) }
    }

    #[test]
    fn the_parts_of_a_run_are_replayed_and_listed_as_one() {
        let directory = tempfile::tempdir().unwrap();
        let vault = Arc::new(Vault::open_or_create(&directory.path().join("runs.vault")).unwrap());
        let mut calls = RequestStore::store_all((0..6).map(call)).unwrap();
        let head = RunHead::new(Some("nightly"), 0, DateTime::UNIX_EPOCH, "{}".to_owned());
        let limits = PartLimits::new(&Limits { values: 120, ..Limits::default() });
        let mut packs = Packs(Vec::new());
        let run = RunDocuments { origin: CallOrigin::Gateway, head: &head, limits };
        run.write(&mut calls, &mut packs).unwrap();
        assert!(packs.0.len() > 2, "{}", packs.0.len());
        // In whichever order they are added.
        let add = |pack| vault.add_document(pack, &ExamineOptions::default()).unwrap().core;
        let mut cores: Vec<CoreHash> = packs.0.into_iter().rev().map(add).collect();
        cores.reverse();
        let cache = RunPackCache::new(Arc::clone(&vault), MatchingRules::default(), true);
        for core in &cores {
            let pack = cache.pack(*core).unwrap().unwrap();
            assert_eq!(pack.packs.iter().map(|(core, _)| *core).collect::<Vec<_>>(), cores);
            let numbers: Vec<usize> = pack.recorded.iter().map(|call| pack.step(&call.request)).collect();
            assert_eq!(numbers, [0, 2, 4, 6, 8, 10]);
            let answers: Vec<String> =
                pack.recorded().map(|(_, recorded)| recorded.answer.body.clone()).collect();
            let expected: Vec<String> = (0..6).map(|number| format!("{{\"number\":{number}}}")).collect();
            assert_eq!(answers, expected);
        }
        let mut visited = 0;
        let mut visit = |_: RecordedRunPack| {
            visited += 1;
            true
        };
        cache.visit(None, RecordingSearch::All, &mut visit).unwrap();
        assert_eq!(visited, 1);
        let rows = vault.run(&ListRequest::default()).unwrap().rows;
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].artifact.core_hash, rows[0].steps), (cores[0], Some(12)));
        let named = ResolveRequest { text: head.id.clone(), any_artifact: false };
        assert_eq!(named.locate(&vault).unwrap().artifact.core, cores[0]);
        let view = |core, from| vault.run(&ViewRequest { from, ..ViewRequest::new(core) }).unwrap();
        let all = view(cores[0], 0);
        assert_eq!((all.total, &all.parts), (12, &cores));
        let numbers: Vec<u64> = all.steps.iter().map(|step| step.index).collect();
        assert_eq!(numbers, (0..12).collect::<Vec<u64>>());
        for (index, step) in all.steps.iter().enumerate().skip(1).step_by(2) {
            assert_eq!(step.answers, Some(index as u64 - 1));
            let text = step.bodies.iter().find_map(|body| body.text.as_deref()).unwrap();
            assert!(text.contains(&format!("{}", index / 2)), "{text}");
        }
        assert_eq!(view(cores[0], 10).steps, all.steps[10..]);
        // Every other part is itself.
        let last = view(cores[cores.len() - 1], 0);
        assert!(last.parts.is_empty() && last.total < 12, "{}", last.total);
    }
}
