//! The arguments of `runvault replay`, in groups.

use std::num::NonZeroUsize;

use chrono::{DateTime, Utc};
use clap::{Args, ValueEnum};
use runvault::vault::api::Timestamp;
use runvault::vault::recordings::RecordingFilter;
use runvault::vault::replay::Repeat;
use runvault::vault::show::AttributeSummary;

use crate::cli::args::attribute;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::output::time;

/// The recording to replay.
#[derive(Clone)]
pub(super) enum RecordingArg {
    Any,
    One(ArtifactArg),
}

pub(super) fn recording(text: &str) -> Result<RecordingArg, String> {
    if text == "any" { Ok(RecordingArg::Any) } else { text.parse().map(RecordingArg::One) }
}

/// Which recording of a prompt.
#[derive(Args)]
pub(super) struct OrderArgs {
    /// Which recording of the prompt, from 1, if there are several
    #[arg(long, value_name = "N", requires = "asked", conflicts_with_all = ["sequential", "serve_stdio"], hide_short_help = true)]
    pub(super) occurrence: Option<NonZeroUsize>,
    /// Require requests in recorded order
    #[arg(long, requires = "call")]
    pub(super) sequential: bool,
    /// Index of the call, from 0
    #[arg(
        long,
        value_name = "N",
        group = "call",
        requires_all = ["sequential", "asked"],
        conflicts_with = "serve_stdio"
    )]
    pub(super) index: Option<usize>,
}

/// Many requests in one process.
#[derive(Args)]
pub(super) struct ServeArgs {
    /// Serve requests from standard input, one JSON object per line, until end of input
    #[arg(long, groups = ["asked", "call"])]
    pub(super) serve_stdio: bool,
    /// What to do when a prompt is requested more often than it was recorded: "never" refuses it, "last" repeats the
    /// last recording
    #[arg(
        long,
        value_name = "WHICH",
        value_enum,
        default_value_t,
        requires = "serve_stdio",
        conflicts_with = "sequential",
        hide_short_help = true
    )]
    pub(super) repeat: RepeatArg,
    /// Exit with status 1 if a recording was not used
    #[arg(long, requires = "serve_stdio", hide_short_help = true)]
    pub(super) fail_unused: bool,
}

/// What is repeated.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(super) enum RepeatArg {
    /// Refuse the request
    #[default]
    Never,
    /// Repeat the last recording
    Last,
}

impl From<RepeatArg> for Repeat {
    fn from(repeat: RepeatArg) -> Self {
        match repeat {
            RepeatArg::Never => Self::Never,
            RepeatArg::Last => Self::Last,
        }
    }
}

/// Which sessions are any.
#[derive(Args)]
pub(super) struct SessionFilterArgs {
    /// With "any": only sessions that used this model
    #[arg(long, value_name = "ID", add = CandidateSource::Values("model_id").completer())]
    model: Option<String>,
    /// With "any": only sessions that used this adapter
    #[arg(long, value_name = "ID", add = CandidateSource::Values("adapter_id").completer(), hide_short_help = true)]
    adapter: Option<String>,
    /// With "any": only sessions with this attribute; "show" lists attributes
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute::pair, add = CandidateSource::Attributes.completer(), hide_short_help = true)]
    attr: Vec<(String, String)>,
    /// With "any": only sessions last seen at this time or later, as for "find"
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    since: Option<DateTime<Utc>>,
    /// With "any": only sessions last seen before this time
    #[arg(long, value_name = "TIME", value_parser = time::point, hide_short_help = true)]
    until: Option<DateTime<Utc>>,
}

impl SessionFilterArgs {
    /// Returns whether any of them was given.
    pub(super) fn narrow(&self) -> bool {
        let attribute = self.model.is_some() || self.adapter.is_some() || !self.attr.is_empty();
        attribute || self.since.is_some() || self.until.is_some()
    }

    pub(super) fn recording_filter(&self) -> RecordingFilter {
        let named = [("model_id", &self.model), ("adapter_id", &self.adapter)];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        let attributes =
            named.chain(self.attr.iter().cloned()).map(|(name, value)| AttributeSummary { name, value });
        RecordingFilter {
            attributes: attributes.collect(),
            since: self.since.map(Timestamp),
            until: self.until.map(Timestamp),
        }
    }
}
