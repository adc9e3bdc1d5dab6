//! The list of the responses in a recording.

use std::io::{self, Write};

use anstyle::Style;
use runvault::Vault;
use runvault::display::{brief, escaped};
use runvault::vault::replay::{RecordedResponse, ResponsesRequest};

use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::fit::{self, TrailingLayout};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, counted};

/// Prints the recorded responses in recorded order. The status says whether there are any.
pub(super) fn list(vault: &Vault, request: &ResponsesRequest, json: bool) -> Result<Status, CommandError> {
    let mut out = io::BufWriter::new(stdout::text());
    let answer = request.visit::<CommandError>(vault, &mut |unit, response| {
        Ok(if json { json::line(&mut out, &response) } else { print(&mut out, unit, &response) }?)
    })?;
    out.flush()?;
    if !json {
        stdout::note(&counted(answer.count, "response"));
    }
    Ok(if answer.count == 0 { Status::No } else { Status::Done })
}

/// Maximum number of characters shown of a response.
const SHOWN: usize = 200;

/// The minimum width of a response next to its location; otherwise it is put below,
const RESPONSE_WIDTH: usize = 30;

/// with this indent.
const BELOW: usize = 4;

fn print(out: &mut dyn Write, unit: &str, exchange: &RecordedResponse) -> io::Result<()> {
    let mut responder = exchange.responder.clone();
    if let Some(tool) = &exchange.tool {
        responder = format!("{responder} {}", brief(tool));
    }
    if let Some(arguments) = &exchange.arguments {
        responder = format!("{responder} {} ->", brief(arguments.as_str()));
    }
    if exchange.is_error {
        responder += " error";
    }
    let response = escaped(&exchange.response).up_to(SHOWN);
    let lead = format!("{unit} {} {FAINT}{responder}{FAINT:#}", exchange.index);
    write!(out, "{lead}")?;
    TrailingLayout { used: fit::width(&lead), below: BELOW, least: RESPONSE_WIDTH }.write(
        out,
        &response.to_string(),
        Style::new(),
    )
}
