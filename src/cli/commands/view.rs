//! `runvault view`

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::Style;
use chrono::{DateTime, NaiveDate, Timelike, Utc};
use clap::Args as ClapArgs;
use runvault::display::{brief, escaped};
use runvault::formats;
use runvault::vault::api::PlaceSummary;
use runvault::vault::audit::{EffectAudit, LastAudit};
use runvault::vault::view::{
    BodyFormat, BodyRole, BodySource, StepClass, ViewAnswer, ViewBody, ViewFilter, ViewRequest, ViewStep,
};

use super::{audit, show};
use crate::cli::args::choice::{Choice, one_of};
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::fields::Fields;
use crate::cli::output::fit::{self, TrailingLayout};
use crate::cli::output::stdout::{self, BAD, FAINT, HASH, NAME, counted};
use crate::cli::output::{json, links, terminal, time};

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
    #[arg(long, value_name = "STEPS", value_parser = one_of(STEPS))]
    only: Option<ViewFilter>,
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
const STEPS: &[Choice<ViewFilter>] = &[
    ("tools", ViewFilter::Tools, "Calls of tools and their results"),
    ("errors", ViewFilter::Errors, "Steps that record a failure"),
];

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
            only: self.only,
            limit: self.limit.or(people.then_some(SCREENFUL)),
            max_text: (!self.json && !self.full).then_some(SHOWN_CHARACTERS),
            recorded: self.recorded,
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

/// Maximum number of characters of a text that is not printed completely.
const SHOWN_CHARACTERS: u64 = 4_000;

/// Maximum number of lines of a text that is not printed completely.
const LINES: usize = 30;

/// The indent of the lines below the heading of a step.
const INDENT: usize = 4;

/// The width of the column of roles.
const ROLE_WIDTH: usize = 10;

/// The least width of a terminal on which roles are beside the texts.
const WIDE: usize = 60;

/// Prints the transcript.
fn print(out: &mut dyn Write, answer: &ViewAnswer, full: bool) -> io::Result<()> {
    links::heading(out, &answer.artifact.kind, answer.artifact.core_hash)?;
    let mut fields = Fields::new(ROLE_WIDTH);
    show::labels(&answer.labels, &mut fields);
    show::attributes(&answer.attributes, &mut fields);
    if let Some(audit) = &answer.audit {
        fields.push("audit", audited(audit), Style::new());
    }
    fields.write(out)?;
    let latest = answer.audit.as_ref().and_then(|audit| audit.latest.as_ref());
    let mut printer = ViewStepPrinter { out, full, width: terminal::width(), date: None };
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

struct ViewStepPrinter<'o> {
    out: &'o mut dyn Write,
    full: bool,
    width: Option<usize>,
    /// The date of the last time that was printed.
    date: Option<NaiveDate>,
}

impl ViewStepPrinter<'_> {
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
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(self.indent()));
        let style = audit::style_of(effect.verdict);
        let text = format!("{style}{}{style:#}: {}", effect.verdict.name(), escaped(&effect.because));
        let lines: Vec<String> = fit::fold(&text, room).into_iter().map(Cow::into_owned).collect();
        self.labeled("audit", &lines)
    }

    /// Prints the number, the type and the title.
    fn heading(&mut self, step: &ViewStep) -> io::Result<()> {
        let step_type = brief(&step.step_type).to_string();
        let number = step.index.to_string();
        let style = if step.failed { BAD } else { Style::new().bold() };
        write!(self.out, "{FAINT}{number}{FAINT:#} {style}{step_type}{style:#}")?;
        let mut used = number.len() + 1 + fit::width(&step_type);
        if step.failed {
            write!(self.out, " {BAD}failed{BAD:#}")?;
            used += " failed".len();
        }
        let title = step.title.as_deref().map(|title| brief(title).to_string()).unwrap_or_default();
        TrailingLayout { used, below: INDENT, least: WIDE / 3 }.write(self.out, &title, NAME)
    }

    /// Returns the times and counts of a step.
    fn facts(&mut self, step: &ViewStep) -> String {
        let mut facts = Vec::new();
        facts.extend(step.time.map(|time| self.time(time.0)));
        facts.extend(step.duration_ms.map(|ms| time::length_of(Duration::from_millis(ms))));
        facts.extend(step.status.as_deref().map(|status| brief(status).to_string()));
        facts.extend(step.tokens_in.map(|tokens| format!("{} in", counted(tokens, "token"))));
        facts.extend(step.tokens_out.map(|tokens| format!("{} out", counted(tokens, "token"))));
        facts.extend(step.size.map(stdout::size));
        facts.extend(step.answers.map(|request| format!("answers {request}")));
        facts.extend(step.digest.map(|digest| format!("{digest:.12}")));
        facts.join(", ")
    }

    /// Formats a time: with its date if that differs from the one before.
    fn time(&mut self, time: DateTime<Utc>) -> String {
        let is_same_day = self.date.replace(time.date_naive()) == Some(time.date_naive());
        let fraction = if time.nanosecond() == 0 { "" } else { "%.3f" };
        let format = if is_same_day {
            format!("%H:%M:%S{fraction}")
        } else {
            format!("%Y-%m-%d %H:%M:%S{fraction} UTC")
        };
        time.format(&format).to_string()
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
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(self.indent()));
        let text = body.text.as_deref();
        let (mut lines, is_cut) = text.map(|text| fit::folded(text, room, most)).unwrap_or_default();
        if is_cut || body.omitted > 0 {
            let size = stdout::size(body.size);
            lines.extend(remark(&format!("… {size} in all; --full shows everything"), room));
        }
        if body.format == BodyFormat::Binary {
            lines.extend(remark(&format!("{} of binary data", stdout::size(body.size)), room));
        }
        lines.extend(source(body).into_iter().flat_map(|text| remark(&text, room)));
        self.labeled(label, &lines)
    }

    /// Prints lines beside a label, or below it on a narrow terminal.
    fn labeled(&mut self, label: &str, lines: &[String]) -> io::Result<()> {
        let below = self.indent();
        let is_inline = below > INDENT + ROLE_WIDTH;
        if !is_inline {
            writeln!(self.out, "{:INDENT$}{FAINT}{label}{FAINT:#}", "")?;
        }
        for (index, line) in lines.iter().enumerate() {
            if index == 0 && is_inline && fit::width(label) < below - INDENT {
                let pad = below - INDENT - fit::width(label);
                write!(self.out, "{:INDENT$}{FAINT}{label}{FAINT:#}{:pad$}", "", "")?;
            } else {
                if index == 0 && is_inline {
                    writeln!(self.out, "{:INDENT$}{FAINT}{label}{FAINT:#}", "")?;
                }
                write!(self.out, "{:below$}", "")?;
            }
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    /// Returns the column at which texts begin.
    fn indent(&self) -> usize {
        if self.width.is_none_or(|width| width >= WIDE) { INDENT + ROLE_WIDTH + 1 } else { INDENT + 2 }
    }

    fn lines(&mut self, text: &str, indent: usize, style: Style) -> io::Result<()> {
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(indent));
        for line in fit::fold(text, room).iter().filter(|line| !line.is_empty()) {
            writeln!(self.out, "{:indent$}{style}{line}{style:#}", "")?;
        }
        Ok(())
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

/// Returns the lines of a remark about a text.
fn remark(text: &str, room: usize) -> Vec<String> {
    fit::fold(text, room).iter().map(|line| format!("{FAINT}{line}{FAINT:#}")).collect()
}
