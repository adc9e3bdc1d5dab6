//! `runvault view`

mod conversation;
mod printer;

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::display::{brief, escaped};
use runvault::formats;
use runvault::vault::api::PlaceSummary;
use runvault::vault::audit::{EffectAudit, LastAudit};
use runvault::vault::view::{
    BodyFormat, BodyRole, BodySource, StepClass, ViewAnswer, ViewBody, ViewFilter, ViewRequest, ViewStep,
};

use conversation::UnfinishedRunPrinter;
use printer::{INDENT, LINES, ROLE_WIDTH, TranscriptPrinter, milliseconds, remark};

use super::{audit, show};
use crate::cli::args::choice::{Choice, one_of};
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::report::Fields;
use crate::cli::output::stdout::{self, FAINT, HASH, counted};
use crate::cli::output::{fit, json, links, terminal};

/// Read an artifact as a transcript
///
/// Prints a run or a session as the conversation of an agent with models: of each call the messages that are new, the
/// answer, and the calls of tools with their results. Otherwise, or with --raw, prints the steps of a run with their times,
/// prompts, responses, tool calls and errors; the interactions of a session; the records of a trace with the states between
/// them; the effects and refs of a contract; the files of a pack; or an attachment. A session records only the hashes of its
/// prompts: their texts are looked up in runs and attachments, and --raw says where each was found. Long texts are shortened
/// unless --full is given. Of a run that is still being recorded, the calls so far are printed. Exit status 1 if no step
/// matches --from, --to and --only.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
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
    #[arg(long, value_name = "STEPS", value_parser = one_of(STEPS))]
    only: Option<ViewFilter>,
    /// Maximum number of steps. Default: 1000 on a terminal, else unlimited
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print long texts and the contents of files completely
    #[arg(long, hide_short_help = true)]
    full: bool,
    /// Print a run step by step instead of as a conversation
    #[arg(long)]
    raw: bool,
    /// Also print each step as it is recorded
    #[arg(long)]
    recorded: bool,

    /// Print the calls of a run that is being recorded as they end, until the run is finished; of latest, the run that began
    /// last
    #[arg(long, conflicts_with_all = ["from", "to", "only", "limit", "raw", "recorded", "json"])]
    follow: bool,

    /// Print one JSON document, with complete texts
    #[arg(long)]
    json: bool,
}

/// The steps to print.
const STEPS: &[Choice<ViewFilter>] = &[
    ("tools", ViewFilter::Tools, "Calls of tools and their results"),
    ("errors", ViewFilter::Errors, "Steps that record a failure"),
];

/// Maximum number of steps printed on a terminal.
const SCREENFUL: u64 = 1_000;

impl Args {
    pub(crate) fn run(&self, args: &VaultArgs) -> Result<Status, CommandError> {
        if self.to.is_some_and(|to| to < self.from) {
            return Err(CommandError::Usage("--to must not be less than --from".into()));
        }
        let vault = args.open()?;
        let unfinished = UnfinishedRunPrinter::new(args, &vault, &self.hash, self.full);
        if self.follow && unfinished.follow()? {
            return Ok(Status::Done);
        }
        let located = match self.hash.locate(&vault) {
            Ok(located) => located,
            Err(error) if self.hash.name().is_none() => return Err(error),
            Err(error) => {
                return if unfinished.print_once(self.json)? { Ok(Status::Done) } else { Err(error) };
            }
        };
        let people = terminal::is_terminal() && !self.json;
        let answer = vault.run(&ViewRequest {
            capture: Some(located.capture.capture),
            from: self.from,
            to: self.to,
            only: self.only,
            limit: self.limit.or(people.then_some(SCREENFUL)),
            max_text: (!self.json && !self.full).then_some(SHOWN_CHARACTERS),
            recorded: self.recorded,
            conversation: !self.raw && !self.recorded,
            ..ViewRequest::new(located.artifact.core)
        })?;
        if self.json {
            let mut out = io::BufWriter::new(stdout::raw());
            json::stream(&mut out, &answer)?;
            out.flush()?;
        } else {
            let mut out = io::BufWriter::new(stdout::text());
            print(&mut out, &answer, self.full)?;
            out.flush()?;
            stdout::note(&ending(&answer));
        }
        let is_missed = shown(&answer) == 0 && answer.total > 0;
        Ok(if is_missed { Status::No } else { Status::Done })
    }
}

