//! Hints for errors of the library, which has no knowledge of commands, remedies for findings of `fsck`, and suggestions for
//! commands that people know from other programs.

use std::borrow::Cow;
use std::error::Error;

use runvault::display::similar;
#[cfg(feature = "gateway")]
use runvault::gateway::RuleSuggestion;
use runvault::json::reader::Limit;
use runvault::recorders::ConvertError;
use runvault::storage::{BackupError, ErrorKind, StorageError};
use runvault::validation::{Remedy, Violation};
use runvault::vault::bundle::BundleError;
use runvault::vault::copy::CopyError;
use runvault::vault::search::SearchError;
use runvault::vault::sql::SqlError;
use runvault::{LookupError, formats};

/// What can be done about a vault that is damaged so that it cannot be opened to check it.
pub(crate) const NOT_CHECKED: &str = "it can be neither checked nor repaired; restore it from a backup";

/// What can be done about a file that a gateway set aside.
#[cfg(feature = "gateway")]
pub(crate) const SET_ASIDE: &str =
    "; \"runvault gateway recover\" tries again, \"runvault gateway discard\" removes it";

/// Returns the message of `error`, with the command that helps, if there is one.
pub(crate) fn with_hint(error: &(dyn Error + 'static)) -> String {
    match hint(error) {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// Returns what to do about violations of a rule, for the explanation of the rule.
pub(crate) fn for_rule(id: &str) -> Option<&'static str> {
    Some(match id {
        "DOC4" => "--max-depth sets another limit.",
        "DOC5" => "--max-size, --max-values and --max-entries set other limits.",
        "BU7" => {
            "--max-size sets another limit for captures; \"zstd -dc FILE | runvault import -\" imports a decompressed bundle."
        }
        "KIND" => "--kind requires one.",
        "AMBIGUOUS" => "--kind NAME selects it.",
        "REMOVED" => "--allow-removed stores it again. \"runvault tombstones\" lists what was removed.",
        _ => return None,
    })
}

/// Returns the option for a rule of comparison that would make a request match a recording.
#[cfg(feature = "gateway")]
pub(crate) fn for_comparison(rule: &RuleSuggestion) -> String {
    match rule {
        // A shell would take the asterisk for a pattern of names of files.
        RuleSuggestion::Ignore(location) if location.contains('*') => format!("--ignore '{location}'"),
        RuleSuggestion::Ignore(location) => format!("--ignore {location}"),
        RuleSuggestion::Normalize(name) => format!("--normalize {name}"),
        other => other.to_string(),
    }
}

/// Returns the message of a violation with the option that helps, if there is one.
pub(crate) fn for_violation(violation: &Violation) -> Cow<'_, str> {
    let message = violation.message.as_str();
    match violation.remedy {
        // These messages end with the limit.
        Some(Remedy::Raise(Limit::Bytes)) => format!("{message}; raise it with --max-size").into(),
        Some(Remedy::Raise(limit)) => format!("{message}; raise the limit with {}", option_for(limit)).into(),
        Some(Remedy::RequireKind) => {
            format!("{message}; use --kind to require one of {}", formats::names()).into()
        }
        None => message.into(),
    }
}

/// Returns the option that sets a limit.
fn option_for(limit: Limit) -> &'static str {
    match limit {
        Limit::Bytes => "--max-size",
        Limit::Depth => "--max-depth",
        Limit::Values => "--max-values",
        Limit::Entries => "--max-entries",
    }
}

/// Returns the violations with the options that help.
pub(crate) fn for_violations(violations: &[Violation]) -> Vec<Violation> {
    let hinted = |violation: &Violation| Violation {
        message: for_violation(violation).into_owned(),
        ..violation.clone()
    };
    violations.iter().map(hinted).collect()
}

/// Returns the message of an error of a bundle with the option that helps, if there is one.
pub(crate) fn for_bundle(error: &BundleError) -> String {
    match error {
        BundleError::Broken { limit: Some(limit), .. } => {
            format!("{error}; raise it with {}", option_for(*limit))
        }
        _ => error.to_string(),
    }
}

/// Returns the message of an error of a recording with the option that helps, if there is one.
pub(crate) fn for_recording(error: &ConvertError) -> String {
    match error.limit {
        Some(limit) => format!("{error}; raise the limit with {}", option_for(limit)),
        None => error.to_string(),
    }
}

