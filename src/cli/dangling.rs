//! `runvault dangling`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::digest::CoreHash;
use runvault::query;
use serde::Serialize;

use super::escape::escaped;
use super::exit::{Failure, Status};
use super::json;
use super::links::{JsonTarget, target_text};
use super::output::{self, FAINT, HASH};
use super::vault::VaultArgs;

/// List what artifacts refer to and the vault does not have.
///
/// With who refers to it.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'d> {
    #[serde(flatten)]
    target: JsonTarget<'d>,
    referrers: Vec<JsonReferrer<'d>>,
}

#[derive(Serialize)]
struct JsonReferrer<'d> {
    core_hash: CoreHash,
    kind: &'d str,
    relation: &'d str,
    place: &'d str,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let all = query::dangling(&vault.snapshot()?)?;
        let mut out = std::io::BufWriter::new(output::text());
        for dangling in &all {
            if self.json {
                let referrers = dangling.referrers.iter().map(|referrer| JsonReferrer {
                    core_hash: referrer.artifact.core,
                    kind: &referrer.artifact.kind,
                    relation: &referrer.relation,
                    place: &referrer.place,
                });
                let line = Line { target: JsonTarget::of(&dangling.target), referrers: referrers.collect() };
                json::line(&mut out, &line)?;
                continue;
            }
            output::line(&mut out, &target_text(&dangling.target))?;
            for referrer in &dangling.referrers {
                let (kind, core) = (escaped(&referrer.artifact.kind).to_string(), referrer.artifact.core);
                let (relation, place) = (escaped(&referrer.relation), escaped(&referrer.place));
                let who = format!("    {kind:<8} {HASH}{core:.12}{HASH:#} {relation}");
                output::line(&mut out, &format!("{who} {FAINT}{place}{FAINT:#}"))?;
            }
        }
        out.flush()?;
        if !self.json {
            output::note(&format!("{} dangling", all.len()));
        }
        Ok(Status::Done)
    }
}
