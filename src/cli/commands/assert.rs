//! `runvault assert`

use std::ffi::OsString;

use clap::Args as ClapArgs;

use super::diff::{self, ComparisonArgs};
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};

/// Compare a run with a baseline and fail if its steps differ
///
/// The command of ReplayKit with this name: "diff --expect" of the steps of runs. Exit status: 0 no differences, 1
/// differences, 2 the comparison could not run.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The expected run, or another artifact: a file, or an artifact in the vault
    #[arg(add = CandidateSource::ArtifactsOrFiles.completer())]
    baseline: OsString,

    /// The run to check
    #[arg(long, short, add = CandidateSource::ArtifactsOrFiles.completer())]
    candidate: OsString,

    /// Also compare the environment, the versions of the runtime, and the metadata of the run
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    options: ComparisonArgs,
}

impl Args {
    pub(crate) fn run(self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let Self { baseline, candidate, strict, options } = self;
        let (sides, expect) = (vec![candidate], Some(baseline));
        diff::Args { sides, expect, all: false, without_circumstances: !strict, options }.run(vault)
    }
}
