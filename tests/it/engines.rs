//! Operations without the command line: the same requests on both engines, and the same answers.

use std::fmt::Debug;

use runvault::digest::{CoreHash, Digest};
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::storage::{BackupError, ErrorKind, StorageError};
use runvault::vault::add::{AddMonitor, ExaminedDocument};
use runvault::vault::annotate::{AddLinkRequest, PinRequest, UnpinRequest};
use runvault::vault::api::{Operation, TimeBasis};
use runvault::vault::backup::BackupRequest;
use runvault::vault::find::ArtifactFilter;
use runvault::vault::forget::{ForgetAnswer, ForgetPlan, ForgetRemoval, ForgetRequest};
use runvault::vault::fsck::Sample;
use runvault::vault::journal::{CheckJournalRequest, JournalHeadRequest};
use runvault::vault::maintenance::{ReclaimRequest, ReclaimResult, ReclaimableAnswer, ReclaimableRequest};
use runvault::vault::remove::{RemoveAnswer, RemoveRequest};
use runvault::vault::retention::Policy;
use runvault::vault::show::ShowRequest;
use runvault::vault::stats::DaysRequest;
use runvault::vault::tombstones::TombstonesRequest;
use runvault::vault::unresolved::UnresolvedRequest;
use runvault::vault::verify::{VerifyAnswer, VerifyRequest};
use runvault::{LookupError, RemoveError, Vault};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::{repository, session};

/// The shipped examples on both engines.
struct Engines {
    memory: Vault,
    file: Vault,
    directory: TempDir,
}

struct Quiet;

impl AddMonitor for Quiet {
    fn examined(&mut self, _: &ExaminedDocument) {}

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

impl Engines {
    fn with_examples() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = Vault::open_or_create(&directory.path().join("v.vault")).unwrap();
        let engines = Self { memory: Vault::in_memory(), file, directory };
        for vault in engines.both() {
            let inputs = Inputs::new(vec![Input::Path(repository("examples"))]);
            let summary = vault.add(inputs, &ExamineOptions::default(), &mut Quiet).unwrap();
            assert_eq!(summary.rejected, 0);
        }
        engines
    }

    fn both(&self) -> [&Vault; 2] {
        [&self.memory, &self.file]
    }

    fn add(&self, document: &str) -> CoreHash {
        let add = |vault: &Vault| {
            vault.add_document(document.as_bytes().to_vec(), &ExamineOptions::default()).unwrap().core
        };
        add(&self.memory);
        add(&self.file)
    }

    fn core(&self, prefix: &str) -> CoreHash {
        self.memory.locate(&prefix.parse().unwrap()).unwrap().artifact.core
    }

    /// Runs a request on both engines. The answers are the same except for times, and are read as they are written.
    fn run<O: Operation>(&self, request: &O) -> Result<O::Answer, O::Error>
    where
        O::Answer: PartialEq + Debug,
    {
        let [memory, file] = self.both().map(|vault| vault.run(request));
        match (&memory, &file) {
            (Ok(memory), Ok(file)) => {
                let [memory, file] = [memory, file].map(|answer| serde_json::to_value(answer).unwrap());
                assert_eq!(timeless(memory), timeless(file.clone()));
                assert_eq!(serde_json::to_value(read::<O::Answer>(file.clone())).unwrap(), file);
            }
            (Err(memory), Err(file)) => assert_eq!(memory.to_string(), file.to_string()),
            _ => panic!("one engine answers, the other does not"),
        }
        file
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Replaces times, and digests of a journal, which has times.
pub(crate) fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let member_value = member.take();
                *member = match name.as_str() {
                    "at" | "added_at" | "seen_at" | "removed_at" | "chain" => "(time)".into(),
                    _ => timeless(member_value),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = timeless(item.take())),
        _ => {}
    }
    value
}

const PACK: &str = "54490aab8b3f";
const SESSION: &str = "4df877dec7f4";
const PARTIAL: &str = "66c2f87e8153";
const RUN: &str = "3941d389b337";
const TRACE: &str = "7c8de5910f63";

fn removal(artifacts: Vec<CoreHash>) -> RemoveRequest {
    RemoveRequest { artifacts, ..RemoveRequest::default() }
}

