//! `runvault search`

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::Args as ClapArgs;
use runvault::Vault;
use runvault::artifact::{Field, Kind};
use runvault::digest::{CaptureHash, CoreHash};
use runvault::formats;
use runvault::storage::Filter;
use runvault::vault::query::Query;
use runvault::vault::search::{Grouping, SearchError, SearchHit, SearchQuery, Snippet, WIDTH, Words};
use serde::Serialize;

use crate::cli::args::kind::kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::find::Conditions;
use crate::cli::commands::index::build;
use crate::cli::hints;
use crate::cli::output::exit::{Failure, Status};
use crate::cli::output::hits::{self, Listed};
use crate::cli::output::json;
use crate::cli::output::place::{self, JsonPlace};
use crate::cli::output::stdout::{self, FAINT, counted};
use crate::cli::output::table::{BELOW, Cell};
use crate::cli::output::time;

/// Style of matches.
const MATCH: Style = AnsiColor::Red.on_default().bold();

/// Search the text of artifacts.
///
/// Searched are the responses of sessions; the prompts, responses, tool calls, outputs and step names of runs and traces;
/// the refs and effects of contracts; and the files of packs. All words must be in one passage, in any order; upper case
/// and accents do not count. "a phrase" stands in quotation marks, word* is any word that begins so, and OR separates
/// alternatives. Everything else is text. Search needs an
/// index: "index build" builds it, and searching keeps it up to date.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The words to search for
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,

    /// Search only these fields: response, prompt, tool, output, step, contract, pack
    #[arg(long = "in", value_name = "FIELD", value_delimiter = ',', value_parser = field)]
    fields: Vec<Field>,
    /// Only artifacts of this kind
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// List every matching passage, not only the best one of each artifact
    #[arg(long)]
    all: bool,
    /// Print one line of JSON for each hit
    #[arg(long)]
    json: bool,

    #[command(flatten, next_help_heading = "Only artifacts that match")]
    conditions: Conditions,
}

fn field(name: &str) -> Result<Field, String> {
    formats::fields().into_iter().find(|field| field.name() == name).ok_or_else(|| {
        let names: Vec<&str> = fields().collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Returns the names of the searchable fields.
pub(crate) fn fields() -> impl Iterator<Item = &'static str> {
    formats::fields().into_iter().map(Field::name)
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let message = hints::with_hint(&error);
        match error {
            SearchError::NoIndex => Self::No(message),
            SearchError::Differs { .. } | SearchError::Store(_) => Self::CouldNotRun(message),
        }
    }
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, Failure> {
        let vault = vault.open()?;
        let words: Words = self.text.join(" ").parse().map_err(|error| Failure::Usage(format!("{error}")))?;
        expect_index(&vault)?;
        build::sync_index(&vault)?;
        let mut hits = vault.search_as_is(&self.query(&vault, words)?)?;
        let are_more = hits.len() > self.limit;
        hits.truncate(self.limit);
        if self.json {
            let mut out = io::BufWriter::new(stdout::raw());
            hits.iter().try_for_each(|hit| json::line(&mut out, &Line::new(hit)))?;
            out.flush()?;
        } else {
            self.print(&vault, &hits, are_more)?;
        }
        Ok(if hits.is_empty() { Status::No } else { Status::Done })
    }

    fn query(&self, vault: &Vault, words: Words) -> Result<SearchQuery, Failure> {
        let among = self.conditions.query(vault, self.kind.map(Kind::name))?;
        let Query { kind, filters, since, until, .. } = &among;
        let is_any = kind.is_none() && filters.is_empty() && since.is_none() && until.is_none();
        let grouping = if self.all { Grouping::Passage } else { Grouping::Artifact };
        Ok(SearchQuery {
            fields: self.fields.clone(),
            among: (!is_any).then_some(among),
            grouping,
            // One extra result shows whether there are more.
            limit: self.limit.saturating_add(1),
            width: if self.json { WIDTH } else { width() },
            ..SearchQuery::new(words)
        })
    }

    fn print(&self, vault: &Vault, hits: &[SearchHit], are_more: bool) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(stdout::text());
        // Consecutive passages of one artifact share its line.
        let listed =
            hits.chunk_by(|one, other| one.artifact.core == other.artifact.core).filter_map(|hits| {
                let artifact = &hits.first()?.artifact;
                let below =
                    hits.iter().flat_map(|hit| [place_cell(hit), passage_cell(&hit.snippet)]).collect();
                Some(Listed { artifact, matches: &[], below })
            });
        hits::list(&mut out, &*vault.snapshot()?, listed, self.conditions.by.basis())?;
        out.flush()?;
        let things = if self.all { "passage" } else { "artifact" };
        let cut = if are_more { " (the best; --limit lists more)" } else { "" };
        stdout::note(&format!("{}{cut}", counted(hits.len() as u64, things)));
        Ok(())
    }
}

