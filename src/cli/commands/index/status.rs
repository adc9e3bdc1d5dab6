//! `runvault index status`

use anstyle::Style;
use clap::Args as ClapArgs;
use serde::Serialize;

use crate::cli::args::vault::VaultArgs;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::fields::Fields;
use crate::cli::output::json;
use crate::cli::output::stdout::{self, counted};

/// Show the state of the search index
///
/// The exit status is 1 if there is none.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonIndex {
    /// Whether its version is that of this program; `None` if there is no index.
    current: Option<bool>,
    /// Number of captures that are not indexed yet.
    waiting: Option<u64>,
    bytes: u64,
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let (index, bytes) = vault.open()?.search_index_with_size()?;
        let status = if index.is_some() { Status::Done } else { Status::No };
        if self.json {
            let current = index.as_ref().map(|index| index.is_current);
            let waiting = index.as_ref().map(|index| index.waiting);
            json::line(&mut stdout::raw(), &JsonIndex { current, waiting, bytes })?;
            return Ok(status);
        }
        let Some(index) = index else {
            stdout::note("there is no search index; \"runvault index build\" builds one");
            return Ok(status);
        };
        let mut fields = Fields::new(0);
        let state = match index.waiting {
            _ if !index.is_current => {
                "of another version of runvault; the next search rebuilds it".to_owned()
            }
            0 => "up to date".to_owned(),
            waiting => format!("{} not indexed yet; the next search adds them", counted(waiting, "capture")),
        };
        fields.push("search index", state, Style::new());
        fields.push("size", stdout::size(bytes), Style::new());
        fields.write(&mut stdout::text())?;
        Ok(status)
    }
}
