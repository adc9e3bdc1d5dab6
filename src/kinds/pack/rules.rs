use std::collections::{BTreeMap, BTreeSet};

use super::inner::{Inner, InnerRule, SCHEMA, info};
use super::members::{self, Members, NAMES, SESSION, not_json};
use super::{bundle, hash, ledger, patch, path, runner};
use crate::artifact::EntryContent;
use crate::canonical::reader::{ReadError, excerpt};
use crate::canonical::{Value, rfc8785};
use crate::verify::{Finder, Rule, RuleInfo, Severity};

/// What is no directory breaks this, and nothing else is looked at.
pub(super) const IO: RuleInfo = info(
    "IO",
    "A pack is a directory, or an archive of one, that can be read.",
    "A path that does not exist, a file that is no archive and a link to a directory are no packs: name the directory \
     itself.",
);

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

const fn warning(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { severity: Severity::Warning, ..info(id, summary, why) }
}

type Check = fn(&Members<'_>, &mut Finder<'_>);

/// All rules of packs, applied in this order.
pub(super) static RULES: [Rule<Check>; 15] = [
    Rule {
        info: info(
            "PK1",
            "run.json is there, and bundle.json unless the run was refused.",
            "Without them there is no run to look at. bundle.json may be absent only if run.json can be read and its \
             kernel_result_kind is REFUSE. What is no regular file does not count.",
        ),
        check: required_files,
    },
    Rule {
        info: info(
            "PK2",
            "A pack contains only files of the nine names.",
            "run.json, bundle.json, patch.json, evidence.json, ledger.jsonl, policy.json, model_io.json, runner.json and \
             meta.json, spelled exactly so. Anything else has no meaning in a pack, and might hide something.",
        ),
        check: known_names,
    },
    Rule {
        info: info(
            "PK3",
            "run.json has the members of a run.",
            "The ten required ones may have any value, null included. If kernel_result_kind is there, it is BUNDLE, \
             CLARIFY or REFUSE.",
        ),
        check: run,
    },
    Rule {
        info: info(
            "PK4",
            "bundle.json keeps the rules of bundles.",
            "One violation for each broken rule of bundles, whose id is in the message: BS1 to BS8 and SCHEMA.",
        ),
        check: |members, found| inner(members, "bundle.json", found, bundle::check),
    },
    Rule {
        info: info(
            "PK5",
            "run.json's bundle.sha256 is the hash of bundle.json.",
            "It ties the run to its result: with another bundle the pack would tell of another run. The hash is that of \
             the canonical form and a line feed. A run that names no bundle is not compared.",
        ),
        check: bundle_hash,
    },
    Rule {
        info: info(
            "PK6",
            "A pack contains no symbolic links.",
            "A link can point to anything on the machine of whoever follows it. runvault never does.",
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
        info: info(
            "PK7",
            "Names do not lead anywhere else.",
            "The name of an entry contains no slash, backslash or NUL. A directory that is named must be named plainly: \
             without .., without superfluous dots and slashes. In an archive, absolute names and names that climb out \
             are refused; nothing is ever written by such a name.",
        ),
        check: plain_names,
    },
    Rule {
        info: info(
            "PK8",
            "Optional members keep their own rules.",
            "For patch.json, model_io.json and runner.json the id of the broken rule is in the message. evidence.json has \
             five required members. policy.json is the same as run.json's policy. meta.json is any JSON.",
        ),
        check: optional_members,
    },
    Rule {
        info: info(
            "PK9",
            "Every line of ledger.jsonl is an entry.",
            "An entry is JSON and has seven required members. Lines of white space, a missing last line feed and \
             carriage returns are allowed; an empty file is, too.",
        ),
        check: |members, found| {
            if let Some(bytes) = members.file(ledger::NAME) {
                ledger::check(bytes, members.limits, found);
            } else if members.is_unopenable(ledger::NAME) {
                found.add(ledger::NAME, "is no file and cannot be read");
            }
        },
    },
    Rule {
        info: info(
            "PK10",
            "Violations are sorted by rule id, path and message.",
            "Two verifications of one pack print the same report. runvault sorts every report, so this cannot be broken \
             by a pack.",
        ),
        check: |_, _| {},
    },
    Rule {
        info: info(
            "PK11",
            "meta.json takes no part in anything.",
            "It must be JSON and is not looked at beyond that. runvault leaves it out of the core hash, so this cannot be \
             broken by a pack.",
        ),
        check: |_, _| {},
    },
    Rule {
        info: info(
            "PK12",
            "Everything in a pack is a regular file.",
            "Directories, devices and pipes are refused. None is ever opened: reading a pipe could wait forever.",
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
        info: warning(
            "PK13",
            "Integers are at most 2^53.",
            "Members are hashed as RFC 8785 says, whose numbers are doubles. A larger integer is hashed as the nearest \
             double, so another integer near it would give the same hash. Write such numbers as strings.",
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
        info: warning(
            "PK14",
            "run.json's model_io_hash is the ModelIOHash of model_io.json.",
            "The format's own verifier does not compare them, so a difference does not refuse the pack. It means that \
             the run states another recording than the one beside it.",
        ),
        check: session_hash,
    },
    Rule {
        info: info(
            "PK15",
            "No two entries have the same name.",
            "Only archives can have two. Programs disagree on which of them counts.",
        ),
        check: |members, found| {
            let mut seen = BTreeMap::<&str, usize>::new();
            for entry in &members.directory.entries {
                *seen.entry(&entry.name).or_default() += 1;
            }
            for (name, count) in seen.into_iter().filter(|(_, count)| *count > 1) {
                found.add(name, format!("there are {count} entries of this name"));
            }
        },
    },
];

/// Every rule, those of members last. SCHEMA is listed once.
pub(super) fn all() -> Vec<RuleInfo> {
    let tables: [&[InnerRule]; 6] = [
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

fn required_files(members: &Members<'_>, found: &mut Finder<'_>) {
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

fn known_names(members: &Members<'_>, found: &mut Finder<'_>) {
    let names: BTreeSet<&str> = members.directory.entries.iter().map(|entry| entry.name.as_str()).collect();
    for name in names.into_iter().filter(|name| !NAMES.contains(name)) {
        let known = NAMES.into_iter().find(|known| known.eq_ignore_ascii_case(name));
        let hint =
            known.map_or(String::new(), |known| format!("; names are case-sensitive, was {known} meant?"));
        found.add(name, format!("is not one of the nine names of a pack's files{hint}"));
    }
}

fn run(members: &Members<'_>, found: &mut Finder<'_>) {
    const NAME: &str = "run.json";
    match members.json(NAME) {
        None => {}
        Some(Err(error)) => found.add(NAME, not_json(error)),
        Some(Ok(run @ (Value::Object(_) | Value::Array(_)))) => {
            for name in RUN_FIELDS.into_iter().filter(|name| run.get(name).is_none()) {
                found.add(NAME, format!("the required member {name} is missing"));
            }
            let result = run.get("kernel_result_kind");
            let is_known = |kind: &Value<'_>| matches!(kind.as_str(), Some("BUNDLE" | "CLARIFY" | "REFUSE"));
            if let Some(other) = result.filter(|kind| !is_known(kind)) {
                let is = other.as_filled_str().map_or_else(|| other.sort().to_owned(), excerpt);
                found.add(NAME, format!("kernel_result_kind is {is}, not BUNDLE, CLARIFY or REFUSE"));
            }
        }
        Some(Ok(other)) => found.add(NAME, format!("a run is an object, this is {}", other.sort())),
    }
}

/// Applies the rules of the member `name`, if it is there.
fn inner(
    members: &Members<'_>,
    name: &'static str,
    found: &mut Finder<'_>,
    check: fn(&Value<'_>, &mut Inner<'_, '_>),
) {
    match members.json(name) {
        None => {}
        Some(Err(error)) => found.add(name, not_json(error)),
        Some(Ok(value)) => check(value, &mut Inner::new(name, found)),
    }
}

fn bundle_hash(members: &Members<'_>, found: &mut Finder<'_>) {
    let Some(bundle) = members.json("bundle.json") else { return };
    let reference = members.value("run.json").and_then(|run| run.get("bundle"));
    let text = |name: &str| reference.and_then(|reference| reference.get(name)).and_then(Value::as_str);
    let (Some(_), Some(stated)) = (text("bundle_id"), text("sha256")) else { return };
    let actual = bundle.ok().and_then(hash::canonical_hash);
    if actual.is_none_or(|actual| actual.to_string() != stated) {
        let is = actual.map_or_else(|| "it has none".to_owned(), |actual| format!("which is {actual}"));
        found.add("bundle.json", format!("run.json's bundle.sha256 is not the hash of the bundle, {is}"));
    }
}

fn plain_names(members: &Members<'_>, found: &mut Finder<'_>) {
    if let Some(given) = members.directory.given.as_deref().filter(|given| !path::is_plain(given)) {
        let message = "the path has \"..\" or is not in its plain form; name the directory plainly, for example by its \
                       absolute path";
        found.add(given, message);
    }
    for entry in &members.directory.entries {
        if entry.name.contains(['/', '\\', '\0']) {
            found.add(&entry.name, "the name contains a slash, a backslash or a NUL");
        }
    }
}

fn optional_members(members: &Members<'_>, found: &mut Finder<'_>) {
    inner(members, "patch.json", found, patch::check);
    inner(members, "runner.json", found, runner::check);
    evidence(members, found);
    policy(members, found);
    if let Some(Err(error)) = members.json("meta.json") {
        found.add("meta.json", not_json(error));
    }
    if let Some(Err(report)) = &members.session {
        for violation in report.violations() {
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

fn evidence(members: &Members<'_>, found: &mut Finder<'_>) {
    const NAME: &str = "evidence.json";
    match members.json(NAME) {
        None => {}
        Some(Err(error)) => found.add(NAME, not_json(error)),
        Some(Ok(evidence @ (Value::Object(_) | Value::Array(_)))) => {
            for name in EVIDENCE_FIELDS.into_iter().filter(|name| evidence.get(name).is_none()) {
                found.add(NAME, format!("the required member {name} is missing"));
            }
        }
        Some(Ok(other)) => found.add(NAME, format!("evidence is an object, this is {}", other.sort())),
    }
}

fn policy(members: &Members<'_>, found: &mut Finder<'_>) {
    const NAME: &str = "policy.json";
    let read: Result<&Value<'_>, &ReadError> = match members.json(NAME) {
        Some(read) => read,
        None if members.is_unopenable(NAME) => return found.add(NAME, "is no file and cannot be read"),
        None => return,
    };
    match read {
        Err(error) => found.add(NAME, not_json(error)),
        Ok(policy) => {
            let stated = members.value("run.json").and_then(|run| run.get("policy"));
            let differs = |stated| match (rfc8785::to_vec(stated), rfc8785::to_vec(policy)) {
                (Ok(stated), Ok(policy)) => stated != policy,
                _ => false,
            };
            if stated.is_some_and(differs) {
                found.add(NAME, "is not the same as run.json's policy");
            }
        }
    }
}

fn session_hash(members: &Members<'_>, found: &mut Finder<'_>) {
    let stated = members.value("run.json").and_then(|run| run.get("model_io_hash"));
    let Some(stated) = stated.filter(|stated| !stated.is_null()) else { return };
    let Some(Ok(session)) = &members.session else { return };
    if stated.as_str() != Some(session.core().to_string().as_str()) {
        let actual = session.core();
        found.add(
            "run.json",
            format!("model_io_hash is not the ModelIOHash of model_io.json, which is {actual}"),
        );
    }
}
