//! Runs that are being recorded, as they are printed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use anstyle::Style;
use runvault::Vault;
use runvault::display::{brief, escaped};
use runvault::vault::resolve::ResolveRequest;
use runvault::vault::unfinished::{
    UnfinishedConversationAnswer, UnfinishedConversationRequest, UnfinishedRun, UnfinishedRunState,
};
use runvault::vault::view::{Conversation, ViewRequest};

use super::conversation;
use super::printer::{ROLE_WIDTH, TranscriptPrinter};
use super::show;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::CommandError;
use crate::cli::output::fields::Fields;
use crate::cli::output::stdout::{self, BAD, CAUTION, NAME, counted};
use crate::cli::output::{json, pager, time};

/// How often calls that have ended are looked for.
const INTERVAL: Duration = Duration::from_millis(500);

/// Prints a run that is being recorded.
pub(super) struct UnfinishedRunPrinter<'v> {
    vault: &'v Vault,
    request: UnfinishedConversationRequest,
    full: bool,
}

impl<'v> UnfinishedRunPrinter<'v> {
    pub(super) fn new(args: &VaultArgs, vault: &'v Vault, hash: &ArtifactArg, full: bool) -> Self {
        // Without the directory of a user, there is none with runs of a database.
        let (directory, run) = (args.recordings().ok(), hash.name().map(str::to_owned));
        Self { vault, request: UnfinishedConversationRequest { directory, run }, full }
    }

    /// Prints the calls so far. Returns false if there is no such run.
    pub(super) fn print_once(&self, as_json: bool) -> Result<bool, CommandError> {
        let answer = self.vault.run(&self.request)?;
        let Some(run) = &answer.run else { return Ok(false) };
        if as_json {
            let mut out = io::BufWriter::new(stdout::raw());
            json::stream(&mut out, &answer)?;
            out.flush()?;
            return Ok(true);
        }
        let mut out = io::BufWriter::new(stdout::text());
        heading(&mut out, run)?;
        conversation::print(&mut TranscriptPrinter::new(&mut out, self.full), &answer.conversation)?;
        out.flush()?;
        stdout::note(&format!("{} so far", counted(run.calls, "call")));
        Ok(true)
    }

    /// Prints the calls as they end, until the run is finished or its process has ended. Returns false if there is no such
    /// run.
    pub(super) fn follow(&self) -> Result<bool, CommandError> {
        let mut out = stdout::text();
        let (mut printed, mut request, mut last) = (PrintedCalls::default(), self.request.clone(), None);
        loop {
            let UnfinishedConversationAnswer { run, conversation } = self.vault.run(&request)?;
            let Some(run) = run else { break };
            if last.is_none() {
                // Its end would not be seen there before the run's.
                pager::forbid();
                heading(&mut out, &run)?;
            }
            printed.print(&mut out, conversation, self.full)?;
            out.flush()?;
            let UnfinishedRun { run_id, state, calls, .. } = run;
            if state == UnfinishedRunState::Interrupted {
                stdout::note(&format!(
                    "{}; the process that recorded the run has ended",
                    counted(calls, "call")
                ));
                return Ok(true);
            }
            request.run = Some(run_id.clone());
            last = Some(run_id);
            thread::sleep(INTERVAL);
        }
        let Some(run_id) = last else { return Ok(false) };
        let artifact = ResolveRequest::new(&run_id).locate(self.vault)?.artifact.core;
        let answer = self.vault.run(&ViewRequest { conversation: true, ..ViewRequest::new(artifact) })?;
        printed.print(&mut out, answer.conversation.unwrap_or_default(), self.full)?;
        out.flush()?;
        stdout::note(&format!("{}; stored as {artifact:.12}", counted(answer.total, &answer.step_noun)));
        Ok(true)
    }
}

/// The calls that were printed: the number of those whose requests were made in each millisecond. Their own numbers change
/// when the run is stored.
#[derive(Default)]
struct PrintedCalls(BTreeMap<Option<i64>, usize>);

impl PrintedCalls {
    /// Prints the calls that were not printed before.
    fn print(&mut self, out: &mut dyn Write, mut conversation: Conversation, full: bool) -> io::Result<()> {
        let mut found: BTreeMap<Option<i64>, usize> = BTreeMap::new();
        conversation.calls.retain(|call| {
            let at = call.requested_at.map(|at| at.0.timestamp_millis());
            let count = found.entry(at).or_default();
            *count += 1;
            self.0.get(&at).is_none_or(|printed| *count > *printed)
        });
        self.0 = found;
        conversation::print(&mut TranscriptPrinter::new(out, full), &conversation)
    }
}

/// Prints what is known of a run besides its calls.
fn heading(out: &mut dyn Write, run: &UnfinishedRun) -> io::Result<()> {
    writeln!(out, "{CAUTION}{}{CAUTION:#} {NAME}{}{NAME:#}", run.state.name(), escaped(&run.run_id))?;
    let mut fields = Fields::new(ROLE_WIDTH);
    if run.failed > 0 {
        fields.push("failed", counted(run.failed, "call"), BAD);
    }
    if let Some(at) = run.started_at {
        fields.push("since", time::shown(at.0), Style::new());
    }
    let models: Vec<String> = run.models.iter().map(|model| brief(model).to_string()).collect();
    if !models.is_empty() {
        fields.push("model", models.join(", "), Style::new());
    }
    show::labels(&run.labels, &mut fields);
    fields.write(out)
}
