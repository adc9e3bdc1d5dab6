//! Every read operation that the program has, as command lines.

use std::collections::BTreeSet;

use runvault::Vault;
use runvault::artifact::Cell;
use runvault::vault::sql::SqlError;

use crate::sandbox::{Sandbox, command_pages};

/// Core hashes of the examples: a contract, a pack, a run pack, two sessions, a trace and the part of it.
pub(crate) const CONTRACT: &str = "5c496a37feba";
pub(crate) const PACK: &str = "54490aab8b3f";
pub(crate) const RUN: &str = "3941d389b337";
pub(crate) const SESSION: &str = "4df877dec7f4";
pub(crate) const SMALL: &str = "103ef1c54b58";
pub(crate) const TRACE: &str = "7c8de5910f63";
pub(crate) const PART: &str = "66c2f87e8153";

/// Commands that change a vault, make a copy of it or check it, and those that do not look at it.
const NOT_QUESTIONS: &[&str] = &[
    "init",
    "add",
    "watch",
    "link",
    "label",
    "tag",
    "pin",
    "backup",
    "copy",
    "import",
    "rm",
    "gc",
    "fsck",
    "index",
    "config",
    "rules",
    "serve",
    "mcp",
    "mcp-proxy",
    "exec",
    "gateway",
    "completions",
    "man",
    "help",
];

/// Questions that do not depend on what is in the vault.
const ALWAYS: &[&[&str]] = &[
    &["find", "--json"],
    &["find", "--json", "--all-versions", "--sort", "core"],
    &["find", "--all-versions", "--sort", "added", "--by", "first-seen"],
    &["find", "--json", "--sort", "created", "--by", "created"],
    &["find", "--sort", "kind", "--columns", "hash,kind"],
    &["find", "--json", "--limit", "2"],
    &["find", "--json", "--sort", "steps"],
    &["find", "--json", "--has-error"],
    &["find", "--json", "--attr", "interactions>=2"],
    &["find", "--json", "--answers"],
    &["list", "--json"],
    &["list", "--json", "--flat", "--sort", "latency"],
    &["find", "--json", "--prompt", "prompt 3"],
    &["find", "--json", "--prompt", "p"],
    &["find", "packs", "--json"],
    &["find", "sessions", "--json"],
    &["find", "runs", "--json"],
    &["find", "traces", "--json"],
    &["find", "contracts", "--json"],
    &["find", "--json", "--note", "a note"],
    &["find", "--json", "--label", "commit"],
    &["find", "--json", "--label", "branch=main"],
    &["label", "list", "--json"],
    &["label", "list", "commit", "--json"],
    &["label", "list", "--of", "latest", "--json"],
    &["find", "--json", "--by", "finished", "--since", "2020-01-01"],
    &["stats", "--by", "label:branch"],
    &["stats", "--by", "model", "--json"],
    &["forget", "--keep-label", "branch=main", "--group-by", "label:commit", "--dry-run", "--json"],
    &["find", "--json", "--model", "triage-large-2"],
    &["find", "--json", "--adapter", "openai-compatible"],
    &["find", "--json", "--attr", "mode=record"],
    &["find", "--json", "--run-id", "run-triage-4711"],
    &["find", "--json", "--trace-id", "run-triage-4711"],
    &["find", "--json", "--tool", "tracker.create"],
    &["find", "--json", "--result", "BUNDLE"],
    &["find", "--json", "--policy", "triage"],
    &["find", "--json", "--model-mode", "record"],
    &["find", "--json", "--io-ref", "service:tracker"],
    &["find", "--json", "--signature", "unsigned"],
    &["find", "--json", "--signature", "verified"],
    &["find", "--json", "--signed-by", "ours"],
    &["find", "--json", "--since", "2020-01-02", "--until", "2020-01-03"],
    &["find", "--json", "--by", "created", "--since", "2026-11-18T10:00:00Z"],
    &["search", "--json", "label*", "--all", "--limit", "100"],
    &["search", "--json", "\"text 3 of\"", "--limit", "400"],
    &["search", "--json", "export OR tracker", "--in", "response"],
    &["search", "tracker", "--kind", "rpk"],
    &["log", "--json"],
    &["log"],
    &["log", "--since", "2020-01-02", "--json"],
    &["log", "--until", "2020-01-02", "--action", "add"],
    &["log", "--head"],
    &["tag", "list", "--json"],
    &["pin", "list", "--json"],
    &["unresolved", "--all", "--json"],
    &["forks", "--json"],
    &["tombstones", "--json"],
    &["forget", "--keep-last", "1", "--dry-run", "--json"],
    &["forget", "--keep-daily", "1", "--by", "created", "--dry-run", "--json"],
    &["show", "latest", "--json"],
    &["show", "latest~2", "--json"],
    &["replay", "any", "--prompt", "prompt 3"],
    &["replay", "any", "--prompt", "prompt 3", "--json"],
    &["verify", "latest", "--json"],
    &["export", "--all", "-o", "-"],
];

