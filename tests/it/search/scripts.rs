//! Search in scripts that are written without spaces between words.

use super::{found, hits, of_responses};
use crate::journal::sql;
use crate::sandbox::{Sandbox, session};

const CHINESE: &str = "第三步 重新运行fix-batch后五十条引用恢复，已确认";
const JAPANESE: &str = "返金はカードに三日以内に処理されます。ＡＰＩキーは不要です。";
const THAI: &str = "คืนเงินไปที่บัตรแล้วโดยAPIของธนาคาร";
const KOREAN: &str = "환불을 카드로 처리했습니다.";

/// The parts of a hit that are highlighted.
fn highlighted(sandbox: &Sandbox, query: &str) -> Vec<String> {
    let hit = hits(sandbox, &[query]).remove(0);
    let text: Vec<char> = hit["text"].as_str().unwrap().chars().collect();
    let ranges = hit["highlights"].as_array().unwrap().iter();
    let place = |value: &serde_json::Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    ranges.map(|range| text[place(&range[0])..place(&range[1])].iter().collect()).collect()
}

#[test]
fn finds_text_within_words_of_scripts_without_spaces() {
    let sandbox = of_responses(&[CHINESE, JAPANESE, THAI, KOREAN]);
    for (query, expected) in [
        ("五十条", CHINESE),
        ("引用", CHINESE),
        ("batch", CHINESE),
        ("fix-batch", CHINESE),
        ("确", CHINESE),
        ("引用 五十", CHINESE),
        ("\"后五十条\"", CHINESE),
        ("运行*", CHINESE),
        ("カード", JAPANESE),
        ("処理されます", JAPANESE),
        ("API キー", JAPANESE),
        ("บัตร", THAI),
        ("คืนเงิน", THAI),
        ("api ธนาคาร", THAI),
        ("환불", KOREAN),
        ("처리", KOREAN),
    ] {
        let found: Vec<String> =
            hits(&sandbox, &[query]).iter().map(|hit| hit["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(found, [expected], "{query}");
    }
    for query in ["十五", "条五", "引用五十条", "batc", "บีตร", "불환"] {
        assert_eq!(found(&sandbox, &[query]), [""; 0], "{query}");
    }
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn highlights_exactly_what_was_searched_for() {
    let sandbox = of_responses(&[CHINESE, THAI]);
    assert_eq!(highlighted(&sandbox, "五十条"), ["五十条"]);
    assert_eq!(highlighted(&sandbox, "引用 batch"), ["batch", "引用"]);
    assert_eq!(highlighted(&sandbox, "บัตร"), ["บัตร"]);
    let long = format!("{}五十条{}", "重新运行".repeat(100), "引用恢复".repeat(100));
    let sandbox = of_responses(&[&long]);
    assert_eq!(highlighted(&sandbox, "五十条"), ["五十条"]);
    let shown = sandbox.run(["search", "五十条"]).expect(0).stdout;
    assert!(shown.contains("五十条"), "{shown}");
}

#[test]
fn the_first_search_builds_the_index_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("a.json", session("a", &[("p", CHINESE)]))]);
    let first = sandbox.run(["search", "引用"]).expect(0);
    assert!(first.stderr.contains("no search index yet; building it from 1 artifact"), "{}", first.stderr);
    assert!(first.stderr.contains("index drop"), "{}", first.stderr);
    let second = sandbox.run(["search", "引用"]).expect(0);
    assert!(!second.stderr.contains("building"), "{}", second.stderr);
    assert_eq!(second.stdout, first.stdout);
}

#[test]
fn an_index_of_the_previous_tokenizer_is_not_damaged_and_is_rebuilt() {
    let sandbox = of_responses(&[CHINESE]);
    sql(&sandbox)
        .execute_batch(
            "DROP TABLE search_text;
             CREATE VIRTUAL TABLE search_text USING fts5 (
               response, prompt, tool, output, step, contract, pack,
               content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
             INSERT INTO search_text (rowid, response) VALUES (1, '第三步');
             UPDATE search_state SET version = 2",
        )
        .unwrap();
    sandbox.run(["fsck"]).expect(0);
    assert_eq!(found(&sandbox, &["五十条"]).len(), 1);
    sandbox.run(["fsck"]).expect(0);
}
