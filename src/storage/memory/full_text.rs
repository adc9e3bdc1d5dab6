//! Full-text search that reads every indexed text for every query.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::MemoryStorage;
use super::snapshot::MemorySnapshot;
use super::state::{IndexedTexts, MemoryArtifact, MemoryCapture, MemoryState};
use crate::artifact::Field;
use crate::digest::{CaptureHash, CoreHash};
use crate::storage::Result;
use crate::storage::full_text::{self, FullTextQuery, PhraseOccurrence};
use crate::storage::interface::{
    CapturePassages, FoundPassage, FullText, FullTextSnapshot, IndexComparison, PassageGrouping,
    SearchDifferences, SearchIndex, SearchableCapture, Terms,
};

/// Returns the position of a capture in the order in which all were added.
fn position(capture: &MemoryCapture) -> i64 {
    i64::try_from(capture.addition).unwrap_or(i64::MAX)
}

impl MemoryState {
    /// Returns the captures after the position `after` up to `last`, in the order in which they were added.
    fn captures_between(&self, after: i64, last: i64, limit: u32) -> Vec<SearchableCapture> {
        let between = self.captures().filter(|(_, capture)| (after + 1..=last).contains(&position(capture)));
        let mut between: Vec<(&MemoryArtifact, &MemoryCapture)> = between.collect();
        between.sort_by_key(|(_, capture)| capture.addition);
        between.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let searchable = |(artifact, capture): (&MemoryArtifact, &MemoryCapture)| SearchableCapture {
            id: position(capture),
            capture: capture.capture,
            artifact: artifact.record(),
            first: artifact.captures.first().map(|first| first.capture).filter(|it| *it != capture.capture),
        };
        between.into_iter().map(searchable).collect()
    }

    /// Removes the texts of captures that are not in the vault any more. The position of the last capture is used again.
    pub(super) fn forget_texts(&mut self, removed: &[MemoryCapture]) {
        let last = self.captures().map(|(_, capture)| position(capture)).max().unwrap_or_default();
        if let Some(index) = &mut self.search {
            for capture in removed {
                index.captures.remove(&position(capture));
            }
            index.last = index.last.min(last);
        }
    }

    /// Adds the passages of captures that still exist. Returns false if they are not those that come next.
    fn index(&mut self, batch: &[CapturePassages]) -> bool {
        let Some(mut index) = self.search.take() else { return false };
        let next = self.captures().map(|(_, capture)| position(capture)).filter(|at| *at > index.last).min();
        let follows = |first: &CapturePassages| index.last < first.id && next.is_none_or(|it| it >= first.id);
        let is_next = batch.first().is_none_or(follows);
        for passages in batch.iter().filter(|_| is_next) {
            let stored = self.captures().find(|(_, capture)| position(capture) == passages.id);
            match stored {
                Some((artifact, capture))
                    if (artifact.core, capture.capture) == (passages.core, passages.hash) =>
                {
                    index.captures.insert(passages.id, Arc::new(passages.clone()));
                    index.last = passages.id;
                }
                // It was removed, and another capture got its number.
                Some(_) => break,
                None => {}
            }
        }
        self.search = Some(index);
        is_next
    }
}

impl MemoryStorage {
    /// Changes the index after waiting for other writers.
    fn change_index<T>(
        &self,
        busy_timeout: Duration,
        change: impl FnOnce(&mut MemoryState) -> T,
    ) -> Result<T> {
        let _turn = self.lock_to_write(busy_timeout)?;
        let mut view = self.view();
        let outcome = change(Arc::make_mut(&mut view.0));
        self.replace(view);
        Ok(outcome)
    }
}

impl FullText for MemoryStorage {
    fn begin_index(&self, busy_timeout: Duration) -> Result<()> {
        self.change_index(busy_timeout, |state| state.search = Some(IndexedTexts::default()))
    }

