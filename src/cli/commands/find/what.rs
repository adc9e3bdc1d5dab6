//! Positional arguments: a kind, and what artifacts are about.

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::vault::find::ArtifactFilter;

use super::conditions::FindConditionArgs;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::inputs::kind;
use crate::cli::output::exit::CommandError;

/// Artifacts of one kind, or of any.
#[derive(Clone)]
pub(crate) struct KindFilter {
    kind: Option<&'static str>,
    plural: &'static str,
}

/// What a positional argument selects.
#[derive(Clone)]
enum Selected {
    Kind(KindFilter),
    /// What has this hash or mentions it.
    About(ArtifactArg),
}

/// The artifacts that are listed.
#[derive(ClapArgs)]
pub(crate) struct KindFilterArgs {
    /// A kind, such as runs; or a hash, tag or run id, to find artifacts that have or mention it
    ///
    /// The kinds are sessions, runs, traces, contracts, packs and attachments, or artifacts (any kind). A kind and a hash
    /// can both be given.
    #[arg(value_name = "WHAT", num_args = 0..=2, value_parser = selected, add = CandidateSource::Plurals.completer())]
    what: Vec<Selected>,

    /// The same as the kind in WHAT
    #[arg(long, value_name = "KIND", value_parser = what, add = CandidateSource::Kinds.completer())]
    kind: Option<KindFilter>,
}

impl KindFilterArgs {
    fn chosen(&self) -> Option<&KindFilter> {
        let named = self.what.iter().find_map(|selected| match selected {
            Selected::Kind(kind) => Some(kind),
            Selected::About(_) => None,
        });
        self.kind.as_ref().or(named)
    }

    /// Returns the kind; `None` for artifacts of any kind.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        self.chosen().and_then(|chosen| chosen.kind)
    }

    pub(super) fn plural(&self) -> &'static str {
        self.chosen().map_or("artifacts", |chosen| chosen.plural)
    }

    /// Returns the filter of the artifacts that match both these arguments and the conditions.
    pub(crate) fn filter(
        &self,
        vault: &Vault,
        conditions: &FindConditionArgs,
    ) -> Result<ArtifactFilter, CommandError> {
        let kinds = self.what.iter().filter(|selected| matches!(selected, Selected::Kind(_))).count();
        if kinds + usize::from(self.kind.is_some()) > 1 {
            return Err(CommandError::Usage("give one kind".to_owned()));
        }
        let mut filter = conditions.filter(vault, self.kind())?;
        for named in self.about() {
            filter.conditions.push(named.about(vault)?);
        }
        Ok(filter)
    }

    /// Returns the arguments that are not kinds.
    pub(super) fn about(&self) -> impl Iterator<Item = &ArtifactArg> {
        self.what.iter().filter_map(|selected| match selected {
            Selected::About(named) => Some(named),
            Selected::Kind(_) => None,
        })
    }
}

fn what(text: &str) -> Result<KindFilter, String> {
    if ["artifact", "artifacts"].contains(&text) {
        return Ok(KindFilter { kind: None, plural: "artifacts" });
    }
    let known = kind(text).map_err(|error| format!("{error} or artifacts"))?;
    Ok(KindFilter { kind: Some(known.name()), plural: known.plural() })
}

fn selected(text: &str) -> Result<Selected, String> {
    what(text).map(Selected::Kind).or_else(|_| text.parse().map(Selected::About))
}
