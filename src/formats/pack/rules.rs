//! The longer checks of the rule table.

use std::collections::{BTreeMap, BTreeSet};

use super::member_rules::{PackMemberFinder, PackMemberRule, SCHEMA};
use super::members::{self, MEMBER_NAMES, PackContents, SESSION, not_json};
use super::{bundle, patch, runner};
use crate::artifact::{EntryContent, SupportedMajors};
use crate::digest::Digest;
use crate::json::Value;
use crate::json::canonical::rfc8785;
use crate::json::reader::excerpt;
use crate::validation::{Finder, Rule, RuleInfo, Severity};

/// Broken by anything that is not a directory; no other rules are then checked.
pub(super) const IO: RuleInfo = RuleInfo::error(
    "IO",
    "A pack is a readable directory, or an archive of one.",
    "A nonexistent path, a file that is not an archive and a link \
     to a directory are not packs: name the directory itself.",
);

/// Also broken by files of packs outside a pack.
pub(super) const REQUIRED_FILES: RuleInfo = RuleInfo::error(
    "PK1",
    "run.json is present, and so is bundle.json unless the run was refused.",
    "Without them there is no run to examine. bundle.json may be absent only if run.json \
     can be read and its kernel_result_kind is REFUSE. Only regular files count. A pack \
     file in a directory without run.json is the rest of a pack: add the whole pack.",
);

type PackCheck = fn(&PackContents<'_>, &mut Finder<'_>);

