use std::collections::BTreeMap;

use super::member_rules::{PackMemberRule, SCHEMA, info};
use super::members::{self, PackContents};
use super::{bundle, checks, patch, runner};
use crate::artifact::EntryContent;
use crate::validation::{Finder, Rule, RuleInfo, Severity};

/// Broken by anything that is not a directory; no other rules are then checked.
pub(super) const IO: RuleInfo = info(
    "IO",
    "A pack is a readable directory, or an archive of one.",
    "A nonexistent path, a file that is not an archive and a link \
     to a directory are not packs: name the directory itself.",
);

/// Also broken by files of packs outside a pack.
pub(super) const REQUIRED_FILES: RuleInfo = info(
    "PK1",
    "run.json is present, and so is bundle.json unless the run was refused.",
    "Without them there is no run to examine. bundle.json may be absent only if run.json \
     can be read and its kernel_result_kind is REFUSE. Only regular files count. A pack \
     file in a directory without run.json is the rest of a pack: add the whole pack.",
);

const fn warning(id: &'static str, summary: &'static str, why: &'static str) -> RuleInfo {
    RuleInfo { severity: Severity::Warning, ..info(id, summary, why) }
}

type PackCheck = fn(&PackContents<'_>, &mut Finder<'_>);

/// All rules of packs, in the order in which they are checked.
pub(super) static RULES: [Rule<PackCheck>; 16] = [
    Rule { info: REQUIRED_FILES, check: checks::required_files },
    Rule {
        info: info(
            "PK2",
            "A pack contains only files with the nine known names.",
            "run.json, bundle.json, patch.json, evidence.json, ledger.jsonl, policy.json, model_io.json, runner.json \
             and meta.json, spelled exactly so. Any other file is undefined in a pack and might hide data.",
        ),
        check: checks::known_names,
    },
    Rule {
        info: info(
            "PK3",
            "run.json has the required members.",
            "The ten required ones may have any value, including null. If kernel_result_kind is \
             present, it is BUNDLE, CLARIFY or REFUSE. If run_schema_version has a major version, \
             that must be 1: in another version, the same members may have another meaning.",
        ),
        check: checks::run,
    },
    Rule {
        info: info(
            "PK4",
            "bundle.json conforms to the rules of bundles.",
            "One violation for each broken rule of bundles, with its id in the message: BS1 to BS8 and SCHEMA.",
        ),
        check: |members, found| checks::inner(members, "bundle.json", found, bundle::check),
    },
    Rule {
        info: info(
            "PK5",
            "run.json's bundle.sha256 is the hash of bundle.json.",
            "It ties the run to its result: with another bundle, the pack would describe another run. The \
             hash covers the canonical form and a line feed. A run that names no bundle is not compared.",
        ),
        check: checks::bundle_hash,
    },
    Rule {
        info: info(
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
        info: info(
            "PK7",
            "Names do not lead outside the pack.",
            "The name of an entry contains no slash, backslash or NUL. In an archive, absolute \
             names and names that lead outside are rejected; nothing is ever written under such a \
             name. How the pack itself is named, as ./pack or ../pack, does not matter.",
        ),
        check: checks::plain_names,
    },
    Rule {
        info: info(
            "PK8",
            "Optional members conform to their own rules.",
            "For patch.json, model_io.json and runner.json, the id of the broken rule is in the message. \
             evidence.json has five required members. policy.json equals run.json's policy. meta.json is any JSON.",
        ),
        check: checks::optional_members,
    },
    Rule {
        info: info(
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
        info: info(
            "PK10",
            "Violations are sorted by rule id, path and message.",
            "Two verifications of one pack print the same report. \
             runvault sorts every report, so no pack can break this rule.",
        ),
        check: |_, _| {},
    },
    Rule {
        info: info(
            "PK11",
            "meta.json is ignored.",
            "It must be JSON and is otherwise not examined. runvault leaves \
             it out of the core hash, so no pack can break this rule.",
        ),
        check: |_, _| {},
    },
    Rule {
        info: info(
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
        info: warning(
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
        info: warning(
            "PK14",
            "run.json's model_io_hash is the ModelIOHash of model_io.json.",
            "The format's own verifier does not compare them, so a difference does not reject \
             the pack. It means that the run states another recording than the one in the pack.",
        ),
        check: checks::session_hash,
    },
    Rule {
        info: info(
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
        info: warning(
            "PK16",
            "Stated hashes are sha256: and 64 lowercase hex digits.",
            "The format's own verifier does not check the hashes of intents and proposals, \
             so this does not reject the pack. Nothing can be found by a malformed hash.",
        ),
        check: checks::stated_hashes,
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
