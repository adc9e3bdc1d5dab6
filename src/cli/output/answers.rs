//! Output of the answers to prompts.

use std::io::{self, Write};

use anstyle::Style;
use runvault::display::brief;
use runvault::formats;
use runvault::vault::answers::{AnswersAnswer, DistinctAnswer, GivenAnswer, PromptAnswers};
use runvault::vault::api::TimeBasis;
use runvault::vault::view::ViewBody;

use crate::cli::output::stdout::{self, BAD, FAINT, HASH, counted};
use crate::cli::output::{fit, terminal, time};

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
