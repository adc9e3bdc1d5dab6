//! `runvault search`

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::Args as ClapArgs;
use runvault::artifact::{Field, Kind};
use runvault::vault::search::{
    FieldMatch, SearchAnswer, SearchError, SearchExpression, SearchRequest, WIDTH,
};
use runvault::{Vault, formats};

use super::index;
use crate::cli::args::completing::CandidateSource;
use crate::cli::args::help;
use crate::cli::args::inputs::kind;
use crate::cli::args::vault::VaultArgs;
use crate::cli::commands::find::conditions::FindConditionArgs;
use crate::cli::hints;
use crate::cli::output::exit::{CommandError, Status};
use crate::cli::output::hits::{ArtifactListItem, ArtifactListPrinter};
use crate::cli::output::stdout::{self, FAINT, counted};
use crate::cli::output::table::{BELOW, TextCell};
use crate::cli::output::{json, terminal};

/// Style of matches.
const MATCH: Style = AnsiColor::Red.on_default().bold();

/// Search the text of artifacts
///
/// Searches the responses of sessions; the prompts, responses, tool calls, outputs and step names of runs and traces;
/// the refs and effects of contracts; and the files of packs. All words must be in one passage, in any order; case
/// and accents are ignored. Quote a phrase; word* matches any word with that prefix, and OR separates alternatives.
/// All other characters are plain text. Text in Chinese, Japanese, Korean and Thai is also found within words. The first search
/// builds an index, which "index drop" removes, and further searches keep it up to date.
#[derive(ClapArgs)]
#[command(mut_args(help::rarely(&["has-error", "label", "run-id", "tool"])))]
pub(crate) struct Args {
    /// The words to search for
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,

    /// Search only these fields: response, prompt, tool, output, step, contract, pack
    #[arg(long = "in", value_name = "FIELD", value_delimiter = ',', value_parser = field, add = CandidateSource::Fields.completer())]
    fields: Vec<Field>,
    /// Only artifacts of this kind
    #[arg(long, value_name = "KIND", value_parser = kind, add = CandidateSource::Kinds.completer())]
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
    conditions: FindConditionArgs,
}

