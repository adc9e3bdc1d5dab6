//! `runvault rules`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::validation::Severity;
use runvault::vault::rules::{RuleSummary, RulesAnswer, RulesRequest};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, BAD, CAUTION};
use crate::cli::output::terminal;

/// List or explain validation rules
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Explain the rule with this id, such as MI7
    #[arg(add = CandidateSource::Rules.completer())]
    id: Option<String>,

    /// Print one line of JSON for each rule
    #[arg(long)]
    json: bool,
}

/// Returns the rule with the options that help added to its reason.
fn hinted(rule: RuleSummary) -> RuleSummary {
    match hints::for_rule(&rule.id) {
        Some(hint) => RuleSummary { why: format!("{} {hint}", rule.why), ..rule },
        None => rule,
    }
}

impl Args {
    pub(crate) fn run(&self, _: &VaultArgs) -> Result<Status, CommandError> {
        let RulesAnswer { rules } = RulesRequest { id: self.id.clone() }.answer();
        let rules: Vec<RuleSummary> = rules.into_iter().map(hinted).collect();
        if let (Some(id), true) = (&self.id, rules.is_empty()) {
            return Err(CommandError::No(format!("there is no rule {id}; \"runvault rules\" lists them")));
        }
        if self.json {
            let mut out = stdout::raw();
            rules.iter().try_for_each(|rule| json::line(&mut out, rule))?;
        } else if self.id.is_some() {
            let mut out = stdout::text();
            for (index, rule) in rules.iter().enumerate() {
                out.write_all(if index > 0 { b"\n" } else { b"" })?;
                explain(&mut out, rule)?;
            }
        } else {
            list(&mut stdout::text(), &rules)?;
        }
        Ok(Status::Done)
    }
}

fn list(out: &mut dyn Write, rules: &[RuleSummary]) -> io::Result<()> {
    for RuleSummary { kind, id, severity, summary, .. } in rules {
        let warning = match severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        writeln!(out, "{kind:<9} {id:<7} {CAUTION}{warning}{CAUTION:#}{summary}")?;
    }
    Ok(())
}

fn explain(out: &mut dyn Write, rule: &RuleSummary) -> io::Result<()> {
    let RuleSummary { kind, id, severity, summary, why } = rule;
    let style = match severity {
        Severity::Error => BAD,
        Severity::Warning => CAUTION,
    };
    writeln!(out, "{id} ({kind}, {style}{severity}{style:#}): {summary}")?;
    writeln!(out, "{}", wrapped(why, terminal::width().map_or(80, |width| width.min(80))))
}

/// Wraps `text` into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
