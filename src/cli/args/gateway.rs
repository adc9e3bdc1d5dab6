//! The options of a gateway as arguments.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::SecondsFormat;
use clap::Args;
use runvault::Vault;
use runvault::display::{counted, escaped};
use runvault::gateway::{AwsKey, GatewayEvent, GatewayMode, GatewayOptions, Pace, ReplaySource, Upstream};

use super::bounds::length;
use super::choice::{Choice, one_of};
use super::inputs::{self, SecretArgs};
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::label::LabelArgs;
use crate::cli::args::matching::{MatchingArgs, configured};
use crate::cli::args::settings;
use crate::cli::args::vault::{CreateArgs, VaultArgs};
use crate::cli::hints;
use crate::cli::output::exit::CommandError;
use crate::cli::output::{stdout, terminal};

/// What a gateway does with calls.
const MODES: &[Choice<GatewayMode>] = &[
    ("record", GatewayMode::Record, "Forward and record all calls"),
    ("replay", GatewayMode::Replay, "Answer from recordings; never ask a server"),
    ("auto", GatewayMode::Auto, "Answer what was recorded; forward and record the rest"),
    ("pass", GatewayMode::Pass, "Forward all calls; record nothing"),
];

/// How fast streams are replayed.
const PACES: &[Choice<Pace>] =
    &[("fast", Pace::Fast, "As fast as the client reads"), ("recorded", Pace::Recorded, "As they arrived")];

/// How exactly a request must be the recorded one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchMode {
    Strict,
    Loose,
}

const MATCHES: &[Choice<MatchMode>] = &[
    ("strict", MatchMode::Strict, "The same prompt, but for what rules leave out"),
    ("loose", MatchMode::Loose, "Other results of tools, dates and identifiers; each difference is reported"),
];

/// What a gateway does, with which servers, and how it compares requests.
#[derive(Args)]
pub(crate) struct GatewayArgs {
    /// What to do with calls
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = one_of(MODES))]
    mode: GatewayMode,

    /// Replay only this recording
    ///
    /// The recording is a hash, a prefix of one, a tag, a run id, or latest. Without this option, calls are replayed
    /// from all recordings, last seen first.
    #[arg(long, value_name = "RUN")]
    session: Option<ArtifactArg>,

    /// Make the calls again that the recording has from this step on
    ///
    /// Calls of earlier steps are answered from the recording of --session. All others are forwarded, and recorded as a
    /// run that is derived from it. Steps are numbered as "runvault view" shows them. Only with --mode auto.
    #[arg(long, value_name = "STEP", hide_short_help = true)]
    rerun_from: Option<usize>,

    /// How fast to replay streams
    #[arg(long, value_name = "PACE", default_value = "fast", value_parser = one_of(PACES), hide_short_help = true)]
    pace: Pace,

    /// Forward calls of a provider to this server
    ///
    /// The name is openai, anthropic or gemini, or another one for a server whose requests are JSON over POST. Can be
    /// repeated.
    #[arg(long, value_name = "NAME=URL", value_parser = upstream, visible_alias = "route")]
    upstream: Vec<Upstream>,

    /// How exactly a request must be the recorded one
    ///
    /// With loose, the n-th request that differs only in what tools returned, in dates or in identifiers is answered
    /// from the n-th recording.
    #[arg(long = "match", value_name = "HOW", default_value = "strict", value_parser = one_of(MATCHES), hide_short_help = true)]
    matches: MatchMode,

    #[command(flatten)]
    matching: MatchingArgs,

    #[command(flatten)]
    secrets: SecretArgs,

    #[command(flatten)]
    labels: LabelArgs,

    /// Finish a run that has had no call for this long, such as 5m
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = length, hide_short_help = true)]
    idle: Duration,

    /// Directory for the calls of runs that are not finished. Default: beside the vault, its name with -gateway
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    spool: Option<PathBuf>,

    #[command(flatten)]
    create: CreateArgs,
}

impl GatewayArgs {
    /// Opens the vault: for additions, unless the gateway only replays.
    pub(crate) fn open(&self, vault: &VaultArgs) -> Result<Vault, CommandError> {
        match self.mode {
            GatewayMode::Replay => vault.open(),
            _ => vault.open_to_add(self.create),
        }
    }

    /// Returns the mode.
    pub(crate) fn mode(&self) -> GatewayMode {
        self.mode
    }

    /// Returns whether calls are recorded.
    pub(crate) fn records(&self) -> bool {
        matches!(self.mode, GatewayMode::Record | GatewayMode::Auto)
    }

