//! Fields: a name and a text on each line.

use std::io::{self, Write};

use anstyle::Style;

use crate::cli::output::fit;
use crate::cli::output::stdout::FAINT;
use crate::cli::output::terminal;

/// Names and escaped texts, one below the other.
pub(crate) struct Fields {
    fields: Vec<(String, String, Style)>,
    least: usize,
}

impl Fields {
    /// Creates an empty list whose name column is at least this wide.
    pub(crate) fn new(least: usize) -> Self {
        Self { fields: Vec::new(), least }
    }

    /// Adds a field. Further texts of the same name are added with empty names.
    pub(crate) fn push(&mut self, name: impl Into<String>, text: impl Into<String>, style: Style) {
        self.fields.push((name.into(), text.into(), style));
    }

    /// Returns the column at which texts start.
    pub(crate) fn indent(&self) -> usize {
        INDENT + self.name_width() + 1
    }

    /// Returns the width of the name column.
    fn name_width(&self) -> usize {
        self.fields.iter().map(|(name, ..)| fit::width(name)).max().unwrap_or(0).max(self.least)
    }

    /// Returns the width available for texts; `None` if unlimited.
    pub(crate) fn room(&self) -> Option<usize> {
        terminal::width().map(|width| width.saturating_sub(self.indent()))
    }

    /// Writes the fields, each on as many lines as necessary.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, text, style) in &self.fields {
            let lines = self.room().map_or_else(|| vec![text.into()], |room| fit::fold(text, room));
            for (index, line) in lines.iter().enumerate() {
                self.lead(out, if index == 0 { name } else { "" })?;
                writeln!(out, "{style}{line}{style:#}")?;
            }
        }
        Ok(())
    }

    /// Writes the start of a line: a name, and the space before its text.
    pub(crate) fn lead(&self, out: &mut dyn Write, name: &str) -> io::Result<()> {
        let pad = self.name_width() - fit::width(name);
        write!(out, "{:INDENT$}{FAINT}{name}{FAINT:#}{:pad$} ", "", "")
    }
}

const INDENT: usize = 2;
