//! Telling packs from other directories.

use crate::artifact::Peek;
use crate::canonical::reader::{self, MemberNames};
use crate::kinds;

/// Members that other directories are not likely to have by chance. Sessions and metadata are not among them: a
/// directory of sessions is no pack.
const TELLING: [&str; 7] =
    ["run.json", "bundle.json", "patch.json", "evidence.json", "ledger.jsonl", "policy.json", "runner.json"];

/// Members that say what happened. At least one of them is in every pack worth the name.
const CENTRAL: [&str; 3] = ["run.json", "bundle.json", "ledger.jsonl"];

/// Whether a directory with entries of these names is a pack: if its `run.json` has a member that only the runs of
/// packs have, or if two of the telling names are there, one of which is central. Documents of other kinds do not
/// count, whatever they are called.
pub(super) fn is_pack(names: &[&str], peek: &mut Peek<'_>) -> bool {
    if !names.iter().any(|name| CENTRAL.contains(name)) {
        return false;
    }
    if names.contains(&"run.json") && is_run(&peek("run.json")) {
        return true;
    }
    let mut candidates: Vec<&str> = names.iter().copied().filter(|name| TELLING.contains(name)).collect();
    candidates.dedup();
    candidates.len() > 1 && {
        candidates.retain(|name| kinds::recognise(&peek(name)).is_none());
        candidates.len() > 1 && candidates.iter().any(|name| CENTRAL.contains(name))
    }
}

fn is_run(head: &[u8]) -> bool {
    let text = reader::lossy(head);
    let mut names = MemberNames::of(&text);
    names.has("run_schema_version") || names.has("kernel_result_kind")
}
