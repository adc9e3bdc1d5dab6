//! The runs that processes left behind: at a start they are stored, or set aside if that is not possible.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::finish::{FinishError, FinishedRun, RunDestination};
use super::recording::is_refused;
use super::shared::{GatewayEvent, reported};
use super::spool::{self, DAMAGED, LeftSpool, Spool, SpoolDirectory, UNSTORED};
use crate::calls::matching::MatchingRules;
use crate::calls::request_store::{RequestRestorer, RequestStore};
use crate::calls::run::{CallRecord, StoredCall};
use crate::calls::spool_file::{self, SpoolContent};
use crate::secrets::SecretPolicy;
use crate::vault::Vault;

/// A file with calls that are not in the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnstoredRun {
    /// The file.
    pub path: PathBuf,
    /// The id of the run, if it can be read.
    pub run_id: Option<String>,
    /// Number of calls; of a trace, the number of spans and events.
    pub calls: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Why it is not stored, as far as that was tried.
    pub reason: Option<String>,
}

/// The result of storing the runs that processes left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The runs that were stored.
    pub stored: Vec<FinishedRun>,
    /// The files that remain.
    pub left: Vec<UnstoredRun>,
}

/// Stores the runs in the files of a directory on which no process works, also those that were set aside. What cannot be
/// stored remains.
///
/// # Errors
/// Returns an error if the directory cannot be read.
pub fn recover_runs(
    vault: impl Into<Arc<Vault>>,
    directory: &Path,
    secrets: SecretPolicy,
) -> io::Result<Recovery> {
    let recoverer = Recoverer {
        destination: RunDestination::new(vault.into()),
        directory: SpoolDirectory::new(directory.to_owned()),
        options: RecoveryOptions { secrets, rules: &MatchingRules::default() },
        report: &|_| {},
    };
    let (runs, aside) = recoverer.directory.files()?;
    let mut recovery = Recovery::default();
    for path in runs.into_iter().chain(aside) {
        let Recovered { stored, kept } = recoverer
            .store(path.clone())
            .unwrap_or_else(|error| Recovered { stored: None, kept: Some((path, error.to_string())) });
        recovery.stored.extend(stored);
        if let Some((path, reason)) = kept {
            recovery.left.push(UnstoredRun { reason: Some(reason), ..unstored(path)? });
        }
    }
    recoverer.directory.remove_owners()?;
    Ok(recovery)
}

/// Returns the files in a directory that were set aside, because their calls could not be stored or they are damaged.
///
/// # Errors
/// Returns an error if the directory, or a file, cannot be read.
pub fn unstored_runs(directory: &Path) -> io::Result<Vec<UnstoredRun>> {
    let (_, aside) = SpoolDirectory::new(directory.to_owned()).files()?;
    aside.into_iter().map(unstored).collect()
}

impl UnstoredRun {
    fn describe(&self) -> String {
        let calls = if self.calls == 1 { "1 call".to_owned() } else { format!("{} calls", self.calls) };
        let run = self.run_id.as_ref().map(|id| format!(" of the run {id}")).unwrap_or_default();
        format!("{calls}{run} could not be stored, or not completely")
    }
}

/// What became of a file.
struct Recovered {
    stored: Option<FinishedRun>,
    /// The file, if it is kept because it is damaged, and the damage.
    kept: Option<(PathBuf, String)>,
}

/// Stores the runs that processes left behind.
pub(super) struct Recoverer<'r> {
    pub(super) destination: RunDestination,
    pub(super) directory: SpoolDirectory,
    pub(super) options: RecoveryOptions<'r>,
    pub(super) report: &'r dyn Fn(&GatewayEvent<'_>),
}

/// How what was left is stored.
#[derive(Clone, Copy)]
pub(super) struct RecoveryOptions<'r> {
    pub(super) secrets: SecretPolicy,
    /// The rules for the calls of spans. Other calls have those with which they were recorded.
    pub(super) rules: &'r MatchingRules,
}

