//! Which of the known texts a person may have meant.

/// Returns up to `most` of `known` that are similar to `text`, the most similar first: those that contain it or that it
/// contains, and those that differ, or have a word that differs, in few letters.
pub fn similar<'k>(text: &str, known: impl IntoIterator<Item = &'k str>, most: usize) -> Vec<&'k str> {
    let text = text.trim_matches('*').to_lowercase();
    let ranked =
        known.into_iter().filter_map(|candidate| Some((rank(&text, &candidate.to_lowercase())?, candidate)));
    let mut ranked: Vec<(usize, &str)> = ranked.collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// Returns how different two lowercase texts are; `None` if neither could have been meant by the other.
fn rank(text: &str, candidate: &str) -> Option<usize> {
    if text.is_empty() || candidate.is_empty() {
        return None;
    }
    if candidate.contains(text) {
        return Some(0);
    }
    let letters = text.chars().count();
    let by_letters = Some(1 + distance(text, candidate)).filter(|rank| *rank <= 1 + letters / 3);
    let has_candidate = candidate.chars().count() > 2 && text.contains(candidate);
    let words = || candidate.split(|letter: char| !letter.is_alphanumeric());
    let is_word = |word: &str| word.chars().count() > 3 && distance(text.trim_start_matches('-'), word) <= 1;
    let by_word = (letters > 3 && words().any(is_word)).then_some(2);
    [by_letters, has_candidate.then_some(3), by_word].into_iter().flatten().min()
}

/// Returns the number of letters to insert, remove, replace or exchange with the next one to get from one text to the
/// other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, letter) in one.chars().enumerate() {
        let mut next = vec![row + 1];
        for (column, theirs) in other.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let mut cost = (at(&last, column) + usize::from(letter != *theirs))
                .min(at(&last, column + 1) + 1)
                .min(at(&next, column) + 1);
            let is_exchanged =
                column > 0 && previous == Some(*theirs) && other.get(column.wrapping_sub(1)) == Some(&letter);
            if is_exchanged {
                cost = cost.min(at(&before_last, column - 1) + 1);
            }
            next.push(cost);
        }
        before_last = std::mem::replace(&mut last, next);
        previous = Some(letter);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_texts_are_those_that_may_be_meant() {
        let models = ["claude-opus-5", "gpt-5", "gpt-5-mini", "triage-large-2"];
        assert_eq!(similar("gpt", models, 5), ["gpt-5", "gpt-5-mini"]);
        assert_eq!(similar("GPT-5-mni", models, 5), ["gpt-5-mini", "gpt-5"]);
        assert_eq!(similar("*triage*", models, 5), ["triage-large-2"]);
        assert_eq!(similar("claude-opsu-5", models, 5), ["claude-opus-5"]);
        assert_eq!(similar("opus", models, 5), ["claude-opus-5"]);
        let options = ["--note", "--has-error", "--sort", "--prompt-hash"];
        assert_eq!(similar("--errors", options, 1), ["--has-error"]);
        assert_eq!(similar("--promt-hash", options, 1), ["--prompt-hash"]);
        for nothing in ["", "zzzzzz", "--wide"] {
            assert!(similar(nothing, options, 5).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn letters_are_counted() {
        for (one, other, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("é", "e", 1),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
