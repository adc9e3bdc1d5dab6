//! The full-text index.

use std::collections::BTreeSet;

use super::TestVault;
use super::kinds::{TestDocument, core, note};
use crate::artifact::Field;
use crate::digest::CoreHash;
use crate::storage::interface::{
    CapturePassages, FoundPassage, PassageGrouping, SearchDifferences, SearchIndex, SearchableCapture, Term,
    Terms,
};
use crate::storage::{BUSY_TIMEOUT, Result};

/// A passage of a test.
type PassageCase = Option<(Field, String)>;

#[expect(clippy::unnecessary_wraps, reason = "passages that are not indexed are None")]
fn text(field: Field, text: &str) -> PassageCase {
    Some((field, text.to_owned()))
}

/// Returns terms: words, and `word*` for those that begin with it. Underscores stand for the spaces of a phrase.
fn terms(alternatives: &[&[&str]], fields: &[Field]) -> Terms {
    let term = |text: &&str| Term {
        text: text.trim_end_matches('*').replace('_', " "),
        is_prefix: text.ends_with('*'),
    };
    let alternatives = alternatives.iter().map(|terms| terms.iter().map(term).collect()).collect();
    Terms { alternatives, fields: fields.to_vec() }
}

impl TestVault {
    fn search_index(&self) -> Option<SearchIndex> {
        self.snapshot().full_text().unwrap().search_index().unwrap()
    }

    fn unindexed(&self, limit: u32) -> Vec<SearchableCapture> {
        self.snapshot().full_text().unwrap().unindexed(limit).unwrap()
    }

    fn index(&self, batch: &[CapturePassages]) -> Result<bool> {
        self.storage.full_text()?.index_passages(batch, BUSY_TIMEOUT)
    }

    fn begin_index(&self) {
        self.storage.full_text().unwrap().begin_index(BUSY_TIMEOUT).unwrap();
    }

    /// Indexes everything, with the same passages for each capture.
    fn index_all(&self, passages: &[PassageCase]) {
        let batch: Vec<_> = self.unindexed(1_000).iter().map(|it| it.with(passages.to_vec())).collect();
        assert!(self.index(&batch).unwrap());
        assert_eq!(self.search_index().map(|index| index.waiting), Some(0));
    }

    fn search(&self, terms: &Terms, grouping: PassageGrouping) -> Vec<FoundPassage> {
        let snapshot = self.snapshot();
        snapshot.full_text().unwrap().search(terms, None, grouping, usize::MAX).unwrap()
    }

    /// Returns the numbers of the passages that match.
    fn numbers(&self, terms: &Terms) -> BTreeSet<usize> {
        self.search(terms, PassageGrouping::Passage).into_iter().map(|found| found.number).collect()
    }

    fn compare(&self, passages: &[PassageCase]) -> SearchDifferences {
        let snapshot = self.snapshot();
        let index = snapshot.full_text().unwrap();
        let mut comparison = index.compare_search_index(&mut |_, _| {}).unwrap().unwrap();
        for capture in index.indexed(None, 1_000).unwrap() {
            comparison.take(capture.artifact.core, &capture.with(passages.to_vec())).unwrap();
        }
        comparison.finish().unwrap()
    }
}

pub(super) fn there_is_no_index_until_one_is_built(vault: &TestVault) {
    let full_text = vault.storage.full_text().unwrap();
    vault.add_note(&TestDocument::new("a"));
    assert_eq!(vault.search_index(), None);
    assert!(vault.unindexed(10).is_empty() && !full_text.has_index_parts().unwrap());
    assert!(!vault.index(&[]).unwrap() && !full_text.drop_index().unwrap());
    assert_eq!(vault.snapshot().full_text().unwrap().search_index_size().unwrap(), 0);
    vault.begin_index();
    assert_eq!(vault.search_index(), Some(SearchIndex { waiting: 1, is_current: true }));
    vault.index_all(&[text(Field::TOOL, "word")]);
    assert!(vault.snapshot().full_text().unwrap().search_index_size().unwrap() > 0);
    assert_eq!(vault.numbers(&terms(&[&["word"]], &[])), [0].into());
    vault.begin_index();
    assert_eq!(vault.search_index(), Some(SearchIndex { waiting: 1, is_current: true }), "it is empty again");
    assert!(full_text.has_index_parts().unwrap() && full_text.drop_index().unwrap());
    assert_eq!((vault.search_index(), full_text.has_index_parts().unwrap()), (None, false));
}

