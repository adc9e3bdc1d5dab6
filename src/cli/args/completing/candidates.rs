//! Completion candidates of arguments. They are attached to arguments in one place, by the names of options and values, so
//! that the same argument is completed in the same way by every command.

use std::collections::BTreeSet;

use clap::Arg;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use runvault::Vault;
use runvault::artifact::{Field, Kind};
use runvault::digest::PREFIX;
use runvault::formats;
use runvault::storage::{ArtifactRecord, Filter, Hit, Order, Page, Snapshot, StorageError, TimeBasis};
use runvault::vault::resolve::RUN_IDS;
use runvault::vault::rules::RulesRequest;
use runvault::vault::show::AttributeSummary;

use super::line::CompletionLine;
use crate::cli::args::help;

use crate::cli::args::settings::SettingType;
use crate::cli::output::columns;
use crate::cli::output::matches::label;
use crate::cli::output::table::DIGITS;
use crate::cli::output::time;

/// Maximum number of artifacts, tags or values offered.
const OFFERED: usize = 50;

/// The name of the newest artifact.
const LATEST: &str = "latest";

/// The source of the candidates of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CandidateSource {
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
pub(super) enum CandidateFilter {
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
            Self::Runs => kind.is_run(),
            Self::Recordings => kind.playback().is_some(),
            Self::Contracts => kind == formats::TERMS,
        }
    }

    fn kinds(self) -> Option<Vec<&'static str>> {
        let of_these = || formats::ALL.into_iter().filter(|kind| self.has(*kind)).map(Kind::name).collect();
        (self != Self::Any).then(of_these)
    }
}

/// A question to a vault whose answers complete an argument.
type CandidateQuery<'q> = dyn Fn(&dyn Snapshot) -> Result<Vec<CompletionCandidate>, StorageError> + 'q;

impl CandidateSource {
    /// Selects the source by the name of the argument, so that all commands complete it in the same way.
    pub(super) fn for_argument(argument: &Arg) -> Option<Self> {
        let value = argument.get_value_names()?.first()?.as_str();
        let Some(option) = argument.get_long() else { return Self::for_positional(argument, value) };
        Some(match option {
            "model" => Self::Values("model_id"),
            "adapter" => Self::Values("adapter_id"),
            "run-id" => Self::Values("run_id"),
            "trace-id" => Self::Values("trace_id"),
            "tool" => Self::Values("tool"),
            "host" => Self::Values("http_host"),
            "method" => Self::Values("http_method"),
            "policy" => Self::Values("policy"),
            "model-mode" => Self::Values("model_mode"),
            "io-ref" => Self::Values("io_ref"),
            "attr" => Self::Attributes,
            "label" | "keep-label" => Self::Labels,
            "mentions" => Self::Artifacts(CandidateFilter::Any),
            "keep-tag" => Self::Tags,
            "expect" => Self::ArtifactsOrFiles,
            "columns" => Self::Columns,
            "in" => Self::Fields,
            // Elsewhere the argument itself lists the kinds.
            "kind" if argument.get_possible_values().is_empty() => Self::Kinds,
            _ => return None,
        })
    }

    fn for_positional(argument: &Arg, value: &str) -> Option<Self> {
        Some(match (value, argument.get_id().as_str()) {
            ("HASH" | "FROM" | "TO", _) => Self::Artifacts(CandidateFilter::Any),
            ("HASH|any", _) => Self::Artifacts(CandidateFilter::Recordings),
            ("RUN", _) => Self::Artifacts(CandidateFilter::Runs),
            ("CONTRACT", _) => Self::Artifacts(CandidateFilter::Contracts),
            ("A B", _) => Self::ArtifactsOrFiles,
            // For "tag remove"; the name in "tag set" is usually new, but may be an existing one that moves.
            ("NAME", "name") if argument.get_possible_values().is_empty() => Self::Tags,
            ("KEY=VALUE", "labels") => Self::Labels,
            ("KEY", _) => Self::LabelKeys,
            ("WHAT", _) => Self::Plurals,
            ("ID", _) => Self::Rules,
            ("COMMAND", _) => Self::Commands,
            ("VALUE", _) => Self::SettingValues,
            _ => return None,
        })
    }