/// All rules of packs, in the order in which they are checked.
pub(super) static RULES: [Rule<PackCheck>; 16] = [
    Rule { info: REQUIRED_FILES, check: required_files },
    Rule {
        info: RuleInfo::error(
            "PK2",
            "A pack contains only files with the nine known names.",
            "run.json, bundle.json, patch.json, evidence.json, ledger.jsonl, policy.json, model_io.json, runner.json \
             and meta.json, spelled exactly so. Any other file is undefined in a pack and might hide data.",
        ),
        check: known_names,
    },
    Rule {
        info: RuleInfo::error(
            "PK3",
            "run.json has the required members.",
            "The ten required ones may have any value, including null. If kernel_result_kind is \
             present, it is BUNDLE, CLARIFY or REFUSE. If run_schema_version has a major version, \
             that must be 1: in another version, the same members may have another meaning.",
        ),
        check: run,
    },
    Rule {
        info: RuleInfo::error(
            "PK4",
            "bundle.json conforms to the rules of bundles.",
            "One violation for each broken rule of bundles, with its id in the message: BS1 to BS8 and SCHEMA.",
        ),
        check: |members, found| inner(members, "bundle.json", found, bundle::check),
    },
    Rule {
        info: RuleInfo::error(
            "PK5",
            "run.json's bundle.sha256 is the hash of bundle.json.",
            "It ties the run to its result: with another bundle, the pack would describe another run. The \
             hash covers the canonical form and a line feed. A run that names no bundle is not compared.",
        ),
        check: bundle_hash,
    },
    Rule {
        info: RuleInfo::error(
            "PK6",
            "A pack contains no symbolic links.",
            "A link can point anywhere on the machine that follows it. runvault never follows links.",
        ),
        check: |members, found| {
            for entry in &members.directory.entries {
                if matches!(entry.content, EntryContent::Link) {
                    found.add(&entry.name, "is a link; it was not followed");
                }
            }
        },
    },
    Rule {
        info: RuleInfo::error(
            "PK7",
            "Names do not lead outside the pack.",
            "The name of an entry contains no slash, backslash or NUL. In an archive, absolute \
             names and names that lead outside are rejected; nothing is ever written under such a \
             name. How the pack itself is named, as ./pack or ../pack, does not matter.",
        ),
        check: plain_names,
    },
    Rule {
        info: RuleInfo::error(
            "PK8",
            "Optional members conform to their own rules.",
            "For patch.json, model_io.json and runner.json, the id of the broken rule is in the message. \
             evidence.json has five required members. policy.json equals run.json's policy. meta.json is any JSON.",
        ),
        check: optional_members,
    },
    Rule {
        info: RuleInfo::error(
            "PK9",
            "Every line of ledger.jsonl is an entry.",
            "An entry is JSON and has seven required members. Lines of white space, a \
             missing last line feed, carriage returns and an empty file are allowed.",
        ),
        check: |members, found| {
            if let Some(bytes) = members.file(members::LEDGER) {
                members::check_ledger(bytes, members.limits, found);
            } else if members.is_unopenable(members::LEDGER) {
                found.add(members::LEDGER, "is not a file and cannot be read");
            }
        },
    },
    Rule {
        info: RuleInfo::error(
            "PK10",
            "Violations are sorted by rule id, path and message.",
            "Two verifications of one pack print the same report. \
             runvault sorts every report, so no pack can break this rule.",
        ),
        check: |_, _| {},
    },
    Rule {
        info: RuleInfo::error(
            "PK11",
            "meta.json is ignored.",
            "It must be JSON and is otherwise not examined. runvault leaves \
             it out of the core hash, so no pack can break this rule.",
        ),
        check: |_, _| {},
    },
    Rule {
        info: RuleInfo::error(
            "PK12",
            "Everything in a pack is a regular file.",
            "Directories, devices and pipes are rejected. None is ever opened: reading a pipe could block forever.",
        ),
        check: |members, found| {
            for entry in &members.directory.entries {
                if matches!(entry.content, EntryContent::Other) {
                    found.add(&entry.name, "is a directory, device or pipe, not a regular file");
                }
            }
        },
    },
    Rule {
        info: RuleInfo::warning(
            "PK13",
            "Integers are at most 2^53.",
            "Members are hashed according to RFC 8785, whose numbers are doubles. A larger integer is hashed as the \
             nearest double, so another integer near it would give the same hash. Write such numbers as strings.",
        ),
        check: |members, found| {
            for (name, value) in members.values().filter(|(name, _)| *name != "meta.json") {
                if let Some((count, first)) = members::large_integers(value) {
                    let more = if count > 1 { format!(", and {} more", count - 1) } else { String::new() };
                    found.add(
                        name,
                        format!("{first} is an integer beyond 2^53{more}; it is hashed as a double"),
                    );
                }
            }
        },
    },
    Rule {
        info: RuleInfo::warning(
            "PK14",
            "run.json's model_io_hash is the ModelIOHash of model_io.json.",
            "The format's own verifier does not compare them, so a difference does not reject \
             the pack. It means that the run states another recording than the one in the pack.",
        ),
        check: session_hash,
    },
    Rule {
        info: RuleInfo::error(
            "PK15",
            "No two entries have the same name.",
            "Only archives can have duplicates. Programs disagree on which of them counts.",
        ),
        check: |members, found| {
            let mut seen = BTreeMap::<&str, usize>::new();
            for entry in &members.directory.entries {
                *seen.entry(&entry.name).or_default() += 1;
            }
            for (name, count) in seen.into_iter().filter(|(_, count)| *count > 1) {
                found.add(name, format!("there are {count} entries with this name"));
            }
        },
    },
    Rule {
        info: RuleInfo::warning(
            "PK16",
            "Stated hashes are sha256: and 64 lowercase hex digits.",
            "The format's own verifier does not check the hashes of intents and proposals, \
             so this does not reject the pack. Nothing can be found by a malformed hash.",
        ),
        check: stated_hashes,
    },
];

/// Returns every rule, those of members last. SCHEMA is listed once.
pub(super) fn all() -> Vec<RuleInfo> {
    let tables: [&[PackMemberRule]; 6] = [
        &bundle::SHAPE,
        &bundle::CONTENT,
        &patch::SHAPE,
        &patch::CONTENT,
        &runner::RULES,
        &runner::CANONICAL,
    ];
    let inner = tables.into_iter().flatten().map(|rule| rule.info).filter(|rule| rule.id != SCHEMA.id);
    RULES.iter().map(|rule| rule.info).chain([IO]).chain(inner).chain([SCHEMA]).collect()
}

/// The supported major versions of runs.
const RUN_VERSIONS: SupportedMajors = SupportedMajors::new(&["1"]);

const RUN_FIELDS: [&str; 10] = [
    "run_schema_version",
    "run_id",
    "started_at",
    "completed_at",
    "kernel_version",
    "policy",
    "intent",
    "kernel_result_kind",
    "decision",
    "model_mode",
];

const EVIDENCE_FIELDS: [&str; 5] =
    ["proposal_id", "proposal_hash", "action_results", "test_results", "status"];

