//! The list of the responses in a recording.

use std::io::{self, Write};

use anstyle::Style;
use runvault::artifact::{Arguments, Exchange};
use runvault::digest::Digest;
use runvault::vault::replay::Player;
use serde::Serialize;
use serde_json::value::RawValue;

use super::protocol::OfRun;
use crate::cli::output::escape::{brief, escaped};
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::fit::{self, Trail};
use crate::cli::output::json;
use crate::cli::output::stdout::{self, FAINT, counted};

#[derive(Serialize)]
struct Line<'l> {
    index: usize,
    #[serde(flatten)]
    of_run: OfRun<'l>,
    prompt_hashes: &'l [Digest],
    /// The arguments as JSON, in the form in which calls are compared.
    arguments: Option<&'l RawValue>,
    arguments_hash: Option<Digest>,
    response: &'l str,
    is_error: bool,
}

impl<'l> Line<'l> {
    fn new(exchange: &'l Exchange) -> Self {
        let Exchange { index, prompts, arguments, response, is_error, .. } = exchange;
        Self {
            index: *index,
            of_run: OfRun::new(exchange),
            prompt_hashes: prompts,
            arguments: arguments
                .as_ref()
                .and_then(|arguments| serde_json::from_str(arguments.as_json()).ok()),
            arguments_hash: arguments.as_ref().map(Arguments::digest),
            response,
            is_error: *is_error,
        }
    }
}

/// Prints the recorded responses in recorded order. The status says whether there are any.
pub(super) fn list(player: &Player, json: bool) -> Result<Status, Failure> {
    let mut out = io::BufWriter::new(stdout::text());
    for exchange in player.exchanges() {
        if json {
            json::line(&mut out, &Line::new(exchange))?;
        } else {
            print(&mut out, player.unit(), exchange)?;
        }
    }
    out.flush()?;
    let count = player.exchanges().len();
    if !json {
        stdout::note(&counted(count as u64, "response"));
    }
    Ok(if count == 0 { Status::No } else { Status::Done })
}

/// Maximum number of characters shown of a response.
const SHOWN: usize = 200;

/// The minimum width of a response next to its location; otherwise it is put below,
const RESPONSE_WIDTH: usize = 30;

/// with this indent.
const BELOW: usize = 4;

fn print(out: &mut dyn Write, unit: &str, exchange: &Exchange) -> io::Result<()> {
    let mut responder = exchange.responder.name().to_owned();
    if let Some(tool) = &exchange.tool {
        responder = format!("{responder} {}", brief(tool));
    }
    if let Some(arguments) = &exchange.arguments {
        responder = format!("{responder} {} ->", brief(arguments.as_json()));
    }
    if exchange.is_error {
        responder += " error";
    }
    let response = escaped(&exchange.response).up_to(SHOWN);
    let lead = format!("{unit} {} {FAINT}{responder}{FAINT:#}", exchange.index);
    write!(out, "{lead}")?;
    Trail { taken: fit::width(&lead), below: BELOW, least: RESPONSE_WIDTH }.write(
        out,
        &response.to_string(),
        Style::new(),
    )
}