#[test]
fn removals_are_refused_or_done_alike_on_both_engines() {
    let engines = Engines::with_examples();
    let [session, pack, partial, trace] = [SESSION, PACK, PARTIAL, TRACE].map(|hash| engines.core(hash));
    let refused = engines.run(&removal(vec![session])).unwrap_err();
    assert!(matches!(refused, RemoveError::Contained { .. }), "{refused}");
    let refused = engines.run(&removal(vec![partial])).unwrap_err();
    assert!(matches!(refused, RemoveError::Linked { .. }), "{refused}");
    engines.run(&PinRequest { core_hash: partial, note: None }).unwrap();
    let forced = RemoveRequest { ignore_links: true, ..removal(vec![partial]) };
    let refused = engines.run(&forced).unwrap_err();
    assert!(matches!(refused, RemoveError::Pinned { .. }), "{refused}");
    engines.run(&UnpinRequest { core_hash: partial }).unwrap();

    // The dry run answers the same, but for the erasure, and changes nothing.
    let request = RemoveRequest { reason: Some("a name".to_owned()), ..removal(vec![trace, partial, trace]) };
    let head = engines.run(&JournalHeadRequest {}).unwrap();
    let planned = engines.run(&RemoveRequest { dry_run: true, ..request.clone() }).unwrap();
    assert_eq!((&planned.erasure, engines.run(&JournalHeadRequest {}).unwrap()), (&None, head));
    let done = engines.run(&request).unwrap();
    assert_eq!(cores(&done), [trace, partial]);
    assert_eq!(cores(&planned), cores(&done));
    assert!(done.removed.iter().all(|removed| removed.erased == Some(true)), "{done:?}");
    assert!(done.erasure.is_some_and(|erasure| erasure.complete && erasure.copies.is_empty()));
    let gone = engines.run(&request).unwrap_err();
    assert!(matches!(&gone, RemoveError::Store(error) if error.kind() == ErrorKind::Gone), "{gone}");

    let with_containers =
        RemoveRequest { with_containers: true, ignore_links: true, ..removal(vec![session]) };
    let done = engines.run(&with_containers).unwrap();
    assert_eq!(cores(&done), [session, pack]);
    let tombstones = engines.run(&TombstonesRequest::default()).unwrap().removed;
    assert_eq!(
        tombstones.iter().map(|tombstone| tombstone.core_hash).collect::<Vec<_>>(),
        [trace, partial, session, pack]
    );
    assert_eq!(tombstones[0].reason.as_deref(), Some("a name"));
    let mut request = TombstonesRequest { limit: Some(3), ..TombstonesRequest::default() };
    let page = engines.run(&request).unwrap();
    assert_eq!((page.removed.len(), page.next), (3, Some(tombstones[2].seq)));
    request.after = page.next;
    let page = engines.run(&request).unwrap();
    assert_eq!((&page.removed[..], page.next), (&tombstones[3..], None));
}

#[test]
fn missing_artifacts_are_listed_by_pages() {
    let engines = Engines::with_examples();
    engines.add(&crate::unresolved::session());
    for (kind, all) in [(None, false), (None, true), (Some("model_io"), false), (Some("rpk"), true)] {
        let kind = kind.map(str::to_owned);
        let mut request = UnresolvedRequest { kind, all, ..UnresolvedRequest::default() };
        let whole = engines.run(&request).unwrap();
        assert_eq!((whole.missing.len() > 1, whole.next), (request.kind.as_deref() != Some("rpk"), None));
        request.limit = Some(1);
        let (mut missing, mut left_out) = (Vec::new(), 0);
        loop {
            let page = engines.run(&request).unwrap();
            assert!(page.missing.len() == 1 || page.next.is_none(), "{page:?}");
            left_out += page.left_out;
            missing.extend(page.missing);
            request.after = page.next;
            if request.after.is_none() {
                break;
            }
        }
        assert_eq!((&missing, left_out), (&whole.missing, whole.left_out));
    }
}

fn cores(answer: &RemoveAnswer) -> Vec<CoreHash> {
    answer.removed.iter().map(|removed| removed.core_hash).collect()
}

