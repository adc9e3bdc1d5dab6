//! `runvault find`

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::{AttributeInfo, Kind, group};
use runvault::digest::{Digest, DigestPrefix};
use runvault::formats;
use runvault::vault::answers::AnswersRequest;
use runvault::vault::api::{SignatureName, TimeBasisName, Timestamp};
use runvault::vault::details::Detail;
use runvault::vault::digests::DigestsRequest;
use runvault::vault::find::{ArtifactFilter, FindAnswer, FindCondition, FindOrder, FindPeriod, FindRequest};

use crate::cli::args::attribute::{self, AttributeTest};
use crate::cli::args::hash;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::kind::kind;
use crate::cli::args::label::{self, LabelTest};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::answers;
use crate::cli::output::columns::{self, ArtifactColumn};
use crate::cli::output::escape::escaped;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::hits::{ArtifactListItem, ArtifactListPrinter};
use crate::cli::output::json;
use crate::cli::output::signature;
use crate::cli::output::stdout::{self, counted};
use crate::cli::output::template::LineTemplate;
use crate::cli::output::terminal;
use crate::cli::output::time;
use crate::cli::output::time::TimeBasisArg;

/// Find artifacts by prompt, model, run id, time, label or hash
///
/// All conditions must hold. The output says where each artifact matched. Hashes can be abbreviated. With "packs", a
/// pack also matches if the session that it contains does. A trace that a longer matching trace extends is not listed.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    what: KindFilterArgs,

    #[command(flatten)]
    conditions: FindConditionArgs,

    /// Also list traces that a longer matching trace extends
    #[arg(long)]
    all_versions: bool,

    /// Maximum number of results. Default: 100 on a terminal, else unlimited
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Sort order. Default: newest first, by the time that --by names
    #[arg(long, value_name = "ORDER", value_parser = attribute::order())]
    sort: Option<FindOrder>,

    /// Print the answers to the prompt over time
    ///
    /// Which, how often, when and where. Without a prompt: those prompts of the matching artifacts that were answered
    /// differently.
    #[arg(long, conflicts_with_all = ["columns", "format", "sort", "all_versions"])]
    answers: bool,

    /// Columns to print, such as core,kind,seen,label; an unknown name lists all columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = columns::named)]
    columns: Vec<ArtifactColumn>,

    /// Print each in this format, such as '{{core}} {{kind}}'; the names are those of --columns; \n and \t are escapes
    #[arg(long, value_name = "TEXT", conflicts_with = "columns")]
    format: Option<LineTemplate>,

    /// Print one line of JSON for each artifact
    #[arg(long, conflicts_with_all = ["columns", "format"])]
    json: bool,
}

/// What an artifact must match.
#[derive(ClapArgs)]
pub(crate) struct FindConditionArgs {
    /// Sent this prompt, in a session or a run
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Sent the prompt in this file, byte for byte; - is standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Sent the prompt with this SHA-256
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    prompt_hash: Option<DigestPrefix>,
    /// Received a response with this SHA-256
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    response_hash: Option<DigestPrefix>,
    /// Has a step with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    step_hash: Option<DigestPrefix>,
    /// Has a trace record with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    record_hash: Option<DigestPrefix>,
    /// Has a state with this hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    state_hash: Option<DigestPrefix>,
    /// Is an export pack with this intent hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    intent_hash: Option<DigestPrefix>,
    /// Is an export pack with this bundle hash
    #[arg(long, value_name = "HASH", value_parser = hash::prefix)]
    bundle_hash: Option<DigestPrefix>,
    /// Mentions this hash (or the hash of this @tag or of latest) in any role
    #[arg(long, value_name = "HASH")]
    mentions: Option<ArtifactArg>,

