//! The layout of transcripts: headings, the line about a run below its heading, and texts beside their labels.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::Style;
use chrono::{DateTime, NaiveDate, Timelike, Utc};
use runvault::artifact::AttributeInfo;
use runvault::display::brief;
use runvault::vault::view::ViewAnswer;

use crate::cli::output::fit::{self, TrailingLayout};
use crate::cli::output::stdout::{self, BAD, FAINT, NAME, counted};
use crate::cli::output::{terminal, time};

/// Maximum number of lines of a text that is not printed completely.
pub(super) const LINES: usize = 30;

/// The indent of the lines below the heading of a step.
pub(super) const INDENT: usize = 4;

/// The width of the column of roles.
pub(super) const ROLE_WIDTH: usize = 10;

/// The least width of a terminal on which roles are beside the texts.
pub(super) const WIDE: usize = 60;

/// A printer of transcripts.
pub(super) struct TranscriptPrinter<'o> {
    pub(super) out: &'o mut dyn Write,
    pub(super) full: bool,
    width: Option<usize>,
    /// The date of the last time that was printed.
    date: Option<NaiveDate>,
}

impl<'o> TranscriptPrinter<'o> {
    /// Returns the lines that say how large a text is of which the beginning is printed.
    pub(super) fn cut(&self, size: u64) -> Vec<String> {
        remark(&format!("… {} in all; --full shows everything", stdout::size(size)), self.room())
    }

    pub(super) fn new(out: &'o mut dyn Write, full: bool) -> Self {
        Self { out, full, width: terminal::width(), date: None }
    }

    /// Prints a number, a type and a title.
    pub(super) fn title(
        &mut self,
        number: u64,
        step_type: &str,
        failed: bool,
        title: &str,
    ) -> io::Result<()> {
        let (number, step_type) = (number.to_string(), brief(step_type).to_string());
        let style = if failed { BAD } else { Style::new().bold() };
        write!(self.out, "{FAINT}{number}{FAINT:#} {style}{step_type}{style:#}")?;
        let mut used = number.len() + 1 + fit::width(&step_type);
        if failed {
            write!(self.out, " {BAD}failed{BAD:#}")?;
            used += " failed".len();
        }
        let title = brief(title).to_string();
        TrailingLayout { used, below: INDENT, least: WIDE / 3 }.write(self.out, &title, NAME)
    }

    /// Formats a time: with its date if that differs from the one before.
    pub(super) fn time(&mut self, time: DateTime<Utc>) -> String {
        let is_same_day = self.date.replace(time.date_naive()) == Some(time.date_naive());
        let fraction = if time.nanosecond() == 0 { "" } else { "%.3f" };
        let format = if is_same_day {
            format!("%H:%M:%S{fraction}")
        } else {
            format!("%Y-%m-%d %H:%M:%S{fraction} UTC")
        };
        time.format(&format).to_string()
    }

    /// Prints lines beside a label, or below it on a narrow terminal.
    pub(super) fn labeled(&mut self, label: &str, lines: &[String]) -> io::Result<()> {
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

    /// Returns the width of texts.
    pub(super) fn room(&self) -> usize {
        self.width.map_or(usize::MAX, |width| width.saturating_sub(self.indent()))
    }

    /// Returns the column at which texts begin.
    pub(super) fn indent(&self) -> usize {
        if self.width.is_none_or(|width| width >= WIDE) { INDENT + ROLE_WIDTH + 1 } else { INDENT + 2 }
    }

    pub(super) fn lines(&mut self, text: &str, indent: usize, style: Style) -> io::Result<()> {
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(indent));
        for line in fit::fold(text, room).iter().filter(|line| !line.is_empty()) {
            writeln!(self.out, "{:indent$}{style}{line}{style:#}", "")?;
        }
        Ok(())
    }
}

/// Formats a length of time.
pub(super) fn milliseconds(length: u64) -> String {
    time::length_of(Duration::from_millis(length))
}

/// Returns the lines of a remark about a text.
pub(super) fn remark(text: &str, room: usize) -> Vec<String> {
    fit::fold(text, room).iter().map(|line| format!("{FAINT}{line}{FAINT:#}")).collect()
}

/// Prints the line, if the artifact states a model or a duration.
pub(super) fn print(out: &mut dyn Write, answer: &ViewAnswer) -> io::Result<()> {
    let values = |info: AttributeInfo| {
        let named = answer.attributes.iter().filter(move |attribute| attribute.name == info.name);
        named.map(|attribute| attribute.value.as_str())
    };
    let number = |info: AttributeInfo| values(info).filter_map(|value| info.values.number(value)).max();
    let count = |info: AttributeInfo| number(info).and_then(|number| u64::try_from(number).ok());
    let (models, duration) = (values(AttributeInfo::MODEL_ID), number(AttributeInfo::DURATION_MS));
    let mut facts: Vec<String> = models.map(|model| brief(model).to_string()).collect();
    if facts.is_empty() && duration.is_none() {
        return Ok(());
    }
    facts.extend(duration.map(time::duration));
    facts.extend(count(AttributeInfo::TOKENS).map(|tokens| counted(tokens, "token")));
    facts.push(counted(answer.total, &answer.step_noun));
    facts.extend(values(AttributeInfo::COST_USD).map(|cost| format!("{} USD", brief(cost))));
    let errors = count(AttributeInfo::ERRORS).filter(|errors| *errors > 0);
    let errors = errors.map(|errors| format!("{BAD}{}{BAD:#}", counted(errors, "error")));
    let text = errors.into_iter().chain(facts).collect::<Vec<_>>().join(", ");
    let room = terminal::width().map_or(usize::MAX, |width| width.saturating_sub(2));
    fit::fold(&text, room).iter().try_for_each(|line| writeln!(out, "  {line}"))
}