/// Returns the number of steps or of calls that are printed.
fn shown(answer: &ViewAnswer) -> u64 {
    let calls = answer.conversation.as_ref().map(|conversation| conversation.calls.len());
    calls.unwrap_or(answer.steps.len()) as u64
}

/// Returns the last line: how many steps were printed, and how to see more.
fn ending(answer: &ViewAnswer) -> String {
    let (shown, noun) = (shown(answer), &answer.step_noun);
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

/// Maximum number of characters of a text that is not printed completely.
const SHOWN_CHARACTERS: u64 = 4_000;

/// Prints the transcript.
fn print(out: &mut dyn Write, answer: &ViewAnswer, full: bool) -> io::Result<()> {
    links::heading(out, &answer.artifact.kind, answer.artifact.core_hash)?;
    printer::print(out, answer)?;
    let mut fields = Fields::new(ROLE_WIDTH);
    show::labels(&answer.labels, &mut fields);
    show::attributes(&answer.attributes, &mut fields);
    if let Some(audit) = &answer.audit {
        fields.push("audit", audited(audit), Style::new());
    }
    fields.write(out)?;
    let latest = answer.audit.as_ref().and_then(|audit| audit.latest.as_ref());
    let mut printer = TranscriptPrinter::new(out, full);
    if let Some(conversation) = &answer.conversation {
        return conversation::print(&mut printer, conversation);
    }
    for step in &answer.steps {
        printer.step(step)?;
        let index = usize::try_from(step.index).unwrap_or(usize::MAX);
        if let Some(effect) = latest.and_then(|latest| latest.effects.get(index)) {
            printer.verdict(effect)?;
        }
    }
    match latest {
        Some(latest) if !latest.findings.is_empty() => {
            writeln!(out)?;
            audit::print_findings(out, latest)
        }
        _ => Ok(()),
    }
}

/// Describes which run the effects of a contract were audited in.
fn audited(audit: &LastAudit) -> String {
    match (&audit.latest, audit.runs) {
        (None, _) => "none: the contract governs no run in the vault".to_owned(),
        (Some(latest), 1) => format!("of {} {:.12}", brief(formats::bare_noun(&latest.kind)), latest.run),
        (Some(latest), runs) => {
            format!(
                "of {} {:.12}, the latest of {runs} runs",
                brief(formats::bare_noun(&latest.kind)),
                latest.run
            )
        }
    }
}

impl TranscriptPrinter<'_> {
    fn step(&mut self, step: &ViewStep) -> io::Result<()> {
        writeln!(self.out)?;
        self.heading(step)?;
        let facts = self.facts(step);
        self.lines(&facts, INDENT, FAINT)?;
        let states = hashes_of_states(step);
        if let Some((before, after)) = &states {
            let [before, after] = [before, after].map(|digest| format!("{HASH}{digest}{HASH:#}"));
            let chain = if before == after { before } else { format!("{before} -> {after}") };
            self.labeled("state", &[chain])?;
        }
        let is_shown = |body: &&ViewBody| states.is_none() || body.role != BodyRole::State;
        for body in step.bodies.iter().filter(is_shown) {
            self.body(body, &label(body), self.most(step, body))?;
        }
        match &step.recorded {
            Some(recorded) => self.body(recorded, "recorded", usize::MAX),
            None => Ok(()),
        }
    }

    /// Prints the verdict on an effect.
    fn verdict(&mut self, effect: &EffectAudit) -> io::Result<()> {
        let room = self.room();
        let style = audit::style_of(effect.verdict);
        let text = format!("{style}{}{style:#}: {}", effect.verdict.name(), escaped(&effect.because));
        let lines: Vec<String> = fit::fold(&text, room).into_iter().map(Cow::into_owned).collect();
        self.labeled("audit", &lines)
    }

    /// Prints the number, the type and the title.
    fn heading(&mut self, step: &ViewStep) -> io::Result<()> {
        self.title(step.index, &step.step_type, step.failed, step.title.as_deref().unwrap_or_default())
    }

    /// Returns the times and counts of a step.
    fn facts(&mut self, step: &ViewStep) -> String {
        let mut facts = Vec::new();
        facts.extend(step.time.map(|time| self.time(time.0)));
        facts.extend(step.duration_ms.map(milliseconds));
        facts.extend(step.status.as_deref().map(|status| brief(status).to_string()));
        facts.extend(step.tokens_in.map(|tokens| format!("{} in", counted(tokens, "token"))));
        facts.extend(step.tokens_out.map(|tokens| format!("{} out", counted(tokens, "token"))));
        facts.extend(step.size.map(stdout::size));
        facts.extend(step.answers.map(|request| format!("answers {request}")));
        facts.extend(step.digest.map(|digest| format!("{digest:.12}")));
        facts.join(", ")
    }

    /// Returns the maximum number of lines of a body.
    fn most(&self, step: &ViewStep, body: &ViewBody) -> usize {
        match (body.role, step.class) {
            _ if self.full => usize::MAX,
            (BodyRole::Context, _) => 2,
            (BodyRole::Content, StepClass::Member) => 0,
            (BodyRole::Content, _) => 100,
            _ => LINES,
        }
    }

    fn body(&mut self, body: &ViewBody, label: &str, most: usize) -> io::Result<()> {
        if most == 0 {
            return Ok(());
        }
        let room = self.room();
        let text = body.text.as_deref();
        let (mut lines, is_cut) = text.map(|text| fit::folded(text, room, most)).unwrap_or_default();
        if is_cut || body.omitted > 0 {
            lines.extend(self.cut(body.size));
        }
        if body.format == BodyFormat::Binary {
            lines.extend(remark(&format!("{} of binary data", stdout::size(body.size)), room));
        }
        lines.extend(source(body).into_iter().flat_map(|text| remark(&text, room)));
        self.labeled(label, &lines)
    }
}

