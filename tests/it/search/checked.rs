//! What is wrong with the index is found and repaired, and nothing else needs it.

use super::{examples, found, hits};
use crate::fsck::{bytes_of, findings, of_bytes, sql};
use crate::sandbox::Sandbox;

/// What a search says.
fn answers(sandbox: &Sandbox) -> Vec<(i32, String)> {
    let ask = [
        vec!["export", "--limit", "100"],
        vec!["label*", "--all", "--limit", "100"],
        vec!["\"on its way\" OR tracker"],
        vec!["4711", "--in", "prompt"],
    ];
    let asked = ask.map(|arguments| sandbox.run([&["search", "--json"], &arguments[..]].concat()));
    asked.into_iter().map(|ran| (ran.status, ran.stdout)).collect()
}

const CHANGES: &[&str] = &[
    "DELETE FROM search_text WHERE rowid = 3",
    "INSERT INTO search_text (rowid, response) VALUES (3, 'something else')",
    "INSERT INTO search_text (rowid, tool) VALUES (5000, 'of nothing')",
    "UPDATE search_text_data SET block = CAST(x'01' || substr(block, 2) AS BLOB) WHERE id = 1",
    "DELETE FROM search_text_data WHERE id = 1",
    "UPDATE search_text_docsize SET sz = x'05000000000000' WHERE id = 3",
    "UPDATE search_text_docsize SET origin = 99 WHERE id = 3",
    "DELETE FROM search_capture WHERE capture = 2",
    "UPDATE search_capture SET passages = passages + 1 WHERE capture = 2",
    "UPDATE search_capture SET capture = CASE capture WHEN 1 THEN -2 WHEN 2 THEN -1 END WHERE capture IN (1, 2);
     UPDATE search_capture SET capture = -capture WHERE capture < 0",
    "UPDATE search_state SET capture = 100",
    "UPDATE search_state SET capture = 3",
    "UPDATE search_state SET next = 1",
    "UPDATE search_state SET next = 9223372036854775807",
    "DELETE FROM search_state",
    "UPDATE search_text_data SET block = x'00' WHERE id > 10",
    "DELETE FROM search_text_data",
    "DELETE FROM search_text_config",
    "DROP TABLE search_capture",
    "DROP TABLE search_state",
    "DROP TABLE search_text",
    "DROP TABLE search_text_docsize",
    "DROP TABLE search_text_config",
    "DROP TABLE search_text; CREATE VIRTUAL TABLE search_text USING fts5 (response, tokenize = 'porter')",
    "DROP TABLE search_capture; CREATE TABLE search_capture (first, capture, passages)",
];

