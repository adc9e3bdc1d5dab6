//! The indexed data of a pack.

use std::collections::BTreeMap;

use super::members::{self, PackContents, SESSION};
use crate::artifact::{
    ArtifactLocation, ArtifactView, AttributeInfo, Column, Draft, Mention, MissingOffset, NameHandle,
    REFERS_TO, Relation, Role, group, parse_timestamp, relation,
};
use crate::digest::{CoreHash, Digest};
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::members::{object, text};

const fn role(name: &'static str, group: &'static str) -> Role {
    Role { name, group, unit: "", relation: None }
}

/// The intent is a document outside the pack.
const INTENT: Role = Role { relation: Some(REFERS_TO), ..role("intent", "intent") };
const BUNDLE: Role = role("bundle", "bundle");
const MEMBER: Role = role("member", group::MEMBER);
/// The canonical form of a file, which can be in the vault as an artifact of its own.
const MEMBER_DOCUMENT: Role =
    Role { relation: Some(REFERS_TO), ..role("member_document", "member_document") };
/// What the original tools call the hash of a pack, although packs with other contents have the same.
const FILE_NAMES: Role = role("file_names", "file_names");
/// What the specifications of evidence and of ledgers hash, which is not what the digests of the files cover.
const EVIDENCE_HASH: Role = role("evidence_hash", "evidence_hash");
const LEDGER_HASH: Role = role("ledger_hash", "ledger_hash");
/// Statements in ledgers often refer to other runs, so they have separate roles.
const LEDGER_INTENT: Role = role("ledger_intent", "ledger");
const LEDGER_BUNDLE: Role = role("ledger_bundle", "ledger");
/// The session is stored with its pack, so that the link cannot dangle while the pack exists.
const SESSION_OF: Role = Role {
    relation: Some(Relation { name: relation::CONTAINS, dangles: false }),
    ..role("session", "session")
};

/// The name of the execution evidence in a pack.
const EVIDENCE: &str = "evidence.json";

/// The locations of digests in `run.json` that are indexed under roles of their own.
const INDEXED_IN_RUN: [&str; 2] = ["/intent/sha256", "/bundle/sha256"];
/// The locations of such digests in a line of the ledger.
const INDEXED_IN_LEDGER: [(&str, &str, &Role); 2] = [
    ("intent_sha256", "/intent_sha256", &LEDGER_INTENT),
    ("bundle_sha256", "/bundle_sha256", &LEDGER_BUNDLE),
];

const ACCEPTED: AttributeInfo =
    AttributeInfo::text("accepted", "whether the decision accepted it: `true` or `false`");
const BUNDLE_HASH: AttributeInfo = AttributeInfo::text("bundle", "the hash of the bundle");
const INTENT_HASH: AttributeInfo = AttributeInfo::text("intent", "the hash of the intent");
const KERNEL_VERSION: AttributeInfo = AttributeInfo::text("kernel_version", "the version of the kernel");
const MEMBER_NAME: AttributeInfo = AttributeInfo::text("member", "the name of a file");
const MODEL_MODE: AttributeInfo = AttributeInfo::text("model_mode", "how the model was used");
const POLICY: AttributeInfo = AttributeInfo::text("policy", "the policy, with its version");
const RESULT: AttributeInfo = AttributeInfo::text("result", "`BUNDLE`, `CLARIFY` or `REFUSE`");

pub(super) const ATTRIBUTES: [AttributeInfo; 17] = [
    ACCEPTED,
    ARCH,
    BUNDLE_HASH,
    AttributeInfo::CREATED_AT,
    AttributeInfo::DURATION_MS,
    AttributeInfo::ERRORS,
    EXIT_CODE,
    AttributeInfo::FINISHED_AT,
    INTENT_HASH,
    KERNEL_VERSION,
    MEMBER_NAME,
    MODEL_MODE,
    AttributeInfo::OS,
    POLICY,
    RESULT,
    AttributeInfo::RUN_ID,
    AttributeInfo::RUNTIME,
];