/// Returns a hint for `error`, or for the store error that it wraps.
pub(crate) fn hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref() {
        return for_store(error);
    }
    if let Some(error) = error.downcast_ref() {
        return for_lookup(error);
    }
    match error.downcast_ref() {
        Some(SearchError::NoIndex) => return Some("\"runvault index build\" builds one"),
        Some(SearchError::StaleIndex) => return Some("\"runvault index build\" rebuilds it"),
        Some(SearchError::Differs { .. }) => {
            return Some("\"runvault index build\" rebuilds the index, \"runvault fsck\" checks the vault");
        }
        Some(SearchError::Words(_) | SearchError::NoSuchField(_)) => return None,
        Some(SearchError::Store(error)) => return for_store(error),
        None => {}
    }
    match error.downcast_ref() {
        Some(SqlError::Exists { .. }) => return Some("use --force to replace it"),
        Some(SqlError::Store(error)) => return for_store(error),
        _ => {}
    }
    match error.downcast_ref() {
        Some(CopyError::Store(error)) => return for_store(error),
        Some(CopyError::OtherSource(_)) => {
            return Some("continue with the vault that it was begun from, or copy into another one");
        }
        Some(CopyError::Missing { .. } | CopyError::Rejected { .. } | CopyError::Differs(_)) => {
            return Some("\"runvault fsck\" on the vault shows details");
        }
        _ => {}
    }
    match error.downcast_ref() {
        Some(BackupError::Exists { .. }) => Some("use --force to replace it"),
        Some(BackupError::Store(error)) => for_store(error),
        _ => None,
    }
}

fn for_store(error: &StorageError) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::NoDatabase => "\"createdb\" creates it",
        ErrorKind::Missing => "\"runvault init\" or \"runvault add --create\" creates one",
        ErrorKind::Older => {
            "\"runvault export --all -o FILE\" of that build writes a bundle of it, \"runvault import FILE\" of this one reads the \
             bundle"
        }
        ErrorKind::Incomplete => "\"runvault copy\" with the same vaults continues it",
        ErrorKind::Damaged => {
            "\"runvault fsck --repair --from PATH\" restores them if PATH is another vault or a directory that has them"
        }
        ErrorKind::Pinned => "\"runvault pin remove\" allows it to be removed",
        ErrorKind::VaultDamaged => {
            "\"runvault fsck\" shows details and \"runvault fsck --repair\" repairs what it can; otherwise restore it from a \
             backup"
        }
        ErrorKind::IndexDamaged => "\"runvault index rebuild\" rebuilds it from the artifacts",
        ErrorKind::HardLinks => {
            "\"find DIR -samefile PATH\" lists the names; remove all but one while no program uses the vault, or copy the \
             file and name the copy"
        }
        ErrorKind::Replaced => "end all programs that use the vault, and run this again",
        _ => return None,
    })
}

fn for_lookup(error: &LookupError) -> Option<&'static str> {
    Some(match error {
        LookupError::NotFound(_) => "\"runvault find\" lists the artifacts",
        LookupError::NoSuchTag(_) => "\"runvault tag list\" lists the tags",
        LookupError::CaptureNotFound { .. } => "\"runvault show\" lists its captures",
        LookupError::SeveralMembers { .. } => "--member NAME writes one of them, -o all of them",
        LookupError::NoRecording { .. } => {
            "sessions and runs do; \"runvault links\" lists those linked to it"
        }
        LookupError::Store(error) => return for_store(error),
        _ => return None,
    })
}

const FROM: &str = "`fsck --repair --from` another vault or a directory with the same bytes restores them; \
    without one, restore the vault from a backup.";

