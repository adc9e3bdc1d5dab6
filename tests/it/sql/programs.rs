//! Datasette and `DuckDB`, on what is saved for them.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use runvault::vault::sql::{self, METADATA};
use serde_json::Value;

use super::{everything, examples};
use crate::sandbox::{Ran, Sandbox, repository};

/// The Python interpreter whose packages `datasette`, `duckdb` and `duckdb-extension-sqlite-scanner` are used.
const PYTHON: &str = "RUNVAULT_TEST_PYTHON";

/// Returns the interpreter, or says what is skipped without it.
fn python(what: &str) -> Option<String> {
    let python = std::env::var(PYTHON).ok();
    if python.is_none() {
        // Not captured, so that a run of all tests says so.
        let _ = writeln!(std::io::stderr(), "skipped: {what}; {PYTHON} does not name an interpreter");
    }
    python
}

/// A page of Datasette on the saved file `demo.db`.
fn page(python: &str, sandbox: &Sandbox, address: &str) -> String {
    let mut command = Command::new(python);
    command
        .args([
            "-m",
            "datasette",
            "-i",
            "demo.db",
            "-m",
            METADATA,
            "--setting",
            "facet_time_limit_ms",
            "60000",
        ])
        .args(["--setting", "sql_time_limit_ms", "60000", "--get", address])
        .current_dir(sandbox.path(""));
    Ran::from(command.output().unwrap()).expect(0).stdout
}

fn json(python: &str, sandbox: &Sandbox, address: &str) -> Value {
    serde_json::from_str(&page(python, sandbox, address)).unwrap()
}

