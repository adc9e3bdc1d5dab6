//! Results as a table in Markdown.

use std::fmt;

/// What a ratio, or a value, should be.
#[derive(Clone, Copy)]
pub enum Target {
    None,
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn verdict(self, value: Option<f64>) -> &'static str {
        let met = match (self, value) {
            (Self::None, _) | (_, None) => return "",
            (Self::AtMost(most), Some(value)) => value <= most,
            (Self::AtLeast(least), Some(value)) => value >= least,
        };
        if met { "yes" } else { "**no**" }
    }

    /// With the sign of ratios, or another unit.
    fn text(self, unit: &str) -> String {
        match self {
            Self::None => String::new(),
            Self::AtMost(most) => format!("≤ {most} {unit}"),
            Self::AtLeast(least) => format!("≥ {least} {unit}"),
        }
    }
}

/// The results of one part.
pub struct Table {
    title: String,
    rows: Vec<String>,
    notes: Vec<String>,
}

impl Table {
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), rows: Vec::new(), notes: Vec::new() }
    }

    /// Something that was measured and is compared with nothing.
    pub fn plain(&mut self, what: &str, value: &str) {
        self.rows.push(format!("| {what} | {value} | | | |"));
    }

    /// Something that runvault is compared with. The ratio is what runvault has to what this has.
    pub fn ratio(&mut self, what: &str, value: &str, ratio: f64, target: Target) {
        let (wanted, met) = (target.text("×"), target.verdict(Some(ratio)));
        self.rows.push(format!("| {what} | {value} | {ratio:.2} × | {wanted} | {met} |"));
    }

    /// Something that must keep to a limit of its own.
    pub fn limited(&mut self, what: &str, megabytes: f64, most: f64) {
        let target = Target::AtMost(most);
        let (wanted, met) = (target.text("MB"), target.verdict(Some(megabytes)));
        self.rows.push(format!("| {what} | {megabytes:.1} MB | | {wanted} | {met} |"));
    }

    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n### {}\n", self.title)?;
        writeln!(f, "| what | median | ratio | target | met? |\n|---|---|---|---|---|")?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

/// Bytes as people read them.
#[allow(clippy::cast_precision_loss, reason = "no corpus has that many")]
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

pub fn size(bytes: u64) -> String {
    format!("{:.2} MB", megabytes(bytes))
}
