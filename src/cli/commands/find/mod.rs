//! `runvault find`

pub(crate) mod conditions;

use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::{Kind, group};
use runvault::display::brief;
use runvault::formats;
use runvault::vault::answers::{AnswersAnswer, AnswersRequest, DistinctAnswer, GivenAnswer, PromptAnswers};
use runvault::vault::api::TimeBasis;
use runvault::vault::columns::ArtifactColumn;
use runvault::vault::details::Detail;
use runvault::vault::find::{Condition, FindAnswer, FindOrder, FindRequest};
use runvault::vault::view::ViewBody;

use crate::cli::args::attribute;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::columns;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::hits::{ArtifactListItem, ArtifactListPrinter, LineTemplate};
use crate::cli::output::stdout::{self, BAD, FAINT, HASH, counted};
use crate::cli::output::{fit, json, terminal, time};
use conditions::{FindConditionArgs, KindFilterArgs};

/// Find artifacts by prompt, model, run id, time, label or hash
///
/// All conditions must hold. The output says where each artifact matched. Hashes can be abbreviated. With "packs", a
/// pack also matches if the session that it contains does. A trace that a longer matching trace extends is not listed.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    what: KindFilterArgs,

    #[command(flatten)]
    conditions: FindConditionArgs,

    /// Also list traces that a longer matching trace extends
    #[arg(long, hide_short_help = true)]
    all_versions: bool,

    /// Maximum number of results. Default: 100 on a terminal, else unlimited
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Sort order. Default: newest first, by the time that --by names
    #[arg(long, value_name = "ORDER", value_parser = attribute::order(), hide_short_help = true)]
    sort: Option<FindOrder>,

    /// Print the answers to the prompt over time
    ///
    /// Which, how often, when and where. Without a prompt: the prompts of the matching artifacts that have
    /// different answers.
    #[arg(long, conflicts_with_all = ["columns", "format", "sort", "all_versions"])]
    answers: bool,

    /// Columns to print, such as core,kind,seen,label; an unknown name lists all columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = columns::named, add = CandidateSource::Columns.completer(), hide_short_help = true)]
    columns: Vec<ArtifactColumn>,

    /// Print each in this format, such as '{{core}} {{kind}}'; the names are those of --columns; \n and \t are escapes
    #[arg(long, value_name = "TEXT", conflicts_with = "columns", hide_short_help = true)]
    format: Option<LineTemplate>,

    /// Print one line of JSON for each artifact
    #[arg(long, conflicts_with_all = ["columns", "format"])]
    json: bool,
}

/// Maximum number of artifacts whose answers are read, unless requested otherwise.
const ANSWERS_OF: u64 = 1_000;

