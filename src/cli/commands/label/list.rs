//! `runvault label list`

use clap::Args as ClapArgs;
use runvault::vault::labels::{LabelKeySummary, LabelKeysRequest, LabelValueSummary, LabelValuesRequest};

use crate::cli::args::label;
use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::list;
use crate::cli::output::stdout::{NAME, counted};
use crate::cli::output::table::{Cell, Column};

/// List the keys of labels, or the values of a key.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The key whose values are listed
    #[arg(value_name = "KEY", value_parser = label::key)]
    key: Option<String>,

    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let number = |title| Column::new(title).whole().right();
        let Some(key) = &self.key else {
            let keys = vault.run(&LabelKeysRequest {})?.keys;
            let columns = vec![Column::new("key"), number("artifacts"), number("values")];
            let row = |LabelKeySummary { key, artifacts, values }: &LabelKeySummary| {
                vec![
                    Cell::new(key, NAME),
                    Cell::plain(&counted(*artifacts, "artifact")),
                    Cell::plain(&counted(*values, "value")),
                ]
            };
            return list::print(&keys, self.json, columns, row, &counted(keys.len() as u64, "key"));
        };
        let request = LabelValuesRequest { key: key.clone(), prefix: String::new(), limit: None };
        let values = vault.run(&request)?.values;
        if values.is_empty() {
            return Err(Failure::No(format!(
                "no artifact has a label {key}; \"runvault label list\" lists the keys"
            )));
        }
        let row = |LabelValueSummary { value, artifacts, .. }: &LabelValueSummary| {
            vec![Cell::new(&format!("{key}={value}"), NAME), Cell::plain(&counted(*artifacts, "artifact"))]
        };
        let columns = vec![Column::new("label"), number("artifacts")];
        list::print(&values, self.json, columns, row, &counted(values.len() as u64, "value"))
    }
}
