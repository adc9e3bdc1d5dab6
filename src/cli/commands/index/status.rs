//! `runvault index status`

use anstyle::Style;
use clap::Args as ClapArgs;
use runvault::vault::search::{SearchIndexAnswer, SearchIndexRequest};

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

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let index = vault.open()?.run(&SearchIndexRequest {})?;
        let status = if index.current.is_some() { Status::Done } else { Status::No };
        if self.json {
            json::line(&mut stdout::raw(), &index)?;
            return Ok(status);
        }
        let SearchIndexAnswer { current: Some(is_current), waiting: Some(waiting), bytes } = index else {
            stdout::note("there is no search index; \"runvault index build\" builds one");
            return Ok(status);
        };
        let mut fields = Fields::new(0);
        let state = match waiting {
            _ if !is_current => "of another version of runvault; the next search rebuilds it".to_owned(),
            0 => "up to date".to_owned(),
            waiting => format!("{} not indexed yet; the next search adds them", counted(waiting, "capture")),
        };
        fields.push("search index", state, Style::new());
        fields.push("size", stdout::size(bytes), Style::new());
        fields.write(&mut stdout::text())?;
        Ok(status)
    }
}
