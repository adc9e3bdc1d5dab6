//! Completion candidates of arguments. An argument names the source of its candidates where it is defined.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use runvault::artifact::{Field, Kind};
use runvault::digest::PREFIX;
use runvault::storage::StorageError;
use runvault::vault::annotations::{LabelKeysRequest, LabelValuesRequest, TagSummary, TagsRequest};
use runvault::vault::columns::{ArtifactColumn, identifying_values};
use runvault::vault::details::{AttributeNamesRequest, AttributeValuesRequest, Detail, RUN_IDS};
use runvault::vault::find::{ArtifactFilter, Condition, FindRequest, FoundArtifact};
use runvault::vault::rules::RulesRequest;
use runvault::{Vault, formats};

use crate::cli::args::settings::{self, SettingType};
use crate::cli::args::{environment, help};
use crate::cli::output::matches::artifact_label;
use crate::cli::output::table::DIGITS;
use crate::cli::output::time;

/// Maximum number of artifacts, tags or values offered.
const OFFERED: u64 = 50;

/// The name of the newest artifact.
const LATEST: &str = "latest";

/// The source of the candidates of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CandidateSource {
    /// Artifacts of these kinds, by tag or hash.
    Artifacts(CandidateFilter),
    /// Artifacts by tag or hash, or files.
    ArtifactsOrFiles,
    /// Tags, without @.
    Tags,
    /// The values of an attribute.
    Values(&'static str),
    /// An attribute name, = and one of its values.
    Attributes,
    /// A label key, and after = one of its values.
    Labels,
    /// The keys of labels.
    LabelKeys,
    /// The kinds that "find" accepts.
    Plurals,
    /// Kinds, by both names.
    Kinds,
    /// The columns.
    Columns,
    /// The searchable fields.
    Fields,
    Rules,
    Commands,
    /// Values of the setting that the command line names.
    SettingValues,
}

/// A filter of artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CandidateFilter {
    Any,
    /// Those that record runs.
    Runs,
    /// Those that can be replayed.
    Recordings,
    Contracts,
}

impl CandidateFilter {
    fn has(self, kind: Kind) -> bool {
        match self {
            Self::Any => true,
            Self::Runs => kind.info().is_run,
            Self::Recordings => kind.info().playback.is_some(),
            Self::Contracts => kind == formats::TERMS,
        }
    }

    fn kinds(self) -> Option<Vec<&'static str>> {
        let of_these = || formats::ALL.into_iter().filter(|kind| self.has(*kind)).map(Kind::name).collect();
        (self != Self::Any).then(of_these)
    }
}

/// A question to a vault whose answers complete an argument.
type CandidateQuery<'q> = dyn Fn(&Vault) -> Result<Vec<CompletionCandidate>, StorageError> + 'q;

impl CandidateSource {
    /// Any artifact.
    pub(crate) const ARTIFACTS: Self = Self::Artifacts(CandidateFilter::Any);
    /// Those that record runs.
    pub(crate) const RUNS: Self = Self::Artifacts(CandidateFilter::Runs);
    /// Those that can be replayed.
    pub(crate) const RECORDINGS: Self = Self::Artifacts(CandidateFilter::Recordings);
    /// Those that runs are audited against.
    pub(crate) const CONTRACTS: Self = Self::Artifacts(CandidateFilter::Contracts);

    /// Returns the completer of an argument. It reads the command line only when a shell asks.
    pub(crate) fn completer(self) -> ArgValueCompleter {
        ArgValueCompleter::new(move |typed: &OsStr| {
            let line = CompletionLine::parse(&asked_words());
            // Text that is not UTF-8 matches no name in runvault.
            typed.to_str().map(|typed| self.candidates(typed, &line)).unwrap_or_default()
        })
    }