fn field(name: &str) -> Result<Field, String> {
    formats::fields().into_iter().find(|field| field.name() == name).ok_or_else(|| {
        let names: Vec<&str> = fields().collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Returns the names of the searchable fields.
fn fields() -> impl Iterator<Item = &'static str> {
    formats::fields().into_iter().map(Field::name)
}

impl From<SearchError> for CommandError {
    fn from(error: SearchError) -> Self {
        let message = hints::with_hint(&error);
        match error {
            SearchError::NoIndex | SearchError::StaleIndex => Self::No(message),
            SearchError::Words(_) | SearchError::NoSuchField(_) => Self::Usage(message),
            SearchError::Differs { .. } | SearchError::Store(_) => Self::CouldNotRun(message),
        }
    }
}

impl Args {
    pub(crate) fn run(&self, vault: &VaultArgs) -> Result<Status, CommandError> {
        let vault = vault.open()?;
        // Invalid words are reported even if there is no index.
        let text = self.text.join(" ");
        text.parse::<SearchExpression>().map_err(|error| CommandError::Usage(format!("{error}")))?;
        index::ensure_index(&vault)?;
        let request = self.request(&vault, text)?;
        let answer = vault.run(&request)?;
        if self.json {
            let mut out = io::BufWriter::new(stdout::raw());
            answer.hits.iter().try_for_each(|hit| json::line(&mut out, hit))?;
            out.flush()?;
        } else {
            self.print(&answer)?;
            if answer.hits.is_empty() {
                self.conditions.note_near(&vault, &request.filter)?;
            }
        }
        Ok(if answer.hits.is_empty() { Status::No } else { Status::Done })
    }

    fn request(&self, vault: &Vault, words: String) -> Result<SearchRequest, CommandError> {
        let width = if self.json { WIDTH } else { width() };
        Ok(SearchRequest {
            words,
            fields: self.fields.iter().map(|field| field.name().to_owned()).collect(),
            filter: self.conditions.filter(vault, self.kind.map(Kind::name))?,
            every_passage: self.all,
            limit: self.limit as u64,
            width: u32::try_from(width).unwrap_or(u32::MAX),
            details: ArtifactListPrinter::new(self.conditions.by).details(),
        })
    }

    fn print(&self, SearchAnswer { hits, is_more }: &SearchAnswer) -> Result<(), CommandError> {
        let mut out = io::BufWriter::new(stdout::text());
        let mut list = ArtifactListPrinter::new(self.conditions.by);
        // Consecutive passages of one artifact share its line.
        for hits in hits.chunk_by(|one, other| one.artifact.core_hash == other.artifact.core_hash) {
            let Some(FieldMatch { artifact, details, .. }) = hits.first() else { continue };
            let below = hits.iter().flat_map(|hit| [place_cell(hit), passage_cell(hit)]).collect();
            list.add(&mut out, ArtifactListItem { artifact, details, matches: &[], below })?;
        }
        list.finish(&mut out)?;
        out.flush()?;
        let things = if self.all { "passage" } else { "artifact" };
        let is_ranked = hits.iter().any(|hit| hit.score != 0.0);
        let cut = match (*is_more, is_ranked) {
            (false, _) => "",
            (true, true) => " (the best; --limit lists more)",
            (true, false) => " (the newest, not ranked; --limit lists more)",
        };
        stdout::note(&format!("{}{cut}", counted(hits.len() as u64, things)));
        Ok(())
    }
}

fn place_cell(hit: &FieldMatch) -> TextCell {
    let more = match hit.more {
        0 => String::new(),
        1 => "and 1 more place".to_owned(),
        more => format!("and {more} more places"),
    };
    TextCell::plain(&format!("{} ({})", hit.place, hit.field)).and(&TextCell::new(&more, FAINT))
}

/// Returns the number of columns of a passage that fit on a line.
fn width() -> usize {
    // One column is reserved for each truncation mark.
    terminal::width().map_or(WIDTH, |columns| columns.saturating_sub(BELOW + 2).clamp(20, WIDTH))
}

/// Formats a passage on one line, with its matches highlighted.
fn passage_cell(hit: &FieldMatch) -> TextCell {
    let mark = |is_cut: bool| TextCell::plain(if is_cut { "…" } else { "" });
    let mut cell = mark(hit.cut_before);
    let mut piece = String::new();
    let mut was_space = true;
    for (at, character) in hit.text.chars().enumerate() {
        if hit.highlights.iter().any(|[start, _]| *start == at) {
            cell = cell.with(&TextCell::plain(&std::mem::take(&mut piece)));
        }
        let is_space = character.is_whitespace();
        if !is_space {
            piece.push(character);
        } else if !was_space {
            piece.push(' ');
        }
        was_space = is_space;
        if hit.highlights.iter().any(|[_, end]| *end == at + 1) {
            cell = cell.with(&TextCell::new(&std::mem::take(&mut piece), MATCH));
        }
    }
    cell.with(&TextCell::plain(piece.trim_end())).with(&mark(hit.cut_after))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use runvault::digest::{CaptureHash, CoreHash, Digest};
    use runvault::vault::api::{ArtifactSummary, PlaceSummary, Timestamp};
    use runvault::vault::details::ArtifactDetails;

    use super::*;
    use crate::cli::output::table::{TextColumn, TextTable};

    #[test]
    fn a_passage_is_one_harmless_line_with_its_matches_set_off() {
        let digest = Digest::from_content(b"");
        let time = Timestamp(DateTime::UNIX_EPOCH);
        let hit = FieldMatch {
            artifact: ArtifactSummary {
                core_hash: CoreHash(digest),
                kind: "trace".to_owned(),
                added_at: time,
                seen_at: time,
            },
            details: ArtifactDetails::default(),
            capture_hash: CaptureHash(digest),
            field: "output".to_owned(),
            place: PlaceSummary::Pointer { pointer: "/a".to_owned() },
            score: 1.0,
            more: 0,
            text: " a\u{1b}[2J\n\n  match\tand \u{202e}another ".to_owned(),
            highlights: vec![[10, 15], [20, 28]],
            cut_before: true,
            cut_after: false,
        };
        let mut table = TextTable::new(vec![TextColumn::new("passage")]).for_width(None);
        table.push(vec![passage_cell(&hit)]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let (on, off) = (MATCH.render(), MATCH.render_reset());
        let expected = format!("…a\\u{{1b}}[2J {on}match{off} and {on}\\u{{202e}}another{off}\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