/// Maximum number of artifacts or rows listed on a terminal.
pub(crate) const SCREENFUL: u64 = 100;

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        if self.answers {
            return self.print_answers(&vault);
        }
        let list = ArtifactListPrinter::new(self.conditions.by);
        let mut list = match &self.format {
            Some(template) => list.with_format(template),
            None if self.columns.is_empty() => list,
            None => list.with_columns(&self.columns),
        };
        let details = if self.json { Detail::ALL.to_vec() } else { list.details() };
        let request = FindRequest { details, ..self.request(&vault)? };
        let out: Box<dyn Write> = if self.json { Box::new(stdout::raw()) } else { Box::new(stdout::text()) };
        let (mut out, mut shown) = (io::BufWriter::new(out), 0);
        let answer = request.visit::<CommandError>(&vault, &mut |hit| {
            shown += 1;
            if self.json {
                Ok(json::line(&mut out, &hit)?)
            } else {
                list.add(&mut out, ArtifactListItem::from(&hit))
            }
        })?;
        list.finish(&mut out)?;
        out.flush()?;
        if answer.found == 0 && answer.hidden == 0 {
            self.conditions.note_removals(&vault, self.what.about())?;
            self.conditions.note_near(&vault, &request.filter)?;
        }
        // Programs that parse the output must learn of omitted results too.
        match (self.json || self.format.is_some(), answer.hidden) {
            (false, _) => stdout::note(&self.ending(&answer, shown)),
            (true, hidden @ 1..) => stdout::note(&not_shown(hidden)),
            (true, 0) => {}
        }
        Ok(if answer.found == 0 { Status::No } else { Status::Done })
    }

    fn print_answers(&self, vault: &Vault) -> Result<Status, CommandError> {
        let is_recording = |kind: Kind| kind.info().playback.is_some();
        if let Some(kind) = self.what.kind().and_then(formats::named).filter(|kind| !is_recording(*kind)) {
            return Err(CommandError::Usage(format!("{} record no answers to prompts", kind.plural())));
        }
        let filter = self.what.filter(vault, &self.conditions)?;
        let requested = filter.clone();
        let prompt = filter.conditions.iter().find_map(|condition| match condition {
            Condition::Mention { group, digest } if group.as_deref() == Some(group::PROMPT) => Some(*digest),
            _ => None,
        });
        let answer = vault.run(&AnswersRequest {
            filter,
            prompt,
            limit: self.limit.map(|limit| limit as u64).or(Some(ANSWERS_OF)),
            max_text: (!self.json).then_some(SHOWN_CHARACTERS),
            ..AnswersRequest::default()
        })?;
        if answer.read == 0 {
            self.conditions.note_removals(vault, self.what.about())?;
            self.conditions.note_near(vault, &requested)?;
        }
        let mut out = io::BufWriter::new(stdout::text());
        if self.json {
            answer.prompts.iter().try_for_each(|prompt| json::stream(&mut out, prompt))?;
        } else {
            print(&mut out, &answer)?;
        }
        out.flush()?;
        if !self.json || answer.is_more {
            stdout::note(&ending(&answer));
        }
        Ok(if answer.prompts.is_empty() { Status::No } else { Status::Done })
    }

    fn request(&self, vault: &Vault) -> Result<FindRequest, CommandError> {
        // The list is limited only on a terminal.
        let people = terminal::is_terminal() && !self.json && self.format.is_none();
        Ok(FindRequest {
            filter: self.what.filter(vault, &self.conditions)?,
            order: self.sort.clone().unwrap_or_else(|| self.conditions.order()),
            all_versions: self.all_versions,
            limit: self.limit.map(|limit| limit as u64).or(people.then_some(SCREENFUL)),
            ..FindRequest::default()
        })
    }

    /// Returns the last line, with the number of hits, of which `shown` are listed, and how to see the rest.
    fn ending(&self, answer: &FindAnswer, shown: u64) -> String {
        let FindAnswer { found, is_more, hidden, .. } = answer;
        let plural = self.what.plural();
        let mut found_text = counted(*found, plural.strip_suffix('s').unwrap_or(plural));
        if *is_more {
            found_text = format!("more than {found_text}");
        }
        let listed = match self.limit {
            _ if shown == *found && !is_more => found_text,
            None if *is_more => format!("{shown} of {found_text}; --limit shows more"),
            Some(_) => format!("{shown} of {found_text}"),
            None => format!("{shown} of {found_text}; --limit {found} shows all"),
        };
        if *hidden == 0 { listed } else { format!("{listed}; {}", not_shown(*hidden)) }
    }
}

fn not_shown(hidden: u64) -> String {
    let hidden = counted(hidden, "shorter version");
    format!("{hidden} not shown, --all-versions shows all")
}

/// Maximum number of characters of a text.
pub(crate) const SHOWN_CHARACTERS: u64 = 2_000;

/// Maximum number of lines of a text.
const LINES: usize = 12;

/// Maximum number of places listed for each answer; `--json` lists all.
const LISTED: usize = 10;

/// The indents of answers, and of their texts and places.
const ANSWER: usize = 2;
const TEXT: usize = 4;

