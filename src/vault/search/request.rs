//! Searches the text of artifacts.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::indexer::capture_passages;
use super::{PassageGrouping, SearchError, Snippet, WIDTH};
use crate::artifact::{Field, Passage};
use crate::digest::{CaptureHash, CoreHash};
use crate::formats;
use crate::storage::{
    ArtifactRecord, Filter, FoundPassage, Order, Page, Snapshot, StorageError, Term, Terms, TimeBasis,
};
use crate::vault::Vault;
use crate::vault::api::{ArtifactSummary, PlaceSummary};
use crate::vault::details::{ArtifactDetails, Detail};
use crate::vault::find::ArtifactFilter;

/// A request for passages of text. What is not in the index yet is not searched: [`Vault::catch_up_search`] adds it.
///
/// ```
/// # use runvault::{Vault, intake::ExamineOptions};
/// use runvault::vault::search::{BuildSearchIndexRequest, SearchRequest};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
/// # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
/// vault.run(&BuildSearchIndexRequest {})?;
/// let request = SearchRequest { words: "export CSV".to_owned(), ..SearchRequest::default() };
/// let hits = vault.run(&request)?.hits;
/// assert_eq!(hits[0].place.to_string(), "interaction 0");
/// assert_eq!(hits[0].text, "The export to CSV stops after 1,000 rows since the last update.");
/// assert_eq!(hits[0].highlights, [[4, 10], [14, 17]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchRequest {
    /// The words: all must be in one passage. A phrase is in quotation marks, `word*` is any word that begins so, and
    /// `OR` separates alternatives.
    pub words: String,
    /// The names of the fields to search, such as `response`; all if empty.
    pub fields: Vec<String>,
    /// The artifacts to search.
    pub filter: ArtifactFilter,
    /// Whether to return every passage, and not only the best one of each artifact.
    pub every_passage: bool,
    /// Maximum number of hits.
    pub limit: u64,
    /// Approximate number of columns of the text of a hit: as many characters, or half as many wide ones.
    pub width: u32,
    /// What to return of each artifact besides its times.
    pub details: Vec<Detail>,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            words: String::new(),
            fields: Vec::new(),
            filter: ArtifactFilter::default(),
            every_passage: false,
            limit: 20,
            width: u32::try_from(WIDTH).unwrap_or(u32::MAX),
            details: Vec::new(),
        }
    }
}

/// Matching passages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchAnswer {
    /// The passages, best first. If too many match to rank them, the newest are first, and all scores are 0.
    pub hits: Vec<FieldMatch>,
    /// Whether there are more than the limit.
    pub is_more: bool,
}

/// A matching passage of a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FieldMatch {
    /// The artifact.
    #[serde(flatten)]
    pub artifact: ArtifactSummary,
    /// Its creation time and the requested details.
    #[serde(flatten)]
    pub details: ArtifactDetails,
    /// The capture that the passage was read from.
    pub capture_hash: CaptureHash,
    /// The name of the field.
    pub field: String,
    /// The location of the passage.
    #[serde(flatten)]
    pub place: PlaceSummary,
    /// The relevance; higher is better. Scores of different requests cannot be compared.
    pub score: f64,
    /// Number of further matching passages of the artifact; 0 if all are listed.
    pub more: u64,
    /// The matching part of the text.
    pub text: String,
    /// The matches in the text: first character and end of each, counted in characters.
    pub highlights: Vec<[usize; 2]>,
    /// Whether the passage continues before the text.
    pub cut_before: bool,
    /// Whether the passage continues after the text.
    pub cut_after: bool,
}

