//! Recognition of pack directories.

use crate::artifact::HeadReader;
use crate::formats;
use crate::json::reader::{self, MemberNames};

/// Members that are unlikely to occur in other directories. Sessions and metadata are not among them: a directory of
/// sessions is not a pack.
const TELLING: [&str; 7] =
    ["run.json", "bundle.json", "patch.json", "evidence.json", "ledger.jsonl", "policy.json", "runner.json"];

/// Members that describe what happened. Every useful pack contains at least one of them.
const CENTRAL: [&str; 3] = ["run.json", "bundle.json", "ledger.jsonl"];

/// The member names that distinguish the files of packs from others with the same file name: any of these groups at the
/// root.
const CONTENTS: [(&str, &[&[&str]]); 6] = [
    ("run.json", &[&["run_schema_version"], &["kernel_result_kind"]]),
    (
        "bundle.json",
        &[
            &["schema_version", "kernel_version"],
            &["kernel_version", "terminal_nodes"],
            &["root_node", "terminal_nodes"],
        ],
    ),
    ("patch.json", &[&["patch_schema_version"], &["source_proposal_hash"]]),
    (
        "evidence.json",
        &[
            &["proposal_id", "proposal_hash"],
            &["proposal_id", "action_results"],
            &["proposal_hash", "action_results"],
        ],
    ),
    ("ledger.jsonl", &[&["intent_sha256"]]),
    ("runner.json", &[&["runner_schema_version"]]),
];

/// Returns whether a directory with entries of these names is a pack: if its `run.json` has a member that only the runs
/// of packs have, or if two of the distinctive names are present, one of which is central, and one of the files has
/// content that only files of packs have. Documents of other kinds do not count, whatever their names.
pub(super) fn is_pack(names: &[&str], peek: &mut HeadReader<'_>) -> bool {
    if !names.iter().any(|name| CENTRAL.contains(name)) {
        return false;
    }
    if names.contains(&"run.json") && is_member("run.json", &peek("run.json")) {
        return true;
    }
    let mut candidates: Vec<&str> = names.iter().copied().filter(|name| TELLING.contains(name)).collect();
    candidates.dedup();
    candidates.len() > 1 && {
        candidates.retain(|name| formats::recognize(&peek(name)).is_none());
        candidates.len() > 1
            && candidates.iter().any(|name| CENTRAL.contains(name))
            && candidates.iter().any(|name| is_member(name, &peek(name)))
    }
}

/// Returns whether a file with this name that begins with `head` has content that only files of packs have.
pub(super) fn is_member(name: &str, head: &[u8]) -> bool {
    let Some((_, groups)) = CONTENTS.into_iter().find(|(member, _)| *member == name) else { return false };
    let text = reader::lossy(head);
    let mut names = MemberNames::new(&text);
    groups.iter().any(|group| group.iter().all(|name| names.has(name)))
}
