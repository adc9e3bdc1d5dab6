//! Arguments about the comparison of requests and what is not stored.

use clap::Args;
use runvault::calls::{InvalidRule, MatchingRules};

use crate::cli::args::settings::{self, Setting};
use crate::cli::output::exit::CommandError;

/// How requests are compared.
#[derive(Args)]
pub(crate) struct MatchingArgs {
    /// Leave these members of requests out of comparisons
    ///
    /// Names of members of the request, or JSON Pointers in which * is any name or index, separated by commas.
    #[arg(long, value_name = "MEMBER", value_delimiter = ',')]
    ignore: Vec<String>,

    /// Replace text in requests before comparing them
    ///
    /// The rule is s/PATTERN/TEXT/, or POINTER=s/PATTERN/TEXT/ for what is at a JSON Pointer. Can be repeated. PATTERN is a regular expression, and TEXT can refer to its groups as $1. Any character can take the place of the
    /// slashes. timestamp, date and uuid are names of rules, as is POINTER=uuid. The request is stored unchanged, with
    /// the rule. Example: s/\d{4}-\d\d-\d\d/DATE/
    #[arg(long, value_name = "RULE")]
    normalize: Vec<String>,

    /// Replace matches with [REDACTED] before anything is stored
    ///
    /// PATTERN is a regular expression. Can be repeated.
    #[arg(long, value_name = "PATTERN", hide_short_help = true)]
    redact: Vec<String>,
}

impl MatchingArgs {
    /// Returns whether an argument is given.
    pub(crate) fn is_given(&self) -> bool {
        [&self.ignore, &self.normalize, &self.redact].into_iter().any(|rules| !rules.is_empty())
    }

    /// Returns whether something is to be redacted.
    pub(crate) fn redacts(&self) -> Result<bool, CommandError> {
        Ok(!self.redact.is_empty() || !configured(&settings::GATEWAY_REDACT)?.is_empty())
    }

    /// Returns the rules of the settings, and then those of the arguments.
    pub(crate) fn rules(&self) -> Result<MatchingRules, CommandError> {
        let invalid = |error: InvalidRule| CommandError::Usage(error.to_string());
        let mut rules = MatchingRules::default();
        for location in configured(&settings::GATEWAY_IGNORE)?.iter().chain(&self.ignore) {
            rules.ignore(location).map_err(invalid)?;
        }
        for rule in configured(&settings::GATEWAY_NORMALIZE)?.iter().chain(&self.normalize) {
            rules.normalize(rule).map_err(invalid)?;
        }
        for pattern in configured(&settings::GATEWAY_REDACT)?.iter().chain(&self.redact) {
            rules.redact(pattern).map_err(invalid)?;
        }
        Ok(rules)
    }
}

/// Returns the elements of a setting; none if it is not set.
pub(crate) fn configured(setting: &Setting<Vec<String>>) -> Result<Vec<String>, CommandError> {
    Ok(setting.get()?.unwrap_or_default())
}