impl SearchRequest {
    /// Runs the operation.
    ///
    /// # Errors
    /// Returns [`SearchError::NoIndex`] if there is no index, [`SearchError::StaleIndex`] if it has another version than
    /// this program, [`SearchError::Words`] and [`SearchError::NoSuchField`]
    /// if the request is invalid, [`SearchError::Differs`] if the index does not match a document, and
    /// [`SearchError::Store`] if the vault cannot be read.
    pub fn run(&self, vault: &Vault) -> Result<SearchAnswer, SearchError> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let snapshot = vault.full_text()?.snapshot()?;
        let SearchExpression { alternatives } = self.words.parse()?;
        let fields = self.fields.iter().map(|name| field_named(name)).collect::<Result<_, _>>()?;
        let terms = Terms { alternatives, fields };
        // One extra hit shows whether there are more.
        let mut found = self.found(&*snapshot, &terms, limit.saturating_add(1))?;
        let is_more = found.len() > limit;
        found.truncate(limit);
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        let mut hits = FieldMatchReader { snapshot: &*snapshot, terms, width }.hits(found)?;
        // An artifact can have several hits.
        let cores: BTreeSet<CoreHash> = hits.iter().map(|hit| hit.artifact.core_hash).collect();
        let cores: Vec<CoreHash> = cores.into_iter().collect();
        let details = ArtifactDetails::read(&*snapshot, &cores, &self.details)?;
        let details: BTreeMap<CoreHash, ArtifactDetails> = cores.into_iter().zip(details).collect();
        for hit in &mut hits {
            hit.details = details.get(&hit.artifact.core_hash).cloned().unwrap_or_default();
        }
        Ok(SearchAnswer { hits, is_more })
    }

    /// Returns the passages of the index that match, best first.
    fn found(
        &self,
        snapshot: &dyn Snapshot,
        terms: &Terms,
        limit: usize,
    ) -> Result<Vec<FoundPassage>, SearchError> {
        let index = snapshot.full_text()?;
        if !index.search_index()?.ok_or(SearchError::NoIndex)?.is_current {
            return Err(SearchError::StaleIndex);
        }
        let among = || {
            let order = Order::Newest(TimeBasis::LastSeen);
            let found = snapshot.find(&Filter::from(&self.filter), order, &Page::all())?.items;
            Ok::<_, StorageError>(found.into_iter().map(|hit| hit.artifact.core).collect::<Vec<_>>())
        };
        let among = (!self.filter.is_any()).then(among).transpose()?;
        let grouping = if self.every_passage { PassageGrouping::Passage } else { PassageGrouping::Artifact };
        Ok(index.search(terms, among.as_deref(), grouping, limit)?)
    }
}

/// A reader of the texts of passages.
struct FieldMatchReader<'s> {
    snapshot: &'s dyn Snapshot,
    terms: Terms,
    width: usize,
}

impl FieldMatchReader<'_> {
    /// Returns the hits in the order of `found`, without details. Each capture is read once, however many hits it has.
    fn hits(&self, found: Vec<FoundPassage>) -> Result<Vec<FieldMatch>, SearchError> {
        let mut by_capture: Vec<(usize, FoundPassage)> = found.into_iter().enumerate().collect();
        by_capture.sort_by_key(|(_, found)| (found.capture, found.artifact));
        let mut hits = Vec::new();
        // Artifacts of different kinds may have captures with the same hash.
        let is_same = |one: &FoundPassage, other: &FoundPassage| {
            (one.capture, one.artifact) == (other.capture, other.artifact)
        };
        for group in by_capture.chunk_by(|(_, one), (_, other)| is_same(one, other)) {
            let Some((_, first)) = group.first() else { continue };
            let artifact = self.snapshot.expect_artifact(first.artifact)?;
            let passages = capture_passages(self.snapshot, &artifact, first.capture)?;
            for (place, found) in group {
                let differs = || SearchError::Differs { core: artifact.core };
                let passage = passages.get(found.number).ok_or_else(differs)?;
                let hit = self.hit(found, &artifact, passage);
                hits.push((*place, hit.ok_or_else(differs)?));
            }
        }
        hits.sort_unstable_by_key(|(place, _)| *place);
        Ok(hits.into_iter().map(|(_, hit)| hit).collect())
    }

    /// Returns a hit if the passage matches its index entry.
    fn hit(&self, found: &FoundPassage, artifact: &ArtifactRecord, passage: &Passage) -> Option<FieldMatch> {
        let matches = self.terms.matching_ranges(passage.field, &passage.text)?;
        let Snippet { text, highlights, is_cut_before, is_cut_after } =
            Snippet::new(&passage.text, &matches, self.width);
        Some(FieldMatch {
            artifact: artifact.into(),
            details: ArtifactDetails::default(),
            capture_hash: found.capture,
            field: passage.field.name().to_owned(),
            place: PlaceSummary::new(passage.unit, &passage.place),
            // Further digits depend on the platform.
            score: (found.score * 1e9).round() / 1e9,
            more: found.more,
            text,
            highlights: highlights.iter().map(|range| [range.start, range.end]).collect(),
            cut_before: is_cut_before,
            cut_after: is_cut_after,
        })
    }
}

fn field_named(name: &str) -> Result<Field, SearchError> {
    let field = formats::fields().into_iter().find(|field| field.name() == name);
    field.ok_or_else(|| SearchError::NoSuchField(name.to_owned()))
}

/// Maximum number of words and phrases of a query.
pub const MAX_TERMS: usize = 100;

