//! `runvault unresolved`

use std::io::Write;

use clap::Args as ClapArgs;
use runvault::artifact::Kind;
use runvault::display::escaped;
use runvault::formats;
use runvault::vault::unresolved::{UnresolvedAnswer, UnresolvedRequest};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::inputs::kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::json;
use crate::cli::output::links::target_text;
use crate::cli::output::stdout::{self, FAINT, HASH, counted};

/// List references to missing artifacts
///
/// Prints each missing hash with the artifacts that refer to it. References to objects that no format defines, such as
/// schemas, prompts and proposals, are left out unless --all is given: they are in a vault only if they were added with
/// "add --as attachment". They are recognized by the name of the member that holds the digest.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only references from artifacts of this kind
    #[arg(long, value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
    kind: Option<Kind>,

    /// Only references with this role or relation, such as reference, records-run or derived-from
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,

    /// Also list references to objects that are in a vault only as attachments
    #[arg(long)]
    all: bool,

    /// Print one line of JSON for each missing artifact
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let request = UnresolvedRequest {
            kind: self.kind.map(|kind| kind.name().to_owned()),
            role: self.role.clone(),
            all: self.all,
            ..UnresolvedRequest::default()
        };
        let UnresolvedAnswer { missing, left_out, .. } = vault.run(&request)?;
        let mut out = std::io::BufWriter::new(stdout::text());
        for missing in &missing {
            if self.json {
                json::line(&mut out, missing)?;
                continue;
            }
            stdout::line(&mut out, &target_text(&missing.target))?;
            for referrer in &missing.referrers {
                let (kind, core) =
                    (escaped(formats::bare_noun(&referrer.kind)).to_string(), referrer.core_hash);
                let (relation, place) = (escaped(&referrer.relation), escaped(&referrer.place));
                let who = format!("    {kind:<11} {HASH}{core:.12}{HASH:#} {relation}");
                stdout::line(&mut out, &format!("{who} {FAINT}{place}{FAINT:#}"))?;
            }
        }
        out.flush()?;
        if !self.json {
            let left_out = match left_out {
                0 => String::new(),
                left_out => {
                    format!(", {} to objects that are not artifacts omitted", counted(left_out, "reference"))
                }
            };
            stdout::note(&format!("{} unresolved{left_out}", missing.len()));
        }
        Ok(Status::Done)
    }
}