    /// Has this run id
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Has this trace id
    #[arg(long, value_name = "ID")]
    trace_id: Option<String>,
    /// Used this model
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Used this adapter
    #[arg(long, value_name = "ID")]
    adapter: Option<String>,
    /// Called this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Has a step with an HTTP request to this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Has a step with an HTTP request of this method
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// Has a step that failed or is an error
    #[arg(long)]
    has_error: bool,
    /// Is an export pack with this result
    #[arg(long, value_name = "RESULT", value_parser = ["BUNDLE", "CLARIFY", "REFUSE"])]
    result: Option<String>,
    /// Is an export pack with this policy: a name, or a name and version
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Is an export pack with this model mode
    #[arg(long, value_name = "MODE")]
    model_mode: Option<String>,
    /// Declares this IO reference
    #[arg(long, value_name = "REF")]
    io_ref: Option<String>,
    /// Has this attribute; "show" lists them. NAME>=VALUE and NAME<=VALUE compare numbers, durations and times
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute::test)]
    attr: Vec<AttributeTest>,
    /// Has a capture whose signature was verified with the key of this id
    #[arg(long, value_name = "KEY_ID")]
    signed_by: Option<String>,
    /// Has a capture whose signature has this state
    #[arg(long, value_name = "STATE", value_enum)]
    signature: Option<signature::CaptureSignatureStatus>,
    /// Has a note that contains this text, ignoring case; "" matches every note
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Has this label: KEY=VALUE, or KEY for any value
    ///
    /// Can be repeated.
    #[arg(long, value_name = "LABEL", value_parser = label::test)]
    label: Vec<LabelTest>,

    /// Last seen at this time or later: 2026-11-20, an RFC 3339 time, or an age like 90m, 36h, 7d, 4w
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    since: Option<DateTime<Utc>>,
    /// Last seen before this time
    #[arg(long, value_name = "TIME", value_parser = time::point)]
    until: Option<DateTime<Utc>>,
    /// Which time --since and --until compare, and which is listed. An artifact that states no such time never
    /// matches by "created" or "finished"
    #[arg(long, value_enum, value_name = "TIME", default_value_t)]
    pub(crate) by: TimeBasisArg,
}

/// Artifacts of one kind, or of any.
#[derive(Clone)]
pub(crate) struct KindFilter {
    kind: Option<&'static str>,
    plural: &'static str,
}

/// The kind of the artifacts that are listed.
#[derive(ClapArgs)]
pub(crate) struct KindFilterArgs {
    /// A kind: sessions, runs, traces, contracts, packs or attachments; or artifacts (any kind)
    #[arg(value_name = "WHAT", default_value = "artifacts", value_parser = what)]
    what: KindFilter,

    /// The same as WHAT
    #[arg(long, value_name = "KIND", value_parser = what, conflicts_with = "what", hide_short_help = true)]
    kind: Option<KindFilter>,
}

impl KindFilterArgs {
    fn chosen(&self) -> &KindFilter {
        self.kind.as_ref().unwrap_or(&self.what)
    }

    /// Returns the kind; `None` for artifacts of any kind.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        self.chosen().kind
    }

    fn plural(&self) -> &'static str {
        self.chosen().plural
    }
}

fn what(text: &str) -> Result<KindFilter, String> {
    if ["artifact", "artifacts"].contains(&text) {
        return Ok(KindFilter { kind: None, plural: "artifacts" });
    }
    let known = kind(text).map_err(|error| format!("{error} or artifacts"))?;
    Ok(KindFilter { kind: Some(known.name()), plural: known.plural() })
}

/// Maximum number of artifacts whose answers are read, unless requested otherwise.
const ANSWERS_OF: u64 = 1_000;