#[test]
fn a_removed_pack_names_the_files_that_are_kept_and_their_dependents() {
    let engines = Engines::with_examples();
    let (pack, session) = (engines.core(PACK), engines.core(SESSION));
    let request = RemoveRequest { ignore_links: true, dry_run: true, ..removal(vec![pack]) };
    let removed = engines.run(&request).unwrap().removed.remove(0);
    let kept = removed.shared.iter().find(|kept| kept.artifacts == [session]).unwrap();
    assert_eq!((kept.count, kept.dependents[0].core_hash), (1, session));
    assert_eq!(kept.dependents[0].kind, engines.memory.locate(&session.0.into()).unwrap().artifact.kind);
}

fn policy(keep_last: usize) -> ForgetRequest {
    let policy = Policy { keep_last: Some(keep_last), ..Policy::default() };
    ForgetRequest { policy, dry_run: true, ..ForgetRequest::default() }
}

fn planned(answer: &ForgetAnswer) -> Vec<CoreHash> {
    answer.plan().artifacts
}

#[test]
fn a_policy_removes_only_what_was_planned_and_is_not_kept_since() {
    let engines = Engines::with_examples();
    let sessions: Vec<CoreHash> = ["a", "b", "c"].map(|name| engines.add(&session(name, &[]))).to_vec();
    let request = policy(1);
    let answer = engines.run(&request).unwrap();
    assert_eq!(answer.removal, None);
    let before = planned(&answer);
    assert!(before.contains(&sessions[0]) && before.contains(&sessions[1]), "{before:?}");
    assert_eq!(before.len() as u64, answer.shares.iter().map(|share| share.removed).sum::<u64>());

    // Later ones are not planned, pinned ones are kept, and so are those that a kept one links to.
    let later = engines.add(&session("d", &[]));
    engines.run(&PinRequest { core_hash: sessions[0], note: None }).unwrap();
    let (source, relation) = (sessions[0], "needs".to_owned());
    engines.run(&AddLinkRequest { source, relation, target: sessions[1], note: None }).unwrap();
    let removing = ForgetRequest { plan: Some(answer.plan()), dry_run: false, ..request.clone() };
    let removal = engines.run(&removing).unwrap().removal.unwrap();
    let mut spared = removal.spared.clone();
    spared.sort();
    let mut expected = sessions[..2].to_vec();
    expected.sort();
    assert_eq!(spared, expected);
    assert!(!removal.removed.contains(&sessions[2]), "it is no longer the last, but was kept by the plan");
    let mut removed = removal.removed;
    removed.sort();
    let mut expected: Vec<CoreHash> =
        before.iter().copied().filter(|core| !sessions.contains(core)).collect();
    expected.sort();
    assert_eq!(removed, expected);
    assert!(removal.erasure.is_some_and(|erasure| erasure.complete));

    // Without a plan, the request decides and removes.
    let all = engines.run(&ForgetRequest { dry_run: false, ..request }).unwrap().removal.unwrap();
    assert_eq!((all.removed, all.spared), (vec![sessions[2]], Vec::new()));
    engines.memory.locate(&later.0.into()).unwrap();
}

#[test]
fn a_policy_that_keeps_nothing_is_refused() {
    let engines = Engines::with_examples();
    let head = engines.run(&JournalHeadRequest {}).unwrap();
    for request in [
        json!({}),
        json!({"policy": {"keep_within_ms": 0}}),
        json!({"policy": {"keep_periods": [{"period": "day", "count": 0}]}}),
    ] {
        let refused = engines.run(&read::<ForgetRequest>(request)).unwrap_err();
        assert!(matches!(refused, RemoveError::KeepsNothing), "{refused}");
    }
    // That nothing is to be kept can be said, but an empty plan removes nothing.
    let all = engines.run(&policy(0)).unwrap();
    assert_eq!(planned(&all).len(), 7);
    let plan = Some(ForgetPlan { artifacts: Vec::new(), ..all.plan() });
    let removal = engines.run(&ForgetRequest { plan, dry_run: false, ..policy(0) }).unwrap().removal;
    assert_eq!(removal, Some(ForgetRemoval::default()));
    assert_eq!(engines.run(&JournalHeadRequest {}).unwrap(), head);
}

fn hashes(answer: &VerifyAnswer) -> Vec<CoreHash> {
    answer.captures.iter().map(|capture| capture.core_hash).collect()
}