    fn index_passages(&self, batch: &[CapturePassages], busy_timeout: Duration) -> Result<bool> {
        self.change_index(busy_timeout, |state| state.index(batch))
    }

    fn drop_index(&self) -> Result<bool> {
        self.change_index(crate::storage::BUSY_TIMEOUT, |state| state.search.take().is_some())
    }

    fn has_index_parts(&self) -> Result<bool> {
        Ok(self.view().0.search.is_some())
    }
}

impl FullTextSnapshot for MemorySnapshot {
    fn search_index(&self) -> Result<Option<SearchIndex>> {
        let state = &self.0;
        Ok(state.search.as_ref().map(|index| {
            let waiting = state.captures().filter(|(_, capture)| position(capture) > index.last).count();
            SearchIndex { waiting: waiting as u64, is_current: true }
        }))
    }

    fn search_index_size(&self) -> Result<u64> {
        let captures = self.0.search.iter().flat_map(|index| index.captures.values());
        Ok(captures.map(|capture| capture.bytes() as u64).sum())
    }

    fn unindexed(&self, limit: u32) -> Result<Vec<SearchableCapture>> {
        let index = self.0.search.as_ref();
        Ok(index.map_or_else(Vec::new, |index| self.0.captures_between(index.last, i64::MAX, limit)))
    }

    fn indexed(&self, after: Option<&SearchableCapture>, limit: u32) -> Result<Vec<SearchableCapture>> {
        let after = after.map_or(0, |after| after.id);
        let index = self.0.search.as_ref();
        Ok(index.map_or_else(Vec::new, |index| self.0.captures_between(after, index.last, limit)))
    }

    fn search(
        &self,
        terms: &Terms,
        among: Option<&[CoreHash]>,
        grouping: PassageGrouping,
        limit: usize,
    ) -> Result<Vec<FoundPassage>> {
        let query = FullTextQuery::new(terms);
        let texts = SearchableTexts::read(&self.0, &query);
        let mut hits: Vec<RankedText<'_>> = texts.matching(&query, among).collect();
        hits.sort_by(RankedText::compare);
        if grouping == PassageGrouping::Artifact {
            hits = best_of_each(hits);
        }
        hits.truncate(limit);
        Ok(hits.iter().map(RankedText::found).collect())
    }

    fn compare_search_index(
        &self,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Box<dyn IndexComparison>>> {
        let Some(index) = &self.0.search else { return Ok(None) };
        let all = index.captures.len() as u64;
        watch(all, all);
        let comparison = MemoryIndexComparison {
            captures: index.captures.clone(),
            differences: SearchDifferences::default(),
        };
        Ok(Some(Box::new(comparison)))
    }
}

/// A text with the words that it consists of.
struct SearchableText<'s> {
    artifact: &'s MemoryArtifact,
    capture: CaptureHash,
    /// The position of the capture, and the number of the passage in it.
    place: (i64, usize),
    field: Field,
    words: Vec<String>,
}

/// All indexed texts, and in how many of them each phrase occurs.
struct SearchableTexts<'s> {
    all: Vec<SearchableText<'s>>,
    /// The weight of each phrase.
    weights: Vec<f64>,
    average_length: f64,
}

/// A matching text.
struct RankedText<'s> {
    artifact: &'s MemoryArtifact,
    capture: CaptureHash,
    place: (i64, usize),
    score: f64,
    more: u64,
}

/// The parameters of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