/// Maximum number of artifacts or rows listed on a terminal.
pub(crate) const SCREENFUL: u64 = 100;

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        if self.answers {
            return self.print_answers(&vault);
        }
        let list = ArtifactListPrinter::new(self.conditions.by.basis());
        let mut list = match &self.format {
            Some(template) => list.with_format(template),
            None if self.columns.is_empty() => list,
            None => list.with_columns(&self.columns),
        };
        let details = if self.json { Detail::ALL.to_vec() } else { list.details() };
        let request = FindRequest { details, ..self.request(&vault)? };
        let out: Box<dyn Write> = if self.json { Box::new(stdout::raw()) } else { Box::new(stdout::text()) };
        let (mut out, mut shown) = (io::BufWriter::new(out), 0);
        let answer = request.visit::<CommandError>(&vault, &mut |hit| {
            shown += 1;
            if self.json {
                Ok(json::line(&mut out, &hit)?)
            } else {
                list.add(&mut out, ArtifactListItem::from(&hit))
            }
        })?;
        list.finish(&mut out)?;
        out.flush()?;
        if answer.found == 0 && answer.hidden == 0 {
            self.conditions.note_removals(&vault)?;
        }
        // Programs that parse the output must learn of omitted results too.
        match (self.json || self.format.is_some(), answer.hidden) {
            (false, _) => stdout::note(&self.ending(&answer, shown)),
            (true, hidden @ 1..) => stdout::note(&not_shown(hidden)),
            (true, 0) => {}
        }
        Ok(if answer.found == 0 { Status::No } else { Status::Done })
    }

    fn print_answers(&self, vault: &Vault) -> Result<Status, CommandError> {
        let is_recording = |kind: Kind| kind.playback().is_some();
        if let Some(kind) = self.what.kind().and_then(formats::named).filter(|kind| !is_recording(*kind)) {
            return Err(CommandError::Usage(format!("{} record no answers to prompts", kind.plural())));
        }
        let filter = self.conditions.filter(vault, self.what.kind())?;
        let prompt = filter.conditions.iter().find_map(|condition| match condition {
            FindCondition::Mention { group, digest } if group.as_deref() == Some(group::PROMPT) => {
                Some(*digest)
            }
            _ => None,
        });
        let answer = vault.run(&AnswersRequest {
            filter,
            prompt,
            limit: self.limit.map(|limit| limit as u64).or(Some(ANSWERS_OF)),
            max_text: (!self.json).then_some(answers::SHOWN_CHARACTERS),
        })?;
        if answer.read == 0 {
            self.conditions.note_removals(vault)?;
        }
        let mut out = io::BufWriter::new(stdout::text());
        if self.json {
            answer.prompts.iter().try_for_each(|prompt| json::stream(&mut out, prompt))?;
        } else {
            answers::print(&mut out, &answer)?;
        }
        out.flush()?;
        if !self.json || answer.is_more {
            stdout::note(&answers::ending(&answer));
        }
        Ok(if answer.prompts.is_empty() { Status::No } else { Status::Done })
    }

    fn request(&self, vault: &Vault) -> Result<FindRequest, CommandError> {
        // The list is limited only on a terminal.
        let people = terminal::is_terminal() && !self.json && self.format.is_none();
        Ok(FindRequest {
            filter: self.conditions.filter(vault, self.what.kind())?,
            order: match &self.sort {
                Some(order) => order.clone(),
                None => TimeBasisName::from(self.conditions.by.basis()).into(),
            },
            all_versions: self.all_versions,
            limit: self.limit.map(|limit| limit as u64).or(people.then_some(SCREENFUL)),
            ..FindRequest::default()
        })
    }

    /// Returns the last line, with the number of hits, of which `shown` are listed, and how to see the rest.
    fn ending(&self, answer: &FindAnswer, shown: u64) -> String {
        let FindAnswer { found, is_more, hidden, .. } = answer;
        let plural = self.what.plural();
        let mut found_text = counted(*found, plural.strip_suffix('s').unwrap_or(plural));
        if *is_more {
            found_text = format!("more than {found_text}");
        }
        let listed = match self.limit {
            _ if shown == *found && !is_more => found_text,
            None if *is_more => format!("{shown} of {found_text}; --limit shows more"),
            Some(_) => format!("{shown} of {found_text}"),
            None => format!("{shown} of {found_text}; --limit {found} shows all"),
        };
        if *hidden == 0 { listed } else { format!("{listed}; {}", not_shown(*hidden)) }
    }
}

fn not_shown(hidden: u64) -> String {
    let hidden = counted(hidden, "shorter version");
    format!("{hidden} not shown, --all-versions shows all")
}

impl FindConditionArgs {
    /// Returns the filter of matching artifacts of a kind, or of any.
    pub(crate) fn filter(&self, vault: &Vault, kind: Option<&str>) -> Result<ArtifactFilter, CommandError> {
        let (since, until) = (self.since.map(Timestamp), self.until.map(Timestamp));
        let period = FindPeriod { by: self.by.basis().into(), since, until };
        Ok(ArtifactFilter {
            kinds: kind.map(str::to_owned).into_iter().collect(),
            conditions: self.conditions(vault)?,
            period: (since.is_some() || until.is_some()).then_some(period),
            digits: None,
        })
    }

    fn conditions(&self, vault: &Vault) -> Result<Vec<FindCondition>, CommandError> {
        let mut conditions = Vec::new();
        let mut mention = |group: Option<&str>, digest: Digest| {
            conditions.push(FindCondition::Mention { group: group.map(str::to_owned), digest });
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
        let note = self.note.clone().map(|text| FindCondition::Note { text });
        let named =
            attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
        conditions.extend(named.map(|(name, value)| FindCondition::Attribute { name, value }));
        conditions.extend(self.attr.iter().map(AttributeTest::condition));
        let failed = || FindCondition::Range {
            name: AttributeInfo::ERRORS.name.to_owned(),
            least: Some(1),
            most: None,
        };
        conditions.extend(self.has_error.then(failed));
        conditions.extend(note);
        conditions.extend(self.label.iter().map(LabelTest::condition));
        let signature = |state, key_id| FindCondition::Signature { state, key_id };
        let signer = self.signed_by.clone().map(|id| signature(SignatureName::Verified, Some(id)));
        conditions.extend(signer);
        conditions.extend(self.signature.map(|state| signature(state.requested(), None)));
        Ok(conditions)
    }

    /// Reports hashes that nothing mentions because their artifact was removed.
    fn note_removals(&self, vault: &Vault) -> Result<(), CommandError> {
        let mentions = self.mentions.as_ref().and_then(ArtifactArg::hash);
        for prefix in self.hashes().into_iter().filter_map(|(_, prefix)| prefix).chain(mentions) {
            if let Some(removed) = vault.run(&DigestsRequest { prefix: *prefix, group: None })?.removed {
                stdout::note(&escaped(&removed.to_string()).to_string());
            }
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
