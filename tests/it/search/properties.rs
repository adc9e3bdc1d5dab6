//! Whatever is said is found, whatever is asked is understood.

use std::collections::BTreeSet;

use proptest::prelude::*;
use runvault::Vault;
use runvault::intake::ExamineOptions;
use runvault::vault::remove::RemoveRequest;
use runvault::vault::search::{
    BuildSearchIndexRequest, FieldMatch, SearchExpression, SearchExpressionError, SearchRequest,
};

use crate::sandbox::session;

struct Place {
    vault: Vault,
    _directory: tempfile::TempDir,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let vault = Vault::open_or_create(&directory.path().join("v.vault")).unwrap();
    Place { vault, _directory: directory }
}

fn add(vault: &Vault, adapter: &str, responses: &[String]) -> runvault::digest::CoreHash {
    let prompts: Vec<String> = (0..responses.len()).map(|index| format!("p{index}")).collect();
    let exchanges: Vec<(&str, &str)> = prompts
        .iter()
        .zip(responses)
        .map(|(prompt, response)| (prompt.as_str(), response.as_str()))
        .collect();
    let text = session(adapter, &exchanges);
    vault.add_document(text.into_bytes(), &ExamineOptions::default()).unwrap().core
}

/// A request for every passage; none if there is nothing to search for.
fn all(text: &str) -> Option<SearchRequest> {
    text.parse::<SearchExpression>().ok()?;
    Some(SearchRequest {
        words: text.to_owned(),
        every_passage: true,
        limit: u64::MAX,
        ..SearchRequest::default()
    })
}

/// The hits in the index, after what is new was added to it.
fn hits(vault: &Vault, request: &SearchRequest) -> Vec<FieldMatch> {
    vault.catch_up_search(&mut |_| {}).unwrap();
    vault.run(request).unwrap().hits
}

/// Texts as models write them, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Zäöüß0-9 .,:\\n\"'-]{0,60}",
        "\\PC{0,40}",
        "[\\x00-\\x20\\x7f\u{e000}\u{e001}\"*()a-c]{0,40}",
        "(AND|OR|NOT|NEAR|response|:|\\^|\\+|-|\\{|\\}| |\"){0,12}",
    ]
}

/// The words of a text that surely are words, whatever Unicode version decides.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Every word of every response is found where it stands, also as a part of a question in quotes and as a beginning,
    /// and nothing is found of what was removed.
    #[test]
    fn every_word_of_what_is_there_is_found_and_none_of_what_is_not(
        responses in prop::collection::vec(prop::collection::vec(text(), 1..4), 1..5), removed in 0..5_usize
    ) {
        let Place { vault, _directory } = place();
        let cores: Vec<_> = responses
            .iter()
            .enumerate()
            .map(|(number, responses)| add(&vault, &format!("a{number}"), responses))
            .collect();
        vault.run(&BuildSearchIndexRequest {}).unwrap();
        let gone = removed % cores.len();
        vault.run(&RemoveRequest { artifacts: vec![cores[gone]], ..RemoveRequest::default() }).unwrap();
        for (number, responses) in responses.iter().enumerate() {
            for (index, response) in responses.iter().enumerate() {
                // Whole words only: what stands beside a letter that is not ASCII is a part of another word.
                let is_plain = response.is_ascii();
                for word in words_of(response).filter(|_| is_plain) {
                    for asked in [format!("\"{word}\""), format!("\"{word}\"*"), word.to_uppercase()] {
                        let Some(query) = all(&asked).filter(|_| asked != "OR") else { continue };
                        let hits = hits(&vault, &query);
                        let is_hit = hits.iter().any(|hit| {
                            hit.artifact.core_hash == cores[number]
                                && hit.place.to_string() == format!("interaction {index}")
                        });
                        prop_assert_eq!(is_hit, number != gone, "{} of {:?}", asked, response);
                    }
                }
            }
        }
        let artifacts: BTreeSet<_> = hits(&vault, &all("a* OR b* OR c* OR 0* OR 1*").unwrap())
            .into_iter()
            .map(|hit| hit.artifact.core_hash)
            .collect();
        prop_assert!(!artifacts.contains(&cores[gone]));
    }

    /// A response is found by itself, as a phrase.
    #[test]
    fn a_text_is_found_by_itself(response in text()) {
        let Place { vault, _directory } = place();
        add(&vault, "a", &[response.clone(), "something else".to_owned()]);
        vault.run(&BuildSearchIndexRequest {}).unwrap();
        let phrase = format!("\"{}\"", response.replace('"', " "));
        if words_of(&response).next().is_some() {
            let hits = hits(&vault, &all(&phrase).unwrap());
            prop_assert_eq!(hits.len(), 1, "{:?}", response);
            prop_assert!(!hits[0].highlights.is_empty());
            prop_assert!(response.contains(&hits[0].text));
        }
    }

    /// A query is an error only if it has no words, or too many.
    #[test]
    fn whatever_is_asked_is_answered(asked in prop_oneof![text(), "\\PC{0,200}", "[\"*() a\\x00-\\x1f]{0,60}"]) {
        let Place { vault, _directory } = place();
        add(&vault, "a", &["a text: and OR not (it) near \"me\"".to_owned()]);
        vault.run(&BuildSearchIndexRequest {}).unwrap();
        match asked.parse::<SearchExpression>() {
            Ok(_) => {
                let request = SearchRequest { words: asked, ..SearchRequest::default() };
                prop_assert!(hits(&vault, &request).len() <= 1);
            }
            Err(SearchExpressionError::NoWords) => prop_assert!(!asked.replace("OR", "").contains(char::is_alphanumeric)),
            Err(SearchExpressionError::TooMany) => prop_assert!(asked.split_whitespace().count() > 100),
        }
    }
}
