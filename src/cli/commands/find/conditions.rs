//! Conditions that artifacts must match.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::{AttributeInfo, SignatureName, group};
use runvault::digest::{Digest, DigestPrefix};
use runvault::display::{brief, escaped};
use runvault::storage::TimeBasis;
use runvault::vault::api::Timestamp;
use runvault::vault::find::{ArtifactFilter, Condition, FindOrder, FindPeriod};
use runvault::vault::near::{LongerPrompt, NearAnswer, NearPrompt, NearRequest, NearValues};
use runvault::vault::resolve::DigestsRequest;

use crate::cli::args::attribute::{self, AttributeTest};
use crate::cli::args::choice::{self, Choice};
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::{self, ArtifactArg};
use crate::cli::args::inputs::kind;
use crate::cli::args::label::{self, LabelTest};
use crate::cli::output::exit::CommandError;
use crate::cli::output::stdout::{self, counted};
use crate::cli::output::time;

/// Artifacts of one kind, or of any.
#[derive(Clone)]
pub(crate) struct KindFilter {
    kind: Option<&'static str>,
    plural: &'static str,
}

/// What a positional argument selects.
#[derive(Clone)]
enum Selected {
    Kind(KindFilter),
    /// What has this hash or mentions it.
    About(ArtifactArg),
}

/// The artifacts that are listed.
#[derive(ClapArgs)]
pub(crate) struct KindFilterArgs {
    /// A kind, such as runs; or a hash, tag or run id, to find artifacts that have or mention it
    ///
    /// The kinds are sessions, runs, traces, contracts, packs and attachments, or artifacts (any kind). A kind and a hash
    /// can both be given.
    #[arg(value_name = "WHAT", num_args = 0..=2, value_parser = selected, add = CandidateSource::Plurals.completer())]
    what: Vec<Selected>,

    /// The same as the kind in WHAT
    #[arg(long, value_name = "KIND", value_parser = what, add = CandidateSource::Kinds.completer())]
    kind: Option<KindFilter>,
}

impl KindFilterArgs {
    fn chosen(&self) -> Option<&KindFilter> {
        let named = self.what.iter().find_map(|selected| match selected {
            Selected::Kind(kind) => Some(kind),
            Selected::About(_) => None,
        });
        self.kind.as_ref().or(named)
    }

    /// Returns the kind; `None` for artifacts of any kind.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        self.chosen().and_then(|chosen| chosen.kind)
    }

    pub(super) fn plural(&self) -> &'static str {
        self.chosen().map_or("artifacts", |chosen| chosen.plural)
    }

    /// Returns the filter of the artifacts that match both these arguments and the conditions.
    pub(crate) fn filter(
        &self,
        vault: &Vault,
        conditions: &FindConditionArgs,
    ) -> Result<ArtifactFilter, CommandError> {
        let kinds = self.what.iter().filter(|selected| matches!(selected, Selected::Kind(_))).count();
        if kinds + usize::from(self.kind.is_some()) > 1 {
            return Err(CommandError::Usage("give one kind".to_owned()));
        }
        let mut filter = conditions.filter(vault, self.kind())?;
        for named in self.about() {
            filter.conditions.push(named.about(vault)?);
        }
        Ok(filter)
    }

    /// Returns the arguments that are not kinds.
    pub(super) fn about(&self) -> impl Iterator<Item = &ArtifactArg> {
        self.what.iter().filter_map(|selected| match selected {
            Selected::About(named) => Some(named),
            Selected::Kind(_) => None,
        })
    }
}

fn what(text: &str) -> Result<KindFilter, String> {
    if ["artifact", "artifacts"].contains(&text) {
        return Ok(KindFilter { kind: None, plural: "artifacts" });
    }
    let known = kind(text).map_err(|error| format!("{error} or artifacts"))?;
    Ok(KindFilter { kind: Some(known.name()), plural: known.plural() })
}

fn selected(text: &str) -> Result<Selected, String> {
    what(text).map(Selected::Kind).or_else(|_| text.parse().map(Selected::About))
}