pub(super) fn required_files(members: &PackContents<'_>, found: &mut Finder<'_>) {
    let missing = |name: &str| match members.directory.entry(name) {
        Some(_) => format!("the required file {name} is not a regular file"),
        None => format!("the required file {name} is missing"),
    };
    if members.file("run.json").is_none() {
        found.add("run.json", missing("run.json"));
    }
    let result = members.value("run.json").and_then(|run| run.get("kernel_result_kind"));
    let was_refused = result.and_then(Value::as_str) == Some("REFUSE");
    if members.file("bundle.json").is_none() && !was_refused {
        found.add("bundle.json", missing("bundle.json"));
    }
}

pub(super) fn known_names(members: &PackContents<'_>, found: &mut Finder<'_>) {
    let names: BTreeSet<&str> = members.directory.entries.iter().map(|entry| entry.name.as_str()).collect();
    for name in names.into_iter().filter(|name| !MEMBER_NAMES.contains(name)) {
        let known = MEMBER_NAMES.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        let hint =
            known.map_or(String::new(), |known| format!("; names are case-sensitive, did you mean {known}?"));
        found.add(name, format!("is not one of the nine file names of a pack{hint}"));
    }
}

pub(super) fn run(members: &PackContents<'_>, found: &mut Finder<'_>) {
    const NAME: &str = "run.json";
    let run = required(members, NAME, "a run", &RUN_FIELDS, found);
    let version = run.and_then(|run| run.get("run_schema_version")).and_then(Value::as_str);
    if let Some(message) = version.and_then(|version| RUN_VERSIONS.objection(version)) {
        found.add(NAME, format!("run_schema_version: {message}"));
    }
    let result = run.and_then(|run| run.get("kernel_result_kind"));
    let is_known = |kind: &Value<'_>| matches!(kind.as_str(), Some("BUNDLE" | "CLARIFY" | "REFUSE"));
    if let Some(other) = result.filter(|kind| !is_known(kind)) {
        let is = other.as_non_empty_str().map_or_else(|| other.type_name().to_owned(), excerpt);
        found.add(NAME, format!("kernel_result_kind is {is}, not BUNDLE, CLARIFY or REFUSE"));
    }
}

/// Returns the object `name` and reports every one of `fields` that is missing from it; null is present. Returns `None`
/// if it is missing or is not an object, which is reported. A list counts as an object without members.
fn required<'m>(
    members: &'m PackContents<'_>,
    name: &'static str,
    what: &str,
    fields: &[&str],
    found: &mut Finder<'_>,
) -> Option<&'m Value<'m>> {
    match members.json(name)? {
        Err(error) => found.add(name, not_json(error)),
        Ok(value @ (Value::Object(_) | Value::Array(_))) => {
            for field in fields.iter().filter(|field| value.get(field).is_none()) {
                found.add(name, format!("the required member {field} is missing"));
            }
            return Some(value);
        }
        Ok(other) => found.add(name, format!("{what} must be an object, not {}", other.type_name())),
    }
    None
}