    /// Returns the options.
    pub(crate) fn options(&self, args: &VaultArgs, vault: &Vault) -> Result<GatewayOptions, CommandError> {
        let spool = match &self.spool {
            Some(directory) => directory.clone(),
            None => args.recordings()?,
        };
        if self.rerun_from.is_some() && (self.session.is_none() || self.mode != GatewayMode::Auto) {
            let message = "--rerun-from is for --mode auto and the recording that --session names";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let mut options = GatewayOptions::new(self.mode(), &spool);
        options.source = self.source(vault)?;
        options.rerun_from = self.rerun_from;
        options.pace = self.pace;
        options.rules = self.matching.rules()?;
        options.is_loose = self.matches == MatchMode::Loose;
        options.upstreams = self.upstreams()?;
        options.aws_key = aws_key();
        options.labels = self.labels.labels()?;
        options.secrets = self.secrets.policy()?;
        options.idle = self.idle;
        options.rule_format = hints::for_comparison;
        options.report = Arc::new(report_event);
        Ok(options)
    }

    fn source(&self, vault: &Vault) -> Result<ReplaySource, CommandError> {
        match &self.session {
            None => Ok(ReplaySource::All),
            Some(ArtifactArg::Latest(0)) => Ok(ReplaySource::Latest),
            Some(named) => Ok(ReplaySource::Artifact(named.locate(vault)?.artifact.core)),
        }
    }

    /// Returns the servers of the settings and those of the arguments, which come last and replace them.
    pub(crate) fn upstreams(&self) -> Result<Vec<Upstream>, CommandError> {
        let configured = configured(&settings::GATEWAY_UPSTREAM)?;
        let configured = configured.iter().map(|text| upstream(text).map_err(CommandError::Usage));
        configured.chain(self.upstream.iter().cloned().map(Ok)).collect()
    }
}

/// Returns the key of AWS in the environment.
fn aws_key() -> Option<AwsKey> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some(AwsKey::new(variable("AWS_ACCESS_KEY_ID")?, variable("AWS_SECRET_ACCESS_KEY")?))
}

fn upstream(text: &str) -> Result<Upstream, String> {
    Upstream::parse(text).map_err(|error| error.to_string())
}

/// Prints what a gateway reports.
fn report_event(event: &GatewayEvent<'_>) {
    match event {
        GatewayEvent::Recorded { provider, path, status } => {
            print_if_verbose(&format!("recorded {provider} {} ({status})", escaped(path)));
        }
        GatewayEvent::Replayed { provider, path, from, .. } => {
            print_if_verbose(&format!("replayed {provider} {} from {from}", escaped(path)));
        }
        GatewayEvent::ReplayedLoosely { provider, path, from, step, difference } => {
            let (path, difference) = (escaped(path), escaped(difference));
            stdout::warning(&format!(
                "replayed {provider} {path} from step {step} of {from:.12} although it differs: {difference}"
            ));
        }
        GatewayEvent::AskedAgain { provider, path, reason } => {
            let call = format!("{provider} {}", escaped(path));
            stdout::note(&format!("asking again: {call}: only a failure was recorded: {}", escaped(reason)));
        }
        GatewayEvent::Forwarded { provider, path } => {
            print_if_verbose(&format!("forwarded {provider} {}", escaped(path)));
        }
        GatewayEvent::Missed { provider, path, reason } => {
            stdout::warning(&format!("not recorded: {provider} {}: {}", escaped(path), escaped(reason)));
        }
        GatewayEvent::NotRecorded { provider, path, reason } => {
            stdout::warning(&format!("{provider} {}: {}", escaped(path), escaped(reason)));
        }
        GatewayEvent::Secrets { provider, path, secrets, refused } => {
            inputs::warn_of_secrets(&format!("{provider} {path}"), secrets);
            if *refused {
                let call = format!("{provider} {}", escaped(path));
                stdout::warning(&format!("{call}: the call is not recorded, because secrets are refused"));
            }
        }
        GatewayEvent::Lost { provider, path, requested_at } => {
            let at = requested_at.to_rfc3339_opts(SecondsFormat::Secs, true);
            let call = format!("{provider} {}", escaped(path));
            stdout::warning(&format!(
                "lost: {call}: the call of {at} was not complete when its gateway was killed"
            ));
        }
        GatewayEvent::SetAside { file, reason } => {
            let file = file.to_string_lossy();
            stdout::warning(&format!("{}: {}{}", escaped(&file), escaped(reason), hints::SET_ASIDE));
        }
        GatewayEvent::Skipped { trace, reason, count } => {
            stdout::note(&format!("trace {trace}: {}", escaped(&format!("{reason} ({count})"))));
        }
        GatewayEvent::Failed { reason } => stdout::error(&escaped(reason).to_string()),
        GatewayEvent::Finished(run) => {
            let calls = counted(run.calls, "call");
            let failed = if run.failed > 0 {
                format!(", {} without a complete answer", run.failed)
            } else {
                String::new()
            };
            let name = run.name.as_deref().map(|name| format!(" {}", escaped(name))).unwrap_or_default();
            stdout::note(&format!("run{name}: {calls}{failed}"));
            for run_pack in &run.run_packs {
                stdout::note(&format!("run pack {run_pack}"));
            }
            for session in &run.sessions {
                stdout::note(&format!("session {session}"));
            }
        }
        _ => {}
    }
}

fn print_if_verbose(text: &str) {
    if terminal::is_verbose() {
        stdout::note(text);
    }
}