    /// Returns the candidates for the typed text; none if there is any error.
    pub(super) fn candidates(self, typed: &str, line: &CompletionLine) -> Vec<CompletionCandidate> {
        let vault = |ask: &CandidateQuery| {
            let query_vault = |vault: Vault| vault.snapshot().and_then(|snapshot| ask(&*snapshot)).ok();
            line.vault().and_then(query_vault).unwrap_or_default()
        };
        match self {
            Self::Artifacts(which) => vault(&|snapshot| artifacts(snapshot, typed, which)),
            Self::ArtifactsOrFiles => {
                let mut candidates = vault(&|snapshot| artifacts(snapshot, typed, CandidateFilter::Any));
                candidates.extend(PathCompleter::any().complete(typed.as_ref()));
                candidates
            }
            Self::Tags => vault(&|snapshot| tags(snapshot, "", typed, CandidateFilter::Any)),
            Self::Values(name) => vault(&|snapshot| values(snapshot, name, typed)),
            Self::Labels => vault(&|snapshot| labels(snapshot, typed)),
            Self::LabelKeys => vault(&|snapshot| {
                let keys = snapshot.label_keys()?.into_iter().map(|key| (key.key, String::new()));
                Ok(beginning(typed, keys))
            }),
            Self::Attributes => vault(&|snapshot| attributes(snapshot, typed)),
            Self::Plurals => {
                let plurals = formats::ALL.into_iter().map(Kind::plural).chain(["artifacts"]);
                beginning(typed, plurals.map(|plural| (plural.to_owned(), String::new())))
            }
            Self::Kinds => {
                let names = formats::ALL.into_iter().flat_map(|kind| [kind.name(), kind.plural()]);
                beginning(typed, names.map(|name| (name.to_owned(), String::new())))
            }
            Self::Columns => {
                beginning(typed, columns::names().into_iter().map(|name| (name.to_owned(), String::new())))
            }
            Self::Fields => beginning(
                typed,
                formats::fields().into_iter().map(Field::name).map(|name| (name.to_owned(), String::new())),
            ),
            Self::SettingValues => match line.setting() {
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
    snapshot: &dyn Snapshot,
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
        candidates.extend(tags(snapshot, "@", typed, which)?);
    }
    let (prefix, digits) = match typed.strip_prefix(PREFIX) {
        Some(digits) => (PREFIX, digits),
        None => ("", typed),
    };
    let digits = digits.to_ascii_lowercase();
    if digits.chars().all(|c| c.is_ascii_hexdigit()) {
        // If more digits were typed than lists show, the full hash is offered.
        let shown = if digits.len() > DIGITS || !prefix.is_empty() { 64 } else { DIGITS };
        let kinds = which.kinds().unwrap_or_default().into_iter().map(str::to_owned).collect();
        let filter =
            Filter { kinds, digits: Some(digits).filter(|digits| !digits.is_empty()), ..Filter::default() };
        let order = Order::Newest(TimeBasis::LastSeen);
        for Hit { artifact: row, .. } in snapshot.find(&filter, order, &Page::first(OFFERED))?.items {
            let hex = row.core.0.hex();
            let value = format!("{prefix}{}", hex.get(..shown).unwrap_or(&hex));
            candidates.extend(candidate(value, what_it_is(snapshot, &row)?));
        }
    }
    // Where nothing was typed, the artifacts above stand for the runs.
    if !typed.is_empty() {
        candidates.extend(run_ids(snapshot, typed, which)?);
    }
    Ok(candidates)
}

/// Returns the ids of the runs that artifacts of these kinds belong to.
fn run_ids(
    snapshot: &dyn Snapshot,
    typed: &str,
    which: CandidateFilter,
) -> Result<Vec<CompletionCandidate>, StorageError> {
    let mut ids = BTreeSet::new();
    for name in RUN_IDS {
        let has_it = |kind: Kind| which.has(kind) && kind.attributes().iter().any(|known| known.name == name);
        if formats::ALL.into_iter().any(has_it) {
            ids.extend(snapshot.attribute_values(name, typed, OFFERED)?);
        }
    }
    Ok(ids.into_iter().filter_map(|id| candidate(id, String::new())).collect())
}

fn what_it_is(snapshot: &dyn Snapshot, row: &ArtifactRecord) -> Result<String, StorageError> {
    let attributes = snapshot.attributes_of(row.core)?.into_iter().map(AttributeSummary::from);
    let label = label(&attributes.collect::<Vec<_>>());
    Ok(format!("{} {} {label}", row.kind, time::display(row.seen_at)).trim_end().to_owned())
}

fn tags(
    snapshot: &dyn Snapshot,
    prefix: &str,
    typed: &str,
    which: CandidateFilter,
) -> Result<Vec<CompletionCandidate>, StorageError> {
    let mut candidates = Vec::new();
    let tags = snapshot.tags()?.into_iter();
    for (tag, row) in tags.filter(|(tag, _)| tag.name.starts_with(typed)).take(OFFERED) {
        if formats::named(&row.kind).is_none_or(|kind| which.has(kind)) {
            let about = format!("{:.12} {}", row.core, what_it_is(snapshot, &row)?);
            candidates.extend(candidate(format!("{prefix}{}", tag.name), about));
        }
    }
    Ok(candidates)
}

fn values(
    snapshot: &dyn Snapshot,
    name: &str,
    typed: &str,
) -> Result<Vec<CompletionCandidate>, StorageError> {
    let values = snapshot.attribute_values(name, typed, OFFERED)?;
    Ok(values.into_iter().filter_map(|value| candidate(value, String::new())).collect())
}

fn attributes(snapshot: &dyn Snapshot, typed: &str) -> Result<Vec<CompletionCandidate>, StorageError> {
    let pairs: Vec<String> = match typed.split_once('=') {
        Some((name, value)) => {
            let values = snapshot.attribute_values(name, value, OFFERED)?;
            values.into_iter().map(|value| format!("{name}={value}")).collect()
        }
        None => snapshot.attribute_names()?.into_iter().map(|name| format!("{name}=")).collect(),
    };
    Ok(beginning(typed, pairs.into_iter().map(|pair| (pair, String::new()))))
}

/// Returns the ids and summaries of all rules.
fn rules() -> impl Iterator<Item = (String, String)> {
    RulesRequest::default().answer().rules.into_iter().map(|rule| (rule.id, rule.summary))
}

fn labels(snapshot: &dyn Snapshot, typed: &str) -> Result<Vec<CompletionCandidate>, StorageError> {
    let pairs: Vec<String> = match typed.split_once('=') {
        Some((key, value)) => {
            let values = snapshot.label_values(key, value, OFFERED)?;
            values.into_iter().map(|label| format!("{key}={}", label.value)).collect()
        }
        None => snapshot.label_keys()?.into_iter().map(|key| format!("{}=", key.key)).collect(),
    };
    Ok(beginning(typed, pairs.into_iter().map(|pair| (pair, String::new()))))
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