#[expect(clippy::cast_precision_loss, reason = "ranking is approximate")]
impl<'s> SearchableTexts<'s> {
    fn read(state: &'s MemoryState, query: &FullTextQuery) -> Self {
        let mut texts = Vec::new();
        for capture in state.search.iter().flat_map(|index| index.captures.values()) {
            let Some(artifact) = state.artifact(capture.core) else { continue };
            for (number, passage) in capture.passages.iter().enumerate() {
                let Some((field, text)) = passage else { continue };
                let words = full_text::words(text).map(|word| word.form).collect();
                let place = (capture.id, number);
                texts.push(SearchableText { artifact, capture: capture.hash, place, field: *field, words });
            }
        }
        let count = texts.len() as f64;
        let searched: Vec<&SearchableText<'_>> =
            texts.iter().filter(|text| query.has_field(text.field)).collect();
        let weight = |hits: f64| ((count - hits + 0.5) / (hits + 0.5)).ln();
        let hits = query.phrases().map(|phrase| {
            let has_phrase = |text: &&&SearchableText<'_>| phrase.occurrences(&text.words).next().is_some();
            searched.iter().filter(has_phrase).count() as f64
        });
        // A phrase that most texts have must not lower the score.
        let weights = hits.map(|hits| if weight(hits) > 0.0 { weight(hits) } else { 1e-6 }).collect();
        let length: usize = texts.iter().map(|text| text.words.len()).sum();
        Self { weights, average_length: length as f64 / count, all: texts }
    }

    fn matching<'q>(
        &'q self,
        query: &'q FullTextQuery,
        among: Option<&'q [CoreHash]>,
    ) -> impl Iterator<Item = RankedText<'s>> + 'q {
        let is_searched = move |text: &&SearchableText<'s>| {
            query.has_field(text.field) && among.is_none_or(|among| among.contains(&text.artifact.core))
        };
        self.all.iter().filter(is_searched).filter_map(|text| {
            let occurrences = query.occurrences(&text.words)?;
            let score = self.score(text, &occurrences);
            let SearchableText { artifact, capture, place, .. } = *text;
            Some(RankedText { artifact, capture, place, score, more: 0 })
        })
    }

    fn score(&self, text: &SearchableText<'_>, occurrences: &[PhraseOccurrence]) -> f64 {
        let length = K1 * (1.0 - B + B * text.words.len() as f64 / self.average_length);
        let part = |(phrase, weight): (usize, &f64)| {
            let times = occurrences.iter().filter(|occurrence| occurrence.phrase == phrase).count() as f64;
            weight * (times * (K1 + 1.0) / (times + length))
        };
        self.weights.iter().enumerate().map(part).sum()
    }
}

impl RankedText<'_> {
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score
            .then_with(|| other.artifact.arrival.cmp(&self.artifact.arrival))
            .then_with(|| self.artifact.core.cmp(&other.artifact.core))
            .then_with(|| self.place.cmp(&other.place))
    }

    fn found(&self) -> FoundPassage {
        FoundPassage {
            artifact: self.artifact.core,
            capture: self.capture,
            number: self.place.1,
            score: self.score,
            more: self.more,
        }
    }
}

/// Returns the first text of each artifact with the number of the others.
fn best_of_each(ranked: Vec<RankedText<'_>>) -> Vec<RankedText<'_>> {
    let mut best: Vec<RankedText<'_>> = Vec::new();
    for text in ranked {
        match best.iter_mut().find(|known| known.artifact.core == text.artifact.core) {
            Some(known) => known.more += 1,
            None => best.push(text),
        }
    }
    best
}

/// A comparison of the indexed texts with those of the captures.
struct MemoryIndexComparison {
    captures: BTreeMap<i64, Arc<CapturePassages>>,
    differences: SearchDifferences,
}

impl IndexComparison for MemoryIndexComparison {
    fn captures(&self) -> u64 {
        self.captures.len() as u64
    }

    fn take(&mut self, core: CoreHash, capture: &CapturePassages) -> Result<()> {
        let indexed = self.captures.remove(&capture.id);
        if indexed.is_none_or(|indexed| indexed.passages != capture.passages) {
            self.differences.artifacts.insert(core);
        }
        Ok(())
    }

    fn pass_over(&mut self, capture: &CapturePassages) {
        self.captures.remove(&capture.id);
    }

    fn finish(mut self: Box<Self>) -> Result<SearchDifferences> {
        self.differences.strays = self.captures.len() as u64;
        Ok(self.differences)
    }
}