/// Prints the answers to each prompt.
pub(crate) fn print(out: &mut dyn Write, answer: &AnswersAnswer) -> io::Result<()> {
    for (index, prompt) in answer.prompts.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        print_prompt(out, prompt)?;
    }
    Ok(())
}

/// Returns the last line.
pub(crate) fn ending(answer: &AnswersAnswer) -> String {
    let AnswersAnswer { prompts, read, is_more, unanimous } = answer;
    let mut ending = format!("{} in {}", counted(prompts.len() as u64, "prompt"), counted(*read, "artifact"));
    if *is_more {
        ending = format!("{ending} (there are more; --limit reads them)");
    }
    let same = prompts.iter().filter(|prompt| prompt.answers.len() < 2).count() as u64;
    match unanimous.saturating_sub(same) {
        0 => ending,
        others => format!("{ending}; {} always had the same answer", counted(others, "other prompt")),
    }
}

fn print_prompt(out: &mut dyn Write, prompt: &PromptAnswers) -> io::Result<()> {
    let different = match prompt.answers.len() as u64 {
        1 => "always the same answer".to_owned(),
        several => counted(several, "different answer"),
    };
    let answer_count = counted(prompt.count, "answer");
    stdout::line(
        out,
        &format!("prompt {HASH}{:.12}{HASH:#}: {answer_count}, {different}", prompt.prompt_hash),
    )?;
    match &prompt.prompt {
        Some(text) => print_text(out, text, ANSWER, FAINT)?,
        None => stdout::line(out, &format!("  {FAINT}(only the hash is recorded){FAINT:#}"))?,
    }
    prompt.answers.iter().try_for_each(|answer| print_answer(out, answer))
}

fn print_answer(out: &mut dyn Write, answer: &DistinctAnswer) -> io::Result<()> {
    let failed = if answer.failed { format!(" {BAD}failed{BAD:#}") } else { String::new() };
    writeln!(out, "\n  {}{failed}", counted(answer.count, "time"))?;
    print_text(out, &answer.response, TEXT, Style::new())?;
    for given in answer.given.iter().take(LISTED) {
        print_given(out, given)?;
    }
    match answer.given.len().saturating_sub(LISTED) {
        0 => Ok(()),
        more => stdout::line(out, &format!("    {FAINT}and {more} more; --json lists them{FAINT:#}")),
    }
}

fn print_text(out: &mut dyn Write, text: &ViewBody, indent: usize, style: Style) -> io::Result<()> {
    let room = terminal::width().map_or(usize::MAX, |width| width.saturating_sub(indent));
    let (lines, is_cut) = fit::folded(text.text.as_deref().unwrap_or_default(), room, LINES);
    for line in lines {
        writeln!(out, "{:indent$}{style}{line}{style:#}", "")?;
    }
    if is_cut || text.omitted > 0 {
        let remark = format!("… {} in all; --json has everything", stdout::size(text.size));
        for line in fit::fold(&remark, room) {
            writeln!(out, "{:indent$}{FAINT}{line}{FAINT:#}", "")?;
        }
    }
    Ok(())
}

fn print_given(out: &mut dyn Write, given: &GivenAnswer) -> io::Result<()> {
    let basis = match given.time_basis {
        TimeBasis::Created => "created",
        TimeBasis::Finished => "finished",
        TimeBasis::FirstSeen | TimeBasis::LastSeen => "added",
    };
    let model = given.model_id.as_deref().map(|model| format!(", {}", brief(model))).unwrap_or_default();
    let (time, kind, place) = (
        time::display(given.time.0),
        brief(formats::bare_noun(&given.kind)),
        brief(&given.place.to_string()).to_string(),
    );
    let core = format!("{:.12}", given.core_hash);
    stdout::line(
        out,
        &format!("    {FAINT}{basis}{FAINT:#} {time}, {kind} {HASH}{core}{HASH:#}, {place}{model}"),
    )
}