/// What an artifact must match.
#[derive(ClapArgs)]
pub(crate) struct FindConditionArgs {
    /// Sent this prompt, in a session or a run
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Sent the prompt in this file, byte for byte; - is standard input
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    prompt_file: Option<PathBuf>,
    /// Sent the prompt with this SHA-256
    #[arg(long, value_name = "HASH", value_parser = hash::prefix, hide_short_help = true)]
    prompt_hash: Option<DigestPrefix>,
    /// Received a response with this SHA-256
    #[arg(long, value_name = "HASH", value_parser = hash::prefix, hide_short_help = true)]
    response_hash: Option<DigestPrefix>,
    /// Has a step with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix, hide_short_help = true)]
    step_hash: Option<DigestPrefix>,
    /// Has a trace record with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix, hide_short_help = true)]
    record_hash: Option<DigestPrefix>,
    /// Has a state with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix, hide_short_help = true)]
    state_hash: Option<DigestPrefix>,
    /// Is an export pack with this intent hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix, hide_short_help = true)]
    intent_hash: Option<DigestPrefix>,
    /// Is an export pack with this bundle hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix, hide_short_help = true)]
    bundle_hash: Option<DigestPrefix>,
    /// Mentions this hash (or the hash of this @tag or of latest) in any role
    #[arg(long, value_name = "HASH", add = CandidateSource::ARTIFACTS.completer(), hide_short_help = true)]
    mentions: Option<ArtifactArg>,

    /// Has this run id
    ///
    /// * stands for any text, here and in trace ids, models, adapters, tools and hosts.
    #[arg(long, value_name = "ID", add = CandidateSource::Values("run_id").completer())]
    run_id: Option<String>,
    /// Has this trace id
    #[arg(long, value_name = "ID", add = CandidateSource::Values("trace_id").completer(), hide_short_help = true)]
    trace_id: Option<String>,
    /// Used this model
    #[arg(long, value_name = "ID", add = CandidateSource::Values("model_id").completer())]
    model: Option<String>,
    /// Used this adapter
    #[arg(long, value_name = "ID", add = CandidateSource::Values("adapter_id").completer(), hide_short_help = true)]
    adapter: Option<String>,
    /// Called this tool
    #[arg(long, value_name = "NAME", add = CandidateSource::Values("tool").completer())]
    tool: Option<String>,
    /// Has a step with an HTTP request to this host
    #[arg(long, value_name = "HOST", add = CandidateSource::Values("http_host").completer(), hide_short_help = true)]
    host: Option<String>,
    /// Has a step with an HTTP request of this method
    #[arg(long, value_name = "METHOD", add = CandidateSource::Values("http_method").completer(), hide_short_help = true)]
    method: Option<String>,
    /// Has a step that failed or is an error
    #[arg(long)]
    has_error: bool,
    /// Is an export pack with this result
    #[arg(long, value_name = "RESULT", value_parser = ["BUNDLE", "CLARIFY", "REFUSE"], hide_short_help = true)]
    result: Option<String>,
    /// Is an export pack with this policy: a name, or a name and version
    #[arg(long, value_name = "POLICY", add = CandidateSource::Values("policy").completer(), hide_short_help = true)]
    policy: Option<String>,
    /// Is an export pack with this model mode
    #[arg(long, value_name = "MODE", add = CandidateSource::Values("model_mode").completer(), hide_short_help = true)]
    model_mode: Option<String>,
    /// Declares this IO reference
    #[arg(long, value_name = "REF", add = CandidateSource::Values("io_ref").completer(), hide_short_help = true)]
    io_ref: Option<String>,
    /// Has this attribute; "show" lists them. NAME>=VALUE and NAME<=VALUE compare numbers, durations and times
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute::test, add = CandidateSource::Attributes.completer(), hide_short_help = true)]
    attr: Vec<AttributeTest>,
    /// Has a capture whose signature was verified with the key of this id
    #[arg(long, value_name = "KEY_ID", hide_short_help = true)]
    signed_by: Option<String>,
    /// Has a capture whose signature has this state
    #[arg(long, value_name = "STATE", value_parser = choice::one_of(SIGNATURES), hide_short_help = true)]
    signature: Option<SignatureName>,
    /// Has a note that contains this text, ignoring case; "" matches every note
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    note: Option<String>,
    /// Has this label: KEY=VALUE, or KEY for any value
    ///
    /// * stands for any text in VALUE. Can be repeated.
    #[arg(long, value_name = "LABEL", value_parser = label::test, add = CandidateSource::Labels.completer())]
    label: Vec<LabelTest>,

    /// Created at this time or later (see --by): 2026-11-20, yesterday, an age like 36h
    ///
    /// Also 2026-11, 2026, an RFC 3339 time, today, tuesday, "last week", "this month", or 90m, 7d, 4w. A day, a week, a month
    /// or a year is its beginning, in UTC.
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    since: Option<DateTime<Utc>>,
    /// Created before this time (see --by)
    #[arg(long, value_name = "TIME", value_parser = time::point, hide_short_help = true)]
    until: Option<DateTime<Utc>>,
    /// Which time --since and --until compare, and by which artifacts are listed and sorted. An artifact that states no
    /// such time never matches by "created" or "finished"
    #[arg(long, value_name = "TIME", default_value = "created", value_parser = choice::one_of(choice::TIMES), hide_short_help = true)]
    pub(crate) by: TimeBasis,
}