impl Recoverer<'_> {
    /// Stores the runs that no process works on, sets those aside that cannot be stored, and reports all that were set aside.
    pub(super) fn recover_at_start(&self) {
        let Self { directory, report, .. } = self;
        let failed = |reason: String| report(&GatewayEvent::Failed { reason: &reason });
        let (runs, _) = directory.files().unwrap_or_else(|error| {
            failed(format!("the runs that were not finished cannot be looked for: {error}"));
            Default::default()
        });
        for path in runs {
            // A file that cannot be stored must not keep others from it, nor the gateway from its start.
            match self.store(path.clone()) {
                Ok(Recovered { stored, kept }) => {
                    if let Some((kept, damage)) = kept {
                        let count = stored.as_ref().map_or(0, |run| run.calls);
                        failed(format!(
                            "{}: {damage}; other calls of this file that were stored: {count}; it is kept as {}",
                            path.display(),
                            kept.display()
                        ));
                    }
                    if let Some(run) = stored {
                        report(&GatewayEvent::Finished(&run));
                    }
                }
                Err(FinishError::SetAside { .. }) => {}
                Err(error) => failed(format!("{}: {error}; the next start tries again", path.display())),
            }
        }
        let aside = directory.files().map(|(_, aside)| aside).unwrap_or_default();
        for path in aside {
            let reason = match unstored(path.clone()) {
                Ok(run) => run.describe(),
                Err(error) => error.to_string(),
            };
            report(&GatewayEvent::SetAside { file: &path, reason: &reason });
        }
        // Those that are left are removed by the next start.
        let _ = directory.remove_owners();
    }

    /// Stores a run that no process works on. A file with damaged lines is kept under another name.
    fn store(&self, path: PathBuf) -> Result<Recovered, FinishError> {
        let is_aside = self.directory.is_aside(&path);
        let Some(left) = spool::left_behind(path)? else {
            return Ok(Recovered { stored: None, kept: None });
        };
        let LeftSpool { spool, .. } = &left;
        if spool.has_spans() {
            return self.store_trace(spool, is_aside);
        }
        let SpoolContent { head, calls, damage } = spool.read()?;
        let mut stored = None;
        if let Some(head) = head {
            let calls = self.permitted(calls, &head.id)?;
            let warn = |reason: &str| (self.report)(&GatewayEvent::Failed { reason });
            stored = match self.destination.store(spool, &head, calls, &warn) {
                Err(error) if error.is_permanent() && !is_aside => {
                    let calls = spool.set_aside(UNSTORED)?;
                    return Err(FinishError::SetAside { run: head.id, calls, source: Box::new(error) });
                }
                result => result?,
            };
        }
        let kept = match damage {
            None => {
                spool.remove()?;
                None
            }
            Some(damage) if is_aside => Some((spool.path().to_owned(), damage)),
            Some(damage) => Some((spool.set_aside(DAMAGED)?, damage)),
        };
        Ok(Recovered { stored, kept })
    }

    /// Stores the run that the spans in a file are.
    fn store_trace(&self, spool: &Spool, is_aside: bool) -> Result<Recovered, FinishError> {
        let warn = |reason: &str| (self.report)(&GatewayEvent::Failed { reason });
        match self.destination.store_trace(spool, self.options.rules, &warn) {
            Ok(stored) => {
                spool.remove()?;
                Ok(Recovered { stored: reported(stored, self.report), kept: None })
            }
            Err(error) if error.is_permanent() && !is_aside => Err(set_trace_aside(spool, error)),
            Err(error) => Err(error),
        }
    }

    /// Returns the calls without those that are refused now. A file contains them only if the process that recorded them
    /// did not refuse them.
    fn permitted(&self, calls: Vec<StoredCall>, run: &str) -> Result<Vec<StoredCall>, FinishError> {
        if self.options.secrets != SecretPolicy::Refuse {
            return Ok(calls);
        }
        let mut restorer = RequestRestorer::new(&calls);
        let unreadable = || FinishError::Uncanonical(run.to_owned());
        let mut permitted = RequestStore::default();
        let mut kept = Vec::new();
        for call in &calls {
            let request = restorer.complete(call.number).ok_or_else(unreadable)?;
            let call: CallRecord = call.clone().with_request(request);
            if !is_refused(&call, self.options.secrets, self.report) {
                let (call, request) = permitted.store(call).map_err(|_| unreadable())?;
                permitted.add(request);
                kept.push(call);
            }
        }
        Ok(kept)
    }
}

/// Sets the file of a trace aside that cannot be stored, and returns the error for that.
pub(super) fn set_trace_aside(spool: &Spool, error: FinishError) -> FinishError {
    let run = spool.read_spans().ok().and_then(|(head, _)| head).map(|head| head.id).unwrap_or_default();
    match spool.set_aside(UNSTORED) {
        Ok(calls) => FinishError::SetAside { run, calls, source: Box::new(error) },
        Err(error) => error.into(),
    }
}

/// Returns what a file says of itself.
fn unstored(path: PathBuf) -> io::Result<UnstoredRun> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = File::open(&path).map_err(named)?;
    let bytes = file.metadata().map_err(named)?.len();
    let mut reader = BufReader::new(file);
    let (mut line, mut calls, mut run_id) = (Vec::new(), 0, None);
    while reader.read_until(b'\n', &mut line).map_err(named)? > 0 {
        match spool_file::run_id(&line) {
            Some(id) => run_id = Some(id),
            None => calls += 1,
        }
        line.clear();
    }
    Ok(UnstoredRun { run_id, calls, bytes, reason: None, path })
}