fn place_cell(hit: &SearchHit) -> Cell {
    let place = place::text(hit.unit, &hit.place);
    let more = match hit.more {
        0 => String::new(),
        1 => "and 1 more place".to_owned(),
        more => format!("and {more} more places"),
    };
    Cell::plain(&format!("{place} ({})", hit.field.name())).and(&Cell::new(&more, FAINT))
}

/// Returns the number of characters of a passage that fit on a line.
fn width() -> usize {
    // One column is reserved for each truncation mark.
    stdout::width().map_or(WIDTH, |columns| columns.saturating_sub(BELOW + 2).clamp(20, WIDTH))
}

/// Formats a passage on one line, with its matches highlighted.
fn passage_cell(snippet: &Snippet) -> Cell {
    let mark = |is_cut: bool| Cell::plain(if is_cut { "…" } else { "" });
    let mut cell = mark(snippet.is_cut_before);
    let mut piece = String::new();
    let mut was_space = true;
    for (at, character) in snippet.text.chars().enumerate() {
        if snippet.highlights.iter().any(|range| range.start == at) {
            cell = cell.with(&Cell::plain(&std::mem::take(&mut piece)));
        }
        let is_space = character.is_whitespace();
        if !is_space {
            piece.push(character);
        } else if !was_space {
            piece.push(' ');
        }
        was_space = is_space;
        if snippet.highlights.iter().any(|range| range.end == at + 1) {
            cell = cell.with(&Cell::new(&std::mem::take(&mut piece), MATCH));
        }
    }
    cell.with(&Cell::plain(piece.trim_end())).with(&mark(snippet.is_cut_after))
}

/// Returns an error with a hint if there is no index.
fn expect_index(vault: &Vault) -> Result<(), Failure> {
    if vault.search_index()?.is_some() {
        return Ok(());
    }
    let size = std::fs::metadata(vault.path()).map_or(0, |metadata| metadata.len());
    let artifacts = counted(vault.snapshot()?.count(&Filter::default())?, "artifact");
    Err(Failure::No(format!(
        "{} has no search index; \"runvault index build\" builds one of the {artifacts} in this file of {}",
        vault.path().display(),
        stdout::size(size)
    )))
}

#[derive(Serialize)]
struct Line<'h> {
    core_hash: CoreHash,
    kind: &'h str,
    added_at: String,
    seen_at: String,
    capture_hash: CaptureHash,
    field: &'static str,
    #[serde(flatten)]
    place: JsonPlace<'h>,
    score: f64,
    more: u64,
    text: &'h str,
    highlights: Vec<[usize; 2]>,
    cut_before: bool,
    cut_after: bool,
}

impl<'h> Line<'h> {
    fn new(hit: &'h SearchHit) -> Self {
        let Snippet { text, highlights, is_cut_before, is_cut_after } = &hit.snippet;
        Self {
            core_hash: hit.artifact.core,
            kind: &hit.artifact.kind,
            added_at: time::exact(hit.artifact.added_at),
            seen_at: time::exact(hit.artifact.seen_at),
            capture_hash: hit.capture,
            field: hit.field.name(),
            place: JsonPlace::new(hit.unit, &hit.place),
            // Further digits depend on the platform.
            score: (hit.score * 1e9).round() / 1e9,
            more: hit.more,
            text,
            highlights: highlights.iter().map(|range| [range.start, range.end]).collect(),
            cut_before: *is_cut_before,
            cut_after: *is_cut_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::table::{Column, Table};

    #[test]
    fn a_passage_is_one_harmless_line_with_its_matches_set_off() {
        let snippet = Snippet {
            text: " a\u{1b}[2J\n\n  match\tand \u{202e}another ".to_owned(),
            highlights: vec![10..15, 20..28],
            is_cut_before: true,
            is_cut_after: false,
        };
        let mut table = Table::new(vec![Column::new("passage")]).for_width(None);
        table.push(vec![passage_cell(&snippet)]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let (on, off) = (MATCH.render(), MATCH.render_reset());
        let expected = format!("…a\\u{{1b}}[2J {on}match{off} and {on}\\u{{202e}}another{off}\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
