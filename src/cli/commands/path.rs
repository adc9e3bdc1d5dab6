//! `runvault path`

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::vault::query::{LinkTarget, MAX_SEARCHED};
use serde::Serialize;

use crate::cli::args::hash::Named;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::links::{self, JsonLink};
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::json;
use crate::cli::output::stdout;

/// Show the shortest path of links between two artifacts.
///
/// Prints the reason for each step.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The artifact where the path starts
    one: Named,

    /// The artifact where the path ends
    other: Named,

    /// Print one line of JSON for each step
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'c> {
    from: CoreHash,
    #[serde(flatten)]
    link: JsonLink<'c>,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let (one, other) = (self.one.locate(&vault)?.artifact, self.other.locate(&vault)?.artifact);
        let Some(chain) = vault.shortest_path(&one, &other)? else {
            return Err(Failure::No(format!(
                "no path of links from {:.12} to {:.12}; the {MAX_SEARCHED} nearest artifacts were searched",
                one.core, other.core
            )));
        };
        if self.json {
            let mut out = stdout::raw();
            for step in &chain {
                json::line(&mut out, &Line { from: step.from.core, link: JsonLink::new(&step.link) })?;
            }
            return Ok(Status::Done);
        }
        let mut out = stdout::text();
        links::heading(&mut out, &one)?;
        for step in &chain {
            links::print(&mut out, "  ", &step.link)?;
        }
        if let Some(LinkTarget::Artifact(end)) = chain.last().map(|step| &step.link.target) {
            links::heading(&mut out, end)?;
        }
        Ok(Status::Done)
    }
}