pub(super) fn captures_are_indexed_in_the_order_of_addition(vault: &TestVault) {
    let (a, b) = (vault.add_note(&TestDocument::new("a")), vault.add_note(&TestDocument::new("b")));
    vault.add_note(&TestDocument::new("a").remark("another capture"));
    vault.begin_index();
    let snapshot = vault.snapshot();
    let captures = vault.unindexed(10);
    let of: Vec<CoreHash> = captures.iter().map(|capture| capture.artifact.core).collect();
    assert_eq!(of, [a, b, a]);
    let first = snapshot.captures(&[a]).unwrap()[0][0].capture;
    let firsts: Vec<_> = captures.iter().map(|capture| capture.first).collect();
    assert_eq!(firsts, [None, None, Some(first)]);
    assert_eq!(vault.unindexed(2).len(), 2);
    let with = |number: usize| captures[number].with(vec![text(Field::TOOL, "word")]);
    assert!(!vault.index(&[with(1)]).unwrap(), "the first one is missing");
    assert!(vault.index(&[with(0)]).unwrap());
    assert!(!vault.index(&[with(0)]).unwrap(), "it is in the index");
    assert_eq!(vault.unindexed(10).len(), 2);
    assert!(vault.index(&[with(1), with(2)]).unwrap());
    let found = vault.search(&terms(&[&["word"]], &[]), PassageGrouping::Passage);
    assert_eq!(found.len(), 3);
    assert!(snapshot.full_text().unwrap().search_index().unwrap().is_some_and(|index| index.waiting == 3));
}

/// The passages of [`documented_queries_match`], by their number.
fn documented() -> Vec<PassageCase> {
    vec![
        text(Field::RESPONSE, "The refund goes to the card."),
        text(Field::PROMPT, "Refunds and VOUCHERS, to: the Card!"),
        None,
        text(Field::TOOL, "label_status don't café Ärger"),
        text(Field::TOOL, "card refund; cafe\u{301}s au lait, 日本語テキスト"),
        text(Field::OUTPUT, "… —"),
        text(Field::STEP, "refund refund refund"),
    ]
}

pub(super) fn documented_queries_match(vault: &TestVault) {
    vault.add_note(&TestDocument::new("a"));
    vault.begin_index();
    vault.index_all(&documented());
    for (alternatives, fields, expected) in [
        (&[&["refund"][..]][..], &[][..], &[0, 4, 6][..]),
        (&[&["refund", "CARD"]], &[], &[0, 4]),
        (&[&["refund*"]], &[], &[0, 1, 4, 6]),
        (&[&["refund_refund"]], &[], &[6]),
        (&[&["refund_refund_refund_refund"]], &[], &[]),
        (&[&["to_the_card"]], &[], &[0, 1]),
        (&[&["to_the_ca*"]], &[], &[0, 1]),
        (&[&["the_to"]], &[], &[]),
        (&[&["card", "vouchers"], &["ärger"]], &[], &[1, 3]),
        (&[&["missing"], &["cafe"]], &[], &[3]),
        (&[&["CAFÉ*", "lait"]], &[], &[4]),
        (&[&["label-status"]], &[], &[3]),
        (&[&["status_don't"]], &[], &[3]),
        (&[&["日本語*"]], &[], &[4]),
        (&[&["本語"]], &[], &[4]),
        (&[&["refund"]], &[Field::TOOL, Field::RESPONSE], &[0, 4]),
        (&[&["…", "lait"]], &[], &[4]),
        (&[&["…"]], &[], &[]),
        (&[&[]], &[], &[]),
        (&[], &[], &[]),
        (&[&["no'quotes\\\"& | !a:b <->*"]], &[], &[]),
    ] {
        let query = terms(alternatives, fields);
        assert_eq!(vault.numbers(&query), expected.iter().copied().collect(), "{query:?}");
    }
}

/// A sequence that looks random and is the same each time.
struct PseudoRandomSequence(u64);

impl PseudoRandomSequence {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn pick<'p>(&mut self, parts: &[&'p str]) -> &'p str {
        parts[self.below(parts.len())]
    }
}

const WORDS: [&str; 14] =
    ["a", "A", "ab", "Äb", "abc", "b", "é", "e\u{301}", "ﬁ", "Ⅷ", "1", "日本", "本", "ที่"];
const BETWEEN: [&str; 9] = [" ", " ", "-", "_", "\0", "\n", "\u{301} ", "…", ""];

/// Returns texts that any tokenizer but that of the index would split in another way.
fn short_texts(sequence: &mut PseudoRandomSequence) -> Vec<String> {
    let text = |sequence: &mut PseudoRandomSequence| {
        let parts = 0..sequence.below(9);
        parts.flat_map(|_| [sequence.pick(&WORDS), sequence.pick(&BETWEEN)]).collect::<String>()
    };
    (0..80).map(|_| text(sequence)).collect()
}