    /// Returns the candidates for the typed text; none if there is any error.
    fn candidates(self, typed: &str, line: &CompletionLine) -> Vec<CompletionCandidate> {
        let vault =
            |ask: &CandidateQuery| line.vault().and_then(|vault| ask(&vault).ok()).unwrap_or_default();
        match self {
            Self::Artifacts(which) => vault(&|vault| artifacts(vault, typed, which)),
            Self::ArtifactsOrFiles => {
                let mut candidates = vault(&|vault| artifacts(vault, typed, CandidateFilter::Any));
                candidates.extend(PathCompleter::any().complete(typed.as_ref()));
                candidates
            }
            Self::Tags => vault(&|vault| tags(vault, "", typed, CandidateFilter::Any)),
            Self::Values(name) => vault(&|vault| values(vault, name, typed)),
            Self::Labels => vault(&|vault| labels(vault, typed)),
            Self::LabelKeys => vault(&|vault| {
                let keys =
                    vault.run(&LabelKeysRequest {})?.keys.into_iter().map(|key| (key.key, String::new()));
                Ok(beginning(typed, keys))
            }),
            Self::Attributes => vault(&|vault| attributes(vault, typed)),
            Self::Plurals => {
                let plurals = formats::ALL.into_iter().map(Kind::plural).chain(["artifacts"]);
                beginning(typed, plurals.map(|plural| (plural.to_owned(), String::new())))
            }
            Self::Kinds => {
                let names = formats::ALL.into_iter().flat_map(|kind| [kind.name(), kind.plural()]);
                beginning(typed, names.map(|name| (name.to_owned(), String::new())))
            }
            Self::Columns => beginning(
                typed,
                ArtifactColumn::names().into_iter().map(|name| (name.to_owned(), String::new())),
            ),
            Self::Fields => beginning(
                typed,
                formats::fields().into_iter().map(Field::name).map(|name| (name.to_owned(), String::new())),
            ),
            Self::SettingValues => match line.setting {
                Some(setting) if setting.name == "search" => {
                    beginning(typed, ["on", "off"].map(|word| (word.to_owned(), String::new())).into_iter())
                }
                Some(setting) if setting.values != SettingType::Text => {
                    PathCompleter::any().complete(typed.as_ref())
                }
                _ => Vec::new(),
            },
            Self::Rules => beginning(&typed.to_ascii_uppercase(), rules()),
            Self::Commands => {
                let commands = help::command();
                let named = commands.get_subcommands();
                beginning(typed, named.map(|command| (command.get_name().to_owned(), about(command))))
            }
        }
    }
}

fn about(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// Returns the known values that start with the typed text.
fn beginning(typed: &str, known: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    known
        .filter(|(value, _)| value.starts_with(typed))
        .filter_map(|(value, about)| candidate(value, about))
        .collect()
}

/// Returns a candidate with its description. Values with characters that a shell could interpret are never offered:
/// they may come from artifacts, and not every shell quotes completions.
fn candidate(value: String, about: String) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@=,+-".contains(c);
    let fits = !value.is_empty() && !value.starts_with('-') && value.chars().all(is_plain);
    let about = (!about.is_empty()).then(|| about.into());
    fits.then(|| CompletionCandidate::new(value).help(about))
}