#[test]
fn damage_is_named_and_repaired() {
    let original = examples();
    let (bytes, before) = (bytes_of(&original), answers(&original));
    let mut reports = String::new();
    for change in CHANGES {
        let sandbox = of_bytes(&bytes);
        sql(&sandbox).execute_batch(change).unwrap();
        let report = findings(&sandbox, &[]);
        assert!(report.lines().all(|line| line.contains("search")), "{change}\n{report}");
        assert!(!report.is_empty(), "{change}");
        reports += &format!("{change}\n{report}\n");
        let repaired = findings(&sandbox, &["--repair"]);
        assert_eq!(repaired, "repaired: rebuilt | index search | \n", "{change}");
        assert_eq!(answers(&sandbox), before, "{change}");
        // What can be asked for with one command is as good.
        for command in [["index", "build"].as_slice(), &["index", "rebuild"]] {
            let sandbox = of_bytes(&bytes);
            sql(&sandbox).execute_batch(change).unwrap();
            sandbox.run(command).expect(0);
            assert_eq!(findings(&sandbox, &[]), "", "{change}");
            assert_eq!(answers(&sandbox), before, "{change}");
        }
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn words_that_are_not_found_though_they_are_there_are_missed() {
    let sandbox = Sandbox::new();
    for number in 0..400_u32 {
        let words: Vec<String> = (0..40).map(|word| format!("word{}", number * 40 + word)).collect();
        let response = words.join(" ");
        let text = crate::sandbox::session(&format!("n{number}"), &[("p", &response)]);
        sandbox.write(&format!("d/{number}.json"), text);
    }
    sandbox.add([sandbox.path("d")]);
    sandbox.run(["index", "build"]).expect(0);
    assert_eq!(findings(&sandbox, &[]), "");
    for change in [
        "DELETE FROM search_text_idx WHERE pgno > 10",
        "UPDATE search_text_idx SET term = CAST(term AS TEXT)",
        "UPDATE search_text_idx SET pgno = pgno - 2 WHERE pgno > 10",
    ] {
        let pages = sql(&sandbox).execute(change, []).unwrap();
        assert!(pages > 3, "the index is large enough to have an index of its own");
        let missed = ["word15000", "word9000", "word1"].map(|word| found(&sandbox, &[word]).is_empty());
        assert!(missed.contains(&true), "{change}");
        let report = findings(&sandbox, &[]);
        assert!(report.contains("index-differs | index search | "), "{report}");
        sandbox.run(["fsck", "--repair"]).expect(0);
        assert_eq!(found(&sandbox, &["word15000"]).len(), 1, "{change}");
    }
}

#[test]
fn ranks_do_not_depend_on_what_was_removed() {
    let sandbox = examples();
    sandbox.run(["rm", "103ef1c54b58", "--force"]).expect(0);
    assert_eq!(findings(&sandbox, &[]), "");
    let before = answers(&sandbox);
    sandbox.run(["index", "build"]).expect(0);
    assert_eq!(answers(&sandbox), before);
}

#[test]
fn other_tables_are_none_of_the_index() {
    let sandbox = examples();
    sql(&sandbox).execute_batch("CREATE TABLE search_more (x); CREATE VIEW search AS SELECT 1").unwrap();
    let report = findings(&sandbox, &[]);
    assert_eq!(report.lines().filter(|line| line.starts_with("schema-differs")).count(), 2, "{report}");
}

#[test]
fn an_index_that_does_not_fit_is_told_by_who_asks() {
    let sandbox = examples();
    // The words of one passage under the number of another.
    let change =
        "DELETE FROM search_text WHERE rowid = 1; INSERT INTO search_text (rowid, tool) VALUES (1, 'needle')";
    sql(&sandbox).execute_batch(change).unwrap();
    let ran = sandbox.run(["search", "needle"]).expect(2);
    assert!(ran.stderr.contains("index build"), "{}", ran.stderr);
    let sandbox = examples();
    sql(&sandbox).execute_batch("UPDATE search_text_data SET block = x'00' WHERE id > 10").unwrap();
    let ran = sandbox.run(["search", "export"]).expect(2);
    assert!(ran.stderr.contains("the search index is malformed"), "{}", ran.stderr);
}

#[test]
fn damaged_documents_are_told_and_the_rest_is_found() {
    // Of bytes that were damaged after they were indexed, the index is right.
    let sandbox = examples();
    let damage = "UPDATE payload SET bytes = x'00' WHERE encoding IN (1, 2)";
    assert!(sql(&sandbox).execute(damage, []).unwrap() > 3);
    let report = findings(&sandbox, &[]);
    assert!(report.contains("damaged-bytes | blob sha256:") && !report.contains("search"), "{report}");
    sandbox.run(["search", "export"]).expect(2);
    let sandbox = examples();
    sandbox.run(["index", "drop"]).expect(0);
    let blob = "SELECT blob FROM capture c JOIN artifact a ON a.id = c.artifact JOIN kind k ON k.id = a.kind WHERE k.name = 'rpk'";
    sql(&sandbox).execute_batch(&format!("UPDATE payload SET bytes = x'00' WHERE blob = ({blob})")).unwrap();
    let ran = sandbox.run(["index", "build"]).expect(2);
    assert!(ran.stderr.contains("sha256:3941d389b337") && ran.stderr.contains("damaged"), "{}", ran.stderr);
    assert!(ran.stderr.contains("7 of 8 captures indexed, "), "{}", ran.stderr);
    assert_eq!(found(&sandbox, &["\"which label fits\""]), [""; 0]);
    assert_eq!(hits(&sandbox, &["export"]).len(), 4);
    let report = findings(&sandbox, &[]);
    assert!(report.contains("damaged-bytes | blob sha256:") && !report.contains("search"), "{report}");
    // Once the bytes are there again, the repair finds the words again.
    let whole = examples();
    let source = whole.vault();
    let ran = sandbox.run(["fsck".as_ref(), "--repair".as_ref(), "--from".as_ref(), source.as_os_str()]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
    assert_eq!(hits(&sandbox, &["\"which label fits\""]).len(), 1);
}

#[test]
fn an_index_with_flipped_bytes_is_not_clean_unless_it_answers_as_before() {
    let original = examples();
    sql(&original).execute_batch("VACUUM").unwrap();
    let (bytes, before) = (bytes_of(&original), answers(&original));
    let pages: Vec<usize> = {
        let connection = sql(&original);
        let mut pages = connection
            .prepare("SELECT pgoffset FROM dbstat WHERE name LIKE 'search_%' ORDER BY pgoffset")
            .unwrap();
        pages.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut found = 0;
    let stride = std::env::var("RUNVAULT_FLIP_STRIDE").map_or(89, |stride| stride.parse().unwrap());
    let written = pages.iter().flat_map(|page| *page..page + 8_192).filter(|offset| bytes[*offset] != 0);
    for offset in written.step_by(stride) {
        let mut flipped = bytes.clone();
        flipped[offset] ^= 0x55;
        let sandbox = of_bytes(&flipped);
        let full = sandbox.run(["fsck"]);
        assert!((0..=2).contains(&full.status), "{offset}: {}", full.stderr);
        if full.status == 0 {
            assert_eq!(answers(&sandbox), before, "{offset}");
        } else {
            found += 1;
            let ran = sandbox.run(["fsck", "--repair"]);
            assert!((0..=2).contains(&ran.status), "{offset}: {}", ran.stderr);
        }
    }
    assert!(found > 10, "{found}");
}