/// Returns texts with more words, longer words or more of one word than engines have room for in one place.
fn long_texts() -> Vec<String> {
    let numbers = |count: usize| (0..count).map(|number| format!("n{number} ")).collect::<Vec<_>>().concat();
    let long_numbers =
        |count: usize| (0..count).map(|number| format!("n{number:0>99} ")).collect::<Vec<_>>().concat();
    vec![
        format!("{}ab b", "a ".repeat(300)),
        format!("{}a b", "ab ".repeat(20_000)),
        format!("{}abc a", numbers(17_000)),
        format!("a b {}é ab", long_numbers(11_000)),
        format!("b {} a", "ж".repeat(1_500)),
        format!("b {}x a", "a".repeat(3_000)),
        format!("b {} a", "a".repeat(40_000)),
        "a b ab".to_owned(),
    ]
}

fn queries(sequence: &mut PseudoRandomSequence) -> Vec<Terms> {
    let term = |sequence: &mut PseudoRandomSequence| {
        let words: Vec<&str> = (0..=sequence.below(3)).map(|_| sequence.pick(&WORDS)).collect();
        Term { text: words.join(" "), is_prefix: sequence.below(3) == 0 }
    };
    let terms =
        |sequence: &mut PseudoRandomSequence| (0..=sequence.below(2)).map(|_| term(sequence)).collect();
    let query = |sequence: &mut PseudoRandomSequence| Terms {
        alternatives: (0..=sequence.below(2)).map(|_| terms(sequence)).collect(),
        fields: if sequence.below(4) == 0 { vec![Field::TOOL] } else { Vec::new() },
    };
    (0..150).map(|_| query(sequence)).collect()
}

/// Stores texts as passages, and compares what is found with what the tokenizer finds in each. Returns the number of hits.
fn compare_matches(vault: &TestVault, texts: &[String], queries: &[Terms]) -> usize {
    let field = |number: usize| if number.is_multiple_of(2) { Field::TOOL } else { Field::OUTPUT };
    let passages: Vec<PassageCase> =
        texts.iter().enumerate().map(|(number, text)| Some((field(number), text.clone()))).collect();
    vault.add_note(&TestDocument::new("a"));
    vault.begin_index();
    vault.index_all(&passages);
    let mut count = 0;
    for query in queries {
        let is_match =
            |(number, text): &(usize, &String)| query.matching_ranges(field(*number), text).is_some();
        let matching = texts.iter().enumerate().filter(is_match);
        let expected: BTreeSet<usize> = matching.map(|(number, _)| number).collect();
        count += expected.len();
        assert_eq!(vault.numbers(query), expected, "{query:?}");
    }
    assert_eq!(vault.compare(&passages), SearchDifferences::default());
    count
}

pub(super) fn any_text_matches_as_the_tokenizer_says(vault: &TestVault) {
    let mut sequence = PseudoRandomSequence(7);
    let texts = short_texts(&mut sequence);
    assert!(compare_matches(vault, &texts, &queries(&mut sequence)) > 1_000);
}

pub(super) fn long_texts_match_as_the_tokenizer_says(vault: &TestVault) {
    let number = |number: usize| format!("n{number:0>99}");
    let queries = [
        ("n16999", false),
        (&format!("{} é", number(10_999)), false),
        ("n16998 n16999 abc", false),
        ("n16998 n17000", false),
        (&"a".repeat(40_000), false),
        (&"a".repeat(2_500), true),
        (&"a".repeat(3_000), false),
        (&"ж".repeat(1_500), false),
        (&"ж".repeat(1_499), true),
        (&"ж".repeat(1_400), false),
        ("a b", false),
        ("ab a", false),
        ("a ab", false),
        ("b", true),
    ];
    let query = |(text, is_prefix): (&str, bool)| {
        let terms = vec![Term { text: text.to_owned(), is_prefix }];
        Terms { alternatives: vec![terms], fields: Vec::new() }
    };
    let count = compare_matches(vault, &long_texts(), &queries.map(query));
    assert!(count > 15, "{count}");
}