/// Questions about the artifacts of [`super::every_table::small`].
fn of_small() -> Vec<Vec<&'static str>> {
    let mut ask = vec![
        vec!["show", "@golden", "--json"],
        vec!["get", "@golden"],
        vec!["show", SMALL],
        vec!["find", "--json", "--mentions", RUN],
        vec!["rm", SESSION, "--force", "--dry-run", "--json"],
        vec!["path", "@golden", "@agreed", "--json"],
        vec!["path", CONTRACT, SESSION],
        vec!["links", SESSION, "--depth", "3", "--format", "dot"],
        vec!["links", CONTRACT, "--relation", "governs", "--direction", "out"],
        vec!["audit", CONTRACT, "--json"],
        vec!["audit", CONTRACT, RUN, "--json"],
        vec!["replay", RUN],
        vec!["replay", RUN, "--json"],
        vec!["replay", "latest~1", "--prompt", "prompt 3", "--sequential", "--index", "3"],
        vec!["diff", "--all", "--json", TRACE, PART],
        vec!["diff", "--all", "--json", "latest~1", "latest~2"],
        vec!["assert", "latest~1", "--candidate", "latest~2", "--json"],
        vec!["get", PACK, "--member", "run.json"],
        vec!["note", "show", CONTRACT],
        vec!["export", RUN, "--with-links", "-o", "-"],
    ];
    for core in [CONTRACT, PACK, RUN, SESSION, TRACE, PART] {
        if core != PACK {
            ask.push(vec!["get", core]);
        }
        ask.push(vec!["get", core, "--core"]);
        ask.push(vec!["show", core, "--json"]);
        ask.push(vec!["view", core, "--json"]);
        ask.push(vec!["links", core, "--json"]);
        ask.push(vec!["verify", core, "--json"]);
    }
    ask
}

/// The views that `sql` names.
const VIEWS: &[&str] = &[
    "artifacts",
    "captures",
    "mentions",
    "attributes",
    "stated_links",
    "tags",
    "labels",
    "pins",
    "notes",
    "tombstones",
    "journal_entries",
    "sessions",
    "runs",
    "traces",
    "contracts",
    "packs",
    "interactions",
    "steps",
    "records",
    "effects",
    "io_refs",
    "links",
];

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Every question to a vault that has at least the examples, if `has_examples`.
pub(crate) fn questions(has_examples: bool) -> Vec<Vec<String>> {
    let mut ask: Vec<Vec<String>> = ALWAYS.iter().map(|words| owned(words)).collect();
    if has_examples {
        ask.extend(of_small().iter().map(|words| owned(words)));
    }
    ask.extend(VIEWS.iter().map(|view| owned(&["sql", "--json", &format!("SELECT * FROM {view}")])));
    ask.push(owned(&["stats", "--json"]));
    ask
}

#[test]
fn every_command_is_a_question_or_is_none() {
    let text = command_pages();
    let commands: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("# runvault ")).collect();
    assert!(commands.len() > 30, "{commands:?}");
    let ask = questions(true);
    let mut known: BTreeSet<&str> = ask.iter().map(|words| words[0].as_str()).collect();
    known.extend(NOT_QUESTIONS);
    let unknown: Vec<_> = commands.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Every question has an answer in a vault that nothing happened to, so that none is wrong usage.
#[test]
fn every_question_can_be_asked() {
    let sandbox = super::every_table::small();
    let asked = questions(true).into_iter().map(|words| {
        let output = sandbox.command().args(&words).output().unwrap();
        (words, output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    });
    let wrong: Vec<_> = asked.filter(|(_, status, _)| !matches!(status, Some(0..=1))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Words, exit status, standard output.
pub(crate) type Answers = Vec<(String, i32, Vec<u8>)>;

/// What the program answers. What is on the disk is not part of an answer.
pub(crate) fn answers(vault: &Sandbox, has_examples: bool) -> Answers {
    let vault_file = Vault::open(&vault.vault());
    let answer = |words: Vec<String>| {
        // A process for each view would take longer than everything else.
        if let Some(query) = words.last().filter(|_| words[0] == "sql") {
            let rows = match &vault_file {
                Ok(vault) => format!("{:?}", rows(vault, query)),
                Err(error) => error.to_string(),
            };
            return (words.join(" "), 0, rows.into_bytes());
        }
        let ran = vault.command().args(&words).output().unwrap();
        let mut stdout = ran.stdout;
        if words[0] == "stats" {
            stdout = without_sizes(&stdout);
        }
        (words.join(" "), ran.status.code().unwrap_or(-1), stdout)
    };
    questions(has_examples).into_iter().map(answer).collect()
}

/// The rows of a query, up to the first that cannot be read.
fn rows(vault: &Vault, query: &str) -> Result<Vec<Vec<Cell>>, SqlError> {
    vault.sql()?.prepare(query, &[])?.rows().collect()
}

/// `stats` without what the file takes, which a change of the file may change.
fn without_sizes(stdout: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(stdout) else { return stdout.to_vec() };
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !["file_bytes", "free_bytes", "search_bytes"].contains(&name.as_str()));
    }
    value.to_string().into_bytes()
}