#[test]
fn all_artifacts_are_verified_page_by_page() {
    let engines = Engines::with_examples();
    let whole = engines.run(&VerifyRequest::default()).unwrap();
    assert_eq!(whole.next, None);
    assert!(whole.captures.iter().all(|capture| capture.ok && capture.damage.is_none()), "{whole:?}");
    let mut cores = hashes(&whole);
    cores.dedup();
    assert!(cores.is_sorted() && cores.len() == 7, "{cores:?}");
    for (limit, pages) in [(1, 7), (3, 3), (7, 1), (0, 7)] {
        let mut request = VerifyRequest { limit: Some(limit), ..VerifyRequest::default() };
        let (mut captures, mut count) = (Vec::new(), 0);
        loop {
            let page = engines.run(&request).unwrap();
            captures.extend(page.captures);
            count += 1;
            request.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!((captures.len(), count), (whole.captures.len(), pages), "{limit}");
        assert_eq!(captures, whole.captures);
    }
}

#[test]
fn artifacts_are_selected_for_verification() {
    let engines = Engines::with_examples();
    let (session, trace) = (engines.core(SESSION), engines.core(TRACE));
    let named = VerifyRequest { artifacts: vec![trace, session, trace], ..VerifyRequest::default() };
    let answer = engines.run(&named).unwrap();
    let captures: Vec<_> = answer.captures.iter().filter(|one| one.core_hash == session).collect();
    assert!(captures.len() > 1, "it has several captures: {answer:?}");
    let one = VerifyRequest { capture: Some(captures[1].capture_hash), ..named.clone() };
    assert_eq!(engines.run(&one).unwrap().captures, [captures[1].clone()]);
    let kind = engines.memory.locate(&trace.0.into()).unwrap().artifact.kind;
    let of_kind = VerifyRequest { kind: Some(kind), ..VerifyRequest::default() };
    let traces = hashes(&engines.run(&of_kind).unwrap());
    assert_eq!(traces.len(), 2);
    assert_eq!(
        hashes(&engines.run(&VerifyRequest { artifacts: vec![session, trace], ..of_kind }).unwrap()),
        [trace]
    );

    let sampled = |percent, seed| {
        let sample = Some(Sample { percent, seed });
        hashes(&engines.run(&VerifyRequest { sample, ..VerifyRequest::default() }).unwrap())
    };
    assert_eq!((sampled(0.0, 0), sampled(100.0, 0).len()), (Vec::new(), hashes_of_all(&engines).len()));
    let halves: Vec<usize> = (0..20).map(|seed| sampled(50.0, seed).len()).collect();
    assert!(halves.iter().any(|half| *half != halves[0]), "the seed selects: {halves:?}");

    let missing = CoreHash(Digest::from_content(b"nothing"));
    let error = engines.run(&VerifyRequest { artifacts: vec![session, missing], ..named }).unwrap_err();
    assert!(matches!(&error, LookupError::Store(error) if error.kind() == ErrorKind::Gone), "{error}");
}

fn hashes_of_all(engines: &Engines) -> Vec<CoreHash> {
    hashes(&engines.run(&VerifyRequest::default()).unwrap())
}

#[test]
fn unsigned_captures_of_kinds_with_signatures_are_rejected_on_request() {
    let engines = Engines::with_examples();
    for (hash, is_rejected) in [(RUN, true), (SESSION, false)] {
        let artifacts = vec![engines.core(hash)];
        let request = VerifyRequest { artifacts, require_signature: true, ..VerifyRequest::default() };
        let captures = engines.run(&request).unwrap().captures;
        assert!(captures.iter().all(|capture| capture.ok != is_rejected), "{captures:?}");
        assert!(captures.iter().all(|capture| capture.violations.is_empty() != is_rejected), "{captures:?}");
    }
}

#[test]
fn a_recorded_head_is_found_in_the_journal() {
    let engines = Engines::with_examples();
    let check = engines.run(&CheckJournalRequest::default()).unwrap();
    assert!(check.ok && check.since.is_none() && check.catalog.is_none(), "{check:?}");
    for vault in engines.both() {
        let head = vault.run(&JournalHeadRequest {}).unwrap();
        vault.run(&PinRequest { core_hash: engines.core(TRACE), note: None }).unwrap();
        let since = CheckJournalRequest { since: Some(head.chain), ..CheckJournalRequest::default() };
        let check = vault.run(&since).unwrap();
        assert_eq!((check.ok, check.since, check.head.seq), (true, Some(head.seq), head.seq + 1));
        let other = vault.run(&CheckJournalRequest { since_seq: Some(1), ..since }).unwrap();
        assert_eq!((other.ok, other.since, other.found), (false, None, Some(head.seq)));
        let never = Digest::from_content(b"nothing");
        let check = vault.run(&CheckJournalRequest { since: Some(never), ..CheckJournalRequest::default() });
        assert!(!check.unwrap().ok);
    }
    let catalog = CheckJournalRequest { catalog: true, ..CheckJournalRequest::default() };
    let check = engines.file.run(&catalog).unwrap();
    let catalog = check.catalog.unwrap();
    assert_eq!((check.ok, catalog.counts.artifacts, catalog.counts.pins), (true, 7, 1));
}

#[test]
fn what_needs_a_file_is_not_supported_in_memory() {
    let Engines { memory, directory, .. } = Engines::with_examples();
    let unsupported = |error: StorageError| assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(memory.run(&ReclaimableRequest {}).unwrap(), ReclaimableAnswer::default());
    assert_eq!(memory.run(&ReclaimRequest {}).unwrap(), ReclaimResult::default());
    let catalog = CheckJournalRequest { catalog: true, ..CheckJournalRequest::default() };
    unsupported(memory.run(&catalog).unwrap_err());
    let path = directory.path().join("copy.vault");
    match memory.run(&BackupRequest::new(&path)).unwrap_err() {
        BackupError::Store(error) => unsupported(error),
        error => panic!("{error}"),
    }
    assert!(!path.exists());
}

#[test]
fn space_is_reclaimed_and_a_backup_is_made_without_the_command_line() {
    let engines = Engines::with_examples();
    let vault = &engines.file;
    let nothing = vault.run(&ReclaimableRequest {}).unwrap();
    assert_eq!((nothing.space.blobs, nothing.space.has_removals), (0, false));
    let request = RemoveRequest { ignore_links: true, ..removal(vec![engines.core(TRACE)]) };
    vault.run(&request).unwrap();
    vault.run(&ReclaimRequest {}).unwrap();
    let again = vault.run(&ReclaimRequest {}).unwrap();
    assert_eq!((again.changed, again.bytes_before, again.log_remains), (false, 0, false));
    let path = engines.directory.path().join("copy.vault");
    let backup = vault.run(&BackupRequest::new(&path)).unwrap();
    assert_eq!((backup.artifacts, backup.findings, backup.blobs_checked), (6, 0, backup.blobs));
    assert_eq!(backup.file.path, path.to_string_lossy());
    assert!(matches!(vault.run(&BackupRequest::new(&path)), Err(BackupError::Exists { .. })));
    let request: BackupRequest = read(json!({"path": path, "force": true}));
    assert_eq!(request, BackupRequest { force: true, ..BackupRequest::new(&path) });
    vault.run(&request).unwrap();
}

#[test]
fn artifacts_are_counted_by_day() {
    let engines = Engines::with_examples();
    let last = "2026-11-20".parse().unwrap();
    let request = DaysRequest { filter: ArtifactFilter::default(), by: TimeBasis::Created, last, days: 4 };
    let answer = engines.run(&request).unwrap();
    let counts: Vec<(String, u64)> =
        answer.days.iter().map(|day| (day.date.to_string(), day.artifacts)).collect();
    let days = ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"].map(str::to_owned);
    assert_eq!(counts, days.into_iter().zip([0, 5, 1, 0]).collect::<Vec<_>>());
    let sessions = ArtifactFilter { kinds: vec!["model_io".to_owned()], ..ArtifactFilter::default() };
    let answer = engines.run(&DaysRequest { filter: sessions, days: 3, ..request }).unwrap();
    assert_eq!(answer.days.iter().map(|day| day.artifacts).collect::<Vec<_>>(), [1, 1, 0]);
}

#[test]
fn the_files_of_a_pack_are_described() {
    let engines = Engines::with_examples();
    let pack = engines.run(&ShowRequest { artifact: engines.core("54490aab8b3f") }).unwrap();
    for member in &pack.members {
        let size = std::fs::metadata(repository("examples/pack").join(&member.name)).unwrap().len();
        assert_eq!(member.size, size, "{}", member.name);
    }
    assert_eq!(pack.members.len(), std::fs::read_dir(repository("examples/pack")).unwrap().count());
    assert!(engines.run(&ShowRequest { artifact: engines.core("3941d389b337") }).unwrap().members.is_empty());
}