pub(super) fn hits_can_be_grouped_restricted_and_limited(vault: &TestVault) {
    let names: Vec<CoreHash> =
        ["a", "b", "c"].iter().map(|name| vault.add_note(&TestDocument::new(name))).collect();
    vault.begin_index();
    vault.index_all(&[
        text(Field::TOOL, "word and more"),
        text(Field::OUTPUT, "word"),
        text(Field::STEP, "x"),
    ]);
    let query = terms(&[&["word"]], &[]);
    let snapshot = vault.snapshot();
    let index = snapshot.full_text().unwrap();
    let best = index.search(&query, None, PassageGrouping::Artifact, 10).unwrap();
    // Equal scores: newest artifact first.
    let order: Vec<CoreHash> = names.iter().rev().copied().collect();
    assert_eq!(best.iter().map(|found| found.artifact).collect::<Vec<_>>(), order);
    assert!(best.iter().all(|found| (found.number, found.more) == (1, 1)), "{best:?}");
    let every = index.search(&query, None, PassageGrouping::Passage, 10).unwrap();
    let numbers: Vec<usize> = every.iter().map(|found| found.number).collect();
    assert_eq!(numbers, [1, 1, 1, 0, 0, 0], "short passages first");
    assert!(every.is_sorted_by(|one, other| one.score >= other.score));
    assert_eq!(index.search(&query, None, PassageGrouping::Passage, 2).unwrap()[..], every[..2]);
    assert!(index.search(&query, None, PassageGrouping::Passage, 0).unwrap().is_empty());
    let among = [names[1], super::unknown()];
    let found = index.search(&query, Some(&among), PassageGrouping::Artifact, 10).unwrap();
    assert_eq!(found.iter().map(|found| found.artifact).collect::<Vec<_>>(), [names[1]]);
    assert!(index.search(&query, Some(&[]), PassageGrouping::Artifact, 10).unwrap().is_empty());
}

pub(super) fn removed_artifacts_are_removed_from_the_index(vault: &TestVault) {
    let a = vault.add_note(&TestDocument::new("a"));
    let b = vault.add_note(&TestDocument::new("b"));
    vault.begin_index();
    let passages = [text(Field::TOOL, "word")];
    vault.index_all(&passages);
    let query = terms(&[&["word"]], &[]);
    let before = vault.snapshot();
    vault.remove(b);
    let cores = |found: Vec<FoundPassage>| -> Vec<CoreHash> { found.iter().map(|it| it.artifact).collect() };
    assert_eq!(cores(vault.search(&query, PassageGrouping::Artifact)), [a]);
    assert_eq!(vault.compare(&passages), SearchDifferences::default());
    let held = before.full_text().unwrap().search(&query, None, PassageGrouping::Artifact, 10).unwrap();
    assert_eq!(cores(held), [b, a], "a snapshot does not change");
    // What is added next may get the number of what was removed.
    let c = vault.add_note(&TestDocument::new("c"));
    assert_eq!(vault.search_index().map(|index| index.waiting), Some(1));
    vault.index_all(&passages);
    assert_eq!(cores(vault.search(&query, PassageGrouping::Artifact)), [c, a]);
}

pub(super) fn what_was_removed_while_it_was_read_is_not_indexed(vault: &TestVault) {
    let cores: Vec<CoreHash> =
        ["a", "b", "c"].iter().map(|name| vault.add_note(&TestDocument::new(name))).collect();
    vault.begin_index();
    let read: Vec<_> =
        vault.unindexed(10).iter().map(|it| it.with(vec![text(Field::TOOL, "word")])).collect();
    vault.remove(cores[0]);
    vault.remove(cores[2]);
    let d = vault.add_note(&TestDocument::new("d"));
    assert!(vault.index(&read).unwrap());
    let query = terms(&[&["word"]], &[]);
    let found = vault.search(&query, PassageGrouping::Artifact);
    assert_eq!(found.iter().map(|found| found.artifact).collect::<Vec<_>>(), [cores[1]]);
    let waiting: Vec<_> = vault.unindexed(10).iter().map(|capture| capture.artifact.core).collect();
    assert_eq!(waiting, [d]);
}

pub(super) fn differences_between_index_and_passages_are_found(vault: &TestVault) {
    let a = vault.add_note(&TestDocument::new("a"));
    vault.begin_index();
    assert_eq!(core(note(), "a"), a);
    let passages = [text(Field::TOOL, "one two"), None, text(Field::STEP, "…")];
    vault.index_all(&passages);
    assert_eq!(vault.compare(&passages), SearchDifferences::default());
    for other in [
        &[text(Field::TOOL, "two one"), None, None][..],
        &[text(Field::OUTPUT, "one two"), None, None],
        &[None, text(Field::TOOL, "one two"), None],
        &[text(Field::TOOL, "one two")],
        &[],
    ] {
        assert_eq!(vault.compare(other).artifacts, [a].into(), "{other:?}");
    }
    let snapshot = vault.snapshot();
    let comparison = snapshot.full_text().unwrap().compare_search_index(&mut |_, _| {}).unwrap().unwrap();
    assert_eq!(comparison.captures(), 1);
    assert!(comparison.finish().unwrap().strays > 0, "no artifact has what is indexed");
}