/// The states of signatures.
const SIGNATURES: &[Choice<SignatureName>] = &[
    ("verified", SignatureName::Verified, "The signature was verified with a key"),
    ("unsigned", SignatureName::Unsigned, "It is not signed"),
    ("unchecked", SignatureName::Unchecked, "The signature was not checked: there was no key for it"),
    ("wrong", SignatureName::Wrong, "The signature is not that of the content"),
];

impl FindConditionArgs {
    /// Returns the order by the time that is used, newest first.
    pub(crate) fn order(&self) -> FindOrder {
        self.by.into()
    }

    /// Says how many artifacts match except that they state no time that the period could be compared with.
    fn note_undated(&self, vault: &Vault, filter: &ArtifactFilter) -> Result<(), CommandError> {
        let basis = self.by;
        let Some(period) = filter.period.filter(|_| basis.attribute().is_some()) else { return Ok(()) };
        let dated = FindPeriod { since: None, until: None, ..period };
        let dated = ArtifactFilter { period: Some(dated), ..filter.clone() };
        let all = vault.count(&ArtifactFilter { period: None, ..filter.clone() })?;
        let undated = all.saturating_sub(vault.count(&dated)?);
        if undated > 0 {
            let verb = if undated == 1 { "states" } else { "state" };
            let undated = counted(undated, "artifact");
            let noun = basis.noun();
            stdout::note(&format!(
                "{undated} {verb} no {noun} and cannot match; --by last-seen compares another time"
            ));
        }
        Ok(())
    }

    /// Returns the filter of matching artifacts of a kind, or of any.
    pub(crate) fn filter(&self, vault: &Vault, kind: Option<&str>) -> Result<ArtifactFilter, CommandError> {
        let (since, until) = (self.since.map(Timestamp), self.until.map(Timestamp));
        let period = FindPeriod { by: self.by, since, until };
        let filter = ArtifactFilter {
            kinds: kind.map(str::to_owned).into_iter().collect(),
            conditions: self.conditions(vault)?,
            period: (since.is_some() || until.is_some()).then_some(period),
            digits: None,
        };
        self.note_undated(vault, &filter)?;
        Ok(filter)
    }