/// Returns the tags, then the newest artifacts, then the run ids that begin with the typed text.
fn artifacts(
    vault: &Vault,
    typed: &str,
    which: CandidateFilter,
) -> Result<Vec<CompletionCandidate>, StorageError> {
    let mut candidates = Vec::new();
    if which == CandidateFilter::Any && LATEST.starts_with(typed) {
        candidates.extend(candidate(
            LATEST.to_owned(),
            "the artifact that was added or seen again last".to_owned(),
        ));
    }
    if let Some(typed) = typed.strip_prefix('@').or_else(|| typed.is_empty().then_some("")) {
        candidates.extend(tags(vault, "@", typed, which)?);
    }
    let (prefix, digits) = match typed.strip_prefix(PREFIX) {
        Some(digits) => (PREFIX, digits),
        None => ("", typed),
    };
    if digits.chars().all(|c| c.is_ascii_hexdigit()) {
        // If more digits were typed than lists show, the full hash is offered.
        let shown = if digits.len() > DIGITS || !prefix.is_empty() { 64 } else { DIGITS };
        let digits = Some(digits.to_owned()).filter(|digits| !digits.is_empty());
        for found in find(vault, which, ArtifactFilter { digits, ..ArtifactFilter::default() })? {
            let hex = found.artifact.core_hash.0.hex();
            let value = format!("{prefix}{}", hex.get(..shown).unwrap_or(&hex));
            candidates.extend(candidate(value, what_it_is(&found)));
        }
    }
    // Where nothing was typed, the artifacts above stand for the runs.
    if !typed.is_empty() {
        candidates.extend(run_ids(vault, typed, which)?);
    }
    Ok(candidates)
}

/// Returns the newest artifacts that match, of the kinds that may be given.
fn find(
    vault: &Vault,
    which: CandidateFilter,
    filter: ArtifactFilter,
) -> Result<Vec<FoundArtifact>, StorageError> {
    let kinds = which.kinds().unwrap_or_default().into_iter().map(str::to_owned).collect();
    let request = FindRequest {
        filter: ArtifactFilter { kinds, ..filter },
        all_versions: true,
        limit: Some(OFFERED),
        details: vec![Detail::Attributes],
        ..FindRequest::default()
    };
    Ok(vault.run(&request)?.hits)
}

/// Returns the ids of the runs that artifacts of these kinds belong to.
fn run_ids(
    vault: &Vault,
    typed: &str,
    which: CandidateFilter,
) -> Result<Vec<CompletionCandidate>, StorageError> {
    let mut ids = BTreeSet::new();
    for name in RUN_IDS {
        let has_it = |kind: Kind| which.has(kind) && kind.attributes().iter().any(|known| known.name == name);
        if formats::ALL.into_iter().any(has_it) {
            ids.extend(attribute_values(vault, name, typed)?);
        }
    }
    Ok(ids.into_iter().filter_map(|id| candidate(id, String::new())).collect())
}

/// Describes an artifact in one line.
fn what_it_is(found: &FoundArtifact) -> String {
    let label = artifact_label(identifying_values(found.details.attributes.as_deref().unwrap_or_default()));
    format!(
        "{} {} {label}",
        formats::bare_noun(&found.artifact.kind),
        time::display(found.artifact.seen_at.0)
    )
    .trim_end()
    .to_owned()
}

fn tags(
    vault: &Vault,
    prefix: &str,
    typed: &str,
    which: CandidateFilter,
) -> Result<Vec<CompletionCandidate>, StorageError> {
    let mut candidates = Vec::new();
    let tags = vault.run(&TagsRequest {})?.tags.into_iter().filter(|tag| tag.name.starts_with(typed));
    for TagSummary { name, .. } in tags.take(usize::try_from(OFFERED).unwrap_or(usize::MAX)) {
        let conditions = vec![Condition::Tagged { name: Some(name.clone()) }];
        for found in find(vault, which, ArtifactFilter { conditions, ..ArtifactFilter::default() })? {
            let about = format!("{:.12} {}", found.artifact.core_hash, what_it_is(&found));
            candidates.extend(candidate(format!("{prefix}{name}"), about));
        }
    }
    Ok(candidates)
}

fn values(vault: &Vault, name: &str, typed: &str) -> Result<Vec<CompletionCandidate>, StorageError> {
    let values = attribute_values(vault, name, typed)?;
    Ok(values.into_iter().filter_map(|value| candidate(value, String::new())).collect())
}

/// Returns values of an attribute that begin with the typed text.
fn attribute_values(vault: &Vault, name: &str, typed: &str) -> Result<Vec<String>, StorageError> {
    let (name, prefix) = (name.to_owned(), typed.to_owned());
    Ok(vault.run(&AttributeValuesRequest { name, prefix, limit: Some(OFFERED) })?.values)
}