/// Applies the rules of the member `name` if it is present.
pub(super) fn inner(
    members: &PackContents<'_>,
    name: &'static str,
    found: &mut Finder<'_>,
    check: fn(&Value<'_>, &mut PackMemberFinder<'_, '_>),
) {
    match members.json(name) {
        None => {}
        Some(Err(error)) => found.add(name, not_json(error)),
        Some(Ok(value)) => check(value, &mut PackMemberFinder::new(name, found)),
    }
}

pub(super) fn bundle_hash(members: &PackContents<'_>, found: &mut Finder<'_>) {
    let Some(bundle) = members.json("bundle.json") else { return };
    let reference = members.value("run.json").and_then(|run| run.get("bundle"));
    let text = |name: &str| reference.and_then(|reference| reference.get(name)).and_then(Value::as_str);
    let (Some(_), Some(declared)) = (text("bundle_id"), text("sha256")) else { return };
    let actual = bundle.ok().and_then(|bundle| members::canonical_hash(bundle).ok());
    if actual.is_none_or(|actual| actual.to_string() != declared) {
        let is = actual.map_or_else(|| "which has none".to_owned(), |actual| format!("which is {actual}"));
        found.add("bundle.json", format!("run.json's bundle.sha256 is not the hash of the bundle, {is}"));
    }
}

pub(super) fn plain_names(members: &PackContents<'_>, found: &mut Finder<'_>) {
    for entry in &members.directory.entries {
        if entry.name.contains(['/', '\\', '\0']) {
            found.add(&entry.name, "the name contains a slash, a backslash or a NUL");
        }
    }
}

pub(super) fn optional_members(members: &PackContents<'_>, found: &mut Finder<'_>) {
    inner(members, "patch.json", found, patch::check);
    inner(members, "runner.json", found, runner::check);
    required(members, "evidence.json", "evidence", &EVIDENCE_FIELDS, found);
    policy(members, found);
    if let Some(Err(error)) = members.json("meta.json") {
        found.add("meta.json", not_json(error));
    }
    if let Some(Err(report)) = &members.session {
        // Warnings do not reject a session, so they do not reject the pack either.
        for violation in report.violations().iter().filter(|one| one.severity == Severity::Error) {
            let (rule, path, message) = (&violation.rule_id, &violation.path, &violation.message);
            let message = if rule.starts_with("DOC") {
                format!("not JSON: {path}: {message} (rule {rule})")
            } else {
                format!("{rule}: {path}: {message}")
            };
            found.add(SESSION, message);
        }
    }
}

fn policy(members: &PackContents<'_>, found: &mut Finder<'_>) {
    const NAME: &str = "policy.json";
    match members.json(NAME) {
        None if members.is_unopenable(NAME) => found.add(NAME, "is not a file and cannot be read"),
        None => {}
        Some(Err(error)) => found.add(NAME, not_json(error)),
        Some(Ok(policy)) => {
            let declared = members.value("run.json").and_then(|run| run.get("policy"));
            let differs = |declared| match (rfc8785::to_vec(declared), rfc8785::to_vec(policy)) {
                (Ok(declared), Ok(policy)) => declared != policy,
                _ => false,
            };
            if declared.is_some_and(differs) {
                found.add(NAME, "differs from run.json's policy");
            }
        }
    }
}

pub(super) fn session_hash(members: &PackContents<'_>, found: &mut Finder<'_>) {
    let declared = members.value("run.json").and_then(|run| run.get("model_io_hash"));
    let Some(declared) = declared.filter(|declared| !declared.is_null()) else { return };
    let Some(Ok(session)) = &members.session else { return };
    if declared.as_str() != Some(session.core().to_string().as_str()) {
        let actual = session.core();
        found.add(
            "run.json",
            format!("model_io_hash is not the ModelIOHash of model_io.json, which is {actual}"),
        );
    }
}

/// The locations of hashes in members. A missing or null value states no hash.
const STATED: [(&str, &[&str]); 5] = [
    ("run.json", &["intent", "sha256"]),
    ("run.json", &["bundle", "sha256"]),
    ("run.json", &["model_io_hash"]),
    ("patch.json", &["source_proposal_hash"]),
    ("evidence.json", &["proposal_hash"]),
];

/// The locations of hashes in a line of the ledger.
const STATED_IN_LEDGER: [&str; 2] = ["intent_sha256", "bundle_sha256"];

pub(super) fn stated_hashes(members: &PackContents<'_>, found: &mut Finder<'_>) {
    for (member, names) in STATED {
        let root = members.value(member);
        let value = root.and_then(|root| names.iter().try_fold(root, |value, name| value.get(name)));
        if let Some(message) = value.and_then(hash_objection) {
            found.add(member, format!("{} {message}", names.join(".")));
        }
    }
    for (number, entry) in members.ledger() {
        let Ok(entry) = entry else { continue };
        for name in STATED_IN_LEDGER {
            if let Some(message) = entry.get(name).and_then(hash_objection) {
                found.add(members::LEDGER, format!("line {number}: {name} {message}"));
            }
        }
    }
}

/// Returns the defect of a value that should be a hash. Bare hex digits are also accepted.
fn hash_objection(value: &Value<'_>) -> Option<String> {
    let is = match value {
        Value::Null => return None,
        Value::String(text) if Digest::parse_either(text).is_some() => return None,
        Value::String(text) => excerpt(text),
        other => other.type_name().to_owned(),
    };
    Some(format!("is {is}, not a hash: sha256: and 64 lowercase hex digits"))
}