#[test]
fn datasette_shows_labels_facets_and_finds_words() {
    let Some(python) = python("saved files in Datasette") else { return };
    let sandbox = examples();
    sandbox.run(["sql", "--save", "demo.db"]).expect(0);
    let database = json(&python, &sandbox, "/demo.json");
    let tables = database["tables"].as_array().unwrap();
    let (hidden, shown): (Vec<_>, Vec<_>) =
        tables.iter().partition(|table| table["hidden"].as_bool().unwrap());
    let mut expected: Vec<&str> = sql::views().iter().map(|view| view.name).collect();
    expected.sort_unstable();
    let mut found: Vec<&str> = shown.iter().map(|table| table["name"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert!(hidden.iter().all(|table| table["name"].as_str().unwrap().contains("_fts")), "{hidden:?}");

    // A step has the title of its run, which its row leads to.
    let steps = json(&python, &sandbox, "/demo/steps.json?_labels=on&_size=1");
    let run = &steps["rows"][0]["artifact"];
    assert_eq!(run["label"], "run pack run-triage-4711");
    assert_eq!(steps["primary_keys"][0], "row_id");
    // Facets of the metadata are counted.
    let calls = steps["facet_results"]["type"]["results"].as_array().unwrap();
    assert!(
        calls.iter().any(|result| result["value"] == "tool.request" && result["count"] == 1),
        "{calls:?}"
    );
    let table = page(&python, &sandbox, "/demo/steps");
    let link = format!("<a href=\"/demo/runs/{}\">run pack run-triage-4711</a>", run["value"]);
    assert!(table.contains(&link), "{table}");
    assert!(table.contains("a step of a run") && table.contains("the tool that the step concerns"));
    let row = page(&python, &sandbox, &format!("/demo/runs/{}", run["value"]));
    assert!(row.contains(&format!("/demo/steps?artifact={}", run["value"])), "{row}");

    // Only texts with the word.
    let all = json(&python, &sandbox, "/demo/interactions.json?_shape=array");
    let found = json(&python, &sandbox, "/demo/interactions.json?_shape=array&_search=bug");
    let (all, found) = (all.as_array().unwrap(), found.as_array().unwrap());
    assert!(!found.is_empty() && found.len() < all.len());
    assert!(found.iter().all(|row| row["response_content"].as_str().unwrap().contains("bug")), "{found:?}");
    // Times are times for other programs, too.
    let days = json(&python, &sandbox, "/demo/runs.json?_facet_date=created_at&_size=0");
    let days = days["facet_results"].as_object().unwrap().values().find(|facet| facet["type"] == "date");
    assert_eq!(days.unwrap()["results"][0]["value"], "2026-11-18");
}

#[test]
fn every_table_can_be_opened_in_datasette() {
    let Some(python) = python("all tables in Datasette") else { return };
    let (sandbox, _) = everything();
    sandbox.run(["sql", "--save", "demo.db"]).expect(0);
    // In one process, which answers like a server.
    let script = "
import asyncio, sys
from datasette.app import Datasette
from datasette.utils import parse_metadata
metadata = parse_metadata(open('metadata.json').read())
settings = {'facet_time_limit_ms': 60000, 'sql_time_limit_ms': 60000}
datasette = Datasette([], immutables=['demo.db'], metadata=metadata, settings=settings)
async def look():
    for table in sys.argv[1:]:
        for form in ['', '.json?_labels=on', '?_search=a']:
            response = await datasette.client.get(f'/demo/{table}{form}')
            print(response.status_code, table + form)
asyncio.run(look())
";
    let views = sql::views();
    let mut command = Command::new(&python);
    command.args(["-c", script]).args(views.iter().map(|view| view.name)).current_dir(sandbox.path(""));
    let answers = Ran::from(command.output().unwrap()).expect(0).stdout;
    assert_eq!(answers.lines().count(), 3 * views.len());
    assert!(answers.lines().all(|line| line.starts_with("200 ")), "{answers}");
}

/// Reads both forms with `DuckDB`; `parquet` may be empty.
fn read(python: &str, saved: &Path, parquet: &Path) -> Value {
    let mut command = Command::new(python);
    command.arg(repository("tests/it/sql/read_with_duckdb.py")).args([saved, parquet]);
    let ran = Ran::from(command.args(sql::views().iter().map(|view| view.name)).output().unwrap());
    serde_json::from_str(&ran.expect(0).stdout).unwrap()
}

#[test]
fn duckdb_reads_a_saved_file() {
    let Some(python) = python("saved files in DuckDB") else { return };
    let (sandbox, _) = everything();
    let line = sandbox.run(["sql", "--save", "demo.db", "--json"]).expect(0).json().remove(0);
    let found = read(&python, &sandbox.path("demo.db"), Path::new(""));
    assert_eq!(found["rows"], line["rows"]);
    assert_ne!(found["rows"]["steps"], 0);
}

#[cfg(feature = "parquet")]
#[test]
fn duckdb_reads_the_same_from_parquet() {
    let Some(python) = python("Parquet files in DuckDB") else { return };
    let (sandbox, _) = everything();
    sandbox.run(["sql", "--save", "demo.db"]).expect(0);
    sandbox.run(["sql", "--save", "demo", "--parquet"]).expect(0);
    let found = read(&python, &sandbox.path("demo.db"), &sandbox.path("demo"));
    let differences = found["differences"].as_object().unwrap();
    assert_eq!(differences.len(), sql::views().len());
    assert!(differences.values().all(|rows| *rows == 0), "{differences:?}");
    let types = &found["types"];
    assert_eq!(
        [&types["runs"]["created_at"], &types["runs"]["tokens"], &types["runs"]["cost_usd"]],
        ["TIMESTAMP", "BIGINT", "DOUBLE"]
    );
    assert_eq!([&types["steps"]["input"], &types["mentions"]["place"]], ["JSON", "VARCHAR"]);
}

#[cfg(feature = "parquet")]
mod parquet {
    use std::fs;
    use std::ops::ControlFlow;

    use runvault::vault::sql::{self, SaveForm, SaveOptions, SqlError};

    use super::super::{everything, examples};

    #[test]
    fn a_directory_has_a_file_for_each_table() {
        let sandbox = examples();
        let line = sandbox.run(["sql", "--save", "demo", "--parquet", "--json"]).expect(0).json().remove(0);
        let mut bytes = 0;
        for view in sql::views() {
            let path = sandbox.path("demo").join(format!("{}.parquet", view.name));
            let content = fs::read(&path).unwrap();
            assert!(content.starts_with(b"PAR1") && content.ends_with(b"PAR1"), "{}", view.name);
            bytes += content.len();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
        assert_eq!((&line["bytes"], &line["rows"]["sessions"]), (&bytes.into(), &2.into()));
        assert_eq!(fs::read_dir(sandbox.path("demo")).unwrap().count(), sql::views().len());
    }

    #[test]
    fn only_a_directory_of_parquet_files_is_replaced() {
        let sandbox = examples();
        sandbox.run(["sql", "--save", "demo", "--parquet"]).expect(0);
        let refused = sandbox.run(["sql", "--save", "demo", "--parquet"]).expect(2);
        assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
        let before = fs::read(sandbox.path("demo/steps.parquet")).unwrap();
        sandbox.run(["sql", "--save", "demo", "--parquet", "--force"]).expect(0);
        assert!(fs::read(sandbox.path("demo/steps.parquet")).unwrap() == before);
        sandbox.write("demo/notes.txt", "of a person");
        let refused = sandbox.run(["sql", "--save", "demo", "--parquet", "--force"]).expect(2);
        assert!(refused.stderr.contains("notes.txt"), "{}", refused.stderr);
        assert!(sandbox.path("demo/notes.txt").exists() && sandbox.path("demo/steps.parquet").exists());
    }

    #[test]
    fn an_interrupted_directory_leaves_nothing() {
        let (sandbox, vault) = everything();
        let inside = sandbox.path("inside");
        fs::create_dir(&inside).unwrap();
        let path = inside.join("demo");
        let options = SaveOptions { path: &path, form: SaveForm::Parquet, force: false };
        let stop =
            |table: &str| if table == "steps" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let outcome = sql::save(&*vault.sql().unwrap(), &options, &mut |table, _| stop(table));
        assert!(matches!(outcome, Err(SqlError::Interrupted)));
        assert_eq!(fs::read_dir(&inside).unwrap().count(), 0);
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    let sandbox = examples();
    let refused = sandbox.run(["sql", "--save", "demo", "--parquet"]).expect(2);
    assert!(refused.stderr.contains("feature parquet"), "{}", refused.stderr);
    assert!(!sandbox.path("demo").exists());
    let _ = writeln!(std::io::stderr(), "skipped: Parquet files; this build lacks the feature parquet");
}