/// The remedies by the ids of findings.
const REMEDIES: &[(&str, &str)] = &[
    (
        "insecure-permissions",
        "`fsck --repair` or `chmod go-w` removes the permission. Check the directory too.",
    ),
    (
        "file-damaged",
        "`fsck --repair` writes a new file with all rows that can be read, and keeps the damaged one beside it.",
    ),
    (
        "page-shared",
        "Write nothing to this vault. Restore it from a backup, or `copy` it to a new vault. If that fails, `export` the \
         artifacts that can be read and `import` them into a new vault.",
    ),
    (
        "log-damaged",
        "Add again what was added last, from its files or from a backup; `log` shows what the vault has. Then delete the copy, or move it elsewhere.",
    ),
    (
        "schema-differs",
        "For a file, `fsck --repair` writes a new one with the right schema, and keeps the other one beside it. Restore a vault in a \
         database from a backup, or `export --all` the intact artifacts and `import` them into a new vault.",
    ),
    (
        "unreadable",
        "`fsck --repair` leaves out what cannot be read, and restores what the journal or stored bytes prove. If the finding \
         remains, `copy` the vault to a new one. If that fails, restore it from a backup.",
    ),
    (
        "missing-row",
        "`fsck --repair` restores it if the chain of the journal is intact, with `--from` if its bytes are missing too.",
    ),
    (
        "surplus-row",
        "`fsck --repair` removes rows that belong to nothing, and values that the stored bytes do not contain. It keeps \
         artifacts, tags, notes, pins, labels and links that the journal does not record, because the end of the journal may be \
         lost: compare the vault with a backup, and the head of the journal with one that was saved elsewhere. Then remove what \
         should not be there, and set the rest again, so that the journal records it. If an artifact contains the bytes of a \
         removed one, `rm` it too, or add the removed one again with `add --allow-removed`.",
    ),
    (
        "different-row",
        "`fsck --repair` writes what follows from the journal, if its chain is intact, and from the stored bytes.",
    ),
    ("missing-bytes", FROM),
    ("damaged-bytes", FROM),
    (
        "not-admitted",
        "No action is needed. `runvault rules ID` explains the rule; `verify` reports the same for the original file. An artifact \
         of an unknown kind is checked by the version of runvault that added it.",
    ),
    (
        "wrong-signature",
        "`index rebuild` with the same keys records it as wrong; `find --signature wrong` lists such captures. Find out who signed it, \
         and `rm` it if it should not be there.",
    ),
    (
        "index-differs",
        "`fsck --repair` or `index rebuild` rebuilds the index of mentions from the stored bytes, and `index build` the search index.",
    ),
    ("broken-chain", "Compare the vault with a backup. A broken chain cannot be repaired, only explained."),
    ("unknown-entry", "Check the vault with the newest version of runvault that wrote to it."),
];

/// Returns what to do about the finding with this id. It names commands in Markdown.
pub(crate) fn for_finding(id: &str) -> &'static str {
    REMEDIES.iter().find(|(known, _)| *known == id).map_or("", |(_, remedy)| remedy)
}

/// What to use in place of commands of git, restic, jujutsu, borg and others.
const SUGGESTIONS: &[(&[&str], &str)] = &[
    (&["dir", "snapshots"], "\"runvault list\" lists what is stored, \"runvault find\" finds artifacts"),
    (
        &["cat", "cat-file", "fetch", "read"],
        "\"runvault get HASH\" writes an artifact's bytes, \"runvault view HASH\" a transcript",
    ),
    (
        &["inspect", "info", "describe"],
        "\"runvault show HASH\" describes an artifact, \"runvault stats\" the vault",
    ),
    (&["status", "du", "df"], "\"runvault stats\" shows counts and disk usage"),
    (
        &["check", "doctor", "scrub"],
        "\"runvault fsck\" checks the vault, \"runvault verify PATH\" checks files without storing them",
    ),
    (&["validate", "lint"], "\"runvault verify PATH\" checks files without storing them"),
    (&["repair", "recover", "rescue"], "\"runvault fsck --repair\" repairs what it can"),
    (
        &["prune", "clean", "compact", "vacuum"],
        "\"runvault forget\" applies a retention policy, \"runvault gc\" reclaims disk space",
    ),
    (
        &["restore", "extract", "checkout"],
        "\"runvault get HASH -o PATH\" writes an artifact to a file; a backup is a vault, which --vault names",
    ),
    (
        &["remove", "delete", "del"],
        "\"runvault rm HASH\" removes an artifact, \"runvault tag remove NAME\" a tag; labels, links, notes and pins alike",
    ),
    (
        &["put", "store", "save", "commit", "ingest", "create"],
        "\"runvault add PATH\" adds artifacts, \"runvault init\" creates a vault",
    ),
    (&["open", "new"], "\"runvault init\" creates a vault"),
    (&["grep", "rg"], "\"runvault search TEXT\" searches the text of artifacts"),
    (&["query", "select"], "\"runvault find\" filters artifacts, \"runvault sql QUERY\" runs a query"),
    (&["history", "reflog", "journal"], "\"runvault log\" shows the journal"),
    (
        &["cp", "clone", "dump", "sync"],
        "\"runvault copy FROM TO\" copies a vault into another one, \"runvault backup FILE\" to a file, \"runvault export\" artifacts to a bundle",
    ),
    (
        &["push", "send"],
        "\"runvault copy FROM TO\" copies a vault into another one, \"runvault export --all -o FILE.rvz\" writes a bundle for it",
    ),
    (&["archive", "bundle"], "\"runvault export HASH -o FILE.rvz\" writes artifacts to a bundle"),
    (&["pull", "load", "receive"], "\"runvault import FILE.rvz\" adds the artifacts of a bundle"),
    (&["compare", "cmp"], "\"runvault diff A B\" compares two artifacts"),
    (
        &["graph", "refs", "references", "tree"],
        "\"runvault links HASH\" lists links, \"runvault unresolved\" references to missing artifacts",
    ),
    (
        &["run", "record"],
        "\"runvault exec -- PROGRAM\" records its model calls, \"runvault gateway\" those of other clients",
    ),
    (&["captures"], "\"runvault show HASH\" lists the captures of an artifact"),
    (&["browse", "web", "ui"], "\"runvault serve\" shows the vault in a browser"),
    (&["name", "alias", "bookmark", "rename"], "\"runvault tag set HASH NAME\" names an artifact"),
    (&["keep", "protect", "lock"], "\"runvault pin add HASH\" protects an artifact from removal"),
    (&["unlock"], "a vault needs no unlocking; \"runvault pin remove HASH\" allows removal"),
    (&["play", "mock"], "\"runvault replay HASH --serve-stdio\" serves recorded responses"),
    (&["set", "get-config", "settings"], "\"runvault config\" shows or changes settings"),
    (&["reindex"], "\"runvault index rebuild\" rebuilds all indexes"),
    (&["version"], "\"runvault --version\" prints the version"),
];

