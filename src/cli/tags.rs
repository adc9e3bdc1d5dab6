//! `runvault tags`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::output::{self, FAINT, HASH, counted};
use super::vault::VaultArgs;
use super::{json, time};

/// List the names that were given to artifacts.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'t> {
    name: &'t str,
    core_hash: CoreHash,
    tagged_at: String,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let tags = vault.open()?.snapshot()?.tags(None)?;
        let mut out = output::text();
        for tag in &tags {
            if self.json {
                let tagged_at = time::exact(tag.at);
                json::line(&mut out, &Line { name: &tag.name, core_hash: tag.core, tagged_at })?;
                continue;
            }
            let (core, at, name) = (tag.core, time::display(tag.at), escaped(&tag.name));
            writeln!(out, "{HASH}{core:.12}{HASH:#} {FAINT}{at}{FAINT:#} @{name}")?;
        }
        if !self.json {
            output::note(&counted(tags.len() as u64, "tag"));
        }
        Ok(Status::Done)
    }
}
