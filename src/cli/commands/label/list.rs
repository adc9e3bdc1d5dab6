//! `runvault label list`

use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::vault::annotations::{
    LabelKey, LabelKeysRequest, LabelSummary, LabelValue, LabelValuesRequest, LabelsRequest,
};

use crate::cli::args::hash::ArtifactArg;
use crate::cli::args::label;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::stdout::{FAINT, NAME, counted};
use crate::cli::output::table::{TextCell, TextColumn};
use crate::cli::output::{list, time};

/// List the keys of labels, the values of a key, or the labels of an artifact
#[derive(ClapArgs)]
#[command(alias = "ls")]
pub(crate) struct Args {
    /// The key whose values are listed
    #[arg(value_name = "KEY", value_parser = label::key)]
    key: Option<String>,

    /// List the labels of this artifact: a hash, a prefix of one, a tag, a run id, or latest
    #[arg(long, value_name = "HASH", conflicts_with = "key")]
    of: Option<ArtifactArg>,

    /// Print one line of JSON for each key, value or label
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
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
            return list::print(&keys, self.json, columns, row, &counted(keys.len() as u64, "key"));
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
        list::print(&values, self.json, columns, row, &counted(values.len() as u64, "value"))
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
        list::print(&labels, self.json, columns, row, &counted(labels.len() as u64, "label"))
    }
}
