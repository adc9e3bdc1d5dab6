//! `runvault label`

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::vault::annotate::{RemoveLabelsRequest, SetLabelsRequest};
use runvault::vault::annotations::{
    LabelKey, LabelKeysRequest, LabelSummary, LabelValue, LabelValuesRequest, LabelsRequest,
};

use crate::cli::args::completing::CandidateSource;
use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::label;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{FAINT, NAME, counted};
use crate::cli::output::table::{TextCell, TextColumn};
use crate::cli::output::{json, time};

super::verbs! {
    /// Set, remove or list labels
    ///
    /// A label is a KEY=VALUE that many artifacts can share, such as commit=4f2a91c. An artifact has one value of a key.
    /// "add --label" and "add --ci" set labels when artifacts are added; "find --label" finds artifacts by them.
    Set(SetLabelsArgs), Remove(RemoveLabelsArgs), List(ListLabelsArgs)
}

/// Set labels on an artifact
///
/// A value that the artifact has for the same key is replaced, and the journal records both.
#[derive(ClapArgs)]
#[command(alias = "add")]
struct SetLabelsArgs {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// The labels, such as commit=4f2a91c
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = label::pair, add = CandidateSource::Labels.completer())]
    labels: Vec<(String, String)>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl SetLabelsArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let labels = label::unique(&self.labels)?;
        let vault = vault.open()?;
        let core_hashes = vec![self.hash.locate_artifact(&vault)?.artifact.core];
        let answer = vault.run(&SetLabelsRequest { core_hashes, labels })?;
        json::print_change(self.json, &answer, if answer.changed { "labeled" } else { "already labeled" })
    }
}

/// Remove labels from an artifact
#[derive(ClapArgs)]
#[command(aliases = ["del", "delete", "rm", "unset"])]
struct RemoveLabelsArgs {
    /// The artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(add = CandidateSource::ARTIFACTS.completer())]
    hash: ArtifactArg,

    /// The keys of the labels
    #[arg(required = true, value_name = "KEY", value_parser = label::key, add = CandidateSource::LabelKeys.completer())]
    keys: Vec<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RemoveLabelsArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        let core = self.hash.locate_artifact(&vault)?.artifact.core;
        let labels = vault.run(&LabelsRequest { artifact: core })?.labels;
        let is_missing = |key: &&str| labels.iter().all(|label| label.key != **key);
        let missing: Vec<&str> = self.keys.iter().map(String::as_str).filter(is_missing).collect();
        let none = || {
            let keys = missing.join(" or ");
            CommandError::No(format!(
                "{core:.12} has no label {keys}; \"runvault show {core:.12}\" lists its labels"
            ))
        };
        let request =
            RemoveLabelsRequest { core_hashes: vec![core], keys: self.keys.iter().cloned().collect() };
        let answer = vault.run(&request)?;
        let status = json::print_removal(self.json, answer, "label removed", none)?;
        if missing.is_empty() { Ok(status) } else { Err(none()) }
    }
}

/// List the keys of labels, the values of a key, or the labels of an artifact
#[derive(ClapArgs)]
#[command(alias = "ls")]
struct ListLabelsArgs {
    /// The key whose values are listed
    #[arg(value_name = "KEY", value_parser = label::key, add = CandidateSource::LabelKeys.completer())]
    key: Option<String>,

    /// List the labels of this artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(long, value_name = "HASH", conflicts_with = "key")]
    of: Option<ArtifactArg>,

    /// Print one line of JSON for each key, value or label
    #[arg(long)]
    json: bool,
}

impl ListLabelsArgs {
    fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        if let Some(named) = &self.of {
            return self.print_labels_of(named, &vault);
        }
        let number = |title| TextColumn::new(title).whole().right();
        let Some(key) = &self.key else {
            let keys = vault.run(&LabelKeysRequest {})?.keys;
            let columns = vec![TextColumn::new("key"), number("artifacts"), number("values")];
            let row = |LabelKey { key, artifacts, values }: &LabelKey| {
                vec![
                    TextCell::new(key, NAME),
                    TextCell::plain(&counted(*artifacts, "artifact")),
                    TextCell::plain(&counted(*values, "value")),
                ]
            };
            return json::print_list(&keys, self.json, columns, row, &counted(keys.len() as u64, "key"));
        };
        let request = LabelValuesRequest { key: key.clone(), prefix: String::new(), limit: None };
        let values = vault.run(&request)?.values;
        if values.is_empty() {
            return Err(CommandError::No(format!(
                "no artifact has a label {key}; \"runvault label list\" lists the keys"
            )));
        }
        let row = |LabelValue { value, artifacts, .. }: &LabelValue| {
            vec![
                TextCell::new(&format!("{key}={value}"), NAME),
                TextCell::plain(&counted(*artifacts, "artifact")),
            ]
        };
        let columns = vec![TextColumn::new("label"), number("artifacts")];
        json::print_list(&values, self.json, columns, row, &counted(values.len() as u64, "value"))
    }

    fn print_labels_of(&self, named: &ArtifactArg, vault: &Vault) -> Result<Status, CommandError> {
        let artifact = named.locate_artifact(vault)?.artifact.core;
        let labels = vault.run(&LabelsRequest { artifact })?.labels;
        let row = |LabelSummary { key, value, labeled_at }: &LabelSummary| {
            vec![
                TextCell::new(&format!("{key}={value}"), NAME),
                TextCell::new(&time::shown(labeled_at.0), FAINT),
            ]
        };
        let columns = vec![TextColumn::new("label"), TextColumn::new("set").whole()];
        json::print_list(&labels, self.json, columns, row, &counted(labels.len() as u64, "label"))
    }
}
