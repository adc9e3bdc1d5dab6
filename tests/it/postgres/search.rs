//! Full-text search in a database: the same passages as in a file, in another order.

use serde_json::Value;

use super::Database;
use crate::sandbox::{Ran, repository};

/// Returns the hits without what ranking decides, sorted.
fn hits(ran: &Ran) -> Vec<String> {
    let mut hits: Vec<String> = ran
        .json()
        .into_iter()
        .map(|mut hit| {
            let members = hit.as_object_mut().unwrap();
            assert!(members.remove("score").is_some_and(|score| score.is_number()));
            hit.to_string()
        })
        .collect();
    hits.sort();
    hits
}

#[test]
fn searches_find_the_same_passages_as_in_a_file() {
    let Some(database) = Database::with_examples() else { return };
    let (examples, corpus) = (repository("examples"), repository("tests/corpus"));
    database.run_on_file(["add".as_ref(), examples.as_os_str()]).expect(0);
    for arguments in [&["index", "status"][..], &["index", "build"], &["add", corpus.to_str().unwrap()]] {
        let (expected, found) = (database.run_on_file(arguments), database.run(arguments));
        assert_eq!(found.status, expected.status, "{arguments:?}: {}", found.stderr);
    }
    let mut count = 0;
    for query in [
        &["ticket"][..],
        &["refund*"],
        &["a", "the"],
        &["e*", "--in", "response,prompt"],
        &["\"the ticket\""],
        &["\"tick\"*", "OR", "error"],
        &["a*", "--kind", "runs"],
        &["a*", "--since", "2020-01-01", "--in", "tool"],
        &["nothing-has-this"],
    ] {
        let arguments = ["search", "--all", "--limit", "100000", "--json", "--"];
        let arguments = [&arguments[..5], &query[1..], &arguments[5..], &query[..1]].concat();
        let arguments = if query.contains(&"OR") || query == ["a", "the"] {
            [&["search", "--all", "--limit", "100000", "--json", "--"][..], query].concat()
        } else {
            arguments
        };
        let (expected, found) = (database.run_on_file(&arguments), database.run(&arguments));
        assert_eq!(found.status, expected.status, "{arguments:?}: {}", found.stderr);
        assert_eq!(hits(&found), hits(&expected), "{arguments:?}");
        count += hits(&found).len();
    }
    assert!(count > 100, "{count}");
    // One hit for each artifact, with the number of the others.
    let artifacts = |ran: &Ran| -> Vec<(String, u64)> {
        let key = |hit: &Value| {
            (hit["core_hash"].as_str().unwrap().to_owned(), hit["more"].as_u64().unwrap_or_default())
        };
        let mut artifacts: Vec<_> = ran.json().iter().map(key).collect();
        artifacts.sort();
        artifacts
    };
    let arguments = ["search", "--limit", "100000", "--json", "a*"];
    let (expected, found) = (database.run_on_file(arguments), database.run(arguments));
    assert_eq!(artifacts(&found), artifacts(&expected));
    assert!(artifacts(&found).iter().any(|(_, more)| *more > 0));
}

#[test]
fn an_index_follows_the_vault_until_it_is_dropped() {
    let Some(database) = Database::with_examples() else { return };
    database.run(["index", "build"]).expect(0);
    let status = database.run(["index", "status", "--json"]).expect(0).json();
    assert!(status[0]["bytes"].as_u64().is_some_and(|size| size > 0), "{status:?}");
    let session = crate::sandbox::session("new", &[("p", "an unusual answer")]);
    let path = database.sandbox.write("new.json", session);
    database.run(["add".as_ref(), path.as_os_str()]).expect(0);
    let found = database.run(["search", "unusual", "--json"]).expect(0).json();
    assert_eq!(found.len(), 1);
    let core = found[0]["core_hash"].as_str().unwrap().to_owned();
    database.run(["rm", "--force", &core]).expect(0);
    database.run(["search", "unusual"]).expect(1);
    let words = "SELECT count(*) FROM search_passage WHERE words::text LIKE '%unusual%'";
    let left: i64 = database.schema.client().query_one(words, &[]).unwrap().get(0);
    assert_eq!(left, 0);
    database.run(["index", "drop"]).expect(0);
    let rebuilt = database.run(["search", "ticket"]).expect(0);
    assert!(rebuilt.stderr.contains("no search index yet"), "{}", rebuilt.stderr);
}