/// Returns the label of a body: its role and its name.
fn label(body: &ViewBody) -> String {
    let role = match body.role {
        BodyRole::Context => "context",
        BodyRole::Prompt => "prompt",
        BodyRole::Response => "response",
        BodyRole::Arguments => "arguments",
        BodyRole::Result => "result",
        BodyRole::Error => "error",
        BodyRole::State => "state",
        BodyRole::Details => "details",
        BodyRole::Content => "content",
    };
    match body.name.as_deref() {
        Some(name) if body.role == BodyRole::State => format!("{} {role}", brief(name)),
        Some(name) => brief(name).to_string(),
        None => role.to_owned(),
    }
}

/// Returns the digests of the first and the last state of a step if their texts are not known.
fn hashes_of_states(step: &ViewStep) -> Option<(String, String)> {
    let states: Vec<&ViewBody> = step.bodies.iter().filter(|body| body.role == BodyRole::State).collect();
    let is_unknown = |body: &&ViewBody| body.source == BodySource::NotRecorded;
    let (first, last) = (states.first()?, states.last()?);
    let digest = |body: &ViewBody| body.digest.map(|digest| format!("{digest:.12}"));
    if states.iter().all(is_unknown) { digest(first).zip(digest(last)) } else { None }
}

/// Describes where the text of a body comes from, if it is not part of the artifact.
fn source(body: &ViewBody) -> Option<String> {
    let digest = body.digest.map(|digest| format!("{digest:.12}")).unwrap_or_default();
    match &body.source {
        BodySource::Recorded => None,
        BodySource::NotRecorded => Some(format!("{digest} (only the hash is recorded)")),
        BodySource::Resolved { core_hash, kind, place } => {
            let place = place.as_ref().map(|place: &PlaceSummary| format!(", {}", brief(&place.to_string())));
            Some(format!(
                "({digest}, resolved from {} {core_hash:.12}{})",
                brief(formats::bare_noun(kind)),
                place.unwrap_or_default()
            ))
        }
    }
}