    fn conditions(&self, vault: &Vault) -> Result<Vec<Condition>, CommandError> {
        let mut conditions = Vec::new();
        let mut mention = |group: Option<&str>, digest: Digest| {
            conditions.push(Condition::Mention { group: group.map(str::to_owned), digest });
        };
        if let Some(text) = &self.prompt {
            mention(Some(group::PROMPT), Digest::from_content(text.as_bytes()));
        }
        if let Some(path) = &self.prompt_file {
            mention(Some(group::PROMPT), digest_of(path)?);
        }
        for (group, prefix) in self.hashes() {
            if let Some(prefix) = prefix {
                mention(group, hash::mentioned(vault, prefix, group)?);
            }
        }
        if let Some(named) = &self.mentions {
            mention(None, hash::mentioned(vault, &named.prefix(vault)?, None)?);
        }
        let attributes = [
            ("run_id", &self.run_id),
            ("trace_id", &self.trace_id),
            ("model_id", &self.model),
            ("adapter_id", &self.adapter),
            ("tool", &self.tool),
            ("result", &self.result),
            ("policy", &self.policy),
            ("model_mode", &self.model_mode),
            ("io_ref", &self.io_ref),
            ("http_host", &self.host.as_deref().map(str::to_lowercase)),
            ("http_method", &self.method.as_deref().map(str::to_uppercase)),
        ];
        let note = self.note.clone().map(|text| Condition::Note { text });
        let named =
            attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        conditions.extend(named.map(|(name, value)| Condition::attribute(&name, &value)));
        conditions.extend(self.attr.iter().map(AttributeTest::condition));
        let failed =
            || Condition::Range { name: AttributeInfo::ERRORS.name.to_owned(), least: Some(1), most: None };
        conditions.extend(self.has_error.then(failed));
        conditions.extend(note);
        conditions.extend(self.label.iter().map(LabelTest::condition));
        let signature = |state, key_id| Condition::Signature { state, key_id };
        let signer = self.signed_by.clone().map(|id| signature(SignatureName::Verified, Some(id)));
        conditions.extend(signer);
        conditions.extend(self.signature.map(|state| signature(state, None)));
        Ok(conditions)
    }

    /// Reports hashes that nothing mentions because their artifact was removed.
    pub(super) fn note_removals<'a>(
        &'a self,
        vault: &Vault,
        about: impl Iterator<Item = &'a ArtifactArg>,
    ) -> Result<(), CommandError> {
        let named = self.mentions.iter().chain(about).filter_map(ArtifactArg::hash);
        for prefix in self.hashes().into_iter().filter_map(|(_, prefix)| prefix).chain(named) {
            if let Some(removed) = vault.run(&DigestsRequest { prefix: *prefix, group: None })?.removed {
                stdout::note(&escaped(&removed.to_string()).to_string());
            }
        }
        Ok(())
    }

    /// Says what is similar to conditions that no artifact matches.
    pub(crate) fn note_near(&self, vault: &Vault, filter: &ArtifactFilter) -> Result<(), CommandError> {
        let read = |path: &PathBuf| fs::read_to_string(path).ok();
        let prompt = self.prompt.clone().or_else(|| self.prompt_file.as_ref().and_then(read));
        let NearAnswer { values, prompt, longer_prompts } =
            vault.run(&NearRequest { filter: filter.clone(), prompt })?;
        for NearValues { name, value, similar } in values {
            let (value, near) = (brief(&value), hash::similar_text(&similar));
            stdout::note(&format!("no artifact has {} {value}{near}", escaped(&name)));
        }
        if let Some(NearPrompt { digest, has_line_feed, count }) = prompt {
            let form = if has_line_feed { "with a line feed" } else { "without the line feed" };
            let artifacts = counted(count, "artifact");
            stdout::note(&format!(
                "{form} at its end, {artifacts} sent the prompt: --prompt-hash {digest:.12}"
            ));
        }
        for LongerPrompt { core_hash, place } in longer_prompts {
            let place = escaped(&place.to_string()).to_string();
            stdout::note(&format!("a longer prompt contains it: {core_hash:.12} {place}"));
        }
        Ok(())
    }

    /// Returns the conditions that are hashes, each with its group of roles.
    fn hashes(&self) -> [(Option<&'static str>, Option<&DigestPrefix>); 7] {
        [
            (Some(group::PROMPT), self.prompt_hash.as_ref()),
            (Some(group::RESPONSE), self.response_hash.as_ref()),
            (Some(group::STEP), self.step_hash.as_ref()),
            (Some(group::RECORD), self.record_hash.as_ref()),
            (Some("state"), self.state_hash.as_ref()),
            (Some("intent"), self.intent_hash.as_ref()),
            (Some("bundle"), self.bundle_hash.as_ref()),
        ]
    }
}

/// Returns the digest of a file of any size, or of standard input.
fn digest_of(path: &Path) -> Result<Digest, CommandError> {
    let digest = match path.to_str() {
        Some("-") => Digest::from_reader(io::stdin().lock()),
        _ => File::open(path).and_then(Digest::from_reader),
    };
    digest.map_err(|error| {
        CommandError::CouldNotRun(format!("cannot read the prompt {}: {error}", path.display()))
    })
}