/// The columns of the SQL view of the artifacts.
pub(super) const COLUMNS: [Column; 12] = [
    AttributeInfo::RUN_ID.column(),
    RESULT.column().facet(),
    POLICY.column().facet(),
    MODEL_MODE.column().facet(),
    KERNEL_VERSION.column().facet(),
    AttributeInfo::CREATED_AT.column(),
    AttributeInfo::FINISHED_AT.column(),
    AttributeInfo::DURATION_MS.column(),
    ACCEPTED.column().facet(),
    EXIT_CODE.column().facet(),
    AttributeInfo::ERRORS.column(),
    AttributeInfo::OS.column(),
];

/// Maximum size of a text that is indexed as a policy, in bytes.
const MAX_POLICY_BYTES: usize = 256;

pub(super) fn describe(members: PackContents<'_>, digests: BTreeMap<&'static str, Digest>) -> Draft {
    let mut draft = Draft::new(CoreHash(Digest::from_content(&members::core_bytes(&digests))));
    let bundle = digests.get("bundle.json").copied();
    for (name, digest) in digests {
        mention(&MEMBER, name.to_owned(), digest, &mut draft);
        let role = if name == SESSION { &SESSION_OF } else { &MEMBER_DOCUMENT };
        mention(role, name.to_owned(), digest, &mut draft);
        draft.attribute("member", name);
    }
    for (name, value) in members.values() {
        let indexed: &[&str] = if name == "run.json" { &INDEXED_IN_RUN } else { &[] };
        draft.collect_references(value, &format!("{name} "), indexed);
    }
    if let Some(bundle) = bundle {
        mention(&BUNDLE, "bundle.json".to_owned(), bundle, &mut draft);
        draft.attribute("bundle", bundle.to_string());
    }
    if let Some(run) = members.value("run.json") {
        describe_run(run, &mut draft);
    }
    if let Some(runner) = members.value("runner.json") {
        describe_metrics(runner, &mut draft);
    }
    let evidence = members.value(EVIDENCE).and_then(members::evidence_hash);
    for (role, name, digest) in
        [(&EVIDENCE_HASH, EVIDENCE, evidence), (&LEDGER_HASH, members::LEDGER, members.ledger_hash())]
    {
        if let Some(digest) = digest {
            mention(role, name.to_owned(), digest, &mut draft);
        }
    }
    describe_ledger(&members, &mut draft);
    describe_file_names(&members, &mut draft);
    draft.embedded.extend(members.session.and_then(Result::ok));
    draft
}

fn mention(role: &'static Role, pointer: String, digest: Digest, draft: &mut Draft) {
    draft.mentions.push(Mention { role, place: ArtifactLocation::Pointer(pointer), digest });
}

fn describe_run(run: &Value<'_>, draft: &mut Draft) {
    let text = |name: &str| run.get(name).and_then(Value::as_non_empty_str);
    if let Some(run_id) = text("run_id") {
        draft.identified_by.push(NameHandle::new("run", run_id));
    }
    for (attribute, member) in [
        ("run_id", "run_id"),
        ("result", "kernel_result_kind"),
        ("model_mode", "model_mode"),
        ("kernel_version", "kernel_version"),
    ] {
        if let Some(value) = text(member) {
            draft.attribute(attribute, value);
        }
    }
    for (name, role) in [("intent", &INTENT), ("bundle", &BUNDLE)] {
        let declared = run.get(name).and_then(|reference| reference.get("sha256")).and_then(Value::as_str);
        if let Some(digest) = declared.and_then(Digest::parse_prefixed) {
            mention(role, format!("run.json /{name}/sha256"), digest, draft);
            draft.attribute(role.name, digest.to_string());
        }
    }
    // As for sessions and traces, the time of a run is its start.
    draft.state_creation([text("started_at"), text("completed_at")], MissingOffset::Unknown);
    let started = text("started_at").and_then(|text| parse_timestamp(text, MissingOffset::Unknown));
    draft.state_end(started, text("completed_at"), MissingOffset::Unknown);
    if let Some(Value::Bool(accepted)) = run.get("decision").and_then(|decision| decision.get("accepted")) {
        draft.attribute(ACCEPTED.name, accepted.to_string());
    }
    if let Some(policy) = run.get("policy") {
        describe_policy(policy, draft);
    }
}