/// A parsed query: words that must all be in one passage, `"phrases"`, `beginnings*`, and `OR` between alternatives.
/// Everything else is text: the only invalid query is one without words.
///
/// ```
/// use runvault::vault::search::SearchExpression;
///
/// let words: SearchExpression = r#"refund* "export to CSV" OR AND NOT (:"#.parse()?;
/// assert_eq!(words.alternatives().len(), 2);
/// assert!("???".parse::<SearchExpression>().is_err());
/// # Ok::<(), runvault::vault::search::SearchExpressionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchExpression {
    alternatives: Vec<Vec<Term>>,
}

/// The reason that a query is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchExpressionError {
    /// It contains no word.
    #[error("there is no word to search for: only letters and digits are searched")]
    NoWords,
    /// It contains too many words.
    #[error("too many search terms: at most {MAX_TERMS} words and phrases")]
    TooMany,
}

impl SearchExpression {
    /// Returns the alternatives: a passage must match all terms of one of them.
    #[must_use]
    pub fn alternatives(&self) -> &[Vec<Term>] {
        &self.alternatives
    }
}

impl FromStr for SearchExpression {
    type Err = SearchExpressionError;

    fn from_str(text: &str) -> Result<Self, SearchExpressionError> {
        let mut alternatives = vec![Vec::new()];
        let mut count = 0;
        for piece in pieces(text) {
            let term = match piece {
                SearchToken::Word("OR") => {
                    alternatives.push(Vec::new());
                    continue;
                }
                SearchToken::Word(word) => term(word.trim_end_matches('*'), word.ends_with('*')),
                SearchToken::Phrase(phrase, is_prefix) => term(phrase, is_prefix),
            };
            let Some(term) = term else { continue };
            count += 1;
            if count > MAX_TERMS {
                return Err(SearchExpressionError::TooMany);
            }
            if let Some(alternative) = alternatives.last_mut() {
                alternative.push(term);
            }
        }
        alternatives.retain(|terms| !terms.is_empty());
        if alternatives.is_empty() { Err(SearchExpressionError::NoWords) } else { Ok(Self { alternatives }) }
    }
}

/// Returns `None` for text without letters and digits, which matches no passage and does not exclude any.
fn term(text: &str, is_prefix: bool) -> Option<Term> {
    text.contains(char::is_alphanumeric).then(|| Term { text: text.to_owned(), is_prefix })
}

#[derive(Debug, PartialEq)]
enum SearchToken<'t> {
    Word(&'t str),
    /// The text between quotation marks, and whether an asterisk follows. The last phrase need not be closed.
    Phrase(&'t str, bool),
}

fn pieces(text: &str) -> Vec<SearchToken<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (phrase, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            let unstarred = after.strip_prefix('*');
            pieces.push(SearchToken::Phrase(phrase, unstarred.is_some()));
            rest = unstarred.unwrap_or(after).trim_start();
        } else {
            let end = rest.find(|character: char| character.is_whitespace() || character == '"');
            let (word, after) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, ""));
            pieces.push(SearchToken::Word(word));
            rest = after.trim_start();
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_terms(text: &str) -> Vec<Vec<String>> {
        let words: SearchExpression = text.parse().unwrap();
        let term_text = |term: &Term| format!("{}{}", term.text, if term.is_prefix { "*" } else { "" });
        words.alternatives.iter().map(|terms| terms.iter().map(term_text).collect()).collect()
    }

    #[test]
    fn words_phrases_and_beginnings_are_told_apart() {
        assert_eq!(parsed_terms("refund policy"), [["refund", "policy"]]);
        assert_eq!(
            parsed_terms("refund* \"to the\tcard\" \"of or\"*"),
            [["refund*", "to the\tcard", "of or*"]]
        );
        assert_eq!(parsed_terms("a b OR c"), [vec!["a", "b"], vec!["c"]]);
        assert_eq!(parsed_terms("OR a OR OR \"OR\" OR"), [vec!["a"], vec!["OR"]]);
        assert_eq!(
            parsed_terms("don't (a) NOT b:c -d * ?? ^e"),
            [["don't", "(a)", "NOT", "b:c", "-d", "^e"]]
        );
        assert_eq!(parsed_terms("a\"b c"), [["a", "b c"]]);
        assert_eq!(parsed_terms("or and"), [["or", "and"]]);
    }

    #[test]
    fn something_must_be_looked_for_and_not_too_much() {
        for nothing in ["", " \t", "?", "\"\"", "* ** OR", "\"-\" OR 🎉"] {
            assert_eq!(nothing.parse::<SearchExpression>(), Err(SearchExpressionError::NoWords), "{nothing}");
        }
        assert!("a ".repeat(MAX_TERMS).parse::<SearchExpression>().is_ok());
        assert_eq!(
            "a ".repeat(MAX_TERMS + 1).parse::<SearchExpression>(),
            Err(SearchExpressionError::TooMany)
        );
    }
}
