//! `runvault tag`

use clap::Args as ClapArgs;
use runvault::digest::pasted;
use runvault::display::brief;
use runvault::storage::ErrorKind;
use runvault::vault::annotate::{RemoveTagRequest, SetTagAnswer, SetTagRequest};
use runvault::vault::annotations::{TagSummary, TagsAnswer, TagsRequest};
use runvault::vault::resolve::ResolveRequest;
use runvault::{LookupError, Vault};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::{self, ArtifactArg};
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{FAINT, HASH, NAME, counted};
use crate::cli::output::table::{TextCell, TextColumn};
use crate::cli::output::{json, time};

super::verbs! {
    /// Set, remove or list tags
    ///
    /// A tag is a unique name for one artifact; @NAME can be used in place of its hash.
    Set(SetTagArgs), Remove(RemoveTagArgs), List(ListTagsArgs)
}

/// Set a tag on an artifact
///
/// @NAME can be used in place of a hash. A tag names one artifact: setting it on another artifact moves it, and the
/// journal records both. A tag cannot have the form of a hash, or be the id of a run in the vault. The arguments may be
/// in either order if only one of them can be the artifact.
#[derive(ClapArgs)]
#[command(alias = "add")]
struct SetTagArgs {
    /// The artifact: a hash, a prefix of one, another tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: String,

    /// The tag, such as baseline or release/1.4
    #[arg(add = CandidateSource::Tags.completer())]
    name: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What an argument can be.
enum TagOperand {
    /// Only an artifact: it has the form of a hash or of `latest`, or it is the id of a run.
    Artifact,
    /// The tag of an artifact.
    Tag,
    /// A tag that no artifact has.
    NewTag,
    /// Neither: it is not a valid tag.
    Other,
}

impl TagOperand {
    fn new(vault: &Vault, text: &str) -> Result<Self, CommandError> {
        let pasted = pasted(text);
        let Ok(name) = hash::tag_name(&pasted) else {
            let is_artifact = text.parse::<ArtifactArg>().is_ok();
            return Ok(if is_artifact { Self::Artifact } else { Self::Other });
        };
        let of = |text: String| ResolveRequest::new(text).locate(vault);
        match of(format!("@{name}")) {
            Ok(_) => return Ok(Self::Tag),
            Err(LookupError::NoSuchTag(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if pasted.starts_with('@') {
            return Ok(Self::NewTag);
        }
        Ok(match text.parse() {
            Ok(ArtifactArg::Hash(..) | ArtifactArg::Latest(_)) => Self::Artifact,
            _ => match of(format!("run:{name}")) {
                Err(LookupError::NoSuchName { .. }) => Self::NewTag,
                Ok(_) | Err(LookupError::AmbiguousName { .. }) => Self::Artifact,
                Err(error) => return Err(error.into()),
            },
        })
    }
}

impl SetTagArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let (artifact, tag) = self.in_order(&vault)?;
        let (artifact, name) = (parsed::<ArtifactArg>(artifact)?, usage(hash::tag_name(&pasted(tag)))?);
        let core_hash = artifact.locate_artifact(&vault)?.artifact.core;
        let request = SetTagRequest { core_hash, name: name.clone() };
        let answer = vault.run(&request).map_err(|error| match error.kind() {
            ErrorKind::Invalid => CommandError::Usage(error.to_string()),
            _ => error.into(),
        })?;
        json::print_change(self.json, &answer, &note(&answer, &name))
    }

    /// Returns the argument that is the artifact, and the one that is the tag.
    fn in_order(&self, vault: &Vault) -> Result<(&str, &str), CommandError> {
        let (one, other) = (self.hash.as_str(), self.name.as_str());
        Ok(match (TagOperand::new(vault, one)?, TagOperand::new(vault, other)?) {
            (TagOperand::Tag, TagOperand::Tag) if !one.starts_with('@') => {
                let (one, other) = (brief(one), brief(other));
                return Err(CommandError::Usage(format!(
                    "{one} and {other} are both tags; give @{one} {other} to move the tag {other}"
                )));
            }
            (TagOperand::Tag | TagOperand::NewTag, TagOperand::Artifact)
            | (TagOperand::NewTag, TagOperand::Tag) => (other, one),
            _ => (one, other),
        })
    }
}

fn parsed<T: std::str::FromStr<Err = String>>(text: &str) -> Result<T, CommandError> {
    usage(text.parse())
}

fn usage<T>(parsed: Result<T, String>) -> Result<T, CommandError> {
    parsed.map_err(CommandError::Usage)
}

fn note(answer: &SetTagAnswer, name: &str) -> String {
    match answer {
        SetTagAnswer { moved_from: Some(before), .. } => format!("tagged; @{name} was {before:.12}"),
        SetTagAnswer { changed: true, .. } => "tagged".to_owned(),
        SetTagAnswer { changed: false, .. } => "already tagged".to_owned(),
    }
}

/// Remove a tag
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
struct RemoveTagArgs {
    /// The tag
    #[arg(value_parser = hash::tag_name, add = CandidateSource::Tags.completer())]
    name: String,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RemoveTagArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let name = &self.name;
        let answer = vault.open()?.run(&RemoveTagRequest { name: name.clone() })?;
        json::print_removal(self.json, answer, "untagged", || {
            CommandError::No(format!("there is no tag {name}; \"runvault tag list\" lists the tags"))
        })
    }
}

/// List tags
#[derive(ClapArgs)]
#[command(alias = "ls")]
struct ListTagsArgs {
    /// Print one line of JSON for each tag
    #[arg(long)]
    json: bool,
}

impl ListTagsArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let TagsAnswer { tags } = vault.open()?.run(&TagsRequest {})?;
        let whole = |title| TextColumn::new(title).whole();
        let columns = vec![whole("hash"), whole("since").minor(), TextColumn::new("name")];
        let row = |TagSummary { name, core_hash, tagged_at }: &TagSummary| {
            vec![
                TextCell::new(&format!("{core_hash:.12}"), HASH),
                TextCell::new(&time::shown(tagged_at.0), FAINT),
                TextCell::new(&format!("@{name}"), NAME),
            ]
        };
        json::print_list(&tags, self.json, columns, row, &counted(tags.len() as u64, "tag"))
    }
}
