//! `runvault rules`

use std::io::{self, Write};

use clap::Args as ClapArgs;
use runvault::artifact::document;
use runvault::formats;
use runvault::validation::{RuleInfo, Severity};
use runvault::vault::add;
use runvault::vault::audit;
use runvault::vault::bundle;
use serde::Serialize;

use crate::cli::args::vault::VaultArgs;
use crate::cli::hints;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, BAD, CAUTION};

/// List or explain validation rules.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A rule id, such as MI7
    id: Option<String>,

    /// Print one line of JSON for each rule
    #[arg(long)]
    json: bool,
}

struct Row {
    /// The kind that the rule is for; `document` for all, `vault` for artifacts added to one, `audit` for audits of
    /// contracts, `bundle` for bundles.
    kind: &'static str,
    rule: RuleInfo,
}

/// A rule, in machine-readable form.
#[derive(Serialize)]
struct Line {
    kind: &'static str,
    id: &'static str,
    severity: Severity,
    summary: &'static str,
    why: String,
}

impl Row {
    fn to_line(&self) -> Line {
        let RuleInfo { id, severity, summary, .. } = self.rule;
        Line { kind: self.kind, id, severity, summary, why: self.explanation() }
    }

    /// Returns the reason for the rule and what to do, with the options that help.
    fn explanation(&self) -> String {
        match hints::for_rule(self.rule.id) {
            Some(hint) => format!("{} {hint}", self.rule.why),
            None => self.rule.why.to_owned(),
        }
    }
}

/// Returns the ids and summaries of all rules.
pub(crate) fn summaries() -> impl Iterator<Item = (String, String)> {
    all().into_iter().map(|row| (row.rule.id.to_owned(), row.rule.summary.to_owned()))
}

fn all() -> Vec<Row> {
    let of_documents = document::rules().into_iter().map(|rule| Row { kind: "document", rule });
    let of_kinds = formats::ALL
        .into_iter()
        .flat_map(|kind| kind.rules().into_iter().map(move |rule| Row { kind: kind.name(), rule }));
    let of_vaults = add::RULES.into_iter().map(|rule| Row { kind: "vault", rule });
    let of_audits = audit::RULES.into_iter().map(|rule| Row { kind: "audit", rule });
    let of_bundles = bundle::RULES.into_iter().map(|rule| Row { kind: "bundle", rule });
    of_documents.chain(of_kinds).chain(of_vaults).chain(of_audits).chain(of_bundles).collect()
}

impl Args {
    pub(crate) fn run(&self, _: &VaultArgs) -> Result<Status, Failure> {
        let mut rows = all();
        if let Some(id) = &self.id {
            rows.retain(|row| row.rule.id.eq_ignore_ascii_case(id));
            if rows.is_empty() {
                return Err(Failure::No(format!("there is no rule {id}; \"runvault rules\" lists them")));
            }
        }
        if self.json {
            let mut out = stdout::raw();
            rows.iter().try_for_each(|row| json::line(&mut out, &row.to_line()))?;
        } else if self.id.is_some() {
            let mut out = stdout::text();
            for (index, row) in rows.iter().enumerate() {
                out.write_all(if index > 0 { b"\n" } else { b"" })?;
                explain(&mut out, row)?;
            }
        } else {
            list(&mut stdout::text(), &rows)?;
        }
        Ok(Status::Done)
    }
}

fn list(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    for Row { kind, rule } in rows {
        let warning = match rule.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        writeln!(out, "{kind:<9} {:<7} {CAUTION}{warning}{CAUTION:#}{}", rule.id, rule.summary)?;
    }
    Ok(())
}

fn explain(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let Row { kind, rule } = row;
    let style = match rule.severity {
        Severity::Error => BAD,
        Severity::Warning => CAUTION,
    };
    writeln!(out, "{} ({kind}, {style}{}{style:#}): {}", rule.id, rule.severity, rule.summary)?;
    writeln!(out, "{}", wrapped(&row.explanation(), stdout::width().map_or(80, |width| width.min(80))))
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