/// What to use in place of a command with the name of a kind.
const OF_KIND: &str = "\"runvault list KIND\" lists the artifacts of one kind";

/// Returns what to use in place of a command that does not exist.
pub(crate) fn for_command(name: &str) -> Option<&'static str> {
    let known = SUGGESTIONS.iter().find(|(names, _)| names.contains(&name));
    let is_kind = || formats::called(name).is_some();
    known.map(|(_, suggestion)| *suggestion).or_else(|| is_kind().then_some(OF_KIND))
}

/// Returns the option of `command`, or of all commands, that an unknown one may stand for.
pub(crate) fn for_option(typed: &str, root: &clap::Command, command: &clap::Command) -> Option<String> {
    let known: Vec<String> = command
        .get_arguments()
        .chain(root.get_arguments().filter(|argument| argument.is_global_set()))
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .collect();
    let similar = similar(typed, known.iter().map(String::as_str), 1);
    similar.first().map(|option| (*option).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use clap::CommandFactory;
    use runvault::vault::fsck::finding::ALL;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_finding_has_a_remedy() {
        let ids: Vec<&str> = REMEDIES.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, ALL.iter().map(|info| info.id).collect::<Vec<_>>());
    }

    #[test]
    fn the_documentation_has_every_finding() {
        const BEGIN: &str = "\n### `";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fsck.md");
        let actual = std::fs::read_to_string(&path).unwrap();
        let mut expected = String::new();
        for info in ALL {
            let (id, summary, meaning, remedy) = (info.id, info.summary, info.meaning, for_finding(info.id));
            write!(expected, "\n### `{id}`\n\n{summary}\n\n{meaning}\n\n*What to do:* {remedy}\n").unwrap();
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            // The findings are the last section.
            let (before, _) = actual.split_once(BEGIN).unwrap();
            std::fs::write(&path, format!("{before}{expected}")).unwrap();
            return;
        }
        assert!(
            actual.contains(&expected),
            "UPDATE_DOCS=1 cargo test --bin runvault documentation writes it"
        );
    }

    #[test]
    fn suggestions_name_commands_that_exist() {
        let root = Cli::command();
        for (names, suggestion) in SUGGESTIONS {
            for name in *names {
                assert!(root.find_subcommand(name).is_none(), "{name} is a command");
            }
            for line in suggestion.split("\"runvault ").skip(1) {
                let words: Vec<&str> = line.split('"').next().unwrap().split(' ').collect();
                assert!(words[0].starts_with('-') || root.find_subcommand(words[0]).is_some(), "{words:?}");
            }
        }
    }
}