fn attributes(vault: &Vault, typed: &str) -> Result<Vec<CompletionCandidate>, StorageError> {
    let pairs: Vec<String> = if let Some((name, value)) = typed.split_once('=') {
        let values = attribute_values(vault, name, value)?;
        values.into_iter().map(|value| format!("{name}={value}")).collect()
    } else {
        let names = vault.run(&AttributeNamesRequest {})?.names;
        names.into_iter().map(|name| format!("{name}=")).collect()
    };
    Ok(beginning(typed, pairs.into_iter().map(|pair| (pair, String::new()))))
}

/// Returns the ids and summaries of all rules.
fn rules() -> impl Iterator<Item = (String, String)> {
    RulesRequest::default().answer().rules.into_iter().map(|rule| (rule.id, rule.summary))
}

fn labels(vault: &Vault, typed: &str) -> Result<Vec<CompletionCandidate>, StorageError> {
    let pairs: Vec<String> = if let Some((key, value)) = typed.split_once('=') {
        let (key, prefix) = (key.to_owned(), value.to_owned());
        let request = LabelValuesRequest { key, prefix, limit: Some(OFFERED) };
        let values = vault.run(&request)?.values;
        values.into_iter().map(|label| format!("{}={}", request.key, label.value)).collect()
    } else {
        let keys = vault.run(&LabelKeysRequest {})?.keys;
        keys.into_iter().map(|key| format!("{}=", key.key)).collect()
    };
    Ok(beginning(typed, pairs.into_iter().map(|pair| (pair, String::new()))))
}

/// The command line to complete.
#[derive(Clone)]
struct CompletionLine {
    /// The vault that it names.
    vault: Option<PathBuf>,
    /// The setting whose value is completed.
    setting: Option<&'static settings::SettingInfo>,
}

/// Returns the words of the command line that a shell asks about.
pub(super) fn asked_words() -> Vec<OsString> {
    std::env::args_os().skip_while(|word| word != "--").skip(1).collect()
}

impl CompletionLine {
    fn parse(words: &[OsString]) -> Self {
        let after = |at: usize| words.get(at + 1).map(OsString::as_os_str);
        let mut named = words.iter().enumerate().rev().filter_map(|(at, word)| match word.to_str()? {
            // Bash splits "--vault=x" into several words.
            "--vault" if after(at).is_some_and(|next| next == "=") => after(at + 1).map(PathBuf::from),
            "--vault" => after(at).map(PathBuf::from),
            word => word.strip_prefix("--vault=").map(PathBuf::from),
        });
        let set = words.iter().position(|word| word == "set").and_then(after);
        let setting = set.and_then(|name| Some(settings::named(name.to_str()?)?.entry()));
        Self { vault: named.next(), setting }
    }

    /// Returns the vault, if it exists and can be read.
    fn vault(&self) -> Option<Vault> {
        let set = || settings::VAULT.get_path().ok();
        let path = match &self.vault {
            Some(path) => path.clone(),
            None => set()?.map_or_else(|| environment::default_path().ok(), Some)?,
        };
        Vault::open(&path).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_is_what_arguments_take() {
        assert!(LATEST.parse::<crate::cli::args::hash::ArtifactArg>().is_ok());
    }

    #[test]
    fn nothing_that_a_shell_would_run_is_offered() {
        for hostile in
            ["$(reboot)", "`id`", "a b", "a;b", "-rf", "a'b", "a\"b", "a\nb", "~x", "a*", "\u{1b}[2J", ""]
        {
            assert_eq!(candidate(hostile.to_owned(), String::new()), None, "{hostile:?}");
        }
        assert!(candidate("triage/large-2.1:x@y=z".to_owned(), String::new()).is_some());
    }
}
