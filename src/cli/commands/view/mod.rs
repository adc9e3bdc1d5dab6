//! `runvault view`

mod text;

use std::io::{self, Write};

use clap::{Args as ClapArgs, ValueEnum};
use runvault::vault::view::{ViewAnswer, ViewFilter, ViewRequest};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, counted};
use crate::cli::output::terminal;

/// Read an artifact as a transcript
///
/// Prints the steps of a run with their times, prompts, responses, tool calls and errors; the interactions of a session;
/// the records of a trace with the states between them; the effects and refs of a contract; the files of a pack; or an
/// attachment. A session records only the hashes of its prompts: their texts are looked up in runs and attachments, and
/// the output says where each was found. Long texts are shortened unless --full is given. Exit status 1 if no step
/// matches --from, --to and --only.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// The first step to print, by its number; the numbers begin at 0
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    from: u64,
    /// The last step to print, by its number
    #[arg(long, value_name = "N")]
    to: Option<u64>,
    /// Only calls of tools, or only failed steps
    #[arg(long, value_enum, value_name = "STEPS")]
    only: Option<ViewStepFilter>,
    /// Maximum number of steps. Default: 1000 on a terminal, else unlimited
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print long texts and the contents of files completely
    #[arg(long, hide_short_help = true)]
    full: bool,
    /// Also print each step as it is recorded
    #[arg(long)]
    recorded: bool,

    /// Print one JSON document, with complete texts
    #[arg(long)]
    json: bool,
}

/// The steps to print.
#[derive(Clone, Copy, ValueEnum)]
enum ViewStepFilter {
    /// Calls of tools and their results
    Tools,
    /// Steps that record a failure
    Errors,
}

/// Maximum number of steps printed on a terminal.
const SCREENFUL: u64 = 1_000;

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        if self.to.is_some_and(|to| to < self.from) {
            return Err(CommandError::Usage("--to must not be less than --from".into()));
        }
        let vault = vault.open()?;
        let located = self.hash.locate(&vault)?;
        let people = terminal::is_terminal() && !self.json;
        let answer = vault.run(&ViewRequest {
            capture: Some(located.capture.capture),
            from: self.from,
            to: self.to,
            only: self.only.map(ViewFilter::from),
            limit: self.limit.or(people.then_some(SCREENFUL)),
            max_text: (!self.json && !self.full).then_some(text::SHOWN_CHARACTERS),
            recorded: self.recorded,
            ..ViewRequest::new(located.artifact.core)
        })?;
        if self.json {
            let mut out = io::BufWriter::new(stdout::raw());
            json::stream(&mut out, &answer)?;
            out.flush()?;
        } else {
            let mut out = io::BufWriter::new(stdout::text());
            text::print(&mut out, &answer, self.full)?;
            out.flush()?;
            stdout::note(&ending(&answer));
        }
        let is_missed = answer.steps.is_empty() && answer.total > 0;
        Ok(if is_missed { Status::No } else { Status::Done })
    }
}

/// Returns the last line: how many steps were printed, and how to see more.
fn ending(answer: &ViewAnswer) -> String {
    let (shown, noun) = (answer.steps.len() as u64, &answer.step_noun);
    let mut ending = if shown == answer.total {
        counted(shown, noun)
    } else {
        format!("{shown} of {}", counted(answer.total, noun))
    };
    if answer.failed > 0 {
        ending = format!("{ending}, {} failed", answer.failed);
    }
    if let Some(next) = answer.next {
        ending = format!("{ending}; --from {next} continues");
    }
    ending
}

impl From<ViewStepFilter> for ViewFilter {
    fn from(only: ViewStepFilter) -> Self {
        match only {
            ViewStepFilter::Tools => Self::Tools,
            ViewStepFilter::Errors => Self::Errors,
        }
    }
}