/// Indexes a policy by its text, or by its name, alone and with its version. A policy without a name is indexed by its
/// canonical form if that is short.
fn describe_policy(policy: &Value<'_>, draft: &mut Draft) {
    let text = |name: &str| policy.get(name).and_then(Value::as_non_empty_str);
    if let Some(policy) = policy.as_non_empty_str() {
        draft.attribute("policy", policy);
    } else if let Some(name) = text("name") {
        draft.attribute("policy", name);
        if let Some(version) = text("version") {
            draft.attribute("policy", format!("{name} {version}"));
        }
    } else if let Ok(canonical) = rfc8785::to_vec(policy)
        && canonical.len() <= MAX_POLICY_BYTES
        && !policy.is_null()
    {
        draft.attribute("policy", String::from_utf8_lossy(&canonical));
    }
}

fn describe_ledger(members: &PackContents<'_>, draft: &mut Draft) {
    for (number, entry) in members.ledger() {
        let Ok(entry) = entry else { continue };
        let prefix = format!("{} line {number} ", members::LEDGER);
        for (name, pointer, role) in INDEXED_IN_LEDGER {
            let declared = entry.get(name).and_then(Value::as_str).and_then(Digest::parse_prefixed);
            if let Some(digest) = declared {
                mention(role, format!("{prefix}{pointer}"), digest, draft);
            }
        }
        let indexed = INDEXED_IN_LEDGER.map(|(_, pointer, _)| pointer);
        draft.collect_references(&entry, &prefix, &indexed);
    }
}

/// Adds the hash of the names of all files, by which the original tools refer to a pack.
fn describe_file_names(members: &PackContents<'_>, draft: &mut Draft) {
    let mut names = members::MEMBER_NAMES;
    names.sort_unstable();
    let present = names.into_iter().filter(|name| members.file(name).is_some()).map(text);
    let names = object([("files", Value::Array(present.collect()))]);
    // Names have no numbers, so that there is a canonical form.
    if let Ok(digest) = members::canonical_hash(&names) {
        mention(&FILE_NAMES, "file names".to_owned(), digest, draft);
    }
}

pub(super) const ARTIFACTS: ArtifactView = ArtifactView {
    about: "a run export pack",
    named_by: Some(AttributeInfo::RUN_ID.name),
    columns: &COLUMNS,
};

const ARCH: AttributeInfo = AttributeInfo::text("arch", "the processor architecture of the runner");
const EXIT_CODE: AttributeInfo = AttributeInfo::count("exit_code", "the exit code of the runner");

/// Adds the attributes of a valid `runner.json`.
fn describe_metrics(runner: &Value<'_>, draft: &mut Draft) {
    let platform = |name: &str| runner.get("platform")?.get(name).and_then(Value::as_non_empty_str);
    for (info, name) in [(AttributeInfo::OS, "os"), (ARCH, "arch")] {
        if let Some(text) = platform(name) {
            draft.attribute(info.name, text);
        }
    }
    for (program, name) in [("node", "node_version"), ("npm", "npm_version")] {
        if let Some(version) = platform(name) {
            draft.attribute(AttributeInfo::RUNTIME.name, format!("{program} {version}"));
        }
    }
    let exit = |name: &str| runner.get("exit")?.get(name);
    let code = exit("code").and_then(crate::artifact::attribute::parse_count);
    draft.number(EXIT_CODE, code);
    let was_killed = exit("signal").is_some()
        || ["oom_killed", "timeout_killed"].into_iter().any(|name| exit(name) == Some(&Value::Bool(true)));
    draft.count(AttributeInfo::ERRORS, usize::from(was_killed || code.is_some_and(|code| code != 0)));
}
