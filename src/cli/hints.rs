//! Hints for errors of the library, which has no knowledge of commands.

use std::borrow::Cow;
use std::error::Error;

use runvault::LookupError;
use runvault::formats;
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
